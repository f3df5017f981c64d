/* SPDX-License-Identifier: MIT */
/* XTAL_CHECK for URMA: programs that poll or wait for what cannot come. */
#include "check.h"

/* So long somebody polls or waits in vain before it is looked why. */
#define PATIENCE_NS 1000000000u

static atomic_bool receives; /* some were posted: whoever waits may wait for a message */

bool ub_check_receives(const struct ub_jfr *j)
{
	if (j->magic != UB_JFR_CHECKED)
		return false;
	atomic_store(&receives, true);
	return true;
}

struct waiting {
	const struct ub_jfc *j;
	uint32_t signalled, silent, id;
};

static bool count_open(struct ub_node *node, void *arg)
{
	struct waiting *w = arg;
	const struct ub_sender *s;
	struct xtal_check_open open;

	if (node->kind == UB_JETTY)
		s = &ub_jetty_of(node->pub)->send;
	else if (node->kind == UB_JFS)
		s = &ub_jfs_of(node->pub)->send;
	else
		return false;
	if (s->magic != UB_SEND_CHECKED || s->cfg->jfc != &w->j->pub)
		return false;
	xtal_check_look(s->check, &open);
	w->signalled += open.signalled;
	w->silent += open.silent;
	if (open.silent)
		w->id = s->id;
	return false;
}

static void tell_silent(const char *function, const struct waiting *w)
{
	xtal_diagnose(
		UB_TAG,
		"%s: completion queue %u had nothing for a second, and no record can come: the last "
		"%u requests (queue 0x%x) asked for none; set flag.bs.complete_enable in the one "
		"that is waited for",
		function, w->j->pub.jfc_id.id, w->silent, w->id);
}

void ub_check_nothing(struct ub_jfc *j)
{
	struct waiting w = { .j = j };
	uint64_t now = xtal_check_now(), since = atomic_load(&j->empty_since);

	if (!since)
		atomic_store(&j->empty_since, now);
	if (!since || now - since < PATIENCE_NS || atomic_load(&receives) ||
	    atomic_exchange(&j->told, true))
		return;
	ub_each(count_open, &w);
	if (w.signalled || !w.silent) {
		atomic_store(&j->empty_since, now);
		atomic_store(&j->told, false);
		return;
	}
	tell_silent("urma_poll_jfc", &w);
}

/* What a channel tells of. */
struct channel {
	const struct ub_jfce *j;
	const struct ub_jfc *asleep; /* has records, and is not armed */
	const struct ub_jfc *armed;
	uint32_t queues;
};

static bool look_at_queue(struct ub_node *node, void *arg)
{
	struct channel *c = arg;
	const struct ub_jfc *j;
	bool armed, waiting;

	if (node->kind != UB_JFC)
		return false;
	j = ub_jfc_of(node->pub);
	if (j->magic != UB_JFC_CHECKED || j->pub.jfc_cfg.jfce != &c->j->pub)
		return false;
	c->queues++;
	xtal_shared_cq_look(j->core, &armed, &waiting);
	if (armed)
		c->armed = j;
	else if (waiting)
		c->asleep = j;
	return false;
}

/* No event came. Others may yet arm a queue that is empty, or post to it: of that nothing is said. */
static bool look_at_channel(const struct ub_jfce *j)
{
	struct channel c = { .j = j };
	struct waiting w = { 0 };

	ub_each(look_at_queue, &c);
	if (!c.queues) {
		xtal_diagnose(UB_TAG, "urma_wait_jfc: no completion queue was made with this event "
				      "channel, so no event can come: set jfce of urma_jfc_cfg_t");
		return true;
	}
	if (c.asleep && !c.armed) {
		xtal_diagnose(
			UB_TAG,
			"urma_wait_jfc: completion queue %u has records and is not armed, so no "
			"event tells of them: one urma_rearm_jfc makes one event; call it before "
			"each wait, and poll what is there",
			c.asleep->pub.jfc_id.id);
		return true;
	}
	if (!c.armed || c.queues > 1 || atomic_load(&receives))
		return false;
	w.j = c.armed;
	ub_each(count_open, &w);
	if (w.signalled || !w.silent)
		return false;
	tell_silent("urma_wait_jfc", &w);
	return true;
}

int ub_check_wait(struct ub_jfce *j, uint32_t count, int timeout_ms, void **owners)
{
	const int slice = (int)(PATIENCE_NS / 1000000);
	uint64_t end = xtal_check_now() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000;

	for (;;) {
		uint64_t now = xtal_check_now(),
			 left = end > now ? (end - now + 999999) / 1000000 : 0;
		int ms = timeout_ms < 0 || left > (uint64_t)slice ? slice : (int)left;
		uint64_t since;
		int got =
			xtal_channel_wait(j->core, count, ms, owners, ub_leave_cancelled, &j->node);

		if (got) {
			atomic_store(&j->quiet_since, 0);
			return got;
		}
		if (!timeout_ms)
			return 0; /* an event loop, which waits elsewhere */
		since = atomic_load(&j->quiet_since);
		if (!since)
			atomic_store(&j->quiet_since, now);
		else if (since != UINT64_MAX && xtal_check_now() - since >= PATIENCE_NS &&
			 look_at_channel(j))
			atomic_store(&j->quiet_since, UINT64_MAX);
		if (timeout_ms > 0 && left <= (uint64_t)slice)
			return 0;
	}
}
