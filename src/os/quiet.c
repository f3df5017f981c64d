/* SPDX-License-Identifier: MIT */
/* Blocking signals for a moment; see quiet.h. */
#define _GNU_SOURCE
#include "os/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "os/cancel.h"

void xtal_os_quiet_begin(struct xtal_os_quiet *q)
{
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGPIPE);
	sigaddset(&both, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &both, &q->old);
	if (sigpending(&q->pending))
		sigemptyset(&q->pending);
}

void xtal_os_quiet_end(const struct xtal_os_quiet *q, int err)
{
	__attribute__((cleanup(xtal_os_cancel_back), unused)) int cancel = xtal_os_cancel_off();
	int ours = err == -EPIPE ? SIGPIPE : err == -EFBIG ? SIGXFSZ : 0;
	struct timespec no_wait = { 0 };
	sigset_t only;

	if (ours && sigismember(&q->pending, ours) == 0) {
		sigemptyset(&only);
		sigaddset(&only, ours);
		while (sigtimedwait(&only, NULL, &no_wait) < 0 && errno == EINTR)
			;
	}
	pthread_sigmask(SIG_SETMASK, &q->old, NULL);
}
