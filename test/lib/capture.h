/* SPDX-License-Identifier: MIT */
/*
 * Captures of network traffic, as files that tshark reads: of a stream that a test made up, or
 * of what really goes over an interface (in a network namespace of ours, where we are root).
 */
#ifndef TEST_LIB_CAPTURE_H
#define TEST_LIB_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Begins a file of Ethernet frames. NULL: it cannot be made. */
FILE *capture_create(const char *path);
/* Appends a TCP segment between two addresses (10.77.0.1:1000 and 10.77.0.2:2000, the first
 * to the second when forth); seq counts each direction's bytes. */
void capture_segment(FILE *f, bool forth, uint32_t seq, const void *data, size_t len);

/* Captures what eth0 of the namespace carries, into a file, by a process of its own. NULL or
 * the reason why not. */
struct capture {
	int pid;
};
const char *capture_start(struct capture *c, int ns, const char *path);
void capture_stop(struct capture *c);

/*
 * Runs tshark with our dissector on a capture; args: "-T fields -e xtal.type" or the like. What
 * it prints into out, cut. NULL, or the reason why it cannot run here.
 */
const char *capture_dissect(const char *path, const char *args, char *out, size_t size);

#endif
