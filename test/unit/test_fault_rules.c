/* SPDX-License-Identifier: MIT */
/* XTAL_FAULT as it is written: what is understood, and the sentences about what is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "core/fault_rules.h"

static struct xtal_fault_rules parse(const char *text)
{
	struct xtal_fault_rules rules;
	char why[400] = "";

	if (xtal_fault_parse(text, &rules, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return rules;
}

static void rules_are_understood(void **state)
{
	struct xtal_fault_rules r = parse("  fail:op=3,status=REMOTE_ACCESS \t lose:queue=2,op=4- "
					  "withhold:op=2-5,ms=70 flush:ms=9 kill:op=8 kill:ms=3");

	(void)state;
	assert_int_equal(r.count, 6);
	assert_int_equal(r.rule[0].kind, XTAL_FAULT_FAIL);
	assert_int_equal(r.rule[0].first, 3);
	assert_int_equal(r.rule[0].last, 3);
	assert_int_equal(r.rule[0].status, XTAL_REMOTE_ACCESS);
	assert_int_equal(r.rule[0].queue, 0);
	assert_int_equal(r.rule[1].kind, XTAL_FAULT_LOSE);
	assert_int_equal(r.rule[1].queue, 2);
	assert_int_equal(r.rule[1].first, 4);
	assert_true(r.rule[1].last == UINT64_MAX);
	assert_int_equal(r.rule[2].kind, XTAL_FAULT_WITHHOLD);
	assert_int_equal(r.rule[2].first, 2);
	assert_int_equal(r.rule[2].last, 5);
	assert_int_equal(r.rule[2].ms, 70);
	assert_int_equal(r.rule[3].kind, XTAL_FAULT_FLUSH);
	assert_int_equal(r.rule[3].ms, 9);
	assert_int_equal(r.rule[4].kind, XTAL_FAULT_KILL);
	assert_int_equal(r.rule[4].first, 8);
	assert_int_equal(r.rule[4].ms, 0);
	assert_int_equal(r.rule[5].ms, 3);
	assert_int_equal(r.rule[5].first, 0);
	assert_int_equal(parse("").count, 0);
	assert_int_equal(parse("fail:op=1,status=9").rule[0].status, XTAL_UNREACHABLE);
	assert_int_equal(parse("fail:op=1,status=not_ready").rule[0].status, XTAL_NOT_READY);
}

/* The sentence names the word at fault, and what is allowed. */
static void nonsense_is_explained(void **state)
{
	static const char *const rows[][3] = {
		{ "fial:op=1,status=9", "'fial'", "fail, lose, withhold, flush and kill" },
		{ "fail", "fail is incomplete", "fail:op=N,status=NAME" },
		{ "fail:op=1", "fail is incomplete", "fail:op=N,status=NAME" },
		{ "fail:op=0,status=9", "op=0", "from 1" },
		{ "fail:op=,status=9", "op=", "from 1" },
		{ "fail:op=x,status=9", "op=x", "from 1" },
		{ "fail:op=-3,status=9", "op=", "from 1" },
		{ "fail:op=5-3,status=9", "op=5-3", "ends before it begins" },
		{ "fail:op=1,status=BROKEN", "'BROKEN'", "REMOTE_ACCESS" },
		{ "fail:op=1,status=SUCCESS", "'SUCCESS'", "UNREACHABLE" },
		{ "fail:op=1,status=13", "'13'", "UNREACHABLE" },
		{ "fail:op=1,status=FLUSHED", "'FLUSHED'", "UNREACHABLE" },
		{ "fail:op=1,op=2,status=9", "op=", "twice" },
		{ "fail:op=1,status=9,ms=4", "'ms=4'", "fail:op=N,status=NAME" },
		{ "fail:op=1,status=9,colour=4", "'colour=4'", "fail:op=N,status=NAME" },
		{ "fail:op=1,status=9,", "''", "fail:op=N,status=NAME" },
		{ "lose:op", "'op'", "lose:op=N" },
		{ "lose:op=1,queue=0", "queue=0", "from 1" },
		{ "flush:op=1,ms=4", "'op=1'", "flush:ms=T" },
		{ "flush:ms=3600001", "ms=3600001", "3600000" },
		{ "withhold:ms=4", "withhold is incomplete", "withhold:op=N" },
		{ "kill", "kill is incomplete", "kill:ms=T" },
		{ "kill:op=1,ms=4", "kill is incomplete", "kill:ms=T" },
	};
	struct xtal_fault_rules rules;
	char why[400], many[600] = "";

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		why[0] = 0;
		rules.count = 77;
		assert_int_equal(xtal_fault_parse(rows[i][0], &rules, why, sizeof(why)), -EINVAL);
		assert_int_equal(rules.count, 77);
		if (!strstr(why, rows[i][1]) || !strstr(why, rows[i][2]))
			fail_msg("%s: %s", rows[i][0], why);
	}
	for (unsigned i = 0; i < XTAL_FAULT_RULES; i++)
		strcat(many, "lose:op=1 ");
	assert_int_equal(xtal_fault_parse(many, &rules, why, sizeof(why)), 0);
	strcat(many, "lose:op=1 ");
	assert_int_equal(xtal_fault_parse(many, &rules, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "16 rules"));
	memset(many, ' ', sizeof(many) - 1);
	many[sizeof(many) - 1] = 0;
	assert_int_equal(xtal_fault_parse(many, &rules, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "511"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_understood),
		cmocka_unit_test(nonsense_is_explained),
	};

	return cmocka_run_group_tests_name("fault_rules", tests, NULL, NULL);
}
