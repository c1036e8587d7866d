#!/usr/bin/python3
"""libnccl-net-weir.so, driven by weir-perf nccl-emulate over loopback: all versions of NCCL's interface, all collectives, and faults.

Example: plugin_test.py --library build/release/lib/libnccl-net-weir.so --perf build/release/bin/weir-perf Versions
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

LIBRARY = PERF = PROFILERS = ""
NET = [f"ncclNetPlugin_v{version}" for version in range(6, 13)]
PROFILER = [f"ncclProfiler_v{version}" for version in range(3, 7)]
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def start(*flags, environment=None):
    """The running process; the plugin sees loopback only."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("WEIR_", "NCCL_"))}
    # A build with the address sanitizer keeps what was freed, which is not a leak; it looks for those itself.
    sanitizer = ":".join(filter(None, (plain.get("ASAN_OPTIONS"), "quarantine_size_mb=1:thread_local_quarantine_size_kb=16")))
    # The ranks of a test share few cores: they sleep where NCCL would spin.
    return subprocess.Popen([PERF, "nccl-emulate", "--plugin", LIBRARY, "--output", "json", "--idle_us=50", *flags],
                            env={**plain, "NCCL_SOCKET_IFNAME": "lo", "WEIR_TRANSPORT": "tcp", "ASAN_OPTIONS": sanitizer, **(environment or {})},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Waits for its end."""
    try:
        out, error = process.communicate(timeout=100)
    finally:
        process.kill()
        process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def emulate(*flags, environment=None):
    """The finished process."""
    return finish(start(*flags, environment=environment))


class Emulation(unittest.TestCase):
    def rows(self, *flags, environment=None):
        done = emulate(*flags, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *flags, environment=None):
        """What it says when it ends with a failure."""
        done = emulate(*flags, environment=environment)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr


class Library(unittest.TestCase):
    def test_exports_what_nccl_looks_up_and_nothing_else(self):
        lines = output_of("nm", "--dynamic", "--defined-only", LIBRARY).splitlines()
        self.assertEqual(sorted(line.split()[-1] for line in lines), sorted(NET + PROFILER))
        for line in lines:
            self.assertIn(line.split()[-2], "DBR", f"{line}: NCCL wants data")

    def test_needs_the_c_library_only(self):
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", LIBRARY)))
        self.assertLessEqual({name for name in needed if not name.startswith(("libasan", "libubsan", "libtsan"))}, SYSTEM)

    def test_stays_when_it_is_unloaded(self):
        self.assertIn("NODELETE", output_of("readelf", "--dynamic", "--wide", LIBRARY))


class Versions(Emulation):
    def test_each_version_moves_every_collective(self):
        for version in range(6, 13):
            rows = self.rows("--abi", f"v{version}", "--ranks=3", "--channels=2", "--sizes=4,100K", "--rounds=2", "--cycles=2",
                             "--slice_kb=16")
            self.assertEqual(len(rows), 14)
            self.assertEqual({row["abi"] for row in rows}, {f"v{version}"})

    def test_highest_is_the_default(self):
        self.assertEqual(self.rows("--sizes=4", "--collectives=all-reduce")[0]["abi"], "v12")

    def test_unknown_version_is_refused_with_what_is_allowed(self):
        self.assertIn("allowed: v6 to v12", self.refused("--abi=v5"))


class Matrix(Emulation):
    def test_every_collective_with_every_version_and_2_to_16_ranks(self):
        for ranks in range(2, 17):
            for version in range(6, 13):
                rows = self.rows(f"--abi=v{version}", f"--ranks={ranks}", "--channels=1", "--sizes=4,40K", "--slice_kb=8", "--rounds=1")
                self.assertEqual(len(rows), 14, f"v{version}, {ranks} ranks")


class Cycles(Emulation):
    def test_a_thousand_aborts_in_flight_leave_nothing_behind(self):
        row = self.rows("--fault=abort", "--ranks=2", "--cycles=1000", "--fault_ms=3", "--sizes=1M",
                        "--collectives=all-reduce")[0]
        self.assertEqual(row["descriptors_more"], 0)

    def test_a_thousand_communicators_leave_nothing_behind(self):
        self.rows("--ranks=2", "--cycles=1000", "--sizes=4K", "--rounds=1", "--collectives=all-reduce")


class Collectives(Emulation):
    def test_sizes_around_slices(self):
        self.rows("--ranks=4", "--channels=3", "--slice_kb=1", "--sizes=4,1020,1K,1028,3K,12K,12292", "--rounds=1")

    def test_many_ranks(self):
        self.rows("--ranks=8", "--channels=1", "--sizes=32K", "--slice_kb=8", "--rounds=1")

    def test_messages_that_are_striped(self):
        self.rows("--ranks=2", "--channels=1", "--sizes=2M", "--slice_kb=1024", "--rounds=1",
                  environment={"WEIR_NCCL_STRIPE_KB": "64"})

    def test_receives_posted_together(self):
        for together in ("2", "3", "8"):
            self.rows("--receives", together, "--ranks=3", "--sizes=4,100K", "--slice_kb=8", "--rounds=2",
                      environment={"WEIR_NCCL_RECEIVES": together})

    def test_more_receives_than_allowed_are_refused(self):
        self.assertIn("allows 1 to 1", self.refused("--receives=2", "--sizes=4"))


    def test_a_signal_ends_all_ranks_after_the_round_that_runs(self):
        process = start("--ranks=3", "--sizes=4K,1M", "--collectives=all-reduce", "--rounds=1000000", "--plugin_log")
        for line in process.stderr:
            if "coflows are known by" in line:  # The first of them sends.
                break
        process.terminate()
        done = finish(process)
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = json.loads(done.stdout)  # The second size was not reached.
        self.assertIn(row["rounds"], range(1, 1000000))


class Faults(Emulation):
    def test_peers_of_a_killed_rank_are_told_a_remote_error(self):
        row = self.rows("--fault=kill", "--ranks=3", "--sizes=1M", "--collectives=all-reduce")[0]
        self.assertGreaterEqual(row["errors"], 1)

    def test_abort_in_flight_leaves_nothing_behind(self):
        row = self.rows("--fault=abort", "--ranks=2", "--cycles=30", "--fault_ms=5", "--sizes=1M",
                        "--collectives=all-reduce")[0]
        self.assertEqual(row["descriptors_more"], 0)

    def test_where_no_port_is_free_that_is_said(self):
        own = ["unshare", "--user", "--map-root-user", "--net"]
        if subprocess.run([*own, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("a network namespace may not be made here")
        script = "ip link set lo up && echo 50000 50003 >/proc/sys/net/ipv4/ip_local_port_range && exec \"$@\""
        done = subprocess.run([*own, "sh", "-c", script, "sh", PERF, "nccl-emulate", "--plugin", LIBRARY, "--sizes=4", "--channels=2",
                               "--plugin_log"], env={**os.environ, "NCCL_SOCKET_IFNAME": "lo", "WEIR_TRANSPORT": "tcp"}, capture_output=True,
                              text=True, check=False, timeout=100)
        self.assertIn("no port of this host is free; widen net.ipv4.ip_local_port_range", done.stderr)
        self.assertIn("returned 2", done.stderr)  # A system error: the peer is not to blame.

    def test_cycles_leave_nothing_behind(self):
        self.rows("--ranks=2", "--cycles=30", "--sizes=64K", "--rounds=1", "--collectives=all-reduce")


class Identity(Emulation):
    """The plugin's report of what each coflow sent, against what the emulator knows that it sent."""

    def shares(self, *flags):
        """Sends put to the right coflow, in percent; and the report's lines."""
        with tempfile.TemporaryDirectory(prefix="weir-nccl-") as folder:
            environment = {"WEIR_NCCL_REPORT": os.path.join(folder, "report")}
            done = emulate("--ranks=3", "--sizes=4,40K,200K", "--slice_kb=16", "--cycles=2", "--output=table", *flags,
                           environment=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = []
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="ascii") as file:
                    lines += [json.loads(line) for line in file]
        return float(re.search(r"right coflow \(([\d.]+) %\)", done.stdout).group(1)), lines

    def test_every_send_has_its_coflow_with_each_profiler(self):
        for profiler in ("v3", "v4", "v5", "v6"):
            share, lines = self.shares("--profiler", profiler)
            self.assertEqual(share, 100.0, profiler)
            self.assertEqual({line["by"] for line in lines}, {"profiler"})
            self.assertEqual({line["function"] for line in lines},
                             {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "SendRecv"})

    def test_v10_too(self):
        self.assertEqual(self.shares("--abi=v10")[0], 100.0)

    def test_without_a_profiler_it_is_by_what_nccl_says_of_the_operation(self):
        self.assertEqual({line["by"] for line in self.shares("--profiler=none")[1]}, {"attributes"})

    def test_before_v10_it_is_by_pauses(self):
        self.assertEqual({line["by"] for line in self.shares("--abi=v9")[1]}, {"idle-gap"})

    def test_the_log_says_once_how_coflows_are_known(self):
        for flags, by in (([], "profiler"), (["--profiler=none"], "attributes"), (["--abi=v9"], "idle-gap")):
            said = emulate("--ranks=2", "--sizes=4K", "--plugin_log", *flags).stderr
            self.assertEqual(said.count(f"coflows are known by {by}"), 2, said)

    def test_no_byte_is_left_out(self):
        for flags in ([], ["--profiler=none"]):
            _, lines = self.shares("--collectives=all-gather", *flags)
            # Three ranks, twice three rounds; each rank passes on two of three blocks.
            self.assertEqual(sum(line["bytes"] for line in lines), 3 * 6 * 2 * (4 + 40 * 1024 + 200 * 1024))


class Transports(Emulation):
    """What moves the bytes; RDMA itself is in rdma_vm_test.py."""

    def said(self, **environment):
        """The finished process of a short job, with the plugin's log."""
        return emulate("--sizes=4", "--collectives=all-reduce", "--plugin_log", environment=environment)

    def test_auto_is_tcp_where_rdma_is_not_wanted(self):
        done = self.said(WEIR_TRANSPORT="auto", NCCL_IB_DISABLE="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("RDMA is not used: NCCL_IB_DISABLE is set", done.stderr)
        self.assertIn("transport tcp, devices lo", done.stderr)

    def test_auto_is_tcp_where_no_rdma_device_is_meant_and_says_why(self):
        done = self.said(WEIR_TRANSPORT="", NCCL_IB_HCA="=nothere0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("RDMA is not used: no", done.stderr)
        self.assertIn("transport tcp, devices lo", done.stderr)

    def test_a_transport_that_is_named_is_not_replaced(self):
        self.assertIn("init returned", self.said(WEIR_TRANSPORT="rdma", NCCL_IB_HCA="=nothere0").stderr)
        self.assertIn("set WEIR_DPDK", self.said(WEIR_TRANSPORT="dpdk").stderr)

    def test_what_nccl_says_of_rdma_is_checked(self):
        said = self.said(WEIR_TRANSPORT="auto", NCCL_IB_SL="16").stderr
        self.assertIn('NCCL_IB_SL: found "16", allowed: 0 to 15', said)
        self.assertIn('WEIR_DPDK: found "colour", allowed: device, address', self.said(WEIR_DPDK="colour=blue").stderr)

    def test_a_flush_for_a_gpu_is_refused_where_memory_of_gpus_is_not_taken(self):
        said = self.refused("--sizes=4", "--flush", "--plugin_log")
        self.assertIn("iflush returned 5", said)
        self.assertIn("this backend takes host memory, which needs none", said)

    def test_ends_of_different_transports_do_not_meet(self):
        with tempfile.TemporaryDirectory(prefix="weir-nccl-") as folder:
            port = f"device=net_memif0;role=server;socket={folder}/memif.sock;socket-abstract=no,address=10.9.0.1"
            said = self.refused("--sizes=4", "--plugin_log", "--per_rank=WEIR_TRANSPORT=tcp|dpdk", environment={"WEIR_DPDK": port})
        self.assertIn("returned", said)


class Dpdk(Emulation):
    """Two ranks, each with a device of DPDK, memif, on a socket between them. It needs no privilege."""

    def ports(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-nccl-")
        self.addCleanup(folder.cleanup)
        each = [f"device=net_memif0;role={role};socket={folder.name}/memif.sock;socket-abstract=no,address=10.9.0.{number}"
                for number, role in enumerate(("server", "client"), 1)]
        return "--per_rank=WEIR_DPDK=" + "|".join(each)

    def test_every_collective_with_every_version(self):
        for version in range(6, 13):
            rows = self.rows(f"--abi=v{version}", "--channels=2", "--sizes=4,100K", "--rounds=2", "--cycles=2", "--slice_kb=16",
                             self.ports(), environment={"WEIR_TRANSPORT": "dpdk"})
            self.assertEqual(len(rows), 14, f"v{version}")

    def test_a_device_that_is_set_up_goes_before_all_else(self):
        done = emulate("--sizes=4", "--collectives=all-reduce", "--plugin_log", self.ports(), environment={"WEIR_TRANSPORT": "auto"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("devices net_memif0 (10.9.0.1)", done.stderr)

    def test_receives_posted_together(self):
        self.rows("--receives=3", "--sizes=4,100K", "--slice_kb=8", self.ports(),
                  environment={"WEIR_TRANSPORT": "dpdk", "WEIR_NCCL_RECEIVES": "3"})

    def test_a_killed_peer_is_noticed_within_the_bound(self):
        self.rows("--fault=kill", "--sizes=1M", "--collectives=all-reduce", self.ports(),
                  environment={"WEIR_TRANSPORT": "dpdk", "WEIR_NCCL_DEAD_AFTER_MS": "1000"})

    def test_aborts_in_flight_leave_nothing_behind(self):
        row = self.rows("--fault=abort", "--cycles=20", "--fault_ms=5", "--sizes=1M", "--collectives=all-reduce", self.ports(),
                        environment={"WEIR_TRANSPORT": "dpdk"})[0]
        self.assertEqual(row["descriptors_more"], 0)


@unittest.skipUnless("--profilers" in sys.argv, "--profilers is not given")
class OtherProfiler(Emulation):
    """WEIR_NCCL_PROFILER: another profiler is told what NCCL tells ours."""

    RANKS, CYCLES = 2, 2
    GROUP, COLLECTIVE, P2P, OP, STEP, NET, API = "1", "2", "4", "8", "16", "128", "256"

    def path(self, version):
        return os.path.join(PROFILERS, f"libnccl-profiler-test-v{version}.so")

    def chain(self, version, *flags, mask=0, fails="", name=None):
        """(what each rank's other profiler saw last, the emulator's notes and the plugin's log)"""
        with tempfile.TemporaryDirectory(prefix="weir-nccl-") as folder:
            report = os.path.join(folder, "other")
            done = emulate(f"--ranks={self.RANKS}", f"--cycles={self.CYCLES}", "--sizes=4,40K", "--slice_kb=16", "--output=table",
                           "--plugin_log", *flags,
                           environment={"WEIR_NCCL_REPORT": os.path.join(folder, "report"), "OTHER_PROFILER_FAILS": fails,
                                        "WEIR_NCCL_PROFILER": name or self.path(version), "OTHER_PROFILER_REPORT": report,
                                        "OTHER_PROFILER_MASK": str(mask)})
            self.assertEqual(done.returncode, 0, done.stderr)
            # Ours knows every transfer, whatever becomes of the other one.
            self.assertIn("right coflow (100.00 %)", done.stdout)
            lines = []
            if os.path.exists(report):
                with open(report, encoding="ascii") as file:
                    lines = [json.loads(line) for line in file]
        return [line for line in lines if line["communicators"] == self.CYCLES], done.stderr

    def check(self, version, fed, mask, wanted):
        """It was told of events of the types `wanted`, and of no others, each begun, ended, and below one that it knows."""
        seen, said = self.chain(version, f"--profiler=v{fed}", mask=mask)
        self.assertIn(f"Other ({self.path(version)}, v{version}) is told", said)
        self.assertEqual(len(seen), self.RANKS)
        for rank in seen:
            self.assertEqual(rank["wrong"], 0, (version, fed, rank))
            self.assertEqual({name for name in rank if name.isdigit()}, wanted, (version, fed))
            for name in wanted:
                begun, ended, orphans = rank[name]
                self.assertEqual(ended, begun, (version, fed, name))
                self.assertEqual(orphans, begun if name in (self.GROUP, self.API) else 0, (version, fed, name))
        return seen

    def test_it_is_told_what_it_asked_for_and_what_is_above(self):
        for version, fed in ((3, 3), (3, 4), (4, 4), (3, 5), (4, 5), (5, 5), (6, 5), (3, 6), (4, 6), (5, 6), (6, 6)):
            api = {self.API} if version > 4 else set()
            self.check(version, fed, 0x2, {self.GROUP, self.COLLECTIVE} | api)
            seen = self.check(version, fed, 0x10, {self.GROUP, self.COLLECTIVE, self.P2P, self.OP, self.STEP} | api)
            self.assertGreater(seen[0]["recorded"], 0)

    def test_events_of_our_network_are_not_for_others(self):
        self.check(6, 6, 0x80, {self.GROUP, self.COLLECTIVE, self.P2P, self.OP, self.STEP, self.API})

    def test_what_it_does_not_ask_for_it_is_not_told(self):
        for rank in self.chain(6, mask=0)[0]:
            self.assertFalse([name for name in rank if name.isdigit()], rank)

    def test_its_errors_stay_with_it(self):
        self.assertEqual(self.chain(5, mask=0x10, fails="init")[0], [])
        self.assertIn("refuses communicator", self.chain(5, mask=0x10, fails="init")[1])
        self.chain(5, mask=0x10, fails="events")

    def test_what_cannot_be_chained_is_said(self):
        for name, said in (("/nonexistent/lib.so", "cannot open shared object file"), (LIBRARY, "this is our own library"),
                           (self.path(6), "wanted one of ncclProfiler_v3 to _v4, there is v6")):
            self.assertIn(said, self.chain(6, "--profiler=v4", mask=2, name=name)[1])

    def test_the_doctor_says_what_would_be_chained(self):
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("WEIR_", "NCCL_", "LD_"))}
        for name, verdict, found in ((self.path(4), "good", "v4, is told too"), ("nothere", "advice", "libnccl-profiler-nothere.so")):
            done = subprocess.run([PERF, "nccl-doctor", "--output=json"], capture_output=True, text=True, check=False, timeout=60,
                                  env={**plain, "NCCL_SOCKET_IFNAME": "lo", "WEIR_TRANSPORT": "tcp", "NCCL_NET_PLUGIN": LIBRARY,
                                       "WEIR_NCCL_PROFILER": name})
            row = next(row for row in json.loads(done.stdout) if row["what"] == "WEIR_NCCL_PROFILER=" + name)
            self.assertEqual(row["verdict"], verdict)
            self.assertIn(found, row["found"])


class Managed(Emulation):
    """Under a real agent and a real coordinator; both ranks are on one host, whose connections are managed too."""

    ROUNDS = 1000000  # Until it is told to end.
    HOSTS = {"here": "127.0.0.1"}
    NIC = "10 Gbit/s"

    def setUp(self):
        self.folder = self.enter(tempfile.TemporaryDirectory(prefix="weir-nccl-"))
        topology = os.path.join(self.folder, "topology.toml")
        with open(topology, "w", encoding="ascii") as file:
            file.write('[[site]]\nname = "a"\n')
            for name, address in self.HOSTS.items():
                file.write(f'[[host]]\nname = "{name}"\nsite = "a"\naddresses = ["{address}"]\nnic = "{self.NIC}"\n')
        self.coordinator, found = self.run_until(r"listening agents=(\S+) http=(\S+)", "weir-coordinator", "--topology", topology,
                                                 "--plaintext", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
        self.agents_at, self.http_at = found.groups()
        self.agents = self.start_agents()

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def run_until(self, pattern, program, *flags):
        """Starts a program of ours and waits for a line of it."""
        process = subprocess.Popen([os.path.join(os.path.dirname(PERF), program), *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(self.end, process)
        found = re.search(pattern, process.stdout.readline())
        self.assertIsNotNone(found, f"{program} does not start")
        return process, found

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdout.close()

    def socket_of(self, host):
        return os.path.join(self.folder, f"{host}.sock")

    def start_agents(self):
        return [self.run_until(r"ready socket=", "weir-agent", "--host", host, "--coordinator", self.agents_at,
                               "--socket", self.socket_of(host), "--log", "off")[0] for host in self.HOSTS]

    def wire(self, _):
        """(flags, environment) of a job's ranks"""
        return [], {"WEIR_MANAGE_LOOPBACK": "1"}

    def start_job(self, *flags, name="test"):
        wire, environment = self.wire(name)
        process = start("--sizes=256K", "--collectives=all-reduce", f"--rounds={self.ROUNDS}", "--compute_ms=2", *wire, *flags,
                        "--agent_sockets=" + ",".join(self.socket_of(host) for host in self.HOSTS),
                        environment={"WEIR_JOB": name, **environment})
        self.addCleanup(process.kill)
        return process

    def job(self):
        """What the coordinator knows of it, or None."""
        with urllib.request.urlopen(f"http://{self.http_at}/v1/status", timeout=10) as answer:
            return next((job for job in json.load(answer)["jobs"] if job["name"] == "test"), None)

    def wait_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"not within 60 s; what the coordinator knows: {self.job()}")
            time.sleep(0.01)

    def check_end(self, process):
        process.terminate()
        done = finish(process)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)), 1)

    def knows(self, processes):
        job = self.job()
        return job is not None and job["processes"] == processes

    def learned(self):
        """Both ranks are there and several rounds were alike."""
        job = self.job()
        return job is not None and job["processes"] == 2 and job["profile"]["confidence"] > 0.5

    def test_the_coordinator_learns_the_iterations(self):
        process = self.start_job()
        self.wait_for(self.learned)
        self.check_end(process)
        self.wait_for(lambda: self.job() is None)

    def test_a_killed_agent_costs_nothing_and_the_next_one_is_found(self):
        process = self.start_job()
        self.wait_for(self.learned)
        for agent in self.agents:
            self.end(agent)
        self.wait_for(lambda: self.job() is None)
        self.agents = self.start_agents()
        self.wait_for(lambda: self.knows(2))
        self.check_end(process)

    def test_a_killed_coordinator_costs_nothing(self):
        process = self.start_job()
        self.wait_for(self.learned)
        self.end(self.coordinator)
        self.check_end(process)


class DpdkManaged(Managed):
    """The same over DPDK: two hosts with an agent each, as far as addresses go, and a wire of memif between them for each job. And
    what the agents say is done, on cards that are narrow."""

    HOSTS = {"one": "10.9.0.1", "two": "10.9.0.2"}
    NIC = "80 Mbit/s"
    BYTES_A_SECOND = 10_000_000

    def wire(self, name):
        ports = "|".join(f"device=net_memif0;role={role};socket={self.folder}/{name};socket-abstract=no,address={address}"
                         for role, address in zip(("server", "client"), self.HOSTS.values()))
        return ["--per_rank=WEIR_DPDK=" + ports], {"WEIR_TRANSPORT": "dpdk"}

    def lanes(self):
        """What the agents say of their lanes, by host and job."""
        found = {}
        for host in self.HOSTS:
            said = output_of(os.path.join(os.path.dirname(PERF), "weir-agent"), "status", "--output=json", "--socket",
                             self.socket_of(host))
            for process in json.loads(said)["processes"]:
                for lane in process["lanes"]:
                    found[host, process["job"]] = lane
        return found

    def test_jobs_that_share_a_card_are_capped_and_held(self):
        jobs = [self.start_job("--sizes=4M", name=name) for name in ("left", "right")]
        self.wait_for(lambda: len(self.lanes()) == 4 and all(lane["held_ms"] > 0 and lane["pacing_rate"] > 0
                                                             for lane in self.lanes().values()))
        begin, before = time.monotonic(), self.lanes()
        time.sleep(2)
        after = self.lanes()
        elapsed = time.monotonic() - begin
        for host in self.HOSTS:
            sent = sum(after[host, job]["bytes_sent"] - before[host, job]["bytes_sent"] for job in ("left", "right"))
            self.assertGreater(sent, 0)
            # Together not more than the card, but for what was given ahead when the turn changed.
            self.assertLess(sent, self.BYTES_A_SECOND * elapsed * 1.2, host)
        for job in jobs:
            self.check_end(job)


class Doctor(unittest.TestCase):
    """What it says of the environment."""

    def examine(self, **environment):
        """(exit code, rows)"""
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("WEIR_", "NCCL_", "LD_"))}
        done = subprocess.run([PERF, "nccl-doctor", "--output=json"], env={**plain, "NCCL_SOCKET_IFNAME": "lo", "WEIR_TRANSPORT": "tcp", **environment},
                              capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, json.loads(done.stdout)

    def missing(self, **environment):
        code, rows = self.examine(**environment)
        self.assertEqual(code, 1, rows)
        return next(row for row in rows if row["verdict"] == "missing")

    def test_each_nccl_takes_the_highest_that_it_knows(self):
        code, rows = self.examine(NCCL_NET_PLUGIN=LIBRARY)
        self.assertEqual(code, 0, rows)
        taken = {row["what"]: re.match(r"net v(\d+), (?:no profiler|profiler v(\d))", row["found"]).groups()
                 for row in rows if row["backend"] == "versions"}
        self.assertEqual(taken, {"NCCL 2.18": ("6", None), "NCCL 2.19": ("7", None), "NCCL 2.20 to 2.22": ("8", None),
                                 "NCCL 2.23": ("8", None), "NCCL 2.24, 2.25": ("9", None), "NCCL 2.26": ("10", "3"),
                                 "NCCL 2.27": ("10", "4"), "NCCL 2.28": ("11", "5"), "NCCL 2.29": ("11", "6"),
                                 "NCCL 2.30": ("12", "6")})
        self.assertTrue(any(row["what"] == "device lo" for row in rows), rows)
        self.assertEqual([row["found"] for row in rows if row["what"] == "transport"], ["tcp"])

    def test_a_name_is_looked_for_as_nccl_does(self):
        self.assertEqual(self.examine(NCCL_NET_PLUGIN="weir", LD_LIBRARY_PATH=os.path.dirname(LIBRARY))[0], 0)
        self.assertEqual(self.examine(NCCL_NET_PLUGIN="nothere,weir", LD_LIBRARY_PATH=os.path.dirname(LIBRARY))[0], 1)

    def test_what_is_not_found_is_said_with_what_to_do(self):
        row = self.missing(NCCL_NET_PLUGIN="weir")
        self.assertIn("tries weir, libnccl-net-weir.so", row["found"])
        self.assertIn("LD_LIBRARY_PATH", row["advice"])
        self.assertIn("tries libnccl-net.so", self.missing()["found"])
        self.assertIn("loads no plugin", self.missing(NCCL_NET_PLUGIN="none")["found"])
        self.assertIn("the program itself", self.missing(NCCL_NET_PLUGIN="Stat")["found"])

    def test_what_keeps_the_plugin_from_use_is_named(self):
        self.assertIn("of this name", self.missing(NCCL_NET_PLUGIN=LIBRARY, NCCL_NET="Socket")["found"])
        self.assertIn("WEIR_DISABLE", self.missing(NCCL_NET_PLUGIN=LIBRARY, WEIR_DISABLE="1")["found"])
        self.assertIn("nothere0", self.missing(NCCL_NET_PLUGIN=LIBRARY, NCCL_SOCKET_IFNAME="=nothere0")["found"])

    def test_the_agent_is_looked_for(self):
        _, rows = self.examine(NCCL_NET_PLUGIN=LIBRARY, WEIR_JOB="test", WEIR_AGENT_SOCKET="/nonexistent/agent.sock")
        found = {row["what"]: row for row in rows if row["backend"] == "agent"}
        self.assertEqual(found["WEIR_JOB"]["verdict"], "good")
        self.assertIn("nobody listens at /nonexistent/agent.sock", found["agent"]["found"])

    def test_without_a_profiler_it_says_how_coflows_are_known(self):
        _, rows = self.examine(NCCL_NET_PLUGIN=LIBRARY, NCCL_PROFILER_PLUGIN="none")
        found = {row["what"]: row["found"] for row in rows if row["backend"] == "versions"}
        self.assertIn("known by what NCCL says of operations", found["NCCL 2.30"])
        self.assertIn("known by pauses", found["NCCL 2.27"])


class Configuration(Emulation):
    def test_disabled_leaves_nccl_to_its_own(self):
        self.assertIn("init returned 5", self.refused("--sizes=4", environment={"WEIR_DISABLE": "1"}))

    def test_disabled_before_v11_says_that_there_is_no_device(self):
        self.assertIn("no device", self.refused("--sizes=4", "--abi=v9", environment={"WEIR_DISABLE": "1"}))

    def test_a_wrong_value_is_named_with_what_is_allowed(self):
        for name, value, allowed in (("WEIR_NCCL_STREAMS", "17", "1 to 16"), ("WEIR_NCCL_RECEIVES", "x", "1 to 8"),
                                     ("WEIR_TRANSPORT", "smoke", "auto, tcp, rdma, dpdk"), ("WEIR_NCCL_HOLD_MAX_MS", "0", "1 to 60000"),
                                     ("WEIR_NCCL_CLASS_FROM", "me", "directive, application, environment")):
            said = self.refused("--sizes=4", "--plugin_log", environment={name: value})
            self.assertIn(f'{name}: found "{value}", allowed: {allowed}', said)

    def test_an_interface_that_is_not_there_is_named(self):
        said = self.refused("--sizes=4", "--plugin_log", environment={"NCCL_SOCKET_IFNAME": "=nothere0"})
        self.assertRegex(said, "NCCL_SOCKET_IFNAME.*nothere0.*there are: lo")
        said = self.refused("--sizes=4", "--plugin_log", environment={"NCCL_SOCKET_FAMILY": "AF_INET7"})
        self.assertRegex(said, 'NCCL_SOCKET_FAMILY.*found "AF_INET7", allowed: AF_INET, AF_INET6.*NCCL goes on without us')

    def test_what_would_mislead_the_agent_is_named_and_the_job_goes_on_unmanaged(self):
        for name, value, said in (("WEIR_CLASS", "gold", 'job class "gold" is not known; allowed: guaranteed, best-effort, scavenger'),
                                  ("WEIR_WEIGHT", "2kg", 'found "2kg", allowed: 0 to 1000000'),
                                  ("WEIR_WEIGHT", "nan", 'found "nan", allowed: 0 to 1000000'),
                                  ("WEIR_GPUS", "-1", 'found "-1", allowed: 0 to 1000000'),
                                  ("WEIR_JOB", "j" * 128, "found 128 bytes, allowed: at most 127"),
                                  ("WEIR_TENANT", "t" * 64, "found 64 bytes, allowed: at most 63"),
                                  ("WEIR_AGENT_SOCKET", "/" * 108, "found 108 bytes, allowed: at most 107")):
            done = emulate("--sizes=4", "--collectives=all-reduce", "--plugin_log", environment={"WEIR_JOB": "j", name: value})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{name}: {said}; until that is mended this process is not managed", done.stderr)
        self.rows("--sizes=4", "--collectives=all-reduce", environment={"WEIR_JOB": "", "MASTER_ADDR": "", "WEIR_CLASS": "gold"})

    def test_a_variable_that_is_not_ours_by_a_slip_is_named(self):
        done = emulate("--sizes=4", "--collectives=all-reduce", "--plugin_log", environment={"WEIR_NCCL_RECIEVES": "2"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "WEIR_NCCL_RECIEVES is not read; those that begin so are .*WEIR_NCCL_RECEIVES")

    def test_a_report_that_cannot_be_written_says_why_and_the_job_ends_well(self):
        done = emulate("--sizes=4", "--collectives=all-reduce", "--plugin_log", environment={"WEIR_NCCL_REPORT": "/nothere/report"})
        self.assertRegex(done.stderr, "WEIR_NCCL_REPORT: cannot write /nothere/report.*No such file or directory; name a file")

    def test_a_job_without_an_agent_says_so_once_and_goes_on(self):
        for path in ("/nothere/agent.sock", "/etc/passwd"):
            done = emulate("--sizes=64K", "--collectives=all-reduce", "--rounds=30", "--compute_ms=50", "--plugin_log",
                           environment={"WEIR_JOB": "j", "WEIR_MANAGE_LOOPBACK": "1", "WEIR_AGENT_SOCKET": path})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count(f"no agent answers at {path}: not managed until one does"), 2, done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--perf", required=True)
    parser.add_argument("--profilers", help="folder with libnccl-profiler-test-vN.so, for the group OtherProfiler")
    args, rest = parser.parse_known_args()
    LIBRARY, PERF, PROFILERS = os.path.abspath(args.library), args.perf, args.profilers
    unittest.main(argv=[sys.argv[0], *rest])
