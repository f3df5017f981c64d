/* SPDX-License-Identifier: MIT */
/*
 * urma_api.h - remote memory access for programs: one-sided reads, writes and atomics on the memory
 * of other processes and hosts, and messages between them.
 *
 * A program takes a device, makes a context on it, in the context completion queues (JFC), send
 * queues (JFS), receive queues (JFR) or jetties (both in one), registers memory as segments, tells
 * its peers the ids of queues and segments by any means of its own, imports theirs, posts requests
 * and polls the completion queues. urma(7) explains addresses, states, order and statuses.
 *
 * Whenever a call refuses its work, xtal_last_error() of xtal.h says why in a sentence.
 */
#ifndef URMA_API_H
#define URMA_API_H

#include "urma_types.h"

#include "urma_api/context.h"
#include "urma_api/device.h"
#include "urma_api/jetty.h"
#include "urma_api/jetty_grp.h"
#include "urma_api/jfc.h"
#include "urma_api/jfr.h"
#include "urma_api/jfs.h"
#include "urma_api/library.h"
#include "urma_api/notifier.h"
#include "urma_api/request.h"
#include "urma_api/segment.h"
#include "urma_api/transport.h"

#endif
