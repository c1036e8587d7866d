#!/usr/bin/python3
"""The NCCL plugin between two hosts, driven as NCCL's proxy does: a silent cut, a flap, and two jobs that share a link under Weir.

--case cut, flap or two_jobs; --build DIRECTORY. Timings are printed, not asserted; what hangs is.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time

import e2e
import transport_faults
from fabric import netns

DEAD_AFTER_MS = 1500


class Ranks(transport_faults.Hosts):
    """Two ranks, one at each end of a cable that can be cut."""

    def begin_ranks(self, rounds):
        environment = {**os.environ, "NCCL_SOCKET_IFNAME": "wire", "WEIR_NCCL_DEAD_AFTER_MS": str(DEAD_AFTER_MS)}
        library = os.path.join(os.path.dirname(os.path.dirname(self.program)), "lib", "libnccl-net-weir.so")
        process = netns.popen(self.names[0], [
            self.program, "nccl-emulate", "--plugin", library, "--collectives=all-reduce", "--sizes=1M", "--plugin_log",
            f"--rounds={rounds}", "--idle_us=50", "--namespaces=" + ",".join(self.names)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.running.append(process)
        return process


def cut(build):
    """The job ends with a remote error, and the log says who could not talk to whom."""
    with Ranks(build, 0) as hosts:
        job = hosts.begin_ranks(100_000)
        time.sleep(2)
        e2e.check(job.poll() is None, "it ended before the cut")
        hosts.wire.send_signal(signal.SIGUSR1)
        code, text = transport_faults.end_of(job)
        e2e.check(code == 1 and "returned 6" in text, f"expected a remote error and exit 1, found {code}")
        lines = [line for line in text.splitlines() if "the link is dead" in line]
        e2e.check(bool(lines), "the log does not say that the link is dead")
        for line in lines:
            for what, pattern in (("the communicator", r"communicator 0x[0-9a-f]+"), ("both ranks", r"rank [01] (to|from) rank [01]"),
                                  ("the channel", r"channel \d+"), ("both addresses", r"10\.9\.0\.[12]\b.*10\.9\.0\.[12]\b")):
                e2e.check(re.search(pattern, line.partition(": ")[2]) is not None, f"{what} should be named in: {line}")


def flap(build):
    """Shorter than the bound: the job goes on, and every number is right."""
    with Ranks(build, 0) as hosts:
        job = hosts.begin_ranks(150)
        time.sleep(1)
        e2e.check(job.poll() is None, "it was over before the flap")
        hosts.wire.send_signal(signal.SIGUSR1)
        time.sleep(DEAD_AFTER_MS / 3e3)
        hosts.wire.send_signal(signal.SIGUSR2)
        code, text = transport_faults.end_of(job)
        e2e.check(code == 0 and "numbers compared" in text, "the flap was not survived")


def two_jobs(build):
    """The measurement itself: both jobs are known to the coordinator, and every number is right."""
    script = os.path.join(e2e.ROOT, "bench", "nccl", "two-jobs")
    done = subprocess.run([sys.executable, script, build, "--runs=1", "--rounds=8", "--warm_up=1", "--json"], capture_output=True,
                          text=True, check=False, timeout=80)
    e2e.check(done.returncode == 0, done.stderr)
    for case, (milliseconds,) in json.loads(done.stdout).items():
        print(f"  {case}: {milliseconds:.0f} ms an iteration", flush=True)


CASES = {case.__name__: case for case in (cut, flap, two_jobs)}


def test(args):
    for name in CASES if args.case == "all" else [args.case]:
        print(f"{name}:", flush=True)
        CASES[name](args.build)


if __name__ == "__main__":
    e2e.main(test)
