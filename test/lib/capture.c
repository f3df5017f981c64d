/* SPDX-License-Identifier: MIT */
/* Capture files, packet sockets, tshark; see capture.h. */
#define _GNU_SOURCE
#include "lib/capture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_FRAME 65535u

FILE *capture_create(const char *path)
{
	const uint32_t header[] = { 0xa1b2c3d4, 2 | 4 << 16, 0, 0, MAX_FRAME, 1 /* Ethernet */ };
	FILE *f = fopen(path, "wbe");

	if (f)
		fwrite(header, sizeof(header), 1, f);
	return f;
}

static void put_frame(FILE *f, const void *data, size_t len)
{
	struct timeval now;
	uint32_t header[4];

	gettimeofday(&now, NULL);
	header[0] = (uint32_t)now.tv_sec;
	header[1] = (uint32_t)now.tv_usec;
	header[2] = header[3] = (uint32_t)len;
	fwrite(header, sizeof(header), 1, f);
	fwrite(data, len, 1, f);
}

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

void capture_segment(FILE *f, bool forth, uint32_t seq, const void *data, size_t len)
{
	uint8_t frame[14 + 20 + 20 + 1460] = { 0 }, *ip = frame + 14, *tcp = ip + 20;

	put16(frame + 12, ETHERTYPE_IP);
	ip[0] = 0x45;
	put16(ip + 2, 40 + len);
	ip[8] = 64;
	ip[9] = IPPROTO_TCP;
	put32(ip + 12, forth ? 0x0a4d0001 : 0x0a4d0002);
	put32(ip + 16, forth ? 0x0a4d0002 : 0x0a4d0001);
	put16(tcp, forth ? 1000 : 2000);
	put16(tcp + 2, forth ? 2000 : 1000);
	put32(tcp + 4, 1 + seq);
	tcp[12] = 5 << 4;
	tcp[13] = 0x18; /* PSH, ACK */
	put16(tcp + 14, 0xffff);
	memcpy(tcp + 20, data, len);
	put_frame(f, frame, 54 + len);
}

static volatile sig_atomic_t stop;

static void on_stop(int signo)
{
	(void)signo;
	stop = 1;
}

/* In the new process. */
static void listen_in(int ns, const char *path, int tell)
{
	static uint8_t frame[MAX_FRAME];
	struct sockaddr_ll where = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct sigaction act = { .sa_handler = on_stop };
	int room = 32 << 20, fd, err = 0;
	FILE *f = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGTERM, &act, NULL);
	if (setns(ns, CLONE_NEWNET))
		err = errno;
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
	where.sll_ifindex = (int)if_nametoindex("eth0");
	if (!err && (fd < 0 || bind(fd, (const void *)&where, sizeof(where))))
		err = errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (!err) {
		f = capture_create(path);
		err = f ? 0 : errno;
	}
	if (write(tell, &err, sizeof(err)) < 0 || err)
		_exit(1);
	for (;;) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t n;

		/* What is there when we are to stop still counts. */
		if (poll(&ready, 1, stop ? 50 : 200) <= 0) {
			if (stop)
				break;
			continue;
		}
		n = recv(fd, frame, sizeof(frame), 0);
		if (n > 0)
			put_frame(f, frame, (size_t)n);
	}
	fclose(f);
	_exit(0);
}

const char *capture_start(struct capture *c, int ns, const char *path)
{
	int fds[2], err = EIO;

	if (pipe(fds))
		return strerror(errno);
	c->pid = fork();
	if (c->pid == 0)
		listen_in(ns, path, fds[1]);
	close(fds[1]);
	if (read(fds[0], &err, sizeof(err)) != sizeof(err))
		err = EIO;
	close(fds[0]);
	if (!err)
		return NULL;
	waitpid(c->pid, NULL, 0);
	return strerror(err);
}

void capture_stop(struct capture *c)
{
	kill(c->pid, SIGTERM);
	waitpid(c->pid, NULL, 0);
}

const char *capture_dissect(const char *path, const char *args, char *out, size_t size)
{
	const char *source = getenv("XTAL_TEST_SOURCE_DIR");
	char command[1024], rest[512];
	size_t used = 0;
	FILE *f;

	if (system("command -v tshark >/dev/null 2>&1") != 0)
		return "tshark is not installed";
	if (!source)
		return "XTAL_TEST_SOURCE_DIR does not say where the dissector is";
	snprintf(command, sizeof(command),
		 "tshark -X lua_script:%s/tools/wireshark/xtal.lua -o tcp.check_checksum:FALSE "
		 "-r %s %s 2>%s.err",
		 source, path, args, path);
	f = popen(command, "re");
	if (!f)
		return "popen failed";
	while (used < size - 1) {
		size_t n = fread(out + used, 1, size - 1 - used, f);

		if (n == 0)
			break;
		used += n;
	}
	out[used] = 0;
	while (fread(rest, 1, sizeof(rest), f) > 0)
		;
	return pclose(f) == 0 ? NULL : "tshark failed";
}
