#!/usr/bin/python3
"""libnccl-net-weir.so over RDMA, driven by weir-perf nccl-emulate in a machine that has two Soft-RoCE devices.

All in one machine, as it takes seconds to start: every collective with every version of NCCL's interface, 2 to 4 ranks on the two
ends of the cable by turns; then faults. With --many 8 and 16 ranks. Bytes are compared by the emulator, and how many collectives it saw is checked here.

Example: rdma_vm_test.py --library build/release/lib/libnccl-net-weir.so --perf build/release/bin/weir-perf
"""
import argparse
import json
import os
import subprocess
import sys

VM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "vm", "vm")
COLLECTIVES = 7
SIZES = "4,40K"
DEVICES = "--per_rank='NCCL_IB_HCA==rxe0|=rxe1'"


def commands():
    """Lines of a shell script, each with what it must print: a number of rows, or a text."""
    # More ranks than cores, on an emulated processor: they sleep where NCCL would spin.
    run = "weir-perf nccl-emulate --plugin /w/bin/libnccl-net-weir.so --output json --channels=1 --idle_us=200"
    for version in range(6, 13):
        for ranks in (2, 3, 4):
            yield f"{run} {DEVICES} --abi=v{version} --ranks={ranks} --rounds=1 --slice_kb=8 --sizes={SIZES}", COLLECTIVES * 2
    yield f"WEIR_NCCL_RECEIVES=3 {run} {DEVICES} --receives=3 --ranks=3 --rounds=1 --slice_kb=8 --sizes={SIZES}", COLLECTIVES * 2
    # Host memory stands for that of a GPU: the flush itself is the same.
    flush = f"{run} --flush --rounds=2 --slice_kb=8 --sizes={SIZES}"
    for version in (6, 8, 12):
        yield f"{flush} {DEVICES} --abi=v{version} --ranks=3", COLLECTIVES * 2
    yield f"WEIR_NCCL_RECEIVES=3 {flush} {DEVICES} --receives=3 --ranks=3 --collectives=all-to-all,send-receive", 2 * 2
    yield f"{run} {DEVICES} --flush --fault=abort --cycles=5 --fault_ms=20 --sizes=256K --collectives=all-reduce", 1
    yield f"{run} {DEVICES} --flush --fault=kill --ranks=3 --sizes=256K --collectives=all-reduce", 1
    yield f"{run} {DEVICES} --fault=kill --ranks=3 --sizes=256K --collectives=all-reduce", 1
    yield f"{run} {DEVICES} --fault=abort --cycles=10 --fault_ms=20 --sizes=256K --collectives=all-reduce", 1
    short = f"{run} --sizes=4 --collectives=all-reduce --plugin_log 2>&1"
    yield f"{short}", "transport rdma, devices rxe0:1 (10.77.0.1), rxe1:1 (10.77.0.2)"
    yield f"NCCL_IB_HCA=^rxe0 {short}", "transport rdma, devices rxe1:1 (10.77.0.2)"
    yield f"NCCL_IB_DISABLE=1 NCCL_SOCKET_IFNAME=lo {short}", "transport tcp, devices lo"
    yield f"WEIR_TRANSPORT=tcp NCCL_SOCKET_IFNAME=lo {short}", "transport tcp, devices lo"


def many():
    """Far more ranks than the machine has cores."""
    run = "weir-perf nccl-emulate --plugin /w/bin/libnccl-net-weir.so --output json --channels=1 --idle_us=200"
    for ranks in (8, 16):
        yield f"{run} {DEVICES} --ranks={ranks} --rounds=1 --slice_kb=8 --sizes={SIZES}", COLLECTIVES * 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--perf", required=True)
    parser.add_argument("--many", action="store_true", help="8 and 16 ranks instead of 2 to 4 and faults")
    args = parser.parse_args()
    wanted = list(many() if args.many else commands())
    script = "".join(f"{line}; echo status $?;" for line, _ in wanted)
    memory = ["--memory_mb=4096"] if args.many else []  # 16 ranks, each with buffers for every other.
    done = subprocess.run([VM, "--timeout=560", *memory, args.perf, args.library, "--", "sh", "-c", script], capture_output=True, text=True,
                          check=False)
    parts = done.stdout.split("status ")
    statuses = [part.split("\n", 1)[0] for part in parts[1:]]
    texts = [parts[0]] + [part.split("\n", 1)[1] for part in parts[1:]]
    for number, (line, expected) in enumerate(wanted):
        if number >= len(statuses):
            sys.exit(f"the machine ended before: {line}\n{done.stdout[-2000:]}\n{done.stderr}")
        said = texts[number]
        good = statuses[number].strip() == "0" and (
            expected in said if isinstance(expected, str) else len(json.loads(said)) == expected)
        if not good:
            sys.exit(f"expected status 0 and {expected!r}, found {statuses[number]} and {said[-2000:]!r}: {line}")
    print(f"{len(wanted)} runs, as expected")


if __name__ == "__main__":
    main()
