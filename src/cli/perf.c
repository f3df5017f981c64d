/* SPDX-License-Identifier: MIT */
/* `xtal perf`: the command line, with the option names of perftest. */
#include "cli/perf.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/side.h"

#define MAX_ITERATIONS (UINT64_C(1) << 40)
#define TESTS                                                                                  \
	"write, read, notify, cas or faa, with --api urma also send, write_imm or swap; with " \
	"_lat or _bw after it, as write_lat"

static const char help[] =
	"Usage: xtal perf TEST [OPTIONS]\n"
	"       xtal perf --server [NAME]               in one shell, and\n"
	"       xtal perf TEST --client NAME [OPTIONS]  in another; with an ADDRESS for NAME also\n"
	"                                               on another host\n"
	"\n"
	"TEST is one of write_lat read_lat notify_lat cas_lat faa_lat,\n"
	"               write_bw  read_bw  notify_bw  cas_bw  faa_bw; with --api=urma also\n"
	"               send_lat write_imm_lat swap_lat send_bw write_imm_bw swap_bw.\n"
	"\n"
	"write_lat and notify_lat are ping-pongs: both sides spin on their memory, half the round\n"
	"trip is given; send_lat and write_imm_lat, too, and both poll for the record of a receive.\n"
	"The others are timed from the post to the completion. Both kinds of memory\n"
	"are measured, from xtal_alloc and from malloc, and the path of each is named.\n"
	"\n"
	"  -s, --size=BYTES       per operation, k and m for KiB and MiB (lat and atomics 8, bw 64k)\n"
	"  -a, --all              all powers of two from 2 bytes to 8 MiB\n"
	"  -n, --iters=N          operations per queue (lat 10000, bw 5000; fewer when they are long)\n"
	"  -D, --duration=SECONDS measure for so long instead\n"
	"  -q, --qp=N             queues (bw only, default 1)\n"
	"  -t, --tx-depth=N       operations in flight per queue (bw only, default 128)\n"
	"  -b, --bidirectional    both processes send (bw only); the sum is given\n"
	"      --path=PATH        self, map, cma, ring, tcp or auto (default): only this one\n"
	"      --memory=KIND      xtal, malloc or both\n"
	"      --api=API          cdma (default) or urma: a jetty and a receive queue for each queue\n"
	"      --verify           compare all data after the timed part (default)\n"
	"      --no-verify        do not\n"
	"      --json             the same for programs\n"
	"      --server[=NAME]    wait for a client and start an owner for it; NAME is 'default',\n"
	"                         or an address of this host: ADDRESS or ADDRESS:PORT\n"
	"      --client=NAME      do not start the owner: the server NAME does, which is on this\n"
	"                         host, or at an address (with a dot or a colon in it)\n"
	"      --help             this text\n"
	"\n"
	"Exit status: 0, or 1 when a measurement or a comparison failed, 2 for a wrong command\n"
	"line, 130 after Ctrl-C.\n";

enum {
	OPT_PATH = 256,
	OPT_MEMORY,
	OPT_VERIFY,
	OPT_NO_VERIFY,
	OPT_JSON,
	OPT_SERVER,
	OPT_CLIENT,
	OPT_API
};

static const struct option options[] = {
	{ "size", required_argument, NULL, 's' },
	{ "all", no_argument, NULL, 'a' },
	{ "iters", required_argument, NULL, 'n' },
	{ "duration", required_argument, NULL, 'D' },
	{ "qp", required_argument, NULL, 'q' },
	{ "tx-depth", required_argument, NULL, 't' },
	{ "bidirectional", no_argument, NULL, 'b' },
	{ "path", required_argument, NULL, OPT_PATH },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "no-verify", no_argument, NULL, OPT_NO_VERIFY },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "server", optional_argument, NULL, OPT_SERVER },
	{ "client", required_argument, NULL, OPT_CLIENT },
	{ "api", required_argument, NULL, OPT_API },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool parse_test(const char *word, struct perf_options *opt)
{
	for (uint32_t op = 0; op < CLI_OPCODE_COUNT; op++) {
		size_t len = strlen(cli_opcode_name(op));

		if (strncmp(word, cli_opcode_name(op), len) != 0)
			continue;
		opt->op = op;
		opt->latency = strcmp(word + len, "_lat") == 0;
		if (opt->latency || strcmp(word + len, "_bw") == 0)
			return true;
	}
	return false;
}

static bool parse_path(const char *word, struct perf_options *opt)
{
	static const char *const known[] = { "self", "map", "cma", "ring", "tcp" };

	if (strcmp(word, "auto") == 0)
		return true;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(word, known[i]) == 0)
			opt->path = known[i];
	return opt->path != NULL;
}

static bool parse_memory(const char *word, struct perf_options *opt)
{
	if (strcmp(word, "xtal") == 0)
		opt->memory = 1u << CLI_MEMORY_XTAL;
	else if (strcmp(word, "malloc") == 0)
		opt->memory = 1u << CLI_MEMORY_MALLOC;
	else if (strcmp(word, "both") == 0)
		opt->memory = 1u << CLI_MEMORY_XTAL | 1u << CLI_MEMORY_MALLOC;
	else
		return false;
	return true;
}

static bool parse_seconds(const char *word, uint64_t *ns)
{
	char *end;
	double s = strtod(word, &end);

	if (end == word || *end || !(s >= 0.001 && s <= 86400))
		return false;
	*ns = (uint64_t)(s * 1e9);
	return true;
}

/* One option with a value. CLI_OK, or CLI_USAGE after the complaint. */
static int take_value(int c, const char *value, struct perf_options *opt)
{
	uint64_t n;

	switch (c) {
	case 's':
		if (!cli_parse_size(value, UINT32_MAX, &opt->size) || opt->size == 0)
			return cli_usage("perf", "-s wants 1 to 4294967295 bytes, not '%s'", value);
		return CLI_OK;
	case 'n':
		if (!cli_parse_size(value, MAX_ITERATIONS, &opt->iterations) ||
		    opt->iterations == 0)
			return cli_usage("perf", "-n wants 1 to %llu operations, not '%s'",
					 (unsigned long long)MAX_ITERATIONS, value);
		return CLI_OK;
	case 'D':
		if (!parse_seconds(value, &opt->duration_ns))
			return cli_usage("perf", "-D wants 0.001 to 86400 seconds, not '%s'",
					 value);
		return CLI_OK;
	case 'q':
		if (!cli_parse_size(value, CLI_MAX_QUEUES, &n) || n == 0)
			return cli_usage("perf", "-q wants 1 to %u queues, not '%s'",
					 CLI_MAX_QUEUES, value);
		opt->queues = (uint32_t)n;
		return CLI_OK;
	case 't':
		if (!cli_parse_size(value, 65536, &n) || n == 0)
			return cli_usage("perf",
					 "-t wants 1 to 65536 operations in flight, not '%s'",
					 value);
		opt->depth = (uint32_t)n;
		return CLI_OK;
	case OPT_PATH:
		if (!parse_path(value, opt))
			return cli_usage("perf",
					 "--path wants self, map, cma, ring, tcp or auto, not '%s'",
					 value);
		return CLI_OK;
	case OPT_API:
		for (opt->api = 0; cli_api(opt->api); opt->api++)
			if (strcmp(value, cli_api(opt->api)->name) == 0)
				return CLI_OK;
		return cli_usage("perf", "there is no api '%s'; cdma and urma are", value);
	default:
		if (!parse_memory(value, opt))
			return cli_usage("perf", "--memory wants xtal, malloc or both, not '%s'",
					 value);
		return CLI_OK;
	}
}

/* Defaults that depend on the rest, and what cannot go together. */
static int settle(struct perf_options *opt)
{
	bool atomic = cli_opcode_is_atomic(opt->op);

	if (!(cli_api(opt->api)->opcodes & 1u << opt->op))
		return cli_usage("perf", "%s is no operation of %s: with --api urma",
				 cli_opcode_name(opt->op), cli_api(opt->api)->name);
	if (cli_opcode_receives(opt->op) && opt->path && strcmp(opt->path, "ring") != 0 &&
	    strcmp(opt->path, "tcp") != 0)
		return cli_usage("perf", "%s sends messages: --path wants ring, tcp or auto for it",
				 cli_opcode_name(opt->op));
	if (opt->latency && (opt->queues || opt->depth || opt->both))
		return cli_usage("perf", "-q, -t and -b are for the bw tests");
	if (opt->iterations && opt->duration_ns)
		return cli_usage("perf", "-n and -D exclude each other");
	if (opt->sizes && opt->size)
		return cli_usage("perf", "-a and -s exclude each other");
	if (atomic && opt->sizes)
		return cli_usage("perf", "-a is not for atomics");
	if (opt->path && strcmp(opt->path, "self") == 0 && opt->client)
		return cli_usage("perf", "--path self is one process: there can be no --client");
	if (!opt->size)
		opt->size = opt->latency || atomic ? 8 : 65536;
	if (atomic && opt->size != 4 && opt->size != 8 && !(opt->op == CLI_CAS && opt->size == 16))
		return cli_usage("perf", "%s works on %s bytes, not %llu", cli_opcode_name(opt->op),
				 opt->op == CLI_CAS ? "4, 8 or 16" : "4 or 8",
				 (unsigned long long)opt->size);
	if (!opt->queues)
		opt->queues = 1;
	if (!opt->depth)
		opt->depth = opt->latency ? 1 : 128;
	if (!opt->memory) {
		/* A path that only one kind of memory is for, or that treats both alike. */
		if (!opt->path)
			parse_memory("both", opt);
		else
			parse_memory(strcmp(opt->path, "map") == 0 ? "xtal" : "malloc", opt);
	}
	return CLI_OK;
}

/* The engine reads XTAL_PATHS when it starts: so start once more, with it. */
static int insist_on_path(const char *path, int argc, char **argv)
{
	const char *now = getenv("XTAL_PATHS");
	char **again;

	if (now && strcmp(now, path) == 0)
		return CLI_OK;
	again = calloc((size_t)argc + 2, sizeof(*again));
	if (!again || setenv("XTAL_PATHS", path, 1) != 0)
		return cli_die(CLI_FAILED, "no memory");
	again[0] = (char[]){ "xtal" };
	memcpy(again + 1, argv, (size_t)argc * sizeof(*again));
	execv("/proc/self/exe", again);
	free(again);
	return CLI_OK; /* no /proc: nothing of the engine was used yet, so it may do */
}

/* What the words of the command line are. */
struct line {
	const char *server, *test;
	bool help;
};

/* "--server NAME": an optional value must be fetched by hand. */
static const char *server_name(int argc, char **argv)
{
	struct perf_options ignored;

	if (optarg)
		return optarg;
	if (optind < argc && argv[optind][0] != '-' && !parse_test(argv[optind], &ignored))
		return argv[optind++];
	return "default";
}

static int read_line(int argc, char **argv, struct perf_options *opt, struct line *line)
{
	int c, status;

	while ((c = getopt_long(argc, argv, ":s:an:D:q:t:bh", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			opt->sizes = true;
			break;
		case 'b':
			opt->both = true;
			break;
		case OPT_VERIFY:
		case OPT_NO_VERIFY:
			opt->verify = c == OPT_VERIFY;
			break;
		case OPT_JSON:
			opt->json = true;
			break;
		case OPT_SERVER:
			line->server = server_name(argc, argv);
			break;
		case OPT_CLIENT:
			opt->client = optarg;
			break;
		case 'h':
			line->help = true;
			return CLI_OK;
		case ':':
		case '?':
			return cli_bad_option("perf", c, argv, options);
		default:
			status = take_value(c, optarg, opt);
			if (status)
				return status;
		}
	}
	line->test = optind < argc ? argv[optind++] : NULL;
	if (optind < argc)
		return cli_usage("perf", "one test at a time: what is '%s'?", argv[optind]);
	if (line->server && opt->client)
		return cli_usage("perf", "--server and --client exclude each other");
	if ((line->server && !*line->server) || (opt->client && !*opt->client))
		return cli_usage("perf", "--%s wants a name or an address, not ''",
				 line->server ? "server" : "client");
	if (line->test && !parse_test(line->test, opt))
		return cli_usage("perf", "there is no test '%s': " TESTS, line->test);
	if (!line->test && !line->server)
		return cli_usage("perf", "which test? " TESTS);
	return line->test ? settle(opt) : CLI_OK;
}

int cli_perf(int argc, char **argv)
{
	struct perf_options opt = { .verify = true };
	struct line line = { 0 };
	struct perf_report *report;
	char **original;
	int status;

	/* getopt_long sorts the words; keep their order for a second start. */
	original = calloc((size_t)argc + 1, sizeof(*original));
	if (!original)
		return cli_die(CLI_FAILED, "no memory");
	memcpy(original, argv, (size_t)argc * sizeof(*original));
	status = read_line(argc, argv, &opt, &line);
	if (line.help)
		fputs(help, stdout);
	else if (status == CLI_OK && opt.path && !line.server)
		status = insist_on_path(opt.path, argc, original);
	free(original);
	if (status || line.help)
		return status;

	cli_catch_interrupts();
	if (line.server)
		return perf_serve(line.server);
	report = perf_report_new(&opt);
	if (!report)
		return cli_die(CLI_FAILED, "no memory");
	return perf_report_end(report, perf_run(&opt, report));
}
