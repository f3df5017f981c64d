/* SPDX-License-Identifier: MIT */
/* Memory of every kind that a program may register, between two canary pages (oracle O4). */
#ifndef TEST_LIB_MEMORY_H
#define TEST_LIB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_kind {
	MEMORY_MALLOC,
	MEMORY_XTAL,         /* xtal_alloc */
	MEMORY_MEMFD_SEALED, /* against shrinking */
	MEMORY_MEMFD,
	MEMORY_SHM,  /* shm_open, unlinked at once: the descriptor stays */
	MEMORY_FILE, /* a file in the build folder, unlinked likewise */
	MEMORY_KINDS
};

struct memory {
	enum memory_kind kind;
	uint8_t *all;  /* canary, data, canary */
	uint8_t *data; /* page aligned */
	size_t len, all_len;
	int fd;
};

/* 0, or -1: this kind cannot be had here. The data is zero, the canaries are set. */
int memory_get(struct memory *m, enum memory_kind kind, size_t len);
void memory_put(struct memory *m);
bool memory_guards_intact(const struct memory *m);
const char *memory_name(enum memory_kind kind);

#endif
