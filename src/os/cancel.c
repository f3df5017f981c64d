/* SPDX-License-Identifier: MIT */
/* Cancelling of threads: not in our system calls; see cancel.h. */
#include "os/cancel.h"

#include <pthread.h>

int xtal_os_cancel_off(void)
{
	int was;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	return was;
}

void xtal_os_cancel_back(const int *was)
{
	int off;

	pthread_setcancelstate(*was, &off);
}
