/* SPDX-License-Identifier: MIT */
/*
 * 01 - Which devices does this host have?
 *
 * Opens libcdma.so at run time, as programs do that must also start where it is missing, and
 * prints a line per device. The next example links the library instead.
 *
 *   01_list_devices [library]
 *
 * Exit status: 0 when at least one device was found.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include <cdma_u_lib.h> /* types only: no function of it is called by name */

typedef struct dma_device *(*get_list_fn)(uint32_t *num);
typedef void (*free_list_fn)(struct dma_device *list, uint32_t num);

static void print_device(const struct dma_device *dev)
{
	uint32_t a = dev->attr.eid.dw0; /* an IPv4 address as a number */

	printf("%s: EID 0x%08x (%u.%u.%u.%u), queues up to %u deep, up to %llu bytes at once\n",
	       dev->name, a, a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255,
	       dev->attr.dev_cap.max_jfs_depth, (unsigned long long)dev->attr.dev_cap.max_msg_size);
}

int main(int argc, char **argv)
{
	const char *library = argc > 1 ? argv[1] : "libcdma.so";
	struct dma_device *list;
	free_list_fn free_list;
	get_list_fn get_list;
	uint32_t count = 0;
	void *handle;

	handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	get_list = (get_list_fn)dlsym(handle, "dma_get_device_list");
	free_list = (free_list_fn)dlsym(handle, "dma_free_device_list");
	if (!get_list || !free_list) {
		fprintf(stderr, "%s lacks the device functions\n", library);
		return 1;
	}

	/* A list may be there and yet be empty: look at both. */
	list = get_list(&count);
	if (!list || count == 0)
		fprintf(stderr, "no device\n");
	for (uint32_t i = 0; i < count; i++)
		print_device(&list[i]);
	free_list(list, count);

	dlclose(handle);
	return count > 0 ? 0 : 1;
}
