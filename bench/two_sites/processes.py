"""Starting, watching and ending the processes of a run: the training jobs, and Weir's own."""
import json
import os
import re
import signal
import subprocess
import time

from fabric import netns
from two_sites import machine
from two_sites.errors import ExperimentError

JOB_PYTHON = "/usr/bin/python3"  # Debian's, which has python3-torch
MASTER_PORT = 29500              # inside a namespace of its own, so it is always free
READY_WITHIN_S = 90
NICE = -15  # for jobs and Weir alike: what else the machine does should not be what is measured


def tail(path, lines=12):
    try:
        with open(path, errors="replace") as text:
            return "".join(text.readlines()[-lines:]).strip()
    except OSError:
        return ""


def start(namespace, argv, log_base, environment=None):
    """A process inside the namespace, with output in LOG_BASE.out and LOG_BASE.err, in a session of its own so that
    a Ctrl-C at the terminal reaches only the experiment, which then ends everything in order."""
    with open(log_base + ".out", "w") as out, open(log_base + ".err", "w") as err:
        process = netns.popen(namespace, argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                              env=environment, start_new_session=True)
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    except PermissionError:
        pass  # in a user namespace; the run is valid, only less quiet
    return process


def end(processes, grace_s=3.0):
    """SIGTERM to all, SIGKILL to those that stay."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
    deadline = time.monotonic() + grace_s
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class JobProcesses:
    """All ranks of one training job. The scripts do not know of Weir: only environment variables differ."""

    def __init__(self, job, hosts, fabric, run_dir, extra_environment=None, extra_arguments=()):
        """extra_environment: host name -> variables to add for the rank there."""
        self.job, self.hosts = job, hosts
        self._start_file = os.path.join(run_dir, f"{job.name}.start")
        self._logs = [os.path.join(run_dir, f"{job.name}.{rank}") for rank in range(len(hosts))]
        self.processes = []
        for rank, host in enumerate(hosts):
            environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                           "GLOO_SOCKET_IFNAME": "eth0", "TP_SOCKET_IFNAME": "eth0",
                           "RANK": str(rank), "WORLD_SIZE": str(len(hosts)),
                           "MASTER_ADDR": fabric.address(hosts[0]), "MASTER_PORT": str(MASTER_PORT)}
            environment.update(extra_environment(host, job) if extra_environment else {})
            argv = [JOB_PYTHON, *job.script_arguments(), "--start-file", self._start_file, *extra_arguments]
            self.processes.append(start(fabric.namespace(host), argv, self._logs[rank], environment))

    def records(self, rank=None):
        """The JSON lines written so far, by one rank or by all."""
        found = []
        for number, log in enumerate(self._logs):
            if rank is not None and rank != number:
                continue
            with open(log + ".out") as text:
                # The last line may be half written when a rank is ended.
                found += [json.loads(line) for line in text if line.endswith("\n") and line.startswith("{")]
        return found

    def iterations(self):
        """The iteration records of the rank that reports, in order."""
        return [r for r in self.records() if "iteration" in r]

    def is_ready(self):
        self.check_alive()
        return sum(r.get("event") == "ready" for r in self.records()) == len(self.hosts)

    def check_alive(self):
        for rank, process in enumerate(self.processes):
            if process.poll() not in (None, 0):
                raise ExperimentError(f"rank {rank} of job {self.job.name} ended with {process.returncode}:\n"
                                      f"{tail(self._logs[rank] + '.err')}")

    def begin_at(self, monotonic_s):
        with open(self._start_file + ".new", "w") as out:
            out.write(repr(monotonic_s))
        os.rename(self._start_file + ".new", self._start_file)

    def end(self):
        end(self.processes, grace_s=2.0)


def wait_until_ready(jobs):
    deadline = time.monotonic() + READY_WITHIN_S
    while not all([job.is_ready() for job in jobs]):
        if time.monotonic() > deadline:
            late = [job.job.name for job in jobs if not job.is_ready()]
            raise ExperimentError(f"job {', '.join(late)} was not ready within {READY_WITHIN_S} s")
        time.sleep(0.05)


class WeirStack:
    """A coordinator in the fabric's `mgmt` place and an agent on every host. Single-threaded use."""

    def __init__(self, fabric, build_dir, run_dir, guaranteed=()):
        self.fabric, self.run_dir, self.guaranteed = fabric, run_dir, set(guaranteed)
        self._binaries = {name: os.path.join(build_dir, "bin", name) for name in ("weir-coordinator", "weir-agent")}
        self.preload = os.path.join(build_dir, "lib", "libweir-preload.so")
        self.coordinator, self.agents = None, {}
        self.agents_at, self.http_at = "10.98.0.1:0", "10.98.0.1:0"
        self._topology = os.path.join(run_dir, "topology.toml")
        with open(self._topology, "w") as out:
            out.write(fabric.topology_toml())

    def start(self):
        self.start_coordinator()
        for host in self.fabric.host_names():
            self.start_agent(host, wait=False)
        for host in self.agents:
            self._wait_for_line(host, self.agents[host], r"ready socket=(\S+)")

    def start_coordinator(self):
        """Also restarts one, at the address it had."""
        argv = [self._binaries["weir-coordinator"], "--topology", self._topology, "--plaintext",
                "--listen", self.agents_at, "--http", self.http_at]
        self.coordinator = start(self.fabric.namespace("mgmt"), argv, os.path.join(self.run_dir, "coordinator"))
        found = self._wait_for_line("coordinator", self.coordinator, r"listening agents=(\S+) http=(\S+)")
        self.agents_at, self.http_at = found.group(1), found.group(2)

    def start_agent(self, host, wait=True):
        argv = [self._binaries["weir-agent"], "--host", host, "--coordinator", self.agents_at,
                "--socket", self.socket(host)]
        self.agents[host] = start(self.fabric.namespace(host), argv, os.path.join(self.run_dir, host))
        if wait:
            self._wait_for_line(host, self.agents[host], r"ready socket=(\S+)")

    def socket(self, host):
        return os.path.join(self.run_dir, f"{host}.sock")

    def environment(self, host, job):
        """What makes a training process managed; nothing else differs from a plain run."""
        variables = {"LD_PRELOAD": self.preload, "WEIR_AGENT_SOCKET": self.socket(host), "WEIR_JOB": job.name}
        if job.name in self.guaranteed:
            variables["WEIR_CLASS"] = "guaranteed"
        return variables

    def status(self):
        """The coordinator's GET /v1/status as a dictionary, or None when it does not answer."""
        return netns.call(self.fabric.namespace("mgmt"), _get_json, f"http://{self.http_at}/v1/status")

    def agent_status(self, host):
        done = subprocess.run([self._binaries["weir-agent"], "status", "--socket", self.socket(host), "--output", "json"],
                              capture_output=True, text=True, timeout=5)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def cpu_s(self):
        """CPU seconds used so far by {"coordinator", "agents"}."""
        return {"coordinator": machine.process_cpu_s(self.coordinator.pid),
                "agents": sum(machine.process_cpu_s(agent.pid) for agent in self.agents.values())}

    def check_alive(self):
        for name, process in [("coordinator", self.coordinator), *self.agents.items()]:
            if process.poll() is not None:
                raise ExperimentError(f"{name} ended with {process.returncode}:\n"
                                      f"{tail(os.path.join(self.run_dir, name + '.err'))}")

    def end(self):
        end([process for process in [*self.agents.values(), self.coordinator] if process])

    def _wait_for_line(self, name, process, pattern, within_s=15):
        deadline = time.monotonic() + within_s
        path = os.path.join(self.run_dir, name + ".out")
        while time.monotonic() < deadline:
            with open(path, errors="replace") as text:
                found = re.search(pattern, text.read())
            if found:
                return found
            if process.poll() is not None:
                break
            time.sleep(0.02)
        raise ExperimentError(f"{name} did not become ready (no line '{pattern}'):\n"
                              f"{tail(os.path.join(self.run_dir, name + '.err'))}")


def _get_json(url):
    import urllib.request
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return None


def missing_parts(build_dir, needs_weir):
    """A message for people when something the experiment needs is not there, else None."""
    if subprocess.run([JOB_PYTHON, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]).returncode:
        return f"the training jobs need torch for {JOB_PYTHON}: apt-get install --no-install-recommends python3-torch"
    if needs_weir:
        for part in ("bin/weir-coordinator", "bin/weir-agent", "lib/libweir-preload.so"):
            if not os.path.exists(os.path.join(build_dir, part)):
                return (f"{os.path.join(build_dir, part)} is not there: build Weir first with tools/build, "
                        "or name another build folder with --build")
    return None
