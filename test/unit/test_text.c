/* SPDX-License-Identifier: MIT */
/* Bounded text, identifiers, sizes, and the distance of words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void add_cuts(void **state)
{
	char buf[10] = "", guard[4] = { 'x', 'x', 'x', 'x' };
	size_t used = 0;

	(void)state;
	xtal_text_add(buf, sizeof(buf), &used, "%s %d", "ab", 7);
	assert_string_equal(buf, "ab 7");
	assert_int_equal(used, 4);
	xtal_text_add(buf, sizeof(buf), &used, "%s", "12345");
	assert_string_equal(buf, "ab 712345");
	assert_int_equal(used, 9);
	xtal_text_add(buf, sizeof(buf), &used, "more");
	assert_string_equal(buf, "ab 712345");
	assert_int_equal(used, 9);
	used = 500; /* a caller's mistake stays inside the buffer */
	xtal_text_add(buf, sizeof(buf), &used, "more");
	assert_int_equal(used, 9);
	used = 0;
	xtal_text_add(guard, 0, &used, "nothing");
	assert_int_equal(used, 0);
	assert_memory_equal(guard, "xxxx", 4);
	xtal_text_add(guard, 1, &used, "nothing");
	assert_int_equal(used, 0);
	assert_memory_equal(guard, "\0xxx", 4);
}

static void check_eid(const char *text, uint64_t hi, uint64_t lo, const char *back)
{
	struct xtal_eid eid;
	char buf[46];

	assert_int_equal(xtal_parse_eid(text, &eid), 0);
	assert_true(eid.hi == hi && eid.lo == lo);
	assert_string_equal(xtal_text_eid(eid, buf, sizeof(buf)), back);
}

static void eids(void **state)
{
	static const char *const bad[] = { "",
					   " 1",
					   "1 ",
					   "-1",
					   "1.2.3",
					   "1.2.3.4.5",
					   "256.1.1.1",
					   "4294967296",
					   "0x",
					   "abc",
					   "fe80::1%lo",
					   "12x",
					   "99999999999999999999" };
	struct xtal_eid eid = { 1, 2 };
	char buf[8];

	(void)state;
	check_eid("127.0.0.1", 0, 0x0000ffff7f000001u, "127.0.0.1");
	check_eid("::ffff:10.1.2.3", 0, 0x0000ffff0a010203u, "10.1.2.3");
	check_eid("2130706433", 0, 0x0000ffff7f000001u, "127.0.0.1");
	check_eid("0x7F000001", 0, 0x0000ffff7f000001u, "127.0.0.1");
	check_eid("3", 0, 0x0000ffff00000003u, "0.0.0.3");
	check_eid("4294967295", 0, 0x0000ffffffffffffu, "255.255.255.255");
	check_eid("fe80::1:2", 0xfe80000000000000u, 0x0000000000010002u, "fe80::1:2");
	check_eid("::", 0, 0, "::");
	check_eid("1122:3344:5566:7788:99aa:bbcc:ddee:ff00", 0x1122334455667788u,
		  0x99aabbccddeeff00u, "1122:3344:5566:7788:99aa:bbcc:ddee:ff00");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(xtal_parse_eid(bad[i], &eid), -EINVAL);
	assert_true(eid.hi == 1 && eid.lo == 2); /* written only on success */
	assert_int_equal(xtal_parse_eid("1122:3344::", &eid), 0);
	assert_string_equal(xtal_text_eid(eid, buf, sizeof(buf)), "1122:33"); /* cut */
}

/* Link-local addresses carry their link; what comes from outside carries none. */
static void scopes(void **state)
{
	struct xtal_eid eid, other = xtal_eid_from_ipv4(0x7f000001);
	char buf[XTAL_EID_TEXT];

	(void)state;
	assert_int_equal(xtal_parse_eid("fe80::9:8:7:1:2", &eid), 0); /* bytes 6, 7 are no scope */
	assert_int_equal(xtal_eid_scope(eid), 0);
	assert_int_equal(xtal_parse_eid("febf::1", &eid), 0);
	assert_true(xtal_eid_is_link_local(eid));
	assert_int_equal(xtal_parse_eid("fec0::1", &eid), 0);
	assert_false(xtal_eid_is_link_local(eid));
	assert_true(xtal_eid_equal(xtal_eid_scoped(eid, 5), eid));
	assert_int_equal(xtal_parse_eid("fe80::1", &eid), 0);
	eid = xtal_eid_scoped(eid, 4294967295u);
	assert_int_equal(xtal_eid_scope(eid), 4294967295u);
	assert_string_equal(xtal_text_eid(eid, buf, sizeof(buf)), "fe80::1%4294967295");
	eid = xtal_eid_scoped(eid, 0);
	assert_string_equal(xtal_text_eid(eid, buf, sizeof(buf)), "fe80::1");
	assert_int_equal(xtal_eid_scope(other), 0);
	assert_true(xtal_eid_is_loopback(other));
	assert_true(xtal_eid_is_loopback((struct xtal_eid){ 0, 1 }));
	assert_false(xtal_eid_is_loopback((struct xtal_eid){ 0, 0 }));
	assert_false(xtal_eid_is_loopback(xtal_eid_from_ipv4(0x0a7f0001)));
}

static void check_size(const char *text, uint64_t max, int ret, uint64_t value)
{
	uint64_t v = 12345;

	assert_int_equal(xtal_parse_size(text, max, &v), ret);
	assert_true(v == (ret ? 12345 : value));
}

static void sizes(void **state)
{
	(void)state;
	check_size("0", 0, 0, 0);
	check_size("65536", UINT64_MAX, 0, 65536);
	check_size("64k", 65536, 0, 65536);
	check_size("64K", 65535, -ERANGE, 0);
	check_size("2m", UINT64_MAX, 0, 2u << 20);
	check_size("3G", UINT64_MAX, 0, (uint64_t)3 << 30);
	check_size("0x10k", UINT64_MAX, 0, 16384);
	check_size("18446744073709551615", UINT64_MAX, 0, UINT64_MAX);
	check_size("18446744073709551616", UINT64_MAX, -ERANGE, 0);
	check_size("18014398509481984k", UINT64_MAX, -ERANGE, 0);
	check_size("99999999999999999999x", UINT64_MAX, -EINVAL, 0);
	check_size("17179869184g", UINT64_MAX, -ERANGE, 0);
	check_size("", UINT64_MAX, -EINVAL, 0);
	check_size("k", UINT64_MAX, -EINVAL, 0);
	check_size("1kb", UINT64_MAX, -EINVAL, 0);
	check_size("1 k", UINT64_MAX, -EINVAL, 0);
	check_size(" 1", UINT64_MAX, -EINVAL, 0);
	check_size("-1", UINT64_MAX, -EINVAL, 0);
	check_size("+1", UINT64_MAX, -EINVAL, 0);
	check_size("0x", UINT64_MAX, -EINVAL, 0);
	check_size("1t", UINT64_MAX, -EINVAL, 0);
}

static void distances(void **state)
{
	char a[200], b[200];

	(void)state;
	assert_int_equal(xtal_text_distance("", ""), 0);
	assert_int_equal(xtal_text_distance("", "abc"), 3);
	assert_int_equal(xtal_text_distance("abc", ""), 3);
	assert_int_equal(xtal_text_distance("kitten", "sitting"), 3);
	assert_int_equal(xtal_text_distance("saturday", "sunday"), 3);
	assert_int_equal(xtal_text_distance("XTAL_ADOPT", "XTAL_ADAPT"), 1);
	assert_int_equal(xtal_text_distance("path", "paths"), 1);
	assert_int_equal(xtal_text_distance("aa", "aaa"), 1);
	assert_int_equal(xtal_text_distance("flaw", "lawn"), 2);
	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	a[199] = b[199] = '\0';
	b[100] = 'y';
	assert_int_equal(xtal_text_distance(a, b), 1); /* common ends are cut */
	memset(b, 'y', 120);
	b[120] = '\0';
	assert_int_equal(xtal_text_distance(a, b), 199);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_cuts), cmocka_unit_test(eids),      cmocka_unit_test(scopes),
		cmocka_unit_test(sizes),    cmocka_unit_test(distances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
