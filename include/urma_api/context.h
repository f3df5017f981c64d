/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: contexts and their asynchronous events. */
#ifndef URMA_API_CONTEXT_H
#define URMA_API_CONTEXT_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_context - make a context on a device
 *
 * Several contexts per device and process are usual. A context does not outlive a fork: the
 * child makes its own.
 *
 * @dev: a device of the library
 * @eid_index: which address of the device, as in urma_get_eid_list()
 *
 * Returns: the context, or NULL with errno set.
 * Errors:
 *   EINVAL: dev is NULL or no device
 *   EIO: there is no such address, or the system refuses memory, descriptors or threads
 * Threads: any.
 * Contract: URMA.
 */
urma_context_t *urma_create_context(urma_device_t *dev, uint32_t eid_index);

/**
 * urma_delete_context - delete a context
 *
 * Whoever waits in urma_get_async_event() comes back with URMA_FAIL first.
 *
 * @ctx: a context of this process
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: ctx is NULL or no live context
 *   URMA_EAGAIN: something made in it exists; nothing was changed
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_context(urma_context_t *ctx);

/**
 * urma_set_context_opt - set an option of a context
 *
 * Options exist for bonded devices only, and there are none here.
 *
 * @ctx: a context of this process
 * @opt_name: which option
 * @opt_value: its value
 * @opt_len: size of the value, bytes
 *
 * Returns: URMA_EINVAL.
 * Errors:
 *   URMA_EINVAL: always
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_set_context_opt(urma_context_t *ctx, urma_opt_name_t opt_name,
				   const void *opt_value, size_t opt_len);

/**
 * urma_get_uasid - a number for the process
 *
 * Obsolete: every context has a number of its own, urma_context_t.uasid.
 *
 * @uasid: filled with that of the oldest context
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: uasid is NULL
 *   URMA_FAIL: there is no context
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_uasid(uint32_t *uasid);

/**
 * urma_user_ctl - extensions of a device
 *
 * There are none.
 *
 * @ctx: a context of this process
 * @in: number and input of the extension
 * @out: for its output
 *
 * Returns: URMA_EINVAL or URMA_FAIL.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 *   URMA_FAIL: there is no such extension
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_user_ctl(urma_context_t *ctx, urma_user_ctl_in_t *in, urma_user_ctl_out_t *out);

/**
 * urma_get_async_event - take an asynchronous event
 *
 * Sleeps until there is one; when the program has made async_fd non-blocking, it returns at
 * once. Each event must be acknowledged.
 *
 * @ctx: a context of this process
 * @event: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or ctx is no live context
 *   URMA_FAIL: there is none, and async_fd is non-blocking; or the context is deleted meanwhile
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_async_event(urma_context_t *ctx, urma_async_event_t *event);

/**
 * urma_ack_async_event - acknowledge an asynchronous event
 *
 * Deleting the object that the event is about waits for it.
 *
 * @event: what urma_get_async_event() filled
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_ack_async_event(urma_async_event_t *event);

#ifdef __cplusplus
}
#endif

#endif
