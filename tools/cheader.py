#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads function declarations out of our headers: enough C for them, not a C parser.

Used by mapfile.py (exported symbols), man.py (manual pages) and the checks. Understands
comments, preprocessor lines, extern "C", attributes and function pointer parameters.
Declarations with a body (static inline) and typedefs are not reported.
"""
import re

MARKERS = ("XTAL_API", "XTAL_INTERNAL_API")


class Function:
    """One declaration: name, text without our markers, parameter names, comment before it."""

    def __init__(self, name, text, params, doc, line, markers):
        self.name = name
        self.text = text
        self.params = params
        self.doc = doc
        self.line = line
        self.markers = markers


def blank(match):
    """Replaces a match by spaces, keeping line numbers and offsets."""
    return re.sub(r"[^\n]", " ", match.group(0))


def without_comments(text, strings=True):
    """C text with comments (and the insides of literals, unless strings is False) blanked."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def replace(match):
        piece = match.group(0)
        if piece[0] == "/":
            return blank(match)
        if strings:
            return piece[0] + " " * (len(piece) - 2) + piece[-1]
        return piece

    return re.sub(pattern, replace, text, flags=re.S)


def split_params(text):
    """Splits at the commas that are not inside brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def param_name(text):
    """Name of one parameter, "..." for varargs, None when it has no name or is void."""
    if text == "...":
        return "..."
    pointer = re.search(r"\(\s*\*\s*(?:const\s+)?(\w+)", text)
    if pointer:
        return pointer.group(1)
    words = re.findall(r"\w+", re.sub(r"\[[^\]]*\]", "", text))
    builtin = {"void", "int", "char", "long", "short", "unsigned", "float", "double", "bool"}
    if len(words) < 2 or words[-1] in builtin or words[-2] in {"struct", "enum", "union"}:
        return None
    return words[-1]


def matching(text, start):
    """Offset behind the bracket that closes the one at start."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] == "(":
            depth += 1
        elif text[i] == ")":
            depth -= 1
            if depth == 0:
                return i + 1
    return len(text)


def without_attributes(text):
    while True:
        found = re.search(r"__attribute__\s*\(", text)
        if not found:
            return text
        text = text[: found.start()] + text[matching(text, found.end() - 1):]


def parse_declaration(text):
    """(name, text, params, markers) of a declaration without its semicolon, or None."""
    text = " ".join(without_attributes(text).split())
    words = re.findall(r"\w+", text)
    if not words or words[0] in ("typedef", "static", "inline", "_Static_assert", "static_assert"):
        return None
    markers = [word for word in words if word in MARKERS]
    for word in MARKERS + ("extern",):
        text = re.sub(r"\b%s\b" % word, "", text)
    text = " ".join(text.split())
    found = re.match(r"([\w\s*]+?[\s*])(\w+)\s*\(", text)
    if not found:
        return None
    end = matching(text, found.end() - 1)
    if text[end:].strip():
        return None
    params = [param_name(part) for part in split_params(text[found.end(): end - 1])
              if part != "void"]
    return found.group(2), text, params, markers


def functions(path):
    """All function declarations of the header at path, in order."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    text = without_comments(source)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", blank, text, flags=re.M)
    text = re.sub(r'extern\s+"\s*"\s*\{', blank, text)
    found = []
    depth, start, body = 0, 0, False
    for i, char in enumerate(text):
        if char == "{":
            depth += 1
            body = True
        elif char == "}":
            depth = max(0, depth - 1)
            # A function body ends a declaration; a struct's closing brace does not.
            if depth == 0 and not re.match(r"[\s\w*\[\]]*;", text[i + 1:]):
                start, body = i + 1, False
            elif depth == 0 and re.search(r"\)\s*\{", text[start:i]) and body:
                start, body = i + 1, False
        elif char == ";" and depth == 0:
            if not body:
                parsed = parse_declaration(text[start:i])
                if parsed:
                    begin = start + len(text[start:i]) - len(text[start:i].lstrip())
                    doc = comment_before(source, begin)
                    line = text.count("\n", 0, begin) + 1
                    name, decl, params, markers = parsed
                    found.append(Function(name, decl, params, doc, line, markers))
            start, body = i + 1, False
    return found


def types(path):
    """{name: (text, names of the types it contains by value)} of the header's structs, unions
    and enums, in order; text is the definition as it stands. A typedef's name counts too."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    found = {}
    for match in re.finditer(r"^(?:typedef )?(?:struct|union|enum) (\w+) \{\n.*?^\}([^;]*);",
                             source, flags=re.M | re.S):
        body = without_comments(match.group(0))
        inside = re.findall(r"^[ \t]+(?:struct |union |enum |const )?(\w+) \w+(?:\[[^\]]*\])*;",
                            body, flags=re.M)
        names = [match.group(1)] + re.findall(r"\w+", without_attributes(match.group(2)))
        for name in names:
            found[name] = (match.group(0), inside)
    return found


def comment_before(source, offset):
    """The block comment that ends right before offset (only blanks between), or None."""
    head = source[:offset].rstrip()
    if not head.endswith("*/") or source[len(head):offset].count("\n") > 1:
        return None
    return head[head.rfind("/*"):]
