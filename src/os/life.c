/* SPDX-License-Identifier: MIT */
/* The engine's robust list, of the thread that keeps it; see life.h. */
#define _GNU_SOURCE
#include "os/life.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"

_Static_assert(sizeof(uint64_t) == sizeof(struct robust_list), "a list node is a pointer");
_Static_assert(FUTEX_OWNER_DIED == 1u << 30, "xtal_os_life_ended()");

static struct xtal_lock lock;
/* Last points back to the head, as the kernel wants it. */
static struct robust_list_head head = {
	.list = { &head.list },
	.futex_offset = offsetof(struct xtal_os_life, word),
};
static uint32_t keeper; /* its tid; 0: nobody */

static struct robust_list *node_of(struct xtal_os_life *life)
{
	return (struct robust_list *)(void *)&life->next;
}

static struct xtal_os_life *life_of(struct robust_list *node)
{
	return (struct xtal_os_life *)(void *)node;
}

void xtal_os_life_keep(void)
{
	xtal_lock(&lock);
	keeper = syscall(SYS_set_robust_list, &head, sizeof(head)) ? 0
								   : (uint32_t)syscall(SYS_gettid);
	for (struct robust_list *n = head.list.next; n != &head.list; n = n->next)
		atomic_store_explicit(&life_of(n)->word, keeper, memory_order_relaxed);
	xtal_unlock(&lock);
}

void xtal_os_life_begin(struct xtal_os_life *life)
{
	struct robust_list *node = node_of(life);

	xtal_lock(&lock);
	atomic_store_explicit(&life->word, keeper, memory_order_relaxed);
	node->next = head.list.next;
	atomic_signal_fence(memory_order_release); /* the kernel may look at any instruction */
	head.list.next = node;
	xtal_unlock(&lock);
}

void xtal_os_life_end(struct xtal_os_life *life)
{
	struct robust_list *at;

	xtal_lock(&lock);
	for (at = &head.list; at->next != node_of(life) && at->next != &head.list; at = at->next)
		;
	if (at->next == node_of(life)) { /* else it is the parent's */
		at->next = node_of(life)->next;
		atomic_store_explicit(&life->word, 0, memory_order_relaxed);
	}
	xtal_unlock(&lock);
}

void xtal_os_life_fork_child(void)
{
	lock = (struct xtal_lock){ 0 };
	head.list.next = &head.list;
	keeper = 0;
}
