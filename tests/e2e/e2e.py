"""What the end-to-end tests share: a small emulated network, training jobs on it, Weir beside them, and checks.

A test is a program: exit 0 passed, 1 failed, 77 skipped with the reason as its last line. Each builds its own namespaces
and removes them, whatever happens.
"""
import argparse
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
from fabric.fabric import Fabric  # noqa: E402
from two_sites import mixes, processes  # noqa: E402
from two_sites.processes import JobProcesses, WeirStack, wait_until_ready  # noqa: E402

SKIPPED = 77
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_SO_MAX_PACING_RATE = 47
_NO_CAP = 2 ** 64 - 1
_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """The product did something it must not do; the text says what was seen and what was expected."""


def check(condition, text):
    if not condition:
        raise Failed(text)


def wait_until(what, condition, within_s, every_s=0.02):
    """Returns the seconds it took for condition() to hold; fails when it takes longer than within_s."""
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        check(waited < within_s, f"{what}: not within {within_s:g} s")
        time.sleep(every_s)
    waited = time.monotonic() - begun
    print(f"  {what}: after {waited * 1e3:.0f} ms (allowed {within_s * 1e3:.0f})", flush=True)
    return waited


def ddp(name, grad_mb, compute_ms, **more):
    """A data-parallel job over both sites."""
    _, defaults, sites = mixes.KINDS["ddp"]
    values = {**defaults, "grad-mb": grad_mb, "compute-ms": compute_ms, **more}
    return mixes.Job(name, "ddp", tuple(values.items()), sites)


class Scenario:
    """Two sites, some jobs, and Weir unless with_weir is false. Use as a context; jobs begin with begin()."""

    def __init__(self, jobs, build, with_weir=True, arguments=None):
        """arguments: job name -> further arguments of its script."""
        self.mix = mixes.Mix("e2e", "", tuple(jobs))
        self.build, self.with_weir, self.arguments = build, with_weir, arguments or {}
        self.fabric = Fabric(f"we{os.getpid()}", self.mix.hosts_per_site())
        self.run_dir = tempfile.mkdtemp(prefix="weir-e2e-")
        self.stack, self.jobs = None, {}

    def __enter__(self):
        try:
            self.fabric.up()
            if self.with_weir:
                self.stack = WeirStack(self.fabric, self.build, self.run_dir)
                self.stack.start()
            for job in self.mix.jobs:
                self.start_job(job)
            wait_until_ready(list(self.jobs.values()))
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def start_job(self, job):
        environment = self.stack.environment if self.stack else None
        self.jobs[job.name] = JobProcesses(job, self.mix.place()[job.name], self.fabric, self.run_dir, environment,
                                           self.arguments.get(job.name, ()))

    def begin(self):
        now = time.monotonic() + 0.2
        for job in self.jobs.values():
            job.begin_at(now)

    def __exit__(self, kind, error, _):
        for job in self.jobs.values():
            job.end()
        if self.stack:
            self.stack.end()
        self.fabric.down()
        if kind is None:
            shutil.rmtree(self.run_dir, ignore_errors=True)
        else:
            print(f"logs are in {self.run_dir}", flush=True)

    # ---- what can be seen from outside ----
    def managed_jobs(self):
        """Names of the jobs that the coordinator knows, with all their processes' agents connected; empty when it is gone."""
        status = self.stack.status()
        return {job["name"] for job in status["jobs"]} if status else set()

    def completions(self, name):
        """Times at which iterations of a job ended; a job reports an iteration when it is over."""
        return [record["t"] + record["ms"] / 1e3 for record in self.jobs[name].iterations()]

    def check_progress(self, name, since, gap_s):
        """Training must not stop: no iteration since then took longer than gap_s, the one under way included."""
        ends = [t for t in self.completions(name) if t >= since]
        edges = [since] + ends + [time.monotonic()]
        gap = max(b - a for a, b in zip(edges, edges[1:]))
        print(f"  job {name}: {len(ends)} iterations, longest {gap * 1e3:.0f} ms (allowed {gap_s * 1e3:.0f})", flush=True)
        check(gap <= gap_s, f"job {name}: no iteration ended for {gap:.2f} s, allowed {gap_s:g} s")


def pacing_caps(pid):
    """SO_MAX_PACING_RATE of each connected IPv4 stream socket of a process, None for those without a cap."""
    pidfd = _libc.syscall(_PIDFD_OPEN, pid, 0)
    if pidfd < 0:
        return []
    caps = []
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                    continue
                copy = _libc.syscall(_PIDFD_GETFD, pidfd, int(fd), 0)
                if copy >= 0:
                    caps += _cap_of(copy)
    finally:
        os.close(pidfd)
    return caps


def _cap_of(descriptor):
    with socket.socket(fileno=descriptor) as copy:
        if copy.family != socket.AF_INET or copy.type != socket.SOCK_STREAM:
            return []
        copy.getpeername()
        value = struct.unpack("Q", copy.getsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, 8))[0]
    return [None if value == _NO_CAP else value]


def main(test, needs_weir=True):
    """Runs test(arguments); the test's own arguments come from the command line as --build and --case."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--case", default="all")
    args = parser.parse_args()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda number, _: sys.exit(128 + number))
    if os.geteuid() != 0:
        print("skipped: network namespaces need root")
        sys.exit(SKIPPED)
    missing = processes.missing_parts(args.build, needs_weir)
    if missing:
        print(f"skipped: {missing}")
        sys.exit(SKIPPED)
    try:
        test(args)
    except Failed as failure:
        print(f"FAILED: {failure}")
        sys.exit(1)
    print("passed")
