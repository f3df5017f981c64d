/* SPDX-License-Identifier: MIT */
/* Registrations that the hardware refuses; see strict.h. */
#include "core/strict.h"

#include <errno.h>
#include <stdatomic.h>

#include "core/context_impl.h"
#include "core/log.h"
#include "os/vm.h"

#define ALIGN (4u << 10) /* the hardware's, whatever our pages are */
#define END   (1ull << 48)
/* A range of more mappings is not looked at further: only a sentence depends on it. */
#define MAPPINGS_LOOKED_AT 64

static bool differs(const struct xtal_segment *a, const struct xtal_segment *b)
{
	return a->addr != b->addr || a->len != b->len;
}

static bool not_identical(void *value, void *arg)
{
	return differs(value, arg);
}

struct twin_count {
	const struct xtal_segment *want;
	unsigned count;
};

static bool count_identical(void *value, void *arg)
{
	struct twin_count *t = arg;

	t->count += !differs(value, t->want);
	return false;
}

/* The identical range may be registered twice. */
static bool overlaps(struct xtal_registry *r, const struct xtal_segment *seg)
{
	uint64_t end = seg->addr + seg->len;
	struct twin_count twins = { .want = seg };

	xtal_intervals_touching(&r->by_addr, seg->addr, end, count_identical, &twins);
	return twins.count >= 2 || xtal_intervals_touching(&r->by_addr, seg->addr, end,
							   not_identical, (void *)(uintptr_t)seg);
}

int xtal_strict_refuses(struct xtal_registry *r, const struct xtal_segment *seg)
{
	size_t page = xtal_os_page_size();
	uint64_t end = seg->addr + seg->len;

	if (seg->addr % ALIGN) {
		xtal_explain("segment at 0x%llx: strict mode wants an address that is a "
			     "multiple of %u",
			     (unsigned long long)seg->addr, ALIGN);
		return -EINVAL;
	}
	if (end > END) {
		xtal_explain("segment at 0x%llx, %llu bytes: strict mode ends at 2^48",
			     (unsigned long long)seg->addr, (unsigned long long)seg->len);
		return -EINVAL;
	}
	for (uint64_t a = seg->addr; a < end; a += page) {
		if (!xtal_os_probe_write((void *)(uintptr_t)a))
			continue;
		xtal_explain("segment at 0x%llx, %llu bytes: the page at 0x%llx is not "
			     "mapped writable (strict mode)",
			     (unsigned long long)seg->addr, (unsigned long long)seg->len,
			     (unsigned long long)a);
		return -EFAULT;
	}
	if (overlaps(r, seg)) {
		xtal_explain("segment at 0x%llx, %llu bytes: overlaps a registered one "
			     "(strict mode allows only the identical range, twice)",
			     (unsigned long long)seg->addr, (unsigned long long)seg->len);
		return -EEXIST;
	}
	return 0;
}

static bool was_said(const atomic_bool *said)
{
	return atomic_load_explicit(said, memory_order_relaxed);
}

/* Of each kind once per process. */
static void say(atomic_bool *said, const struct xtal_segment *seg, const char *what)
{
	if (!atomic_exchange(said, true))
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "segment at 0x%llx, %llu bytes, %s; hardware refuses that (said once; "
			 "XTAL_STRICT=1 refuses it)",
			 (unsigned long long)seg->addr, (unsigned long long)seg->len, what);
}

static bool is_mapped_writable(const struct xtal_segment *seg)
{
	uint64_t at = seg->addr, end = seg->addr + seg->len;

	for (unsigned i = 0; i < MAPPINGS_LOOKED_AT && at < end; i++) {
		struct xtal_os_backing b;
		int err = xtal_os_backing_find((const void *)(uintptr_t)at, &b);

		if (err)
			return err != -ENOENT; /* else nobody knows */
		if (!b.writable)
			return false;
		at = b.end;
	}
	return true;
}

void xtal_strict_warns(const struct xtal_segment *seg)
{
	static atomic_bool said_align, said_end, said_pages;

	if (seg->addr % ALIGN && !was_said(&said_align))
		say(&said_align, seg, "begins at no multiple of 4096");
	if (seg->addr + seg->len > END) {
		if (!was_said(&said_end))
			say(&said_end, seg, "ends above 2^48");
	} else if (!was_said(&said_pages) && !is_mapped_writable(seg)) {
		say(&said_pages, seg, "is not wholly mapped and writable");
	}
}

void xtal_strict_warns_of_overlap(struct xtal_registry *r, const struct xtal_segment *seg)
{
	static atomic_bool said_overlap;

	if (!was_said(&said_overlap) && overlaps(r, seg))
		say(&said_overlap, seg, "overlaps another one");
}
