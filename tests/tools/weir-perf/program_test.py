#!/usr/bin/python3
"""Runs weir-perf as an operator would, right and wrong. Usage: program_test.py PATH"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def answers(*argv):
    """Whether the command can be run, and ends well."""
    return subprocess.run([*argv, *([] if argv[-1] == "true" else ["true"])], capture_output=True, timeout=60).returncode == 0


class WeirPerf(unittest.TestCase):
    def test_pair_here_as_json(self):
        code, out, error = run("pair", "--sizes=1,64K", "--seconds=0.02", "--output=json")
        self.assertEqual((code, error), (0, ""))
        results = json.loads(out)
        self.assertEqual([one["size"] for one in results], [1, 65536])
        for one in results:
            for key in ("bits_per_second", "messages_per_second", "latency_p50_us", "latency_p99_us"):
                self.assertGreater(one[key], 0, key)

    def test_soak_and_pacing_here(self):
        code, out, _ = run("soak", "--gb=0.01", "--seed=4", "--output=json")
        self.assertEqual(code, 0)
        self.assertGreaterEqual(json.loads(out)[0]["bytes_received"], 10_000_000)
        code, out, _ = run("pacing", "--rates=20M")
        self.assertEqual(code, 0)
        self.assertIn("20.0", out)

    def test_coflows_here(self):
        code, out, _ = run("coflows", "--coflows=2x7/10M,0@0.1-0.2", "--seconds=0.3", "--step_ms=100", "--output=json")
        self.assertEqual(code, 0)
        rows = json.loads(out)
        self.assertEqual([row["from_s"] for row in rows], [0, 0.1, 0.2])
        # It begins at 0.1 s by the sender's clock, so its first bytes may count for the step before; no more than that.
        sent = [row["entry_2_bits_per_second"] for row in rows]
        self.assertLess(10 * sent[0], sent[1] + sent[2])
        self.assertGreater(sum(row["entry_1_bits_per_second"] for row in rows), 0)

    def test_levels_here(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "levels.html")
            code, out, error = run("levels", "--low=2", "--runs=1", f"--html={page}", "--output=json")
            if code == 3 and "quieter host" in error:
                return  # The host let neither end run for 0.3 s, and it said so.
            self.assertEqual(code, 0, error)
            self.assertGreater(json.loads(out)[0]["link_bits_per_second"], 0)
            with open(page, encoding="utf-8") as text:
                self.assertIn("the high one", text.read())

    def test_between_two_processes(self):
        server = subprocess.Popen([PROGRAM, "serve", "--bind=127.0.0.1", "--port=0", "--once", "--interfaces==lo"],
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        address = server.stderr.readline().split("serving on ")[1].split(",")[0]
        code, out, _ = run("pair", "--server", address, "--sizes=1K", "--seconds=0.02", "--interfaces==lo", "--test=latency")
        self.assertEqual(code, 0)
        self.assertIn("1K", out)
        self.assertEqual(server.wait(timeout=10), 0)

    def faults(self, *flags, before=()):
        """(exit code, {scenario: row}). 1 MB each way is what a scenario needs at least; timings are not judged here."""
        done = subprocess.run([*before, PROGRAM, "faults", "--gb=0.02", "--lasts_ms=100", "--dead_after_ms=1500", "--output=json",
                               *flags], capture_output=True, text=True, timeout=100)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, {row["scenario"]: row for row in json.loads(done.stdout)}

    def test_faults_on_a_link_of_its_own(self):
        code, rows = self.faults()
        self.assertEqual(list(rows), ["kill", "freeze", "cut", "flap", "loss"])
        link = rows["loss"]["outcome"] != "skipped"
        if os.geteuid() == 0 and os.path.exists("/dev/net/tun") and answers("unshare", "-n"):
            self.assertTrue(link, rows["loss"]["message"])
        dead = {"kill", "cut"} if link else {"kill"}
        for name, row in rows.items():
            if row["outcome"] == "skipped":
                self.assertIn(name, ("cut", "flap", "loss"))
                continue
            self.assertEqual(row["outcome"], "peer declared dead" if name in dead else "went on", row)
            self.assertGreater(row["bytes_compared"], 1e6)
            self.assertIn(row["right"], ("yes", "late"), row)
        self.assertEqual(code, 1 if any(row["right"] == "late" for row in rows.values()) else 0)

    def test_faults_without_a_link_says_why_and_does_the_rest(self):
        closed = ("unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$0" "$@"')
        if not answers(*closed, "true"):
            self.skipTest("user namespaces are not allowed here")
        _, rows = self.faults(before=closed)
        self.assertEqual(rows["kill"]["outcome"], "peer declared dead")
        self.assertEqual(rows["freeze"]["outcome"], "went on")
        for name in ("cut", "flap", "loss"):
            self.assertEqual(rows[name]["outcome"], "skipped")
            self.assertIn("cannot make a network namespace", rows[name]["message"])
        named = subprocess.run([*closed, PROGRAM, "faults", "--scenarios=flap"], capture_output=True, text=True, timeout=60)
        self.assertEqual((named.returncode, named.stdout), (1, ""))
        self.assertIn("run as root", named.stderr)

    def test_faults_by_a_program_cut_and_mend_the_link(self):
        with tempfile.TemporaryDirectory() as folder:
            program, told = os.path.join(folder, "link"), os.path.join(folder, "told")
            with open(program, "w", encoding="ascii") as out:
                out.write(f'#!/bin/sh\necho "$*" >>{told}\n')
            os.chmod(program, 0o755)
            flags = ("faults", "--gb=0.01", f"--link_program={program}")
            code, out, error = run(*flags, "--scenarios=flap,loss", "--lasts_ms=20", "--loss_percent=0.5", "--output=csv")
            self.assertEqual(code, 0, error)
            self.assertEqual([row["outcome"] for row in csv.DictReader(out.splitlines())], ["went on"] * 2)
            with open(told, encoding="ascii") as text:
                self.assertEqual(text.read().split("\n"), ["100", "0", "0.5", "0", ""])
            # One that does nothing is found out: the job went on over a link that was to be cut.
            code, out, error = run(*flags, "--scenarios=cut", "--output=csv")
            self.assertEqual(code, 1, error)
            self.assertEqual([row["right"] for row in csv.DictReader(out.splitlines())], ["no"])

    def test_a_program_that_cannot_cut_the_link_is_named(self):
        for program, how in (("/bin/false", "ended with 1"), ("/no/such", "does not start")):
            code, out, error = run("faults", "--gb=0.01", "--scenarios=cut", f"--link_program={program}")
            self.assertEqual((code, out), (3, ""))
            self.assertIn(f'--link_program: "{program} 100" {how}', error)

    def test_faults_that_a_backend_cannot_have_are_refused(self):
        code, out, error = run("faults", "--backend=rdma", "--scenarios=cut")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("cannot be put on the link", error)
        self.assertIn("--link_program", error)

    def test_wrong_usage_says_what_is_allowed(self):
        for arguments in (("pair", "--sizes=5G"), ("pair", "--test=x"), ("pair", "--output=xml"), ("pair", "--backend=pigeon"), ("pair", "--options=x=1"), ("pair", "--options=unsent_kb=-1"), ("pair", "--seconds=0.001"), ("coflows", "--coflows=9"), ("coflows", "--seconds=61"), ("coflows", "--step_ms=0"), ("levels", "--low=0"), ("levels", "--runs=60"), ("pair", "--options=in_kernel_kb=1"),
                          ("pair", "--in_flight=0"), ("pair", "--streams=99"), ("pacing", "--rates=1"), ("soak", "--gb=-1"),
                          ("soak", "--seed=-1"), ("faults", "--scenarios=fire"), ("faults", "--lasts_ms=-1"), ("faults", "--loss_percent=51"), ("faults", "--dead_after_ms=600", "--lasts_ms=600"), ("serve", "--port=99999"), ("pair", "--dead_after_ms=0")):
            code, out, error = run(*arguments)
            self.assertEqual((code, out), (2, ""), arguments)
            self.assertIn("allowed: ", error, arguments)
        for arguments in ((), ("dance",), ("pair", "soak")):
            code, _, error = run(*arguments)
            self.assertEqual(code, 2)
            self.assertIn("expected one command", error)

    def test_nobody_there_is_said(self):
        code, _, error = run("pair", "--server=127.0.0.1:1")
        self.assertEqual(code, 3)
        self.assertIn("cannot connect to 127.0.0.1:1", error)

    def test_doctor_says_what_this_host_can_use(self):
        code, out, error = run("doctor")
        self.assertEqual((code, error), (0, ""))
        self.assertIn("tcp: usable", out)
        found = {one["backend"]: one["usable"] for one in json.loads(run("doctor", "--output=json")[1])}
        self.assertEqual(found["tcp"], "yes")
        code, out, _ = run("doctor", "--interfaces==no-such-card")
        self.assertIn("no-such-card", out)

    def test_a_page_is_written_where_it_can_be(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "report.html")
            code, out, _ = run("pair", "--sizes=1K", "--seconds=0.02", "--output=csv", f"--html={page}")
            self.assertEqual(code, 0)
            self.assertEqual(list(csv.DictReader(out.splitlines()))[0]["size"], "1024")
            with open(page, encoding="utf-8") as text:
                self.assertIn("<svg", text.read())
            code, _, error = run("pair", "--sizes=1K", "--seconds=0.02", f"--html={folder}/none/report.html")
            self.assertEqual(code, 2)
            self.assertIn("cannot write", error)

    def test_help_has_an_example(self):
        self.assertIn("Example:", run("--help")[1])


if __name__ == "__main__":
    unittest.main()
