#!/usr/bin/python3
"""The NCCL plugin over DPDK between several hosts on one segment, driven as NCCL's proxy does; every number is compared.

Each rank is a host: a network namespace with a cable to a bridge, on which DPDK (af_packet) sends and receives frames. Every collective
with every version of NCCL's interface: --case 2, 3, 4 or another number of ranks (all is 2 to 4); --build DIRECTORY.
"""
import json
import os
import subprocess
import sys

import e2e

VERSIONS = range(6, 13)
ROWS = 14  # Seven collectives of two sizes.
PATIENCE_S = 60


class Segment:
    """Namespaces on one bridge. Use as a context."""

    def __init__(self, hosts):
        self.switch = f"wn{os.getpid()}-switch"
        self.names = [f"wn{os.getpid()}-{number}" for number in range(1, hosts + 1)]

    def __enter__(self):
        try:
            for name in (self.switch, *self.names):
                subprocess.run(["ip", "netns", "add", name], check=True)
            subprocess.run(["ip", "-n", self.switch, "link", "add", "bridge", "up", "type", "bridge"], check=True)
            for number, name in enumerate(self.names, 1):
                subprocess.run(["ip", "link", "add", "frames", "netns", name, "type", "veth", "peer", "name", f"to{number}", "netns",
                                self.switch], check=True)
                subprocess.run(["ip", "-n", name, "link", "set", "frames", "up"], check=True)
                subprocess.run(["ip", "-n", self.switch, "link", "set", f"to{number}", "master", "bridge", "up"], check=True)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        for name in (self.switch, *self.names):
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def emulate(build, segment, ranks, version):
    """Rows of the result."""
    ports = "|".join(f"device=net_af_packet0;iface=frames,address=10.9.0.{number}/24" for number in range(1, ranks + 1))
    done = subprocess.run(
        [os.path.join(build, "bin", "weir-perf"), "nccl-emulate", "--plugin", os.path.join(build, "lib", "libnccl-net-weir.so"),
         "--output=json", f"--abi=v{version}", f"--ranks={ranks}", "--channels=1", "--sizes=4,40K", "--slice_kb=8", "--rounds=1",
         "--idle_us=100", "--namespaces=" + ",".join(segment.names[:ranks]), f"--per_rank=WEIR_DPDK={ports}"],
        env={**os.environ, "WEIR_TRANSPORT": "dpdk"}, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    e2e.check(done.returncode == 0, f"v{version}, {ranks} ranks: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def test(args):
    counts = [2, 3, 4] if args.case == "all" else [int(args.case)]
    with Segment(max(counts)) as segment:
        for ranks in counts:
            for version in VERSIONS:
                rows = emulate(args.build, segment, ranks, version)
                e2e.check(len(rows) == ROWS, f"v{version}, {ranks} ranks: expected {ROWS} rows, found {len(rows)}")
            print(f"{ranks} ranks: every collective with v{VERSIONS[0]} to v{VERSIONS[-1]}", flush=True)


if __name__ == "__main__":
    e2e.main(test, needs_weir=False)
