/* SPDX-License-Identifier: MIT */
/* Refusals by address; see tcp_ledger.h. */
#include "core/tcp_ledger.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/lock.h"
#include "base/text.h"
#include "core/log.h"

#define ENTRIES 64u /* addresses; the one not heard of for longest makes room */
#define SECOND  1000000000u

struct entry {
	struct xtal_eid eid;
	uint64_t at;        /* of its last refusal */
	uint64_t free_at;   /* when all of its burst is there again */
	uint64_t logged_at; /* 0: never */
	uint64_t silent;    /* refusals since that are in no line */
};

static struct xtal_lock lock; /* below */
static struct entry entries[ENTRIES];

/* A host has all of an IPv6 network's addresses: they count as one. */
static struct xtal_eid network(struct xtal_eid eid)
{
	if (!xtal_eid_is_ipv4(eid) && !xtal_eid_is_link_local(eid) && !xtal_eid_is_loopback(eid))
		eid.lo = 0;
	return eid;
}

static struct entry *find(struct xtal_eid eid)
{
	struct entry *oldest = &entries[0];

	for (unsigned i = 0; i < ENTRIES; i++) {
		if (entries[i].at && xtal_eid_equal(entries[i].eid, eid))
			return &entries[i];
		if (entries[i].at < oldest->at)
			oldest = &entries[i];
	}
	*oldest = (struct entry){ .eid = eid };
	return oldest;
}

uint64_t xtal_ledger_refused(const struct xtal_os_tcp_address *peer, uint16_t port, uint64_t now,
			     const char *format, ...)
{
	const uint64_t each = SECOND / XTAL_LEDGER_RATE, burst = XTAL_LEDGER_BURST * each;
	struct entry *e;
	char eid[XTAL_EID_TEXT], text[160], more[64] = "";
	va_list args;
	uint64_t wait;

	xtal_lock(&lock);
	e = find(network(peer->eid));
	e->at = now;
	e->free_at = (e->free_at > now ? e->free_at : now) + each;
	/* Others at this address are not made to wait for ever by one who does not care. */
	if (e->free_at > now + burst + SECOND)
		e->free_at = now + burst + SECOND;
	e->silent++;
	if (!e->logged_at || now - e->logged_at >= SECOND) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		if (e->silent > 1)
			snprintf(more, sizeof(more), " (and %llu more of its requests before)",
				 (unsigned long long)e->silent - 1);
		xtal_log(XTAL_LOG_WARNING, "xtal", "port %u: refused to %s port %u: %s%s", port,
			 xtal_text_eid(peer->eid, eid, sizeof(eid)), peer->port, text, more);
		e->logged_at = now;
		e->silent = 0;
	}
	wait = e->free_at - now > burst ? e->free_at - burst : 0;
	xtal_unlock(&lock);
	return wait;
}
