/* SPDX-License-Identifier: MIT */
/*
 * xtal.h - what programs that know about Xtal may ask it beyond the API they were written for:
 * shareable memory, words for errors, the path that bytes take, counters, an event fd.
 *
 * Objects of the front-ends (a struct dma_queue *, a struct dma_seg *) are passed as plain
 * pointers. All functions are thread safe unless their text says otherwise.
 */
#ifndef XTAL_H
#define XTAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define XTAL_VERSION "0.1.0"

#if defined(__GNUC__)
#define XTAL_API __attribute__((visibility("default")))
#else
#define XTAL_API
#endif

/** The ways in which bytes reach a segment, best first. */
enum xtal_path_kind {
	XTAL_PATH_NONE = 0,
	XTAL_PATH_SELF = 1, /* the segment lives in this process */
	XTAL_PATH_MAP = 2,  /* its pages are mapped here too */
	XTAL_PATH_CMA = 3,  /* process_vm_readv and process_vm_writev; atomics as messages */
	XTAL_PATH_RING = 4, /* messages in shared memory, executed by the owner's agent */
	XTAL_PATH_TCP = 5,  /* messages over a socket; other hosts */
};
#define XTAL_PATH_COUNT 6

/** Everything that another process needs to reach a segment, whatever its API. */
struct xtal_descriptor {
	uint8_t eid[16];      /* device address, network order, IPv4 as ::ffff:a.b.c.d */
	uint32_t tid;         /* CDMA: owner's context: incarnation bits, port */
	uint32_t uasid;       /* URMA: the same context */
	uint32_t token_id;    /* URMA: the segment's number in its context */
	uint32_t token;       /* the segment's secret */
	uint32_t token_valid; /* 1: the owner asked for the token to be checked */
	uint32_t reserved;
	uint64_t va;  /* address in the owner's process */
	uint64_t len; /* bytes */
};

/** One path's verdict for a (queue, segment). */
struct xtal_path_verdict {
	uint32_t kind;   /* enum xtal_path_kind */
	uint32_t usable; /* 1: bytes were moved over it in a probe, or it is the chosen one */
	char reason[248];
};

/** Which path a queue uses towards a segment, and why not the others. */
struct xtal_path_info {
	uint32_t kind;       /* the chosen one; XTAL_PATH_NONE: unreachable */
	uint32_t candidates; /* entries used of candidate[] */
	char name[16];       /* "map", "cma" ... */
	char reason[248];    /* why this one */
	struct xtal_path_verdict candidate[XTAL_PATH_COUNT];
};

/** Totals since the process started; they only grow (but for the gauges at the end). */
struct xtal_counters {
	uint64_t posted;                 /* operations accepted */
	uint64_t completed;              /* completions made, good and bad */
	uint64_t failed;                 /* of these, with an error status */
	uint64_t refused;                /* posts refused (bad argument, queue full) */
	uint64_t ops[XTAL_PATH_COUNT];   /* operations executed per path */
	uint64_t bytes[XTAL_PATH_COUNT]; /* payload bytes moved per path, by this process */
	uint64_t served;                 /* messages executed here for peers */
	uint64_t served_bytes;           /* payload bytes of these */
	uint64_t denied;                 /* requests of peers refused (token, range, right) */
	uint64_t revocations;            /* segments withdrawn */
	uint64_t fenced;                 /* ... that needed a stuck peer fenced off */
	uint64_t links_made;             /* connections to peers */
	uint64_t peers_lost;             /* peers that died or vanished */
	uint64_t agent_wakeups;          /* times the agent thread woke */
	uint64_t contexts, queues, segments, links; /* alive now */
	uint64_t adopted;                           /* ranges of private memory made mappable */
	uint64_t adopted_bytes;                     /* their bytes */
	uint64_t adopt_ns;                          /* time that took, ns */
	uint64_t adopt_refused;                     /* attempts that failed */
	uint64_t adopt_undone;                      /* ranges that became private again */
};

/** What this machine allows of adoption, see xtal_adoption_query(). */
enum xtal_adoption {
	XTAL_ADOPTION_NONE = 0, /* nothing */
	XTAL_ADOPTION_USER = 1, /* on request: meanwhile a system call into the range fails */
	XTAL_ADOPTION_FULL = 2, /* by itself, too: a system call into the range waits */
};

/** A device, or something that XTAL_DEVICES names and this host does not have. */
struct xtal_device_info {
	char name[64];      /* "xtal0"; "" for what is not there */
	uint8_t eid[16];    /* its address, network order, IPv4 as ::ffff:a.b.c.d */
	char address[64];   /* the same as text; link-local ones with %interface */
	char interface[16]; /* "eth0" */
	uint32_t loopback;  /* 1: reaches this host only */
	uint32_t encrypted; /* 1: TLS with the key of XTAL_KEY_FILE to other hosts */
	uint32_t usable;    /* 1: a context can be opened on it */
	char reason[256];   /* why not, and what to do; "" when usable */
};

/** One setting of the engine, for display. */
struct xtal_setting {
	const char *name;        /* "XTAL_PATHS" */
	const char *value;       /* in force now */
	const char *origin;      /* "default", "environment", or the ini file's path */
	const char *description; /* one line, with unit and range */
};

/**
 * xtal_version - the version of the library in use
 *
 * Compare with XTAL_VERSION, the version of the header the program was compiled against.
 *
 * Returns: a static string such as "0.1.0".
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API const char *xtal_version(void);

/**
 * xtal_last_error - why the last call was refused
 *
 * Every refusal of every API leaves one sentence that names the object, the value and the
 * limit. The text belongs to the calling thread and lasts until its next refused call. So does the
 * sentence of an operation that ends with an error while the thread posts, polls or waits; where
 * another thread found out, only the log has it (at most one of a kind each second).
 *
 * Returns: the sentence, or "" when no call of this thread was refused. Never NULL.
 * Threads: each thread has its own text.
 * Contract: Xtal's own.
 */
XTAL_API const char *xtal_last_error(void);

/**
 * xtal_status_name - short name of a completion status
 *
 * @status: the status of a completion (enum dma_cr_status and the like), 0..16
 *
 * Returns: a static string such as "REMOTE_ACCESS"; "UNKNOWN" for other numbers.
 * Threads: any.
 * Contract: Xtal's own; the numbers are CDMA's and URMA's.
 */
XTAL_API const char *xtal_status_name(int status);

/**
 * xtal_status_text - a completion status in a sentence
 *
 * @status: the status of a completion, 0..16
 *
 * Returns: a static sentence that says what happened and what usually causes it.
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API const char *xtal_status_text(int status);

/**
 * xtal_alloc - memory that peers on this host can map
 *
 * Zero-filled, page aligned, backed by an unnamed shared object whose size is sealed. A
 * segment registered inside it is reached over the map path: an 8 byte write costs what it
 * costs the cache. After fork the child shares the pages with its parent, like any MAP_SHARED
 * mapping; it must not use xtal_free on them.
 *
 * @len: bytes, 1 to 2^47; rounded up to pages
 *
 * Returns: the memory, the caller's until xtal_free, or NULL.
 * Errors:
 *   NULL: len is 0 or too large, or the system refuses memory or descriptors
 *   (xtal_last_error tells).
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API void *xtal_alloc(size_t len);

/**
 * xtal_free - give back memory of xtal_alloc
 *
 * Unregister its segments first: a segment that is still registered keeps its pages alive for
 * peers, but no longer for this process.
 *
 * @ptr: a pointer that xtal_alloc returned, or NULL (nothing happens). Anything else is
 *       refused with a sentence in the log; nothing is freed.
 *
 * Returns: nothing.
 * Threads: any; the memory must no longer be in use.
 * Contract: Xtal's own.
 */
XTAL_API void xtal_free(void *ptr);

/**
 * xtal_share - make private memory mappable for peers, in place
 *
 * The whole pages of the range, memory of malloc or of private anonymous mappings, are replaced by
 * shared ones with the same content while all threads go on using them (adoption, see cdma(7)).
 * From then on peers of the same user on this host reach segments that lie in it, registered now
 * or later, like memory of xtal_alloc. Takes 0.3 to 1 ms per MiB. Pages that the range fills
 * in part stay private.
 *
 * Refused while XTAL_ADOPT is off, which it is unless it is set. Where system calls into the range
 * cannot wait (xtal_adoption_query() says XTAL_ADOPTION_USER) they fail with EFAULT during this
 * call.
 *
 * @ptr: the range's first byte
 * @len: its length in bytes
 *
 * Returns: 0, also when all of it was adopted before, or a negative errno value.
 * Errors:
 *   -EPERM: XTAL_ADOPT is off
 *   -ENOSYS: the kernel lacks what is needed, or does not permit it
 *   -EINVAL: ptr is NULL, no whole page lies in the range, or not all of it is ordinary private
 *   memory
 *   -EBUSY: pages are pinned by direct I/O or io_uring, or a peer does not leave the memory
 *   -EEXIST: a part of the range is adopted, but not all of it
 *   -EAGAIN: the program changed the mapping meanwhile, or forks
 *   -ENOSPC: too many ranges are adopted
 *   -ENOMEM: no memory, or too many mappings
 * Threads: any, but not from a signal handler.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_share(void *ptr, size_t len);

/**
 * xtal_unshare - make adopted memory private again
 *
 * Undoes xtal_share(), and what was adopted by itself, for every adopted range that has a page in
 * the given one. Peers reach the memory by other paths again.
 *
 * @ptr: the range's first byte
 * @len: its length in bytes
 *
 * Returns: 0 or a negative errno value.
 * Errors:
 *   -EINVAL: ptr is NULL or len is 0
 *   -ENOENT: nothing of it is adopted
 *   -EBUSY: the process has pinned pages (VmPin in /proc/self/status), or a peer does not leave
 *   -ENOMEM: no memory; a part may stay shared
 * Threads: any, but not from a signal handler. No direct I/O into the range may be in flight.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_unshare(void *ptr, size_t len);

/**
 * xtal_adoption_query - what this machine allows of adoption, and why
 *
 * Tried out with pages of the library's own, whatever XTAL_ADOPT says.
 *
 * @text: receives one sentence, or NULL
 * @size: bytes of text
 *
 * Returns: enum xtal_adoption.
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_adoption_query(char *text, size_t size);

/**
 * xtal_describe - the descriptor of a registered segment
 *
 * @segment: a segment that this process registered (not an imported one, not a copy)
 * @out: filled on success
 *
 * Returns: 0, or -EINVAL.
 * Errors:
 *   -EINVAL: a pointer is NULL, or segment is not registered here
 * Threads: any; not while the segment is being unregistered.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_describe(const void *segment, struct xtal_descriptor *out);

/**
 * xtal_path_query - the path from a queue to a segment, with reasons
 *
 * Contacts the owner when no operation did so yet, like the first operation would. Each path is
 * named usable only when bytes were moved or mapped over it; for the ring a word of the segment is
 * read by a message now, which the owner's agent has one second to answer.
 *
 * @queue: a queue of this process
 * @remote: the segment; for CDMA va, len, tid, token and token_valid are used, eid is where
 *          the queue points when all 16 bytes are zero
 * @timeout_ms: how long to wait for the owner's answer, milliseconds; negative: the queue's
 *              own time limit
 * @out: filled on success
 *
 * Returns: 0, or a negative errno value; out->kind is XTAL_PATH_NONE, with the reason, when
 * the owner answered but refused, or nobody is there.
 * Errors:
 *   -EINVAL: a pointer is NULL, queue is not a live queue, or remote has no length
 *   -ETIMEDOUT: the owner did not answer in time
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_path_query(const void *queue, const struct xtal_descriptor *remote,
			     int timeout_ms, struct xtal_path_info *out);

/**
 * xtal_path_name - short name of a path
 *
 * @kind: enum xtal_path_kind
 *
 * Returns: a static string: "none", "self", "map", "cma", "ring" or "tcp"; "unknown" for
 * other numbers.
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API const char *xtal_path_name(unsigned kind);

/**
 * xtal_queue_fd - a file descriptor that tells of completions
 *
 * Works with poll, select and epoll, level or edge triggered: readable while completions
 * wait, reset by the poll call that finds the queue empty. Edge-triggered users poll until
 * the queue is empty. Works for queues with event_mode false too. The descriptor belongs to
 * the queue and is closed with it; do not read from it.
 *
 * @queue: a queue of this process
 *
 * Returns: the descriptor (always the same one), or a negative errno value.
 * Errors:
 *   -EINVAL: queue is not a live queue
 *   -EMFILE: no descriptor left
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_queue_fd(const void *queue);

/**
 * xtal_counters_read - what the engine of this process has done
 *
 * @out: filled; fields that a newer library knows and the caller does not are left out
 * @size: sizeof(struct xtal_counters) as the caller knows it
 *
 * Returns: 0, or -EINVAL.
 * Errors:
 *   -EINVAL: out is NULL or size is 0
 * Threads: any; the numbers are not one atomic snapshot.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_counters_read(struct xtal_counters *out, size_t size);

/**
 * xtal_device_query - list the devices and whether they can be used
 *
 * The list is made at the first call of any API: the loopback device, then what XTAL_DEVICES
 * names. Last come the words of XTAL_DEVICES that nothing on this host answers to. Reads the
 * key file when a device needs it.
 *
 * @index: from 0 up
 * @out: filled on success
 *
 * Returns: 0, or a negative errno value.
 * Errors:
 *   -ENOENT: index is past the last entry
 *   -EINVAL: out is NULL
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_device_query(unsigned index, struct xtal_device_info *out);

/**
 * xtal_cdma_eid - the 32-bit EID of an address
 *
 * What a CDMA program puts into rmt_eid.dw0 to reach an address, for example that of a
 * descriptor: an IPv4 address as a number; for an IPv6 address the number that [eids] of the
 * ini file gives it.
 *
 * @eid: the address, 16 bytes, network order, IPv4 as ::ffff:a.b.c.d
 * @dw0: filled on success
 *
 * Returns: 0, or a negative errno value.
 * Errors:
 *   -EINVAL: a pointer is NULL
 *   -ENOENT: an IPv6 address without a number
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_cdma_eid(const uint8_t eid[16], uint32_t *dw0);

/**
 * xtal_token - a random token for a segment
 *
 * From the system's cryptographic generator. A token is what keeps other programs that may
 * connect out of a segment: do not use a constant, and hand it on only to those who may write.
 *
 * Returns: a number that is never 0; 0 when the system has no random numbers
 * (xtal_last_error tells).
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API uint32_t xtal_token(void);

/**
 * xtal_setting_at - list the settings in force
 *
 * @index: from 0 up
 * @out: filled on success; the strings are static
 *
 * Returns: 0, or -ENOENT.
 * Errors:
 *   -ENOENT: index is past the last setting
 *   -EINVAL: out is NULL
 * Threads: any.
 * Contract: Xtal's own.
 */
XTAL_API int xtal_setting_at(unsigned index, struct xtal_setting *out);

#ifdef __cplusplus
}
#endif

#endif
