#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Unit tests of the header reader, the manual page generator, version scripts and the summary."""
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [TOOLS, os.path.join(TOOLS, "ci")]
import cheader  # noqa: E402
import mapfile  # noqa: E402
import summary  # noqa: E402

HEADER = r"""/* SPDX-License-Identifier: MIT */
#define API_MACRO(a) \
	hidden_by_macro(a);
#ifdef __cplusplus
extern "C" {
#endif
struct s { int (*slot)(int x); };
enum e { ONE, TWO = 2 };
typedef int (*callback_t)(void *arg);
static inline int body(int a) { return a; }
/* int commented(int a); */
/**
 * first - does it, "quoted"
 *
 * Text about other() and first(), back\slash, a - b.
 * .leading dot
 *
 *   code - line
 *
 * @size: bytes,
 *   at least 1
 * @slot: called
 *
 * Returns: a pointer.
 * Errors:
 *   NULL: when size
 *     is 0
 *   -EINVAL: else
 * Threads: any.
 * Contract: section 1.
 */
XTAL_API void *first(unsigned long size, int (*slot)(void *arg, int b))
	__attribute__((warn_unused_result));
/**
 * other - does nothing
 *
 * Returns: nothing.
 * Threads: any.
 */
XTAL_API void other(void);
XTAL_INTERNAL_API extern const char *third(const struct s *a, char b[16], ...);
#ifdef __cplusplus
}
#endif
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Reader(Case):
    def test_finds_declarations_only(self):
        found = cheader.functions(self.write("xtal.h", HEADER))
        self.assertEqual([f.name for f in found], ["first", "other", "third"])
        self.assertEqual(found[0].params, ["size", "slot"])
        self.assertEqual(found[1].params, [])
        self.assertEqual(found[2].params, ["a", "b", "..."])
        self.assertEqual(found[2].markers, ["XTAL_INTERNAL_API"])
        self.assertEqual(found[2].text, "const char *third(const struct s *a, char b[16], ...)")
        self.assertIsNone(found[2].doc)
        self.assertEqual(HEADER.split("\n")[found[1].line - 1], "XTAL_API void other(void);")

    def test_unnamed_parameters(self):
        for text in ("int", "unsigned long", "void *", "struct s", "struct s *", "const char *"):
            self.assertIsNone(cheader.param_name(text), text)

    def test_comments_keep_lines(self):
        text = 'a /* b\n c */ d // e\n"//" f\n'
        blanked = cheader.without_comments(text)
        self.assertEqual(blanked.count("\n"), 3)
        self.assertNotIn("b", blanked)
        self.assertIn("f", blanked)


class Maps(Case):
    def test_core_nodes(self):
        public = self.write("xtal.h", HEADER.replace("XTAL_INTERNAL_API", "XTAL_API"))
        private = self.write("queue.h", HEADER)
        self.assertEqual(mapfile.core_nodes([public, private]),
                         (["first", "other", "third"], ["third"]))


class Manual(Case):
    def run_man(self, text):
        path = self.write("xtal.h", text)
        out = os.path.join(self.folder.name, "man")
        result = subprocess.run([sys.executable, os.path.join(TOOLS, "man.py"), "--out", out,
                                 "--version", "1", "--date", "2026-01-01", path],
                                capture_output=True, text=True, check=False)
        return result, out

    def good(self):
        return HEADER.replace("XTAL_INTERNAL_API extern", "static")

    def test_pages(self):
        result, out = self.run_man(self.good())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(os.listdir(out)), ["first.3", "other.3"])
        with open(os.path.join(out, "first.3"), encoding="utf-8") as file:
            page = file.read()
        for piece in ("\\fBother\\fP(3)", "back\\eslash", "\\&.leading dot", "code \\- line",
                      "void *first(unsigned long size, int (*slot)(void *arg, int b));",
                      ".SH ERRORS", "\\fB\\-EINVAL\\fP", ".SH CONTRACT"):
            self.assertIn(piece, page)

    def test_types(self):
        kinds = ("enum color {\n\tRED,\n};\n"
                 "typedef struct inner_s {\n\tenum color shade; /* its - color */\n} inner;\n"
                 "struct outer {\n\tinner part;\n\tstruct stranger *far;\n};\n"
                 "struct stranger {\n\tint x;\n};\n")
        text = kinds + self.good().replace("int (*slot)(void *arg, int b)", "struct outer *slot")
        result, out = self.run_man(text)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(out, "first.3"), encoding="utf-8") as file:
            page = file.read()
        places = [page.index(".SH TYPES"), page.index("struct outer {"),
                  page.index("typedef struct inner_s {"), page.index("enum color {"),
                  page.index(".SH RETURN VALUE")]
        self.assertEqual(places, sorted(places))
        self.assertIn("/* its \\- color */", page)
        self.assertNotIn("struct stranger {", page)  # behind a pointer only
        with open(os.path.join(out, "other.3"), encoding="utf-8") as file:
            self.assertNotIn("TYPES", file.read())

    def test_mandoc(self):
        try:
            subprocess.run(["mandoc"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except FileNotFoundError:
            self.skipTest("mandoc is not installed")
        _, out = self.run_man(self.good())
        for name in os.listdir(out):
            result = subprocess.run(["mandoc", "-Tlint", "-Wwarning", os.path.join(out, name)],
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_refuses(self):
        for old, new, words in (
                (" * @size: bytes,\n *   at least 1\n", "", "parameter size is not documented"),
                (" * @slot: called\n", " * @slot: called\n * @x: y\n", "no parameter x"),
                (" * Returns: a pointer.\n", "", "section Returns is missing"),
                (" * Threads: any.\n */\nXTAL_API void other", " */\nXTAL_API void other",
                 "section Threads is missing"),
                ("/**\n * other - does nothing", "/*\n * other - does nothing", "no /** block"),
                (" * other - does", " * another - does", "must start with"),
                ("void other(void)", "void other(int)", "a parameter has no name")):
            text = self.good()
            self.assertIn(old, text)
            result, out = self.run_man(text.replace(old, new))
            self.assertEqual(result.returncode, 1, words)
            self.assertIn(words, result.stderr)
            self.assertFalse(os.path.exists(out))


class Summary(Case):
    def totals(self, testcases, expected=None):
        self.write("dev.xml", '<?xml version="1.0"?>\n<testsuite>%s</testsuite>' % testcases)
        self.write("dev.expected", str(expected if expected is not None
                                       else testcases.count("<testcase")))
        totals = summary.Totals()
        summary.add_build(totals, self.folder.name, "dev")
        return totals

    def case(self, status, output="", inner=""):
        return '<testcase name="t" status="%s">%s<system-out>%s</system-out></testcase>' % (
            status, inner, output)

    def test_counts(self):
        totals = self.totals(
            self.case("run") + self.case("run", "[       OK ] a\n[       OK ] b\n"
                                                "SKIP: no ptrace\n[  SKIPPED ] c\n"
                                                "[  PASSED  ] 2 test(s).\n"
                                                "[  SKIPPED ] 1 test(s), listed below:\n"
                                                "[  SKIPPED ] c\n")
            + self.case("fail", "[       OK ] a\n[  FAILED  ] b\n[  FAILED  ] b\n",
                        '<failure message="Failed"/>'))
        self.assertEqual(totals.passed, 4)
        self.assertEqual(len(totals.failures), 1)
        self.assertEqual(totals.skips, ["dev t c: no ptrace"])

    def test_crash_is_a_failure(self):
        totals = self.totals(self.case("fail", "boom", '<failure message="SEGFAULT"/>'))
        self.assertEqual((totals.passed, len(totals.failures)), (0, 1))

    def test_lying_exit_status(self):
        totals = self.totals(self.case("run", "[  FAILED  ] a\n"))
        self.assertEqual((totals.passed, len(totals.failures)), (0, 1))

    def test_skip_and_missing_program(self):
        totals = self.totals(
            self.case("notrun", "x\nSKIP: old kernel\n",
                      '<skipped message="SKIP_RETURN_CODE=77"/>')
            + self.case("notrun", "", '<skipped message="Unable to find executable"/>'))
        self.assertEqual(totals.skips, ["dev t: old kernel"])
        self.assertEqual(len(totals.failures), 1)

    def test_not_all_run(self):
        self.assertEqual(len(self.totals(self.case("run"), 3).failures), 2)

    def test_garbage(self):
        totals = self.totals("<testcase")
        self.assertEqual(len(totals.failures), 1)
        totals = self.totals(self.case("run", "\x01\x1b[0m"))
        self.assertEqual(totals.passed, 1)

    def test_builds(self):
        self.write("tsan.skip", "no room\n")
        self.write("asan.broken", "did not compile\n")
        self.write("dev.expected", "1")
        result = subprocess.run([sys.executable, os.path.join(TOOLS, "ci", "summary.py"),
                                 self.folder.name], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout.split("\n")[-2], "0 passed, 2 failed, 1 skipped")
        self.assertIn("tsan build: no room", result.stdout)


if __name__ == "__main__":
    unittest.main()
