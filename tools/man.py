#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes one manual page of section 3 per public function, from the comment before it.

  man.py --out DIR --version V --date YYYY-MM-DD header.h...

Each function of a public header is preceded by a block of this form:

  /**
   * dma_register_seg - one-line summary
   *
   * Paragraphs of description, separated by empty lines. A line indented by two or more
   * spaces is printed as it stands (code, tables).
   *
   * @ctx: meaning, units, range, ownership; continued lines are indented
   * @cfg: ...
   *
   * Returns: text.
   * Errors:
   *   NULL: when ...
   *   EINVAL: when ...
   * Threads: text.
   * Contract: where the behaviour comes from.
   */

Order as shown. Summary, a line for every parameter, Returns and Threads are required (Returns
also for void functions: "Returns: nothing."); the description, Errors and Contract may be
left out. A name followed by "()" becomes a reference. Anything missing or unknown is an
error, named by file and line, and nothing is written.

Structs, unions and enums of the given headers that a prototype names are printed as they are
defined, with those that they contain.
"""
import argparse
import os
import re
import sys

from cheader import functions, types, without_comments

SECTIONS = ("Returns", "Errors", "Threads", "Contract")
TITLES = {"Returns": "RETURN VALUE", "Errors": "ERRORS", "Threads": "THREADS",
          "Contract": "CONTRACT"}
TYPE_LINES = 120  # contained types are left out beyond that
SEE_ALSO = {"cdma_u_lib.h": [("cdma", "7"), ("xtal", "1")],
            "urma_api.h": [("urma", "7"), ("xtal", "1")],
            "urma_types.h": [("urma", "7"), ("xtal", "1")],
            "urma_perf.h": [("urma", "7"), ("xtal", "1")],
            "xtal.h": [("cdma", "7"), ("xtal", "1")]}


class Block:
    """A parsed comment."""

    def __init__(self):
        self.summary = ""
        self.description = []
        self.params = {}
        self.sections = {}


def comment_lines(doc):
    """Lines of a block comment without its decoration."""
    lines = doc[3:-2].split("\n")
    lines = [re.sub(r"^\s*\*( |$)", "", line).rstrip() for line in lines]
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def parse_block(function, problems):
    """The Block of a function; complaints go to problems."""
    block = Block()
    if not function.doc or not function.doc.startswith("/**"):
        problems.append("no /** block before %s()" % function.name)
        return block
    lines = comment_lines(function.doc)
    head = re.match(r"(\w+) - (.+)", lines[0]) if lines else None
    if not head or head.group(1) != function.name:
        problems.append('the block must start with "%s - summary"' % function.name)
        return block
    block.summary = head.group(2).rstrip(".")
    target = block.description
    for line in lines[1:]:
        param = re.match(r"@(\w+|\.\.\.):\s*(.*)", line)
        section = re.match(r"(%s):\s*(.*)" % "|".join(SECTIONS), line)
        if param:
            target = block.params.setdefault(param.group(1), [])
            target.append(param.group(2))
        elif section:
            if section.group(1) in block.sections:
                problems.append("%s(): section %s twice" % (function.name, section.group(1)))
            target = block.sections.setdefault(section.group(1), [])
            target.append(section.group(2))
        else:
            target.append(line)
    check_block(function, block, problems)
    return block


def check_block(function, block, problems):
    for name in function.params:
        if name is None:
            problems.append("%s(): a parameter has no name" % function.name)
        elif not " ".join(block.params.get(name, [])).strip():
            problems.append("%s(): parameter %s is not documented" % (function.name, name))
    for name in block.params:
        if name not in function.params:
            problems.append("%s(): there is no parameter %s" % (function.name, name))
    for name in ("Returns", "Threads"):
        if not " ".join(block.sections.get(name, [])).strip():
            problems.append("%s(): section %s is missing" % (function.name, name))


def escape(text, names=()):
    """Plain text as roff; names known to us, written "name()", become references."""
    text = text.replace("\\", "\\e").replace("-", "\\-")

    def reference(match):
        name = match.group(1)
        return "\\fB%s\\fP(3)" % name if name in names else "\\fB%s\\fP()" % name

    text = re.sub(r"\b([a-z]\w+)\(\)", reference, text)
    return "\\&" + text if text[:1] in (".", "'") else text


def prose(lines, names, first=".PP"):
    """Paragraphs as roff lines; indented lines keep their shape."""
    out, paragraph, code = [], [], []

    def flush():
        if paragraph:
            out.append(first if not out else ".PP")
            out.extend(escape(line, names) for line in paragraph)
            paragraph.clear()
        if code:
            out.extend([".PP", ".RS 4", ".nf"])
            out.extend(escape(line[2:], names) for line in code)
            out.extend([".fi", ".RE"])
            code.clear()

    for line in lines:
        if line.startswith("  ") and line.strip():
            if paragraph:
                flush()
            code.append(line)
        elif line.strip():
            if code:
                flush()
            paragraph.append(line.strip())
        else:
            flush()
    flush()
    return [line for line in out if line]


def tagged(text, lines, names):
    """A .TP item: tag, then its text as paragraphs."""
    body = prose([line.strip() for line in lines], names, first="")
    return [".TP", text] + [".IP" if line == ".PP" else line for line in body if line]


def errors(lines, names):
    """The Errors list: "  NAME: when"; deeper or unlabelled lines continue the item."""
    items, lead = [], []
    for line in lines:
        item = re.match(r"\s+([\w ,./|()<>=-]+?):\s+(.*)", line)
        if item:
            items.append((item.group(1), [item.group(2)]))
        elif items:
            items[-1][1].append(line.strip())
        elif line.strip():
            lead.append(line.strip())
    out = prose(lead, names, first="") if lead else []
    for name, text in items:
        out += tagged("\\fB%s\\fP" % escape(name), text, names)
    return out


def prototype(function):
    """SYNOPSIS lines, one parameter per line when the whole does not fit."""
    text = function.text + ";"
    if len(text) <= 78:
        return [escape(text)]
    head, rest = text.split("(", 1)
    depth, start, parts = 0, 0, []
    for i, char in enumerate(rest):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(rest[start: i + 1].strip())
            start = i + 1
    parts.append(rest[start:].strip())
    lines = [head + "(" + parts[0]] + ["    " + part for part in parts[1:]]
    return [escape(line) for line in lines]


def types_of(function, known):
    """Definitions of the types in the prototype, then of those inside them, outermost first."""
    words = re.findall(r"\w+", without_comments(function.text))
    waiting = [name for name in words if name in known]
    direct, texts, lines = len(waiting), [], 0
    for i, name in enumerate(waiting):
        text, inside = known[name]
        if text in texts or (i >= direct and lines + text.count("\n") > TYPE_LINES):
            continue
        texts.append(text)
        lines += text.count("\n")
        waiting += [inner for inner in inside if inner in known]
    return texts


def definitions(texts):
    """The TYPES section: code as it stands, tabs as four columns."""
    out = [".SH TYPES", ".nf"]
    for i, text in enumerate(texts):
        if i:
            out.append(".sp")
        for line in text.split("\n"):
            body = line.lstrip("\t")
            out.append(escape(("    " * (len(line) - len(body)) + body).expandtabs(4)) or ".sp")
    return out + [".fi"]


def public(path):
    """The header that programs include: that of the folder, for a part of one."""
    folder = os.path.basename(os.path.dirname(path))
    return folder + ".h" if folder + ".h" in SEE_ALSO else os.path.basename(path)


def page(function, block, header, known, names, args):
    link = "libcdma" if header == "cdma_u_lib.h" else \
        "liburma" if header.startswith("urma_") else "xtal"
    out = [".\\\" Made by man.py from %s; do not edit." % header,
           '.TH %s 3 %s "Xtal %s" "Xtal manual"' % (function.name.upper(), args.date,
                                                   args.version),
           ".SH NAME", "%s \\- %s" % (function.name, escape(block.summary)),
           ".SH SYNOPSIS", ".nf", "\\fB#include <%s>\\fP" % header, ""]
    out = out[:-1] + [".PP"] + prototype(function)
    out += [".PP", "Link with the flags of: pkg\\-config \\-\\-libs %s" % link, ".fi"]
    if block.description and any(line.strip() for line in block.description):
        out += [".SH DESCRIPTION"] + prose(block.description, names, first="")
    if function.params:
        out.append(".SH PARAMETERS")
        for name in function.params:
            out += tagged("\\fI%s\\fP" % name, block.params[name], names)
    texts = types_of(function, known)
    if texts:
        out += definitions(texts)
    for section in SECTIONS:
        if section in block.sections:
            lines = block.sections[section]
            body = errors(lines, names) if section == "Errors" else \
                prose([line.strip() for line in lines], names, first="")
            if body:
                out += [".SH " + TITLES[section]] + body
    also = ["\\fB%s\\fP(%s)" % entry for entry in SEE_ALSO.get(header, [])]
    if also:
        out += [".SH SEE ALSO", ",\n".join(also)]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description="manual pages from header comments")
    parser.add_argument("--out", required=True)
    parser.add_argument("--version", default="0")
    parser.add_argument("--date", default="1970-01-01")
    parser.add_argument("headers", nargs="+")
    args = parser.parse_args()

    found = [(path, function) for path in args.headers for function in functions(path)]
    names = {function.name for _, function in found}
    known = {name: kind for path in args.headers for name, kind in types(path).items()}
    pages, failed = {}, False
    for path, function in found:
        problems = []
        block = parse_block(function, problems)
        for problem in problems:
            print("%s:%d: %s" % (path, function.line, problem), file=sys.stderr)
            failed = True
        if not problems:
            pages[function.name] = page(function, block, public(path), known, names,
                                        args)
    if failed:
        return 1
    os.makedirs(args.out, exist_ok=True)
    for old in os.listdir(args.out):
        if old.endswith(".3") and old[:-2] not in pages:
            os.unlink(os.path.join(args.out, old))
    for name, text in pages.items():
        with open(os.path.join(args.out, name + ".3"), "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
