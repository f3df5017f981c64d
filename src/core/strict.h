/* SPDX-License-Identifier: MIT */
/* What the hardware refuses of a registration: refused with XTAL_STRICT=1, else said once of each kind. */
#ifndef XTAL_CORE_STRICT_H
#define XTAL_CORE_STRICT_H

struct xtal_registry;
struct xtal_segment;

/* 0, or -errno with the words (xtal_segment_register()). Touches each page. Under the registry's
 * lock. */
int xtal_strict_refuses(struct xtal_registry *r, const struct xtal_segment *seg);
/* In the log. Touches no page. */
void xtal_strict_warns(const struct xtal_segment *seg);
/* Under the registry's lock. */
void xtal_strict_warns_of_overlap(struct xtal_registry *r, const struct xtal_segment *seg);

#endif
