#!/usr/bin/python3
"""The TCP transport between two hosts over a bad cable: loss and delay, a silent cut, a flap, a peer killed and one stopped.

--case loss, cut, flap, killed, left or stopped; --build DIRECTORY. Timings are printed, not asserted; what hangs is.
"""
import contextlib
import os
import signal
import subprocess
import sys
import time

import e2e
from fabric import netns

DEAD_AFTER_MS = 2000
PATIENCE_S = 60


class Hosts:
    """Two namespaces with a LossyWire between them, and weir-perf at both ends. Use as a context."""

    def __init__(self, build, loss):
        self.program = os.path.join(build, "bin", "weir-perf")
        self.names = [f"wx{os.getpid()}-{side}" for side in ("left", "right")]
        self.loss, self.wire, self.running = loss, None, []

    def __enter__(self):
        try:
            for name in self.names:
                subprocess.run(["ip", "netns", "add", name], check=True)
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lossy_wire.py")
            self.wire = subprocess.Popen([sys.executable, script, *self.names, "2", str(self.loss), "7"],
                                         stdout=subprocess.PIPE, text=True)
            e2e.check(self.wire.stdout.readline() == "ready\n", "the wire did not come up")
            for number, name in enumerate(self.names, 1):
                for line in (f"addr add 10.9.0.{number}/24 dev wire", "link set wire mtu 9000", "link set wire up",
                             "link set lo up"):
                    subprocess.run(["ip", "-n", name, *line.split()], check=True)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        for process in self.running + ([self.wire] if self.wire else []):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)

    def start(self, host, *arguments):
        # A build with the address sanitizer keeps what was given back for a while; that is not what grows here.
        options = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1")))
        process = netns.popen(self.names[host], [self.program, *arguments, f"--dead_after_ms={DEAD_AFTER_MS}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "ASAN_OPTIONS": options})
        self.running.append(process)
        return process

    def begin(self, *arguments):
        """Returns (server, client), with data flowing."""
        server = self.start(1, "serve", "--bind=10.9.0.2")
        e2e.check("serving on" in server.stderr.readline(), "weir-perf serve does not start")
        client = self.start(0, *arguments, "--server=10.9.0.2")
        return server, client


def end_of(client):
    """(exit code, what it printed); a program that hangs fails the test."""
    begun = time.monotonic()
    try:
        out, error = client.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise e2e.Failed(f"the client still runs after {PATIENCE_S} s") from None
    print(f"  the client ended after {time.monotonic() - begun:.2f} s: {(out + error).strip()}", flush=True)
    return client.returncode, out + error


def retransmitted():
    """Segments that this namespace's TCP sent again; for use with netns.call()."""
    with open("/proc/thread-self/net/snmp") as table:
        names, values = [line.split() for line in table if line.startswith("Tcp:")]
    return int(values[names.index("RetransSegs")])


def loss(build):
    """Two in a hundred frames are lost, each way; every byte is compared."""
    with Hosts(build, 0.02) as hosts:
        code, text = end_of(hosts.begin("soak", "--gb=0.1")[1])
        e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")
        again = netns.call(hosts.names[0], retransmitted)
        print(f"  {again} segments were sent again", flush=True)
        e2e.check(again > 0, "the wire lost nothing: this was no test")


def cut(build):
    with Hosts(build, 0) as hosts:
        server, client = hosts.begin("pair", "--sizes=1M", "--seconds=50", "--test=bandwidth")
        time.sleep(2)
        hosts.wire.send_signal(signal.SIGUSR1)
        code, text = end_of(client)
        e2e.check(code == 3 and "the link is dead" in text, f"expected a dead link and exit 3, found {code}")
        e2e.check(text.count("/") >= 2, "the message does not name both ends")
        e2e.check(server.poll() is None, "the server must serve on")


def flap(build):
    with Hosts(build, 0) as hosts:
        client = hosts.begin("soak", "--gb=0.4")[1]
        time.sleep(1)
        e2e.check(client.poll() is None, "it was over before the flap")
        hosts.wire.send_signal(signal.SIGUSR1)
        time.sleep(DEAD_AFTER_MS / 4e3)
        hosts.wire.send_signal(signal.SIGUSR2)
        code, text = end_of(client)
        e2e.check(code == 0 and "no byte differs" in text, "the flap was not survived")


def killed(build):
    with Hosts(build, 0) as hosts:
        server, client = hosts.begin("pair", "--sizes=1M", "--seconds=50", "--test=bandwidth")
        time.sleep(2)
        server.kill()
        code, text = end_of(client)
        e2e.check(code == 3 and "closed" in text, f"expected a closed channel and exit 3, found {code}")


def holds(process):
    """(descriptors, resident KiB) of a process."""
    with open(f"/proc/{process.pid}/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return len(os.listdir(f"/proc/{process.pid}/fd")), resident


def left(build):
    """Clients are killed in the middle; the server has its descriptors and memory back after each."""
    with Hosts(build, 0) as hosts:
        server = hosts.start(1, "serve", "--bind=10.9.0.2")
        e2e.check("serving on" in server.stderr.readline(), "weir-perf serve does not start")
        at_first, resident = holds(server)[0], []
        for _ in range(4):
            client = hosts.start(0, "soak", "--gb=1", "--server=10.9.0.2")
            e2e.wait_until("channels are there", lambda: holds(server)[0] > at_first + 2, PATIENCE_S)
            time.sleep(0.3)
            client.kill()
            client.communicate()
            e2e.check("client lost" in server.stderr.readline(), "the server must say that the client is lost")
            e2e.wait_until("descriptors are back", lambda: holds(server)[0] == at_first, PATIENCE_S)
            resident.append(holds(server)[1])
        print(f"  {at_first} descriptors before and after each; resident KiB after each: {resident}", flush=True)
        e2e.check(resident[-1] < resident[0] + 8192, f"memory grows: {resident} KiB")


def stopped(build):
    """A peer that stands still for longer than the bound on a dead link is not dead."""
    with Hosts(build, 0) as hosts:
        server, client = hosts.begin("soak", "--gb=0.4")
        time.sleep(1)
        e2e.check(client.poll() is None, "it was over before the stop")
        server.send_signal(signal.SIGSTOP)
        time.sleep(2.5 * DEAD_AFTER_MS / 1e3)
        e2e.check(client.poll() is None, "the client gave up on a peer that is only stopped")
        server.send_signal(signal.SIGCONT)
        code, text = end_of(client)
        e2e.check(code == 0 and "no byte differs" in text, "the transport did not go on")


CASES = {case.__name__: case for case in (loss, cut, flap, killed, left, stopped)}


def test(args):
    for name in CASES if args.case == "all" else [args.case]:
        print(f"{name}:", flush=True)
        CASES[name](args.build)


if __name__ == "__main__":
    e2e.main(test, needs_weir=False)
