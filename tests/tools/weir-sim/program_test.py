#!/usr/bin/python3
"""Runs weir-sim as a person would, right and wrong. Usage: program_test.py PATH"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

PROGRAM = os.path.abspath(sys.argv.pop(1))
TRACE = "3 3\n1 0 1 0 1 1:4.0\n2 5 2 0 2 1 1:2.0\n3 9 1 1 2 0:1.0 2:1.0\n"
HEADER = '{"weir_trace":1,"ports":3}\n'


def run(*arguments, cwd=None):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


class WeirSim(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = self.file("trace.txt", TRACE)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", newline="") as out:
            out.write(text)
        return path

    def test_compare_as_json_csv_and_table(self):
        code, out, error = run("compare", f"--trace={self.trace}", "--policies=sebf,order=dclas factor=2", "--output=json")
        self.assertEqual((code, error), (0, ""))
        results = json.loads(out)["results"]
        self.assertEqual([one["policy"] for one in results], ["sebf", "order=dclas factor=2"])
        for one in results:
            self.assertLessEqual(one["bound"], one["cct"]["mean"])
            self.assertLessEqual(one["cct"]["p50"], one["cct"]["p95"])
            self.assertLessEqual(one["cct"]["p99"], one["cct"]["max"])
            self.assertGreaterEqual(one["slowdown"]["mean"], 1)
            self.assertTrue(0 < one["utilisation"] <= 1 and 0 < one["jain"] <= 1, one)
        code, out, _ = run("compare", "--trace", self.trace, "--policies", "sebf", "--output", "csv")
        self.assertEqual((code, len(out.splitlines())), (0, 2))
        self.assertEqual(out.splitlines()[0].split(",")[-3:], ["wall_seconds", "events", "events_per_second"])
        self.assertEqual(len(out.splitlines()[0].split(",")), len(out.splitlines()[1].split(",")))
        table = run("compare", "--trace", self.trace, "--policies", "sebf,order=sebf rate=madd backfill=on", "--port_mib=0.0001")[1]
        self.assertIn("mean CCT", table)
        self.assertLessEqual(max(len(line) for line in table.splitlines()), 120, table)
        self.assertTrue(all(one["events_per_second"] > 0 for one in results))

    def test_run_writes_every_completion_time(self):
        path = os.path.join(self.folder, "ccts.csv")
        self.assertEqual(run("run", "--trace", self.trace, "--policy=sebf", "--cct-csv", path)[0], 0)
        with open(path) as lines:
            rows = lines.read().splitlines()
        self.assertEqual(rows[0], "coflow_id,cct")
        self.assertEqual([row.split(",")[0] for row in rows[1:]], ["1", "2", "3"])
        self.assertAlmostEqual(float(rows[2].split(",")[1]), 15.625)  # 2 MiB at 128 MiB/s, before the larger one

    def test_explain_names_who_was_waited_for_and_where(self):
        arguments = ("explain", "--trace", self.trace, "--policy=order=fifo rate=maxmin", "--coflow=2")
        code, out, error = run(*arguments, "--output=json")
        self.assertEqual((code, error), (0, ""))
        explained = json.loads(out)
        last = explained["links"][0]
        self.assertEqual((last["link"], explained["bottleneck"], explained["after"]), ("down1", "down1", []))
        self.assertEqual(last["blockers"], [{"coflow": 1, "time": 26.25}])  # 4 MiB at 128 MiB/s, 5 ms of them before it came
        self.assertAlmostEqual(last["served"] + last["blocked"] + last["unused"], explained["cct"], delta=0.002)
        self.assertAlmostEqual(last["ideal"], explained["isolation"], delta=0.001)
        lines = run(*arguments, "--output=csv")[1].splitlines()
        self.assertEqual(lines[0], "link,what,coflow,time")
        self.assertIn("down1,blocked,1,26.250", lines)
        self.assertIn("waited for 1", run(*arguments)[1])

    def test_the_report_is_one_page_that_needs_nothing_else(self):
        page = os.path.join(self.folder, "page.html")
        many = os.path.join(self.folder, "many.jsonl")
        self.assertEqual(run("generate", "--coflows=400", "--ports=20", "--span_s=60", "--out", many)[0], 0)
        empty = self.file("empty.jsonl", HEADER)
        for trace, policies in ((self.trace, ["sebf", "order=fifo rate=maxmin"]), (many, ["fifo"] * 10), (empty, ["ls"])):
            code, _, error = run("compare", "--trace", trace, "--policies", ",".join(policies), "--report", page)
            self.assertEqual((code, error), (0, ""))
            with open(page) as text:
                html = text.read()
            for elsewhere in ("http", "<script", "src=", "@import", "nan", "inf<"):
                self.assertNotIn(elsewhere, html)
            self.assertLess(len(html), 2_000_000)
            pictures = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", html, re.S)]
            self.assertEqual(len(pictures), 2 + 2 * len(policies))
            self.assertTrue(all(len(picture) > 0 for picture in pictures))
            rows = sum(len(timeline.findall("g")) for timeline in pictures[-len(policies):])
            shown = {self.trace: 3, many: 100, empty: 0}[trace]
            self.assertEqual(rows, shown * len(policies))
        self.assertEqual(os.listdir(self.folder).count("page.html"), 1)
        self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".tmp")])

    def test_a_failed_write_leaves_the_old_file(self):
        path = self.file("kept.jsonl", "kept")
        uneven = self.file("uneven.jsonl", HEADER + '{"id":1,"after":[],"weight":2,"flows":[[0,1,8]]}\n')
        self.assertEqual(run("convert", "--trace", uneven, "--format=facebook", "--out", path)[0], 4)
        with open(path) as text:
            self.assertEqual(text.read(), "kept")
        self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".tmp")])

    def test_progress_and_a_clean_stop(self):
        many = os.path.join(self.folder, "many.jsonl")
        self.assertEqual(run("generate", "--coflows=5000", "--ports=40", "--span_s=60", "--load=3", "--out", many)[0], 0)
        page = self.file("page.html", "old")
        for stop, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            with subprocess.Popen([PROGRAM, "run", "--trace", many, "--policy=rate=fair", "--progress=on", "--report", page],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
                first = ""
                while "coflows" not in first:  # the bar is there, so the simulation runs
                    one = program.stderr.read(1)
                    self.assertTrue(one, first)
                    first += one
                program.send_signal(stop)
                out, error = program.communicate(timeout=60)
            self.assertEqual((program.returncode, out), (code, ""), error)
            self.assertIn("% of 5000 coflows", first + error)
            self.assertIn(f"weir-sim: stopped by {stop.name} in rate=fair", error)
        with open(page) as text:
            self.assertEqual(text.read(), "old")
        self.assertFalse([name for name in os.listdir(self.folder) if name.endswith(".tmp")])

    def test_inner_links_slow_down_what_crosses_them(self):
        topology = self.file("two.toml", "".join(f'[[site]]\nname="{site}"\n' for site in "ab") + "".join(
            f'[[host]]\nname="h{i}"\nsite="{site}"\naddresses=["10.0.0.{i + 1}"]\nnic="128 MiB/s"\n'
            for i, site in enumerate("aab")) + "".join(
                f'[[link]]\nname="{a}{b}"\nfrom="{a}"\nto="{b}"\ncapacity="64 MiB/s"\n' for a, b in ("ab", "ba")))
        trace = self.file("cross.jsonl", HEADER + '{"id":1,"flows":[[0,2,16777216]]}\n')
        for fabric, cct in ((("--fabric=big-switch",), 125), (("--fabric=leaf-spine", "--leaves=3", "--oversubscription=4"), 500),
                            (("--fabric", topology), 250 / 0.95), (("--fabric", topology, "--capacity_changes=0 ab 0.5"), 500 / 0.95)):
            code, out, error = run("run", "--trace", trace, "--policy=rate=maxmin", "--output=json", *fabric)
            self.assertEqual((code, error), (0, ""), fabric)
            self.assertAlmostEqual(json.loads(out)["results"][0]["cct"]["mean"], cct, places=2)
        code, out, _ = run("explain", "--trace", trace, "--policy=rate=maxmin", "--coflow=1", "--fabric", topology)
        self.assertEqual(code, 0)
        self.assertIn("bottleneck on an empty fabric: ab", out)

    def test_convert_reads_back_the_same(self):
        there, back = (os.path.join(self.folder, name) for name in ("there.jsonl", "back.txt"))
        self.assertEqual(run("convert", "--trace", self.trace, "--out", there)[0], 0)
        self.assertEqual(run("convert", "--trace", there, "--format=facebook", "--out", back)[0], 0)
        with open(back) as text:
            self.assertEqual(text.read(), TRACE)

    def test_what_is_generated_can_be_run(self):
        for pattern in ("facebook", "ring", "tree", "all-to-all", "ps", "pipeline"):
            path, again = (os.path.join(self.folder, name) for name in ("generated", "again"))
            for out in (path, again):
                code, said, error = run("generate", "--pattern", pattern, "--seed=7", "--ports=20", "--coflows=30", "--jobs=3",
                                        "--ranks=4", "--out", out)
                self.assertEqual((code, said, error), (0, "", ""), pattern)
            with open(path) as first, open(again) as second:
                self.assertEqual(first.read(), second.read(), pattern)
            self.assertEqual(run("compare", "--trace", path, "--policies=sebf,fifo")[0], 0, pattern)

    def test_windows_line_ends_read_the_same(self):
        windows = self.file("windows.txt", TRACE.replace("\n", "\r\n"))
        times = [[one["cct"] for one in json.loads(run("compare", "--trace", path, "--output=json")[1])["results"]]
                 for path in (self.trace, windows)]
        self.assertEqual(times[0], times[1])

    def test_compatible_mode_counts_in_steps_of_coflowsim(self):
        path = os.path.join(self.folder, "ccts.csv")
        code, out, error = run("run", "--trace", self.trace, "--compat=coflowsim", "--policy", "SEBF", "--cct-csv", path,
                               "--output=json")
        self.assertEqual((code, error), (0, ""))
        result = json.loads(out)["results"][0]
        self.assertEqual((json.loads(out)["unit"], result["policy"]), ("sim-ms", "SEBF"))
        self.assertLessEqual(result["bound"], result["cct"]["mean"])
        self.assertTrue({"wall_seconds", "events"} <= result.keys())
        with open(path) as lines:
            self.assertEqual(lines.read(), "coflow_id,cct\n1,48\n2,16\n3,16\n")
        code, out, _ = run("compare", "--trace", self.trace, "--compat", "coflowsim", "--compat-arrivals=exact", "--output=json")
        self.assertEqual((code, [one["policy"] for one in json.loads(out)["results"]]),
                         (0, ["FAIR", "PFP", "FIFO", "SCF", "NCF", "LCF", "SEBF", "DARK"]))
        code, out, _ = run("run", "--trace", self.trace, "--compat=coflowsim", "--policy=fifo", "--deadline_factor=0",
                           "--output=json")
        deadlines = json.loads(out)["results"][0]["deadlines"]
        self.assertEqual((code, deadlines), (0, {"set": 3, "admitted": 2, "admitted_late": 0, "met": 2}))

    def test_jobs_between_sites(self):
        path = self.file("jobs.txt", "# one\n2 1 0\nA 1 HK\nB 1 LA\n1\nA B 128\n")
        code, out, error = run("run", "--trace", path, "--output=json")
        self.assertEqual((code, error), (0, ""))
        self.assertEqual(json.loads(out)["results"][0]["cct"]["mean"], 1000)
        code, _, error = run("convert", "--trace", path, "--format=terra", "--out", os.path.join(self.folder, "out"))
        self.assertEqual(code, 4)
        self.assertIn("for reading", error)

    def test_the_problem_of_coflowsim_for_other_policies(self):
        path = os.path.join(self.folder, "problem.jsonl")
        code, _, error = run("convert", "--trace", self.trace, "--compat=coflowsim", "--deadline_factor=0", "--out", path)
        self.assertEqual((code, error), (0, ""))
        code, out, _ = run("run", "--trace", path, "--units=coflowsim", "--policy=edf admission=on", "--output=json")
        deadlines = json.loads(out)["results"][0]["deadlines"]
        self.assertEqual((code, deadlines["set"], deadlines["admitted_late"]), (0, 3, 0))

    def test_bad_traces_each_have_a_message(self):
        one_flow = '{"id":1,"flows":[[0,1,%s]]}\n'
        cases = (("2 1\n1 0 1 0 1 1:nan\n", ':2: field 6 (megabytes): found "nan"'),
                 ("2 1\n1 0 1 0 1 1:-1\n", 'found "-1", allowed: a number above 0'),
                 ("2 1\n1 0 1 0 1 1:0\n", 'found "0", allowed: a number above 0'),
                 ("2 1\n1 0 1 0 1 1:1e18\n", 'found "1e18", allowed'),
                 ("2 1\n1 0 1 2 1 1:1\n", "mapper port"),
                 ("2 1\n1 0 1 0 1 2:1\n", "reducer port"),
                 ("2 2\n1 0 1 0 1 1:1\n2 0 1 0 0\n", "field 5 (reducers)"),
                 ("2 2\n1 0 1 0 1 1:1\n1 0 1 0 1 1:1\n", "occurs twice"),
                 ("2 2\n1 0 1 0 1 1:1\n", "it is cut short"),
                 ("2 1\n1 0 1 0 1 1:", "megabytes"),
                 ("", "the file is empty"),
                 ("<html>\n", "not a trace"),
                 (HEADER + one_flow % "1000000000000000000", "flows: bytes"),
                 (HEADER + one_flow % "-1", "flows: bytes"),
                 (HEADER + one_flow % "NaN", "not a JSON object"),
                 (HEADER + '{"id":1,"flows":[]}\n', "coflow 1 has no flows"),
                 (HEADER + '{"id":1,"flows":[[0,3,1]]}\n', "destination port"),
                 (HEADER + '{"id":1,"flo', "cut short"),
                 (HEADER + '{"id":1,"after":[2],"flows":[[0,1,1]]}\n{"id":2,"after":[1],"flows":[[0,1,1]]}\n', "cycle"),
                 (HEADER + '{"id":1,"after":[9],"flows":[[0,1,1]]}\n', "coflow 9, which is not in the trace"))
        for text, message in cases:
            path = self.file("bad", text)
            code, out, error = run("compare", "--trace", path)
            self.assertEqual((code, out), (3, ""), (text, error))
            self.assertTrue(error.startswith(f"weir-sim: {path}:"), error)
            self.assertIn(message, error, text)

    def test_wrong_usage_says_what_is_allowed(self):
        trace = f"--trace={self.trace}"
        for arguments in (("compare", trace, "--colour=red"), ("policies", trace), ("compare", trace, "--levels=many"),
                          ("compare", trace, "extra"), ("run", "--trace"), ("compare", trace, "--levels=-1"),
                          ("compare", trace, "--port_mib=nan"), ("compare", trace, "--delay_ms=-1"),
                          ("compare", trace, "--output=xml"), ("compare", trace, "--units=s"), ("policies", "--output=xml"),
                          ("compare", trace, "--skew_sigma=-1"), ("compare", trace, "--batch_ms=inf"),
                          ("generate", "--pattern=star"), ("generate", "--load=nan"), ("generate", "--ports=1"),
                          ("generate", "--pattern=ring", "--ranks=999"), ("generate", "--span_s=-1"),
                          ("generate", "--pattern=ring", "--period_s=nan"), ("generate", "--jobs=-1"),
                          ("run", trace, "--compat=ns3"), ("run", trace, "--compat=coflowsim", "--policy=ls"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--compat_arrivals=late"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--deadline_factor=1"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--compat_zero_bps=0"),
                          ("convert", trace, "--compat=coflowsim", "--deadline_factor=-3"),
                          ("run", trace, "--compat=coflowsim", "--policy=FIFO", "--deadline_factor=-2"),
                          ("compare", trace, "--compat=coflowsim", "--policies=FIFO,FIFO", "--deadline_factor=1"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--levels=8"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--port_mib=64"),
                          ("run", trace, "--progress=maybe"),
                          ("explain", trace), ("explain", trace, "--coflow=x"), ("explain", trace, "--coflow=4"),
                          ("run", trace, "--fabric=ring"), ("run", trace, "--leaves=2"),
                          ("run", trace, "--fabric=leaf-spine", "--leaves=4"), ("run", trace, "--fabric=leaf-spine", "--spines=0"),
                          ("run", trace, "--fabric=leaf-spine", "--oversubscription=nan"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--fabric=leaf-spine"),
                          ("run", trace, "--compat=coflowsim", "--policy=SEBF", "--report=/dev/null"),
                          ("run", trace, "--fabric=leaf-spine", "--policy=rate=maxmin", "--capacity_changes=0 leaf9:spine0:up 1"),
                          ("convert", trace, "--format=pdf"), ("run", trace, "--policy=fastest"), ("dance",), ()):
            code, out, error = run(*arguments)
            self.assertEqual((code, out), (2, ""), (arguments, error))
            self.assertIn("allowed", error, arguments)
        code, _, error = run("run")
        self.assertEqual(code, 2)
        self.assertIn("--trace is missing", error)

    def test_files_that_cannot_be_opened(self):
        nowhere = os.path.join(self.folder, "none", "x")
        for arguments in (("run", "--trace", nowhere), ("run", "--trace", self.trace, "--fabric", nowhere + ".toml"), ("run", "--trace", self.trace, "--cct_csv", nowhere),
                          ("run", "--trace", self.trace, "--report", nowhere),
                          ("run", "--trace", self.trace, "--compat=coflowsim", "--policy=FAIR", "--cct_csv", nowhere),
                          ("convert", "--trace", self.trace, "--out", nowhere)):
            code, _, error = run(*arguments)
            self.assertEqual(code, 1, arguments)
            self.assertIn(nowhere, error)
        code, _, error = run("convert", "--trace", self.trace, "--out", "/dev/full")
        self.assertEqual(code, 1)
        self.assertIn("/dev/full", error)

    def test_what_a_policy_or_a_format_cannot_do(self):
        path = self.file("unknown.jsonl", HEADER + '{"id":1,"size_known":false,"flows":[[0,1,8]]}\n')
        for arguments in (("run", "--policy=sebf"), ("run", "--compat=coflowsim", "--policy=DARK"), ("convert", "--format=facebook", "--out=/dev/null")):
            code, _, error = run(*arguments, "--trace", path)
            self.assertEqual(code, 4, arguments)
            self.assertIn("coflow 1", error)
        code, _, error = run("run", "--trace", self.trace, "--fabric=leaf-spine")
        self.assertEqual(code, 4)
        self.assertIn("order=ls rate=maxmin", error)

    def test_the_examples_of_the_help_work(self):
        self.file("FB2010-1Hr-150-0.txt", TRACE)
        for command in ("run", "compare", "explain", "convert", "generate", "policies"):
            code, out, _ = run("help", command)
            self.assertEqual((code, out), (0, run(command, "--help")[1]))
            examples = [shlex.split(line)[1:] for line in out.split("Example:\n")[1].splitlines() if line]
            self.assertTrue(examples, command)
            for example in examples:
                self.assertEqual(run(*example, cwd=self.folder)[0], 0, example)
            self.assertIn(command, run("--help")[1])
        self.assertEqual(run("help", "dance")[0], 2)


if __name__ == "__main__":
    unittest.main()
