/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: jetties, and importing and binding them. */
#ifndef URMA_API_JETTY_H
#define URMA_API_JETTY_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_jetty - make a jetty
 *
 * It is in state URMA_JETTY_STATE_READY. Its receive queue is always a shared one.
 *
 * @ctx: a context of this process
 * @jetty_cfg: how; copied, after the default order in it was replaced by that of its mode
 *
 * Returns: the jetty, or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL; there is no jfs_cfg.jfc, no share_jfr or no shared.jfr, or they
 *   are of another context; mode or order differ from the jfr's; a limit of the device is
 *   exceeded; the id cannot be had
 *   EPERM: the group is full
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_jetty_t *urma_create_jetty(urma_context_t *ctx, urma_jetty_cfg_t *jetty_cfg);

/**
 * urma_modify_jetty - change the state of a jetty
 *
 * @jetty: a jetty
 * @attr: mask JETTY_STATE, and the state
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jetty is none, or the mask is not JETTY_STATE
 *   URMA_FAIL: that state cannot follow the present one
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_modify_jetty(urma_jetty_t *jetty, urma_jetty_attr_t *attr);

/**
 * urma_query_jetty - settings and state of a jetty
 *
 * @jetty: a jetty
 * @cfg: filled
 * @attr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or jetty is none
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_query_jetty(urma_jetty_t *jetty, urma_jetty_cfg_t *cfg, urma_jetty_attr_t *attr);

/**
 * urma_delete_jetty - delete a jetty
 *
 * In any state. Its completions that were not polled are lost.
 *
 * @jetty: a jetty
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jetty is NULL or none
 *   URMA_ENOPERM: it is bound
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jetty(urma_jetty_t *jetty);

/**
 * urma_delete_jetty_batch - delete jetties
 *
 * @jetty_arr: the jetties, all of one device
 * @jetty_num: how many
 * @bad_jetty: filled with the first that was not deleted (the first of all when nothing was), NULL on
 *      success
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_delete_jfc_batch()
 *   URMA_ENOPERM: one is bound; earlier entries are deleted
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jetty_batch(urma_jetty_t **jetty_arr, int jetty_num,
				      urma_jetty_t **bad_jetty);

/**
 * urma_alloc_jetty - make a jetty in two steps
 *
 * It can be used after urma_active_jetty(); until then options can be set.
 *
 * @urma_ctx: a context of this process
 * @cfg: how; copied
 * @jetty: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_create_jetty()
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_alloc_jetty(urma_context_t *urma_ctx, urma_jetty_cfg_t *cfg,
			       urma_jetty_t **jetty);

/**
 * urma_set_jetty_opt - set an option of a jetty
 *
 * @jetty: a jetty
 * @opt: which option, of jetties or of send queues
 * @buf: its value
 * @len: size of the value, which must be exact, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_set_jfc_opt()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_set_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_active_jetty - make a jetty usable
 *
 * @jetty: a jetty
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jetty is NULL, none, active, or its jfc or jfr is not active
 *   URMA_ENOPERM: the group is full
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_active_jetty(urma_jetty_t *jetty);

/**
 * urma_get_jetty_opt - the value of an option of a jetty
 *
 * @jetty: a jetty
 * @opt: which option, of jetties or of send queues
 * @buf: for its value
 * @len: size of the value, which must be exact, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_get_jfc_opt()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_jetty_opt(urma_jetty_t *jetty, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_deactive_jetty - make a jetty unusable again
 *
 * @jetty: a jetty
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jetty is NULL, none, or not active
 *   URMA_ENOPERM: it is bound
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_deactive_jetty(urma_jetty_t *jetty);

/**
 * urma_free_jetty - free a jetty that is not active
 *
 * @jetty: a jetty
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jetty is NULL, none, or active
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_free_jetty(urma_jetty_t *jetty);

/**
 * urma_import_jetty - make a peer's jetty usable as a target
 *
 * Contacts nobody: the peer need not exist yet.
 *
 * @ctx: a context of this process
 * @rjetty: what the peer has told; its default order is replaced by that of the mode
 * @token_value: what the peer wants to see; NULL when its token policy is URMA_TOKEN_NONE
 *
 * Returns: the target, or NULL, mostly with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, the type is neither jetty nor group, or mode, order or
 *   transport do not fit
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_target_jetty_t *urma_import_jetty(urma_context_t *ctx, urma_rjetty_t *rjetty,
				       urma_token_t *token_value);

/**
 * urma_import_jetty_ex - import a jetty, with a transport
 *
 * @ctx: a context of this process
 * @rjetty: as for urma_import_jetty()
 * @token_value: as for urma_import_jetty(), never NULL
 * @cfg: the transport; not looked at, never NULL
 *
 * Returns: the target, or NULL, mostly with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or as for urma_import_jetty()
 * Threads: any.
 * Contract: URMA.
 */
urma_target_jetty_t *urma_import_jetty_ex(urma_context_t *ctx, urma_rjetty_t *rjetty,
					  urma_token_t *token_value,
					  urma_import_jetty_ex_cfg_t *cfg);

/**
 * urma_unimport_jetty - give back an imported jetty
 *
 * @tjetty: what urma_import_jetty() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: it is NULL or not imported
 *   URMA_FAIL: a jetty is bound to it
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unimport_jetty(urma_target_jetty_t *tjetty);

/**
 * urma_bind_jetty - fix the peer of an RC jetty
 *
 * Local: the peer binds, or not, in its own time.
 *
 * @jetty: a jetty
 * @tjetty: an imported jetty or receive queue
 *
 * Returns: URMA_SUCCESS, also when both are bound already, or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jetty is not active, or another jetty is bound to tjetty
 *   URMA_ENOPERM: one of both is not RC, or their orders differ
 *   URMA_EEXIST: jetty is bound to another one
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_bind_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

/**
 * urma_bind_jetty_ex - bind a jetty, with a transport
 *
 * @jetty: a jetty
 * @tjetty: an imported jetty or receive queue
 * @cfg: the transport; not looked at, never NULL
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: cfg is NULL
 *   others: as for urma_bind_jetty()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_bind_jetty_ex(urma_jetty_t *jetty, urma_target_jetty_t *tjetty,
				 urma_bind_jetty_ex_cfg_t *cfg);

/**
 * urma_unbind_jetty - let an RC jetty go
 *
 * @jetty: a jetty
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jetty is NULL, none, or not bound
 *   URMA_ENOPERM: it is not RC
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unbind_jetty(urma_jetty_t *jetty);

/**
 * urma_advise_jetty - say that a jetty will use a target
 *
 * Makes no difference.
 *
 * @jetty: a jetty
 * @tjetty: an imported jetty or receive queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or one of both is not RM
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_advise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

/**
 * urma_unadvise_jetty - say that a jetty will no longer use a target
 *
 * @jetty: a jetty
 * @tjetty: an imported jetty or receive queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or one of both is not RM
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unadvise_jetty(urma_jetty_t *jetty, urma_target_jetty_t *tjetty);

/**
 * urma_flush_jetty - take back what a broken jetty did not send
 *
 * @jetty: a jetty
 * @cr_cnt: at most so many
 * @cr: filled, with status URMA_CR_WR_UNHANDLED
 *
 * Returns: how many were filled, or a negative error.
 * Errors:
 *   -EINVAL: as for urma_flush_jfs()
 * Threads: any.
 * Contract: URMA.
 */
int urma_flush_jetty(urma_jetty_t *jetty, int cr_cnt, urma_cr_t *cr);

/**
 * urma_get_rjetty - what to tell peers about a jetty
 *
 * @jetty: a jetty
 * @rjetty: filled with a descriptor, to be freed with urma_put_rjetty()
 * @rjetty_len: filled with its size, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jetty is none, or has no shared.jfr
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_rjetty(urma_jetty_t *jetty, urma_rjetty_t **rjetty, uint32_t *rjetty_len);

/**
 * urma_put_rjetty - free what urma_get_rjetty() made
 *
 * @rjetty: the descriptor, or NULL; free() would do
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_put_rjetty(urma_rjetty_t *rjetty);

#ifdef __cplusplus
}
#endif

#endif
