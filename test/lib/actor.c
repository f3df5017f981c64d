/* SPDX-License-Identifier: MIT */
/* Processes and threads that serve calls over a socket pair; see actor.h. */
#include "lib/actor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/netns.h"
#include "lib/proc.h"

struct call {
	actor_fn fn;
	int64_t result;
	uint8_t args[ACTOR_ARGS];
};

struct birth {
	char env[4][64];
};

_Atomic uint64_t *actor_words;
int actor_ns = -1;

static int nursery = -1; /* to the process that forks the others */
static pid_t nursery_pid;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static bool get(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = recv(fd, buf, len, 0);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

static void serve(int fd)
{
	struct call c;

	while (get(fd, &c, sizeof(c))) {
		c.result = c.fn(c.args);
		if (send(fd, &c, sizeof(c), MSG_NOSIGNAL) < 0)
			break;
	}
}

static void socket_pair(int fd[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		die("socketpair");
}

/* Sends fd and a pid. */
static void hand_over(int to, int fd, pid_t pid)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { &pid, sizeof(pid) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };

	control.head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS,
					 .cmsg_len = CMSG_LEN(sizeof(int)) };
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (sendmsg(to, &m, 0) < 0)
		die("sendmsg");
}

static void take_over(int from, int *fd, pid_t *pid)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { pid, sizeof(*pid) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	ssize_t n;

	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		die("recvmsg");
	memcpy(fd, CMSG_DATA(&control.head), sizeof(*fd));
}

static void run_nursery(int fd)
{
	struct birth b;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	if (actor_ns >= 0)
		netns_enter(actor_ns);
	while (get(fd, &b, sizeof(b))) {
		int pair[2];
		pid_t pid;

		socket_pair(pair);
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			signal(SIGCHLD, SIG_DFL);
			close(fd);
			close(pair[0]);
			for (unsigned i = 0; i < 4; i++)
				if (b.env[i][0])
					putenv(b.env[i]);
			serve(pair[1]);
			_exit(0);
		}
		close(pair[1]);
		hand_over(fd, pair[0], pid);
		close(pair[0]);
	}
	_exit(0);
}

void actor_init(void)
{
	int pair[2];

	actor_words = mmap(NULL, ACTOR_WORDS * sizeof(*actor_words), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (actor_words == MAP_FAILED)
		die("mmap");
	socket_pair(pair);
	nursery_pid = fork();
	if (nursery_pid < 0)
		die("fork");
	if (!nursery_pid) {
		close(pair[0]);
		run_nursery(pair[1]);
	}
	close(pair[1]);
	nursery = pair[0];
}

pid_t actor_init_pid(void)
{
	return nursery_pid;
}

struct actor *actor_process(const char *const *env)
{
	struct actor *a = calloc(1, sizeof(*a));
	struct birth b = { 0 };

	for (unsigned i = 0; env && env[i] && i < 4; i++)
		snprintf(b.env[i], sizeof(b.env[i]), "%s", env[i]);
	if (!a || send(nursery, &b, sizeof(b), MSG_NOSIGNAL) < 0)
		die("actor_process");
	take_over(nursery, &a->fd, &a->pid);
	return a;
}

static void *run_thread(void *arg)
{
	int fd = (int)(intptr_t)arg;

	serve(fd);
	close(fd);
	return NULL;
}

struct actor *actor_thread(void)
{
	struct actor *a = calloc(1, sizeof(*a));
	pthread_t thread = 0;
	int pair[2];

	socket_pair(pair);
	if (!a || pthread_create(&thread, NULL, run_thread, (void *)(intptr_t)pair[1]))
		die("actor_thread");
	pthread_detach(thread);
	a->fd = pair[0];
	return a;
}

void actor_free(struct actor *a)
{
	char end;

	if (a->pid)
		kill(a->pid, SIGKILL);
	else
		shutdown(a->fd, SHUT_WR);
	while (recv(a->fd, &end, 1, 0) > 0)
		; /* until it is gone */
	close(a->fd);
	free(a);
}

void actor_start(struct actor *a, actor_fn fn, const void *args, size_t len)
{
	struct call c = { .fn = fn };

	if (len)
		memcpy(c.args, args, len);
	send(a->fd, &c, sizeof(c), MSG_NOSIGNAL);
}

int64_t actor_finish(struct actor *a, void *args, size_t len)
{
	struct call c;

	if (!get(a->fd, &c, sizeof(c)))
		return ACTOR_DIED;
	if (len)
		memcpy(args, c.args, len);
	return c.result;
}

int64_t actor_call(struct actor *a, actor_fn fn, void *args, size_t len)
{
	actor_start(a, fn, args, len);
	return actor_finish(a, args, len);
}

#if defined(__SANITIZE_THREAD__)
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

void actor_unseen_begin(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void actor_unseen_end(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
void actor_unseen_begin(void)
{
}

void actor_unseen_end(void)
{
}
#endif

void actor_stop(struct actor *a)
{
	char path[64], text[256] = "";

	kill(a->pid, SIGSTOP);
	snprintf(path, sizeof(path), "/proc/%d/stat", a->pid);
	for (unsigned i = 0; i < 2000 && !strstr(text, ") T"); i++) {
		FILE *f = fopen(path, "r");

		if (f) {
			if (!fgets(text, sizeof(text), f))
				text[0] = 0;
			fclose(f);
		}
		proc_sleep_us(1000);
	}
	if (!strstr(text, ") T"))
		die("a process that does not stop");
}
