#!/usr/bin/python3
"""bench/two-sites runs from end to end and its result has the documented parts. No figure is judged here."""
import json
import os
import subprocess
import tempfile

import e2e

TOP_KEYS = {"format", "taken", "command", "mix", "settings", "bound", "alone", "schemes", "machine", "versions"}
SCHEME_KEYS = {"mean_slowdown", "mean_slowdown_min", "mean_slowdown_max", "jobs", "link_useful_share", "wan_drops",
               "weir_cores", "runs"}
JOB_KEYS = {"name", "period_ms", "slowdown"}


def test(args):
    with tempfile.TemporaryDirectory(prefix="weir-smoke-") as folder:
        json_path, html_path = os.path.join(folder, "out.json"), os.path.join(folder, "out.html")
        command = [os.path.join(e2e.ROOT, "bench", "two-sites"), "--mix", "three-equal", "--schemes", "weir",
                   "--seconds", "8", "--runs", "1", "--json", json_path, "--html", html_path, "--build", args.build]
        done = subprocess.run(command, capture_output=True, text=True, timeout=80)
        print(done.stdout + done.stderr)
        e2e.check(done.returncode == 0, f"two-sites ended with {done.returncode}")
        with open(json_path) as text:
            document = json.load(text)
        e2e.check(set(document) == TOP_KEYS, f"parts of the document: {sorted(set(document) ^ TOP_KEYS)}")
        weir = document["schemes"]["weir"]
        e2e.check(set(weir) == SCHEME_KEYS, f"parts of a scheme: {sorted(set(weir) ^ SCHEME_KEYS)}")
        e2e.check([set(job) for job in weir["jobs"]] == [JOB_KEYS] * 3, f"jobs of a scheme: {weir['jobs']}")
        e2e.check(all(job["period_ms"]["n"] > 0 for job in weir["jobs"]), "a job made no iteration")
        with open(html_path) as text:
            page = text.read()
        e2e.check(page.startswith("<!doctype html>") and "http" not in page.replace("http-equiv", ""),
                  "the report refers to something outside itself")


if __name__ == "__main__":
    e2e.main(test)
