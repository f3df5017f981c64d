/* SPDX-License-Identifier: MIT */
/* The settings: environment first, then ini files (config_ini.c), then defaults; see config.h. */
#include "core/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/export.h"
#include "base/lock.h"
#include "base/text.h"
#include "core/config_ini.h"
#include "core/log.h"
#include "os/env.h"
#include "os/proc.h"
#include "os/tcp.h"
#include "xtal.h"

#define VALUE_SIZE 512
#define RING_MIN   (4u * 1024)
#define PREFIX     5 /* bytes of "XTAL_" */

enum kind {
	KIND_FLAG,
	KIND_SIZE,
	KIND_PATHS,
	KIND_WORD, /* one of two or three words; the first is the default, 0 */
	KIND_TEXT
};

struct setting {
	const char *name; /* in the ini file: lower case without XTAL_ */
	enum kind kind;
	uint64_t fallback, min, max;
	const char *words[3]; /* KIND_WORD */
	const char *description;
	char value[VALUE_SIZE];
	char origin[VALUE_SIZE];
	bool cut; /* longer than we can keep: not used */
	uint64_t number;
};

enum index {
	PATHS,
	STRICT,
	PIPELINES,
	TIMEOUT_MS,
	INLINE_BYTES,
	FRAGMENT_BYTES,
	SPIN_US,
	RING_BYTES,
	SOCKET_BYTES,
	CONGESTION,
	IDLE_MS,
	REVOKE_MS,
	ALLOW_CMA,
	ADOPT,
	PEERS,
	DEVICES,
	SECURITY,
	KEY_FILE,
	LOG,
	LOG_LEVEL,
	CONFIG,
	CHECK,
	FAULT,
	COUNTER_START,
	COUNT
};

static struct setting settings[COUNT] = {
	[PATHS] = { .name = "XTAL_PATHS",
		    .kind = KIND_PATHS,
		    .fallback = 0,
		    .min = 0,
		    .max = 0,
		    .description = "paths that may be used: any of self,map,cma,ring,tcp" },
	[STRICT] = { .name = "XTAL_STRICT",
		     .kind = KIND_FLAG,
		     .fallback = 0,
		     .min = 0,
		     .max = 1,
		     .description =
			     "1: refuse what the hardware refuses (for people who port); 0: do not" },
	[PIPELINES] = { .name = "XTAL_PIPELINES",
			.kind = KIND_SIZE,
			.fallback = 0,
			.min = 1,
			.max = 8,
			.description =
				"engines that share long copies, 1..8 (default: processors, at most 8)" },
	[TIMEOUT_MS] = { .name = "XTAL_TIMEOUT_MS",
			 .kind = KIND_SIZE,
			 .fallback = 8000,
			 .min = 10,
			 .max = 3600000,
			 .description = "how long a peer may make no progress, ms, 10..3600000" },
	[INLINE_BYTES] = { .name = "XTAL_INLINE_BYTES",
			   .kind = KIND_SIZE,
			   .fallback = 131072,
			   .min = 0,
			   .max = 16777216,
			   .description =
				   "operations up to this size run on the caller's thread, 0..16m" },
	[FRAGMENT_BYTES] = { .name = "XTAL_FRAGMENT_BYTES",
			     .kind = KIND_SIZE,
			     .fallback = 131072,
			     .min = 16384,
			     .max = 67108864,
			     .description =
				     "pieces into which longer operations are cut, 16k..64m" },
	[SPIN_US] = { .name = "XTAL_SPIN_US",
		      .kind = KIND_SIZE,
		      .fallback = 200,
		      .min = 0,
		      .max = 1000,
		      .description = "how long the agent looks for more messages before it "
				     "sleeps, at most, us, 0..1000" },
	[RING_BYTES] = { .name = "XTAL_RING_BYTES",
			 .kind = KIND_SIZE,
			 .fallback = 262144,
			 .min = RING_MIN,
			 .max = 16777216,
			 .description =
				 "capacity of each message ring, made a power of two, 4k..16m" },
	[SOCKET_BYTES] = { .name = "XTAL_SOCKET_BYTES",
			   .kind = KIND_SIZE,
			   .fallback = 1048576,
			   .min = 0,
			   .max = 268435456,
			   .description =
				   "buffers of each TCP socket, 0..256m; 0: the kernel sizes them" },
	[CONGESTION] = { .name = "XTAL_CONGESTION",
			 .kind = KIND_WORD,
			 .fallback = 0,
			 .min = 0,
			 .max = 1,
			 .words = { "near", "system" },
			 .description = "congestion control of TCP: near: none that paces to peers "
					"within 2 ms (default); system: always the system's" },
	[IDLE_MS] = { .name = "XTAL_IDLE_MS",
		      .kind = KIND_SIZE,
		      .fallback = 300000,
		      .min = 10,
		      .max = 86400000,
		      .description = "after how long without use a TCP connection is closed, ms, "
				     "10..86400000" },
	[REVOKE_MS] = { .name = "XTAL_REVOKE_MS",
			.kind = KIND_SIZE,
			.fallback = 50,
			.min = 0,
			.max = 60000,
			.description = "patience of unregister with a stopped peer, ms, 0..60000" },
	[ALLOW_CMA] = { .name = "XTAL_ALLOW_CMA",
			.kind = KIND_FLAG,
			.fallback = 0,
			.min = 0,
			.max = 1,
			.description =
				"1: where Yama restricts it, let our user's processes use cma on this one; 0: do not" },
	[ADOPT] = { .name = "XTAL_ADOPT",
		    .kind = KIND_WORD,
		    .fallback = 0,
		    .min = 0,
		    .max = 2,
		    .words = { "off", "auto", "always" },
		    .description =
			    "which private memory (malloc) becomes mappable for peers: off, auto "
			    "(what they use much, and xtal_share), always (all that is registered)" },
	[PEERS] = { .name = "XTAL_PEERS",
		    .kind = KIND_WORD,
		    .fallback = 0,
		    .min = 0,
		    .max = 1,
		    .words = { "same", "any" },
		    .description =
			    "whom to serve: same (our own user) or any (others over ring only)" },
	[DEVICES] = { .name = "XTAL_DEVICES",
		      .kind = KIND_TEXT,
		      .fallback = 0,
		      .min = 0,
		      .max = 0,
		      .description = "devices after the loopback one, in order: addresses and "
				     "interfaces, or all, or none" },
	[SECURITY] = { .name = "XTAL_SECURITY",
		       .kind = KIND_WORD,
		       .fallback = 0,
		       .min = 0,
		       .max = 1,
		       .words = { "tls", "none" },
		       .description =
			       "between hosts: tls (with the key file) or none (trusted networks)" },
	[KEY_FILE] = { .name = "XTAL_KEY_FILE",
		       .kind = KIND_TEXT,
		       .fallback = 0,
		       .min = 0,
		       .max = 0,
		       .description =
			       "the key that all hosts share; 'xtal key new FILE' makes one" },
	[LOG] = { .name = "XTAL_LOG",
		  .kind = KIND_TEXT,
		  .fallback = 0,
		  .min = 0,
		  .max = 0,
		  .description = "where the log goes: syslog, stderr, stdout or a file" },
	[LOG_LEVEL] = { .name = "XTAL_LOG_LEVEL",
			.kind = KIND_TEXT,
			.fallback = 0,
			.min = 0,
			.max = 0,
			.description = "what is logged: fatal, error, warning, info or debug" },
	[CONFIG] = { .name = "XTAL_CONFIG",
		     .kind = KIND_TEXT,
		     .fallback = 0,
		     .min = 0,
		     .max = 0,
		     .description =
			     "ini file to read instead of ~/.config/xtal.ini and /etc/xtal.ini" },
	[CHECK] = { .name = "XTAL_CHECK",
		    .kind = KIND_FLAG,
		    .fallback = 0,
		    .min = 0,
		    .max = 1,
		    .description = "1: say in a sentence what the program does wrong (slower), see "
				   "xtal-testing(7); 0: do not" },
	[FAULT] = { .name = "XTAL_FAULT",
		    .kind = KIND_TEXT,
		    .fallback = 0,
		    .min = 0,
		    .max = 0,
		    .description = "faults to inject, for tests: fail, lose, withhold, flush and "
				   "kill, see xtal-testing(7)" },
	[COUNTER_START] = { .name = "XTAL_COUNTER_START",
			    .kind = KIND_SIZE,
			    .fallback = 0,
			    .min = 0,
			    .max = UINT64_MAX,
			    .description =
				    "for tests: first value of ring counters and frame numbers, the same in all processes" },
};

static struct {
	struct xtal_lock lock;
	_Atomic bool ready;
	struct xtal_config config;
} state;

uint64_t xtal_config_inline_bytes = 131072;

/* How far a name is from a setting's; its beginning is near. Both begin with XTAL_. */
static unsigned edits(const char *name, const char *known)
{
	size_t len = strlen(name);

	if (len > PREFIX && strncmp(name, known, len) == 0)
		return len < strlen(known);
	return xtal_text_distance(name, known);
}

void xtal_config_set(const char *name, const char *value, const char *origin)
{
	const char *nearest = NULL;
	unsigned best = (unsigned)strlen(name + PREFIX) / 2 + 1;

	for (unsigned i = 0; i < COUNT; i++) {
		struct setting *s = &settings[i];
		unsigned distance = edits(name, s->name);

		if (distance < best) {
			best = distance;
			nearest = s->name;
		}
		if (strcmp(name, s->name) != 0)
			continue;
		if (!s->origin[0]) {
			snprintf(s->value, sizeof(s->value), "%s", value);
			snprintf(s->origin, sizeof(s->origin), "%s", origin);
			s->cut = strlen(value) >= sizeof(s->value);
		}
		return;
	}
	if (nearest)
		xtal_log(XTAL_LOG_WARNING, "xtal", "%s from %s is not a setting; did you mean %s?",
			 name, origin, nearest);
	else
		xtal_log(XTAL_LOG_WARNING, "xtal",
			 "%s from %s is not a setting; 'xtal info' lists them", name, origin);
}

static void from_env(const char *name, const char *value, void *arg)
{
	(void)arg;
	if (strncmp(name, "XTAL_TEST_", 10) == 0)
		return; /* the tests' own */
	xtal_config_set(name, value, "environment");
}

static void bad_value(struct setting *s)
{
	xtal_log(XTAL_LOG_WARNING, "xtal", "%s=%s (%s) is not valid and ignored: %s", s->name,
		 s->value, s->origin, s->description);
	s->origin[0] = 0;
}

static uint32_t parse_paths(struct setting *s)
{
	char copy[VALUE_SIZE], *rest = copy, *word;
	uint32_t mask = 0;

	snprintf(copy, sizeof(copy), "%s", s->value);
	while ((word = strsep(&rest, ", "))) {
		unsigned k;

		for (k = XTAL_PATH_SELF; k <= XTAL_PATH_TCP; k++)
			if (strcmp(word, xtal_path_name(k)) == 0)
				break;
		if (k <= XTAL_PATH_TCP) {
			mask |= 1u << k;
		} else if (*word) {
			bad_value(s);
			return 0;
		}
	}
	if (!mask)
		bad_value(s);
	return mask;
}

static void resolve(struct setting *s)
{
	int err = 0;

	s->number = s->fallback;
	if (s->cut) {
		xtal_log(XTAL_LOG_WARNING, "xtal", "%s (%s) is longer than %d bytes and ignored",
			 s->name, s->origin, VALUE_SIZE - 1);
		s->origin[0] = s->value[0] = 0;
	}
	if (s->origin[0]) {
		switch (s->kind) {
		case KIND_FLAG:
		case KIND_SIZE:
			err = xtal_parse_size(s->value, s->max, &s->number);
			break;
		case KIND_PATHS:
			s->number = parse_paths(s);
			break;
		case KIND_WORD:
			s->number = 0;
			while (s->number <= s->max && strcmp(s->value, s->words[s->number]) != 0)
				s->number++;
			err = s->number > s->max;
			break;
		case KIND_TEXT:
			break;
		}
		if (err || s->number < s->min) {
			bad_value(s);
			s->number = s->fallback;
		}
	}
	if (s->origin[0])
		return;
	snprintf(s->origin, sizeof(s->origin), "default");
	switch (s->kind) {
	case KIND_FLAG:
	case KIND_SIZE:
		snprintf(s->value, sizeof(s->value), "%llu", (unsigned long long)s->number);
		break;
	case KIND_PATHS:
		s->number = 1u << XTAL_PATH_SELF | 1u << XTAL_PATH_MAP | 1u << XTAL_PATH_CMA |
			    1u << XTAL_PATH_RING | 1u << XTAL_PATH_TCP;
		snprintf(s->value, sizeof(s->value), "self,map,cma,ring,tcp");
		break;
	case KIND_WORD:
		snprintf(s->value, sizeof(s->value), "%s", s->words[0]);
		break;
	case KIND_TEXT:
		snprintf(s->value, sizeof(s->value), "%s",
			 s == &settings[LOG]         ? "syslog"
			 : s == &settings[DEVICES]   ? "all"
			 : s == &settings[LOG_LEVEL] ? "warning"
						     : "");
		break;
	}
}

static void start_log(void)
{
	int level = xtal_log_parse_level(settings[LOG_LEVEL].value);

	if (settings[LOG_LEVEL].origin[0] && level < 0)
		bad_value(&settings[LOG_LEVEL]);
	xtal_log_start(settings[LOG].origin[0] ? settings[LOG].value : "syslog",
		       level < 0 ? XTAL_LOG_WARNING : (enum xtal_log_level)level);
}

static void load(void)
{
	struct xtal_config *c = &state.config;
	unsigned cpus = xtal_os_cpus();

	settings[PIPELINES].fallback = cpus < 8 ? cpus : 8;
	/* The log first: it carries the words about all the others. */
	xtal_log_start(xtal_os_getenv("XTAL_LOG"), XTAL_LOG_WARNING);
	xtal_os_each_env("XTAL_", from_env, NULL);
	xtal_config_read_files(settings[CONFIG].value);
	start_log();
	for (unsigned i = 0; i < COUNT; i++)
		resolve(&settings[i]);
	c->paths = (uint32_t)settings[PATHS].number;
	c->strict = settings[STRICT].number;
	c->pipelines = (uint32_t)settings[PIPELINES].number;
	c->timeout_ms = (uint32_t)settings[TIMEOUT_MS].number;
	c->inline_bytes = settings[INLINE_BYTES].number;
	c->fragment_bytes = settings[FRAGMENT_BYTES].number;
	c->spin_us = (uint32_t)settings[SPIN_US].number;
	c->paths_by_hand = strcmp(settings[PATHS].origin, "default") != 0;
	xtal_os_tcp_buffers((unsigned)settings[SOCKET_BYTES].number);
	xtal_os_tcp_leave_congestion(settings[CONGESTION].number);
	c->idle_ms = (uint32_t)settings[IDLE_MS].number;
	c->revoke_ms = (uint32_t)settings[REVOKE_MS].number;
	c->allow_cma = settings[ALLOW_CMA].number;
	c->adopt = (enum xtal_adopt_when)settings[ADOPT].number;
	c->any_uid = settings[PEERS].number;
	c->devices = settings[DEVICES].value;
	c->insecure = settings[SECURITY].number;
	c->key_file = settings[KEY_FILE].value;
	c->check = settings[CHECK].number;
	c->fault = settings[FAULT].value;
	c->counter_start = settings[COUNTER_START].number;
	for (c->ring_bytes = RING_MIN; c->ring_bytes < settings[RING_BYTES].number;)
		c->ring_bytes *= 2;
	xtal_config_inline_bytes = c->inline_bytes;
}

const struct xtal_config *xtal_config(void)
{
	if (xtal_unlikely(!atomic_load_explicit(&state.ready, memory_order_acquire))) {
		xtal_lock(&state.lock);
		if (!atomic_load_explicit(&state.ready, memory_order_relaxed)) {
			load();
			atomic_store_explicit(&state.ready, true, memory_order_release);
		}
		xtal_unlock(&state.lock);
	}
	return &state.config;
}

bool xtal_config_tcp(struct xtal_eid eid)
{
	const struct xtal_config *c = xtal_config();

	return c->paths & 1u << XTAL_PATH_TCP && (!xtal_eid_is_loopback(eid) || c->paths_by_hand);
}

const char *xtal_config_foreign(const char *name)
{
	return xtal_os_getenv(name);
}

int xtal_setting_at(unsigned index, struct xtal_setting *out)
{
	xtal_config();
	if (!out) {
		xtal_refuse("xtal", "xtal_setting_at: out is NULL");
		return -EINVAL;
	}
	if (index >= COUNT)
		return -ENOENT;
	*out = (struct xtal_setting){ .name = settings[index].name,
				      .value = settings[index].value,
				      .origin = settings[index].origin,
				      .description = settings[index].description };
	return 0;
}
