/* SPDX-License-Identifier: MIT */
/*
 * One process's use of liburma in the tests: a context with a completion queue, a receive queue,
 * a jetty and a segment; what it tells others; imports of what others tell.
 */
#ifndef TEST_LIB_URMA_SIDE_H
#define TEST_LIB_URMA_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "urma_api.h"

#define URMA_SIDE_TOKEN 0x5ec2e7u

struct urma_side {
	urma_device_t **list;
	urma_context_t *ctx;
	urma_jfce_t *jfce;
	urma_jfc_t *jfc;  /* of requests, and of receives without rjfc */
	urma_jfc_t *rjfc; /* of receives; NULL: jfc */
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	urma_target_seg_t *seg;
};

struct urma_side_attr {
	urma_transport_mode_t mode; /* 0: RM */
	uint32_t depth;             /* of the jetty and the receive queue; 0: 64 */
	/* Which device; NULL: the first. */
	urma_device_t *(*choose)(urma_device_t **list, int count);
	uint8_t rnr_retry;     /* as it is; 7: without end */
	uint8_t min_rnr_timer; /* 0: the typical one */
	uint8_t err_timeout;   /* 0: the typical one, 4.3 s in all; 1: the library's own limit */
	uint32_t max_sge;      /* 0: 4 */
	bool two_jfcs;         /* receives complete on a queue of their own */
	bool error_suspend;
	bool no_token;   /* token policy NONE */
	uint32_t access; /* of the segment; 0: all */
	void *memory;    /* of the segment; NULL: none */
	size_t len;
};

/* What another process needs to know. Plain values. */
struct urma_told {
	urma_jetty_id_t jetty, jfr;
	urma_seg_t seg;
	urma_transport_mode_t mode;
	bool token;
};

/* What was imported from it. */
struct urma_peer {
	urma_target_jetty_t *jetty, *jfr;
	urma_target_seg_t *seg;
};

/* 0, or the number of the step that failed. */
int urma_side_open(struct urma_side *s, const struct urma_side_attr *attr);
/* 0, or the number of the step that failed. */
int urma_side_close(struct urma_side *s);
void urma_side_tell(const struct urma_side *s, struct urma_told *out);
/* Imports; RC: binds too. 0, or the number of the step that failed. */
int urma_peer_import(struct urma_side *s, const struct urma_told *told, struct urma_peer *out);
int urma_peer_drop(struct urma_side *s, struct urma_peer *peer);

/* A request with one piece on each side, signalled. Fill in the rest. */
struct urma_request {
	urma_sge_t src, dst[2];
	urma_jfs_wr_t wr;
};
void urma_request_write(struct urma_request *r, const struct urma_peer *to, uint64_t remote,
			const void *local, uint32_t len);
void urma_request_read(struct urma_request *r, const struct urma_peer *to, uint64_t remote,
		       void *local, uint32_t len);
void urma_request_cas(struct urma_request *r, const struct urma_peer *to, uint64_t remote,
		      void *old, uint32_t len, uint64_t compare, uint64_t swap);
/* FADD, FSUB, FAND, FOR, FXOR. */
void urma_request_fetch(struct urma_request *r, const struct urma_peer *to, urma_opcode_t opcode,
			uint64_t remote, void *old, uint32_t len, uint64_t operand);
void urma_request_send(struct urma_request *r, const struct urma_peer *to, const void *local,
		       uint32_t len);
/* Posts it to the jetty. */
urma_status_t urma_side_post(struct urma_side *s, struct urma_request *r);
/* Posts one receive. */
urma_status_t urma_side_receive(struct urma_side *s, void *local, uint32_t len, uint64_t user_ctx);
/* Polls until one record is there, at most timeout_ms. False: none came. */
bool urma_side_take(urma_jfc_t *jfc, urma_cr_t *cr, unsigned timeout_ms);

#endif
