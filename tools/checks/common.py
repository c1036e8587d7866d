"""What the checks share: which files to look at, how violations are told, and how a check proves that it can fail.

A check is a function of a root folder that returns violations. `main` runs it on the project, or, with --self-test, on
small trees made for the purpose: each case names the files and what must be found in them, nothing else being allowed.
"""
import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CXX_SUFFIXES = (".h", ".cc", ".c")


@dataclasses.dataclass(frozen=True)
class Violation:
    path: str
    line: int  # 0: the whole file
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    files: dict  # path -> text
    expected: tuple  # for each violation, in order, something its printed form must contain


def project_files(root):
    """Paths relative to root of all files that belong to the project: known to git or not ignored by it."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
        paths = [path for path in listed.split("\0") if path]
    else:
        paths = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in ("build", "__pycache__", ".git")]
            paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(path for path in set(paths) if os.path.isfile(os.path.join(root, path)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as source:
        return source.read()


def is_cxx(path):
    return path.endswith(CXX_SUFFIXES)


def script_language(root, path):
    """"python", "bash" or None, by name or by first line."""
    if path.endswith(".py"):
        return "python"
    if path.endswith(".sh"):
        return "bash"
    if "." in os.path.basename(path).lstrip("."):
        return None
    with open(os.path.join(root, path), "rb") as source:
        first = source.readline(200)
    if not first.startswith(b"#!"):
        return None
    return "python" if b"python" in first else "bash" if b"sh" in first else None


def self_test(check, cases):
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="weir-check-") as root:
            for path, text in case.files.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as out:
                    out.write(text)
            found = [str(violation) for violation in check(root)]
        good = len(found) == len(case.expected) and all(want in have for want, have in zip(case.expected, found))
        print(f"{'ok    ' if good else 'FAILED'} {case.name}")
        if not good:
            failed += 1
            print(f"  wanted: {list(case.expected)}\n  found:  {found}")
    return 1 if failed else 0


def main(check, cases, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--self-test", action="store_true", help="show that the check finds what it is for")
    options = parser.parse_args()
    if options.self_test:
        sys.exit(self_test(check, cases))
    violations = check(ROOT)
    for violation in violations:
        print(violation)
    if violations:
        print(f"{len(violations)} to mend; repeat with: {os.path.relpath(sys.argv[0], ROOT)}")
    sys.exit(1 if violations else 0)
