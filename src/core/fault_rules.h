/* SPDX-License-Identifier: MIT */
/*
 * The language of XTAL_FAULT: rules separated by spaces, each a fault and its words, such as
 * "fail:op=3,status=REMOTE_ACCESS flush:ms=500". Pure: text in, rules or a sentence out.
 */
#ifndef XTAL_CORE_FAULT_RULES_H
#define XTAL_CORE_FAULT_RULES_H

#include <stddef.h>
#include <stdint.h>

#define XTAL_FAULT_RULES 16u

enum xtal_fault_kind {
	XTAL_FAULT_FAIL,     /* an operation ends with a status, and does nothing */
	XTAL_FAULT_LOSE,     /* from an operation on its peer counts as dead */
	XTAL_FAULT_WITHHOLD, /* messages do not find a receive that was posted */
	XTAL_FAULT_FLUSH,    /* FLUSH_DONE comes late */
	XTAL_FAULT_KILL,     /* the process ends, as by SIGKILL */
};

struct xtal_fault_rule {
	enum xtal_fault_kind kind;
	uint32_t queue;       /* the how manieth of the process, from 1; 0: each */
	uint64_t first, last; /* operations (receives) of the queue, from 1; 0: not given */
	uint32_t ms;
	uint32_t status; /* FAIL: enum xtal_status */
};

struct xtal_fault_rules {
	uint32_t count;
	struct xtal_fault_rule rule[XTAL_FAULT_RULES];
};

/* Errors: -EINVAL, with a sentence in why that names the word at fault and what is allowed. */
int xtal_fault_parse(const char *text, struct xtal_fault_rules *out, char *why, size_t size);

#endif
