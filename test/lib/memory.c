/* SPDX-License-Identifier: MIT */
/* Getting and returning the memory of memory.h. */
#include "lib/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/pattern.h"
#include "xtal.h"

#define CANARY      4096
#define CANARY_SEED 0xca9a51

static int open_object(enum memory_kind kind)
{
	char name[64];
	int fd = -1;

	switch (kind) {
	case MEMORY_MALLOC:
	case MEMORY_XTAL:
	case MEMORY_KINDS:
		break;
	case MEMORY_MEMFD_SEALED:
	case MEMORY_MEMFD:
		fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		break;
	case MEMORY_SHM:
		snprintf(name, sizeof(name), "/xtal-test-%d", getpid());
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
		shm_unlink(name);
		break;
	case MEMORY_FILE:
		snprintf(name, sizeof(name), "memory-%d.tmp", getpid());
		fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		unlink(name);
		break;
	}
	return fd;
}

int memory_get(struct memory *m, enum memory_kind kind, size_t len)
{
	*m = (struct memory){ .kind = kind, .len = len, .fd = -1 };
	m->all_len = ((len + 4095) & ~(size_t)4095) + 2 * CANARY;
	if (kind == MEMORY_MALLOC) {
		m->all = aligned_alloc(4096, m->all_len);
		if (m->all)
			memset(m->all, 0, m->all_len);
	} else if (kind == MEMORY_XTAL) {
		m->all = xtal_alloc(m->all_len);
	} else {
		m->fd = open_object(kind);
		if (m->fd < 0 || ftruncate(m->fd, (off_t)m->all_len))
			return -1;
		if (kind == MEMORY_MEMFD_SEALED)
			fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK);
		m->all = mmap(NULL, m->all_len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
		if (m->all == MAP_FAILED)
			m->all = NULL;
	}
	if (!m->all)
		return -1;
	m->data = m->all + CANARY;
	pattern_fill(m->all, CANARY, CANARY_SEED, 0);
	pattern_fill(m->data + len, (size_t)(m->all + m->all_len - m->data) - len, CANARY_SEED,
		     CANARY);
	return 0;
}

bool memory_guards_intact(const struct memory *m)
{
	return pattern_check(m->all, CANARY, CANARY_SEED, 0) < 0 &&
	       pattern_check(m->data + m->len, (size_t)(m->all + m->all_len - m->data) - m->len,
			     CANARY_SEED, CANARY) < 0;
}

void memory_put(struct memory *m)
{
	if (m->kind == MEMORY_MALLOC)
		free(m->all);
	else if (m->kind == MEMORY_XTAL)
		xtal_free(m->all);
	else if (m->all)
		munmap(m->all, m->all_len);
	if (m->fd >= 0)
		close(m->fd);
	m->all = m->data = NULL;
	m->fd = -1;
}

const char *memory_name(enum memory_kind kind)
{
	static const char *const names[MEMORY_KINDS] = { "malloc", "xtal_alloc", "sealed memfd",
							 "memfd",  "shm_open",   "file" };

	return kind < MEMORY_KINDS ? names[kind] : "?";
}
