/* SPDX-License-Identifier: MIT */
/*
 * The control messages of one host, over a unix socket: handshake, and resolving of segments.
 * They carry file descriptors beside these bytes, and never leave the machine, so the layout
 * is native. A receiver checks each with xtal_control_check() before it reads a field. Between
 * them travel messages of one byte, the doorbells (xtal_os_nudge()).
 */
#ifndef XTAL_WIRE_CONTROL_H
#define XTAL_WIRE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#define XTAL_CONTROL_MAGIC   0x434c5458u
#define XTAL_CONTROL_VERSION 4u

enum xtal_control_type {
	XTAL_CONTROL_HELLO = 1, /* initiator: who I am, whom I look for */
	XTAL_CONTROL_WELCOME,   /* target; fds: slot table, link memory */
	XTAL_CONTROL_REFUSE,    /* target: status and text; the link ends */
	XTAL_CONTROL_RESOLVE,   /* initiator: may I touch this range? */
	XTAL_CONTROL_GRANT,     /* target; fd when the pages can be mapped */
	XTAL_CONTROL_DENY,      /* target: status and text; the link lives on */
	XTAL_CONTROL_TYPES,
};

/* flags */
enum {
	XTAL_CONTROL_FENCED = 1,   /* HELLO: registered for global membarriers. WELCOME: can
				       * run them */
	XTAL_CONTROL_TOKEN = 2,    /* RESOLVE: token is valid */
	XTAL_CONTROL_RETRY = 4,    /* DENY: the segment is moving, ask again */
	XTAL_CONTROL_WRITABLE = 8, /* GRANT: the fd may be mapped writable */
	XTAL_CONTROL_SEALED = 16,  /* GRANT: the object cannot shrink */
	XTAL_CONTROL_CMA = 32,     /* WELCOME: the owner permits cma */
	XTAL_CONTROL_HOT = 128,    /* RESOLVE: we use it much; the answer is not used */
	XTAL_CONTROL_RING = 64,    /* WELCOME: the owner permits messages for data */
};

struct xtal_control {
	uint32_t magic, version;
	uint32_t type;
	uint32_t flags;
	uint32_t fds;         /* descriptors that come with it */
	uint32_t status;      /* REFUSE, DENY: enum xtal_status */
	uint64_t id;          /* RESOLVE: chosen; GRANT, DENY: echoed */
	uint64_t incarnation; /* HELLO: the wanted bits (1..15, or any); WELCOME: all 64 */
	uint32_t port;        /* HELLO: the wanted one */
	uint32_t pipeline;    /* HELLO */
	uint64_t addr, len;   /* RESOLVE; GRANT: the whole segment */
	uint32_t token, rights;
	uint32_t index, unused;       /* RESOLVE: the segment's; 0: any */
	uint32_t slot;                /* GRANT */
	uint32_t ring_bytes;          /* WELCOME: capacity of each ring */
	uint64_t word;                /* GRANT: the slot's word */
	uint64_t object;              /* GRANT: number of the object, unique in the owner */
	uint64_t offset;              /* GRANT: of the segment in the object */
	uint64_t map_offset, map_len; /* GRANT: the part to map, page aligned */
	uint64_t probe_addr;          /* WELCOME: a word of the owner for trying out cma */
	uint64_t probe_value;         /* WELCOME: what it holds */
	uint64_t clock;               /* WELCOME: the owner's clock, ns */
	char text[160];               /* REFUSE, DENY, GRANT: why (not), terminated */
};

void xtal_control_init(struct xtal_control *c, enum xtal_control_type type);

/* Errors: -EPROTO: not one of ours, other version, wrong size, unknown type, wrong number of
 * fds. The text is then terminated in any case. */
int xtal_control_check(struct xtal_control *c, size_t len, unsigned nfds);

#endif
