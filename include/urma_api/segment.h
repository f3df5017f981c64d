/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: token ids and segments. */
#ifndef URMA_API_SEGMENT_H
#define URMA_API_SEGMENT_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_alloc_token_id - a number for a segment
 *
 * @ctx: a context of this process
 *
 * Returns: the token id, or NULL with errno set.
 * Errors:
 *   EINVAL: ctx is NULL or no live context
 *   ENOMEM: no memory, or no number is left
 * Threads: any.
 * Contract: URMA.
 */
urma_token_id_t *urma_alloc_token_id(urma_context_t *ctx);

/**
 * urma_alloc_token_id_ex - a number for segments
 *
 * @ctx: a context of this process
 * @flag: multi_seg must be 0: each segment has an id of its own
 *
 * Returns: the token id, or NULL with errno set.
 * Errors:
 *   EINVAL: ctx is NULL or no live context, or multi_seg is set
 *   ENOMEM: no memory, or no number is left
 * Threads: any.
 * Contract: URMA.
 */
urma_token_id_t *urma_alloc_token_id_ex(urma_context_t *ctx, urma_token_id_flag_t flag);

/**
 * urma_free_token_id - give back a token id
 *
 * @token_id: what urma_alloc_token_id() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: token_id is NULL or none, or a segment uses it
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_free_token_id(urma_token_id_t *token_id);

/**
 * urma_register_seg - let peers reach a range of memory
 *
 * Any memory of the process will do; it is neither copied nor touched. What is in seg of the
 * result is what peers need to be told, beside the token.
 *
 * @ctx: a context of this process
 * @seg_cfg: the range and the rights to it; copied
 *
 * Returns: the segment, or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, va or len is 0 or wraps, token_id and its flag disagree, the
 *   token id is in use or of another context, the token policy is neither URMA_TOKEN_NONE nor
 *   URMA_TOKEN_PLAIN_TEXT, or the rights do not go together
 *   ENOMEM: no memory, or too many segments exist
 * Threads: any.
 * Contract: URMA.
 */
urma_target_seg_t *urma_register_seg(urma_context_t *ctx, urma_seg_cfg_t *seg_cfg);

/**
 * urma_unregister_seg - no longer let peers reach a range of memory
 *
 * When it returns, nobody touches the memory any more.
 *
 * @target_seg: what urma_register_seg() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: target_seg is NULL or not registered
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unregister_seg(urma_target_seg_t *target_seg);

/**
 * urma_import_seg - make a peer's segment usable as a target
 *
 * Contacts nobody: whether the peer exists and the token is right shows when the segment is
 * used.
 *
 * @ctx: a context of this process
 * @seg: what the peer has told
 * @token_value: what the peer wants to see; NULL when its token policy is URMA_TOKEN_NONE
 * @addr: not looked at
 * @flag: not looked at
 *
 * Returns: the segment, or NULL with errno set.
 * Errors:
 *   EINVAL: ctx or seg is NULL, ctx is no live context, or a token is needed and NULL
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_target_seg_t *urma_import_seg(urma_context_t *ctx, urma_seg_t *seg, urma_token_t *token_value,
				   uint64_t addr, urma_import_seg_flag_t flag);

/**
 * urma_unimport_seg - give back an imported segment
 *
 * @tseg: what urma_import_seg() returned
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: tseg is NULL or not imported
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unimport_seg(urma_target_seg_t *tseg);

/**
 * urma_get_seg_ctx - what to tell peers about a segment
 *
 * @tseg: what urma_register_seg() returned
 * @seg: filled with a descriptor, to be freed with urma_put_seg_ctx()
 * @seg_len: filled with its size, bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or tseg is no segment
 *   URMA_ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_seg_ctx(urma_target_seg_t *tseg, urma_seg_t **seg, uint32_t *seg_len);

/**
 * urma_put_seg_ctx - free what urma_get_seg_ctx() made
 *
 * @seg: the descriptor, or NULL; free() would do
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_put_seg_ctx(urma_seg_t *seg);

#ifdef __cplusplus
}
#endif

#endif
