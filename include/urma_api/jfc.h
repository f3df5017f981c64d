/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: completion queues (JFC) and their events. */
#ifndef URMA_API_JFC_H
#define URMA_API_JFC_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_jfce - make an event channel
 *
 * @ctx: a context of this process
 *
 * Returns: the channel, or NULL with errno set.
 * Errors:
 *   EINVAL: ctx is NULL or no live context
 *   EIO: the system refuses memory or descriptors
 * Threads: any.
 * Contract: URMA.
 */
urma_jfce_t *urma_create_jfce(urma_context_t *ctx);

/**
 * urma_delete_jfce - delete an event channel
 *
 * Whoever waits in urma_wait_jfc() comes back with -1 first.
 *
 * @jfce: an event channel
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfce is NULL or no live channel
 *   URMA_FAIL: a completion queue uses it
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfce(urma_jfce_t *jfce);

/**
 * urma_create_jfc - make a completion queue
 *
 * Memory is taken as completions come, not for the whole depth.
 *
 * @ctx: a context of this process
 * @jfc_cfg: how; copied
 *
 * Returns: the queue, or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, the depth is 0 or above max_jfc_depth, or jfce is of another
 *   context
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_jfc_t *urma_create_jfc(urma_context_t *ctx, urma_jfc_cfg_t *jfc_cfg);

/**
 * urma_modify_jfc - change a completion queue
 *
 * What can be set is stored and makes no difference: completions are reported at once.
 *
 * @jfc: a completion queue
 * @attr: what to change; its mask says which
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or the mask has neither JFC_MODERATE_COUNT nor
 *   JFC_MODERATE_PERIOD
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_modify_jfc(urma_jfc_t *jfc, urma_jfc_attr_t *attr);

/**
 * urma_delete_jfc - delete a completion queue
 *
 * Waits until every event of it that was delivered has been acknowledged, unless it was made
 * with the flag non_blocking. Completions that were not polled are lost.
 *
 * @jfc: a completion queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfc is NULL or no live queue, or a send queue, receive queue or jetty uses it
 *   URMA_EAGAIN: it was made with non_blocking, and events wait for their acknowledgement
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfc(urma_jfc_t *jfc);

/**
 * urma_delete_jfc_batch - delete completion queues
 *
 * @jfc_arr: the queues, all of one device
 * @jfc_num: how many
 * @bad_jfc: filled with the first that was not deleted (the first of all when nothing was), NULL on
 *      success
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jfc_num is not positive, or an entry is no live queue or
 *   of another device; nothing was deleted then
 *   others: as urma_delete_jfc(); earlier entries are deleted
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfc_batch(urma_jfc_t **jfc_arr, int jfc_num, urma_jfc_t **bad_jfc);

/**
 * urma_alloc_jfc - make a completion queue in two steps
 *
 * It can be used after urma_active_jfc(); until then options can be set.
 *
 * @urma_ctx: a context of this process
 * @cfg: how; copied
 * @jfc: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_create_jfc()
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_alloc_jfc(urma_context_t *urma_ctx, urma_jfc_cfg_t *cfg, urma_jfc_t **jfc);

/**
 * urma_set_jfc_opt - set an option of a completion queue
 *
 * @jfc: a completion queue
 * @opt: which option
 * @buf: its value
 * @len: size of the value, which must be exact, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, the queue is active, the option is unknown, has another
 *   size or exists in hardware only, or the value is out of range
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_set_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_active_jfc - make a completion queue usable
 *
 * @jfc: a completion queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfc is NULL, no live queue, or active
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_active_jfc(urma_jfc_t *jfc);

/**
 * urma_get_jfc_opt - the value of an option of a completion queue
 *
 * @jfc: a completion queue
 * @opt: which option
 * @buf: for its value
 * @len: size of the value, which must be exact, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or the option is unknown, has another size or exists in
 *   hardware only
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_jfc_opt(urma_jfc_t *jfc, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_deactive_jfc - make a completion queue unusable again
 *
 * @jfc: a completion queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfc is NULL, no live queue, not active, or in use
 *   URMA_EAGAIN: as for urma_delete_jfc()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_deactive_jfc(urma_jfc_t *jfc);

/**
 * urma_free_jfc - free a completion queue that is not active
 *
 * @jfc: a completion queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfc is NULL, no live queue, or active
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_free_jfc(urma_jfc_t *jfc);

/**
 * urma_poll_jfc - take completion records
 *
 * Never blocks. Also works for the queues behind it.
 *
 * @jfc: a completion queue
 * @cr_cnt: at most so many
 * @cr: filled
 *
 * Returns: how many were filled, or -1.
 * Errors:
 *   -1: jfc or cr is NULL, cr_cnt is negative, or jfc is no live queue
 * Threads: any.
 * Contract: URMA.
 */
int urma_poll_jfc(urma_jfc_t *jfc, int cr_cnt, urma_cr_t *cr);

/**
 * urma_rearm_jfc - have the next completion make an event
 *
 * One event for one call. When completions wait already, the event comes at once.
 *
 * @jfc: a completion queue
 * @solicited_only: only a completion that a sender marked, or one with an error, makes an event
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfc is NULL, no live queue, or has no event channel
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_rearm_jfc(urma_jfc_t *jfc, bool solicited_only);

/**
 * urma_wait_jfc - wait for completion queues with events
 *
 * @jfce: an event channel
 * @jfc_cnt: at most so many
 * @time_out: milliseconds; 0: does not wait; negative: no limit
 * @jfc: filled with the queues; each is no longer armed
 *
 * Returns: how many were filled, 0 when the time ran out, or -1.
 * Errors:
 *   -1: jfce or jfc is NULL, jfc_cnt is 0, jfce is no live channel or is deleted meanwhile
 * Threads: any.
 * Contract: URMA.
 */
int urma_wait_jfc(urma_jfce_t *jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t **jfc);

/**
 * urma_ack_jfc - acknowledge events
 *
 * @jfc: queues from urma_wait_jfc()
 * @nevents: how many events of each
 * @jfc_cnt: number of entries
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_ack_jfc(urma_jfc_t **jfc, uint32_t *nevents, uint32_t jfc_cnt);

#ifdef __cplusplus
}
#endif

#endif
