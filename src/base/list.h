/* SPDX-License-Identifier: MIT */
/* A circular doubly linked list; an empty list or an unlinked node points to itself. */
#ifndef XTAL_BASE_LIST_H
#define XTAL_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct xtal_list {
	struct xtal_list *next, *prev;
};

static inline void xtal_list_init(struct xtal_list *n)
{
	n->next = n->prev = n;
}

static inline bool xtal_list_empty(const struct xtal_list *n)
{
	return n->next == n;
}

static inline void xtal_list_append(struct xtal_list *head, struct xtal_list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void xtal_list_remove(struct xtal_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	xtal_list_init(n);
}

#endif
