/* SPDX-License-Identifier: MIT */
/* Processes of the system tests; see proc.h. */
#define _GNU_SOURCE
#include "lib/proc.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t proc_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void proc_sleep_us(uint64_t us)
{
	uint64_t end = proc_now() + us * 1000;
	struct timespec t = { .tv_sec = (time_t)(end / 1000000000u),
			      .tv_nsec = (long)(end % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

bool proc_soak(void)
{
	const char *soak = getenv("XTAL_TEST_SOAK");

	return soak && strcmp(soak, "1") == 0;
}

unsigned proc_rounds(unsigned few, unsigned many)
{
	const char *scale = getenv("XTAL_TEST_SCALE");
	unsigned n;

	if (proc_soak())
		return many;
	n = scale ? (unsigned)((uint64_t)few * strtoul(scale, NULL, 10) / 100) : few;
	return n ? n : 1;
}

bool proc_sanitized(const char *which)
{
	const char *sanitize = getenv("XTAL_TEST_SANITIZE");

	return sanitize && *sanitize && (!which || strstr(sanitize, which));
}

bool proc_emulated(void)
{
	const char *emulator = getenv("XTAL_TEST_EMULATOR");

	return emulator && *emulator;
}

int proc_skip_all(const char *reason)
{
	printf("SKIP: %s\n", reason);
	return 77;
}

uint64_t proc_slack(uint64_t ns)
{
	return proc_sanitized(NULL) || proc_emulated() || proc_soak() ? ns * 10 : ns;
}

/* When a wait of that long is over. What only says "for ever" covers the whole of a long form. */
static uint64_t end_of_wait(unsigned ms)
{
	return proc_now() + (uint64_t)ms * 1000000 * (proc_soak() && ms >= 5000 ? 100 : 1);
}

/* Is another thread of this process running? */
static bool others_run(void)
{
	pid_t me = gettid();
	bool any = false;
	struct dirent *e;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (e = readdir(dir))) {
		char path[300], state = 'S';
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", e->d_name);
		f = e->d_name[0] == '.' || atoi(e->d_name) == me ? NULL : fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 'S';
		fclose(f);
		any |= state != 'S';
	}
	if (dir)
		closedir(dir);
	return any;
}

/* AddressSanitizer's allocator does not survive a fork while another thread is in it, as one is that
 * has just begun. An engine's threads soon sleep. */
static void let_others_sleep(void)
{
	uint64_t end = proc_now() + 1000000000u;

	while (others_run() && proc_now() < end)
		proc_sleep_us(1000);
}

static void __attribute__((constructor)) fork_with_care(void)
{
	if (proc_sanitized("address"))
		pthread_atfork(let_others_sleep, NULL, NULL);
}

/* Processes of these tests end in the middle of things; what they held then is no leak. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

void proc_skip(const char *format, ...)
{
	va_list args;

	print_message("SKIP: ");
	va_start(args, format);
	vprint_message(format, args);
	va_end(args);
	print_message("\n");
	skip();
	abort(); /* not reached */
}

void *proc_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static pid_t children[64];

static void note_child(pid_t pid)
{
	for (unsigned i = 0; i < 64; i++) {
		if (!children[i]) {
			children[i] = pid;
			return;
		}
	}
}

static void forget_child(pid_t pid)
{
	for (unsigned i = 0; i < 64; i++)
		if (children[i] == pid)
			children[i] = 0;
}

int proc_end_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 64; i++)
		if (children[i])
			proc_kill(children[i]);
	return 0;
}

pid_t proc_start(int (*fn)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		note_child(pid);
		return pid;
	}
	memset(children, 0, sizeof(children));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	_exit(fn(arg));
}

int proc_join(pid_t pid, unsigned timeout_ms)
{
	uint64_t end = end_of_wait(timeout_ms);
	int status = 0;

	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid) {
			forget_child(pid);
			return status;
		}
		if (got < 0 && errno != EINTR)
			return -1;
		if (proc_now() > end)
			break;
		proc_sleep_us(200);
	}
	print_error("process %d did not end within %u ms\n", (int)pid, timeout_ms);
	proc_kill(pid);
	return SIGALRM;
}

int proc_run(int (*fn)(void *arg), void *arg, unsigned timeout_ms)
{
	return proc_join(proc_start(fn, arg), timeout_ms);
}

uint64_t proc_kill(pid_t pid)
{
	uint64_t dead;

	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	dead = proc_now();
	forget_child(pid);
	return dead;
}

void proc_stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	while (waitpid(pid, &status, WUNTRACED) < 0 && errno == EINTR)
		;
}

void proc_continue(pid_t pid)
{
	kill(pid, SIGCONT);
}

void proc_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "process %d: ", (int)getpid());
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

bool proc_await(_Atomic uint32_t *word, uint32_t value, unsigned timeout_ms)
{
	uint64_t end = end_of_wait(timeout_ms);

	while (atomic_load(word) < value) {
		if (proc_now() > end)
			return false;
		proc_sleep_us(100);
	}
	return true;
}

int proc_fd_count(pid_t pid)
{
	char path[64];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2 - (pid == getpid());
}

uint64_t proc_cpu_ns(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t number_in(const char *path, const char *key)
{
	char line[256];
	uint64_t value = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtoull(line + strlen(key), NULL, 10);
	fclose(f);
	return value;
}

uint64_t proc_switches(pid_t pid)
{
	char path[320];
	uint64_t sum = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid, e->d_name);
		sum += number_in(path, "voluntary_ctxt_switches:");
	}
	closedir(dir);
	return sum;
}

static uint64_t run_delay(pid_t pid, pid_t tid)
{
	unsigned long long ran = 0, waited = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	fclose(f);
	return waited;
}

void proc_delays_read(pid_t pid, struct proc_delays *out)
{
	char path[64];
	struct dirent *e;
	DIR *dir;

	out->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)) && out->count < 32) {
		pid_t tid = atoi(e->d_name);

		if (tid <= 0)
			continue;
		out->thread[out->count].tid = tid;
		out->thread[out->count++].ns = run_delay(pid, tid);
	}
	if (dir)
		closedir(dir);
}

uint64_t proc_delayed_since(pid_t pid, const struct proc_delays *then)
{
	struct proc_delays now;
	uint64_t most = 0, second = 0;

	proc_delays_read(pid, &now);
	for (unsigned i = 0; i < now.count; i++) {
		uint64_t ns = now.thread[i].ns;

		for (unsigned k = 0; k < then->count; k++)
			if (then->thread[k].tid == now.thread[i].tid)
				ns -= then->thread[k].ns;
		if (ns > most) {
			second = most;
			most = ns;
		} else if (ns > second) {
			second = ns;
		}
	}
	return most + second;
}

static int write_file(const char *path, const char *format, unsigned value)
{
	char text[64];
	int n = snprintf(text, sizeof(text), format, value, value);
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)n) != n)
		err = -errno;
	close(fd);
	return err;
}

/* A new network has its loopback interface, but not up. */
static int loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &r))
		err = -errno;
	if (sock >= 0)
		close(sock);
	return err;
}

int proc_private(void)
{
	unsigned uid = getuid(), gid = getgid();
	int flags = CLONE_NEWNS | CLONE_NEWNET | (uid ? CLONE_NEWUSER : 0), err = 0;

	if (unshare(flags))
		return -errno;
	if (uid) {
		write_file("/proc/self/setgroups", "deny", 0);
		err = write_file("/proc/self/uid_map", "0 %u 1", uid);
		if (!err)
			err = write_file("/proc/self/gid_map", "0 %u 1", gid);
	}
	if (!err && (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		     mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") ||
		     mount("tmpfs", "/tmp", "tmpfs", 0, "size=64m")))
		err = -errno;
	return err ? err : loopback_up();
}

static void add_names(const char *folder, char *buf, size_t size)
{
	struct dirent *e;
	DIR *dir = opendir(folder);

	if (!dir)
		return;
	while ((e = readdir(dir))) {
		size_t at = strlen(buf);

		if (e->d_name[0] != '.')
			snprintf(buf + at, size - at, "%s/%s\n", folder, e->d_name);
	}
	closedir(dir);
}

void proc_leftovers(char *buf, size_t size)
{
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];

	buf[0] = 0;
	add_names("/dev/shm", buf, size);
	add_names("/tmp", buf, size);
	while (f && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, '@');
		size_t at = strlen(buf);

		if (name)
			snprintf(buf + at, size - at, "%s", name);
	}
	if (f)
		fclose(f);
}

bool proc_file_has(const char *path, const char *text)
{
	char line[1024];
	bool found = false;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, text) != NULL;
	fclose(f);
	return found;
}

#define NOBODY 65534

bool proc_be_ordinary(void)
{
	if (geteuid())
		return true;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return false;
	return prctl(PR_SET_DUMPABLE, 1) == 0; /* a change of user takes it away */
}
