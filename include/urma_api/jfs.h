/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: send queues (JFS). */
#ifndef URMA_API_JFS_H
#define URMA_API_JFS_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_jfs - make a send queue
 *
 * It is in state URMA_JETTY_STATE_READY. RC needs a jetty.
 *
 * @ctx: a context of this process
 * @jfs_cfg: how; copied, after the default order in it was replaced by that of its mode
 *
 * Returns: the queue, or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, there is no jfc or it is of another context, the mode is
 *   neither RM nor UM, the order does not fit it, the depth is 0, or a limit of the device is
 *   exceeded
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_jfs_t *urma_create_jfs(urma_context_t *ctx, urma_jfs_cfg_t *jfs_cfg);

/**
 * urma_modify_jfs - change the state of a send queue
 *
 * @jfs: a send queue
 * @attr: mask JFS_STATE, and the state
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jfs is no live queue, or the mask is not JFS_STATE
 *   URMA_FAIL: that state cannot follow the present one
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_modify_jfs(urma_jfs_t *jfs, urma_jfs_attr_t *attr);

/**
 * urma_query_jfs - settings and state of a send queue
 *
 * @jfs: a send queue
 * @cfg: filled
 * @attr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or jfs is no live queue
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_query_jfs(urma_jfs_t *jfs, urma_jfs_cfg_t *cfg, urma_jfs_attr_t *attr);

/**
 * urma_flush_jfs - take back what a broken send queue did not do
 *
 * Gives nothing before URMA_CR_WR_FLUSH_ERR_DONE was polled.
 *
 * @jfs: a send queue
 * @cr_cnt: at most so many
 * @cr: filled, with status URMA_CR_WR_UNHANDLED
 *
 * Returns: how many were filled, or a negative error.
 * Errors:
 *   -EINVAL: jfs or cr is NULL, cr_cnt is not positive or above the depth, or jfs is no live
 *   queue
 * Threads: any.
 * Contract: URMA.
 */
int urma_flush_jfs(urma_jfs_t *jfs, int cr_cnt, urma_cr_t *cr);

/**
 * urma_delete_jfs - delete a send queue
 *
 * In any state. Its completions that were not polled are lost.
 *
 * @jfs: a send queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfs is NULL or no live queue
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfs(urma_jfs_t *jfs);

/**
 * urma_delete_jfs_batch - delete send queues
 *
 * @jfs_arr: the queues, all of one device
 * @jfs_num: how many
 * @bad_jfs: filled with the first that was not deleted (the first of all when nothing was), NULL on
 *      success
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_delete_jfc_batch()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_jfs_batch(urma_jfs_t **jfs_arr, int jfs_num, urma_jfs_t **bad_jfs);

/**
 * urma_alloc_jfs - make a send queue in two steps
 *
 * It can be used after urma_active_jfs(); until then options can be set.
 *
 * @urma_ctx: a context of this process
 * @cfg: how; copied
 * @jfs: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_create_jfs()
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_alloc_jfs(urma_context_t *urma_ctx, urma_jfs_cfg_t *cfg, urma_jfs_t **jfs);

/**
 * urma_set_jfs_opt - set an option of a send queue
 *
 * @jfs: a send queue
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
urma_status_t urma_set_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_active_jfs - make a send queue usable
 *
 * @jfs: a send queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfs is NULL, no live queue, active, or its jfc is not active
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_active_jfs(urma_jfs_t *jfs);

/**
 * urma_get_jfs_opt - the value of an option of a send queue
 *
 * @jfs: a send queue
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
urma_status_t urma_get_jfs_opt(urma_jfs_t *jfs, uint64_t opt, void *buf, uint32_t len);

/**
 * urma_deactive_jfs - make a send queue unusable again
 *
 * @jfs: a send queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfs is NULL, no live queue, or not active
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_deactive_jfs(urma_jfs_t *jfs);

/**
 * urma_free_jfs - free a send queue that is not active
 *
 * @jfs: a send queue
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfs is NULL, no live queue, or active
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_free_jfs(urma_jfs_t *jfs);

#ifdef __cplusplus
}
#endif

#endif
