/* SPDX-License-Identifier: MIT */
/*
 * How a link comes up: connect, hello, welcome, try out cma by moving bytes; then questions
 * and grants. Runs on the agent. The other side is checked, not trusted.
 */
#include "core/connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/carrier.h"
#include "core/config.h"
#include "core/context_impl.h"
#include "core/engine.h"
#include "core/log.h"
#include "core/messages.h"
#include "os/life.h"
#include "os/proc.h"
#include "os/sock.h"
#include "os/thread.h"
#include "os/vm.h"
#include "wire/control.h"
#include "xtal.h"

/* Questions at the owner at once: its answers must all fit into the socket, since it ends a
 * session whose peer does not take them. */
#define MAX_QUESTIONS 32u

/* Messages that are taken in one go. */
#define MAX_MESSAGES 64u

/* So often may an owner hang up before its welcome. */
#define MAX_HANGUPS 3u

static void close_fds(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		xtal_os_close(fds[i]);
}

/* Really moves 8 bytes in both directions. Fills the link's verdict on cma. */
static void try_cma(struct xtal_link *link, const struct xtal_control *c)
{
	uint64_t seen = 0, mark = c->probe_value;
	struct xtal_os_iov mine = { &seen, sizeof(seen) };
	struct xtal_os_iov theirs = { (void *)(uintptr_t)c->probe_addr, sizeof(seen) };
	int64_t n;

	link->cma = false;
	if (!(xtal_config()->paths & 1u << XTAL_PATH_CMA)) {
		snprintf(link->cma_text, sizeof(link->cma_text), "not in XTAL_PATHS here");
		return;
	}
	if (!(c->flags & XTAL_CONTROL_CMA)) {
		snprintf(link->cma_text, sizeof(link->cma_text), "%s",
			 link->other_user ? "the owner's process is another user's"
					  : "not in the owner's XTAL_PATHS");
		return;
	}
	if (!link->pid) {
		snprintf(link->cma_text, sizeof(link->cma_text),
			 "the owner's pid is not visible here (other PID namespace)");
		return;
	}
	n = xtal_os_peer_read(link->pid, &mine, 1, &theirs, 1);
	if (n == sizeof(seen) && seen != c->probe_value)
		n = -ESRCH; /* some other process has that pid here */
	if (n == sizeof(seen)) {
		mine.base = &mark;
		n = xtal_os_peer_write(link->pid, &mine, 1, &theirs, 1);
	}
	if (n == sizeof(seen)) {
		link->cma = true;
		snprintf(link->cma_text, sizeof(link->cma_text),
			 "8 bytes read from and written to process %d", link->pid);
		return;
	}
	snprintf(link->cma_text, sizeof(link->cma_text), "process_vm_readv of process %d: %s%s",
		 link->pid, strerror(n < 0 ? (int)-n : EIO),
		 n == -EPERM ? " (Yama ptrace_scope: XTAL_ALLOW_CMA=1 at the owner; or seccomp, "
			       "other user, not dumpable)"
			     : "");
}

/* The paths that begin with a look at this host. */
#define ONE_HOST (1u << XTAL_PATH_MAP | 1u << XTAL_PATH_CMA | 1u << XTAL_PATH_RING)

void xtal_connect_run(struct xtal_link *link)
{
	struct xtal_control hello;
	struct xtal_os_cred cred;
	char name[64], eid[48];
	int fd, err;
	bool tcp;

	if (link->sock.fd >= 0)
		return;
	xtal_text_eid(link->eid, eid, sizeof(eid));
	if (!(link->tid & 0xffff) || !(link->tid >> 16) || link->tid >> 16 > XTAL_INCARNATION_ANY) {
		xtal_link_fail(
			link, XTAL_REMOTE_ACCESS,
			"tid 0x%x names no context (a tid is incarnation 1..15 << 16 | port)",
			link->tid);
		return;
	}
	xtal_context_name(link->eid, (uint16_t)link->tid, name, sizeof(name));
	/* With self alone, too: an owner of one of our own contexts says what is wrong with it. */
	tcp = xtal_config_tcp(link->eid);
	err = xtal_config()->paths & ONE_HOST || !tcp ? xtal_os_connect(name, &fd) : -ECONNREFUSED;
	if (err == -ECONNREFUSED && tcp) {
		snprintf(link->cma_text, sizeof(link->cma_text), "%s",
			 xtal_config()->paths & ONE_HOST ? "nobody on this host holds the port"
							 : "not in XTAL_PATHS here");
		err = xtal_tcp_link_begin(link);
		if (!err)
			return;
	}
	if (err == -EAGAIN)
		return; /* the owner's backlog is full; the tick tries again until the deadline */
	if (err) {
		xtal_link_fail(link, XTAL_UNREACHABLE,
			       err == -ECONNREFUSED ? "nobody holds port %u of %s here (%s)"
						    : "no connection to port %u of %s: %s",
			       link->tid & 0xffff, eid, strerror(-err));
		return;
	}
	err = xtal_os_peer_cred(fd, &cred);
	if (!err && cred.uid != xtal_os_uid() && !xtal_config()->any_uid)
		err = -EPERM;
	if (err) {
		xtal_os_close(fd);
		xtal_link_fail(link, XTAL_UNREACHABLE,
			       "port %u of %s is held by another user (uid %u, we are %u); "
			       "XTAL_PEERS=any would allow it",
			       link->tid & 0xffff, eid, cred.uid, xtal_os_uid());
		return;
	}
	link->pid = cred.pid;
	link->other_user = cred.uid != xtal_os_uid();
	link->sock.fd = fd;
	xtal_engine_track_fd(fd);
	if (!xtal_os_peer_pidfd(fd, cred.pid, &link->death.fd))
		xtal_engine_track_fd(link->death.fd);
	else
		link->death.fd = -1;
	xtal_control_init(&hello, XTAL_CONTROL_HELLO);
	hello.flags = xtal_lane_full_fence() ? 0 : XTAL_CONTROL_FENCED;
	hello.incarnation = link->tid >> 16;
	hello.port = link->tid & 0xffff;
	hello.pipeline = link->pipeline;
	err = xtal_os_send(fd, &hello, sizeof(hello), NULL, 0);
	if (err == -EPIPE || err == -ECONNRESET) {
		/* We were stopped meanwhile and the owner lost its patience, or it has died. The
		 * tick tries again. */
		xtal_engine_close_fd(link->sock.fd);
		xtal_engine_close_fd(link->death.fd);
		link->sock.fd = link->death.fd = -1;
		return;
	}
	if (!err)
		err = xtal_connect_watch(link);
	if (err)
		xtal_link_fail(link, XTAL_UNREACHABLE, "port %u of %s: handshake: %s",
			       link->tid & 0xffff, eid, strerror(-err));
}

/* Under the link's lock. fds: slot table, link memory. */
static int take_welcome(struct xtal_link *link, const struct xtal_control *c, const int *fds)
{
	size_t ring = xtal_ring_layout_size(c->ring_bytes);
	uint64_t size = 0;
	void *table = NULL, *memory = NULL;
	struct xtal_requester_config rc = {
		.slots = link->slots,
		.window = XTAL_LINK_WINDOW,
		.piece = XTAL_MSG_PIECE,
		.incarnation = c->incarnation,
		.first_seq = xtal_config()->counter_start + 1,
		.margin = (uint64_t)xtal_config()->timeout_ms * 1000000 / 20,
		.peer_stamp = c->clock,
		.peer_stamp_at = xtal_os_now(),
	};
	int err;

	if (!ring || !xtal_os_sealed_shrink(fds[0]) || !xtal_os_sealed_shrink(fds[1]))
		return -EPROTO;
	err = xtal_os_object_size(fds[0], &size);
	if (err || size < sizeof(struct xtal_slot_table))
		return err ? err : -EPROTO;
	err = xtal_os_object_size(fds[1], &size);
	if (err || size < xtal_board_bytes() + ring)
		return err ? err : -EPROTO;
	err = xtal_os_map(fds[0], 0, sizeof(struct xtal_slot_table), false, &table);
	if (err)
		return err;
	err = xtal_os_map(fds[1], 0, size, true, &memory);
	if (err)
		goto unmap_table;
	err = xtal_ring_attach((uint8_t *)memory + xtal_board_bytes(), ring, &link->ring,
			       XTAL_RING_INITIATOR);
	if (err)
		goto unmap_memory;
	if (xtal_ring_max_payload(c->ring_bytes) < rc.piece)
		rc.piece = xtal_ring_max_payload(c->ring_bytes);
	err = xtal_requester_init(&link->requester, &rc);
	if (err)
		goto unmap_memory;
	link->table = table;
	link->memory = memory;
	link->memory_len = size;
	link->board = memory;
	return 0;
unmap_memory:
	xtal_os_unmap(memory, size);
unmap_table:
	xtal_os_unmap(table, sizeof(struct xtal_slot_table));
	return err;
}

static void welcome(struct xtal_link *link, const struct xtal_control *c, const int *fds,
		    unsigned nfds)
{
	int err = -EPROTO;

	xtal_lock(&link->lock);
	if (nfds == 2 && atomic_load(&link->state) == XTAL_LINK_CONNECTING &&
	    xtal_incarnation_fits(c->incarnation, link->tid >> 16))
		err = take_welcome(link, c, fds);
	if (!err) {
		link->full_fence = xtal_lane_full_fence() || !(c->flags & XTAL_CONTROL_FENCED);
		link->peer_ring = c->flags & XTAL_CONTROL_RING;
		try_cma(link, c);
		xtal_messages_open(link);
		atomic_store(&link->state, XTAL_LINK_UP);
		xtal_link_wake(link, XTAL_WAIT_UP, UINT32_MAX);
	}
	xtal_unlock(&link->lock);
	if (err) {
		xtal_link_fail(link, XTAL_UNREACHABLE, "the owner's welcome is not usable: %s",
			       strerror(-err));
		return;
	}
	xtal_agent_stop_timer(&link->connecting); /* or an idle process wakes for it */
	xtal_count(&xtal_totals.links_made, 1);
	xtal_log(XTAL_LOG_INFO, "xtal", "link %u to port %u (process %d) is up; cma: %s%s",
		 link->id, link->tid & 0xffff, link->pid, link->cma_text,
		 link->full_fence ? "; full fences" : "");
	xtal_connect_ask(link);
}

/* The granted range lies in the part to map, and both are what the rights ask for. */
static bool part_valid(const struct xtal_control *c)
{
	bool write = c->rights & (XTAL_RIGHT_WRITE | XTAL_RIGHT_ATOMIC);

	return c->map_offset % xtal_os_page_size() == 0 && c->map_len &&
	       c->map_offset + c->map_len > c->map_offset && c->offset >= c->map_offset &&
	       c->offset - c->map_offset <= c->map_len &&
	       c->len <= c->map_len - (c->offset - c->map_offset) &&
	       (!write || c->flags & XTAL_CONTROL_WRITABLE);
}

/* Under the link's lock: the mapping of the object's part, shared by all grants in it. Every
 * grant is checked, also one that finds its window mapped: it says itself where in it it lies. */
static int map_window(struct xtal_link *link, const struct xtal_control *c, int fd,
		      struct xtal_window **out)
{
	bool writable = c->flags & XTAL_CONTROL_WRITABLE;
	uint64_t page = xtal_os_page_size(), size;
	struct xtal_window *w;
	bool sealed;
	int err;

	if (!part_valid(c))
		return -EPROTO;
	for (struct xtal_list *n = link->windows.next; n != &link->windows; n = n->next) {
		w = xtal_container_of(n, struct xtal_window, node);
		if (w->object == c->object && w->offset == c->map_offset && w->len == c->map_len &&
		    w->writable == writable) {
			w->refs++;
			*out = w;
			return 0;
		}
	}
	err = xtal_os_object_size(fd, &size);
	if (err)
		return err;
	/* Our own look at the seal counts, not the owner's word. What cannot shrink and is all
	 * there can be touched without a guard. */
	sealed = xtal_os_sealed_shrink(fd);
	if (sealed && c->map_offset + c->map_len > (size + page - 1) / page * page)
		return -EPROTO;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct xtal_window){ .refs = 1,
				   .object = c->object,
				   .offset = c->map_offset,
				   .len = c->map_len,
				   .writable = writable,
				   .sealed = sealed };
	err = xtal_os_map(fd, w->offset, w->len, writable, &w->addr);
	if (err) {
		free(w);
		return err;
	}
	xtal_list_append(&link->windows, &w->node);
	*out = w;
	return 0;
}

/* Under the link's lock: chooses how g is reached. */
static void choose_path(struct xtal_link *link, struct xtal_grant *g, const struct xtal_control *c,
			const int *fds, unsigned nfds)
{
	int err;

	g->path = XTAL_PATH_NONE;
	snprintf(g->map_text, sizeof(g->map_text), "%s", c->text);
	if (nfds && xtal_config()->paths & 1u << XTAL_PATH_MAP) {
		err = map_window(link, c, fds[0], &g->window);
		if (!err) {
			g->reach.kind = g->window->sealed ? XTAL_REACH_DIRECT : XTAL_REACH_GUARDED;
			g->reach.base = (uint8_t *)g->window->addr + (c->offset - c->map_offset);
			g->path = XTAL_PATH_MAP;
			if (g->reach.kind == XTAL_REACH_GUARDED)
				snprintf(g->map_text, sizeof(g->map_text),
					 "%.100s; not sealed "
					 "against shrinking, so the kernel copies",
					 c->text);
			return;
		}
		snprintf(g->map_text, sizeof(g->map_text), "mapping the owner's object: %s",
			 strerror(-err));
	} else if (nfds) {
		snprintf(g->map_text, sizeof(g->map_text), "not in XTAL_PATHS here");
	}
	if (link->cma) {
		g->reach.kind = XTAL_REACH_CMA;
		g->reach.pid = link->pid;
		g->reach.life =
			&((const struct xtal_os_life *)(const void *)link->table->life)->word;
		g->path = XTAL_PATH_CMA;
	} else if (link->peer_ring && xtal_config()->paths & 1u << XTAL_PATH_RING) {
		g->reach.kind = XTAL_REACH_MESSAGE;
		g->path = XTAL_PATH_RING;
	}
}

/* Under the link's lock. */
static int take_grant(struct xtal_link *link, const struct xtal_resolve *r,
		      const struct xtal_control *c, const int *fds, unsigned nfds)
{
	struct xtal_grant *g;

	if (c->slot >= XTAL_MAX_SEGMENTS || c->addr > r->addr || c->addr + c->len < c->addr ||
	    r->addr + r->len > c->addr + c->len)
		return -EPROTO;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct xtal_grant){ .refs = 1,
				  .link = link,
				  .lo = c->addr,
				  .hi = c->addr + c->len,
				  .token = r->token,
				  .index = r->index,
				  .token_valid = r->token_valid,
				  .rights = c->rights,
				  .slot = c->slot,
				  .word = c->word,
				  .slot_word = &link->table->word[c->slot],
				  .reach = { .lo = c->addr } };
	choose_path(link, g, c, fds, nfds);
	if (xtal_link_keep(link, g)) {
		if (g->window)
			g->window->refs--; /* the window stays for the link's life */
		free(g);
		return -ENOMEM;
	}
	return 0;
}

/* A grant or a denial. */
static int answer(struct xtal_link *link, const struct xtal_control *c, const int *fds,
		  unsigned nfds)
{
	struct xtal_resolve *r = NULL;
	int err = 0;

	xtal_lock(&link->lock);
	for (struct xtal_list *n = link->resolves.next; n != &link->resolves; n = n->next) {
		r = xtal_container_of(n, struct xtal_resolve, node);
		if (r->id == c->id && r->sent)
			break;
		r = NULL;
	}
	if (!r) {
		err = -EPROTO;
	} else {
		xtal_list_remove(&r->node);
		if (c->type == XTAL_CONTROL_GRANT && !r->hot)
			err = take_grant(link, r, c, fds, nfds);
		else if (!r->hot)
			xtal_link_deny(link, r->id, c->status, c->flags & XTAL_CONTROL_RETRY,
				       c->text);
		free(r);
		xtal_link_wake(link, c->id, UINT32_MAX);
	}
	xtal_unlock(&link->lock);
	return err;
}

/* The owner has hung up before its welcome. Maybe it lost its patience while we were stopped, or
 * somebody else took over the port. True: it is asked again. */
static bool ask_again(struct xtal_link *link)
{
	if (atomic_load(&link->state) != XTAL_LINK_CONNECTING || link->hangups == MAX_HANGUPS)
		return false;
	link->hangups++;
	xtal_agent_unwatch(&link->sock);
	xtal_agent_unwatch(&link->death);
	xtal_engine_close_fd(link->sock.fd);
	xtal_engine_close_fd(link->death.fd);
	link->sock.fd = link->death.fd = -1;
	xtal_link_again(link);
	return true;
}

/* Takes what the socket has. */
static void sock_ready(struct xtal_source *src)
{
	struct xtal_link *link = xtal_container_of(src, struct xtal_link, sock);

	/* The rest at the next look: no owner keeps the agent from the others. */
	for (unsigned i = 0; i < MAX_MESSAGES; i++) {
		struct xtal_control c;
		int fds[XTAL_OS_MAX_FDS];
		unsigned nfds = 0;
		int n = xtal_os_recv(src->fd, &c, sizeof(c), fds, &nfds), err = 0;

		if (n == -EAGAIN)
			break;
		if (xtal_os_nudged(n, nfds))
			continue;
		if (n <= 0 && ask_again(link))
			return;
		if (n <= 0) {
			xtal_link_fail(link, XTAL_UNREACHABLE,
				       "the owner of port %u closed its context or died",
				       link->tid & 0xffff);
			break;
		}
		err = xtal_control_check(&c, (size_t)n, nfds);
		if (!err && c.type == XTAL_CONTROL_WELCOME) {
			welcome(link, &c, fds, nfds);
		} else if (!err && c.type == XTAL_CONTROL_REFUSE) {
			xtal_link_fail(link, c.status, "%s", c.text);
		} else if (!err && atomic_load(&link->state) == XTAL_LINK_UP &&
			   (c.type == XTAL_CONTROL_GRANT || c.type == XTAL_CONTROL_DENY)) {
			err = answer(link, &c, fds, nfds);
		} else {
			err = -EPROTO;
		}
		close_fds(fds, nfds);
		if (err)
			xtal_link_fail(link, XTAL_UNREACHABLE,
				       "the owner broke the protocol (message type %u)", c.type);
		if (atomic_load(&link->state) == XTAL_LINK_DEAD)
			break;
	}
	xtal_connect_ask(link);
}

static void death_ready(struct xtal_source *src)
{
	struct xtal_link *link = xtal_container_of(src, struct xtal_link, death);

	if (xtal_os_pidfd_dead(src->fd))
		xtal_link_fail(link, XTAL_UNREACHABLE, "process %d, the owner of port %u, died",
			       link->pid, link->tid & 0xffff);
}

int xtal_connect_watch(struct xtal_link *link)
{
	int err;

	link->sock.ready = sock_ready;
	link->death.ready = death_ready;
	err = xtal_agent_watch(&link->sock);
	if (!err && link->death.fd >= 0)
		err = xtal_agent_watch(&link->death);
	return err;
}

void xtal_connect_ask(struct xtal_link *link)
{
	unsigned asked = 0;
	int err = 0;

	xtal_lock(&link->lock);
	for (struct xtal_list *n = link->resolves.next; n != &link->resolves && !err; n = n->next) {
		struct xtal_resolve *r = xtal_container_of(n, struct xtal_resolve, node);
		struct xtal_control c;

		if (atomic_load(&link->state) != XTAL_LINK_UP || asked++ == MAX_QUESTIONS)
			break;
		if (r->sent)
			continue;
		xtal_control_init(&c, XTAL_CONTROL_RESOLVE);
		c.id = r->id;
		c.addr = r->addr;
		c.len = r->len;
		c.token = r->token;
		c.index = r->index;
		c.rights = r->rights;
		c.flags =
			(r->token_valid ? XTAL_CONTROL_TOKEN : 0) | (r->hot ? XTAL_CONTROL_HOT : 0);
		err = xtal_os_send(link->sock.fd, &c, sizeof(c), NULL, 0);
		r->sent = !err;
	}
	xtal_unlock(&link->lock);
	/* -EAGAIN: an answer brings us back here. */
	if (err && err != -EAGAIN)
		xtal_link_fail(link, XTAL_UNREACHABLE, "asking the owner of port %u: %s",
			       link->tid & 0xffff, strerror(-err));
}

void xtal_connect_unmap(struct xtal_window *w)
{
	xtal_os_unmap(w->addr, w->len);
}

void xtal_connect_stop(struct xtal_link *link)
{
	/* The socket stays open until the last reference is gone: once the owner has seen its end
	 * it no longer looks at our announcements, and a long copy may still be under way. */
	xtal_agent_unwatch(&link->sock);
	xtal_agent_unwatch(&link->death);
}

void xtal_connect_close(struct xtal_link *link)
{
	while (!xtal_list_empty(&link->windows)) {
		struct xtal_window *w =
			xtal_container_of(link->windows.next, struct xtal_window, node);

		xtal_list_remove(&w->node);
		xtal_connect_unmap(w);
		free(w);
	}
	xtal_engine_close_fd(link->sock.fd);
	xtal_engine_close_fd(link->death.fd);
	if (link->table)
		xtal_os_unmap(link->table, sizeof(struct xtal_slot_table));
	if (link->memory)
		xtal_os_unmap(link->memory, link->memory_len);
	free(link->models);
}
