/* SPDX-License-Identifier: MIT */
/*
 * 04 - Completions in an event loop.
 *
 * A server of many things has one epoll loop. This one posts a stream of writes, keeps a few
 * of them in flight, and hears of their completions, and of asynchronous events, through
 * epoll like of everything else; a timer stands for everything else.
 *
 *   04_epoll [operations]    default 1000
 *
 * Exit status: 0 when every operation ended well and the last bytes arrived.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cdma_u_lib.h>
#include <xtal.h>

#define DEPTH   16
#define SIZE    4096
#define LIMIT   60 /* seconds */
#define RECORDS 8
#define MOST    1000000000u

/* Where the operations stand. */
struct stream {
	struct dma_queue *queue;
	struct dma_seg *remote, *local;
	uint64_t wanted, posted, ended, failed;
};

static _Alignas(SIZE) unsigned char source[SIZE], destination[SIZE]; /* whole pages */

static int failed(const char *what)
{
	const char *why = xtal_last_error();

	fprintf(stderr, "%s%s%s\n", what, *why ? ": " : "", why);
	return -1;
}

/* Posts until the queue is full or nothing is left to do. */
static int post_more(struct stream *s)
{
	while (s->posted < s->wanted && s->posted - s->ended < DEPTH) {
		s->queue->cfg.user_ctx = s->posted;
		if (dma_write(s->queue, s->remote, s->local) != DMA_STATUS_OK)
			return failed("cannot write");
		s->posted++;
	}
	return 0;
}

/* Takes all there is: an edge-triggered descriptor tells only once. */
static int on_completions(struct stream *s)
{
	struct dma_cr cr[RECORDS];
	int got;

	while ((got = dma_poll_queue(s->queue, RECORDS, cr)) > 0) {
		for (int i = 0; i < got; i++) {
			if (cr[i].user_ctx != s->ended++)
				fprintf(stderr, "out of order\n");
			if (cr[i].status == DMA_CR_SUCCESS || s->failed++ > 0)
				continue; /* one complaint is enough */
			fprintf(stderr, "operation %llu: %s\n", (unsigned long long)cr[i].user_ctx,
				xtal_status_text((int)cr[i].status));
		}
		if (post_more(s))
			return -1;
	}
	return got < 0 ? failed("cannot poll") : 0;
}

static int on_event(struct dma_context *ctx)
{
	struct dma_aeqe event = { .duration = 0 }; /* just look */

	if (dma_wait_ae(ctx, &event) == 1)
		fprintf(stderr, "asynchronous event %u of queue %u\n", event.event_type,
			event.queue_id);
	return -1; /* a queue that broke is not repaired here */
}

static int watch(int epoll, int fd, uint32_t how)
{
	struct epoll_event event = { .events = how, .data.fd = fd };

	return fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)
		       ? failed("cannot watch a descriptor")
		       : 0;
}

/* The loop of the program. */
static int run(int epoll, struct dma_context *ctx, struct stream *s, int timer)
{
	int completions = xtal_queue_fd(s->queue);
	uint64_t ticks = 0, seconds = 0;

	if (watch(epoll, completions, EPOLLIN | EPOLLET) || watch(epoll, ctx->async_fd, EPOLLIN) ||
	    watch(epoll, timer, EPOLLIN) || post_more(s))
		return -1;
	while (s->ended < s->wanted) {
		struct epoll_event event;
		int status = 0;

		if (epoll_wait(epoll, &event, 1, -1) != 1)
			continue; /* a signal */
		if (event.data.fd == completions)
			status = on_completions(s);
		else if (event.data.fd == ctx->async_fd)
			status = on_event(ctx);
		else if (read(timer, &ticks, sizeof(ticks)) == sizeof(ticks))
			seconds += ticks;
		if (status || seconds > LIMIT)
			return failed("the loop ended early");
	}
	return 0;
}

/* Makes a segment of the destination and the stream into it. Returns 0 when all went well. */
static int with_context(struct dma_context *ctx, struct stream *s, int epoll, int timer)
{
	struct queue_cfg queue_cfg = { .queue_depth = DEPTH };
	struct dma_seg_cfg cfg = { .addr = (uintptr_t)source, .len = SIZE };
	int status = -1;

	queue_cfg.rmt_eid = ctx->dma_dev->attr.eid;
	s->queue = dma_alloc_queue(ctx, &queue_cfg);
	s->local = dma_register_seg(ctx, &cfg);
	cfg.addr = (uintptr_t)destination;
	/* Segments are values, and this process owns both: no need to import. */
	s->remote = dma_register_seg(ctx, &cfg);
	if (s->queue && s->local && s->remote)
		status = run(epoll, ctx, s, timer);
	else
		failed("cannot set up");
	dma_free_queue(s->queue); /* NULL is fine for all three */
	dma_unregister_seg(ctx, s->remote);
	dma_unregister_seg(ctx, s->local);
	return status;
}

int main(int argc, char **argv)
{
	const struct itimerspec every_second = { { 1, 0 }, { 1, 0 } };
	struct stream stream = { .wanted = 1000 };
	int epoll = epoll_create1(EPOLL_CLOEXEC), status = -1;
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct dma_context *ctx = NULL;
	struct dma_device *list;
	uint32_t count = 0;

	if (argc > 1)
		stream.wanted = strtoull(argv[1], NULL, 10);
	if (argc > 2 || stream.wanted < 1 || stream.wanted > MOST) {
		fprintf(stderr, "usage: %s [operations], 1 to %u\n", argv[0], MOST);
		return 2;
	}
	for (size_t i = 0; i < SIZE; i++)
		source[i] = (unsigned char)(i * 31 + 5);
	list = dma_get_device_list(&count);
	if (list && count > 0)
		ctx = dma_create_context(&list[0]);
	if (ctx && epoll >= 0 && timerfd_settime(timer, 0, &every_second, NULL) == 0)
		status = with_context(ctx, &stream, epoll, timer);
	else
		failed("no device, context, epoll or timer");
	if (status == 0 && memcmp(source, destination, SIZE) != 0)
		status = failed("the destination differs");
	printf("%llu operations posted, %llu ended, %llu of them badly\n",
	       (unsigned long long)stream.posted, (unsigned long long)stream.ended,
	       (unsigned long long)stream.failed);

	dma_delete_context(ctx);
	dma_free_device_list(list, count);
	close(timer);
	close(epoll);
	return status == 0 && stream.failed == 0 && stream.posted == stream.wanted ? 0 : 1;
}
