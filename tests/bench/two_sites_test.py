#!/usr/bin/python3
"""The arithmetic of the two-sites experiment: bounds, periods, slowdowns, mix files. Needs nothing but Python."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from two_sites import analysis, bound, machine, mixes, report, table  # noqa: E402
from two_sites.errors import ExperimentError, UsageError  # noqa: E402

PAYLOAD_RATE = 12.5e6 * 1448 / 1514


def loads(*jobs):
    """(MB an iteration, period alone in ms) -> share of a 100 Mbit/s link."""
    return [mb * 1e6 / PAYLOAD_RATE / (ms / 1e3) for mb, ms in jobs]


def best_mean(link_loads):
    return sum(bound.best_slowdowns(link_loads)) / len(link_loads)


class BoundTest(unittest.TestCase):
    def test_jobs_that_fit_are_not_slowed(self):
        self.assertEqual(bound.best_slowdowns([0.4, 0.6]), [1.0, 1.0])
        self.assertEqual(bound.equal_slowdown([0.4, 0.6]), 1.0)

    def test_equal_jobs_have_one_bound(self):
        three = loads(*[(4, 924)] * 3)
        self.assertAlmostEqual(bound.equal_slowdown(three), 1.087, delta=0.002)
        self.assertAlmostEqual(best_mean(three), 1.087, delta=0.002)

    def test_unequal_jobs_do_better_unequally(self):
        skewed = loads((0.5, 106), (40, 3534))
        self.assertAlmostEqual(bound.equal_slowdown(skewed), 1.342, delta=0.002)
        self.assertAlmostEqual(best_mean(skewed), 1.282, delta=0.002)
        self.assertAlmostEqual(best_mean(loads((4, 625), (20, 1931))), 1.382, delta=0.002)

    def test_a_job_below_one_is_clamped_and_the_link_is_still_full(self):
        sizes = loads((1, 390), (4, 823), (12, 1519))
        slowdowns = bound.best_slowdowns(sizes)
        self.assertAlmostEqual(best_mean(sizes), 1.227, delta=0.002)
        self.assertEqual(slowdowns[0], 1.0)
        self.assertAlmostEqual(sum(u / s for u, s in zip(sizes, slowdowns)), 1.0, places=9)

    def test_no_feasible_point_is_better(self):
        pair = [0.5, 0.9]
        best = best_mean(pair)
        for step in range(1, 200):
            first = 1 + step * 0.01
            left = 1 - pair[0] / first
            if left > 0:
                self.assertGreaterEqual((first + max(1.0, pair[1] / left)) / 2, best - 1e-9)

    def test_phases_are_cut_where_jobs_come_and_go(self):
        phases = bound.phases_of({"A": (0, None), "B": (10, 20)}, {"A": 0.8, "B": 0.6}, 30)
        self.assertEqual([(s, sorted(l)) for s, l in phases], [(10, ["A"]), (10, ["A", "B"]), (10, ["A"])])
        equal, _, best = bound.of_phases(phases, ["A", "B"])
        self.assertAlmostEqual(equal, (30 / (20 + 10 / 1.4) + 1.4) / 2)
        self.assertGreater(best["B"], 1.0)


class AnalysisTest(unittest.TestCase):
    def test_only_whole_iterations_inside_the_window_count(self):
        self.assertEqual([ms for _, ms in analysis.periods_between([0.5, 1, 2, 4, 5], 1, 4.5)], [1000, 2000])

    def test_a_window_without_an_iteration_is_an_error_that_says_what_to_do(self):
        job = mixes.load("two-equal").jobs[0]
        with self.assertRaisesRegex(ExperimentError, "job A.*larger --seconds"):
            analysis.job_result(job, [{"t": 1.0, "link_bytes": 1}], 0, 3)

    def test_summary_of_known_values(self):
        self.assertEqual(analysis.summary([100, 200, 300]),
                         {"mean": 200, "median": 200, "p90": 300, "cv": 0.4082, "n": 3})

    def test_scheme_is_the_median_of_its_runs(self):
        def run(ms):
            return {"jobs": [{"name": "A", "period_ms": {"mean": ms}, "iterations": [[0, ms]]}],
                    "link_useful_share": 0.5, "wan_drops": 1, "weir_cores": 0.0}
        result = analysis.scheme_result([run(110), run(150), run(120)], {"A": 100})
        self.assertEqual((result["mean_slowdown"], result["mean_slowdown_min"], result["mean_slowdown_max"]), (1.2, 1.1, 1.5))

    def test_lanes_sort_bytes_by_time_and_job(self):
        samples = [(1.0 + i / 100, {"h0": i * 10, "h1": 0, "wan": 7}) for i in range(5)]
        lanes = machine.lanes(samples, {"h0": "A", "h1": "B"}, 1.0)
        self.assertEqual((sum(lanes["jobs"]["A"]), sum(lanes["jobs"]["B"])), (40, 0))


class MixTest(unittest.TestCase):
    def load(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return mixes.load_file(file.name)

    def test_every_mix_of_the_project_loads_and_says_what_it_is(self):
        for name in mixes.known():
            mix = mixes.load(name)
            self.assertTrue(mix.about and mix.jobs, name)
            self.assertEqual(len({h for hosts in mix.place().values() for h in hosts}), sum(mix.hosts_per_site()))

    def test_unknown_mix_lists_the_known_ones(self):
        with self.assertRaisesRegex(UsageError, "'nope'.*three-equal"):
            mixes.load("nope")

    def test_mistakes_name_the_job_and_what_is_allowed(self):
        for text, message in (('[[job]]\nname="a"\ngrad_mb=3', "job 1 \\(a\\).*'grad_mb'.*grad-mb"),
                              ('[[job]]\nname="a"\nkind="x"', "kind = 'x'.*pipeline"),
                              ('[[job]]\nname="a"\ncompute-ms=0', "compute-ms = 0"),
                              ('[[job]]\nname="a"\nhosts=["east","east"]', "hosts must name"),
                              ('[[job]]\nname="a"\narrive=5\nleave=4', "arrive < leave"),
                              ('[[job]]\nname="a"\n[[job]]\nname="a"', "same name"),
                              ('[[job]]\nname="a"\narrive=5', "from the start"),
                              ("job = 3", "1 to 16"), ("[[job", "not TOML")):
            with self.assertRaisesRegex(UsageError, message):
                self.load(text)


def small_document():
    def run(ms):
        return {"jobs": [{"name": "A<b>", "period_ms": analysis.summary([ms]), "iterations": [[0, ms], [1, ms]]}],
                "link_useful_share": 0.5, "wan_drops": 1, "weir_cores": 0.01,
                "timeline": {"begin_s": 0, "step_ms": 10.0, "jobs": {"A<b>": [125000] * 40}}}
    schemes = {s: analysis.scheme_result([run(ms)], {"A<b>": 100}) for s, ms in (("cubic", 150), ("weir", 120))}
    return {"mix": {"name": "m", "about": "text", "jobs": [{"name": "A<b>", "what": "ddp", "arrive": 0, "leave": None,
                                                          "guaranteed": False}]},
            "settings": {"seconds": 2, "runs": 1, "warmup_s": 4, "wan_mbit": 100, "nic_mbit": 200, "delay_ms": 0},
            "bound": {"mean_slowdown": 1.1, "equal_slowdown": 1.1, "link_load": 1.1, "job_slowdown": {"A<b>": 1.1}},
            "alone": {"A<b>": {"period_ms": 100, "scheme": "bbr", "bbr": analysis.summary([100])}}, "schemes": schemes,
            "machine": {"cores": 2, "cpu": "x", "kernel": "6", "busy": 0.1, "steal": 0, "loadavg": 1.0},
            "versions": {"torch": "1"}, "command": "two-sites", "taken": "2026-01-01T00:00:00+00:00"}


class OutputTest(unittest.TestCase):
    def test_table_says_who_is_faster(self):
        self.assertIn("20.0 % less time on average than under cubic", table.render(small_document()))

    def test_report_is_one_file_and_escapes_names(self):
        page = report.render(json.loads(json.dumps(small_document())))
        self.assertIn("20 % less time with Weir", page)
        self.assertNotIn("A<b>", page)
        self.assertIn("A&lt;b&gt;", page)
        self.assertNotRegex(page, r'(src|href)=|https?://|@import')


if __name__ == "__main__":
    unittest.main()
