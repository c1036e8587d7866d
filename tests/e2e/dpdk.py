#!/usr/bin/python3
"""The DPDK backend between two processes in two network namespaces, over a real device of DPDK and without hugepages.

--case memif, af_packet, af_xdp or killed; --build DIRECTORY. Messages of random size both ways at once, each byte
compared, while directives change a hundred times a second. Timings are printed, not asserted; what hangs is.
"""
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time

import e2e
from fabric import netns

PATIENCE_S = 60
AF_XDP = 44  # Python 3.11 does not name it.
GIGABYTES = 0.2


class Hosts:
    """Two namespaces with two cables: one for frames of DPDK, one on which the two weir-perf meet. Use as a context."""

    def __init__(self, build, driver):
        self.program = os.path.join(build, "bin", "weir-perf")
        self.names = [f"wd{os.getpid()}-{side}" for side in ("left", "right")]
        self.driver, self.running = driver, []
        self.folder = tempfile.TemporaryDirectory(prefix="weir-dpdk-")

    def __enter__(self):
        try:
            for name in self.names:
                subprocess.run(["ip", "netns", "add", name], check=True)
            for cable in ("frames", "meet"):
                subprocess.run(["ip", "link", "add", cable, "netns", self.names[0], "type", "veth", "peer", "name", cable,
                                "netns", self.names[1]], check=True)
            for number, name in enumerate(self.names, 1):
                for line in ("link set frames up", "link set meet up", f"addr add 10.8.0.{number}/24 dev meet"):
                    subprocess.run(["ip", "-n", name, *line.split()], check=True)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        for process in self.running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)
        self.folder.cleanup()

    def device(self, host):
        if self.driver == "memif":
            role = ("client", "server")[host]
            return f"net_memif0;role={role};socket={self.folder.name}/memif.sock;socket-abstract=no"
        return f"net_{self.driver}0;iface=frames"

    def start(self, host, *arguments):
        options = f"device={self.device(host)},address=10.9.0.{host + 1}"
        process = netns.popen(self.names[host], [self.program, *arguments, "--backend=dpdk", f"--options={options}",
                                                 "--dead_after_ms=2000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def begin(self, *arguments):
        """Returns (server, client), with data flowing."""
        server = self.start(1, "serve", "--bind=10.8.0.2")
        said = ""
        while "serving on" not in said:  # Drivers have things to say first.
            said = server.stderr.readline()
            e2e.check(said != "", "weir-perf serve does not start")
        return server, self.start(0, *arguments, "--server=10.8.0.2")


def end_of(client):
    """(exit code, what it printed); a program that hangs fails the test."""
    begun = time.monotonic()
    try:
        out, error = client.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise e2e.Failed(f"the client still runs after {PATIENCE_S} s") from None
    print(f"  the client ended after {time.monotonic() - begun:.2f} s: {(out + error).strip()}", flush=True)
    return client.returncode, out + error


def soak(build, driver):
    if driver == "af_xdp":
        try:
            socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
        except OSError as error:
            print(f"skipped: this kernel has no sockets of AF_XDP: {error}")
            sys.exit(e2e.SKIPPED)
    with Hosts(build, driver) as hosts:
        server, client = hosts.begin("soak", f"--gb={GIGABYTES}")
        code, text = end_of(client)
        e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")
        e2e.check(server.poll() is None, "the server must serve on")


def killed(build):
    """Nothing but silence says that a process is gone: its peer finds out within the bound of 2 s."""
    with Hosts(build, "af_packet") as hosts:
        server, client = hosts.begin("pair", "--sizes=1M", "--seconds=50", "--test=bandwidth")
        time.sleep(2)
        e2e.check(client.poll() is None, "it was over before the kill")
        server.kill()
        code, text = end_of(client)
        e2e.check(code == 3 and "the link is dead" in text, f"expected a dead link and exit 3, found {code}")
        e2e.check(text.count("/") >= 2, "the message does not name both ends")


def test(args):
    if args.case == "killed":
        killed(args.build)
    else:
        soak(args.build, args.case)


if __name__ == "__main__":
    e2e.main(test, needs_weir=False)
