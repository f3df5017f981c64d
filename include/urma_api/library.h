/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: starting and ending the use of the library; its log. */
#ifndef URMA_API_LIBRARY_H
#define URMA_API_LIBRARY_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
