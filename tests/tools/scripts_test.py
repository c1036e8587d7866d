#!/usr/bin/env python3
"""The scripts in tools/: how they count, how they end, what they say to a wrong call.

Example: tests/tools/scripts_test.py Interruption
"""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUMMARY = os.path.join(ROOT, "tools", "lib", "summary.py")
JUNIT = """<testsuite>
  <testcase name="A.Passes" status="run"><system-out>all is well</system-out></testcase>
  <testcase name="A.Breaks" status="fail"><failure message=""/><system-out>begin
it broke
</system-out></testcase>
  <testcase name="A.SkipsItself" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
  <testcase name="A_NOT_BUILT" status="notrun"><skipped message="Unable to find executable"/></testcase>
</testsuite>
"""


def summarise(steps, junit=None):
    """Returns (exit status, what summary.py printed)."""
    with tempfile.TemporaryDirectory(prefix="weir-summary-") as folder:
        with open(os.path.join(folder, "steps.tsv"), "w", encoding="utf-8") as out:
            out.write("".join("\t".join(step) + "\n" for step in steps))
        if junit:
            for name, text in (("junit-fast.xml", junit), ("junit-fast.command", "ctest --test-dir there")):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                    out.write(text)
        done = subprocess.run([sys.executable, SUMMARY, folder], capture_output=True, text=True)
    return done.returncode, done.stdout


class Summary(unittest.TestCase):
    def test_all_passed_is_said_in_the_last_line(self):
        status, text = summarise([("check format", "0", "tools/checks/format")])
        self.assertEqual((status, text.splitlines()[-1]), (0, "1 passed, 0 failed"))

    def test_steps_and_tests_are_counted_together(self):
        status, text = summarise([("check format", "1", "tools/checks/format"), ("build", "0", "tools/build")], JUNIT)
        self.assertEqual((status, text.splitlines()[-1]), (1, "2 passed, 3 failed, 1 skipped"))

    def test_each_failure_names_the_command_that_repeats_it(self):
        _, text = summarise([("check format", "1", "tools/checks/format")], JUNIT)
        self.assertIn("check format\n      tools/checks/format\n", text)
        self.assertIn("A.Breaks\n      ctest --test-dir there -R '^A.Breaks$'\n", text)
        self.assertNotIn("A.Passes", text)

    def test_the_end_of_what_a_failure_printed_is_shown(self):
        _, text = summarise([], JUNIT)
        self.assertIn("'^A.Breaks$'\n        | begin\n        | it broke\n", text)
        self.assertNotIn("all is well", text)


class WrongCalls(unittest.TestCase):
    def run_tool(self, name, *arguments):
        return subprocess.run([os.path.join(ROOT, "tools", name), *arguments], capture_output=True, text=True, timeout=20)

    def test_help_is_given_on_stdout_with_an_example(self):
        for name in ("build", "test", "quickstart"):
            done = self.run_tool(name, "--help")
            self.assertEqual(done.returncode, 0, name)
            self.assertIn("Example: tools/" + name, done.stdout)

    def test_unknown_words_end_with_status_2_and_point_to_help(self):
        for name in ("build", "test", "quickstart"):
            done = self.run_tool(name, "--colour")
            self.assertEqual((done.returncode, done.stdout), (2, ""), name)
            self.assertIn("'--colour'", done.stderr)
            self.assertIn("--help", done.stderr)

    def test_values_out_of_range_are_refused(self):
        self.assertEqual(self.run_tool("build", "--jobs", "none").returncode, 2)
        self.assertEqual(self.run_tool("test", "--label", "quick").returncode, 2)
        self.assertEqual(self.run_tool("test", "--preset").returncode, 2)


class Interruption(unittest.TestCase):
    """A script that sources common.sh ends its child's whole group and runs its cleanups, whoever stops it."""

    SCRIPT = """
set -u
source "$1/tools/lib/common.sh"
cleaned() { echo cleaned; }
at_exit cleaned
run_child bash -c 'sleep 1000 & echo "grandchild $!"; wait'
echo "not reached"
"""

    def interrupted_by(self, signum):
        script = subprocess.Popen(["bash", "-c", self.SCRIPT, "script", ROOT], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        grandchild = int(script.stdout.readline().split()[1])
        script.send_signal(signum)
        rest, _ = script.communicate(timeout=20)
        return script.returncode, rest, grandchild

    def test_children_end_and_cleanups_run(self):
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            status, rest, grandchild = self.interrupted_by(signum)
            self.assertEqual((status, rest), (128 + signum, "cleaned\n"))
            with self.assertRaises(ProcessLookupError):
                os.kill(grandchild, 0)

    def test_a_script_that_ends_by_itself_cleans_up_too(self):
        script = 'source "$1/tools/lib/common.sh"; at_exit "echo second"; at_exit "echo first"; run_child false || exit 7'
        done = subprocess.run(["bash", "-c", script, "script", ROOT], capture_output=True, text=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (7, "first\nsecond\n"))


if __name__ == "__main__":
    unittest.main()
