/* SPDX-License-Identifier: MIT */
/* The key file becomes a TLS context, once; see security.h. */
#include "core/security.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/key.h"
#include "base/lock.h"
#include "core/config.h"
#include "core/log.h"
#include "os/secret.h"
#include "os/tls.h"

static struct {
	struct xtal_lock lock;
	struct xtal_os_tls_context *tls;
} state;

bool xtal_security_wanted(struct xtal_eid eid)
{
	return !xtal_eid_is_loopback(eid) && !xtal_config()->insecure;
}

static const char *file_problem(int err)
{
	switch (-err) {
	case EKEYREJECTED:
		return "group or others may read or write it, so it is no secret: chmod 600";
	case EPERM:
		return "belongs to another user: it must be ours or root's";
	case EINVAL:
		return "is no regular file";
	case EFBIG:
		return "is too long for a key file";
	default:
		return strerror(-err);
	}
}

/* Under the lock. */
static int load(char *why, size_t size)
{
	const char *path = xtal_config()->key_file, *wrong;
	char text[XTAL_KEY_FILE];
	struct xtal_key key;
	size_t len;
	int err;

	if (!path[0]) {
		snprintf(why, size,
			 "there is no key: make one with 'xtal key new FILE', copy it to every "
			 "host and set XTAL_KEY_FILE=FILE (or, on a network that you trust, "
			 "XTAL_SECURITY=none)");
		return -ENOKEY;
	}
	err = xtal_os_read_secret(path, text, sizeof(text), &len);
	if (err) {
		snprintf(why, size, "key file %.200s: %s", path, file_problem(err));
		return -ENOKEY;
	}
	wrong = xtal_key_parse(text, len, &key);
	xtal_os_wipe(text, sizeof(text));
	if (wrong) {
		snprintf(why, size, "key file %.200s: %s", path, wrong);
		return -ENOKEY;
	}
	err = xtal_os_tls_context_create(key.secret, key.id, &state.tls);
	if (err)
		snprintf(why, size, "key file %.200s: TLS cannot be set up: %s", path,
			 strerror(-err));
	else
		xtal_log(XTAL_LOG_INFO, "xtal", "key %s of %s is used between hosts", key.id, path);
	xtal_os_wipe(&key, sizeof(key));
	return err ? -ENOKEY : 0;
}

int xtal_security_context(struct xtal_os_tls_context **out, char *why, size_t size)
{
	int err = 0;

	xtal_config();
	xtal_lock(&state.lock);
	if (!state.tls)
		err = load(why, size);
	if (!err)
		*out = state.tls;
	xtal_unlock(&state.lock);
	return err;
}

int xtal_security_check(const struct xtal_device *dev, char *why, size_t size)
{
	struct xtal_os_tls_context *unused;

	if (!xtal_security_wanted(dev->eid))
		return 0;
	return xtal_security_context(&unused, why, size);
}

void xtal_security_fork_lock(void)
{
	xtal_lock(&state.lock);
}

void xtal_security_fork_unlock(void)
{
	xtal_unlock(&state.lock);
}

void xtal_security_fork_child(void)
{
	state.tls =
		NULL; /* another thread may have been inside it: a new one is made when needed */
}
