/* SPDX-License-Identifier: MIT */
/*
 * The tables of options. Those of queue memory, doorbells and indexes are not in them: they are
 * addresses of hardware.
 */
#include "option.h"

#include <string.h>

#include "base/export.h"
#include "log.h"
#include "queue.h"

static const struct ub_option jfc_list[] = {
	{ URMA_JFC_DEPTH, offsetof(urma_jfc_cfg_t, depth), 4 },
	{ URMA_JFC_CEQN, offsetof(urma_jfc_cfg_t, ceqn), 4 },
	{ URMA_JFC_FLAG, offsetof(urma_jfc_cfg_t, flag), 4 },
	{ URMA_JFC_BIND_JFCE, offsetof(urma_jfc_cfg_t, jfce), 8 },
	{ URMA_JFC_USER_CTX, offsetof(urma_jfc_cfg_t, user_ctx), 8 },
};
const struct ub_options ub_jfc_options = { jfc_list, XTAL_ARRAY_SIZE(jfc_list) };

static const struct ub_option jfs_list[] = {
	{ URMA_JFS_DEPTH, offsetof(urma_jfs_cfg_t, depth), 4 },
	{ URMA_JFS_FLAG, offsetof(urma_jfs_cfg_t, flag), 4 },
	{ URMA_JFS_TRANS_MODE, offsetof(urma_jfs_cfg_t, trans_mode), 4 },
	{ URMA_JFS_PRIORITY, offsetof(urma_jfs_cfg_t, priority), 1 },
	{ URMA_JFS_MAX_SGE, offsetof(urma_jfs_cfg_t, max_sge), 1 },
	{ URMA_JFS_MAX_RSGE, offsetof(urma_jfs_cfg_t, max_rsge), 1 },
	{ URMA_JFS_MAX_INLINE_DATA, offsetof(urma_jfs_cfg_t, max_inline_data), 4 },
	{ URMA_JFS_RNR_RETRY, offsetof(urma_jfs_cfg_t, rnr_retry), 1 },
	{ URMA_JFS_ERR_TIMEOUT, offsetof(urma_jfs_cfg_t, err_timeout), 1 },
	{ URMA_JFS_BIND_JFC, offsetof(urma_jfs_cfg_t, jfc), 8 },
	{ URMA_JFS_USER_CTX, offsetof(urma_jfs_cfg_t, user_ctx), 8 },
};
const struct ub_options ub_jfs_options = { jfs_list, XTAL_ARRAY_SIZE(jfs_list) };

static const struct ub_option jfr_list[] = {
	{ URMA_JFR_DEPTH, offsetof(urma_jfr_cfg_t, depth), 4 },
	{ URMA_JFR_FLAG, offsetof(urma_jfr_cfg_t, flag), 4 },
	{ URMA_JFR_TRANS_MODE, offsetof(urma_jfr_cfg_t, trans_mode), 4 },
	{ URMA_JFR_MAX_SGE, offsetof(urma_jfr_cfg_t, max_sge), 1 },
	{ URMA_JFR_MIN_RNR_TIMER, offsetof(urma_jfr_cfg_t, min_rnr_timer), 1 },
	{ URMA_JFR_BIND_JFC, offsetof(urma_jfr_cfg_t, jfc), 8 },
	{ URMA_JFR_TOKEN_VALUE, offsetof(urma_jfr_cfg_t, token_value), 4 },
	{ URMA_JFR_USER_CTX, offsetof(urma_jfr_cfg_t, user_ctx), 8 },
};
const struct ub_options ub_jfr_options = { jfr_list, XTAL_ARRAY_SIZE(jfr_list) };

#define JETTY_JFS(field) offsetof(urma_jetty_cfg_t, jfs_cfg.field)
static const struct ub_option jetty_list[] = {
	{ URMA_JETTY_FLAG, offsetof(urma_jetty_cfg_t, flag), 4 },
	{ URMA_JETTY_BIND_JFR, offsetof(urma_jetty_cfg_t, shared.jfr), 8 },
	{ URMA_JETTY_BIND_RX_JFC, offsetof(urma_jetty_cfg_t, shared.jfc), 8 },
	{ URMA_JETTY_BIND_JTG, offsetof(urma_jetty_cfg_t, jetty_grp), 8 },
	{ URMA_JETTY_USER_CTX, offsetof(urma_jetty_cfg_t, user_ctx), 8 },
	{ URMA_JFS_DEPTH, JETTY_JFS(depth), 4 },
	{ URMA_JFS_FLAG, JETTY_JFS(flag), 4 },
	{ URMA_JFS_TRANS_MODE, JETTY_JFS(trans_mode), 4 },
	{ URMA_JFS_PRIORITY, JETTY_JFS(priority), 1 },
	{ URMA_JFS_MAX_SGE, JETTY_JFS(max_sge), 1 },
	{ URMA_JFS_MAX_RSGE, JETTY_JFS(max_rsge), 1 },
	{ URMA_JFS_MAX_INLINE_DATA, JETTY_JFS(max_inline_data), 4 },
	{ URMA_JFS_RNR_RETRY, JETTY_JFS(rnr_retry), 1 },
	{ URMA_JFS_ERR_TIMEOUT, JETTY_JFS(err_timeout), 1 },
	{ URMA_JFS_BIND_JFC, JETTY_JFS(jfc), 8 },
	{ URMA_JFS_USER_CTX, JETTY_JFS(user_ctx), 8 },
};
const struct ub_options ub_jetty_options = { jetty_list, XTAL_ARRAY_SIZE(jetty_list) };

static const struct ub_option *find(const char *function, const struct ub_options *options,
				    uint64_t opt)
{
	for (size_t i = 0; i < options->count; i++)
		if (options->list[i].opt == opt)
			return &options->list[i];
	ub_refuse("%s: option 0x%llx is unknown, or exists in hardware only", function,
		  (unsigned long long)opt);
	return NULL;
}

static bool buffer_is_bad(const char *function, const void *buf, uint32_t len, uint32_t size)
{
	if (buf && len == size)
		return false;
	if (!buf)
		ub_refuse("%s: buf is NULL", function);
	else
		ub_refuse("%s: len is %u, the option has %u bytes", function, len, size);
	return true;
}

urma_status_t ub_option_set(const char *function, const struct ub_options *options, void *settings,
			    uint64_t opt, const void *buf, uint32_t len)
{
	const struct ub_option *o = find(function, options, opt);

	if (!o || buffer_is_bad(function, buf, len, o->size))
		return URMA_EINVAL;
	memcpy((char *)settings + o->offset, buf, o->size);
	return URMA_SUCCESS;
}

urma_status_t ub_option_get(const char *function, const struct ub_options *options,
			    const void *settings, uint64_t opt, void *buf, uint32_t len)
{
	const struct ub_option *o = find(function, options, opt);

	if (!o)
		return URMA_EINVAL;
	return ub_option_copy(function, (const char *)settings + o->offset, o->size, buf, len);
}

urma_status_t ub_option_copy(const char *function, const void *value, uint32_t size, void *buf,
			     uint32_t len)
{
	if (buffer_is_bad(function, buf, len, size))
		return URMA_EINVAL;
	memcpy(buf, value, size);
	return URMA_SUCCESS;
}

urma_status_t ub_option_id(const char *function, struct ub_ids *ids, const void *buf, uint32_t len,
			   uint32_t *id, uint32_t *shown)
{
	uint32_t wanted, got;
	int error;

	if (buffer_is_bad(function, buf, len, sizeof(wanted)))
		return URMA_EINVAL;
	memcpy(&wanted, buf, sizeof(wanted));
	if (wanted == *id)
		return URMA_SUCCESS;
	error = ub_queue_id(ids, wanted, &got);
	if (error) {
		ub_refuse("%s: id 0x%x cannot be had: %s", function, wanted, ub_reason(error));
		return URMA_EINVAL;
	}
	ub_ids_give_back(ids, *id);
	*id = *shown = got;
	return URMA_SUCCESS;
}
