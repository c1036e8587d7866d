"""Adds up what the checks and ctest really did and prints the last line of a test run.

Usage: summary.py RESULTS_FOLDER. The folder holds steps.tsv (name, exit status, command, one step a line) and ctest's
JUnit files junit-*.xml, with the command that repeats one test in junit-*.command. Of a test that failed, the end of what it
printed is shown again, as that is far above by then. Exit status 1 when anything failed.
"""
import glob
import os
import sys
import xml.etree.ElementTree as ElementTree


LINES_OF_FAILURE = 40


def read_steps(folder):
    """Yields (name, outcome, how to repeat, lines it printed)."""
    with open(os.path.join(folder, "steps.tsv"), encoding="utf-8") as lines:
        for line in lines:
            name, status, command = line.rstrip("\n").split("\t")
            yield name, "passed" if status == "0" else "failed", command, []


def outcome_of(testcase):
    """passed, failed or skipped. ctest says "notrun" both of tests that skip themselves and of programs it did not find."""
    status = testcase.get("status")
    if status == "run":
        return "passed"
    if status == "disabled":
        return "skipped"
    skipped = testcase.find("skipped")
    if status == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def read_junit(path):
    with open(path[:-len("xml")] + "command", encoding="utf-8") as source:
        repeat = source.read().strip()
    for testcase in ElementTree.parse(path).getroot().iter("testcase"):
        name = testcase.get("name")
        yield name, outcome_of(testcase), f"{repeat} -R '^{name}$'", testcase.findtext("system-out", "").strip().splitlines()


def main(folder):
    results = list(read_steps(folder))
    for path in sorted(glob.glob(os.path.join(folder, "junit-*.xml"))):
        results += read_junit(path)
    count = {outcome: sum(1 for _, have, _, _ in results if have == outcome) for outcome in ("passed", "failed", "skipped")}
    if count["failed"]:
        print("\nFailed, each with the command that repeats it:")
        for name, outcome, command, printed in results:
            if outcome == "failed":
                print("\n".join([f"  {name}", f"      {command}", *(f"        | {line}" for line in printed[-LINES_OF_FAILURE:])]))
    if count["skipped"]:
        print("\nSkipped: " + ", ".join(name for name, outcome, _, _ in results if outcome == "skipped"))
    line = f"{count['passed']} passed, {count['failed']} failed"
    print("\n" + line + (f", {count['skipped']} skipped" if count["skipped"] else ""), flush=True)
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
