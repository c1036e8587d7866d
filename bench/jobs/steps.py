"""What all training jobs here have in common: when to begin, how many iterations to run, one line of JSON for each.

Nothing in a job knows of Weir. Time stamps are CLOCK_MONOTONIC seconds, the same for all processes of the machine.
"""
import json
import os
import time


def add_arguments(parser):
    parser.add_argument("--job", default="job", help="name printed with every line")
    parser.add_argument("--compute-ms", type=float, default=200, help="compute of one iteration; a sleep stands in for it")
    parser.add_argument("--iterations", type=int, default=0, help="stop after this many; 0 = run until a signal ends it")
    parser.add_argument("--start-file", default="",
                        help="when connected, wait for this file and begin at the monotonic time in it")


def say(**fields):
    print(json.dumps(fields), flush=True)


def wait_for_start(args, rank):
    """Tells that this rank is connected and, when asked to, waits so that all jobs begin at a common time."""
    say(event="ready", job=args.job, rank=rank)
    if not args.start_file:
        return
    while not os.path.exists(args.start_file):
        time.sleep(0.02)
    with open(args.start_file) as text:
        time.sleep(max(0.0, float(text.read()) - time.monotonic()))


def iterations(args):
    number = 0
    while args.iterations == 0 or number < args.iterations:
        yield number
        number += 1
