/* SPDX-License-Identifier: MIT */
/*
 * cdma_u_lib.h - Crystal DMA for programs: asynchronous one-sided reads, writes, notifies and
 * atomics on the memory of other processes, hosts and devices.
 *
 * A program takes a device from the list, makes a context on it, makes queues in the context,
 * registers its memory as segments, imports those of others, posts operations to a queue and
 * polls the queue for their completions. cdma(7) explains addresses, tokens, order, statuses
 * and settings.
 *
 * All structs are public and their layout never changes. A struct dma_context or dma_queue is
 * the head of something larger: use them through the pointers that the library returned. A
 * struct dma_seg is a plain value: copy it, change sva and len to address a part of it, drop
 * it right after the call that used it. Fields rsv_bitmap and rsvd are neither read nor
 * written in structs that the program made.
 *
 * Whenever a call refuses its work, xtal_last_error() of xtal.h says why in a sentence.
 */
#ifndef __CDMA_U_LIB_H__
#define __CDMA_U_LIB_H__

#ifdef __cplusplus
extern "C++" { /* for programs that wrap this header in extern "C" themselves */
#endif
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdatomic.h>
#include <cdma_abi.h>
#ifdef __cplusplus
}
extern "C" {
#endif

#define CDMA_VERSION          "1.0.2"
#define CDMA_MAX_DEV_NAME_LEN 300

/* A device: a local network address that contexts live on. */
struct dma_device {
	char name[CDMA_MAX_DEV_NAME_LEN]; /* "xtal0" */
	int fd;                           /* this entry's own descriptor, >= 0 */
	struct cdma_device_attr attr;     /* addresses and capabilities */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/* dma_cr.opcode; never set by the library, because one-sided operations have none. */
typedef enum {
	DMA_CR_OPC_SEND = 0,
	DMA_CR_OPC_SEND_WITH_IMM = 1,
	DMA_CR_OPC_SEND_WITH_INV = 2,
	DMA_CR_OPC_WRITE_WITH_IMM = 3,
} dma_cr_opcode_t;

/* dma_cr.flag */
typedef union dma_cr_flag {
	struct {
		uint8_t s_r : 1;   /* 0: completion of a post, always here */
		uint8_t jetty : 1; /* 0, always here */
		uint8_t suspend_done : 1;
		uint8_t flush_err_done : 1;
		uint8_t reserved : 4;
	} bs;
	uint8_t value;
} dma_cr_flag_t;

/* A completion record: how one operation ended. */
struct dma_cr {
	enum dma_cr_status status;
	uint64_t user_ctx;      /* queue->cfg.user_ctx as it was when the operation was posted */
	dma_cr_opcode_t opcode; /* 0; with XTAL_STRICT=1 left as the caller had it */
	dma_cr_flag_t flag;
	uint32_t completion_len; /* bytes moved, without the notify word; 0 on error */
	uint32_t local_id;       /* number of the queue */
	uint32_t remote_id;      /* port of the peer's context, 0 when it was never reached */
	uint32_t tpn;            /* number of the link to the peer, 0 when there was none */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/* What a queue shall be; copied whole into dma_queue.cfg. */
struct queue_cfg {
	uint32_t queue_depth;   /* operations accepted and not yet polled, 1..65536 */
	uint8_t priority;       /* 0..15; accepted, has no effect */
	uint64_t user_ctx;      /* returned in completions; may be changed in queue->cfg */
	uint32_t dcna;          /* network address of the peer's node; accepted, not needed */
	struct dev_eid rmt_eid; /* the peer's device, dw0 only; may be changed in queue->cfg */
	bool event_mode;        /* dma_wait_queue() may be used */
	uint32_t trans_mode;    /* 1 or 2 (other values mean 1); both keep the order here */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

struct dma_context;

struct dma_queue {
	struct dma_context *ctx;
	struct queue_cfg cfg; /* user_ctx, rmt_eid.dw0 and event_mode are read at every call */
	uint32_t queue_id;    /* as in dma_aeqe.queue_id */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/* Memory: registered here, or imported from a peer. A plain value. */
struct dma_seg {
	uint64_t handle;        /* of the registration; 0 in imported segments */
	uint64_t sva;           /* address in the owner's process */
	uint64_t len;           /* bytes; of the local segment: what an operation moves */
	uint32_t tid;           /* the owner's context, 20 bits */
	uint32_t token_value;   /* the owner's secret */
	bool token_value_valid; /* remote segments: send the secret */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/* What a segment shall be. */
struct dma_seg_cfg {
	uint64_t addr;          /* first byte, not 0 */
	uint64_t len;           /* bytes, not 0 */
	uint32_t token_value;   /* secret that peers must know */
	uint32_t tid;           /* import: from the owner; registration ignores it */
	bool token_value_valid; /* import: send the token; registration: insist on one */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/* One user of a device. */
struct dma_context {
	struct dma_device *dma_dev; /* as passed to dma_create_context() */
	uint32_t tid;               /* of all its segments, 20 bits, never 0 */
	int async_fd;               /* readable while asynchronous events wait */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/* What a post returns. */
typedef enum {
	DMA_STATUS_OK = 0,
	DMA_STATUS_INVAL = 1,
} dma_status;

/* dma_aeqe.event_type */
typedef enum {
	DMA_AEQE_TYPE_JFC = 0,     /* completion side of a queue failed */
	DMA_AEQE_TYPE_JFS = 1,     /* a queue broke; free it and allocate another */
	DMA_AEQE_TYPE_INVALID = 2, /* the device is gone; returned again by every call */
	DMA_AEQE_TYPE_UNKNOWN = 3, /* never returned */
} dma_aeqe_type;

/* An asynchronous event. */
struct dma_aeqe {
	struct dma_context *ctx;
	uint32_t queue_id;
	uint32_t event_type; /* dma_aeqe_type */
	int duration;        /* input: milliseconds to wait, 0..10000 */
	uint32_t rsv_bitmap;
	uint32_t rsvd[4];
};

/**
 * dma_get_device_list - list the devices of this host
 *
 * A device is a local network address. The loopback device xtal0 always exists and comes
 * first. Every call makes a new list, whose entries have file descriptors of their own.
 *
 * The whole list is one array. An entry for which no descriptor is left is skipped, so the
 * array may hold fewer devices than the host has, even none; it must be freed all the same.
 *
 * @num: set to the number of entries, 0 when NULL is returned
 *
 * Returns: the first of *num consecutive entries, the caller's until dma_free_device_list(),
 * or NULL. Test both the pointer and *num.
 * Errors:
 *   NULL: num is NULL, or there is no memory
 * Threads: any.
 * Contract: CDMA. Names are xtal0, xtal1 ... here, the list is sorted, the descriptors are
 * close-on-exec.
 */
struct dma_device *dma_get_device_list(uint32_t *num);

/**
 * dma_free_device_list - give a device list back
 *
 * Closes the descriptors of the first num entries and frees the array, also the single entry
 * of dma_get_device_by_eid() (with num 1). Delete the contexts made from the entries first.
 * Here a context that outlives its entry goes on working, with a warning in the log; on
 * hardware it would use freed memory.
 *
 * @list: what dma_get_device_list() or dma_get_device_by_eid() returned, or NULL (nothing
 *        happens). Another pointer, or a list freed before, is refused: nothing is freed.
 * @num: the number that came with the list
 *
 * Returns: nothing.
 * Threads: any; nobody may be using the entries.
 * Contract: CDMA.
 */
void dma_free_device_list(struct dma_device *list, uint32_t num);

/**
 * dma_get_device_by_eid - the device with a given address
 *
 * Compares all 16 bytes of eid with what attr.eus[] of every device has: its address, and the small
 * numbers that the settings give to this address. The one that was found becomes attr.eu; attr.eid
 * is the device's own address all the same.
 *
 * @eid: the address; dw1 to dw3 are 0 for IPv4
 *
 * Returns: one entry of its own, the caller's until dma_free_device_list(dev, 1), or NULL.
 * Errors:
 *   NULL: eid is NULL, no device has it, or there is no memory or no descriptor left
 * Threads: any.
 * Contract: CDMA.
 */
struct dma_device *dma_get_device_by_eid(struct dev_eid *eid);

/**
 * dma_create_context - become a user of a device
 *
 * The context gets a port of its own, at random, and with it the tid that names it to peers.
 * Its first creation in a process starts the engine's one agent thread.
 *
 * Any number of contexts may be made from one entry; with XTAL_STRICT=1 only one at a time,
 * as on hardware. Keep the entry until the context is deleted.
 *
 * @dev: an entry of a device list; the pointer is kept in ctx->dma_dev
 *
 * Returns: the context, the caller's until dma_delete_context(), or NULL.
 * Errors:
 *   NULL: dev is NULL or not a device of this host; no memory, descriptor, thread or port is
 *   left; with XTAL_STRICT=1 also when the entry has a context already
 * Threads: any.
 * Contract: CDMA.
 */
struct dma_context *dma_create_context(struct dma_device *dev);

/**
 * dma_delete_context - end the use of a device
 *
 * Free the context's queues and unregister its segments before. If some are left, that is
 * logged with their number, they go on working, and the context stays in the engine, its
 * port and descriptor with it, until the last of them is gone. Either way the pointer must
 * not be used again.
 *
 * In a child process that was forked after the context was made, nothing happens: the context
 * belongs to the parent.
 *
 * @ctx: the context, or NULL (nothing happens)
 *
 * Returns: nothing.
 * Threads: any; nobody may be using the context.
 * Contract: CDMA; that queues and segments survive is Xtal's own.
 */
void dma_delete_context(struct dma_context *ctx);

/**
 * dma_alloc_queue - make a queue towards a device
 *
 * Every queue has completions of its own, and takes exactly queue_depth operations between
 * polls, of whatever kind. The peer is not contacted: a wrong or dead address shows as a
 * completion status 9. queue->cfg is a copy of cfg; changing its user_ctx or rmt_eid.dw0
 * takes effect with the next operation, changing event_mode with the next wait.
 *
 * @ctx: the context; the queue must be freed before it
 * @cfg: what the queue shall be; not needed after the call. queue_depth 1..65536;
 *       rmt_eid.dw0: the peer's device; event_mode: true to use dma_wait_queue(); priority,
 *       dcna and trans_mode have no effect here
 *
 * Returns: the queue, the caller's until dma_free_queue(), or NULL.
 * Errors:
 *   NULL: a pointer is NULL; ctx is not a live context of this process; queue_depth is 0 or
 *   above dev_cap.max_jfs_depth; 65536 queues exist; no memory or descriptor is left
 * Threads: any.
 * Contract: CDMA, except for the capacity: hardware takes at least queue_depth, often more.
 */
struct dma_queue *dma_alloc_queue(struct dma_context *ctx, struct queue_cfg *cfg);

/**
 * dma_free_queue - drain and free a queue
 *
 * Waits until every operation in flight has ended, at most the queue's time limit
 * (XTAL_TIMEOUT_MS, 8 seconds), and discards the completions that nobody polled. Afterwards
 * no operation of the queue touches memory, here or at a peer.
 *
 * @queue: the queue, or NULL (nothing happens). A pointer that is no live queue is refused
 *         where that can be seen.
 *
 * Returns: nothing.
 * Threads: any; nobody may be using the queue.
 * Contract: CDMA.
 */
void dma_free_queue(struct dma_queue *queue);

/**
 * dma_register_seg - let peers and own operations use a range of memory
 *
 * Any memory will do: peers reach it while this program sleeps or computes. Nothing is
 * touched or pinned by the call. Unmapping the range while it is registered is the program's
 * error: a peer gets a completion status or the memory as it was registered, never a crash;
 * operations of this program that copy from or to the range by plain stores (paths self and
 * map) fault like its own access would (cdma(7)). Ranges may overlap.
 *
 * Peers may read, write and use atomics, and must know the token: one that sends a token
 * (token_value_valid in its imported segment) must send this one; one that sends none is let
 * in only when token_value is 0 or token_value_valid is false here.
 *
 * With XTAL_STRICT=1 the restrictions of the hardware hold: addr a multiple of 4096,
 * addr + len at most 2^48, all of it mapped and writable, no overlap with another segment of
 * the context, though the identical range may be registered twice.
 *
 * @ctx: the context; the segment must be unregistered before it
 * @cfg: addr (not 0), len in bytes (not 0, addr + len must not exceed 2^64 - 1), token_value,
 *       token_value_valid; tid is ignored. Not needed after the call.
 *
 * Returns: the segment with sva, len, tid, token and handle to give to peers, the caller's
 * until dma_unregister_seg(), or NULL.
 * Errors:
 *   NULL: a pointer is NULL; ctx is not a live context of this process; addr or len is 0;
 *   addr + len wraps; 65536 segments exist; no memory is left; in strict mode the above
 * Threads: any.
 * Contract: CDMA; alignment, overlap and writability are refused only with XTAL_STRICT=1.
 */
struct dma_seg *dma_register_seg(struct dma_context *ctx, struct dma_seg_cfg *cfg);

/**
 * dma_unregister_seg - withdraw a registered segment
 *
 * Blocks until no peer and no operation of this process can touch the memory any more: once
 * it has returned, not a byte of it changes. Operations of peers that come later end with
 * status 8. A peer that is stopped in the middle of a copy is fenced off after
 * XTAL_REVOKE_MS.
 *
 * The segment is found by its handle. A copy of the struct withdraws the registration as
 * well, but then the copy is not freed; the struct that was returned stays readable until
 * the context is gone. A segment that was withdrawn before, or imported, or belongs to
 * another context, is refused: nothing is withdrawn, nothing is freed.
 *
 * @ctx: the context it was registered with; NULL: nothing happens
 * @seg: the segment, freed by the call; NULL: nothing happens
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: CDMA.
 */
void dma_unregister_seg(struct dma_context *ctx, struct dma_seg *seg);

/**
 * dma_import_seg - describe a peer's segment
 *
 * Makes a struct dma_seg from what the owner told by some other way (a socket, a file). The
 * owner is not contacted, needs not exist, and its host is not part of the segment: that is
 * decided by the queue's rmt_eid. Filling a struct dma_seg by hand is just as good.
 *
 * @cfg: addr, len, tid, token_value and token_value_valid as in the owner's struct dma_seg
 *       (sva is addr); addr and len must not be 0. Not needed after the call.
 *
 * Returns: the segment, the caller's until dma_unimport_seg(), or NULL.
 * Errors:
 *   NULL: cfg is NULL, addr or len is 0, or no memory is left
 * Threads: any.
 * Contract: CDMA.
 */
struct dma_seg *dma_import_seg(struct dma_seg_cfg *cfg);

/**
 * dma_unimport_seg - free an imported segment
 *
 * Operations posted with it go on: they keep no pointer to it.
 *
 * @seg: what dma_import_seg() returned, or NULL (nothing happens). A registered segment, a
 *       copy, or one freed before is refused where that can be seen: nothing is freed.
 *
 * Returns: nothing.
 * Threads: any; nobody may be using the struct.
 * Contract: CDMA.
 */
void dma_unimport_seg(struct dma_seg *seg);

/**
 * dma_write - store local bytes in a peer's memory
 *
 * Moves local_seg->len bytes from local_seg->sva to rmt_seg->sva in the process that
 * rmt_seg->tid names on the device queue->cfg.rmt_eid. The last word lands last, so the peer
 * may spin on it. The source must stay mapped and unchanged until the completion. Short
 * operations are executed before the call returns; the completion is there to poll.
 *
 * @queue: the queue; user_ctx and rmt_eid.dw0 of its cfg are read now
 * @rmt_seg: sva, tid, token_value and token_value_valid are read now; len is only checked not
 *           to be 0. The struct is not needed after the call.
 * @local_seg: sva, and len: the bytes to move, 1 to 2^32 - 1. The range must lie in one segment
 *             registered with the queue's context. The struct is not needed after the call.
 *
 * Returns: DMA_STATUS_OK when the operation was accepted, and exactly one completion follows;
 * else DMA_STATUS_INVAL, and nothing was done.
 * Errors:
 *   DMA_STATUS_INVAL: a pointer is NULL; an sva or len is 0; local_seg->len is above
 *   2^32 - 1; queue_depth operations are accepted and not yet polled; queue is not a live
 *   queue of this process
 * Threads: any; several may post to one queue while others poll it.
 * Contract: CDMA; longer lengths are refused here, on hardware they are cut to 32 bits.
 */
dma_status dma_write(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg);

/**
 * dma_read - fetch bytes of a peer's memory
 *
 * Moves local_seg->len bytes from rmt_seg->sva of the peer to local_seg->sva. The destination
 * must stay mapped, and its content is undefined, until the completion.
 *
 * @queue: the queue; user_ctx and rmt_eid.dw0 of its cfg are read now
 * @rmt_seg: as for dma_write()
 * @local_seg: the destination, and its len the number of bytes, 1 to 2^32 - 1; otherwise as
 *             for dma_write()
 *
 * Returns: DMA_STATUS_OK when the operation was accepted, and exactly one completion follows;
 * else DMA_STATUS_INVAL, and nothing was done.
 * Errors:
 *   DMA_STATUS_INVAL: as for dma_write()
 * Threads: any; several may post to one queue while others poll it.
 * Contract: CDMA.
 */
dma_status dma_read(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg);

/**
 * dma_cas - compare and swap a peer's memory atomically
 *
 * Compares the local_seg->len bytes at rmt_seg->sva with cmp and, when they are equal,
 * replaces them by swap, in one step that is atomic towards the peer's processors and all
 * other CDMA atomics. The old bytes land at local_seg->sva in either case: equal to cmp means
 * that the swap happened. The operation is executed exactly once.
 *
 * @queue: the queue; user_ctx and rmt_eid.dw0 of its cfg are read now
 * @rmt_seg: as for dma_write(); sva must be a multiple of local_seg->len, else the completion
 *           has status 6
 * @local_seg: where the old value goes; len 4, 8 or 16. Otherwise as for dma_write().
 * @cmp: the expected value (its low 4 bytes for len 4); for len 16 the address of 16 bytes,
 *       read before the call returns
 * @swap: the new value, given like cmp
 *
 * Returns: DMA_STATUS_OK when the operation was accepted, and exactly one completion follows;
 * else DMA_STATUS_INVAL, and nothing was done.
 * Errors:
 *   DMA_STATUS_INVAL: as for dma_write(); local_seg->len is not 4, 8 or 16; len is 16 and
 *   cmp or swap is 0
 * Threads: any; several may post to one queue while others poll it.
 * Contract: CDMA; a NULL operand crashes the original and is refused here.
 */
dma_status dma_cas(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg,
		   uint64_t cmp, uint64_t swap);

/**
 * dma_faa - add to a peer's memory atomically
 *
 * Adds to the local_seg->len bytes at rmt_seg->sva, wrapping around, in one atomic step as
 * with dma_cas(). The old value lands at local_seg->sva. Executed exactly once.
 *
 * @queue: the queue; user_ctx and rmt_eid.dw0 of its cfg are read now
 * @rmt_seg: as for dma_cas()
 * @local_seg: where the old value goes; len 4 or 8. Otherwise as for dma_write().
 * @add: the number to add (its low 4 bytes for len 4); a negative number, as two's
 *       complement, subtracts
 *
 * Returns: DMA_STATUS_OK when the operation was accepted, and exactly one completion follows;
 * else DMA_STATUS_INVAL, and nothing was done.
 * Errors:
 *   DMA_STATUS_INVAL: as for dma_write(); local_seg->len is not 4 or 8
 * Threads: any; several may post to one queue while others poll it.
 * Contract: CDMA.
 */
dma_status dma_faa(struct dma_queue *queue, struct dma_seg *rmt_seg, struct dma_seg *local_seg,
		   uint64_t add);

/**
 * dma_write_with_notify - store bytes, then a word that tells of them
 *
 * A dma_write(), after whose last byte the 8 bytes of notify_data are stored, in one piece
 * when the address is a multiple of 8, at notify_seg->sva on the same device. A program that
 * sees the word sees the data. Nothing else happens at the peer: it must watch its memory.
 * completion_len does not count the word.
 *
 * The notify segment's token is sent when rmt_seg->token_value_valid is set: one bit serves
 * both. When either place is refused, neither is written.
 *
 * @queue: the queue; user_ctx and rmt_eid.dw0 of its cfg are read now
 * @rmt_seg: where the data goes, as for dma_write()
 * @local_seg: where it comes from, as for dma_write()
 * @notify_seg: where the word goes: sva, tid and token_value are read now; len is not
 *              looked at, 8 bytes are written
 * @notify_data: the word, stored in the processor's byte order
 *
 * Returns: DMA_STATUS_OK when the operation was accepted, and exactly one completion follows;
 * else DMA_STATUS_INVAL, and nothing was done.
 * Errors:
 *   DMA_STATUS_INVAL: as for dma_write(); notify_seg is NULL
 * Threads: any; several may post to one queue while others poll it.
 * Contract: CDMA.
 */
dma_status dma_write_with_notify(struct dma_queue *queue, struct dma_seg *rmt_seg,
				 struct dma_seg *local_seg, struct dma_seg *notify_seg,
				 uint64_t notify_data);

/**
 * dma_poll_queue - take completions, without waiting
 *
 * Completions come in the order in which the operations were posted, and every operation
 * accepted has exactly one. Taking it makes room for another operation. The call also works
 * on operations of the queue that are still running. Queues with event_mode may be polled too.
 *
 * @queue: the queue
 * @cr_cnt: records that cr has room for, not 0
 * @cr: filled from the first on
 *
 * Returns: the number of records filled, 0 when none is ready, or -22.
 * Errors:
 *   -22: queue or cr is NULL, cr_cnt is 0, or queue is not a live queue of this process
 * Threads: any; each completion goes to one of them.
 * Contract: CDMA. Fields that the original leaves alone (opcode, six bits of flag,
 * rsv_bitmap, rsvd) are set to 0, and left alone with XTAL_STRICT=1.
 */
int dma_poll_queue(struct dma_queue *queue, uint32_t cr_cnt, struct dma_cr *cr);

/**
 * dma_wait_queue - take completions, waiting for the first
 *
 * Sleeps until a completion is ready and takes what is there, up to cr_cnt. Completions that
 * are ready are returned at once, whatever the timeout. Signals do not end the wait.
 *
 * @queue: a queue with cfg.event_mode true
 * @cr_cnt: records that cr has room for, not 0
 * @timeout: milliseconds; 0 does not wait, a negative number waits without limit
 * @cr: filled from the first on, as by dma_poll_queue()
 *
 * Returns: the number of records filled, at least 1, or -14 or -22; never 0.
 * Errors:
 *   -14: no completion came in time
 *   -22: queue or cr is NULL, cr_cnt is 0, cfg.event_mode is false, or queue is not a live
 *   queue of this process
 * Threads: any; each completion goes to one of them.
 * Contract: CDMA; the original may overlook ready completions, wake for none, and returns
 * -14 when a signal arrives.
 */
int dma_wait_queue(struct dma_queue *queue, uint32_t cr_cnt, int timeout, struct dma_cr *cr);

/**
 * dma_wait_ae - take an asynchronous event of a context
 *
 * ctx->async_fd is readable while an event waits; use it with poll or epoll, and do not read
 * from it. What hardware tells of by events (a completion queue that overflowed, a queue that
 * broke, a device that is gone) cannot happen to queues of this library: none comes.
 *
 * @ctx: the context
 * @aeqe: duration is an input: milliseconds to wait, 0 (just look) to 10000. ctx, queue_id
 *        and event_type are written when an event is returned, the rest is left alone.
 *
 * Returns: 1 and an event, 0 when none came in time, or -22.
 * Errors:
 *   -22: a pointer is NULL, duration is out of range, or ctx is not a live context of this
 *   process
 * Threads: any; each event goes to one of them.
 * Contract: CDMA.
 */
int dma_wait_ae(struct dma_context *ctx, struct dma_aeqe *aeqe);

#ifdef __cplusplus
}
#endif

#endif
