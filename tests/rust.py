#!/usr/bin/env python3
"""Runs `cargo test` with the arguments given, and closes with `N passed, N failed, N skipped`, as our other suites do.

A test that is the only one that failed is played once more, on its own; see again.py."""

import os
import re
import subprocess
import sys

sys.path.insert(0, f"{sys.path[0]}/editors")
from again import really_failed  # noqa: E402

CARGO = ["cargo", "test", "--locked", "--no-fail-fast"]
# The tests spend half of their time waiting for programs they started: two per core.
ENVIRONMENT = {"RUST_TEST_THREADS": str(2 * (os.cpu_count() or 1)), **os.environ}
# A failed test's output follows a heading like this, after all tests of its executable.
HEADING = re.compile(r"^---- (\S+) stdout ----$")
RESULT = re.compile(r"^test result: .* (\d+) passed; (\d+) failed; (\d+) ignored")


def main(arguments):
    counts, failures, complete = play(arguments)
    passed, failed, skipped = counts
    really = really_failed(failures, once_more) if complete else list(failures)
    for name in really:
        print(f"FAILED {name}: {failures[name]}")
    passed, failed = passed + len(failures) - len(really), failed - len(failures) + len(really)
    if not complete:
        print("FAILED: not everything was built and run")
        failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def play(arguments):
    """Runs cargo: the counts of all executables, why each failed test failed, and whether cargo's exit code agrees."""
    counts, failures, below = [0, 0, 0], {}, None
    with subprocess.Popen(CARGO + arguments, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as cargo:
        for line in cargo.stdout:
            if result := RESULT.match(line):
                counts = [a + int(b) for a, b in zip(counts, result.groups())]
                below = None
                line = f"  {line}"  # the total counts, below
            elif heading := HEADING.match(line):
                below = failures.setdefault(heading[1], Reason())
            elif below is not None:
                below.read(line)
            print(line, end="", flush=True)
    reasons = {name: str(reason) for name, reason in failures.items()}
    complete = cargo.returncode == 0 or (bool(failures) and counts[1] == len(failures))
    return counts, reasons, complete


class Reason:
    """Where a test panicked, and the first lines of its message."""

    def __init__(self):
        self.lines = None

    def read(self, line):
        if self.lines is None and "panicked at" in line:
            self.lines = [line.split("panicked at ", 1)[1].strip()]
        elif self.lines is not None and len(self.lines) < 4 and line.strip() and not line.startswith("note: "):
            self.lines.append(line.strip()[:300])

    def __str__(self):
        return " | ".join(self.lines or ["it printed no reason"])


def once_more(name):
    """Why the test fails when run alone, if it does."""
    counts, failures, _ = play(["--", "--exact", name])
    if counts[0] == 1 and not failures:
        return None
    return failures.get(name, "it did not run")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
