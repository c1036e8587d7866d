#!/usr/bin/python3
"""The DPDK backend between two processes in two network namespaces, over a real device of DPDK and without hugepages.

--case memif, af_packet, af_xdp, large_mtu, jumbo, impaired, routed, marked, unprivileged or killed; --build DIRECTORY. Messages of random size both ways at once, each byte
compared, while directives change a hundred times a second. Timings are printed, not asserted; what hangs is.
"""
import os
import shutil
import socket
import subprocess
import sys
import time

import e2e
from fabric import netns

sys.path.insert(0, os.path.join(e2e.ROOT, "bench", "transport"))
from dpdk_hosts import DpdkHosts  # noqa: E402

PATIENCE_S = 60
AF_XDP = 44  # Python 3.11 does not name it.
GIGABYTES = 0.2
DSCP = {46, 34, 26, 18, 10, 0, 8}  # Of the eight levels: transport/dpdk/options.h.


def begin(hosts, *arguments):
    """Returns (server, client), with data flowing."""
    server = hosts.serve()
    e2e.check(server is not None, "weir-perf serve does not start")
    return server, hosts.ask(*arguments)


def end_of(client):
    """(exit code, what it printed); a program that hangs fails the test."""
    begun = time.monotonic()
    try:
        out, error = client.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise e2e.Failed(f"the client still runs after {PATIENCE_S} s") from None
    print(f"  the client ended after {time.monotonic() - begun:.2f} s: {(out + error).strip()}", flush=True)
    return client.returncode, out + error


def large_mtu(build):
    """As large as a page has room for, which is what af_xdp takes."""
    soak(build, "af_xdp", mtu=3400, options=",mtu=3400")


def jumbo(build):
    """Frames of 9000 bytes, for which the rings are made larger; where the interface takes only 1500, that is said."""
    for driver in ("memif", "af_packet"):
        print(f"{driver}:", flush=True)
        soak(build, driver, mtu=9000, options=",mtu=9000")
    with DpdkHosts(build, "af_packet", options=",mtu=9000") as hosts:
        code, text = end_of(hosts.start(1, "serve", "--bind=10.8.0.2"))
        e2e.check(code != 0 and "mtu: found 9000, allowed: up to 1500, that of frames" in text,
                  f"expected the MTU of the interface in the error, found exit {code}")


def soak(build, driver, **more):
    if driver == "af_xdp":
        try:
            socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
        except OSError as error:
            print(f"skipped: this kernel has no sockets of AF_XDP: {error}")
            sys.exit(e2e.SKIPPED)
    with DpdkHosts(build, driver, **more) as hosts:
        server, client = begin(hosts, "soak", f"--gb={GIGABYTES}")
        code, text = end_of(client)
        e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")
        e2e.check(server.poll() is None, "the server must serve on")


def impaired(build):
    """One in 100 frames is lost, one overtaken, one doubled, each way."""
    options = ",lose_permille=10,reorder_permille=10,double_permille=10"
    with DpdkHosts(build, "memif", options=options) as hosts:
        code, text = end_of(begin(hosts, "soak", f"--gb={GIGABYTES / 4}")[1])
        e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")


def routed(build):
    """The kernel of a third host forwards between two segments: it asks for our addresses, and we for its."""
    with DpdkHosts(build, "af_packet") as hosts:
        router = hosts.route()
        code, text = end_of(begin(hosts, "soak", f"--gb={GIGABYTES / 10}")[1])
        e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")
        seen = subprocess.run(["ip", "-n", router, "neigh"], check=True, capture_output=True, text=True).stdout
        for address in ("10.9.1.1", "10.9.2.1"):
            e2e.check(f"{address} dev" in seen and f"{address} dev to{address[5]} FAILED" not in seen,
                      f"the router does not know {address}: {seen}")
        hosts.addresses[0] = "10.9.1.1/24,gateway=10.9.1.253"
        code, text = end_of(hosts.ask("soak", "--gb=0.001"))
        e2e.check(code == 3 and "nobody on the segment says that it has 10.9.1.253" in text,
                  f"expected the missing gateway by name and exit 3, found {code}")


def marked(build):
    """What a third party sees on the cable: the level of each packet as DSCP, ECN allowed, and all four paths."""
    with DpdkHosts(build, "af_packet") as hosts:
        tap = netns.call(hosts.names[1], socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        with tap:
            tap.bind(("frames", 0))
            tap.settimeout(PATIENCE_S)
            client = begin(hosts, "soak", f"--gb={GIGABYTES}", "--streams=4")[1]
            levels, ports, ecn = set(), set(), set()
            while client.poll() is None:
                frame = tap.recv(2048)
                if len(frame) < 1000 or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
                    continue
                levels.add(frame[15] >> 2)
                ecn.add(frame[15] & 3)
                ports.add(int.from_bytes(frame[34:36], "big"))
        code, text = end_of(client)
        e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")
        print(f"  DSCP {sorted(levels)}, ECN {sorted(ecn)}, source ports {sorted(ports)}", flush=True)
        e2e.check(len(levels) >= 4 and levels <= DSCP, f"expected several of {sorted(DSCP)}")
        e2e.check(ecn == {2}, "expected packets that may be marked")
        e2e.check(ports == {47800, 47801, 47802, 47803}, "expected the four paths")


def unprivileged(build):
    """As nobody: memif needs nothing, af_packet raw sockets and leave to change the flags of its interface."""
    for driver, capabilities in (("memif", "-all"), ("af_packet", "-all,+net_raw,+net_admin")):
        print(f"{driver}, {capabilities}:", flush=True)
        with DpdkHosts(build, driver) as hosts:
            # Where nobody can read them, whatever folder they were built in.
            os.chmod(hosts.folder.name, 0o777)
            for part in ("bin/weir-perf", "lib/libweir-ethdev.so"):
                copy = os.path.join(hosts.folder.name, part)
                os.makedirs(os.path.dirname(copy))
                shutil.copy(os.path.join(build, part), copy)
            hosts.program = os.path.join(hosts.folder.name, "bin", "weir-perf")
            hosts.before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={capabilities}",
                            f"--ambient-caps={capabilities}", f"--bounding-set={capabilities}"]
            code, text = end_of(begin(hosts, "soak", f"--gb={GIGABYTES / 10}")[1])
            e2e.check(code == 0 and "no byte differs" in text, "not all bytes came through")


def killed(build):
    """Nothing but silence says that a process is gone: its peer finds out within the bound of 2 s. The driver of memif
    also hears it from the kernel, and takes the rings away while they are in use."""
    for driver in ("af_packet", "memif"):
        print(f"{driver}:", flush=True)
        killed_over(build, driver)


def killed_over(build, driver):
    with DpdkHosts(build, driver) as hosts:
        server, client = begin(hosts, "pair", "--sizes=1M", "--seconds=50", "--test=bandwidth")
        time.sleep(2)
        e2e.check(client.poll() is None, "it was over before the kill")
        server.kill()
        code, text = end_of(client)
        e2e.check(code == 3 and "the link is dead" in text, f"expected a dead link and exit 3, found {code}")
        e2e.check(text.count("/") >= 2, "the message does not name both ends")


CASES = {"killed": killed, "impaired": impaired, "routed": routed, "unprivileged": unprivileged, "marked": marked,
         "large_mtu": large_mtu, "jumbo": jumbo}


def test(args):
    if args.case in CASES:
        CASES[args.case](args.build)
    else:
        soak(args.build, args.case)


if __name__ == "__main__":
    e2e.main(test, needs_weir=False)
