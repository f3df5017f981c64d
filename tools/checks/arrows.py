#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that dependencies point one way, and that only src/os calls the kernel.

  arrows.py ROOT

"core/queue.h" in a file of src/cdma is an arrow cdma -> core. ARROWS lists what each folder may
include besides itself and the public headers. Folders not listed are refused.
"""
import os
import re
import sys

from tree import Report, files, read

ARROWS = {
    "base": (),
    "os": ("base",),
    "wire": ("base",),
    "path": ("base", "os", "wire"),
    "core": ("base", "os", "wire", "path"),
    "cdma": ("base", "core"),
    "urma": ("base", "core"),
    "tpsa": (),
    "verbs": ("base", "core"),
    "cli": ("base",),
}
NO_PUBLIC_HEADERS = ("base", "os", "wire", "path")
MAY_CALL_KERNEL = ("os", "cli")
# Headers that declare system calls or threads. What only declares types and pure functions
# (string.h, errno.h, stdatomic.h, time.h, arpa/inet.h, ...) is free for all.
KERNEL_HEADERS = re.compile(r"""^(
    unistd|fcntl|poll|signal|pthread|semaphore|threads|dirent|spawn|aio|mqueue|ifaddrs|
    netdb|pwd|grp|termios|ucontext|setjmp|syslog|
    sys/(mman|socket|un|epoll|eventfd|timerfd|signalfd|inotify|fanotify|syscall|uio|stat|statfs|
         statvfs|vfs|wait|ioctl|prctl|ptrace|resource|time|times|sendfile|select|poll|shm|sem|msg|
         ipc|file|mount|random|auxv|personality|utsname|sysinfo|pidfd|rseq)|
    net/if|linux/.*|asm/.*|bits/.*
    )(\.h)?$""", re.X)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def includes(text):
    """(line, quote, name) of every #include."""
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def check_source(root, path, report, public):
    folder = path.split("/")[1]
    if folder not in ARROWS or path.count("/") != 2:
        report.add(path, 1, "folder", "a source file belongs in src/<one of %s>/"
                   % ", ".join(ARROWS))
        return
    for line, _, name in includes(read(root, path)):
        first = name.split("/")[0]
        if first in ARROWS and "/" in name:
            if first != folder and first not in ARROWS[folder]:
                report.add(path, line, name, "%s must not include %s (it may include: %s)"
                           % (folder, name, ", ".join(ARROWS[folder]) or "nothing of ours"))
        elif name in public:
            if folder in NO_PUBLIC_HEADERS:
                report.add(path, line, name, "%s must not know the public header %s"
                           % (folder, name))
        elif name.startswith("."):
            report.add(path, line, name, "include by folder, not relatively: " + name)
        elif KERNEL_HEADERS.match(name) and folder not in MAY_CALL_KERNEL:
            report.add(path, line, name, "only src/os calls the kernel, %s must not include <%s>"
                       % (folder, name))


def main():
    root = sys.argv[1]
    report = Report(root, "arrows")
    headers = files(root, ["include"], (".h",))
    public = {os.path.relpath(path, "include") for path in headers}
    sources = files(root, ["src"], (".c", ".h"))
    for path in sources:
        check_source(root, path, report, public)
    for path in headers:
        for line, quote, name in includes(read(root, path)):
            if name.split("/")[0] in ARROWS or (quote == '"' and name not in public):
                report.add(path, line, name, "a public header must not include " + name)
    return report.finish("%d files" % (len(sources) + len(headers)))


if __name__ == "__main__":
    sys.exit(main())
