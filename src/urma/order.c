/* SPDX-License-Identifier: MIT */
/*
 * Which orders the modes may have. Requests are executed in the order of posting over reliable
 * channels, which satisfies all of them; what the original's guide and its code refuse both is
 * refused.
 */
#include "core/config.h"
#include "segment.h"

uint32_t ub_order_of(urma_transport_mode_t mode, uint32_t order)
{
	if (order != URMA_DEF_ORDER)
		return order;
	if (mode == URMA_TM_RM)
		return URMA_OI;
	return mode == URMA_TM_RC ? URMA_OL : URMA_NO;
}

const char *ub_order_refused(urma_transport_mode_t mode, uint32_t order)
{
	bool strict = xtal_config()->strict;

	switch ((int)mode) {
	case URMA_TM_RM:
		if (strict ? order == URMA_OI : order >= URMA_OT && order <= URMA_OL)
			return NULL;
		return strict ? "RM has order OI (XTAL_STRICT=1)" : "RM has order OT, OI or OL";
	case URMA_TM_RC:
		if (strict ? order >= URMA_OT && order <= URMA_NO && order != URMA_OI
			   : order >= URMA_OT && order <= URMA_OL)
			return NULL;
		return strict ? "RC has order OT, OL or NO (XTAL_STRICT=1)"
			      : "RC has order OT, OI or OL";
	case URMA_TM_UM:
		return order == URMA_NO ? NULL : "UM has order NO";
	}
	return "the mode is none of RM (1), RC (2) and UM (4)";
}
