/* SPDX-License-Identifier: MIT */
/* The parser of XTAL_FAULT; see fault_rules.h. */
#include "core/fault_rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "base/text.h"
#include "xtal.h"

#define TEXT_SIZE 512
#define MAX_MS    3600000u

enum word {
	OP = 1,
	STATUS = 2,
	MS = 4,
	QUEUE = 8
};

static const struct kind {
	const char *name;
	unsigned takes, needs;
	const char *form;
} kinds[] = {
	[XTAL_FAULT_FAIL] = { "fail", OP | STATUS | QUEUE, OP | STATUS,
			      "fail:op=N,status=NAME[,queue=K]" },
	[XTAL_FAULT_LOSE] = { "lose", OP | QUEUE, OP, "lose:op=N[,queue=K]" },
	[XTAL_FAULT_WITHHOLD] = { "withhold", OP | MS | QUEUE, OP,
				  "withhold:op=N[,ms=T][,queue=K]" },
	[XTAL_FAULT_FLUSH] = { "flush", MS | QUEUE, MS, "flush:ms=T[,queue=K]" },
	[XTAL_FAULT_KILL] = { "kill", OP | MS | QUEUE, 0, "kill:op=N[,queue=K] or kill:ms=T" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const struct {
	const char *name;
	enum word word;
} words[] = { { "op", OP }, { "status", STATUS }, { "ms", MS }, { "queue", QUEUE } };

/* Where the sentence goes. */
struct complaint {
	char *why;
	size_t size;
};

static int __attribute__((format(printf, 2, 3)))
complain(const struct complaint *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->why, c->size, format, args);
	va_end(args);
	return -EINVAL;
}

/* An operation can end so. */
static bool is_ending(unsigned status)
{
	return status > XTAL_OK && status < XTAL_STATUS_COUNT && status != XTAL_FLUSHED &&
	       status != XTAL_SUSPEND_DONE && status != XTAL_FLUSH_DONE && status != XTAL_UNHANDLED;
}

static int parse_status(const char *value, uint32_t *out, const struct complaint *c)
{
	char list[TEXT_SIZE] = "";
	size_t used = 0;
	uint64_t number;

	if (!xtal_parse_size(value, XTAL_STATUS_COUNT - 1, &number) &&
	    is_ending((unsigned)number)) {
		*out = (uint32_t)number;
		return 0;
	}
	for (unsigned i = 0; i < XTAL_STATUS_COUNT; i++) {
		const char *name = xtal_status_name((int)i);

		if (!is_ending(i))
			continue;
		if (strcasecmp(name, value) == 0) {
			*out = i;
			return 0;
		}
		xtal_text_add(list, sizeof(list), &used, "%s%s", used ? ", " : "", name);
	}
	return complain(c, "no operation ends with the status '%s', but with %s", value, list);
}

static int parse_number(const char *name, const char *value, uint64_t max, uint64_t *out,
			const struct complaint *c)
{
	if (*value && !xtal_parse_size(value, max, out) && *out)
		return 0;
	return complain(c, "%s=%s is no number from 1 to %llu", name, value,
			(unsigned long long)max);
}

/* "3", "3-5" or "3-". */
static int parse_op(char *value, struct xtal_fault_rule *r, const struct complaint *c)
{
	char *dash = strchr(value, '-');
	int err;

	if (dash)
		*dash = 0;
	err = parse_number("op", value, UINT32_MAX, &r->first, c);
	r->last = dash ? UINT64_MAX : r->first;
	if (!err && dash && dash[1])
		err = parse_number("op", dash + 1, UINT32_MAX, &r->last, c);
	if (!err && r->last < r->first)
		err = complain(c, "op=%s-%s ends before it begins", value, dash + 1);
	return err;
}

static int parse_word(char *text, struct xtal_fault_rule *r, unsigned *given,
		      const struct complaint *c)
{
	const struct kind *kind = &kinds[r->kind];
	char *value = strchr(text, '=');
	uint64_t number = 0;
	unsigned word = 0;
	int err = 0;

	if (value)
		*value++ = 0;
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, text) == 0)
			word = words[i].word;
	if (!value || !(word & kind->takes))
		return complain(c, "%s does not take '%s%s%s'; its form is %s", kind->name, text,
				value ? "=" : "", value ? value : "", kind->form);
	if (word & *given)
		return complain(c, "%s= is given twice to %s", text, kind->name);
	*given |= word;
	switch ((enum word)word) {
	case OP:
		return parse_op(value, r, c);
	case STATUS:
		return parse_status(value, &r->status, c);
	case MS:
		err = parse_number(text, value, MAX_MS, &number, c);
		r->ms = (uint32_t)number;
		break;
	case QUEUE:
		err = parse_number(text, value, UINT32_MAX, &number, c);
		r->queue = (uint32_t)number;
		break;
	}
	return err;
}

static int parse_rule(char *text, struct xtal_fault_rule *r, const struct complaint *c)
{
	char *rest = strchr(text, ':'), *word;
	unsigned given = 0, kind = 0;
	int err = 0;

	if (rest)
		*rest++ = 0;
	while (kind < KINDS && strcmp(kinds[kind].name, text) != 0)
		kind++;
	if (kind == KINDS)
		return complain(c, "'%s' is no fault; fail, lose, withhold, flush and kill are",
				text);
	*r = (struct xtal_fault_rule){ .kind = (enum xtal_fault_kind)kind };
	while (rest && !err && (word = strsep(&rest, ",")))
		err = parse_word(word, r, &given, c);
	if (err)
		return err;
	if (kinds[kind].needs & ~given ||
	    (kind == XTAL_FAULT_KILL && !(given & MS) == !(given & OP)))
		return complain(c, "%s is incomplete; its form is %s", text, kinds[kind].form);
	return 0;
}

int xtal_fault_parse(const char *text, struct xtal_fault_rules *out, char *why, size_t size)
{
	const struct complaint c = { .why = why, .size = size };
	struct xtal_fault_rules rules = { .count = 0 };
	char copy[TEXT_SIZE], *rest = copy, *word;

	if (strlen(text) >= sizeof(copy))
		return complain(&c, "it has more than %zu characters", sizeof(copy) - 1);
	snprintf(copy, sizeof(copy), "%s", text);
	while ((word = strsep(&rest, " \t\n"))) {
		int err;

		if (!*word)
			continue;
		if (rules.count == XTAL_FAULT_RULES)
			return complain(&c, "it has more than %u rules", XTAL_FAULT_RULES);
		err = parse_rule(word, &rules.rule[rules.count++], &c);
		if (err)
			return err;
	}
	*out = rules;
	return 0;
}
