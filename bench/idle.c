/* SPDX-License-Identifier: MIT */
/*
 * idle: wake-ups per second of two connected processes that have worked (short and long
 * operations, so that every thread exists) and now do nothing for --seconds. Counted from
 * outside: context switches of all their threads in /proc, and by the engine: agent_wakeups.
 */
#include "lib.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_COPY (4u << 20)

static void snooze(double seconds)
{
	struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&t, NULL);
}

/* Context switches of all threads of a process so far, of both kinds. */
static double switches(int pid, unsigned *threads)
{
	char path[300], line[128];
	struct dirent *entry;
	double sum = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		bench_die("%s", path);
	*threads = 0;
	while ((entry = readdir(tasks))) {
		unsigned long n;
		FILE *f;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		++*threads;
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1 ||
			    sscanf(line, "nonvoluntary_ctxt_switches: %lu", &n) == 1)
				sum += (double)n;
		fclose(f);
	}
	closedir(tasks);
	return sum;
}

static double agent_wakeups(void)
{
	struct xtal_counters counters;

	xtal_counters_read(&counters, sizeof(counters));
	return (double)counters.agent_wakeups;
}

/* One of the two processes: works, says so, sleeps until told, reports the agent's wake-ups. */
static void live(struct bench_side *side, int control)
{
	struct dma_seg remote, local;
	double before, woken;
	int pid = getpid();
	char word;

	bench_open(side, 16);
	remote = side->remote;
	local = *side->seg;
	for (int i = 0; i < 100; i++) {
		remote.len = local.len = i % 10 ? 8 : LONG_COPY;
		if (dma_write(side->queue, &remote, &local) != DMA_STATUS_OK)
			bench_die("dma_write");
		bench_take(side->queue, 1);
	}
	/* Settled when the agent's spin and the last ticks are over. */
	snooze(0.5);
	before = agent_wakeups();
	if (write(control, &pid, sizeof(pid)) != sizeof(pid) || read(control, &word, 1) != 1)
		exit(1);
	woken = agent_wakeups() - before;
	if (write(control, &woken, sizeof(woken)) != sizeof(woken) || read(control, &word, 1) != 1)
		exit(1);
	bench_close(side);
}

static void observe(const struct bench_options *opt, const int control[2])
{
	double before[2], after[2], woken[2];
	unsigned threads[2];
	int pid[2];

	for (int i = 0; i < 2; i++)
		if (read(control[i], &pid[i], sizeof(pid[i])) != sizeof(pid[i]))
			bench_die("no process to observe");
	snooze(0.2);
	for (int i = 0; i < 2; i++)
		before[i] = switches(pid[i], &threads[i]);
	snooze(opt->seconds);
	for (int i = 0; i < 2; i++)
		after[i] = switches(pid[i], &threads[i]);
	for (int i = 0; i < 2; i++)
		if (write(control[i], "e", 1) != 1 ||
		    read(control[i], &woken[i], sizeof(woken[i])) != sizeof(woken[i]))
			bench_die("a process ended");
	for (int i = 0; i < 2; i++) {
		bench_emit_value(opt, "switches", "1/s", (unsigned)i,
				 (after[i] - before[i]) / opt->seconds);
		bench_emit_value(opt, "agent", "1/s", (unsigned)i, woken[i] / opt->seconds);
		bench_emit_value(opt, "threads", "", (unsigned)i, threads[i]);
		if (write(control[i], "q", 1) != 1)
			bench_die("a process ended");
	}
}

int main(int argc, char **argv)
{
	struct bench_side side = { .memory = BENCH_ALLOC, .len = LONG_COPY };
	int control[2], theirs[2], pid, status = 1;
	struct bench_options opt;

	bench_options(argc, argv, &opt);
	for (int i = 0; i < 2; i++) {
		int fd[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
			bench_die("no sockets");
		control[i] = fd[0];
		theirs[i] = fd[1];
	}
	pid = fork();
	if (pid < 0)
		bench_die("no process");
	if (!pid) { /* the first of the pair; it forks the second */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bool second = bench_fork(&side);

		live(&side, theirs[second]);
		exit(0);
	}
	close(theirs[0]);
	close(theirs[1]);
	observe(&opt, control);
	if (waitpid(pid, &status, 0) != pid || status)
		bench_die("a process failed");
	return 0;
}
