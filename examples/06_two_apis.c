/* SPDX-License-Identifier: MIT */
/*
 * 06 - Two APIs, one memory.
 *
 * A CDMA queue writes into a segment that was registered through URMA, and a URMA queue adds to a
 * word of it. xtal_describe() tells what either needs to know.
 *
 * Exit status: 0 when every byte was where it should be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cdma_u_lib.h>
#include <urma_api.h>
#include <xtal.h>

#define SIZE   4096
#define SECRET 0x5ec4e7u

static void stop(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, xtal_last_error());
	exit(1);
}

static char *memory(void)
{
	char *m = calloc(1, SIZE);

	if (!m)
		stop("calloc");
	return m;
}

/* A CDMA queue writes a text into the segment of the URMA side. */
static void cdma_writes(const struct xtal_descriptor *there)
{
	struct queue_cfg queue_cfg = { .queue_depth = 16 };
	struct dma_seg_cfg here_cfg = { .len = SIZE };
	struct dma_seg_cfg there_cfg = { .addr = there->va,
					 .len = there->len,
					 .tid = there->tid,
					 .token_value = there->token,
					 .token_value_valid = true };
	char *text = memory();
	struct dma_device *list;
	struct dma_context *ctx;
	struct dma_queue *queue;
	struct dma_seg *here, *remote;
	struct dma_cr cr;
	uint32_t count;
	int got;

	strcpy(text, "written by CDMA");
	here_cfg.addr = (uintptr_t)text;
	list = dma_get_device_list(&count);
	ctx = list ? dma_create_context(list) : NULL;
	if (!ctx || xtal_cdma_eid(there->eid, &queue_cfg.rmt_eid.dw0))
		stop("a context of CDMA");
	queue = dma_alloc_queue(ctx, &queue_cfg);
	here = dma_register_seg(ctx, &here_cfg);
	remote = dma_import_seg(&there_cfg);
	if (!queue || !here || !remote || dma_write(queue, remote, here))
		stop("a write of CDMA");
	while ((got = dma_poll_queue(queue, 1, &cr)) == 0)
		;
	if (got < 0 || cr.status)
		stop("the completion of CDMA");
	dma_unimport_seg(remote);
	dma_unregister_seg(ctx, here);
	dma_free_queue(queue);
	dma_delete_context(ctx);
	dma_free_device_list(list, count);
	free(text);
}

/* A URMA send queue adds to a word of the same segment, named by plain values. */
static void urma_adds(urma_context_t *ctx, const struct xtal_descriptor *there)
{
	urma_seg_t seg = { .len = there->len,
			   .attr.bs.token_policy = URMA_TOKEN_PLAIN_TEXT,
			   .token_id = there->token_id };
	urma_token_t token = { there->token };
	urma_rjfr_t owner = { .trans_mode = URMA_TM_RM, .tp_type = URMA_CTP };
	urma_import_seg_flag_t none = { .value = 0 };
	urma_jfc_cfg_t jfc_cfg = { .depth = 16 };
	urma_jfs_cfg_t jfs_cfg = { .depth = 16,
				   .trans_mode = URMA_TM_RM,
				   .max_sge = 1,
				   .rnr_retry = URMA_TYPICAL_RNR_RETRY };
	urma_jfc_t *jfc = urma_create_jfc(ctx, &jfc_cfg);
	urma_target_seg_t *remote;
	urma_target_jetty_t *target;
	urma_sge_t src, dst;
	urma_jfs_wr_t wr, *bad;
	urma_jfs_t *jfs;
	uint64_t old = 0;
	urma_cr_t cr;
	int got;

	memcpy(seg.ubva.eid.raw, there->eid, sizeof(there->eid));
	seg.ubva.uasid = there->uasid;
	seg.ubva.va = there->va;
	memcpy(owner.jfr_id.eid.raw, there->eid, sizeof(there->eid));
	owner.jfr_id.uasid = there->uasid;
	jfs_cfg.jfc = jfc;
	jfs = jfc ? urma_create_jfs(ctx, &jfs_cfg) : NULL;
	remote = urma_import_seg(ctx, &seg, &token, 0, none);
	target = urma_import_jfr(ctx, &owner, NULL);
	if (!jfs || !remote || !target)
		stop("the queues of URMA");
	src = (urma_sge_t){ .addr = (uintptr_t)&old, .len = sizeof(old) };
	dst = (urma_sge_t){ .addr = there->va + 64, .len = sizeof(old), .tseg = remote };
	wr = (urma_jfs_wr_t){ .opcode = URMA_OPC_FADD,
			      .flag.bs.complete_enable = 1,
			      .tjetty = target,
			      .faa = { .src = &src, .dst = &dst, .operand = 42 } };
	if (urma_post_jfs_wr(jfs, &wr, &bad))
		stop("an addition of URMA");
	while ((got = urma_poll_jfc(jfc, 1, &cr)) == 0)
		;
	if (got < 0 || cr.status || old != 0)
		stop("the completion of URMA");
	urma_unimport_jfr(target);
	urma_unimport_seg(remote);
	urma_delete_jfs(jfs);
	urma_delete_jfc(jfc);
}

int main(void)
{
	char *shared = memory();
	urma_seg_cfg_t cfg = { .va = (uintptr_t)shared,
			       .len = SIZE,
			       .token_value = { SECRET },
			       .flag.bs = { .token_policy = URMA_TOKEN_PLAIN_TEXT,
					    .access = URMA_ACCESS_READ | URMA_ACCESS_WRITE |
						      URMA_ACCESS_ATOMIC } };
	struct xtal_descriptor told;
	urma_target_seg_t *seg;
	urma_device_t **list;
	urma_context_t *ctx;
	uint64_t word;
	int count;

	if (urma_init(NULL))
		stop("urma_init");
	list = urma_get_device_list(&count);
	ctx = list ? urma_create_context(list[0], 0) : NULL;
	seg = ctx ? urma_register_seg(ctx, &cfg) : NULL;
	if (!seg || xtal_describe(seg, &told))
		stop("a segment of URMA");
	cdma_writes(&told);
	urma_adds(ctx, &told);
	memcpy(&word, shared + 64, sizeof(word));
	printf("\"%s\", and URMA added %llu\n", shared, (unsigned long long)word);
	if (strcmp(shared, "written by CDMA") != 0 || word != 42)
		return 1;
	urma_unregister_seg(seg);
	urma_delete_context(ctx);
	urma_free_device_list(list);
	urma_uninit();
	free(shared);
	return 0;
}
