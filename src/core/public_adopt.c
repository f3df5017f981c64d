/* SPDX-License-Identifier: MIT */
/* The functions of xtal.h about adoption. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "core/adopt.h"
#include "core/log.h"
#include "os/adopt.h"
#include "xtal.h"

int xtal_share(void *ptr, size_t len)
{
	char why[160] = "ptr is NULL";
	int err = -EINVAL;

	if (ptr)
		err = xtal_adopt((uintptr_t)ptr, len, XTAL_ADOPT_REQUEST, why, sizeof(why));
	if (err)
		xtal_refuse("xtal", "xtal_share(%p, %zu): %s", ptr, len, why);
	return err;
}

int xtal_unshare(void *ptr, size_t len)
{
	char why[160] = "ptr is NULL or len is 0";
	int err = -EINVAL;

	if (ptr && len)
		err = xtal_adopt_undo((uintptr_t)ptr, len, why, sizeof(why));
	if (err)
		xtal_refuse("xtal", "xtal_unshare(%p, %zu): %s", ptr, len, why);
	return err;
}

_Static_assert((int)XTAL_ADOPTION_NONE == (int)XTAL_OS_ADOPT_NONE &&
		       (int)XTAL_ADOPTION_USER == (int)XTAL_OS_ADOPT_USER &&
		       (int)XTAL_ADOPTION_FULL == (int)XTAL_OS_ADOPT_FULL,
	       "the public numbers are those of the probe");

int xtal_adoption_query(char *text, size_t size)
{
	char why[160];
	enum xtal_os_adopt_level level = xtal_os_adopt_probe(why, sizeof(why));

	if (text && size)
		snprintf(text, size, "%s", why);
	return (int)level;
}
