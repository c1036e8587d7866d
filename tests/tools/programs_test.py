#!/usr/bin/env python3
"""What every program for people owes them: help that is theirs alone, and wrong calls told apart by their exit status.

Usage: programs_test.py PROGRAM...
"""
import os
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]


def call(program, *arguments):
    return subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)


class Programs(unittest.TestCase):
    def each(self):
        self.assertTrue(PROGRAMS)
        for program in PROGRAMS:
            with self.subTest(os.path.basename(program)):
                yield program, os.path.basename(program)

    def test_help_is_on_stdout_has_an_example_and_lists_only_our_flags(self):
        for program, name in self.each():
            done = call(program, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith(name + ": "))
            self.assertIn("Example", done.stdout)
            self.assertIn("\nFlags:\n  --", done.stdout)
            self.assertNotIn("flagfile", done.stdout)
            self.assertNotIn(".cc", done.stdout)

    def test_unknown_flags_and_wrong_values_end_with_status_2(self):
        for program, name in self.each():
            for wrong in ("--colour", "--help=perhaps"):
                done = call(program, wrong)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(f"Try {name} --help.", done.stderr)
                self.assertIn(wrong.strip("-").split("=")[0], done.stderr)

    def test_flags_may_be_written_with_dashes(self):
        for program, _ in self.each():
            for line in call(program, "--help").stdout.split("\nFlags:\n")[1].splitlines():
                self.assertNotIn("_", line.split()[0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
