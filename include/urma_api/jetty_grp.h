/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: groups of jetties. */
#ifndef URMA_API_JETTY_GRP_H
#define URMA_API_JETTY_GRP_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_jetty_grp - make a group of jetties
 *
 * @ctx: a context of this process
 * @cfg: how; copied
 *
 * Returns: the group, or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, the name is empty or not ended, the policy or token policy is
 *   unknown, or the id cannot be had
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_jetty_grp_t *urma_create_jetty_grp(urma_context_t *ctx, urma_jetty_grp_cfg_t *cfg);

/**
 * urma_delete_jetty_grp - delete a group of jetties
 *
 * @jetty_grp: a group
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jetty_grp is NULL or none
 *   URMA_ENOPERM: it has members
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t *jetty_grp);

#ifdef __cplusplus
}
#endif

#endif
