/* SPDX-License-Identifier: MIT */
/*
 * XTAL_CHECK: what programs do wrong, told in a sentence. Here: which operations of a queue were
 * posted and not seen to end, and whether their data stayed as it was. The front-ends ask, and know
 * the words. Without XTAL_CHECK none of this exists; a queue that is checked has another magic
 * number, so that posting and polling test nothing more for it.
 */
#ifndef XTAL_CORE_CHECK_H
#define XTAL_CORE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/export.h"
#include "core/op.h"

struct xtal_check;

/* XTAL_CHECK=1? */
XTAL_INTERNAL_API bool xtal_checks(void);
/* ns, monotonic. */
XTAL_INTERNAL_API uint64_t xtal_check_now(void);

/* Sets the calling thread's xtal_last_error() text and logs it as a warning. */
XTAL_INTERNAL_API void xtal_diagnose(const char *tag, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Of one queue; name: for sentences ("jetty 0x1f"), copied. NULL: no memory, nothing is checked;
 * the functions below take that. Any thread may call them. */
XTAL_INTERNAL_API struct xtal_check *xtal_check_new(const char *name);
XTAL_INTERNAL_API void xtal_check_free(struct xtal_check *c);

struct xtal_checked {
	uint64_t user;
	bool signalled;   /* its end will be seen */
	bool source;      /* its local memory must not change before */
	uint64_t suspect; /* its remote address, when that looks wrong; 0: it does not */
};
/* Whether the program itself can read (or write) all of the range. */
XTAL_INTERNAL_API bool xtal_check_reach(uint64_t addr, uint64_t len, bool write);
/* An operation is about to be posted; its local memory. Returns its number. */
XTAL_INTERNAL_API uint64_t xtal_check_posted(struct xtal_check *c, const struct xtal_checked *op,
					     const struct xtal_sge *sges, uint32_t count);
/* It was refused. */
XTAL_INTERNAL_API void xtal_check_refused(struct xtal_check *c, uint64_t number);
/* The program has seen that an operation with this user value ended, well or not. True: its data
 * was changed since it was posted; where: the piece that was. suspect (or NULL): as at the post. */
XTAL_INTERNAL_API bool xtal_check_ended(struct xtal_check *c, uint64_t user, bool well,
					struct xtal_sge *where, uint64_t *suspect);
/* All are forgotten. */
XTAL_INTERNAL_API void xtal_check_forget(struct xtal_check *c);
/* How many are waited for, and of these the first one's user value; how many nobody will hear of. */
struct xtal_check_open {
	uint32_t signalled, silent;
	uint64_t user;
};
XTAL_INTERNAL_API void xtal_check_look(struct xtal_check *c, struct xtal_check_open *out);
/* An operation of any queue that is waited for and whose local memory is in the range: its user
 * value, and the queue's name (64 bytes). */
XTAL_INTERNAL_API bool xtal_check_uses(uint64_t addr, uint64_t len, uint64_t *user, char *name);

#endif
