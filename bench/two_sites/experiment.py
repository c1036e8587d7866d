"""The whole experiment: every job alone, then the mix under each scheme in turn, several times; one result document."""
import datetime
import os
import statistics
import subprocess
import sys
import time

from fabric.fabric import Fabric
from two_sites import analysis, bound, machine
from two_sites.runner import PAYLOAD_SHARE, MachinePaused, Run, RunOptions, warmup_s

SCHEMES = {"bbr": "plain TCP with bbr", "cubic": "plain TCP with cubic", "weir": "Weir",
           "weir-alone": "each job alone under Weir, to see what Weir itself costs"}
ATTEMPTS_MAX = 3  # a run during which the machine stood still is repeated this often
ALONE_SCHEMES = ("bbr", "cubic")
START_S = 3.5     # rough time for torch to start; only for the first guess of the time that is left


class Progress:
    """One line on stderr a run: which of how many, and how long the rest will take."""

    def __init__(self, total, quiet=False):
        self.total, self.done, self.quiet = total, 0, quiet
        self.planned_s, self.spent_s, self.spent_plan_s = 0.0, 0.0, 0.0

    def plan(self, seconds):
        self.planned_s += seconds

    def begin(self, what, seconds):
        self.done += 1
        scale = self.spent_s / self.spent_plan_s if self.spent_plan_s else 1.0
        left = int((self.planned_s - self.spent_plan_s) * scale)
        self.say(f"[{self.done}/{self.total}] {what}: {seconds:.0f} s, about {left // 60}:{left % 60:02d} left in all")

    def end(self, seconds, plan):
        self.spent_s += seconds
        self.spent_plan_s += plan

    def say(self, text):
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)


class Experiment:
    """Owns the fabric for its life. Use: Experiment(...).run(); whatever happens, the fabric is gone afterwards."""

    def __init__(self, mix, args):
        self.mix, self.args = mix, args
        self.fabric = Fabric(f"wt{os.getpid()}", mix.hosts_per_site(), wan_mbit=args.wan, nic_mbit=args.nic,
                             delay_ms=args.delay)
        self.payload_rate = args.wan * 1e6 / 8 * PAYLOAD_SHARE
        self.plan = self._plan()
        self.progress = Progress(len(self.plan), args.quiet)
        self.runs = []

    def _plan(self):
        """[(label, scheme, jobs, run options)] in order: alone first, then the schemes alternately."""
        plan = []
        alone = list(ALONE_SCHEMES) + (["weir-alone"] if "weir-alone" in self.args.schemes else [])
        for job in {job.spec: job for job in reversed(self.mix.jobs)}.values():
            stays = type(job)(job.name, job.kind, job.parameters, job.sites)
            for scheme in alone:
                plan.append((f"{job.name} alone, {scheme}", scheme, (stays,), self._alone_options(stays)))
        for number in range(self.args.runs):
            for scheme in self.args.schemes:
                if scheme == "weir-alone":
                    continue
                options = self._options(self.mix.jobs, self.args.seconds)
                options.timeline = number == 0
                plan.append((f"{self.mix.name}, {scheme}, run {number + 1} of {self.args.runs}", scheme,
                             self.mix.jobs, options))
        return plan

    def _options(self, jobs, seconds):
        return RunOptions(self.args.build, seconds, warmup_s(jobs, self.payload_rate), self.args.guaranteed,
                          self.args.weir_cc, self.args.keep)

    def _alone_options(self, job):
        """Alone, periods hardly vary: ten of them are plenty."""
        period = job.expected_period_s(self.payload_rate)
        seconds = min(self.args.seconds, max(10.0, 10 * period)) if period < self.args.seconds / 3 else 4 * period
        return self._options((job,), seconds)

    def run(self):
        for _, _, _, options in self.plan:
            self.progress.plan(START_S + options.warmup_s + options.seconds)
        try:
            self.fabric.up()
            for label, scheme, jobs, options in self.plan:
                self.runs.append(self._run_one(label, scheme, jobs, options))
            return self._document()
        finally:
            self.fabric.down()

    def _run_one(self, label, scheme, jobs, options):
        planned = START_S + options.warmup_s + options.seconds
        self.progress.begin(label, planned)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            begun = time.monotonic()
            try:
                result = Run(self.fabric, self.mix.place(), jobs, scheme, options).execute()
                self.progress.end(time.monotonic() - begun, planned)
                return result
            except MachinePaused as pause:
                self.progress.say(f"    {pause}: this run is thrown away"
                                  + (" and repeated" if attempt < ATTEMPTS_MAX else ""))
                if attempt == ATTEMPTS_MAX:
                    raise

    # ---- the result ----
    def _document(self):
        alone = self._alone()
        alone_ms = {name: entry["period_ms"] for name, entry in alone.items()}
        schemes = {}
        for scheme in self.args.schemes:
            runs = [r for (_, s, jobs, _), r in zip(self.plan, self.runs) if s == scheme and jobs is self.mix.jobs]
            if runs:
                schemes[scheme] = analysis.scheme_result(runs, alone_ms)
        return {
            "format": "weir-two-sites/1", "taken": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "command": " ".join(sys.argv), "mix": {
                "name": self.mix.name, "about": self.mix.about,
                "jobs": [{"name": j.name, "what": j.describe(), "arrive": j.arrive, "leave": j.leave,
                          "guaranteed": j.name in self.args.guaranteed} for j in self.mix.jobs]},
            "settings": {"seconds": self.args.seconds, "runs": self.args.runs,
                         "warmup_s": warmup_s(self.mix.jobs, self.payload_rate), "wan_mbit": self.args.wan,
                         "nic_mbit": self.args.nic, "delay_ms": self.args.delay,
                         "payload_bytes_per_s": round(self.payload_rate), "weir_congestion_control": self.args.weir_cc},
            "bound": self._bound(alone), "alone": alone, "schemes": schemes,
            "machine": {**machine.describe(), **self._machine_load()}, "versions": versions(self.args)}

    def _alone(self):
        """{job: {"period_ms": the better plain scheme's mean, "scheme", and a summary per scheme}}."""
        by_spec = {}
        for (_, scheme, jobs, _), run in zip(self.plan, self.runs):
            if jobs is not self.mix.jobs:
                by_spec.setdefault(jobs[0].spec, {})[scheme] = run["jobs"][0]
        alone = {}
        for job in self.mix.jobs:
            measured = by_spec[job.spec]
            best = min(ALONE_SCHEMES, key=lambda s: measured[s]["period_ms"]["mean"])
            period = measured[best]["period_ms"]["mean"]
            alone[job.name] = {"period_ms": period, "scheme": best, "link_bytes": measured[best]["link_bytes"],
                               "load": round(measured[best]["link_bytes"] / self.payload_rate / (period / 1e3), 4),
                               **{s: measured[s]["period_ms"] for s in measured}}
            if "weir-alone" in measured:
                alone[job.name]["weir_overhead"] = round(measured["weir-alone"]["period_ms"]["mean"] / period - 1, 4)
        return alone

    def _bound(self, alone):
        """Loads of both directions are alike for every kind of job here, so one direction stands for the link."""
        loads = {name: entry["load"] for name, entry in alone.items()}
        windows = {job.name: (job.arrive, job.leave) for job in self.mix.jobs}
        phases = bound.phases_of(windows, loads, self.args.seconds)
        equal, best, per_job = bound.of_phases(phases, list(loads))
        return {"mean_slowdown": round(best, 4), "equal_slowdown": round(equal, 4), "link_load": round(sum(loads.values()), 4),
                "job_slowdown": {name: round(value, 4) for name, value in per_job.items()}}

    def _machine_load(self):
        loads = [run["machine"] for run in self.runs]
        return {key: round(statistics.fmean(load[key] for load in loads), 3) for key in ("busy", "steal", "loadavg")}


def versions(args):
    found = {"torch": _first_line(["/usr/bin/python3", "-c", "import torch; print(torch.__version__)"])}
    found["iproute2"] = _first_line(["ip", "-V"])
    if any(scheme.startswith("weir") for scheme in args.schemes):
        found["weir"] = _first_line([os.path.join(args.build, "bin", "weir-coordinator"), "--version"])
    return found


def _first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30).stdout.strip().split("\n")[0]
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
