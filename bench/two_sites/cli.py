"""The command line of bench/two-sites."""
import argparse
import json
import os
import shutil
import signal
import sys

from fabric.fabric import FabricError
from two_sites import mixes, processes, report, table
from two_sites.errors import ExperimentError, UsageError
from two_sites.experiment import SCHEMES, Experiment
from two_sites.runner import MachinePaused

ROOT = os.path.dirname(mixes.BENCH_DIR)
_INSIDE = "TWO_SITES_INSIDE"  # set once we have moved into namespaces of our own

ABOUT = """Measures real PyTorch jobs in two emulated data centres that share one 100 Mbit/s link: plain TCP against Weir.

example:
  bench/two-sites --mix three-equal --schemes bbr,cubic,weir --seconds 30 --runs 3 --json out.json --html out.html

Needs Debian's python3-torch and iproute2, and either root or permission to make user namespaces. A run of one mix with
the defaults takes about eight minutes and prints what it is doing. docs/experiment.md explains what is measured."""


def parse(argv):
    parser = argparse.ArgumentParser(prog="bench/two-sites", description=ABOUT,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mix", default="three-equal", help="which jobs run beside each other; --list shows all")
    parser.add_argument("--mix-file", metavar="FILE", help="a mix of your own instead of --mix")
    parser.add_argument("--schemes", default="bbr,cubic,weir", help=f"of {', '.join(SCHEMES)} (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="measured time of a run, after its warm-up")
    parser.add_argument("--runs", type=int, default=3, help="runs of each scheme, alternately")
    parser.add_argument("--json", metavar="FILE", help="write everything that was measured; - is stdout")
    parser.add_argument("--html", metavar="FILE", help="write a report to look at: one file, opens anywhere")
    parser.add_argument("--guaranteed", action="append", default=[], metavar="JOB",
                        help="this job has Weir's guaranteed class (may be repeated)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), metavar="DIR")
    parser.add_argument("--wan", type=float, default=100, metavar="MBIT", help="rate of the link between the sites")
    parser.add_argument("--nic", type=float, default=200, metavar="MBIT", help="rate of every host's network card")
    parser.add_argument("--delay", type=float, default=0, metavar="MS", help="one-way delay of the link between the sites")
    parser.add_argument("--weir-cc", metavar="NAME", help="congestion control under Weir (default: the system's)")
    parser.add_argument("--list", action="store_true", help="list the mixes and end")
    parser.add_argument("--keep", action="store_true", help="keep the logs of every process under /tmp")
    parser.add_argument("--quiet", action="store_true", help="no progress lines")
    args = parser.parse_args(argv)
    args.schemes = list(dict.fromkeys(s for s in args.schemes.split(",") if s))
    unknown = [s for s in args.schemes if s not in SCHEMES]
    if unknown or not args.schemes:
        raise UsageError(f"no scheme is called '{''.join(unknown[:1])}'; there are: {', '.join(SCHEMES)}")
    for name, low in (("seconds", 2), ("runs", 1), ("wan", 1), ("nic", 1), ("delay", 0)):
        if getattr(args, name) < low:
            raise UsageError(f"--{name} {getattr(args, name):g} is too small: {low} at least")
    args.guaranteed, args.build = tuple(args.guaranteed), os.path.abspath(args.build)
    return args


def list_mixes():
    for name in mixes.known():
        mix = mixes.load(name)
        print(f"{name:18} {mix.about}")
        for job in mix.jobs:
            stay = f", from {job.arrive:g} s" if job.arrive else ""
            stay += f" to {job.leave:g} s" if job.leave is not None else ""
            print(f"{'':18}   {job.name}: {job.describe()}{stay}")


def become_root_in_user_namespace(argv):
    """Without root, do the same inside user, network and mount namespaces of our own, where allowed."""
    if os.environ.get(_INSIDE):
        raise ExperimentError("no root inside the user namespace; run as root instead")
    allowed = shutil.which("unshare") and os.system(
        "unshare --user --map-root-user --net --mount true >/dev/null 2>&1") == 0
    if not allowed:
        raise ExperimentError("this needs network namespaces: run it as root, or allow user namespaces "
                              "(sysctl kernel.unprivileged_userns_clone=1)")
    script = 'mount -t tmpfs tmpfs /run && exec "$0" "$@"'
    os.environ[_INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--net", "--mount",
                          "sh", "-c", script, os.path.join(mixes.BENCH_DIR, "two-sites"), *argv])


def _check_outputs(args):
    """Before minutes are spent, not after."""
    for path in (args.json, args.html):
        folder = os.path.dirname(os.path.abspath(path)) if path and path != "-" else None
        if folder and not os.access(folder, os.W_OK):
            raise UsageError(f"cannot write {path}: {folder} is not a folder that we may write to")


def run(argv):
    args = parse(argv)
    if args.list:
        list_mixes()
        return
    mix = mixes.load_file(args.mix_file) if args.mix_file else mixes.load(args.mix)
    strangers = set(args.guaranteed) - {job.name for job in mix.jobs}
    if strangers:
        raise UsageError(f"--guaranteed {sorted(strangers)[0]}: mix {mix.name} has the jobs "
                         f"{', '.join(job.name for job in mix.jobs)}")
    late = [job.name for job in mix.jobs if job.arrive >= args.seconds or (job.leave or 0) > args.seconds]
    if late:
        raise UsageError(f"--seconds {args.seconds:g} is too short: job {late[0]} arrives or leaves after that")
    _check_outputs(args)
    missing = processes.missing_parts(args.build, any(s.startswith("weir") for s in args.schemes))
    if missing:
        raise ExperimentError(missing)
    if os.geteuid() != 0:
        become_root_in_user_namespace(argv)
    document = Experiment(mix, args).run()
    write_results(document, args)


def write_results(document, args):
    if args.json == "-":
        json.dump(document, sys.stdout)
        print()
    else:
        print(table.render(document))
    if args.json and args.json != "-":
        with open(args.json, "w") as out:
            json.dump(document, out)
        print(f"written: {args.json}", file=sys.stderr)
    if args.html:
        with open(args.html, "w") as out:
            out.write(report.render(document))
        print(f"written: {args.html}", file=sys.stderr)


def _stop(signum, _frame):
    signal.signal(signum, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
    raise SystemExit(128 + signum)


def main(argv):
    for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(signum, _stop)
    try:
        run(argv)
        return 0
    except UsageError as error:
        print(f"two-sites: {error}", file=sys.stderr)
        return 2
    except (ExperimentError, FabricError, MachinePaused) as error:
        print(f"two-sites: {error}", file=sys.stderr)
        return 1
