/* SPDX-License-Identifier: MIT */
/*
 * Shareable objects: what lies behind memory that peers can map. Either ours (xtal_alloc) or
 * the user's own memfd, shm or file mapping, found by itself.
 */
#ifndef XTAL_CORE_OBJECT_H
#define XTAL_CORE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct xtal_object {
	struct xtal_list node;
	uint32_t refs;
	int fd;      /* read-write when writable */
	uint64_t id; /* unique in this process */
	bool writable;
	bool sealed;  /* cannot shrink: peers may touch it without a guard */
	bool ours;    /* from xtal_alloc */
	uint64_t len; /* ours: bytes */
	void *addr;   /* ours: where it is mapped; NULL once freed */
	uint64_t dev_major, dev_minor, inode;
	uint8_t *second;            /* ours: mapped once more, or NULL; until the object goes */
	_Atomic(uint8_t *) alias;   /* second, while stores may go there */
	_Atomic bool without_alias; /* there is none any more, or cannot be */
};

/* Where a range of this process lies in an object. */
struct xtal_backing {
	struct xtal_object *object; /* NULL: private memory, reason says which kind */
	uint64_t offset;
	bool read_only; /* not all of it was mapped writable */
	char reason[120];
};

/* Finds the object behind [addr, addr+len) and takes a reference. Never fails: without an
 * object the reason says why. */
void xtal_object_find(uint64_t addr, uint64_t len, struct xtal_backing *out);
void xtal_object_put(struct xtal_object *object);

/* Where the bytes of an object of ours can be stored to without a fault, whatever the program
 * unmaps; NULL: nowhere, or the program has freed it. For a segment in it that is announced. */
uint8_t *xtal_object_alias(struct xtal_object *object);

/* Replaces the memory behind an object of ours by a copy in a new one, so that whoever still
 * maps the old one writes into orphaned pages; stores of this process are not lost. All
 * segments in it must be in state moving. Errors: -errno (then nothing changed). */
int xtal_object_replace(struct xtal_object *object);

/* A number for an object, unique in this process. */
uint64_t xtal_object_number(void);

/* Calls before/after fork keep the list consistent in the child. */
void xtal_object_fork_lock(void);
void xtal_object_fork_unlock(void);
/* In the child: what is not inherited is made again. */
void xtal_object_fork_child(void);

#endif
