/* SPDX-License-Identifier: MIT */
/*
 * Performance tests through URMA. Each queue is a jetty (RM) with a receive queue and two completion
 * queues of its own: one for requests, one for receives.
 */
#include "cli/api.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/net.h"
#include "urma_api.h"

/* No program that measures wants to give up. */
#define RETRY_FOR_EVER 7

struct lane {
	urma_jfc_t *sent, *arrived;
	urma_jfr_t *jfr;
	urma_jetty_t *jetty;
	urma_target_jetty_t *peer;
};

struct end {
	struct cli_end pub;
	enum cli_memory memory;
	urma_device_t **list;
	urma_context_t *ctx;
	urma_target_seg_t *seg, *remote;
	urma_token_t token, their_token;
	struct xtal_descriptor peer;
	struct lane *lane;
	uint32_t queues;
};

static struct end *end_of(struct cli_end *pub)
{
	return (struct end *)pub; /* it is the first member */
}

static int refused(const char *call)
{
	return cli_fail("%s: %s", call, xtal_last_error());
}

/* Once in a process, whatever the number of ends. */
static void init_once(void)
{
	urma_init(NULL);
}

/* The device of the conversation, or the first. */
static urma_device_t *choose_device(const struct end *e, int count, int fd)
{
	urma_device_t *dev;
	urma_eid_t eid;

	if (!cli_net_own_eid(fd, eid.raw))
		return e->list[0];
	dev = count ? urma_get_device_by_eid(eid, URMA_TRANSPORT_UB) : NULL;
	if (!dev)
		cli_fail(
			"this side of the connection is no device (XTAL_DEVICES; see 'xtal info')");
	return dev;
}

static int open_context(struct end *e, int fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	urma_device_t *dev;
	int count = 0;

	pthread_once(&once, init_once);
	e->list = urma_get_device_list(&count);
	if (!e->list || !count)
		return refused("urma_get_device_list");
	dev = choose_device(e, count, fd);
	if (!dev)
		return -1;
	e->ctx = urma_create_context(dev, 0);
	return e->ctx ? 0 : cli_fail("no context on %s: %s", dev->name, xtal_last_error());
}

static int open_region(struct end *e, const struct cli_end_attr *attr)
{
	urma_seg_cfg_t cfg = { .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
					    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						      URMA_ACCESS_ATOMIC } };

	e->token.token = xtal_token();
	if (!e->token.token)
		return cli_fail("no token: %s", xtal_last_error());
	e->memory = attr->memory;
	e->pub.len = attr->len;
	e->pub.base = cli_memory_get(attr->memory, &e->pub.len);
	if (!e->pub.base)
		return -1;
	cfg.va = (uintptr_t)e->pub.base;
	cfg.len = e->pub.len;
	cfg.token_value = e->token;
	e->seg = urma_register_seg(e->ctx, &cfg);
	if (e->seg && !xtal_describe(e->seg, &e->pub.desc))
		return 0;
	return cli_fail("cannot register %s memory: %s", cli_memory_name(attr->memory),
			xtal_last_error());
}

static int open_lane(struct end *e, struct lane *l, const struct cli_end_attr *attr)
{
	urma_jfc_cfg_t sent = { .depth = attr->depth };
	urma_jfc_cfg_t arrived = { .depth = attr->receives ? attr->receives : 1 };
	urma_jfr_cfg_t jfr = { .depth = arrived.depth,
			       .trans_mode = URMA_TM_RM,
			       .max_sge = 1,
			       .min_rnr_timer = URMA_TYPICAL_MIN_RNR_TIMER,
			       .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			       .token_value = e->token };
	urma_jetty_cfg_t cfg = { .flag.bs.share_jfr = 1,
				 .jfs_cfg = { .depth = attr->depth,
					      .trans_mode = URMA_TM_RM,
					      .max_sge = 1,
					      .max_rsge = 2,
					      .rnr_retry = RETRY_FOR_EVER,
					      .err_timeout = URMA_TYPICAL_ERR_TIMEOUT } };

	l->sent = urma_create_jfc(e->ctx, &sent);
	l->arrived = urma_create_jfc(e->ctx, &arrived);
	if (!l->sent || !l->arrived)
		return refused("urma_create_jfc");
	jfr.jfc = l->arrived;
	l->jfr = urma_create_jfr(e->ctx, &jfr);
	if (!l->jfr)
		return refused("urma_create_jfr");
	cfg.jfs_cfg.jfc = l->sent;
	cfg.shared.jfr = l->jfr;
	l->jetty = urma_create_jetty(e->ctx, &cfg);
	return l->jetty ? 0 : cli_fail("no queue of depth %u: %s", attr->depth, xtal_last_error());
}

static void close_lane(struct lane *l)
{
	if (l->peer)
		urma_unimport_jetty(l->peer);
	if (l->jetty)
		urma_delete_jetty(l->jetty);
	if (l->jfr)
		urma_delete_jfr(l->jfr);
	if (l->sent)
		urma_delete_jfc(l->sent);
	if (l->arrived)
		urma_delete_jfc(l->arrived);
}

static void end_close(struct cli_end *pub)
{
	struct end *e = end_of(pub);

	for (uint32_t q = 0; q < e->queues; q++)
		close_lane(&e->lane[q]);
	if (e->remote)
		urma_unimport_seg(e->remote);
	if (e->seg)
		urma_unregister_seg(e->seg);
	if (e->pub.base)
		cli_memory_put(e->memory, e->pub.base);
	if (e->ctx)
		urma_delete_context(e->ctx);
	urma_free_device_list(e->list);
	free(e->lane);
	free(e);
}

static struct cli_end *end_open(const struct cli_end_attr *attr)
{
	struct end *e = calloc(1, sizeof(*e));

	if (e)
		e->lane = calloc(attr->queues, sizeof(*e->lane));
	if (!e || !e->lane) {
		free(e);
		cli_fail("no memory");
		return NULL;
	}
	if (open_context(e, attr->fd) || open_region(e, attr))
		goto fail;
	while (e->queues < attr->queues)
		if (open_lane(e, &e->lane[e->queues++], attr))
			goto fail;
	return &e->pub;
fail:
	end_close(&e->pub);
	return NULL;
}

static int end_connect(struct cli_end *pub, const struct xtal_descriptor *peer)
{
	urma_import_seg_flag_t flag = { .bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						     URMA_ACCESS_ATOMIC };
	urma_seg_t seg = { .ubva = { .uasid = peer->uasid, .va = peer->va },
			   .len = peer->len,
			   .attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			   .attr.bs.access = flag.bs.access,
			   .token_id = peer->token_id };
	struct end *e = end_of(pub);

	memcpy(seg.ubva.eid.raw, peer->eid, sizeof(peer->eid));
	e->peer = *peer;
	e->their_token.token = peer->token;
	e->remote = urma_import_seg(e->ctx, &seg, &e->their_token, 0, flag);
	return e->remote ? 0 : refused("urma_import_seg");
}

static uint32_t end_queue_id(const struct cli_end *pub, uint32_t queue)
{
	return ((const struct end *)pub)->lane[queue].jetty->jetty_id.id;
}

static int end_pair(struct cli_end *pub, uint32_t queue, uint32_t id)
{
	struct end *e = end_of(pub);
	urma_rjetty_t rjetty = { .jetty_id = { .uasid = e->peer.uasid, .id = id },
				 .trans_mode = URMA_TM_RM,
				 .type = URMA_JETTY,
				 .flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
				 .tp_type = URMA_CTP };

	memcpy(rjetty.jetty_id.eid.raw, e->peer.eid, sizeof(e->peer.eid));
	if (e->lane[queue].peer)
		return cli_fail("queue %u has its pair already", queue);
	e->lane[queue].peer = urma_import_jetty(e->ctx, &rjetty, &e->their_token);
	return e->lane[queue].peer ? 0 : refused("urma_import_jetty");
}

static const void *end_handle(const struct cli_end *pub, uint32_t queue)
{
	return ((const struct end *)pub)->lane[queue].jetty;
}

static int end_post(struct cli_end *pub, uint32_t queue, const struct cli_request *r)
{
	struct end *e = end_of(pub);
	uint32_t len = (uint32_t)r->len;
	urma_sge_t here = { .addr = r->local, .len = len, .tseg = e->seg };
	urma_sge_t there[2] = { { .addr = r->remote, .len = len, .tseg = e->remote },
				{ .addr = r->notify, .len = 8, .tseg = e->remote } };
	urma_jfs_wr_t wr = { .tjetty = e->lane[queue].peer, .flag.bs.complete_enable = 1 }, *bad;
	urma_sg_t local = { &here, 1 }, remote = { there, r->code == CLI_NOTIFY ? 2 : 1 };

	switch ((enum cli_opcode)r->code) {
	case CLI_WRITE:
		wr.opcode = URMA_OPC_WRITE;
		wr.rw = (urma_rw_wr_t){ .src = local, .dst = remote };
		break;
	case CLI_READ:
		wr.opcode = URMA_OPC_READ;
		wr.rw = (urma_rw_wr_t){ .src = remote, .dst = local };
		break;
	case CLI_NOTIFY:
	case CLI_WRITE_IMM:
		wr.opcode = r->code == CLI_NOTIFY ? URMA_OPC_WRITE_NOTIFY : URMA_OPC_WRITE_IMM;
		wr.rw = (urma_rw_wr_t){ .src = local, .dst = remote, .notify_data = r->a };
		break;
	case CLI_CAS:
		wr.opcode = URMA_OPC_CAS;
		wr.cas = (urma_cas_wr_t){
			.dst = there, .src = &here, .cmp_data = r->a, .swap_data = r->b
		};
		break;
	case CLI_SWAP:
		wr.opcode = URMA_OPC_SWAP;
		wr.cas = (urma_cas_wr_t){ .dst = there, .src = &here, .swap_data = r->a };
		break;
	case CLI_FAA:
		wr.opcode = URMA_OPC_FADD;
		wr.faa = (urma_faa_wr_t){ .dst = there, .src = &here, .operand = r->a };
		break;
	case CLI_SEND:
		wr.opcode = URMA_OPC_SEND;
		wr.send = (urma_send_wr_t){ .src = local };
		break;
	}
	if (urma_post_jetty_send_wr(e->lane[queue].jetty, &wr, &bad))
		return cli_fail("%s was refused: %s", cli_opcode_name(r->code), xtal_last_error());
	return 0;
}

/* Takes records that must all be good. */
static int take(urma_jfc_t *jfc, const char *what, uint32_t count, uint64_t *bytes)
{
	urma_cr_t cr[CLI_POLL_AT_ONCE];
	int n = urma_poll_jfc(jfc, (int)count, cr);

	if (n < 0)
		return cli_fail("polling failed: %s", xtal_last_error());
	for (int i = 0; i < n; i++) {
		int status = (int)cr[i].status;

		if (status != URMA_CR_SUCCESS)
			return cli_fail("%s ended with %s: %s", what, xtal_status_name(status),
					xtal_status_text(status));
		*bytes += cr[i].completion_len;
	}
	return n;
}

static int end_poll(struct cli_end *pub, uint32_t queue, uint32_t code, uint32_t count,
		    uint64_t *bytes)
{
	return take(end_of(pub)->lane[queue].sent, cli_opcode_name(code), count, bytes);
}

static int end_receive(struct cli_end *pub, uint32_t queue, void *base, uint32_t len)
{
	struct end *e = end_of(pub);
	urma_sge_t sge = { .addr = (uintptr_t)base, .len = len, .tseg = e->seg };
	urma_jfr_wr_t wr = { .src = { &sge, len ? 1 : 0 } }, *bad;

	if (urma_post_jetty_recv_wr(e->lane[queue].jetty, &wr, &bad))
		return cli_fail("a receive was refused: %s", xtal_last_error());
	return 0;
}

static int end_received(struct cli_end *pub, uint32_t queue, uint64_t *bytes)
{
	return take(end_of(pub)->lane[queue].arrived, "a receive", CLI_POLL_AT_ONCE, bytes);
}

/* In state ERROR receives come back; then the queue begins anew. */
static int end_withdraw(struct cli_end *pub, uint32_t queue)
{
	static const urma_jfr_state_t states[] = { URMA_JFR_STATE_ERROR, URMA_JFR_STATE_RESET,
						   URMA_JFR_STATE_READY };
	struct lane *l = &end_of(pub)->lane[queue];
	urma_cr_t cr[CLI_POLL_AT_ONCE];
	int n;

	for (unsigned i = 0; i < sizeof(states) / sizeof(*states); i++) {
		urma_jfr_attr_t attr = { .mask = JFR_STATE, .state = states[i] };

		if (urma_modify_jfr(l->jfr, &attr))
			return refused("urma_modify_jfr");
	}
	do
		n = urma_poll_jfc(l->arrived, CLI_POLL_AT_ONCE, cr);
	while (n > 0);
	return n;
}

const struct cli_api cli_api_urma = {
	.name = "urma",
	.opcodes = (1u << CLI_OPCODE_COUNT) - 1,
	.open = end_open,
	.close = end_close,
	.connect = end_connect,
	.handle = end_handle,
	.post = end_post,
	.poll = end_poll,
	.queue_id = end_queue_id,
	.pair = end_pair,
	.receive = end_receive,
	.received = end_received,
	.withdraw = end_withdraw,
};
