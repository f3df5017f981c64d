/* SPDX-License-Identifier: MIT */
/* Starting, finding and burying the owner process. No Xtal calls here. */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/net.h"
#include "cli/owner.h"
#include "cli/talk.h"

static void become_owner(int fd, const char *paths, pid_t parent)
{
	char number[16];
	char *state = (char *)(uintptr_t)cli_talk_state(fd);
	char *argv[] = { "xtal", "owner", number, state, NULL };

	/* Die with the parent, also when it died before this line. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CLI_FAILED);
	/* Ctrl-C goes to the whole terminal; the parent ends the conversation. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	fcntl(fd, F_SETFD, 0);
	if (paths && *paths)
		setenv("XTAL_PATHS", paths, 1);
	else if (paths)
		unsetenv("XTAL_PATHS");
	snprintf(number, sizeof(number), "%d", fd);
	execv("/proc/self/exe", argv);
	/* No /proc, or an emulator: the copy that fork made will do, it has no context yet. */
	_exit(cli_owner_serve(fd) ? CLI_FAILED : CLI_OK);
}

int cli_child_spawn(struct cli_child *child, int fd, const char *paths)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_owner(fd, paths, parent);
	close(fd);
	if (pid < 0)
		return cli_fail("cannot start a second process: %s", strerror(errno));
	child->pid = pid;
	child->ours = 1;
	child->fate = -1;
	return 0;
}

/* The owner's first word. */
static int greet(struct cli_child *child)
{
	struct cli_talk msg;
	const char *fate;

	if (cli_talk_recv(child->fd, &msg, TALK_HELLO, CLI_TALK_PATIENCE_MS) == 0) {
		child->pid = (int)msg.value;
		return 0;
	}
	fate = cli_child_fate(child, 100);
	if (fate)
		cli_fail("the owner could not start: %s", fate);
	else if (cli_talk_state(child->fd))
		cli_fail("%s; does the other host have the same key? ('xtal key id FILE')",
			 cli_reason());
	cli_child_stop(child);
	return -1;
}

int cli_child_start(struct cli_child *child, const char *paths)
{
	int pair[2];

	*child = CLI_NO_CHILD;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cli_fail("socketpair: %s", strerror(errno));
	if (cli_child_spawn(child, pair[1], paths)) {
		close(pair[0]);
		return -1;
	}
	child->fd = pair[0];
	return greet(child);
}

const char *cli_child_fate(struct cli_child *child, int wait_ms)
{
	static char text[128];
	int status = child->fate;

	if (child->pid < 0 || !child->ours)
		return NULL;
	for (uint64_t end = cli_now() + (uint64_t)wait_ms * 1000000u; status == -1;) {
		pid_t pid = waitpid(child->pid, &status, WNOHANG);

		if (pid == child->pid)
			break;
		status = -1;
		if (pid < 0 || cli_now() >= end)
			return NULL;
		poll(NULL, 0, 1);
	}
	child->fate = status;
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "process %d was killed by signal %d (%s)", child->pid,
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "process %d ended with status %d", child->pid,
			 WEXITSTATUS(status));
	return text;
}

void cli_child_stop(struct cli_child *child)
{
	if (child->fd >= 0)
		close(child->fd);
	if (child->ours && child->pid > 0 && child->fate == -1 && !cli_child_fate(child, 3000)) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
	*child = CLI_NO_CHILD;
}

/* Fills addr; returns its length, 0 when the name is too long. */
static socklen_t abstract_name(struct sockaddr_un *addr, const char *name)
{
	size_t room = sizeof(addr->sun_path) - 1;
	int n;

	*addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(addr->sun_path + 1, room, "xtal-perf/%s", name);
	if (n < 0 || (size_t)n >= room) {
		cli_fail("the server's name is too long");
		return 0;
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool is_network(int fd)
{
	int domain = AF_UNIX;
	socklen_t len = sizeof(domain);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain != AF_UNIX;
}

/* Anybody can take a name, or call at it: only our own user is let in. */
static int check_peer(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return cli_fail("SO_PEERCRED: %s", strerror(errno));
	if (cred.uid != geteuid())
		return cli_fail("the other side belongs to user %u, not to %u", cred.uid,
				geteuid());
	return 0;
}

int cli_child_listen(const char *name)
{
	struct sockaddr_un addr;
	socklen_t len;
	int fd;

	if (cli_net_is_address(name))
		return cli_net_listen(name);
	len = abstract_name(&addr, name);
	if (len == 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cli_fail("socket: %s", strerror(errno));
	if (bind(fd, (struct sockaddr *)&addr, len) == 0 && listen(fd, 4) == 0)
		return fd;
	if (errno == EADDRINUSE)
		cli_fail("a server named '%s' is waiting already; give another name", name);
	else
		cli_fail("cannot wait as '%s': %s", name, strerror(errno));
	close(fd);
	return -1;
}

int cli_child_accept(int listener)
{
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0 && (is_network(fd) ? cli_net_greet(fd, false) : check_peer(fd)) == 0)
			return fd;
		if (fd >= 0) {
			fprintf(stderr, "xtal: turned a client away: %s\n", cli_reason());
			close(fd);
		} else if (cli_interrupted()) {
			return cli_fail("interrupted");
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return cli_fail("accept: %s", strerror(errno));
		}
	}
}

static int connect_name(const char *name)
{
	struct sockaddr_un addr;
	socklen_t len = abstract_name(&addr, name);
	int fd;

	if (len == 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cli_fail("socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&addr, len) == 0)
		return fd;
	cli_fail("no server named '%s' waits here (%s); start one with 'xtal perf --server %s'",
		 name, strerror(errno), name);
	close(fd);
	return -1;
}

int cli_child_connect(struct cli_child *child, const char *name)
{
	const char *paths = getenv("XTAL_PATHS");
	struct cli_talk hello = { .type = TALK_HELLO };

	*child = CLI_NO_CHILD;
	if (cli_net_is_address(name)) {
		child->fd = cli_net_connect(name);
		if (child->fd < 0 || cli_net_greet(child->fd, true))
			goto fail;
	} else {
		child->fd = connect_name(name);
		if (child->fd < 0 || check_peer(child->fd))
			goto fail;
	}
	snprintf(hello.text, sizeof(hello.text), "%s", paths ? paths : "");
	if (cli_talk_send(child->fd, &hello, TALK_HELLO))
		goto fail;
	return greet(child);
fail:
	cli_child_stop(child);
	return -1;
}
