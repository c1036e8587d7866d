#!/usr/bin/python3
"""tests/nccl_real/run without a GPU: a driver, a CUDA and an NCCL that stand for real ones take it through its paths.

Example: run_test.py --build build/release
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
STUB = os.path.join(HERE, "stub")
BUILD = ""


class Run(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="weir-nccl-real-"))
        cls.programs, cls.toolkit = os.path.join(folder, "bin"), os.path.join(folder, "toolkit")
        os.makedirs(os.path.join(cls.toolkit, "lib"))
        os.mkdir(cls.programs)
        os.symlink(STUB, os.path.join(cls.toolkit, "include"))
        smi = os.path.join(cls.programs, "nvidia-smi")
        with open(smi, "w", encoding="ascii") as file:
            file.write('#!/bin/sh\necho "GPU 0: Stub (UUID: GPU-0)"\n')
        os.chmod(smi, 0o755)
        for library, source in (("libnccl.so.2", os.path.join(STUB, "nccl_stub.cc")), ("libcudart.so.13", "/dev/null")):
            subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-x", "c++", source, "-o", os.path.join(cls.toolkit, "lib", library)],
                           check=True, timeout=60)

    def run_it(self, *flags, mode=""):
        """(exit code, the report of the stub, all that was said)"""
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", "CUDA_HOME": self.toolkit, "STUB_OF_NCCL": mode,
                       "NCCL_NET_PLUGIN": "none", "WEIR_DISABLE": "1",
                       # A plugin that is built with it brings its runtime late.
                       "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        # Of NCCLs that are installed here the reports are not looked at: they find no GPU.
        done = subprocess.run([os.path.join(HERE, "run"), "--build", BUILD, "--json", "--bytes_max=100000", "--patience=5",
                               f"--nccl={self.toolkit}", *flags], env=environment, capture_output=True, text=True, check=False, timeout=100)
        report = json.loads(done.stdout)["results"][0] if done.stdout.startswith("{") else None
        return done.returncode, report, done.stdout + done.stderr

    def test_what_is_right_passes_whatever_the_environment_says(self):
        _, report, said = self.run_it()
        self.assertTrue(report["passed"], said)
        self.assertEqual((report["nccl"], report["network"], report["exit_codes"]), ("2.99.2", "Weir", [0, 0]))
        self.assertGreaterEqual(report["right"], 5 * 5)

    def test_wrong_numbers_fail(self):
        code, report, said = self.run_it(mode="wrong")
        self.assertEqual((code, report["passed"], report["exit_codes"]), (1, False, [1, 1]), said)
        self.assertIn("differs", report["output"][0])

    def test_what_hangs_is_ended(self):
        code, report, said = self.run_it(mode="hang")
        self.assertEqual((code, report["exit_codes"]), (1, [-9, -9]), said)
        self.assertIn("ended after 5 s", report["output"][0])

    def test_a_rank_that_fails_ends_the_other(self):
        code, report, said = self.run_it(mode="fail")
        self.assertEqual((code, report["exit_codes"]), (1, [-9, 1]), said)
        self.assertIn("an error of the stub", report["output"][1])

    def test_what_is_given_and_not_there_is_said(self):
        code, _, said = self.run_it("--nccl=/nonexistent")
        self.assertEqual(code, 1)
        self.assertIn("--nccl /nonexistent: include/nccl.h or libnccl.so.2 is not there", said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    args, rest = parser.parse_known_args()
    BUILD = args.build
    unittest.main(argv=[sys.argv[0], *rest])
