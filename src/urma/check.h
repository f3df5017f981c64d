/* SPDX-License-Identifier: MIT */
/* XTAL_CHECK=1: what programs do wrong with URMA, told in sentences. Nothing here is called without
 * it, but for the looks when objects are made. */
#ifndef XTAL_URMA_CHECK_H
#define XTAL_URMA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/check.h"
#include "queue.h"

/* Reserved bits of a struct are set: the program was compiled for another version. */
void ub_check_bits(const char *function, const char *type, const char *field, uint32_t reserved);

/* Looks at each request, posts it. */
urma_status_t ub_check_post(const char *function, struct ub_sender *s, urma_jfs_wr_t *wr,
			    urma_jfs_wr_t **bad_wr);
/* Posts one request (post.c). */
urma_status_t ub_post_any(struct ub_sender *s, const urma_jfs_wr_t *wr);
/* What a poll has found. */
void ub_check_polled(struct ub_jfc *j, const urma_cr_t *cr, int count);
/* A poll has found nothing. */
void ub_check_nothing(struct ub_jfc *j);
/* Waits for events like xtal_channel_wait(); when none comes for long, looks why. */
int ub_check_wait(struct ub_jfce *j, uint32_t count, int timeout_ms, void **owners);
/* A request came back by a flush. */
void ub_check_flushed(struct ub_sender *s, uint64_t user);
/* True, and noted: the receive queue is checked. */
bool ub_check_receives(const struct ub_jfr *j);

void ub_check_sender_opened(struct ub_sender *s);
void ub_check_sender_closes(struct ub_sender *s);
/* The queue is out of the register: nobody looks at it any more after the call. */
void ub_check_gone(void);
/* Keeps queues from going; before the register's lock. For forks, which shall not find it held. */
void ub_check_lock(void);
void ub_check_unlock(void);
void ub_check_unregister(const struct ub_segment *s);

#endif
