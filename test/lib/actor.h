/* SPDX-License-Identifier: MIT */
/*
 * Actors: other processes (or threads) of a test that call functions of the test program on
 * request. Processes are forked from a copy of the program that never used the library, so
 * they start like programs of their own, but know the same functions.
 */
#ifndef TEST_LIB_ACTOR_H
#define TEST_LIB_ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ACTOR_ARGS 512

/* args is a copy of the caller's bytes; what it holds at the end is copied back. */
typedef int64_t (*actor_fn)(void *args);

struct actor {
	int fd;
	pid_t pid; /* 0: a thread of this process */
};

/* Where processes live: a network namespace (lib/netns.h), or -1, as this one. */
extern int actor_ns;

/* Call once, before the library is used: starts the process that all others come from. */
void actor_init(void);
pid_t actor_init_pid(void);

/* Words that all processes of the test share. Set to 0 before use. */
extern _Atomic uint64_t *actor_words;
#define ACTOR_WORDS 512

/* env: "NAME=value", NULL-terminated list of at most 4, or NULL. Processes only. */
struct actor *actor_process(const char *const *env);
struct actor *actor_thread(void);

/* Kills a process, in whatever state; lets a thread end. */
void actor_free(struct actor *a);

/* Runs fn there. actor_finish waits; -1000 when the actor died meanwhile. */
void actor_start(struct actor *a, actor_fn fn, const void *args, size_t len);
int64_t actor_finish(struct actor *a, void *args, size_t len);
int64_t actor_call(struct actor *a, actor_fn fn, void *args, size_t len);

#define ACTOR_DIED (-1000)

/*
 * Around accesses to memory that another process orders: ThreadSanitizer sees only this one,
 * and would report a race between the library's agent, which executed that process's
 * messages, and us, who heard of it by a socket.
 */
void actor_unseen_begin(void);
void actor_unseen_end(void);

/* Stops it (SIGSTOP), and returns when it has stopped. SIGCONT to its pid lets it go on. */
void actor_stop(struct actor *a);

#endif
