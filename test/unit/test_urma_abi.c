/* SPDX-License-Identifier: MIT */
/*
 * The URMA headers have exactly the layout, numbers and prototypes that programs were compiled
 * against. Nearly all of it is decided when this file is compiled; where bit-fields lie, and what
 * the inline functions answer, can only be seen by running it.
 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "urma_api.h"
#include "urma_perf.h"
#include "urma_provider.h"
#include "urma_types_str.h"
#include "urma_ubagg.h"

#define MUTEX_GROWTH (sizeof(pthread_mutex_t) - 40)

#define SIZE(type, bytes)  _Static_assert(sizeof(type) == (bytes), #type);
#define ALIGN(type, bytes) _Static_assert(alignof(type) == (bytes), #type);
#define PART(type, member, offset, bytes)                                      \
	_Static_assert(offsetof(type, member) == (offset), #type "." #member); \
	_Static_assert(sizeof(((type *)0)->member) == (bytes), #type "." #member);
#define MEMBER(type, member, its_type, offset, bytes)                                           \
	PART(type, member, offset, bytes)                                                       \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((type *)0)->member), its_type), \
		       #type "." #member);
#define BITS(type, member, first, bits)
#define ENUMERATOR(name, value) _Static_assert((name) == (value), #name);
#define SAME(name, type)        _Static_assert(__builtin_types_compatible_p(name, type), #name);
#define NUMBER(macro, value)    _Static_assert((macro) == (value), #macro);
#define TEXT(macro, value)      _Static_assert(sizeof(macro) == sizeof(value), #macro);
#define NAMED(function, argument, text)
#define FUNCTION(returns, name, parameters) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), returns parameters), #name);
#include "urma_abi_rows.inc"

_Static_assert(sizeof(void *) == 8, "the layout is that of 64-bit machines");
_Static_assert(URMA_GET_VERSION(1, 2) == 65538, "a version");
_Static_assert(URMA_GET_VERSION(1, 70000) == 131071, "the minor number is cut");

#undef SIZE
#undef ALIGN
#undef PART
#undef MEMBER
#undef BITS
#undef ENUMERATOR
#undef SAME
#undef NUMBER
#undef TEXT
#undef NAMED
#undef FUNCTION
#define SIZE(type, bytes)
#define ALIGN(type, bytes)
#define PART(type, member, offset, bytes)
#define MEMBER(type, member, its_type, offset, bytes)
#define ENUMERATOR(name, value)
#define SAME(name, type)
#define NUMBER(macro, value)
#define FUNCTION(returns, name, parameters)

/* The bit numbers, from the struct's first byte on, that are set in an object. */
static void first_and_count(const void *object, size_t size, unsigned *first, unsigned *count)
{
	const unsigned char *bytes = object;

	*first = ~0u;
	*count = 0;
	for (unsigned bit = 0; bit < size * 8; bit++) {
		if (!(bytes[bit / 8] >> (bit % 8) & 1))
			continue;
		if (*first == ~0u)
			*first = bit;
		(*count)++;
	}
}

static void bit_fields_lie_where_programs_expect_them(void **state)
{
	(void)state;
#define TEXT(macro, value)
#define NAMED(function, argument, text)
#define BITS(type, member, first, bits)                                   \
	{                                                                 \
		type object;                                              \
		unsigned start, count;                                    \
                                                                          \
		memset(&object, 0, sizeof(object));                       \
		object.member--;                                          \
		first_and_count(&object, sizeof(object), &start, &count); \
		assert_int_equal(start, first);                           \
		assert_int_equal(count, bits);                            \
	}
#include "urma_abi_rows.inc"
}

#define tp_type_en(number) ((union urma_tp_type_en){ .value = (number) })

static void values_have_their_names(void **state)
{
	(void)state;
#undef BITS
#undef NAMED
#undef TEXT
#define BITS(type, member, first, bits)
#define TEXT(macro, value)              assert_string_equal(macro, value);
#define NAMED(function, argument, text) assert_string_equal(function(argument), text);
#include "urma_abi_rows.inc"
	assert_string_equal(urma_tp_type_en_to_string(tp_type_en(URMA_RTP)), "RTP");
	assert_string_equal(urma_tp_type_en_to_string(tp_type_en(URMA_CTP)), "CTP");
	assert_string_equal(urma_tp_type_en_to_string(tp_type_en(URMA_UTP)), "UTP");
	assert_string_equal(urma_tp_type_en_to_string(tp_type_en(99)), "Invalid Value");
}

static void an_eid_is_printed_in_network_order(void **state)
{
	urma_eid_t eid = { .raw = { 0x20, 1, 0xd, 0xb8, [15] = 0xfe } };
	char text[URMA_EID_STR_LEN + 1];

	(void)state;
	assert_int_equal(snprintf(text, sizeof(text), EID_FMT, EID_ARGS(eid)), URMA_EID_STR_LEN);
	assert_string_equal(text, "2001:0db8:0000:0000:0000:0000:0000:00fe");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bit_fields_lie_where_programs_expect_them),
		cmocka_unit_test(values_have_their_names),
		cmocka_unit_test(an_eid_is_printed_in_network_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
