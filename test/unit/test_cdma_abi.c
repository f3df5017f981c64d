/* SPDX-License-Identifier: MIT */
/*
 * The CDMA headers have exactly the layout, numbers and prototypes that programs were compiled
 * against. Nearly all of it is decided when this file is compiled; where bit-fields lie can
 * only be seen by setting them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/ioctl.h>

#include "cdma_u_lib.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define PART(type, member, offset, bytes)                                      \
	_Static_assert(offsetof(type, member) == (offset), #type "." #member); \
	_Static_assert(sizeof(((type *)0)->member) == (bytes), #type "." #member);
#define MEMBER(type, member, its_type, offset, bytes)                                           \
	PART(type, member, offset, bytes)                                                       \
	_Static_assert(__builtin_types_compatible_p(__typeof__(((type *)0)->member), its_type), \
		       #type "." #member);
#define BITS(type, member, first, bits)
#define ENUMERATOR(name, value) _Static_assert((name) == (value), #name);
#define NUMBER(macro, value)    _Static_assert((macro) == (value), #macro);
#define TEXT(macro, value)      _Static_assert(sizeof(macro) == sizeof(value), #macro);
#define FUNCTION(returns, name, parameters) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), returns parameters), #name);
#include "cdma_abi_rows.inc"

_Static_assert(sizeof(void *) == 8, "the layout is that of 64-bit machines");

#undef SIZE
#undef PART
#undef MEMBER
#undef BITS
#undef ENUMERATOR
#undef NUMBER
#undef TEXT
#undef FUNCTION

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
#define SIZE(type, bytes)
#define PART(type, member, offset, bytes)
#define MEMBER(type, member, its_type, offset, bytes)
#define ENUMERATOR(name, value)
#define NUMBER(macro, value)
#define TEXT(macro, value)
#define FUNCTION(returns, name, parameters)
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
#include "cdma_abi_rows.inc"
}

static void the_version_text_is_the_one_reported(void **state)
{
	(void)state;
#undef BITS
#undef TEXT
#define BITS(type, member, first, bits)
#define TEXT(macro, value) assert_string_equal(macro, value);
#include "cdma_abi_rows.inc"
}

static void ioctl_numbers_carry_the_size_of_their_record(void **state)
{
	(void)state;
	assert_int_equal(_IOC_SIZE(CDMA_SYNC), sizeof(struct cdma_ioctl_hdr));
	assert_int_equal(_IOC_SIZE(CDMA_CMD_GET_ASYNC_EVENT), sizeof(struct cdma_cmd_async_event));
	assert_int_equal(_IOC_SIZE(CDMA_CMD_WAIT_JFC), sizeof(struct cdma_cmd_jfce_wait_args));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bit_fields_lie_where_programs_expect_them),
		cmocka_unit_test(the_version_text_is_the_one_reported),
		cmocka_unit_test(ioctl_numbers_carry_the_size_of_their_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
