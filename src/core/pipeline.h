/* SPDX-License-Identifier: MIT */
/*
 * Pipelines: the engines of a device. Each has a worker that starts when first needed, runs
 * queues that were kicked and fragments of long copies, and sleeps when idle.
 */
#ifndef XTAL_CORE_PIPELINE_H
#define XTAL_CORE_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

struct xtal_queue;

/* The queue has something to do; its pipeline's worker will call xtal_queue_progress(). May
 * be called under the queue's or a link's lock. */
void xtal_pipeline_kick(struct xtal_queue *q);
/* Waits until no worker has or will have the queue. Not under its lock. */
void xtal_pipeline_forget(struct xtal_queue *q);

/* There are fragments to move: wakes the worker of this pipeline. */
void xtal_pipeline_wake(uint32_t pipeline);

/* Ends all workers and waits for them. */
void xtal_pipelines_stop(void);
void xtal_pipelines_fork_child(void);

#endif
