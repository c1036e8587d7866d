#!/usr/bin/python3
"""A program of somebody else must give the same results under the preload library: with no agent to be found, and while an
agent opens and closes its gates all the time. Exit 0 passed, 1 failed, 77 skipped.

Example: preload_safety.py --case zmq --library build/release/lib/libweir-preload.so --agent build/release/tests/gate_flipper
"""
import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
PYTHON = "/usr/bin/python3"
NEEDS = {"mpi": ["mpicc", "mpirun"], "zmq": [], "grpc": [], "curl": ["curl"], "iperf3": ["iperf3"]}
MODULES = {"zmq": "zmq", "grpc": "grpc"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(command, environment, within_s=50):
    """Standard output of `command`, which must succeed and say nothing of ours on standard error."""
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=within_s, check=False)
    if result.returncode != 0 or "weir-preload" in result.stderr:
        raise AssertionError(f"{command[0]} ended with {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout


def run_mpi(environment, directory):
    program = os.path.join(directory, "exchange")
    if not os.path.exists(program):
        subprocess.run(["mpicc", "-O1", os.path.join(HERE, "exchange.c"), "-o", program], check=True)
    forwarded = [word for name in environment if name == "LD_PRELOAD" or name.startswith("WEIR_") for word in ("-x", name)]
    launcher = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    if "LD_PRELOAD" in environment:
        forwarded[forwarded.index("LD_PRELOAD")] = "LD_PRELOAD=" + environment["LD_PRELOAD"]
    return run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", "--mca", "pml", "ob1", "--mca", "btl",
                "tcp,self", "--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo",
                "--mca", "mpi_yield_when_idle", "1", *forwarded, program], launcher)


def run_zmq(environment, _):
    return run([PYTHON, os.path.join(HERE, "zmq_exchange.py")], environment)


def run_grpc(environment, _):
    return run([PYTHON, os.path.join(HERE, "grpc_exchange.py")], environment)


def run_curl(environment, directory):
    with subprocess.Popen([PYTHON, os.path.join(HERE, "http_echo.py")], env=environment, stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
            payload = os.path.join(directory, "payload")
            with open(payload, "wb") as file:
                file.write(bytes(range(256)) * 131072)
            digest = run(["curl", "--silent", "--fail", "--data-binary", "@" + payload, url + "digest"], environment)
            back = os.path.join(directory, "back")
            run(["curl", "--silent", "--fail", "--output", back, url + "pattern"], environment)
            return digest + run(["sha256sum", back], environment).split()[0]
        finally:
            server.kill()


def run_iperf3(environment, _):
    port = str(free_port())
    with subprocess.Popen(["iperf3", "--server", "--one-off", "--forceflush", "--port", port], env=environment,
                          stdout=subprocess.PIPE, text=True) as server:
        try:
            while "listening" not in server.stdout.readline():
                pass
            run(["iperf3", "--client", "127.0.0.1", "--port", port, "--bytes", "200M", "--parallel", "3"], environment)
            server.stdout.read()
            return f"server ended with {server.wait(timeout=20)}\n"
        finally:
            server.kill()


RUNNERS = {"mpi": run_mpi, "zmq": run_zmq, "grpc": run_grpc, "curl": run_curl, "iperf3": run_iperf3}


def missing(case):
    for program in NEEDS[case]:
        if shutil.which(program) is None:
            return f"{program} is not installed; tools/test installs it"
    module = MODULES.get(case)
    if module and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
        return f"the Python module {module} is not installed; tools/test installs it"
    return None


def check_case(case, library, agent, directory):
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("WEIR_")}
    preload = {**plain, "LD_PRELOAD": os.path.abspath(library), "WEIR_JOB": case, "WEIR_MANAGE_LOOPBACK": "1",
               "WEIR_AGENT_SOCKET": os.path.join(directory, "nobody.sock")}
    runner = RUNNERS[case]
    expected = runner(plain, directory)
    print(f"plain: {expected.strip()}", flush=True)
    assert runner(preload, directory) == expected, "with the library and no agent the result is another"
    flipper = subprocess.Popen([agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        preload["WEIR_AGENT_SOCKET"] = flipper.stdout.readline().strip()
        assert runner(preload, directory) == expected, "while gates flip the result is another"
    finally:
        report = flipper.communicate()[0].strip()
    print(f"gates: {report}", flush=True)
    counts = dict(word.split("=") for word in report.split())
    assert int(counts["attached"]) > 0 and int(counts["held"]) > 0, "nothing was held: this proved nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", required=True, choices=sorted(RUNNERS))
    parser.add_argument("--library", required=True)
    parser.add_argument("--agent", required=True)
    args = parser.parse_args()
    reason = missing(args.case)
    if reason:
        print("skipped:", reason)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="weir-preload-safety-") as directory:
        try:
            check_case(args.case, args.library, args.agent, directory)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print("failed:", error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
