/* SPDX-License-Identifier: MIT */
/* Two contexts of this process and a completion queue in each, for tests of objects. */
#ifndef TEST_LIB_URMA_FIXTURE_H
#define TEST_LIB_URMA_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "urma_api.h"

extern urma_context_t *ctx, *other;
extern urma_jfc_t *jfc, *other_jfc; /* of ctx, of other */
extern char junk[512];              /* memory that is no object */

/* Setup and teardown of the group. */
int fixture_open(void **state);
int fixture_close(void **state);

void assert_refused(const char *words);
/* A constructor's result is NULL, errno is error, and the refusal has the words. */
void assert_null_with(const void *result, int error, const char *words);

/* Settings that are good in ctx, and queues made with them. */
urma_jfr_cfg_t jfr_cfg(urma_transport_mode_t mode);
urma_jfs_cfg_t jfs_cfg(urma_transport_mode_t mode);
urma_jetty_cfg_t jetty_cfg(urma_jfr_t *jfr);
urma_jfc_t *make_jfc(urma_context_t *in);
urma_jfr_t *make_jfr(urma_transport_mode_t mode);
urma_jetty_t *make_jetty(urma_jfr_t *jfr);

#endif
