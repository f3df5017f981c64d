/* SPDX-License-Identifier: MIT */
/* Bounded text building and small parsers; never allocates, always terminates the string. */
#ifndef XTAL_BASE_TEXT_H
#define XTAL_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/eid.h"

/* Appends printf-style text at *used (kept <= size-1); silently cuts what does not fit. */
void xtal_text_add(char *buf, size_t size, size_t *used, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Dotted IPv4 for mapped addresses, else IPv6 text, with "%number" for the scope of link-local
 * ones. buf needs XTAL_EID_TEXT bytes. Returns buf. */
#define XTAL_EID_TEXT 57
const char *xtal_text_eid(struct xtal_eid eid, char *buf, size_t size);

/* Parses dotted IPv4, IPv6 text without a scope, or a plain number (a 32-bit CDMA EID).
 * Errors: -EINVAL. */
int xtal_parse_eid(const char *text, struct xtal_eid *out);

/* Whole-string unsigned number with optional suffix k, m, g (powers of 1024). Errors:
 * -EINVAL (not a number), -ERANGE (above max). */
int xtal_parse_size(const char *text, uint64_t max, uint64_t *out);

/* Number of single-character edits between two words (for "did you mean"). */
unsigned xtal_text_distance(const char *a, const char *b);

#endif
