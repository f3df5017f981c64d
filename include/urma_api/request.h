/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: posting requests and receives. */
#ifndef URMA_API_REQUEST_H
#define URMA_API_REQUEST_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_post_jfs_wr - post requests to a send queue
 *
 * @jfs: a send queue
 * @wr: a chain of requests; neither it nor its lists are looked at after the call
 * @bad_wr: filled with the first request that was refused; those before it are posted
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jfs is no live queue, or a request is malformed
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_post_jfs_wr(urma_jfs_t *jfs, urma_jfs_wr_t *wr, urma_jfs_wr_t **bad_wr);

/**
 * urma_post_jetty_send_wr - post requests to a jetty
 *
 * @jetty: a jetty
 * @wr: as for urma_post_jfs_wr()
 * @bad_wr: as for urma_post_jfs_wr()
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_post_jfs_wr(), or an RC jetty is not bound
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_post_jetty_send_wr(urma_jetty_t *jetty, urma_jfs_wr_t *wr,
				      urma_jfs_wr_t **bad_wr);

/**
 * urma_post_jfr_wr - post receives to a receive queue
 *
 * @jfr: a receive queue
 * @wr: a chain of receives; not looked at after the call. The memory they name must stay until
 *      they complete
 * @bad_wr: filled with the first receive that was refused; those before it are posted
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, jfr is no live queue, or a receive has too many pieces
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_post_jfr_wr(urma_jfr_t *jfr, urma_jfr_wr_t *wr, urma_jfr_wr_t **bad_wr);

/**
 * urma_post_jetty_recv_wr - post receives to the receive queue of a jetty
 *
 * @jetty: a jetty
 * @wr: as for urma_post_jfr_wr()
 * @bad_wr: as for urma_post_jfr_wr()
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: as for urma_post_jfr_wr()
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_post_jetty_recv_wr(urma_jetty_t *jetty, urma_jfr_wr_t *wr,
				      urma_jfr_wr_t **bad_wr);

/**
 * urma_write - post a write
 *
 * @jfs: a send queue
 * @target_jfr: the owner of the memory
 * @dst_tseg: the imported segment
 * @src_tseg: the local segment; may be NULL when the data goes inline
 * @dst: address in the owner's process
 * @src: local address
 * @len: bytes
 * @flag: flags of the request
 * @user_ctx: returned in the completion record
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or as for urma_post_jfs_wr()
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_write(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
			 urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg, uint64_t dst,
			 uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * urma_read - post a read
 *
 * @jfs: a send queue
 * @target_jfr: the owner of the memory
 * @dst_tseg: the local segment
 * @src_tseg: the imported segment
 * @dst: local address
 * @src: address in the owner's process
 * @len: bytes
 * @flag: flags of the request
 * @user_ctx: returned in the completion record
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or as for urma_post_jfs_wr()
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_read(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
			urma_target_seg_t *dst_tseg, urma_target_seg_t *src_tseg, uint64_t dst,
			uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * urma_send - post a message
 *
 * @jfs: a send queue
 * @target_jfr: who is to receive it
 * @src_tseg: the local segment; may be NULL when the data goes inline
 * @src: local address
 * @len: bytes
 * @flag: flags of the request
 * @user_ctx: returned in the completion record
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or as for urma_post_jfs_wr()
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_send(urma_jfs_t *jfs, urma_target_jetty_t *target_jfr,
			urma_target_seg_t *src_tseg, uint64_t src, uint32_t len,
			urma_jfs_wr_flag_t flag, uint64_t user_ctx);

/**
 * urma_recv - post a receive
 *
 * @jfr: a receive queue
 * @recv_tseg: the local segment
 * @buf: local address
 * @len: bytes
 * @user_ctx: returned in the completion record
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: jfr or recv_tseg is NULL, or as for urma_post_jfr_wr()
 *   URMA_FAIL: buf is 0
 *   URMA_ENOMEM: the queue is full
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_recv(urma_jfr_t *jfr, urma_target_seg_t *recv_tseg, uint64_t buf, uint32_t len,
			uint64_t user_ctx);

#ifdef __cplusplus
}
#endif

#endif
