/* SPDX-License-Identifier: MIT */
/*
 * A program from another world: it includes no header of ours. It knows liburma.so.0 by name, the
 * functions by their names, and the structs by their published sizes and offsets alone, as a
 * program does that was compiled elsewhere against the original headers. It does what the tutorial
 * does: a server registers memory, a client writes "hello urma" into it and reads it back.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A mutex is larger on some machines, and moves what comes behind it. */
#define MORE ((int)sizeof(pthread_mutex_t) - 40)

/* Sizes, and offsets in bytes. */
enum {
	DEVICE_NAME = 0,
	DEVICE_TYPE = 4160,
	DEVICE_OPS = 4168,
	DEVICE_ATTR = 496,
	ATTR_PORT_CNT = 320,
	ATTR_PORT_STATE = 324 + 4,
	ATTR_MAX_JFC_DEPTH = 16 + 28,
	CONTEXT_OPS = 8,
	CONTEXT_EID = 64 + MORE,
	CONTEXT_UASID = 84 + MORE,
	OPS_IMPORT_JETTY_EX = 536,
	JFC_CFG = 32,
	JFC_CFG_DEPTH = 0,
	JFC_CFG_JFCE = 16,
	JFR_CFG = 48,
	JFR_CFG_DEPTH = 4,
	JFR_CFG_FLAG = 8,
	JFR_CFG_MODE = 12,
	JFR_CFG_MAX_SGE = 16,
	JFR_CFG_JFC = 24,
	JFR_CFG_TOKEN = 32,
	JETTY_CFG = 80,
	JETTY_CFG_FLAG = 4,
	JETTY_CFG_JFS = 8,
	JFS_CFG_DEPTH = 0,
	JFS_CFG_FLAG = 4,
	JFS_CFG_MODE = 8,
	JFS_CFG_MAX_SGE = 13,
	JFS_CFG_MAX_RSGE = 14,
	JFS_CFG_RNR_RETRY = 20,
	JFS_CFG_ERR_TIMEOUT = 21,
	JFS_CFG_JFC = 24,
	JETTY_CFG_SHARED_JFR = 48,
	JETTY_ID = 8,
	ID_SIZE = 24,
	ID_UASID = 16,
	ID_ID = 20,
	SEG_CFG = 48,
	SEG_CFG_VA = 0,
	SEG_CFG_LEN = 8,
	SEG_CFG_TOKEN = 24,
	SEG_CFG_FLAG = 28,
	SEG = 48,
	SEG_UASID = 16,
	SEG_VA = 20,
	SEG_LEN = 32,
	SEG_TOKEN_ID = 44,
	RJETTY = 48,
	RJETTY_MODE = 24,
	RJETTY_TYPE = 32,
	RJETTY_FLAG = 36,
	RJETTY_TP_TYPE = 40,
	SGE = 32,
	SGE_ADDR = 0,
	SGE_LEN = 8,
	SGE_TSEG = 16,
	WR = 80,
	WR_OPCODE = 0,
	WR_FLAG = 4,
	WR_TJETTY = 8,
	WR_USER = 16,
	WR_RW_SRC = 24,
	WR_RW_DST = 24 + 16,
	SG_NUM = 8,
	CR = 80,
	CR_STATUS = 0,
	CR_USER = 8,
	CR_FLAG = 20,
	CR_LEN = 24,
	CR_LOCAL_ID = 28,
	CR_REMOTE = 32,
};

enum {
	RM = 1,
	JETTY = 1,
	CTP = 1,
	WRITE = 0,
	READ = 16,
	PLAIN_TEXT = 1,
	ACCESS_RWA = 14
};
enum {
	TOKEN = 0xabcd,
	SIZE = 4096
};

/* Storage for a foreign struct. */
#define FOREIGN(name, size) _Alignas(8) unsigned char name[size] = { 0 }

static void put(void *object, int offset, uint64_t value, size_t size)
{
	memcpy((char *)object + offset, &value, size); /* both machines are little-endian */
}

static uint64_t get(const void *object, int offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)object + offset, size);
	return value;
}

static int (*urma_init)(void *);
static int (*urma_uninit)(void);
static void **(*get_device_list)(int *);
static void (*free_device_list)(void **);
static int (*query_device)(void *, void *);
static void *(*create_context)(void *, uint32_t);
static int (*delete_context)(void *);
static void *(*create_jfce)(void *);
static int (*delete_jfce)(void *);
static void *(*create_jfc)(void *, void *);
static int (*delete_jfc)(void *);
static void *(*create_jfr)(void *, void *);
static int (*delete_jfr)(void *);
static void *(*create_jetty)(void *, void *);
static int (*delete_jetty)(void *);
static void *(*register_seg)(void *, void *);
static int (*unregister_seg)(void *);
static void *(*import_seg)(void *, void *, void *, uint64_t, uint32_t);
static int (*unimport_seg)(void *);
static void *(*import_jetty)(void *, void *, void *);
static int (*unimport_jetty)(void *);
static int (*post_send)(void *, void *, void **);
static int (*poll_jfc)(void *, int, void *);
static int (*rearm_jfc)(void *, _Bool);
static int (*wait_jfc)(void *, uint32_t, int, void **);
static void (*ack_jfc)(void **, uint32_t *, uint32_t);

static const struct {
	const char *name;
	void *place; /* a function pointer's */
} symbols[] = {
	{ "urma_init", &urma_init },
	{ "urma_uninit", &urma_uninit },
	{ "urma_get_device_list", &get_device_list },
	{ "urma_free_device_list", &free_device_list },
	{ "urma_query_device", &query_device },
	{ "urma_create_context", &create_context },
	{ "urma_delete_context", &delete_context },
	{ "urma_create_jfce", &create_jfce },
	{ "urma_delete_jfce", &delete_jfce },
	{ "urma_create_jfc", &create_jfc },
	{ "urma_delete_jfc", &delete_jfc },
	{ "urma_create_jfr", &create_jfr },
	{ "urma_delete_jfr", &delete_jfr },
	{ "urma_create_jetty", &create_jetty },
	{ "urma_delete_jetty", &delete_jetty },
	{ "urma_register_seg", &register_seg },
	{ "urma_unregister_seg", &unregister_seg },
	{ "urma_import_seg", &import_seg },
	{ "urma_unimport_seg", &unimport_seg },
	{ "urma_import_jetty", &import_jetty },
	{ "urma_unimport_jetty", &unimport_jetty },
	{ "urma_post_jetty_send_wr", &post_send },
	{ "urma_poll_jfc", &poll_jfc },
	{ "urma_rearm_jfc", &rearm_jfc },
	{ "urma_wait_jfc", &wait_jfc },
	{ "urma_ack_jfc", &ack_jfc },
};

static int failures;

static void check(int good, const char *what)
{
	if (good)
		return;
	failures++;
	fprintf(stderr, "urma_abi_only: %s\n", what);
}

/* In the build's folder: sanitizers load on the program's behalf, and forget its search path. */
static void *open_companion(void)
{
	const char *dir = getenv("XTAL_TEST_BUILD_DIR");
	char path[512] = "libtpsa.so";

	if (dir)
		snprintf(path, sizeof(path), "%s/lib/libtpsa.so", dir);
	return dlopen(path, RTLD_NOW);
}

static void load(void)
{
	void *library = dlopen("liburma.so.0", RTLD_NOW), *companion = open_companion();
	int (*get_path_set)(const void *, const void *, uint32_t, _Bool, void *) = NULL;
	FOREIGN(eid, 16);

	check(library != NULL, "liburma.so.0 cannot be loaded");
	for (unsigned i = 0; library && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *function = dlsym(library, symbols[i].name);

		check(function != NULL, symbols[i].name);
		memcpy(symbols[i].place, &function, sizeof(function));
	}
	check(companion != NULL, "libtpsa.so cannot be loaded");
	if (companion) {
		void *function = dlsym(companion, "uvs_get_path_set");

		memcpy(&get_path_set, &function, sizeof(function));
	}
	check(get_path_set && get_path_set(eid, eid, 0, 0, eid) != 0, "there is a path set");
}

/* One process's objects. */
static struct {
	void *device, *ctx, *jfce, *jfc, *jfr, *jetty, *seg;
	unsigned char memory[SIZE];
} side;

static void open_side(void)
{
	FOREIGN(jfc, JFC_CFG);
	FOREIGN(jfr, JFR_CFG);
	FOREIGN(jetty, JETTY_CFG);
	FOREIGN(seg, SEG_CFG);
	FOREIGN(attr, DEVICE_ATTR);
	void **list;
	int count = 0;

	check(urma_init(NULL) == 0, "init");
	list = get_device_list(&count);
	check(list && count >= 1, "no device");
	side.device = list[0];
	free_device_list(list); /* the devices stay */
	check(strncmp((char *)side.device + DEVICE_NAME, "xtal", 4) == 0, "another name");
	check(get(side.device, DEVICE_TYPE, 4) == 0, "another type");
	check(get(side.device, DEVICE_OPS, 8) != 0, "no ops");
	check(query_device(side.device, attr) == 0 && get(attr, ATTR_PORT_CNT, 1) >= 1 &&
		      get(attr, ATTR_PORT_STATE, 4) == 4 &&
		      get(attr, ATTR_MAX_JFC_DEPTH, 4) >= 65536,
	      "another device");
	side.ctx = create_context(side.device, 0);
	check(side.ctx != NULL, "no context");
	check(get((void *)(uintptr_t)get(side.ctx, CONTEXT_OPS, 8), OPS_IMPORT_JETTY_EX, 8) == 0,
	      "a slot of the ops is not NULL");
	side.jfce = create_jfce(side.ctx);
	put(jfc, JFC_CFG_DEPTH, get(attr, ATTR_MAX_JFC_DEPTH, 4), 4);
	put(jfc, JFC_CFG_JFCE, (uintptr_t)side.jfce, 8);
	side.jfc = create_jfc(side.ctx, jfc);
	check(side.jfce && side.jfc, "no completion queue");
	put(jfr, JFR_CFG_DEPTH, 16, 4);
	put(jfr, JFR_CFG_FLAG, PLAIN_TEXT, 4);
	put(jfr, JFR_CFG_MODE, RM, 4);
	put(jfr, JFR_CFG_MAX_SGE, 1, 1);
	put(jfr, JFR_CFG_JFC, (uintptr_t)side.jfc, 8);
	put(jfr, JFR_CFG_TOKEN, TOKEN, 4);
	side.jfr = create_jfr(side.ctx, jfr);
	put(jetty, JETTY_CFG_FLAG, 1, 4);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_DEPTH, 16, 4);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_MODE, RM, 4);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_MAX_SGE, 1, 1);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_MAX_RSGE, 1, 1);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_RNR_RETRY, 7, 1);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_ERR_TIMEOUT, 17, 1);
	put(jetty, JETTY_CFG_JFS + JFS_CFG_JFC, (uintptr_t)side.jfc, 8);
	put(jetty, JETTY_CFG_SHARED_JFR, (uintptr_t)side.jfr, 8);
	side.jetty = create_jetty(side.ctx, jetty);
	check(side.jfr && side.jetty, "no jetty");
	check(get(jetty, JETTY_CFG_JFS + JFS_CFG_FLAG, 4) >> 3 == 2,
	      "the order is not written back");
	put(seg, SEG_CFG_VA, (uintptr_t)side.memory, 8);
	put(seg, SEG_CFG_LEN, SIZE, 8);
	put(seg, SEG_CFG_TOKEN, TOKEN, 4);
	put(seg, SEG_CFG_FLAG, PLAIN_TEXT | ACCESS_RWA << 5, 4);
	side.seg = register_seg(side.ctx, seg);
	check(side.seg != NULL, "no segment");
}

static void close_side(void)
{
	check(unregister_seg(side.seg) == 0, "unregister");
	check(delete_jetty(side.jetty) == 0, "delete jetty");
	check(delete_jfr(side.jfr) == 0, "delete jfr");
	check(delete_jfc(side.jfc) == 0, "delete jfc");
	check(delete_jfce(side.jfce) == 0, "delete jfce");
	check(delete_context(side.ctx) == 0, "delete context");
	check(urma_uninit() == 0, "uninit");
}

/* What the sides tell each other: the jetty's id and the segment. */
struct told {
	unsigned char id[ID_SIZE], seg[SEG];
};

static void tell(struct told *out)
{
	memcpy(out->id, (char *)side.jetty + JETTY_ID, ID_SIZE);
	memcpy(out->seg, side.seg, SEG); /* it comes first */
	check(get(out->id, ID_UASID, 4) == get(side.ctx, CONTEXT_UASID, 4), "another uasid");
	check(memcmp(out->id, (char *)side.ctx + CONTEXT_EID, 16) == 0, "another EID");
	check(get(out->seg, SEG_UASID, 4) == get(side.ctx, CONTEXT_UASID, 4), "another owner");
	check(get(out->seg, SEG_VA, 8) == (uintptr_t)side.memory, "another address");
	check(get(out->seg, SEG_LEN, 8) == SIZE, "another length");
	check(get(out->seg, SEG_TOKEN_ID, 4) != 0, "no token id");
}

/* Posts one request and sleeps until its record is there. */
static void request(int opcode, void *tjetty, const void *src, const void *dst, uint64_t user,
		    uint32_t len, const struct told *peer)
{
	FOREIGN(wr, WR);
	FOREIGN(cr, CR);
	void *bad = NULL, *fired = NULL;
	uint32_t one = 1;

	put(wr, WR_OPCODE, (uint64_t)opcode, 4);
	put(wr, WR_FLAG, 1 << 5, 4); /* complete_enable */
	put(wr, WR_TJETTY, (uintptr_t)tjetty, 8);
	put(wr, WR_USER, user, 8);
	put(wr, WR_RW_SRC, (uintptr_t)src, 8);
	put(wr, WR_RW_SRC + SG_NUM, 1, 4);
	put(wr, WR_RW_DST, (uintptr_t)dst, 8);
	put(wr, WR_RW_DST + SG_NUM, 1, 4);
	check(rearm_jfc(side.jfc, 0) == 0, "rearm");
	check(post_send(side.jetty, wr, &bad) == 0 && !bad, "post");
	check(wait_jfc(side.jfce, 1, 20000, &fired) == 1 && fired == side.jfc, "wait");
	ack_jfc(&fired, &one, 1);
	check(poll_jfc(side.jfc, 1, cr) == 1, "poll");
	check(get(cr, CR_STATUS, 4) == 0, "status");
	check(get(cr, CR_USER, 8) == user, "user_ctx");
	check(get(cr, CR_LEN, 4) == len, "completion_len");
	check(get(cr, CR_FLAG, 1) == 2, "flag");
	check(get(cr, CR_LOCAL_ID, 4) == get(side.jetty, JETTY_ID + ID_ID, 4), "local_id");
	check(memcmp(cr + CR_REMOTE, peer->id, ID_SIZE) == 0, "remote_id");
}

static void set_sge(void *sge, uint64_t addr, uint32_t len, void *tseg)
{
	put(sge, SGE_ADDR, addr, 8);
	put(sge, SGE_LEN, len, 4);
	put(sge, SGE_TSEG, (uintptr_t)tseg, 8);
}

static void client(const struct told *server)
{
	static const char text[] = "hello urma";
	FOREIGN(rjetty, RJETTY);
	FOREIGN(here, SGE);
	FOREIGN(there, SGE);
	FOREIGN(token, 8);
	FOREIGN(seg, SEG);
	void *tjetty, *tseg;

	put(token, 0, TOKEN, 4);
	memcpy(rjetty, server->id, ID_SIZE);
	put(rjetty, RJETTY_MODE, RM, 4);
	put(rjetty, RJETTY_TYPE, JETTY, 4);
	put(rjetty, RJETTY_FLAG, PLAIN_TEXT, 4);
	put(rjetty, RJETTY_TP_TYPE, CTP, 4);
	memcpy(seg, server->seg, SEG);
	tjetty = import_jetty(side.ctx, rjetty, token);
	tseg = import_seg(side.ctx, seg, token, 0, 0);
	check(tjetty && tseg, "import");
	if (!tjetty || !tseg)
		return;
	memcpy(side.memory, text, sizeof(text));
	set_sge(here, (uintptr_t)side.memory, sizeof(text), side.seg);
	set_sge(there, get(server->seg, SEG_VA, 8), sizeof(text), tseg);
	request(WRITE, tjetty, here, there, 101, sizeof(text), server);
	set_sge(here, (uintptr_t)side.memory + 2048, sizeof(text), side.seg);
	request(READ, tjetty, there, here, 102, sizeof(text), server);
	check(memcmp(side.memory + 2048, text, sizeof(text)) == 0, "another text is read");
	check(unimport_seg(tseg) == 0, "unimport seg");
	check(unimport_jetty(tjetty) == 0, "unimport jetty");
}

/* The server sleeps in read() meanwhile. */
static int server(int fd)
{
	struct told mine;
	char byte;

	load();
	if (failures)
		return 1;
	open_side();
	if (failures)
		return 1;
	tell(&mine);
	check(write(fd, &mine, sizeof(mine)) == sizeof(mine), "tell");
	check(read(fd, &byte, 1) == 1, "the client is gone");
	check(memcmp(side.memory, "hello urma", 11) == 0, "another text is written");
	close_side();
	return failures != 0;
}

int main(void)
{
	struct told peer, mine;
	int fds[2], status = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return 1;
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		_exit(server(fds[1]));
	}
	close(fds[1]);
	load();
	if (failures)
		return 1;
	open_side();
	if (failures)
		return 1;
	tell(&mine);
	check(recv(fds[0], &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer), "the server is gone");
	if (!failures)
		client(&peer);
	close_side();
	check(write(fds[0], "", 1) == 1, "bye");
	check(waitpid(pid, &status, 0) == pid && status == 0, "the server has failed");
	printf("urma_abi_only: %s\n", failures ? "failed" : "ok");
	return failures != 0;
}
