#!/usr/bin/python3
"""The emulated network leaves nothing behind: after down, after SIGTERM, and after SIGKILL followed by down --all-stale."""
import os
import signal
import subprocess
import sys

import e2e
from fabric import fabric as fabric_module
from fabric import netns

TOOL = os.path.join(e2e.ROOT, "bench", "fabric", "fabric.py")
# A stand-in for an experiment: builds a network, starts a process in it, says so, and waits to be ended.
HOLDER = """
import signal, sys, time
sys.path.insert(0, sys.argv[1])
from fabric import netns
from fabric.fabric import Fabric
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
fabric = Fabric(sys.argv[2], (2, 1))
try:
    fabric.up()
    print(netns.popen(fabric.namespace("east1"), ["sleep", "1000"], start_new_session=True).pid, flush=True)
    time.sleep(1000)
finally:
    fabric.down()
"""


def namespaces(prefix):
    return [n for n in os.listdir(netns.NETNS_DIR) if n.startswith(prefix + "-")] if os.path.isdir(netns.NETNS_DIR) else []


def hold(prefix):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, os.path.join(e2e.ROOT, "bench"), prefix],
                              stdout=subprocess.PIPE, text=True)
    inner = int(holder.stdout.readline())
    e2e.check(len(namespaces(prefix)) == 6, f"expected 6 namespaces, found {namespaces(prefix)}")
    return holder, inner


def check_nothing_left(prefix, inner=None):
    e2e.check(namespaces(prefix) == [], f"left behind: {namespaces(prefix)}")
    e2e.check(not any(state["prefix"] == prefix for state in fabric_module.states()), "the state file is left behind")
    if inner:
        e2e.wait_until("the process inside has ended", lambda: not alive(inner), 1)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as text:
            return text.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def up_and_down(prefix):
    subprocess.run([TOOL, "up", "--prefix", prefix, "--hosts", "1"], check=True, capture_output=True)
    reach = subprocess.run([TOOL, "exec", "--prefix", prefix, "east0", sys.executable, "-c",
                            "import socket; s = socket.socket(); s.settimeout(3);\n"
                            "try: s.connect(('10.201.0.10', 9))\nexcept ConnectionRefusedError: print('refused')"],
                           capture_output=True, text=True)
    e2e.check(reach.stdout.strip() == "refused", f"east0 cannot reach west0: {reach.stdout}{reach.stderr}")
    subprocess.run([TOOL, "down", "--prefix", prefix], check=True, capture_output=True)
    check_nothing_left(prefix)


def ended_in_order(prefix):
    holder, inner = hold(prefix)
    holder.send_signal(signal.SIGTERM)
    holder.wait(10)
    check_nothing_left(prefix, inner)


def killed(prefix):
    holder, inner = hold(prefix)
    holder.kill()
    holder.wait()
    e2e.check(alive(inner), "the test wants a process that outlives its owner")
    subprocess.run([TOOL, "down", "--all-stale"], check=True, capture_output=True)
    check_nothing_left(prefix, inner)


def experiment_interrupted(prefix):
    """The experiment itself, ended while its jobs are starting."""
    command = [os.path.join(e2e.ROOT, "bench", "two-sites"), "--schemes", "bbr", "--runs", "1", "--seconds", "5"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    running.stderr.readline()
    own = f"wt{running.pid}"
    e2e.wait_until("its namespaces are there", lambda: len(namespaces(own)) == 9, 10)
    e2e.wait_until("its jobs run", lambda: netns.processes_in(f"{own}-east0"), 10)
    running.send_signal(signal.SIGTERM)
    e2e.check(running.wait(15) == 143, f"two-sites ended with {running.returncode}, expected 143")
    running.stderr.close()
    check_nothing_left(own)


def test(_):
    for case in (up_and_down, ended_in_order, killed, experiment_interrupted):
        print(f"{case.__name__}:", flush=True)
        case(f"wc{os.getpid()}")


if __name__ == "__main__":
    e2e.main(test, needs_weir=False)
