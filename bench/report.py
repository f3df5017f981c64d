#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns the lines that the measurements wrote into the table, JSON and plots.

  report.py table LINES OUT   the table on stdout; OUT/bench.json, OUT/*.svg
  report.py ucx SERIES ROUND SIZE TEST TEXT   the last CSV line of ucx_perftest as one of ours
  report.py iperf SERIES ROUND   iperf3's JSON on stdin as a line of ours: ns per MiB

A figure is the median over the rounds; a ratio is the median of the rounds' ratios, because
both sides of a round were measured beside each other.
"""
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
from statistics import median

NS, RATE = "ns", "M/s"


def tcp_rows(net, name):
    """What bench/tcp.sh measures; UCX's latency is half of its round trip."""
    tcp, tls = "tcp_%s." % net, "tls_%s." % net
    return [
        ("TCP, %s: 8 B write, round trip; bare sockets" % name,
         tcp + "8.xtal", tcp + "8.raw", "time", 1.3),
        ("  the same; half the round trip of ucp_put_lat", tcp + "8.xtal", tcp + "ucx8",
         "time", 1.0),
        ("  8 B READ; WRITE", tcp + "8.read", tcp + "8.xtal", "time", 1.1),
        ("  1 MiB; iperf3, one stream", tcp + "1m.xtal", tcp + "iperf", "speed", 2.0),
        ("  1 MiB; bare sockets", tcp + "1m.xtal", tcp + "1m.raw", "speed", None),
        ("  1 MiB; ucp_put_bw", tcp + "1m.xtal", tcp + "ucx1m", "speed", None),
        ("  1 MiB READ; WRITE", tcp + "1m.read", tcp + "1m.xtal", "time", 1.1),
        ("TLS, %s: 8 B write; bare OpenSSL" % name, tls + "8.xtal", tls + "8.ssl",
         "speed", 0.8),
        ("  1 MiB; bare OpenSSL", tls + "1m.xtal", tls + "1m.ssl", "speed", 0.8),
        ("  1 MiB READ; WRITE", tls + "1m.read", tls + "1m.xtal", "time", 1.1),
    ]


def urma_rows():
    """What bench/urma.sh measures, beside CDMA over the same path."""
    rows = [
        ("URMA, map: 8 B write, posted and polled; CDMA", "urma_write.map1.urma",
         "urma_write.map1.cdma", "time", 1.2),
        ("  8 B SEND, half the round trip, ring; cache line", "message.ring.urma",
         "message.ring.raw", "time", 2.0),
        ("  the same in memory of xtal_alloc", "message.alloc.urma", "message.alloc.raw", "time", 2.0),
        ("  the same, tcp; bare socket", "message.tcp.urma", "message.tcp.socket", "time", 1.3),
    ]
    for op in ("write", "read"):
        for path in ("map", "cma", "ring", "tcp"):
            for size, name in ((8, "8 B"), (65536, "64 KiB")):
                series = "urma_%s.%s%d." % (op, path, size)
                rows.append(("URMA, %s: %s %s, 16 outstanding; CDMA" % (path, name, op.upper()),
                             series + "urma", series + "cdma", "time", None))
    for path in ("ring", "tcp"):
        for size, name in ((8, "8 B"), (65536, "64 KiB")):
            rows.append(("URMA, %s: %s SEND, 16 outstanding" % (path, name),
                         "urma_send.%s%d.urma" % (path, size), None, "limit", None))
    return rows


# what, measured series, reference series (None: a bare number), kind, bound.
# time: measured <= bound * reference; speed: reference time / measured time >= bound;
# limit: measured <= bound, in the series' unit.
ROWS = [
    ("8 B write until the other core sees it", "pingpong.xtal", "pingpong.raw", "time", 1.1),
    ("  the same, completion taken last", "pingpong.strict", "pingpong.raw", "time", None),
    ("8 B write + poll, batches of 16; ucp_put_bw", "rate.xtal", "rate.ucp", "speed", 1.5),
    ("  the same; uct put_bw short, no completions", "rate.xtal", "rate.uct", "speed", None),
    ("64 KiB; memcpy", "copy64k.xtal", "copy64k.memcpy", "speed", 1.0),
    ("4 MiB; memcpy", "copy4m.xtal", "copy4m.memcpy", "speed", 1.6),
    ("16 MiB; memcpy", "copy16m.xtal", "copy16m.memcpy", "speed", 1.6),
    ("64 MiB; memcpy", "copy64m.xtal", "copy64m.memcpy", "speed", 1.6),
    ("post of 16 MiB returns, median", "post.median", None, "limit", 5000),
    ("post of 16 MiB returns, 99th percentile", "post.p99", None, "limit", 5000),
    ("8 B FAA, mapped, posted and polled", "faa.xtal", None, "limit", 40),
    ("  the same, batches of 16", "faa16.xtal", None, "limit", 40),
    ("8 B write over cma; process_vm_writev", "cma.xtal", "cma.vm", "time", 1.1),
    ("8 B write to adopted memory until seen", "adopted.xtal", "adopted.raw", "time", 1.1),
    ("64 KiB to adopted memory; memcpy", "adopted64k.xtal", "ours64k.memcpy", "speed", 1.0),
    ("adopting 1 MiB", "adopt.share", None, "limit", 600000),
    ("making 1 MiB private again", "adopt.unshare", None, "limit", None),
    ("owner's loads of adopted memory; before", "adopt.after", "adopt.before", "time", 1.03),
    ("1,000 queues and segments; one", "scale.many", "scale.one", "time", 1.2),
    ("  the same, batches of 16 per queue", "scale16.many", "scale16.one", "time", 1.2),
    *tcp_rows("lo", "loopback"),
    *tcp_rows("veth", "veth"),
    *urma_rows(),
    ("1,000 peers: 8 B write over TCP; one peer", "peers.many", "peers.one", "time", 1.2),
    ("  every one in turn; one peer", "peers.round", "peers.one", "time", None),
    ("  resident bytes of the target per idle peer", "peers.memory", None, "limit", 32 * 1024),
    ("  with TLS", "peers_tls.memory", None, "limit", 64 * 1024),
    ("idle: context switches per second", "idle.switches", None, "limit", 0),
    ("idle: agent wake-ups per second", "idle.agent", None, "limit", 0),
    ("idle: threads", "idle.threads", None, "limit", None),
    ("first context, resident", "memory.first_context", None, "limit", 256 * 1024),
    ("first context, Pss", "memory.first_context_pss", None, "limit", 256 * 1024),
    ("further context, resident", "memory.context", None, "limit", 256 * 1024),
    ("first operation to a peer, resident", "memory.link", None, "limit", 256 * 1024),
    ("queue of depth 64, resident", "memory.queue", None, "limit", 16 * 1024),
    ("  the same, after 64 operations", "memory.queue_used", None, "limit", 16 * 1024),
    ("imported segment; its struct", "memory.import", "memory.import_struct", "time", 1.5),
    ("threads: context open", "memory.threads_open", None, "limit", 2),
    ("threads: peer connected", "memory.threads_linked", None, "limit", 3),
    ("threads: long copy done", "memory.threads_long", None, "limit", 2 + 8),
]

PLOTS = [
    ("latency", "Half round trip of a message", "ns", [
        ("xtal map", "lat.map.xtal"), ("xtal cma", "lat.cma.xtal"),
        ("xtal ring", "lat.ring.xtal"), ("UCX posix", "lat.ucx_posix"),
        ("UCX cma", "lat.ucx_cma"), ("memcpy", "lat.map.memcpy"),
        ("process\\_vm\\_writev", "lat.map.vm")]),
    ("bandwidth", "Bandwidth of completed writes, 16 outstanding", "MB/s", [
        ("xtal map", "bw.map.xtal"), ("xtal cma", "bw.cma.xtal"),
        ("xtal ring", "bw.ring.xtal"), ("UCX posix", "bw.ucx_posix"),
        ("UCX cma", "bw.ucx_cma"), ("memcpy", "bw.map.memcpy"),
        ("process\\_vm\\_writev", "bw.cma.vm")]),
]


class Series:
    """All rounds of all series: (series, size) -> {round: line}."""

    def __init__(self, path):
        self.lines = {}
        with open(path, encoding="utf-8") as file:
            for text in file:
                line = json.loads(text)
                rounds = self.lines.setdefault(line["series"], {}).setdefault(line["size"], [])
                rounds.append(line)

    def rounds(self, series):
        """The lines of a series that has one size."""
        sizes = self.lines.get(series, {})
        return next(iter(sizes.values()), [])

    def points(self, series):
        return sorted((size, median(line["value"] for line in lines))
                      for size, lines in self.lines.get(series, {}).items())


def figure(lines, key="value"):
    return median(line[key] for line in lines)


def human(value, unit):
    if unit == "bytes":
        return "%.1f KiB" % (value / 1024) if value >= 1024 else "%.0f B" % value
    if unit == "ns":
        for scale, name in ((1e6, "ms"), (1e3, "us")):
            if value >= 10 * scale:
                return "%.2f %s" % (value / scale, name)
        return "%.1f ns" % value
    return ("%g %s" % (value, unit)).strip()


def evaluate(series, row):
    """One line of the table, or None when it was not measured."""
    what, measured, reference, kind, bound = row
    mine = series.rounds(measured)
    if not mine:
        return None
    unit = mine[0]["unit"]
    result = {"what": what.strip(), "series": measured, "unit": unit, "measured": figure(mine),
              "best": figure(mine, "best"), "reference": None, "ratio": None,
              "ratio_best": None, "bound": bound, "kind": kind, "met": None,
              "rounds": [line["value"] for line in mine]}
    value = result["measured"]
    if reference:
        other = series.rounds(reference)
        if not other:
            return None
        pairs = list(zip(mine, other))
        up = kind == "speed"

        def ratio(a, b):
            return b / a if up else a / b

        result["reference"] = figure(other)
        result["reference_series"] = reference
        result["ratio"] = value = median(ratio(a["value"], b["value"]) for a, b in pairs)
        result["ratio_best"] = ratio(figure(mine, "best"), figure(other, "best"))
    else:
        value = max(line["value"] for line in mine) if unit == "1/s" else value
        result["measured"] = value
    if bound is not None:
        result["met"] = value >= bound if kind == "speed" else value <= bound
    return result


def bound_text(result):
    if result["bound"] is None:
        return "-"
    if result["ratio"] is None:
        return "<= " + human(result["bound"], result["unit"])
    return "%s %.1f x" % (">=" if result["kind"] == "speed" else "<=", result["bound"])


def print_table(results, rows):
    head = ("what; reference", "measured", "reference", "ratio", "best", "bound", "met?")
    lines = [head]
    for row, result in zip(rows, results):
        if result is None:
            continue
        lines.append((row[0], human(result["measured"], result["unit"]),
                      "" if result["reference"] is None
                      else human(result["reference"], result["unit"]),
                      "" if result["ratio"] is None else "%.2f" % result["ratio"],
                      human(result["best"], result["unit"]) if result["ratio_best"] is None
                      else "%.2f" % result["ratio_best"],
                      bound_text(result),
                      {None: "", True: "yes", False: "NO"}[result["met"]]))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for number, line in enumerate(lines):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def plot(series, out, name, title, unit, curves):
    """OUT/name.svg through gnuplot, and OUT/name.dat, from which it is drawn."""
    blocks, parts = [], []
    for label, key in curves:
        points = series.points(key)
        if not points:
            continue
        if unit == "MB/s":
            points = [(size, size / ns * 1000) for size, ns in points]
        parts.append("'%s/%s.dat' index %d with linespoints lw 1.5 title '%s'"
                     % (out, name, len(blocks), label))
        blocks.append("# %s\n" % label + "".join("%d %g\n" % point for point in points))
    if not blocks:
        return
    with open("%s/%s.dat" % (out, name), "w", encoding="utf-8") as file:
        file.write("\n\n".join(blocks))
    if not shutil.which("gnuplot"):
        print("no gnuplot: no %s.svg" % name)
        return
    script = """set terminal svg size 900,600 background rgb 'white'
set output '%s/%s.svg'
set title '%s'
set xlabel 'bytes'
set ylabel '%s'
set logscale xy
set format x '%%.0s%%c'
set grid
set key %s
plot %s
""" % (out, name, title, unit, "left top" if unit == "ns" else "right bottom", ", ".join(parts))
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(lines, out):
    series = Series(lines)
    results = [evaluate(series, row) for row in ROWS]
    load = os.getloadavg()[0]
    print("%d cores, %s, Linux %s, load %.1f" % (os.cpu_count(), processor(),
                                                 platform.release(), load))
    print_table(results, ROWS)
    for name, title, unit, curves in PLOTS:
        plot(series, out, name, title, unit, curves)
    report = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
              "cores": os.cpu_count(), "processor": processor(), "kernel": platform.release(),
              "load": load, "rows": [r for r in results if r],
              "plots": {name: {label.replace("\\", ""): series.points(key)
                               for label, key in curves} for name, _, _, curves in PLOTS}}
    with open(os.path.join(out, "bench.json"), "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    missed = [r["what"] for r in results if r and r["met"] is False]
    unmeasured = [row[0].strip() for row, r in zip(ROWS, results) if r is None]
    print("%d bounds met, %d missed, %d rows not measured; %s/bench.json"
          % (sum(1 for r in results if r and r["met"]), len(missed), len(unmeasured), out))
    return 1 if missed else 0


def ucx(name, number, size, test, text):
    """CSV: iterations, 50th percentile, average, overall latency in us, bandwidths, rates."""
    fields = text.split(",")
    if len(fields) < 8:
        return 1
    if test.endswith("_lat"):
        value = best = float(fields[1]) * 1000
    else:
        value = best = 1e9 / float(fields[7])
    print(json.dumps({"series": name, "unit": "ns", "size": int(size), "round": int(number),
                      "value": value, "best": best}))
    return 0


def iperf(name, number):
    bits = json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"]
    value = (1 << 20) * 8e9 / bits
    print(json.dumps({"series": name, "unit": "ns", "size": 1 << 20, "round": int(number),
                      "value": value, "best": value}))
    return 0


if __name__ == "__main__":
    sys.exit({"table": table, "ucx": ucx, "iperf": iperf}[sys.argv[1]](*sys.argv[2:]))
