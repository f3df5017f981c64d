/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: receive queues (JFR), and importing them. */
#ifndef URMA_API_JFR_H
#define URMA_API_JFR_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_jfr - make a receive queue
 *
 * It is in state URMA_JFR_STATE_READY.
 *
 * @ctx: a context of this process
 * @jfr_cfg: how; copied, after the default order in it was replaced by that of its mode
 *
 * Returns: the queue, or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, there is no jfc or it is of another context, mode or order is
 *   none that there is, the token policy is neither URMA_TOKEN_NONE nor URMA_TOKEN_PLAIN_TEXT, the
 *   depth or max_sge is 0, a limit of the device is exceeded, or the id cannot be had
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_jfr_t *urma_create_jfr(urma_context_t *ctx, urma_jfr_cfg_t *jfr_cfg);

/**
 * urma_modify_jfr - change state or threshold of a receive queue
 *
 * @jfr: a receive queue
 * @attr: mask JFR_STATE or JFR_RX_THRESHOLD or both, and their values
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jfr is no live queue, the mask is empty, or the threshold
 *   is above the depth
 *   URMA_FAIL: that state cannot follow the present one
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_modify_jfr(urma_jfr_t *jfr, urma_jfr_attr_t *attr);

/**
 * urma_query_jfr - settings and state of a receive queue
 *
 * @jfr: a receive queue
 * @cfg: filled
 * @attr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or jfr is no live queue
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_query_jfr(urma_jfr_t *jfr, urma_jfr_cfg_t *cfg, urma_jfr_attr_t *attr);

/**
 * urma_delete_jfr - delete a receive queue
 *
 * Receives that were not used are dropped.
 *
 * @jfr: a receive queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfr is NULL or no live queue, or a jetty uses it
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfr(urma_jfr_t *jfr);

/**
 * urma_delete_jfr_batch - delete receive queues
 *
 * @jfr_arr: the queues, all of one device
 * @jfr_num: how many
 * @bad_jfr: filled with the first that was not deleted (the first of all when nothing was), NULL on
 *      success
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_delete_jfc_batch()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfr_batch(urma_jfr_t **jfr_arr, int jfr_num, urma_jfr_t **bad_jfr);

/**
 * urma_alloc_jfr - make a receive queue in two steps
 *
 * It can be used after urma_active_jfr(); until then options can be set.
 *
 * @urma_ctx: a context of this process
 * @cfg: how; copied
 * @jfr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_create_jfr()
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_alloc_jfr(urma_context_t *urma_ctx, urma_jfr_cfg_t *cfg, urma_jfr_t **jfr);

/**
 * urma_set_jfr_opt - set an option of a receive queue
 *
 * @jfr: a receive queue
 * @opt: which option
 * @buf: its value
 * @len: size of the value, which must be exact, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_set_jfc_opt()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_set_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_active_jfr - make a receive queue usable
 *
 * @jfr: a receive queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfr is NULL, no live queue, active, or its jfc is not active
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_active_jfr(urma_jfr_t *jfr);

/**
 * urma_get_jfr_opt - the value of an option of a receive queue
 *
 * @jfr: a receive queue
 * @opt: which option
 * @buf: for its value
 * @len: size of the value, which must be exact, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_get_jfc_opt()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_jfr_opt(urma_jfr_t *jfr, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_deactive_jfr - make a receive queue unusable again
 *
 * @jfr: a receive queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfr is NULL, no live queue, not active, or used by a jetty
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_deactive_jfr(urma_jfr_t *jfr);

/**
 * urma_free_jfr - free a receive queue that is not active
 *
 * @jfr: a receive queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfr is NULL, no live queue, or active
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_free_jfr(urma_jfr_t *jfr);

/**
 * urma_import_jfr - make a peer's receive queue usable as a target
 *
 * Contacts nobody: the peer need not exist yet.
 *
 * @ctx: a context of this process
 * @rjfr: what the peer has told; its default order is replaced by that of the mode
 * @token_value: what the peer wants to see; NULL when its token policy is URMA_TOKEN_NONE
 *
 * Returns: the target, or NULL, mostly with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or mode, order or transport do not fit
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_target_jetty_t *urma_import_jfr(urma_context_t *ctx, urma_rjfr_t *rjfr,
				     urma_token_t *token_value);

/**
 * urma_import_jfr_ex - import a receive queue, with a transport
 *
 * @ctx: a context of this process
 * @rjfr: as for urma_import_jfr()
 * @token_value: as for urma_import_jfr(), never NULL
 * @cfg: the transport; not looked at, never NULL
 *
 * Returns: the target, or NULL, mostly with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or as for urma_import_jfr()
 * Threads: any.
 * Contract: URMA.
 */
urma_target_jetty_t *urma_import_jfr_ex(urma_context_t *ctx, urma_rjfr_t *rjfr,
					urma_token_t *token_value, urma_import_jfr_ex_cfg_t *cfg);

/**
 * urma_unimport_jfr - give back an imported receive queue
 *
 * @target_jfr: what urma_import_jfr() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: it is NULL or not imported
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unimport_jfr(urma_target_jetty_t *target_jfr);

/**
 * urma_advise_jfr - say that a send queue will use a target
 *
 * Makes no difference.
 *
 * @jfs: a send queue
 * @tjfr: what urma_import_jfr() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or one of both is not RM
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_advise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr);

/**
 * urma_advise_jfr_async - the same, later
 *
 * Makes no difference; the function is never called.
 *
 * @jfs: a send queue
 * @tjfr: what urma_import_jfr() returned
 * @cb_fun: a function
 * @cb_arg: its argument
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfs, tjfr or cb_fun is NULL, or a queue is not RM
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_advise_jfr_async(urma_jfs_t *jfs, urma_target_jetty_t *tjfr,
				    urma_advise_async_cb_func cb_fun, void *cb_arg);

/**
 * urma_unadvise_jfr - say that a send queue will no longer use a target
 *
 * @jfs: a send queue
 * @tjfr: what urma_import_jfr() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or one of both is not RM
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unadvise_jfr(urma_jfs_t *jfs, urma_target_jetty_t *tjfr);

#ifdef __cplusplus
}
#endif

#endif
