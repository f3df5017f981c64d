/* SPDX-License-Identifier: MIT */
/* Reading files that nobody else may read: the open file is judged, not its name. */
#define _GNU_SOURCE
#include "os/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/cancel.h"

static int judge(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return -EPERM;
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return -EKEYREJECTED;
	return 0;
}

static int read_all(int fd, char *buf, size_t size, size_t *len)
{
	char more;
	ssize_t n;

	*len = 0;
	for (;;) {
		if (*len < size)
			n = read(fd, buf + *len, size - *len);
		else
			n = read(fd, &more, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		if (*len == size)
			return -EFBIG;
		*len += (size_t)n;
	}
}

int xtal_os_read_secret(const char *path, char *buf, size_t size, size_t *len)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	/* O_NONBLOCK: a fifo must not stop us before it is judged. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	err = judge(fd);
	if (!err)
		err = read_all(fd, buf, size, len);
	if (err)
		xtal_os_wipe(buf, size);
	close(fd);
	return err;
}

void xtal_os_wipe(void *buf, size_t len)
{
	explicit_bzero(buf, len);
}
