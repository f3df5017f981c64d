/* SPDX-License-Identifier: MIT */
/* The APIs there are. */
#include "cli/api.h"

#include <stddef.h>

const struct cli_api *cli_api(uint32_t number)
{
	static const struct cli_api *const all[CLI_API_COUNT] = { &cli_api_cdma, &cli_api_urma };

	return number < CLI_API_COUNT ? all[number] : NULL;
}
