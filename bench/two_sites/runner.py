"""One run: some jobs under one scheme, for a warm-up and a measured window."""
import dataclasses
import os
import shutil
import tempfile
import time

from two_sites import analysis, machine
from two_sites.errors import ExperimentError
from two_sites.processes import JobProcesses, WeirStack, wait_until_ready

PAYLOAD_SHARE = 1448 / 1514  # TCP payload in a full Ethernet frame, as the WAN's queue counts frames
TIMELINE_S = 12.0            # how much of a run is sampled for the picture of who sent when
WARMUP_MIN_S, WARMUP_PERIODS = 4.0, 3


class MachinePaused(Exception):
    """The machine stood still during the run; it must be repeated."""


@dataclasses.dataclass
class RunOptions:
    build_dir: str
    seconds: float
    warmup_s: float
    guaranteed: tuple = ()
    weir_congestion_control: str | None = None
    keep_logs: bool = False
    timeline: bool = False


class Run:
    """Owns the processes and log folder of one run. Use: Run(...).execute() once."""

    def __init__(self, fabric, placement, jobs, scheme, options):
        """jobs: those of the mix that take part; placement: {job name: hosts}."""
        self.fabric, self.placement, self.jobs = fabric, placement, jobs
        self.scheme, self.options = scheme, options
        self.with_weir = scheme.startswith("weir")
        self.payload_rate = fabric.wan_mbit * 1e6 / 8 * PAYLOAD_SHARE
        self.run_dir = tempfile.mkdtemp(prefix=f"weir-two-sites-{scheme}-")
        self.stack, self.running, self.ticker = None, [], None

    def execute(self):
        keep = True  # the logs of a run that failed are worth having
        try:
            result = self._execute()
            keep = self.options.keep_logs
            return result
        except ExperimentError as error:
            raise ExperimentError(f"{error}\n(logs of the run: {self.run_dir})") from None
        except (MachinePaused, KeyboardInterrupt, SystemExit):
            keep = self.options.keep_logs
            raise
        finally:
            self._end()
            if not keep:
                shutil.rmtree(self.run_dir, ignore_errors=True)

    def _execute(self):
        choice = self.options.weir_congestion_control if self.with_weir else self.scheme
        self.fabric.set_congestion_control(choice)
        environment = None
        if self.with_weir:
            self.stack = WeirStack(self.fabric, self.options.build_dir, self.run_dir, self.options.guaranteed)
            self.stack.start()
            environment = self.stack.environment
        self.running = [JobProcesses(job, self.placement[job.name], self.fabric, self.run_dir, environment)
                        for job in self.jobs]
        wait_until_ready(self.running)
        self.ticker = machine.Ticker(self.fabric.namespace("west-router"))
        begin = time.monotonic() + 0.3 + self.options.warmup_s
        end = begin + self.options.seconds
        for running in self.running:
            arrive = running.job.arrive
            running.begin_at(begin + arrive if arrive else begin - self.options.warmup_s)
        if self.options.timeline:
            self.ticker.record(max(begin, end - TIMELINE_S), end)
        self._wait(begin)
        before = self._snapshot()
        self._wait(end, leavers_from=begin)
        after = self._snapshot()
        status = self.stack.status() if self.stack else None
        self._end()
        if self.ticker.longest_gap_s > machine.PAUSE_S:
            raise MachinePaused(f"the machine stood still for {self.ticker.longest_gap_s:.1f} s")
        return self._result(begin, end, before, after, status)

    def _wait(self, until, leavers_from=None):
        """Watches the processes; ends the jobs whose time to leave comes."""
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
            for running in self.running:
                leave = running.job.leave
                if leavers_from is not None and leave is not None and time.monotonic() >= leavers_from + leave:
                    running.end()
                else:
                    running.check_alive()
            if self.stack:
                self.stack.check_alive()

    def _snapshot(self):
        return {"cpu": machine.cpu_times(), "wan": self.fabric.wan_counters(),
                "weir": self.stack.cpu_s() if self.stack else {"coordinator": 0.0, "agents": 0.0}}

    def _result(self, begin, end, before, after, status):
        seconds = end - begin
        jobs = []
        for running in self.running:
            job = running.job
            job_begin = begin + (job.arrive + min(self.options.warmup_s, WARMUP_MIN_S) if job.arrive else 0)
            job_end = begin + job.leave if job.leave is not None else end
            result = analysis.job_result(job, running.iterations(), job_begin, job_end)
            result["presence"] = (job_end - begin - job.arrive) / seconds
            jobs.append(result)
        weir = {part: round((after["weir"][part] - before["weir"][part]) / seconds, 4) for part in after["weir"]}
        sent = {site: after["wan"][site]["bytes"] - before["wan"][site]["bytes"] for site in after["wan"]}
        device_jobs = {"h" + host.removeprefix("west"): running.job.name
                       for running in self.running for host in running.hosts if host.startswith("west")}
        return {"scheme": self.scheme, "jobs": jobs,
                "link_useful_share": analysis.useful_share(jobs, self.payload_rate),
                "link_busy_share": {site: round(sent[site] * 8 / seconds / (self.fabric.wan_mbit * 1e6), 4) for site in sent},
                "wan_drops": sum(after["wan"][site]["drops"] - before["wan"][site]["drops"] for site in sent),
                "weir_cores": round(sum(weir.values()), 4), "weir_cores_by_part": weir,
                "machine": {**machine.load_between(before["cpu"], after["cpu"]),
                            "longest_tick_gap_s": round(self.ticker.longest_gap_s, 3)},
                "coordinator_status": status,
                "timeline": machine.lanes(self.ticker.samples, device_jobs, begin) if self.options.timeline else None}

    def _end(self):
        for running in self.running:
            running.end()
        if self.stack:
            self.stack.end()
        if self.ticker:
            self.ticker.stop()


def warmup_s(jobs, payload_rate):
    """Long enough for slow start, torch's first iterations, and for Weir to have seen a few iterations of each job."""
    slowest = max(job.expected_period_s(payload_rate) for job in jobs)
    return max(WARMUP_MIN_S, WARMUP_PERIODS * slowest)


