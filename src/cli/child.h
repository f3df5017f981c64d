/* SPDX-License-Identifier: MIT */
/*
 * The second process: started from this very executable (`xtal owner`, not in the list of
 * commands), told what to do over a socket, and gone when this process goes, however it goes.
 */
#ifndef XTAL_CLI_CHILD_H
#define XTAL_CLI_CHILD_H

struct cli_child {
	int fd;   /* the conversation; -1: none */
	int pid;  /* of the owner process */
	int ours; /* 1: our child, 0: somebody else's (--client), */
	int fate; /* wait status once reaped, else -1 */
};

#define CLI_NO_CHILD ((struct cli_child){ .fd = -1, .pid = -1, .fate = -1 })

/*
 * Starts an owner process and waits for its first word. Call it before this process opens
 * any context: it forks. paths: its XTAL_PATHS, "": unset,
 * NULL: as here. 0, or -1 with cli_reason (the child is gone then).
 */
int cli_child_start(struct cli_child *child, const char *paths);
/* The same with the conversation handed in: the server's half. Takes the fd in any case. */
int cli_child_spawn(struct cli_child *child, int fd, const char *paths);

/* What became of it, in words: "process 12 was killed by signal 9 (Killed)", or NULL while
 * it lives. Looks for at most wait_ms. The text is the caller's until the next call. */
const char *cli_child_fate(struct cli_child *child, int wait_ms);

/* Ends the conversation, reaps; a child that does not go by itself is killed. */
void cli_child_stop(struct cli_child *child);

/* Two shells: a name in the abstract socket space, held while the server waits. Two hosts: an
 * address (net.h). */
int cli_child_listen(const char *name);
int cli_child_accept(int listener); /* also of another host: then it was greeted */
/* Reaches a server and waits for the first word of the owner that it starts. */
int cli_child_connect(struct cli_child *child, const char *name);

#endif
