/* SPDX-License-Identifier: MIT */
/* See urma_fixture.h. */
#include "lib/urma_fixture.h"

#include <string.h>

#include "xtal.h"

static urma_device_t **list;
urma_context_t *ctx, *other;
urma_jfc_t *jfc, *other_jfc;
char junk[512];

void assert_refused(const char *words)
{
	if (strstr(xtal_last_error(), words))
		return;
	print_error("'%s' does not say '%s'\n", xtal_last_error(), words);
	fail();
}

void assert_null_with(const void *result, int error, const char *words)
{
	assert_null(result);
	assert_int_equal(errno, error);
	assert_refused(words);
	errno = 0;
}

urma_jfc_t *make_jfc(urma_context_t *in)
{
	urma_jfc_cfg_t cfg = { .depth = 64 };

	return urma_create_jfc(in, &cfg);
}

urma_jfr_cfg_t jfr_cfg(urma_transport_mode_t mode)
{
	return (urma_jfr_cfg_t){ .depth = 8, .trans_mode = mode, .max_sge = 2, .jfc = jfc };
}

urma_jfs_cfg_t jfs_cfg(urma_transport_mode_t mode)
{
	return (urma_jfs_cfg_t){ .depth = 8,
				 .trans_mode = mode,
				 .max_sge = 2,
				 .max_rsge = 1,
				 .rnr_retry = URMA_TYPICAL_RNR_RETRY,
				 .err_timeout = URMA_TYPICAL_ERR_TIMEOUT,
				 .jfc = jfc };
}

urma_jfr_t *make_jfr(urma_transport_mode_t mode)
{
	urma_jfr_cfg_t cfg = jfr_cfg(mode);

	return urma_create_jfr(ctx, &cfg);
}

urma_jetty_cfg_t jetty_cfg(urma_jfr_t *jfr)
{
	return (urma_jetty_cfg_t){ .flag.bs.share_jfr = 1,
				   .jfs_cfg = jfs_cfg(jfr->jfr_cfg.trans_mode),
				   .shared.jfr = jfr };
}

urma_jetty_t *make_jetty(urma_jfr_t *jfr)
{
	urma_jetty_cfg_t cfg = jetty_cfg(jfr);

	return urma_create_jetty(ctx, &cfg);
}

int fixture_open(void **state)
{
	int count;

	(void)state;
	if (urma_init(NULL))
		return -1;
	list = urma_get_device_list(&count);
	ctx = urma_create_context(list[0], 0);
	other = urma_create_context(list[0], 0);
	jfc = make_jfc(ctx);
	other_jfc = make_jfc(other);
	return jfc && other_jfc ? 0 : -1;
}

int fixture_close(void **state)
{
	(void)state;
	if (urma_delete_jfc(jfc) || urma_delete_jfc(other_jfc) || urma_delete_context(ctx) ||
	    urma_delete_context(other))
		return -1;
	urma_free_device_list(list);
	return urma_uninit() ? -1 : 0;
}
