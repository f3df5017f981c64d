/* SPDX-License-Identifier: MIT */
/* Of urma_api.h: devices and their addresses. */
#ifndef URMA_API_DEVICE_H
#define URMA_API_DEVICE_H

#include "urma_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * urma_get_device_list - list the devices
 *
 * The first is the loopback device; XTAL_DEVICES adds others.
 *
 * @num_devices: number of entries, filled; 0 on failure
 *
 * Returns: an array of pointers that ends with NULL, to be freed with urma_free_device_list();
 * the devices themselves stay valid. NULL, with errno set, on failure.
 * Errors:
 *   EINVAL: num_devices is NULL
 *   ENODEV: urma_init() was not called
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_device_t **urma_get_device_list(int *num_devices);

/**
 * urma_free_device_list - free a list of devices
 *
 * @device_list: what urma_get_device_list() returned, or NULL
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_free_device_list(urma_device_t **device_list);

/**
 * urma_get_device_by_name - find a device by its name
 *
 * @dev_name: such as "xtal0"
 *
 * Returns: the device, or NULL with errno set.
 * Errors:
 *   EINVAL: dev_name is NULL, empty, or has 64 or more characters
 *   ENODEV: there is none of that name, or urma_init() was not called
 * Threads: any.
 * Contract: URMA.
 */
urma_device_t *urma_get_device_by_name(char *dev_name);

/**
 * urma_get_device_by_eid - find a device by its address
 *
 * @eid: the address; all 16 bytes are compared
 * @type: URMA_TRANSPORT_UB
 *
 * Returns: the device, or NULL with errno set.
 * Errors:
 *   ENODEV: there is none with that address and type, or urma_init() was not called
 * Threads: any.
 * Contract: URMA.
 */
urma_device_t *urma_get_device_by_eid(urma_eid_t eid, urma_transport_type_t type);

/**
 * urma_get_eid_list - list the addresses of a device
 *
 * @dev: a device of the library
 * @cnt: number of entries, filled
 *
 * Returns: an array to be freed with urma_free_eid_list(), or NULL with errno set.
 * Errors:
 *   EINVAL: an argument is NULL, or dev is no device
 *   ENOMEM: no memory
 * Threads: any.
 * Contract: URMA.
 */
urma_eid_info_t *urma_get_eid_list(urma_device_t *dev, uint32_t *cnt);

/**
 * urma_free_eid_list - free a list of addresses
 *
 * @eid_list: what urma_get_eid_list() returned, or NULL
 *
 * Returns: nothing.
 * Threads: any.
 * Contract: URMA.
 */
void urma_free_eid_list(urma_eid_info_t *eid_list);

/**
 * urma_query_device - what a device can do
 *
 * @dev: a device of the library
 * @dev_attr: filled
 *
 * Returns: URMA_SUCCESS or one of the errors.
 * Errors:
 *   URMA_EINVAL: an argument is NULL, or dev is no device
 * Threads: any.
 * Contract: URMA.
 */
urma_status_t urma_query_device(urma_device_t *dev, urma_device_attr_t *dev_attr);

#ifdef __cplusplus
}
#endif

#endif
