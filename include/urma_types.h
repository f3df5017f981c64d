/* SPDX-License-Identifier: MIT */
/*
 * urma_types.h - the structs of the URMA API. Programs include urma_api.h.
 *
 * All structs are public and their layout never changes. What the library makes (contexts, queues,
 * segments, imported objects) is the head of something larger: use it through the pointers that the
 * library returned, and do not change it.
 */
#ifndef URMA_TYPES_H
#define URMA_TYPES_H

#include "urma_opcode.h"
#include "urma_types/context.h"
#include "urma_types/device.h"
#include "urma_types/jetty.h"
#include "urma_types/jfc.h"
#include "urma_types/jfr.h"
#include "urma_types/jfs.h"
#include "urma_types/limits.h"
#include "urma_types/region.h"
#include "urma_types/request.h"
#include "urma_types/segment.h"
#include "urma_types/text.h"
#include "urma_types/transport.h"

#endif
