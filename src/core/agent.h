/* SPDX-License-Identifier: MIT */
/*
 * The agent: one thread per process, asleep in epoll. It accepts peers, answers them, executes
 * messages for this process's memory, notices deaths, and keeps time for waiting operations.
 */
#ifndef XTAL_CORE_AGENT_H
#define XTAL_CORE_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Something with an fd. ready runs on the agent when it is readable (or what it was changed to) or
 * hung up; it may remove and free sources, its own too. */
struct xtal_source {
	int fd;
	uint64_t id; /* 0: not added */
	void (*ready)(struct xtal_source *src);
	struct xtal_source *hash_next;
};

/* Something to do on the agent. */
struct xtal_task {
	void (*run)(struct xtal_task *task);
	struct xtal_task *next;
	bool queued;
};

/* Starts the thread. Errors: -errno. */
int xtal_agent_start(void);
/* Stops it and waits for its end. */
void xtal_agent_stop(void);
bool xtal_agent_is_me(void);
/* In a forked child: there is no agent here. */
void xtal_agent_fork_child(void);

/* Runs the task soon on the agent. False: it is queued already and runs once. */
bool xtal_agent_post(struct xtal_task *task);
/* Runs fn(arg) on the agent and waits for its end (directly when called there). Holds no lock. */
void xtal_agent_call(void (*fn)(void *arg), void *arg);

/* On the agent only. Errors: -errno. */
int xtal_agent_watch(struct xtal_source *src);
void xtal_agent_unwatch(struct xtal_source *src);
/* Any thread, while src is watched: watches for something else (XTAL_OS_READABLE ...). */
void xtal_agent_change(struct xtal_source *src, unsigned what);

/* Something to do at a time; costs nothing before. On the agent only; it may be set again, or
 * freed, by run. */
struct xtal_timer {
	struct xtal_list node; /* linked while it is set */
	uint64_t at;           /* ns */
	void (*run)(struct xtal_timer *timer);
};
/* Sets it, or sets it anew. */
void xtal_agent_set_timer(struct xtal_timer *timer, uint64_t at,
			  void (*run)(struct xtal_timer *timer));
static inline bool xtal_agent_timer_is_set(const struct xtal_timer *timer)
{
	return timer->node.next && timer->node.next != &timer->node;
}
/* All zero, or set before. */
void xtal_agent_stop_timer(struct xtal_timer *timer);

/* The agent shall look at the busy queues (deadlines, missed kicks) until none is left. */
void xtal_agent_need_ticks(void);

/*
 * A ring that peers or we fill: polled by the agent between sleeps. drain returns true when
 * it did something; before_sleep returns false when frames wait (then the agent goes on).
 * On the agent only.
 */
struct xtal_drain {
	struct xtal_list node;
	struct xtal_drain *joined; /* the one that joined before */
	bool (*drain)(struct xtal_drain *d);
	bool (*before_sleep)(struct xtal_drain *d);
	void (*after_sleep)(struct xtal_drain *d);
};
void xtal_agent_add_drain(struct xtal_drain *d);
void xtal_agent_remove_drain(struct xtal_drain *d);
/* The same as add, on any thread and soon: at once when the agent is awake, else after whatever wakes
 * it. d is in no list, and stays until xtal_agent_remove_drain(). */
void xtal_agent_join_drain(struct xtal_drain *d);

/* On the agent: a source has brought work, and more of it may come soon. sources: look there too
 * before every sleep that is put off, not only now and then (else: a drain finds it). */
void xtal_agent_stay(bool sources);

/* The eventfd that wakes the agent; ours alone, no peer is given it. */
int xtal_agent_doorbell(void);

/* The lane under which the agent executes messages. */
struct xtal_lane;
struct xtal_lane *xtal_agent_lane(void);

#endif
