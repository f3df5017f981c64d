/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: asynchronous import and bind. */
#ifndef URMA_API_NOTIFIER_H
#define URMA_API_NOTIFIER_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_create_notifier - make a notifier
 *
 * @ctx: a context of this process
 *
 * Returns: the notifier, or NULL with errno set.
 * Errors:
 *   EINVAL: ctx is NULL or no live context
 *   EIO: the system refuses memory or descriptors
 * Threads: any.
 * Contract: URMA.
 */
urma_notifier_t *urma_create_notifier(urma_context_t *ctx);

/**
 * urma_delete_notifier - delete a notifier
 *
 * Notices that were not taken are dropped. Whoever waits for one comes back with -1 first.
 *
 * @notifier: a notifier
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: notifier is NULL or none
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_delete_notifier(urma_notifier_t *notifier);

/**
 * urma_wait_notify - wait for notices
 *
 * @notifier: a notifier
 * @cnt: at most so many
 * @notify: filled
 * @timeout: milliseconds; 0: does not wait; negative: no limit
 *
 * Returns: how many were filled, 0 when the time ran out or cnt is 0, or -1.
 * Errors:
 *   -1: notifier or notify is NULL, notifier is none, or is deleted meanwhile
 * Threads: any.
 * Contract: URMA.
 */
int urma_wait_notify(urma_notifier_t *notifier, uint32_t cnt, urma_notify_t *notify, int timeout);

/**
 * urma_ack_notify - acknowledge notices
 *
 * Makes no difference.
 *
 * @ctx: a context of this process
 * @cnt: how many
 * @notify: the notices
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: ctx or notify is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_ack_notify(urma_context_t *ctx, uint32_t cnt, urma_notify_t *notify);

/**
 * urma_import_jetty_async - import a jetty, and be told
 *
 * @notifier: a notifier
 * @rjetty: as for urma_import_jetty(); not changed
 * @token_value: as for urma_import_jetty()
 * @user_ctx: returned in the notice
 * @timeout: not looked at
 *
 * Returns: the target, usable at once, or NULL with errno set.
 * Errors:
 *   EINVAL: as for urma_import_jetty()
 * Threads: any.
 * Contract: URMA.
 */
urma_target_jetty_t *urma_import_jetty_async(urma_notifier_t *notifier, const urma_rjetty_t *rjetty,
					     const urma_token_t *token_value, uint64_t user_ctx,
					     int timeout);

/**
 * urma_unimport_jetty_async - give back a jetty that was imported asynchronously
 *
 * @tjetty: what urma_import_jetty_async() returned
 *
 * Returns: as urma_unimport_jetty().
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unimport_jetty_async(urma_target_jetty_t *tjetty);

/**
 * urma_bind_jetty_async - bind a jetty, and be told
 *
 * @notifier: a notifier
 * @jetty: a jetty
 * @tjetty: an imported jetty or receive queue
 * @user_ctx: returned in the notice
 * @timeout: not looked at
 *
 * Returns: URMA_SUCCESS when a notice will come, or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL or no live object; otherwise the notice has the status of
 *   urma_bind_jetty()
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_bind_jetty_async(urma_notifier_t *notifier, urma_jetty_t *jetty,
				    urma_target_jetty_t *tjetty, uint64_t user_ctx, int timeout);

/**
 * urma_unbind_jetty_async - let a jetty go that was bound asynchronously
 *
 * @jetty: a jetty
 *
 * Returns: as urma_unbind_jetty().
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unbind_jetty_async(urma_jetty_t *jetty);

#ifdef __cplusplus
}
#endif

#endif
