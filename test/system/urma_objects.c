/* SPDX-License-Identifier: MIT */
/*
 * Library, devices, contexts, addresses, token ids, segments, log, measuring and transports of
 * URMA: what each call does, and each way in which it refuses. ctest: timeout=60
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/proc.h"
#include "urma_api.h"
#include "urma_perf.h"
#include "urma_provider.h"
#include "xtal.h"

static urma_device_t **list;
static int devices;
static urma_context_t *ctx;
static char memory[8192];

static void assert_refused(const char *words)
{
	if (strstr(xtal_last_error(), words))
		return;
	print_error("'%s' does not say '%s'\n", xtal_last_error(), words);
	fail();
}

static void assert_null_with(const void *result, int error, const char *words)
{
	assert_null(result);
	assert_int_equal(errno, error);
	assert_refused(words);
	errno = 0;
}

static int open_all(void **state)
{
	(void)state;
	if (urma_init(NULL))
		return -1;
	list = urma_get_device_list(&devices);
	ctx = list ? urma_create_context(list[0], 0) : NULL;
	return ctx ? 0 : -1;
}

static int close_all(void **state)
{
	(void)state;
	if (urma_delete_context(ctx))
		return -1;
	urma_free_device_list(list);
	return urma_uninit() ? -1 : 0;
}

/* ---- Library and devices ---- */

static void the_library_starts_and_ends_again_and_again(void **state)
{
	int count = 7;

	(void)state;
	assert_int_equal(urma_uninit(), URMA_SUCCESS); /* not begun */
	assert_null_with(urma_get_device_list(&count), ENODEV, "urma_init was not called");
	assert_int_equal(count, 0);
	assert_null_with(urma_get_device_by_name("xtal0"), ENODEV, "urma_init was not called");
	for (int i = 0; i < 3; i++) {
		urma_init_attr_t advice = { .token = 5, .uasid = 6 };
		urma_device_t **some;

		assert_int_equal(urma_init(&advice), URMA_SUCCESS);
		assert_int_equal(urma_init(NULL), URMA_EEXIST);
		assert_refused("it was called before");
		some = urma_get_device_list(&count);
		assert_non_null(some);
		assert_true(count >= 1);
		assert_null(some[count]);
		urma_free_device_list(some);
		assert_int_equal(urma_uninit(), URMA_SUCCESS);
	}
	urma_free_device_list(NULL);
	assert_null_with(urma_get_device_list(NULL), EINVAL, "num_devices is NULL");
}

static void a_device_is_what_programs_look_for(void **state)
{
	urma_device_t *d = list[0];
	urma_device_attr_t a;
	unsigned rtp = 0, ctp = 0, utp = 0;

	(void)state;
	assert_string_equal(d->name, "xtal0");
	assert_null(strstr(d->name, "bonding"));
	assert_int_equal(d->type, URMA_TRANSPORT_UB);
	assert_string_equal(d->ops->name, "xtal");
	assert_int_equal(urma_query_device(d, &a), URMA_SUCCESS);
	assert_int_equal(a.port_cnt, 1);
	assert_int_equal(a.port_attr[0].state, URMA_PORT_ACTIVE);
	assert_true(a.dev_cap.max_jfc_depth >= 65536 && a.dev_cap.max_jfs_depth >= 512 &&
		    a.dev_cap.max_jfr_depth >= 1024);
	assert_true(a.dev_cap.max_jfs_sge >= 13 && a.dev_cap.max_jfs_sge <= 255);
	assert_true(a.dev_cap.max_jfr_sge >= 1 && a.dev_cap.max_jfr_sge <= 255);
	assert_true(a.dev_cap.max_jfs_rsge >= 2 && a.dev_cap.max_jfs_rsge <= 255);
	assert_true(a.dev_cap.max_jfs_inline_len >= 192);
	assert_true(a.dev_cap.max_msg_size >= 64 << 20);
	assert_int_equal(a.dev_cap.max_jetty, 0xffff0000);
	assert_int_equal(a.dev_cap.trans_mode, URMA_TM_RM | URMA_TM_RC | URMA_TM_UM);
	for (int i = 0; i < URMA_MAX_PRIORITY_CNT; i++) {
		rtp += a.dev_cap.priority_info[i].tp_type.value == 1;
		ctp += a.dev_cap.priority_info[i].tp_type.value == 2;
		utp += a.dev_cap.priority_info[i].tp_type.value == 4;
	}
	assert_true(rtp && ctp && utp);
	assert_int_equal(urma_query_device(NULL, &a), URMA_EINVAL);
	assert_refused("dev is NULL");
	assert_int_equal(urma_query_device(d, NULL), URMA_EINVAL);
	assert_refused("dev_attr is NULL");
	assert_int_equal(urma_query_device((urma_device_t *)memory, &a), URMA_EINVAL);
	assert_refused("is no device of this library");
}

static void devices_are_found_by_name_and_by_address(void **state)
{
	char longest[80];
	urma_eid_t eid;

	(void)state;
	assert_ptr_equal(urma_get_device_by_name("xtal0"), list[0]);
	assert_null_with(urma_get_device_by_name(NULL), EINVAL, "NULL");
	assert_null_with(urma_get_device_by_name(""), EINVAL, "empty");
	memset(longest, 'x', sizeof(longest));
	longest[64] = 0;
	assert_null_with(urma_get_device_by_name(longest), EINVAL, "longer than 63");
	longest[63] = 0;
	assert_null_with(urma_get_device_by_name(longest), ENODEV, "is called");
	assert_int_equal(urma_str_to_eid("127.0.0.1", &eid), 0);
	assert_ptr_equal(urma_get_device_by_eid(eid, URMA_TRANSPORT_UB), list[0]);
	assert_null_with(urma_get_device_by_eid(eid, URMA_TRANSPORT_IB), ENODEV, "has the EID");
	eid.raw[0] = 1; /* all bytes count */
	assert_null_with(urma_get_device_by_eid(eid, URMA_TRANSPORT_UB), ENODEV, "has the EID");
}

static void the_place_of_an_eid_is_its_index(void **state)
{
	uint32_t count = 0;
	urma_eid_info_t *eids = urma_get_eid_list(list[0], &count);

	(void)state;
	assert_non_null(eids);
	assert_true(count >= 1);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(eids[i].eid_index, i);
	assert_memory_equal(&eids[0].eid, &ctx->eid, 16);
	urma_free_eid_list(eids);
	urma_free_eid_list(NULL);
	assert_null_with(urma_get_eid_list(NULL, &count), EINVAL, "dev is NULL");
	assert_null_with(urma_get_eid_list(list[0], NULL), EINVAL, "cnt is NULL");
}

static void text_becomes_an_address(void **state)
{
	static const uint8_t loopback[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	static const uint8_t six[16] = { 0x20, 1, 0xd, 0xb8, [15] = 7 };
	static const char *const bad[] = { "",   "1.2.3", "1.2.3.4.5",  "::g",     "7x",
					   "-1", "x",     "4294967296", "1.2.3.4 " };
	urma_eid_t eid, same;

	(void)state;
	assert_int_equal(urma_str_to_eid("127.0.0.1", &eid), 0);
	assert_memory_equal(eid.raw, loopback, 16);
	assert_int_equal(eid.in4.reserved, 0);
	assert_int_equal(ntohl(eid.in4.prefix), URMA_IPV4_MAP_IPV6_PREFIX);
	assert_int_equal(ntohl(eid.in4.addr), 0x7f000001);
	urma_u32_to_eid(0x7f000001, &same);
	assert_memory_equal(&eid, &same, 16);
	assert_int_equal(urma_str_to_eid("2130706433", &same), 0);
	assert_memory_equal(&eid, &same, 16);
	assert_int_equal(urma_str_to_eid("2001:db8::7", &eid), 0);
	assert_memory_equal(eid.raw, six, 16);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(urma_str_to_eid(bad[i], &eid), -EINVAL);
		assert_memory_equal(eid.raw, six, 16);
		assert_refused("is neither an IPv6 address");
	}
	assert_int_equal(urma_str_to_eid(NULL, &eid), -EINVAL);
	assert_int_equal(urma_str_to_eid("1", NULL), -EINVAL);
	urma_u32_to_eid(1, NULL); /* nothing happens */
}

/* ---- Contexts ---- */

static void contexts_differ(void **state)
{
	urma_context_t *other = urma_create_context(list[0], 0);
	uint32_t uasid = 0;
	const uint64_t *slots;

	(void)state;
	assert_non_null(other);
	assert_true(other->uasid != 0 && other->uasid >> 24 == 0);
	assert_int_not_equal(other->uasid, ctx->uasid);
	assert_ptr_equal(other->dev, list[0]);
	assert_int_equal(other->eid_index, 0);
	assert_int_equal(other->aggr_mode, URMA_AGGR_MODE_STANDALONE);
	assert_int_equal(atomic_load(&other->ref.atomic_cnt), 1);
	assert_true(other->async_fd >= 0);
	slots = (const uint64_t *)(const void *)other->ops;
	for (size_t i = 0; i < sizeof(struct urma_ops) / 8; i++)
		assert_int_equal(slots[i], 0);
	assert_int_equal(urma_get_uasid(&uasid), URMA_SUCCESS);
	assert_int_equal(uasid, ctx->uasid); /* the oldest */
	assert_int_equal(urma_get_uasid(NULL), URMA_EINVAL);
	assert_int_equal(urma_delete_context(other), URMA_SUCCESS);
}

static void a_context_is_refused_in_words(void **state)
{
	(void)state;
	assert_null_with(urma_create_context(NULL, 0), EINVAL, "dev is NULL");
	assert_null_with(urma_create_context((urma_device_t *)memory, 0), EINVAL, "is no device");
	assert_null_with(urma_create_context(list[0], 999), EIO, "no EID with index 999");
	assert_int_equal(urma_delete_context(NULL), URMA_EINVAL);
	assert_refused("the context is NULL");
	assert_int_equal(urma_delete_context((urma_context_t *)memory), URMA_EINVAL);
	assert_refused("is no live context");
}

static void a_context_with_children_stays(void **state)
{
	urma_context_t *other = urma_create_context(list[0], 0);
	urma_token_id_t *id = urma_alloc_token_id(other);

	(void)state;
	assert_int_equal(atomic_load(&other->ref.atomic_cnt), 2);
	assert_int_equal(urma_delete_context(other), URMA_EAGAIN);
	assert_refused("delete them first");
	assert_int_equal(urma_free_token_id(id), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(other), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(other), URMA_EINVAL);
}

static void there_are_no_options_and_no_extensions(void **state)
{
	urma_context_aggr_mode_t mode = URMA_AGGR_MODE_BALANCE;
	urma_user_ctl_in_t in = { .opcode = 4 };
	urma_user_ctl_out_t out = { 0 };

	(void)state;
	assert_int_equal(urma_set_context_opt(ctx, URMA_OPT_AGGR_MODE, &mode, sizeof(mode)),
			 URMA_EINVAL);
	assert_refused("only bonded devices");
	assert_int_equal(urma_set_context_opt(NULL, URMA_OPT_AGGR_MODE, &mode, sizeof(mode)),
			 URMA_EINVAL);
	assert_int_equal(urma_user_ctl(ctx, &in, &out), URMA_FAIL);
	assert_refused("no extension 4");
	assert_int_equal(urma_user_ctl(NULL, &in, &out), URMA_EINVAL);
	assert_int_equal(urma_user_ctl(ctx, NULL, &out), URMA_EINVAL);
	assert_int_equal(urma_user_ctl(ctx, &in, NULL), URMA_EINVAL);
}

static void without_events_a_non_blocking_program_is_told_so(void **state)
{
	urma_async_event_t event;
	int flags = fcntl(ctx->async_fd, F_GETFL);

	(void)state;
	assert_true(flags >= 0 && !(flags & O_NONBLOCK));
	assert_int_equal(fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(urma_get_async_event(ctx, &event), URMA_FAIL);
	assert_int_equal(urma_get_async_event(NULL, &event), URMA_EINVAL);
	assert_int_equal(urma_get_async_event(ctx, NULL), URMA_EINVAL);
	urma_ack_async_event(NULL);
	fcntl(ctx->async_fd, F_SETFL, flags);
}

/* ---- Token ids and segments ---- */

static void token_ids_are_numbers_of_their_context(void **state)
{
	urma_token_id_t *a = urma_alloc_token_id(ctx), *b = urma_alloc_token_id(ctx), *c;
	urma_token_id_flag_t multi = { .bs.multi_seg = 1 }, plain = { 0 };

	(void)state;
	assert_true(a && b && a->token_id && b->token_id && a->token_id >> 20 == 0);
	assert_int_not_equal(a->token_id, b->token_id);
	assert_ptr_equal(a->urma_ctx, ctx);
	c = urma_alloc_token_id_ex(ctx, plain);
	assert_non_null(c);
	assert_null_with(urma_alloc_token_id_ex(ctx, multi), EINVAL, "not supported");
	assert_null_with(urma_alloc_token_id(NULL), EINVAL, "the context is NULL");
	assert_int_equal(urma_free_token_id(a), URMA_SUCCESS);
	assert_int_equal(urma_free_token_id(a), URMA_EINVAL);
	assert_int_equal(urma_free_token_id(b), URMA_SUCCESS);
	assert_int_equal(urma_free_token_id(c), URMA_SUCCESS);
	assert_int_equal(urma_free_token_id(NULL), URMA_EINVAL);
}

static urma_seg_cfg_t all_memory(void)
{
	return (urma_seg_cfg_t){
		.va = (uintptr_t)memory,
		.len = sizeof(memory),
		.token_value = { 99 },
		.user_ctx = 1234,
		.flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
			     .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC },
	};
}

static void a_segment_is_described_for_peers(void **state)
{
	urma_seg_cfg_t cfg = all_memory();
	urma_target_seg_t *seg = urma_register_seg(ctx, &cfg);
	struct xtal_descriptor d;
	urma_seg_t *copy;
	uint32_t len;

	(void)state;
	assert_non_null(seg);
	assert_memory_equal(&seg->seg.ubva.eid, &ctx->eid, 16);
	assert_int_equal(seg->seg.ubva.uasid, ctx->uasid);
	assert_int_equal(seg->seg.ubva.va, (uintptr_t)memory);
	assert_int_equal(seg->seg.len, sizeof(memory));
	assert_int_equal(seg->seg.attr.bs.access, 14);
	assert_int_equal(seg->seg.attr.bs.token_policy, URMA_TOKEN_PLAIN_TEXT);
	assert_int_equal(seg->seg.attr.bs.user_token_id, 0);
	assert_int_equal(seg->seg.token_id, seg->token_id->token_id);
	assert_int_equal(seg->user_ctx, 1234);
	assert_int_equal(seg->mva, 0);
	assert_ptr_equal(seg->urma_ctx, ctx);
	assert_int_equal(urma_get_seg_ctx(seg, &copy, &len), URMA_SUCCESS);
	assert_int_equal(len, sizeof(*copy));
	assert_memory_equal(copy, &seg->seg, sizeof(*copy));
	urma_put_seg_ctx(copy);
	urma_put_seg_ctx(NULL);
	urma_put_seg_ctx(calloc(1, sizeof(*copy))); /* programs hand in their own */
	assert_int_equal(urma_get_seg_ctx(NULL, &copy, &len), URMA_EINVAL);
	assert_int_equal(urma_get_seg_ctx(seg, NULL, &len), URMA_EINVAL);
	assert_int_equal(urma_get_seg_ctx(seg, &copy, NULL), URMA_EINVAL);
	assert_int_equal(urma_get_seg_ctx((urma_target_seg_t *)memory, &copy, &len), URMA_EINVAL);
	assert_int_equal(xtal_describe(seg, &d), 0);
	assert_int_equal(d.uasid, ctx->uasid);
	assert_int_equal(d.va, (uintptr_t)memory);
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
	assert_int_equal(urma_unregister_seg(seg), URMA_EINVAL);
	assert_int_equal(urma_unregister_seg(NULL), URMA_EINVAL);
}

static void a_segment_takes_the_token_id_of_the_program(void **state)
{
	urma_token_id_t *id = urma_alloc_token_id(ctx);
	urma_seg_cfg_t cfg = all_memory();
	urma_target_seg_t *seg;

	(void)state;
	cfg.token_id = id;
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "they must agree");
	cfg.flag.bs.token_id_valid = 1;
	seg = urma_register_seg(ctx, &cfg);
	assert_non_null(seg);
	assert_ptr_equal(seg->token_id, id);
	assert_int_equal(seg->seg.token_id, id->token_id);
	assert_int_equal(seg->seg.attr.bs.user_token_id, 1);
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "has a segment already");
	assert_int_equal(urma_free_token_id(id), URMA_EINVAL);
	assert_refused("unregister it first");
	assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
	cfg.token_id = NULL;
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "they must agree");
	assert_int_equal(urma_free_token_id(id), URMA_SUCCESS);
}

static void rights_go_together_or_not(void **state)
{
	urma_seg_cfg_t cfg = all_memory();

	(void)state;
	for (uint32_t access = 0; access < 32; access++) {
		bool good =
			access == 0 || access == 1 || access == 2 || access == 6 || access == 14;
		urma_target_seg_t *seg;

		cfg.flag.bs.access = access & 63;
		seg = urma_register_seg(ctx, &cfg);
		assert_int_equal(seg != NULL, good);
		if (!good)
			assert_null_with(seg, EINVAL, "access 0x");
		else
			assert_int_equal(urma_unregister_seg(seg), URMA_SUCCESS);
	}
}

static void a_bad_segment_is_refused_in_words(void **state)
{
	urma_context_t *other = urma_create_context(list[0], 0);
	urma_seg_cfg_t cfg = all_memory();

	(void)state;
	assert_null_with(urma_register_seg(NULL, &cfg), EINVAL, "the context is NULL");
	assert_null_with(urma_register_seg(ctx, NULL), EINVAL, "seg_cfg is NULL");
	cfg.va = 0;
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "neither may be 0");
	cfg = all_memory();
	cfg.len = 0;
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "neither may be 0");
	cfg.len = UINT64_MAX;
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "must not wrap");
	cfg = all_memory();
	cfg.flag.bs.token_policy = URMA_TOKEN_SIGNED;
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "token policy 2");
	cfg = all_memory();
	cfg.flag.bs.token_id_valid = 1;
	cfg.token_id = urma_alloc_token_id(other);
	assert_null_with(urma_register_seg(ctx, &cfg), EINVAL, "another context");
	assert_int_equal(urma_free_token_id(cfg.token_id), URMA_SUCCESS);
	assert_int_equal(urma_delete_context(other), URMA_SUCCESS);
}

static void importing_a_segment_asks_nobody(void **state)
{
	urma_import_seg_flag_t flag = { 0 };
	urma_token_t token = { 5 };
	urma_seg_t told = { .len = 100, .attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT };
	urma_target_seg_t *seg;

	(void)state;
	told.ubva.eid = ctx->eid;
	told.ubva.uasid = 0x12345; /* nobody */
	told.ubva.va = 0x1000;
	seg = urma_import_seg(ctx, &told, &token, 0, flag);
	assert_non_null(seg);
	assert_memory_equal(&seg->seg, &told, sizeof(told));
	assert_int_equal(seg->mva, 0);
	assert_null(seg->token_id);
	assert_int_equal(urma_unregister_seg(seg), URMA_EINVAL); /* imported */
	assert_int_equal(urma_unimport_seg(seg), URMA_SUCCESS);
	assert_int_equal(urma_unimport_seg(seg), URMA_EINVAL);
	assert_int_equal(urma_unimport_seg(NULL), URMA_EINVAL);
	assert_null_with(urma_import_seg(ctx, &told, NULL, 0, flag), EINVAL, "token_value is NULL");
	assert_null_with(urma_import_seg(ctx, NULL, &token, 0, flag), EINVAL, "seg is NULL");
	assert_null_with(urma_import_seg(NULL, &told, &token, 0, flag), EINVAL, "context is NULL");
	told.attr.bs.token_policy = URMA_TOKEN_NONE;
	seg = urma_import_seg(ctx, &told, NULL, 0, flag);
	assert_non_null(seg);
	assert_int_equal(urma_unimport_seg(seg), URMA_SUCCESS);
}

/* ---- Log and measuring ---- */

static char line[600], place[100];
static int line_level, lines;

static void keep_line(int level, char *text)
{
	line_level = level;
	lines++;
	snprintf(line, sizeof(line), "%s", text);
}

static void keep_place(int level, const char *file, const char *function, int number, char *text)
{
	keep_line(level, text);
	snprintf(place, sizeof(place), "%s %s %d", file, function, number > 0);
}

void urma_log(const char *function, int number, urma_vlog_level_t level, const char *format, ...);
void urma_log_loc(const char *file, const char *function, int number, urma_vlog_level_t level,
		  const char *format, ...);
bool urma_log_drop(urma_vlog_level_t level);

static void lines_go_to_the_program(void **state)
{
	(void)state;
	assert_int_equal(urma_register_log_func(NULL), URMA_EINVAL);
	assert_int_equal(urma_register_loc_log_func(NULL), URMA_EINVAL);
	assert_int_equal(urma_register_log_func(keep_line), URMA_SUCCESS);
	urma_log_set_thread_tag("worker");
	assert_string_equal(urma_log_get_thread_tag(), "worker");
	assert_int_equal(urma_delete_context(NULL), URMA_EINVAL);
	assert_int_equal(line_level, URMA_VLOG_LEVEL_ERR);
	assert_non_null(strstr(line, "worker|"));
	assert_non_null(strstr(line, "|urma_delete_context: the context is NULL"));
	assert_int_equal(urma_register_loc_log_func(keep_place), URMA_SUCCESS);
	urma_log_loc("a.c", "fn", 12, URMA_VLOG_LEVEL_WARNING, "%d pieces", 3);
	assert_string_equal(place, "a.c fn 1");
	assert_string_equal(line, "worker|3 pieces");
	urma_log_set_thread_tag("");
	assert_int_equal(urma_unregister_log_func(), URMA_SUCCESS);
	lines = 0;
	urma_log("fn", 12, URMA_VLOG_LEVEL_WARNING, "to nobody");
	assert_int_equal(lines, 0);
}

static void levels_and_tags_out_of_range_are_ignored(void **state)
{
	char longest[65];

	(void)state;
	urma_register_log_func(keep_line);
	urma_log_set_level(URMA_VLOG_LEVEL_WARNING);
	urma_log_set_level(URMA_VLOG_LEVEL_MAX);
	urma_log_set_level((urma_vlog_level_t)-1);
	assert_int_equal(urma_log_get_level(), URMA_VLOG_LEVEL_WARNING);
	assert_true(urma_log_drop(URMA_VLOG_LEVEL_INFO));
	assert_false(urma_log_drop(URMA_VLOG_LEVEL_WARNING));
	lines = 0;
	urma_log("fn", 1, URMA_VLOG_LEVEL_INFO, "dropped");
	assert_int_equal(lines, 0);
	urma_log("fn", 1, URMA_VLOG_LEVEL_ERR, "kept");
	assert_string_equal(line, "fn[1]|kept");
	urma_log_set_level(URMA_VLOG_LEVEL_INFO);
	urma_log_set_thread_tag("t");
	memset(longest, 'x', 64);
	longest[64] = 0;
	urma_log_set_thread_tag(longest);
	urma_log_set_thread_tag(NULL);
	assert_string_equal(urma_log_get_thread_tag(), "t");
	urma_log_set_thread_tag("");
	urma_unregister_log_func();
}

static void calls_are_measured_on_request(void **state)
{
	urma_jfc_cfg_t cfg = { .depth = 4 };
	urma_jfc_t *jfc = urma_create_jfc(ctx, &cfg);
	uint32_t len = 10;
	char text[4096];
	urma_cr_t cr;

	(void)state;
	assert_int_equal(urma_stop_perf(), URMA_FAIL);
	assert_int_equal(urma_start_perf(), URMA_SUCCESS);
	assert_int_equal(urma_start_perf(), URMA_EEXIST);
	for (int i = 0; i < 5; i++)
		assert_int_equal(urma_poll_jfc(jfc, 1, &cr), 0);
	assert_int_equal(urma_stop_perf(), URMA_SUCCESS);
	assert_int_equal(urma_poll_jfc(jfc, 1, &cr), 0);
	assert_int_equal(urma_get_perf_info(text, &len), URMA_ENOMEM);
	assert_true(len > 10 && len < sizeof(text));
	assert_int_equal(urma_get_perf_info(text, &len), URMA_SUCCESS);
	assert_int_equal(strlen(text), len);
	assert_non_null(strstr(text, "poll_jfc                        5 "));
	assert_null(strstr(text, "wait_jfc"));
	assert_int_equal(urma_get_perf_info(NULL, &len), URMA_EINVAL);
	assert_int_equal(urma_get_perf_info(text, NULL), URMA_EINVAL);
	assert_int_equal(urma_delete_jfc(jfc), URMA_SUCCESS);
}

/* ---- Transports ---- */

static void there_is_one_transport(void **state)
{
	urma_get_tp_cfg_t want = { .trans_mode = URMA_TM_RM };
	urma_tp_attr_value_t in = { .ttl = 9 }, out;
	urma_tp_attr_mask_t mask = { 0 };
	urma_tp_info_t tps[3];
	urma_tp_attr_t attr = { 0 };
	urma_tp_cfg_t cfg = { 0 };
	uint32_t count = 3, bitmap;
	uint8_t number;

	(void)state;
	assert_int_equal(urma_get_tp_list(ctx, &want, &count, tps), URMA_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(urma_get_tp_attr(ctx, tps[0].tp_handle, &number, &bitmap, &out), 0);
	assert_int_equal(number | bitmap | out.ttl, 0);
	assert_int_equal(urma_set_tp_attr(ctx, tps[0].tp_handle, 1, 2, &in), URMA_SUCCESS);
	assert_int_equal(urma_get_tp_attr(ctx, tps[0].tp_handle, &number, &bitmap, &out), 0);
	assert_int_equal(number, 1);
	assert_int_equal(bitmap, 2);
	assert_int_equal(out.ttl, 9);
	assert_int_equal(urma_modify_tp(ctx, 1, &cfg, &attr, mask), 0);
	assert_int_equal(urma_modify_tp(NULL, 1, &cfg, &attr, mask), URMA_EINVAL);
	assert_int_equal(urma_modify_tp(ctx, 1, NULL, &attr, mask), URMA_EINVAL);
	assert_int_equal(urma_set_tp_attr(ctx, 1, 1, 2, NULL), URMA_EINVAL);
	assert_int_equal(urma_get_tp_attr(ctx, 1, NULL, &bitmap, &out), URMA_EINVAL);
	count = 0;
	assert_int_equal(urma_get_tp_list(ctx, &want, &count, tps), URMA_EINVAL);
	count = 3;
	want.trans_mode = (urma_transport_mode_t)3;
	assert_int_equal(urma_get_tp_list(ctx, &want, &count, tps), URMA_EINVAL);
	assert_int_equal(urma_get_tp_list(ctx, &want, &count, NULL), URMA_EINVAL);
}

static void an_eid_is_a_network_address(void **state)
{
	urma_eid_t eid, none = { .raw = { 0 } };
	urma_net_addr_info_t *addrs;
	urma_net_addr_t addr = { 0 };
	uint32_t count = 0;
	uint8_t mac[6];

	(void)state;
	addrs = urma_get_net_addr_list(ctx, &count);
	assert_non_null(addrs);
	assert_int_equal(count, 1);
	assert_int_equal(addrs[0].netaddr.sin_family, AF_INET);
	assert_int_equal(ntohl(addrs[0].netaddr.in4.s_addr), 0x7f000001);
	assert_int_equal(urma_get_eid_by_ip(ctx, &addrs[0].netaddr, &eid), URMA_SUCCESS);
	assert_memory_equal(&eid, &ctx->eid, 16);
	urma_free_net_addr_list(addrs);
	urma_free_net_addr_list(NULL);
	assert_int_equal(urma_str_to_eid("2001:db8::7", &eid), 0);
	assert_int_equal(urma_get_ip_by_eid(ctx, &eid, &addr), URMA_SUCCESS);
	assert_int_equal(addr.sin_family, AF_INET6);
	assert_memory_equal(&addr.in6, eid.raw, 16);
	assert_int_equal(urma_get_ip_by_eid(ctx, &none, &addr), URMA_FAIL);
	addr.sin_family = AF_UNIX;
	assert_int_equal(urma_get_eid_by_ip(ctx, &addr, &eid), URMA_FAIL);
	memset(mac, 1, sizeof(mac));
	assert_int_equal(urma_get_smac(ctx, mac), URMA_SUCCESS);
	assert_int_equal(mac[0] | mac[5], 0);
	assert_int_equal(urma_get_dmac(ctx, &addr, mac), URMA_SUCCESS);
	assert_int_equal(urma_get_smac(ctx, NULL), URMA_EINVAL);
	assert_int_equal(urma_get_dmac(ctx, NULL, mac), URMA_EINVAL);
	assert_int_equal(urma_get_eid_by_ip(NULL, &addr, &eid), URMA_EINVAL);
	assert_int_equal(urma_get_ip_by_eid(ctx, NULL, &addr), URMA_EINVAL);
	assert_null_with(urma_get_net_addr_list(ctx, NULL), EINVAL, "a pointer is NULL");
}

int main(void)
{
	const struct CMUnitTest before[] = {
		cmocka_unit_test(the_library_starts_and_ends_again_and_again),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_what_programs_look_for),
		cmocka_unit_test(devices_are_found_by_name_and_by_address),
		cmocka_unit_test(the_place_of_an_eid_is_its_index),
		cmocka_unit_test(text_becomes_an_address),
		cmocka_unit_test(contexts_differ),
		cmocka_unit_test(a_context_is_refused_in_words),
		cmocka_unit_test(a_context_with_children_stays),
		cmocka_unit_test(there_are_no_options_and_no_extensions),
		cmocka_unit_test(without_events_a_non_blocking_program_is_told_so),
		cmocka_unit_test(token_ids_are_numbers_of_their_context),
		cmocka_unit_test(a_segment_is_described_for_peers),
		cmocka_unit_test(a_segment_takes_the_token_id_of_the_program),
		cmocka_unit_test(rights_go_together_or_not),
		cmocka_unit_test(a_bad_segment_is_refused_in_words),
		cmocka_unit_test(importing_a_segment_asks_nobody),
		cmocka_unit_test(lines_go_to_the_program),
		cmocka_unit_test(levels_and_tags_out_of_range_are_ignored),
		cmocka_unit_test(calls_are_measured_on_request),
		cmocka_unit_test(there_is_one_transport),
		cmocka_unit_test(an_eid_is_a_network_address),
	};

	setenv("XTAL_LOG", "/dev/null", 0);
	return cmocka_run_group_tests(before, NULL, NULL) +
	       cmocka_run_group_tests(tests, open_all, close_all);
}
