/* SPDX-License-Identifier: MIT */
/*
 * Less permission than usual: system calls denied with each errno, a process that cannot be
 * traced, other users, other PID and user namespaces. The engine takes the next best path, says
 * why, and the bytes are right; or it refuses with a reason.
 */
/* ctest: timeout=240 */
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/proc.h"
#include "xtal.h"

#define SEGMENT  ((size_t)512 << 10)
#define PATIENCE 30000u
#define NOBODY   65534

struct scene {
	struct peer_owner owner;
	const char *want;     /* the path that must be taken; NULL: any but none */
	const char *because;  /* a part of the reasons; NULL: any */
	const char *paths;    /* XTAL_PATHS of the initiator; NULL: all */
	int denied[4], error; /* system calls of both sides; 0: none */
	int status;           /* that operations end with */
	int unshare_owner, unshare_initiator;
	bool undumpable, other_uid, any_peers, no_proc, allow_cma;
	bool ordinary; /* both sides are an ordinary user's, also when root runs the test */
	char reason[2048];
};

/* Answers the calls with an errno. */
static int deny(const int *calls, int error)
{
	struct sock_filter f[32];
	unsigned n = 0, count = 0;
	struct sock_fprog prog;

	while (count < 4 && calls[count])
		count++;
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < count; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i],
						      0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						      SECCOMP_RET_ERRNO | (unsigned)error);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	prog = (struct sock_fprog){ .len = (unsigned short)n, .filter = f };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
		return -errno;
	return 0;
}

static void restrict_me(const struct scene *s)
{
	if (s->any_peers)
		setenv("XTAL_PEERS", "any", 1);
	if (s->allow_cma)
		setenv("XTAL_ALLOW_CMA", "1", 1);
	if (s->no_proc &&
	    (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	     mount("none", "/proc", "tmpfs", 0, NULL)))
		_exit(77);
	if (s->denied[0] && deny(s->denied, s->error))
		_exit(77);
}

/* Runs fn as the first process of new namespaces. */
static int inside(int flags, int (*fn)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	if (!flags)
		return fn(arg);
	if (unshare(flags | (getuid() ? CLONE_NEWUSER : 0)))
		return 77;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(arg));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int owner_body(void *arg)
{
	struct scene *s = arg;

	restrict_me(s);
	if (s->undumpable)
		prctl(PR_SET_DUMPABLE, 0);
	return peer_owner_run(&s->owner);
}

static int owner(void *arg)
{
	struct scene *s = arg;

	if (s->ordinary && !proc_be_ordinary())
		return 77;
	setenv("XTAL_LOG", "/dev/null", 1);
	return inside(s->unshare_owner, owner_body, s);
}

static int initiator_body(void *arg)
{
	struct scene *s = arg;
	uint8_t *memory;
	struct dma_seg *local;
	struct dma_queue *q;
	struct peer p;
	int status;

	restrict_me(s);
	if (s->paths)
		setenv("XTAL_PATHS", s->paths, 1);
	peer_open(&p);
	memory = peer_memory(PEER_CMA, SEGMENT);
	local = peer_register(&p, memory, SEGMENT, NULL);
	q = peer_queue(&p, 8);
	if (s->status) {
		status = peer_write(q, peer_remote(&s->owner.export, 0, 64),
				    peer_part(local, 0, 64));
		if (status != s->status)
			proc_die("status %d, not %d", status, s->status);
		peer_path_taken(q, &s->owner.export, s->reason, sizeof(s->reason));
	} else {
		unsigned path;

		status = peer_read(q, peer_remote(&s->owner.export, 0, SEGMENT), *local);
		peer_expect(status, "read");
		if (!peer_holds(memory, SEGMENT, s->owner.seed))
			proc_die("what was read is wrong");
		peer_fill(memory, SEGMENT, 5);
		peer_expect(peer_write(q, peer_remote(&s->owner.export, 0, SEGMENT), *local),
			    "write");
		memset(memory, 0, SEGMENT);
		peer_expect(peer_read(q, peer_remote(&s->owner.export, 0, SEGMENT), *local),
			    "read");
		if (!peer_holds(memory, SEGMENT, 5))
			proc_die("what was read back is wrong");
		peer_expect(
			peer_faa(q, peer_remote(&s->owner.export, 8, 8), peer_part(local, 8, 8), 1),
			"faa");
		path = peer_path_taken(q, &s->owner.export, s->reason, sizeof(s->reason));
		if (s->want && strcmp(xtal_path_name(path), s->want) != 0)
			proc_die("path %s, not %s: %s", xtal_path_name(path), s->want, s->reason);
	}
	if (s->because && !strstr(s->reason, s->because))
		proc_die("'%s' is not among the reasons: %s", s->because, s->reason);
	dma_free_queue(q);
	dma_unregister_seg(p.ctx, local);
	peer_close(&p);
	return 0;
}

static int initiator(void *arg)
{
	struct scene *s = arg;

	setenv("XTAL_LOG", "/dev/null", 1);
	if (s->ordinary && !proc_be_ordinary())
		return 77;
	if (s->other_uid && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		return 77;
	return inside(s->unshare_initiator, initiator_body, s);
}

/* False: the kernel does not allow the arrangement. */
static bool try(const struct scene *setting, enum peer_path memory)
{
	struct scene *s = proc_shared(sizeof(*s));
	pid_t own;
	int status;

	*s = *setting;
	s->owner.path = memory;
	s->owner.len = SEGMENT;
	s->owner.seed = 3;
	own = proc_start(owner, s);
	while (!proc_await(&s->owner.ready, 1, 50)) {
		if (waitpid(own, &status, WNOHANG) == own) {
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
			return false;
		}
	}
	status = proc_run(initiator, s, PATIENCE);
	atomic_store(&s->owner.quit, 1);
	assert_int_equal(proc_join(own, PATIENCE), 0);
	munmap(s, sizeof(*s));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return false;
	assert_int_equal(status, 0);
	return true;
}

static const int errnos[] = { EPERM, ENOSYS, EINVAL, ENOMEM };

static void without_process_vm(void **state)
{
	struct scene s = { .want = "ring",
			   .because = "process_vm",
			   .denied = { SYS_process_vm_readv, SYS_process_vm_writev } };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		s.error = errnos[i];
		if (!try(&s, PEER_CMA))
			proc_skip("seccomp filters are not allowed");
	}
	s.want = "map";
	s.because = NULL;
	assert_true(try(&s, PEER_MAP));
	assert_true(try(&s, PEER_USER));
}

/* Each optional call, with each errno: other ways are found, the bytes are right. */
static void without_optional_calls(void **state)
{
	static const int calls[] = { SYS_pidfd_open,
				     SYS_membarrier,
				     SYS_userfaultfd,
				     SYS_mincore,
				     SYS_sched_getaffinity,
				     SYS_openat2,
				     SYS_statx,
				     SYS_clone3,
				     SYS_prctl,
				     SYS_readlinkat,
				     SYS_process_madvise };
	struct scene s = { 0 };

	(void)state;
	for (unsigned c = 0; c < sizeof(calls) / sizeof(calls[0]); c++) {
		for (unsigned i = 0; i < 4; i += proc_sanitized(NULL) ? 3 : 1) {
			/* glibc itself takes only ENOSYS for an answer. */
			if (calls[c] == SYS_clone3 && errnos[i] != ENOSYS)
				continue;
			/* A sanitizer looks at its threads' stacks by it. */
			if (calls[c] == SYS_sched_getaffinity && proc_sanitized(NULL))
				continue;
			s.denied[0] = calls[c];
			s.error = errnos[i];
			for (unsigned path = 0; path < PEER_RING; path += 2) {
				if (!try(&s, (enum peer_path)path))
					proc_skip("seccomp filters are not allowed");
			}
		}
	}
}

static int no_memfd(void *arg)
{
	const int calls[4] = { SYS_memfd_create };
	struct dma_device *list;
	struct dma_context *ctx;
	uint32_t n;

	setenv("XTAL_LOG", "/dev/null", 1);
	if (deny(calls, *(int *)arg))
		return 77;
	list = dma_get_device_list(&n);
	if (!list)
		proc_die("no device");
	if (xtal_alloc(4096))
		proc_die("xtal_alloc without memfd");
	if (!*xtal_last_error())
		proc_die("no reason given");
	ctx = dma_create_context(&list[0]);
	if (ctx)
		proc_die("a context without memfd");
	if (!*xtal_last_error())
		proc_die("no reason given for the context");
	dma_free_device_list(list, n);
	return 0;
}

static void without_memfd_the_refusal_is_clear(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		int error = errnos[i], status = proc_run(no_memfd, &error, PATIENCE);

		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			proc_skip("seccomp filters are not allowed");
		assert_int_equal(status, 0);
	}
}

/* XTAL_PATHS makes a fallback a failure (F101). */
static void a_required_path_is_required(void **state)
{
	struct scene s = { .paths = "cma",
			   .status = 9,
			   .error = EPERM,
			   .denied = { SYS_process_vm_readv, SYS_process_vm_writev } };

	(void)state;
	if (!try(&s, PEER_CMA))
		proc_skip("seccomp filters are not allowed");
	s = (struct scene){ .paths = "map", .status = 9 };
	assert_true(try(&s, PEER_CMA));
}

static void an_owner_that_cannot_be_traced(void **state)
{
	struct scene s = {
		.undumpable = true, .ordinary = true, .want = "ring", .because = "process_vm"
	};

	(void)state;
	if (!try(&s, PEER_CMA))
		proc_skip("root's rights cannot be given up here");
	if (geteuid() == 0) { /* who may trace it all the same */
		s = (struct scene){ .undumpable = true };
		assert_true(try(&s, PEER_CMA));
	}
	s.want = "map";
	s.because = NULL;
	assert_true(try(&s, PEER_MAP));
}

/* Yama's ptrace_scope; -1: this kernel has none. */
static int yama(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
	int scope = -1;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = -1;
	if (f)
		fclose(f);
	return scope;
}

static void an_owner_behind_yama(void **state)
{
	struct scene s = { .ordinary = true, .want = "ring", .because = "Yama" };

	(void)state;
	if (yama() < 1)
		proc_skip(yama() ? "this kernel has no Yama" : "Yama restricts nothing here");
	if (!try(&s, PEER_CMA))
		proc_skip("root's rights cannot be given up here");
	s = (struct scene){ .ordinary = true,
			    .want = yama() == 1 ? "cma" : "ring",
			    .allow_cma = true };
	assert_true(try(&s, PEER_CMA)); /* the owner may lift the lowest restriction */
	s = (struct scene){ .want = "map" };
	assert_true(try(&s, PEER_MAP));
}

static void another_user(void **state)
{
	struct scene s = { .other_uid = true, .status = 9, .because = "user" };

	(void)state;
	if (geteuid())
		proc_skip("only root can be two users");
	assert_true(try(&s, PEER_CMA));
	s = (struct scene){ .other_uid = true,
			    .any_peers = true,
			    .want = "ring",
			    .because = "the owner's process is another user's" };
	for (unsigned path = 0; path < PEER_RING; path++)
		assert_true(try(&s, (enum peer_path)path));
}

/* A chroot or container without /proc. */
static void without_proc(void **state)
{
	struct scene s = { .no_proc = true };

	(void)state;
	if (!try(&s, PEER_CMA))
		proc_skip("/proc cannot be hidden here");
	assert_true(try(&s, PEER_MAP));
	assert_true(try(&s, PEER_USER));
}

static void namespaces(int owners, int initiators, const char *cma_is)
{
	struct scene s = { .unshare_owner = owners,
			   .unshare_initiator = initiators,
			   .want = "map" };

	if (!try(&s, PEER_MAP))
		proc_skip("these namespaces are not allowed");
	assert_true(try(&s, PEER_USER));
	s.want = cma_is;
	assert_true(try(&s, PEER_CMA));
}

static void user_namespaces(void **state)
{
	(void)state;
	if (!getuid()) /* root's user namespaces would only map root to nobody */
		namespaces(0, CLONE_NEWNS, NULL);
	else
		namespaces(CLONE_NEWUSER, CLONE_NEWUSER, NULL);
}

static void an_owner_in_another_pid_namespace(void **state)
{
	(void)state;
	namespaces(CLONE_NEWPID, 0, NULL);
}

static void an_initiator_in_another_pid_namespace(void **state)
{
	(void)state;
	namespaces(0, CLONE_NEWPID, "ring");
}

/* Both are process 1 of their namespaces (F102, F103). */
static void pids_that_collide(void **state)
{
	(void)state;
	namespaces(CLONE_NEWPID | CLONE_NEWNS, CLONE_NEWPID | CLONE_NEWNS, "ring");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(without_process_vm, proc_end_all),
		cmocka_unit_test_teardown(without_optional_calls, proc_end_all),
		cmocka_unit_test_teardown(without_memfd_the_refusal_is_clear, proc_end_all),
		cmocka_unit_test_teardown(a_required_path_is_required, proc_end_all),
		cmocka_unit_test_teardown(an_owner_that_cannot_be_traced, proc_end_all),
		cmocka_unit_test_teardown(an_owner_behind_yama, proc_end_all),
		cmocka_unit_test_teardown(another_user, proc_end_all),
		cmocka_unit_test_teardown(without_proc, proc_end_all),
		cmocka_unit_test_teardown(user_namespaces, proc_end_all),
		cmocka_unit_test_teardown(an_owner_in_another_pid_namespace, proc_end_all),
		cmocka_unit_test_teardown(an_initiator_in_another_pid_namespace, proc_end_all),
		cmocka_unit_test_teardown(pids_that_collide, proc_end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
