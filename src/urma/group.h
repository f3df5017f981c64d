/* SPDX-License-Identifier: MIT */
/* Groups of jetties. */
#ifndef XTAL_URMA_GROUP_H
#define XTAL_URMA_GROUP_H

#include "base/lock.h"
#include "queue.h"

struct ub_group {
	urma_jetty_grp_t pub;
	struct ub_node node;
	struct ub_context *ctx;
	struct ub_jetty *members[UB_MAX_GROUP_SIZE];        /* below: under lock */
	urma_jetty_t *shown[UB_MAX_GROUP_SIZE];             /* pub.jetty_list */
	struct xtal_endpoint *endpoints[UB_MAX_GROUP_SIZE]; /* the members', for the group */
	struct xtal_lock lock;
};

static inline struct ub_group *ub_group_of(const urma_jetty_grp_t *group)
{
	return (struct ub_group *)(uintptr_t)group; /* pub comes first */
}

/* NULL, or why a jetty with this cfg cannot be a member. */
bool ub_group_cfg_ok(const char *function, const struct ub_context *c, const urma_jetty_cfg_t *cfg);
/* Errors: -EPERM (full), -ENOMEM. */
int ub_group_join(struct ub_group *g, struct ub_jetty *j);
void ub_group_leave(struct ub_group *g, struct ub_jetty *j);

#endif
