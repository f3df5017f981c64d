/* SPDX-License-Identifier: MIT */
/* XTAL_CHECK=1: what programs do wrong with CDMA, told in sentences; and what XTAL_STRICT=1 looks at
 * in an operation. Only queues with the magic number CDMA_QUEUE_CHECKED come here,
 * and what is made. */
#ifndef XTAL_CDMA_CHECK_H
#define XTAL_CDMA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "cdma.h"
#include "core/check.h"

struct xtal_op;
struct xtal_ready;

/* The queue is checked, and the arguments are good otherwise. */
bool cdma_check_takes(const struct cdma_queue *q, const struct dma_seg *rmt,
		      const struct dma_seg *local);
/* Looks at the operation, posts it. 0 or -errno. */
int cdma_check_post(const char *function, struct cdma_queue *q, const struct xtal_op *op,
		    uint32_t local_tid);
/* As xtal_queue_wait(). */
int cdma_check_wait(struct cdma_queue *q, uint32_t count, int timeout_ms, struct xtal_ready *out);
/* The program has these completions. */
void cdma_check_taken(const char *function, struct cdma_queue *q, const struct dma_cr *cr,
		      uint32_t count);

/* Reserved fields of a struct are set: it was not cleared, or is of another version. rsvd: four. */
void cdma_check_reserved(const char *function, const char *type, uint32_t bitmap,
			 const uint32_t *rsvd);

void cdma_check_opened(struct cdma_queue *q);
void cdma_check_closes(struct cdma_queue *q);
void cdma_check_unregister(const struct cdma_segment *s);

#endif
