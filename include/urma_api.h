/* SPDX-License-Identifier: MIT */
/*
 * urma_api.h - remote memory access for programs: one-sided reads, writes and atomics on the memory
 * of other processes and hosts, and messages between them.
 *
 * A program takes a device, makes a context on it, in the context completion queues (JFC), send
 * queues (JFS), receive queues (JFR) or jetties (both in one), registers memory as segments, tells
 * its peers the ids of queues and segments by any means of its own, imports theirs, posts requests
 * and polls the completion queues. urma(7) explains addresses, states, order and statuses.
 *
 * Whenever a call refuses its work, xtal_last_error() of xtal.h says why in a sentence.
 */
#ifndef URMA_API_H
#define URMA_API_H

#ifdef __cplusplus
extern "C++" { /* for programs that wrap this header in extern "C" themselves */
#endif
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
}
#endif

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Library ---- */

/**
 * urma_init - start using the library
 *
 * @conf: NULL, or advice that is not looked at
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EEXIST: it was called before, and urma_uninit() was not
 *   URMA_FAIL: there is no device
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_init(urma_init_attr_t *conf);

/**
 * urma_uninit - stop using the library
 *
 * Contexts that still exist stay as they are; devices stay valid for them. urma_init() may
 * follow.
 *
 * Returns: URMA_SUCCESS, also when urma_init() was not called.
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_uninit(void);

/**
 * urma_log_get_level - up to which level lines are logged
 *
 * Returns: the level; URMA_VLOG_LEVEL_INFO at first, or what the environment variable
 * URMA_LOG_LEVEL says.
 * Threads: any.
 * Contract: URMA.
 */
urma_vlog_level_t urma_log_get_level(void);

/**
 * urma_log_set_level - set up to which level lines are logged
 *
 * @level: the level; numbers of URMA_VLOG_LEVEL_MAX and above are ignored
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_log_set_level(urma_vlog_level_t level);

/**
 * urma_log_get_thread_tag - the word that the calling thread's lines begin with
 *
 * Returns: the word, "" when there is none; the calling thread's, until it sets another.
 * Threads: each thread has its own.
 * Contract: URMA.
 */
const char *urma_log_get_thread_tag(void);

/**
 * urma_log_set_thread_tag - set the word that the calling thread's lines begin with
 *
 * @tag: the word, copied; NULL and words of 64 and more characters are ignored
 *
 * Returns: nothing.
 * Threads: each thread has its own.
 * Contract: URMA.
 */
void urma_log_set_thread_tag(const char *tag);

/**
 * urma_register_log_func - have the log's lines delivered to a function
 *
 * Takes the place of what was registered before. Without a function the lines go where XTAL_LOG
 * says.
 *
 * @func: called with each finished line on the thread that logs it; must not call this library
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: func is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_register_log_func(urma_log_cb_t func);

/**
 * urma_register_loc_log_func - have the log's lines delivered with their place
 *
 * @func: as for urma_register_log_func(), with file, function and line of the code that logs
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: func is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_register_loc_log_func(urma_loc_log_cb func);

/**
 * urma_unregister_log_func - no longer deliver the log's lines to a function
 *
 * Returns: URMA_SUCCESS.
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_unregister_log_func(void);

/* ---- Devices ---- */

/**
 * urma_get_device_list - list the devices
 *
 * The first is the loopback device; XTAL_DEVICES adds others.
 *
 * @num_devices: number of entries, filled; 0 on failure
 *
 * Returns: an array of pointers that ends with NULL, to be freed with urma_free_device_list();
 * the devices themselves stay valid. NULL, with errno set, on failure.
 * Errors:
 *   EINVAL: num_devices is NULL
 *   ENODEV: urma_init() was not called
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_device_t **urma_get_device_list(int *num_devices);

/**
 * urma_free_device_list - free a list of devices
 *
 * @device_list: what urma_get_device_list() returned, or NULL
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_free_device_list(urma_device_t **device_list);

/**
 * urma_get_device_by_name - find a device by its name
 *
 * @dev_name: such as "xtal0"
 *
 * Returns: the device, or NULL with errno set.
 * Errors:
 *   EINVAL: dev_name is NULL, empty, or has 64 or more characters
 *   ENODEV: there is none of that name, or urma_init() was not called
 * Threads: any.
 * Contract: URMA.
 */
urma_device_t *urma_get_device_by_name(char *dev_name);

/**
 * urma_get_device_by_eid - find a device by its address
 *
 * @eid: the address; all 16 bytes are compared
 * @type: URMA_TRANSPORT_UB
 *
 * Returns: the device, or NULL with errno set.
 * Errors:
 *   ENODEV: there is none with that address and type, or urma_init() was not called
 * Threads: any.
 * Contract: URMA.
 */
urma_device_t *urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type);

/**
 * urma_get_eid_list - list the addresses of a device
 *
 * @dev: a device of the library
 * @cnt: number of entries, filled
 *
 * Returns: an array to be freed with urma_free_eid_list(), or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or dev is no device
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt);

/**
 * urma_free_eid_list - free a list of addresses
 *
 * @eid_list: what urma_get_eid_list() returned, or NULL
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_free_eid_list(urma_eid_info_t *eid_list);

/**
 * urma_query_device - what a device can do
 *
 * @dev: a device of the library
 * @dev_attr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or dev is no device
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *dev_attr);

/* ---- Contexts ---- */

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
 *   URMA_FAIL: there is none, and async_fd is non-blocking
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

/* ---- Completion queues ---- */

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
 *   -1: jfce or jfc is NULL, jfc_cnt is 0, jfce is no live channel, or (with errno EINTR) a
 *   signal came
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

/* ---- Send queues ---- */

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

/* ---- Receive queues ---- */

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
 *   EINVAL: an argument is NULL, there is no jfc or it is of another context, mode, order or
 *   token policy is not supported, the depth or max_sge is 0, a limit of the device is exceeded,
 *   or the id cannot be had
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

/* ---- Jetties ---- */

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
 *   URMA_EINVAL: an argument is NULL, or another jetty is bound to tjetty
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

/* ---- Groups of jetties ---- */

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

/* ---- Asynchronous import and bind ---- */

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
 * Notices that were not taken are dropped.
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
 *   -1: notifier or notify is NULL, notifier is none, or (with errno EINTR) a signal came
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

/* ---- Segments ---- */

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
 * @flag: multi_seg is not supported
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
 *   token id is in use or of another context, the token policy is not supported, or the rights
 *   do not go together
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

/* ---- Requests ---- */

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

/* ---- Transports ---- */

/**
 * urma_get_tpn - number of the transport of a jetty
 *
 * @jetty: a jetty
 *
 * Returns: 1 for a bound RC jetty, 0 for others, or a negative error.
 * Errors:
 *   -EINVAL: jetty is NULL or none
 * Threads: any.
 * Contract: URMA.
 */
int urma_get_tpn(urma_jetty_t *jetty);

/**
 * urma_modify_tp - change a transport
 *
 * Makes no difference.
 *
 * @ctx: a context of this process
 * @tpn: its number
 * @cfg: its settings
 * @attr: its attributes
 * @mask: which of them count
 *
 * Returns: 0 or one of the errors.
 * Errors:
 *   URMA_EINVAL: ctx, cfg or attr is NULL
 * Threads: any.
 * Contract: URMA.
 */
int urma_modify_tp(urma_context_t *ctx, uint32_t tpn, urma_tp_cfg_t *cfg, urma_tp_attr_t *attr,
		   urma_tp_attr_mask_t mask);

/**
 * urma_get_tp_list - list the transports to a peer
 *
 * There is one, with the handle 1.
 *
 * @ctx: a context of this process
 * @cfg: which peer and kind
 * @tp_cnt: entries of tp_list; filled with those used
 * @tp_list: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, *tp_cnt is 0, or the mode is unknown
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_tp_list(urma_context_t *ctx, urma_get_tp_cfg_t *cfg, uint32_t *tp_cnt,
			       urma_tp_info_t *tp_list);

/**
 * urma_set_tp_attr - set attributes of a transport
 *
 * They are kept with the context for urma_get_tp_attr() and make no difference.
 *
 * @ctx: a context of this process
 * @tp_handle: from urma_get_tp_list()
 * @tp_attr_cnt: how many
 * @tp_attr_bitmap: which
 * @tp_attr: their values
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: ctx or tp_attr is NULL, or ctx is no live context
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_set_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle,
			       const uint8_t tp_attr_cnt, const uint32_t tp_attr_bitmap,
			       const urma_tp_attr_value_t *tp_attr);

/**
 * urma_get_tp_attr - attributes of a transport
 *
 * @ctx: a context of this process
 * @tp_handle: from urma_get_tp_list()
 * @tp_attr_cnt: filled
 * @tp_attr_bitmap: filled
 * @tp_attr: filled with what was set, zeros at first
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: a pointer is NULL, or ctx is no live context
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_tp_attr(const urma_context_t *ctx, const uint64_t tp_handle,
			       uint8_t *tp_attr_cnt, uint32_t *tp_attr_bitmap,
			       urma_tp_attr_value_t *tp_attr);

/**
 * urma_get_net_addr_list - list the network addresses of a context
 *
 * @ctx: a context of this process
 * @cnt: filled with the number of entries
 *
 * Returns: an array to be freed with urma_free_net_addr_list(), or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or ctx is no live context
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_net_addr_info_t *urma_get_net_addr_list(urma_context_t *ctx, uint32_t *cnt);

/**
 * urma_free_net_addr_list - free a list of network addresses
 *
 * @net_addr_list: what urma_get_net_addr_list() returned, or NULL
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_free_net_addr_list(urma_net_addr_info_t *net_addr_list);

/**
 * urma_get_eid_by_ip - an EID from a network address
 *
 * @ctx: a context of this process
 * @net_addr: the address
 * @eid: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 *   URMA_FAIL: it is neither IPv4 nor IPv6
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_eid_by_ip(const urma_context_t *ctx, const urma_net_addr_t *net_addr,
				 urma_eid_t *eid);

/**
 * urma_get_ip_by_eid - a network address from an EID
 *
 * @ctx: a context of this process
 * @eid: the EID
 * @net_addr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 *   URMA_FAIL: it is no network address: all zeros
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_ip_by_eid(const urma_context_t *ctx, const urma_eid_t *eid,
				 urma_net_addr_t *net_addr);

/**
 * urma_get_smac - the hardware address of a context
 *
 * @ctx: a context of this process
 * @mac: filled with zeros, 6 bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_smac(const urma_context_t *ctx, uint8_t *mac);

/**
 * urma_get_dmac - the hardware address of a peer
 *
 * @ctx: a context of this process
 * @net_addr: the peer
 * @mac: filled with zeros, 6 bytes
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_get_dmac(const urma_context_t *ctx, const urma_net_addr_t *net_addr,
			    uint8_t *mac);

/* ---- Measuring ---- */

#ifdef __cplusplus
}
#endif

#endif
