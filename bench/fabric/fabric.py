#!/usr/bin/env python3
"""Two data centres and the slow link between them, made of network namespaces on this machine.

  fabric.py up   [--prefix P] [--hosts N] [--nic MBIT] [--wan MBIT] [--delay MS]    build one and leave it standing
  fabric.py down --prefix P                                                         remove it, with all processes in it
  fabric.py down --all-stale                                                        remove those whose owner is gone
  fabric.py list                                                                    what stands now
  fabric.py exec --prefix P HOST COMMAND...                                         run a command on a host (east0, west1, mgmt)

Example: bench/fabric/fabric.py up --prefix try --hosts 2 && bench/fabric/fabric.py exec --prefix try east0 ip -brief addr

See bench/README.md for a picture. Needs root and iproute2.
"""
import argparse
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fabric import netns  # noqa: E402

SITES = ("east", "west")
STATE_DIR = "/run/weir-fabric"
NIC_BURST_BYTES, NIC_QUEUE_BYTES = 65536, 1_000_000
WAN_BURST_BYTES = 16384
# After an idle phase a training job must not start again from ten segments, and TCP's own pacing must not send bursts of
# 64 KiB on short paths. The same in every scheme.
HOST_SYSCTLS = {"net.ipv4.tcp_slow_start_after_idle": 0, "net.ipv4.tcp_tso_rtt_log": 0}
ALL_SYSCTLS = {"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1,
               "net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.default.rp_filter": 0}


class FabricError(Exception):
    """Something about the network could not be set up; the text is for people."""


def _run(argv, text=""):
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True)
    except FileNotFoundError:
        raise FabricError(f"{argv[0]} is not installed: apt-get install iproute2") from None
    if done.returncode != 0:
        raise FabricError(f"{' '.join(argv)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _batch(tool, namespace, lines):
    if lines:
        _run([tool] + (["-n", namespace] if namespace else []) + ["-batch", "-"], "\n".join(lines) + "\n")


def process_start_time(pid):
    """Kernel ticks at which the process started, or None: with the pid it names a process for good."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[19])
    except (OSError, ValueError, IndexError):
        return None


class Fabric:
    """One emulated network. Owned by whoever calls up(); down() removes every trace and every process inside.

    Not thread-safe. Host names are <site><number>; `mgmt` is the coordinator's place. Hosts reach `mgmt` over an unshaped
    network of their own (10.98.0.0/24) on the device `mgmt0`, and each other through `eth0`, their router and the WAN.
    """

    def __init__(self, prefix, hosts, nic_mbit=200.0, wan_mbit=100.0, queue_bytes=250_000, delay_ms=0.0):
        """hosts: how many in each site, for example (3, 3)."""
        self.prefix, self.hosts = prefix, tuple(hosts)
        self.nic_mbit, self.wan_mbit, self.queue_bytes, self.delay_ms = nic_mbit, wan_mbit, queue_bytes, delay_ms
        self.relay = None

    # ---- names and addresses ----
    def namespace(self, name):
        return f"{self.prefix}-{name}"

    def host_names(self):
        return [f"{site}{i}" for s, site in enumerate(SITES) for i in range(self.hosts[s])]

    def namespaces(self):
        return [self.namespace(n) for n in [f"{site}-router" for site in SITES] + self.host_names() + ["mgmt"]]

    def address(self, host):
        site = next(s for s, name in enumerate(SITES) if host.startswith(name))
        return f"10.{200 + site}.0.{10 + int(host[len(SITES[site]):])}"

    def management_address(self, name):
        return "10.98.0.1" if name == "mgmt" else f"10.98.0.{10 + self.host_names().index(name)}"

    def topology_toml(self):
        """The file that weir-coordinator reads to know this network."""
        parts = [f'[[site]]\nname = "{site}"\n' for site in SITES]
        for host in self.host_names():
            parts.append(f'[[host]]\nname = "{host}"\nsite = "{host.rstrip("0123456789")}"\n'
                         f'addresses = ["{self.address(host)}"]\nnic = "{self.nic_mbit:g} Mbit/s"\n')
        for a, b in (SITES, SITES[::-1]):
            delay = f'delay = "{self.delay_ms:g} ms"\n' if self.delay_ms else ""
            parts.append(f'[[link]]\nname = "{a}-{b}"\nfrom = "{a}"\nto = "{b}"\n'
                         f'capacity = "{self.wan_mbit:g} Mbit/s"\n{delay}')
        return "\n".join(parts)

    # ---- building ----
    def up(self):
        """Builds everything or, when that fails, nothing."""
        if os.geteuid() != 0:
            raise FabricError("building network namespaces needs root")
        if os.path.exists(self._state_path()):
            raise FabricError(f"a network with prefix {self.prefix} stands already: "
                              f"remove it with bench/fabric/fabric.py down --prefix {self.prefix}")
        try:
            self._save_state()
            self._create()
            for name in self.namespaces():
                self._tune(name)
            for site, _ in enumerate(SITES):
                self._configure_site(site)
            self._shape_wan()
        except BaseException:
            self.down()
            raise

    def _devices(self, namespace):
        role = namespace[len(self.prefix) + 1:]
        if role == "mgmt":
            return []
        if role.endswith("-router"):
            site = SITES.index(role[:-len("-router")])
            return ["wan"] + [f"h{i}" for i in range(self.hosts[site])]
        return ["eth0"]

    def _create(self):
        lines = [f"netns add {n}" for n in self.namespaces()]
        for host in self.host_names():
            router, port = self._attachment(host)
            lines.append(f"link add eth0 netns {self.namespace(host)} type veth peer name {port} netns {router}")
            lines.append(f"link add mgmt0 netns {self.namespace(host)} type veth "
                         f"peer name m-{host} netns {self.namespace('mgmt')}")
        east, west = (self.namespace(f"{site}-router") for site in SITES)
        if not self.delay_ms:
            lines.append(f"link add wan netns {east} type veth peer name wan netns {west}")
        _batch("ip", None, lines)
        if self.delay_ms:
            self._start_relay(east, west)
        lines = ["link add br0 type bridge", "addr add 10.98.0.1/24 dev br0", "link set br0 up", "link set lo up"]
        for host in self.host_names():
            lines += [f"link set m-{host} master br0", f"link set m-{host} up"]
        _batch("ip", self.namespace("mgmt"), lines)

    def _attachment(self, host):
        site = host.rstrip("0123456789")
        return self.namespace(f"{site}-router"), f"h{host[len(site):]}"

    def _start_relay(self, east, west):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wan_delay.py")
        self.relay = subprocess.Popen([sys.executable, script, east, "wan", west, "wan", f"{self.delay_ms:g}"],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self._save_state()
        if self.relay.stdout.readline().strip() != "ready":
            raise FabricError("the relay that delays the WAN did not start: is /dev/net/tun there?")

    def _tune(self, namespace):
        role = namespace[len(self.prefix) + 1:]
        sysctls = dict(ALL_SYSCTLS)
        if role.endswith("-router"):
            sysctls["net.ipv4.ip_forward"] = 1
        elif role != "mgmt":
            sysctls.update(HOST_SYSCTLS)
        netns.call(namespace, netns.write_sysctls, sysctls)
        devices = [d for d in self._devices(namespace) if d != "wan" or not self.delay_ms]
        netns.call(namespace, netns.disable_offloads, devices)

    def _configure_site(self, site):
        gateway, other = f"10.{200 + site}.0.1", f"10.{201 - site}.0.0/24"
        router_lines = ["link set lo up", f"addr add 10.250.0.{1 + site}/30 dev wan", "link set wan up"]
        for i in range(self.hosts[site]):
            host = f"{SITES[site]}{i}"
            router_lines += [f"addr add {gateway}/32 dev h{i}", f"link set h{i} up",
                             f"route add {self.address(host)}/32 dev h{i}"]
            _batch("ip", self.namespace(host), [
                "link set lo up", f"addr add {self.address(host)}/32 dev eth0", "link set eth0 up",
                f"addr add {self.management_address(host)}/24 dev mgmt0", "link set mgmt0 up",
                f"route add {gateway}/32 dev eth0", f"route add default via {gateway} src {self.address(host)}"])
            _batch("tc", self.namespace(host), [self._nic_queue("eth0")])
        router_lines.append(f"route add {other} via 10.250.0.{2 - site}")
        router = self.namespace(f"{SITES[site]}-router")
        _batch("ip", router, router_lines)
        _batch("tc", router, [self._nic_queue(f"h{i}") for i in range(self.hosts[site])])

    def _nic_queue(self, device):
        return (f"qdisc add dev {device} root tbf rate {self.nic_mbit:g}mbit "
                f"burst {NIC_BURST_BYTES} limit {NIC_QUEUE_BYTES}")

    def _shape_wan(self):
        rate = f"rate {self.wan_mbit:g}mbit ceil {self.wan_mbit:g}mbit burst {WAN_BURST_BYTES} cburst {WAN_BURST_BYTES}"
        for site in SITES:
            _batch("tc", self.namespace(f"{site}-router"), [
                "qdisc replace dev wan root handle 1: htb default 10 r2q 100",
                f"class add dev wan parent 1: classid 1:10 htb {rate}",
                f"qdisc add dev wan parent 1:10 handle 10: bfifo limit {self.queue_bytes}"])

    # ---- use ----
    def set_congestion_control(self, name):
        """Chooses bbr, cubic, ... for every connection between hosts; None leaves the system's choice.

        Through the routes, because a namespace may not make a restricted algorithm its default.
        """
        choice = f" congctl {name}" if name else ""
        for host in self.host_names():
            gateway = f"10.{200 + SITES.index(host.rstrip('0123456789'))}.0.1"
            _batch("ip", self.namespace(host),
                   [f"route replace default via {gateway} src {self.address(host)}{choice}"])

    def wan_counters(self):
        """{"east": {"bytes": ..., "drops": ...}, "west": ...}: what the WAN queue of each site sent and dropped."""
        counters = {}
        for site in SITES:
            out = _run(["tc", "-n", self.namespace(f"{site}-router"), "-j", "-s", "qdisc", "show", "dev", "wan"])
            leaf = next(q for q in json.loads(out) if q["kind"] == "bfifo")
            counters[site] = {"bytes": leaf["bytes"], "drops": leaf["drops"]}
        return counters

    # ---- removing ----
    def down(self):
        if self.relay:
            self.relay.terminate()
            self.relay.wait()
            self.relay.stdout.close()
            self.relay = None
        remove(self.namespaces())
        try:
            os.unlink(self._state_path())
        except FileNotFoundError:
            pass

    def _state_path(self):
        return os.path.join(STATE_DIR, f"{self.prefix}.json")

    def _save_state(self, owner=None):
        os.makedirs(STATE_DIR, exist_ok=True)
        owner = os.getpid() if owner is None else owner
        state = {"prefix": self.prefix, "owner_pid": owner, "owner_start": process_start_time(owner),
                 "hosts": self.hosts, "namespaces": self.namespaces(),
                 "relay": [self.relay.pid, process_start_time(self.relay.pid)] if self.relay else None}
        with open(self._state_path(), "w") as out:
            json.dump(state, out)

    def disown(self):
        """Lets the network outlive this process; it then counts as stale only for an explicit `down --prefix`."""
        self._save_state(owner=1)
        self.relay = None


def remove(namespaces):
    """Ends the processes of the namespaces, then deletes them. Namespaces that do not exist are fine."""
    there = [n for n in namespaces if os.path.exists(os.path.join(netns.NETNS_DIR, n))]
    for namespace in there:
        for pid in netns.processes_in(namespace):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    _batch("ip", None, [f"netns del {n}" for n in there])


def states():
    """All state files, as dictionaries with `stale` added: true when the owner process is gone."""
    found = []
    for name in sorted(os.listdir(STATE_DIR)) if os.path.isdir(STATE_DIR) else []:
        with open(os.path.join(STATE_DIR, name)) as text:
            state = json.load(text)
        start = process_start_time(state["owner_pid"])
        state["stale"] = start is None or start != state["owner_start"]
        state["path"] = os.path.join(STATE_DIR, name)
        found.append(state)
    return found


def remove_recorded(state):
    if state["relay"] and process_start_time(state["relay"][0]) == state["relay"][1]:
        os.kill(state["relay"][0], signal.SIGTERM)
    remove(state["namespaces"])
    os.unlink(state["path"])


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="build a network and leave it standing")
    up.add_argument("--prefix", default="weir")
    up.add_argument("--hosts", type=int, default=3, help="hosts in each site (default 3)")
    up.add_argument("--nic", type=float, default=200, metavar="MBIT")
    up.add_argument("--wan", type=float, default=100, metavar="MBIT")
    up.add_argument("--delay", type=float, default=0, metavar="MS", help="one way across the WAN")
    down = verbs.add_parser("down", help="remove networks")
    what = down.add_mutually_exclusive_group(required=True)
    what.add_argument("--prefix")
    what.add_argument("--all-stale", action="store_true", help="all whose owner process is gone")
    verbs.add_parser("list", help="show what stands")
    execute = verbs.add_parser("exec", help="run a command on a host")
    execute.add_argument("--prefix", default="weir")
    execute.add_argument("host")
    execute.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def _down(args):
    chosen = [s for s in states() if (s["stale"] if args.all_stale else s["prefix"] == args.prefix)]
    if not chosen and not args.all_stale:
        raise FabricError(f"no network with prefix {args.prefix}; bench/fabric/fabric.py list shows what stands")
    for state in chosen:
        remove_recorded(state)
        print(f"removed {state['prefix']}")


def main():
    args = _arguments()
    try:
        if args.verb == "up":
            fabric = Fabric(args.prefix, (args.hosts, args.hosts), args.nic, args.wan, delay_ms=args.delay)
            fabric.up()
            fabric.disown()
            for host in fabric.host_names():
                print(f"{host} {fabric.address(host)} namespace {fabric.namespace(host)}")
        elif args.verb == "down":
            _down(args)
        elif args.verb == "list":
            for state in states():
                print(f"{state['prefix']} hosts={sum(state['hosts'])} owner={state['owner_pid']} stale={state['stale']}")
        else:
            netns.enter(f"{args.prefix}-{args.host}")
            os.execvp(args.command[0], args.command)
    except FileNotFoundError as error:
        sys.exit(f"fabric: {error.filename or error}: no such namespace or command")
    except FabricError as error:
        sys.exit(f"fabric: {error}")


if __name__ == "__main__":
    main()
