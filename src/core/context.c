/* SPDX-License-Identifier: MIT */
/* Contexts: opening (a random port that the kernel arbitrates), closing. */
#include "core/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/event_queue.h"
#include "core/fault.h"
#include "core/link.h"
#include "core/log.h"
#include "core/security.h"
#include "core/server.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/tcp.h"
#include "os/thread.h"

#define PORT_TRIES 200

const char *xtal_context_name(struct xtal_eid eid, uint16_t port, char *buf, size_t size)
{
	snprintf(buf, size, "xtal/%016llx%016llx/%u", (unsigned long long)eid.hi,
		 (unsigned long long)eid.lo, port);
	return buf;
}

/* Listens on the TCP port of the same number too, where peers may come over TCP. */
static int take_tcp_port(struct xtal_context *ctx)
{
	struct xtal_os_tcp_address at = { .eid = ctx->dev->eid, .port = ctx->port };
	int err = 0;

	if (xtal_config_tcp(ctx->dev->eid))
		err = xtal_os_tcp_listen(&at, &ctx->tcp.listener.fd);
	return err == -EACCES ? -EADDRINUSE : err; /* below 1024 */
}

/* Draws ports until one is free. Errors: -EADDRINUSE, -errno. */
static int take_port(struct xtal_context *ctx)
{
	char name[64];
	int err = -EADDRINUSE;

	for (unsigned i = 0; i < PORT_TRIES && err == -EADDRINUSE; i++) {
		uint16_t draw;

		err = xtal_os_random(&draw, sizeof(draw));
		if (err)
			return err;
		ctx->port = (uint16_t)(draw % 0xfffe + 1);
		xtal_context_name(ctx->dev->eid, ctx->port, name, sizeof(name));
		err = xtal_os_listen(name, &ctx->listener.fd);
		if (err)
			continue;
		err = take_tcp_port(ctx);
		if (err) {
			xtal_os_close(ctx->listener.fd);
			ctx->listener.fd = -1;
		}
	}
	return err;
}

struct open_call {
	struct xtal_context *ctx;
	int err;
};

static void open_on_agent(void *arg)
{
	struct open_call *c = arg;

	c->err = xtal_server_open(c->ctx);
	if (!c->err)
		c->err = xtal_tcp_server_open(c->ctx);
}

static void close_on_agent(void *arg)
{
	xtal_tcp_server_close(arg);
	xtal_server_close(arg);
}

int xtal_context_open(const struct xtal_device *dev, struct xtal_context **out)
{
	struct xtal_context *ctx;
	struct open_call call;
	char why[512];
	uint64_t probe;
	int err = xtal_security_check(dev, why, sizeof(why));

	if (err) {
		xtal_refuse("xtal", "context on %s (%s): %s", dev->name, dev->interface, why);
		return err;
	}
	err = xtal_fault_begin();
	if (err)
		return err;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	call = (struct open_call){ .ctx = ctx };
	ctx->dev = dev;
	ctx->listener.fd = ctx->spare_fd = -1;
	ctx->tcp.listener.fd = ctx->tcp.spare_fd = -1;
	xtal_list_init(&ctx->sessions);
	xtal_list_init(&ctx->links);
	xtal_list_init(&ctx->queues);
	xtal_list_init(&ctx->serving.sessions);
	xtal_list_init(&ctx->tcp.polled);
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(ctx->endpoints); i++)
		xtal_list_init(&ctx->endpoints[i]);
	err = xtal_os_random(&ctx->incarnation, sizeof(ctx->incarnation));
	if (!err)
		err = xtal_os_random(&probe, sizeof(probe));
	if (err)
		goto free_ctx;
	atomic_init(&ctx->probe_word, probe);
	err = xtal_event_queue_open(&ctx->async);
	if (err)
		goto free_ctx;
	err = xtal_registry_init(&ctx->registry);
	if (err)
		goto close_async;
	err = take_port(ctx);
	if (err)
		goto fini_registry;
	xtal_engine_track_fd(ctx->listener.fd);
	xtal_engine_track_fd(ctx->tcp.listener.fd);
	err = xtal_engine_enter(ctx);
	if (err)
		goto close_listener;
	xtal_agent_call(open_on_agent, &call);
	err = call.err;
	if (err)
		goto leave;
	if (xtal_config()->allow_cma)
		xtal_os_allow_cma();
	xtal_log(XTAL_LOG_DEBUG, "xtal", "context on %s has port %u", dev->name, ctx->port);
	*out = ctx;
	return 0;
leave:
	xtal_agent_call(close_on_agent, ctx);
	xtal_engine_hide(ctx);
	xtal_engine_leave(ctx);
close_listener:
	xtal_engine_close_fd(ctx->listener.fd);
	xtal_engine_close_fd(ctx->tcp.listener.fd);
fini_registry:
	xtal_registry_fini(&ctx->registry);
close_async:
	xtal_event_queue_close(ctx->async);
free_ctx:
	free(ctx);
	return err;
}

int xtal_context_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	int err = xtal_engine_setup_fork();

	/* Registered after the core's: prepare runs before it, parent and child after it. */
	return err ? err : xtal_os_atfork(prepare, parent, child);
}

/* Whatever the agent was in the middle of is over when it has come to this. */
static void nothing(void *arg)
{
	(void)arg;
}

static void lose_self(struct xtal_context *other, void *arg)
{
	xtal_links_close(other, arg);
}

/* Objects of the context that still exist: false, and a sentence that names them. */
static bool is_empty(struct xtal_context *ctx)
{
	struct {
		const char *name;
		uint32_t count;
	} kinds[] = {
		{ "queues", 0 },
		{ "segments", 0 },
		{ "endpoints", atomic_load(&ctx->endpoint_count) },
		{ "receive queues", atomic_load(&ctx->receive_queue_count) },
		{ "completion queues", atomic_load(&ctx->cq_count) },
		{ "event channels", atomic_load(&ctx->channel_count) },
	};
	char text[160] = "";
	size_t len = 0;

	xtal_lock(&ctx->queues_lock);
	kinds[0].count = ctx->queue_count;
	xtal_unlock(&ctx->queues_lock);
	xtal_lock(&ctx->registry.lock);
	kinds[1].count = ctx->registry.count;
	xtal_unlock(&ctx->registry.lock);
	for (unsigned i = 0; i < XTAL_ARRAY_SIZE(kinds); i++)
		if (kinds[i].count)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u %s",
						len ? ", " : "", kinds[i].count, kinds[i].name);
	if (len)
		xtal_explain("context with port %u: %s still exist", ctx->port, text);
	return !len;
}

int xtal_context_close(struct xtal_context **ctxp)
{
	struct xtal_context *ctx = *ctxp;

	if (ctx->foreign) {
		*ctxp = NULL; /* the parent's: its threads may have been inside, so it stays */
		return 0;
	}
	if (!is_empty(ctx))
		return -EBUSY;
	*ctxp = NULL;
	xtal_engine_hide(ctx);
	xtal_agent_call(close_on_agent, ctx);
	xtal_engine_each(lose_self, ctx);
	xtal_links_close(ctx, NULL);
	/* It may be ending one of our links: those are out of the list, but it uses ctx yet. */
	xtal_agent_call(nothing, NULL);
	xtal_engine_leave(ctx);
	xtal_registry_fini(&ctx->registry);
	xtal_event_queue_close(ctx->async);
	free(ctx);
	return 0;
}

const struct xtal_device *xtal_context_device(const struct xtal_context *ctx)
{
	return ctx->dev;
}

uint32_t xtal_context_tid(const struct xtal_context *ctx)
{
	return xtal_incarnation_bits(ctx->incarnation) << 16 | ctx->port;
}

bool xtal_context_is_foreign(const struct xtal_context *ctx)
{
	return ctx->foreign;
}
