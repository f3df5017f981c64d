/* SPDX-License-Identifier: MIT */
/*
 * Signals that writing to descriptors raises and that end programs: SIGPIPE, and SIGXFSZ beyond
 * RLIMIT_FSIZE, which counts for our unnamed objects too. Programs must not die of what we do.
 */
#ifndef XTAL_OS_QUIET_H
#define XTAL_OS_QUIET_H

#include <signal.h>

struct xtal_os_quiet {
	sigset_t old, pending;
};

/* From here on this thread gets neither. */
void xtal_os_quiet_begin(struct xtal_os_quiet *q);
/* err: what came of it, 0 or -errno. Takes back the signal that came with it, if it was ours. */
void xtal_os_quiet_end(const struct xtal_os_quiet *q, int err);

#endif
