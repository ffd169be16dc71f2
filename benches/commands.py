#!/usr/bin/env python3
"""What a command costs besides its own work, by the number of files in the workspace.

usage: benches/commands.py [PROGRAM]   (target/release/tandem when left out; Linux, standard library only)

Runs `true` 40 times in one turn of `tandem run --json --mode auto` with the scripted model of the editor tests, and prints the
median and the most of what the call took, less what `bash -c true` takes here, and the CPU time. The first call, which copies
every file, is printed by itself.
"""

import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from memory import ROOT, Model

TIMES = 40
FILES = (0, 1_000, 27_000, 100_000)


def plain():
    """The median time of `bash -c true`, in ms."""

    def once():
        begun = time.perf_counter()
        subprocess.run(["bash", "-c", "true"], check=True)
        return (time.perf_counter() - begun) * 1000

    return statistics.median(once() for _ in range(TIMES))


def cpu():
    """The CPU time of all ended children, in ms."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def fill(folder, count):
    for number in range(count):
        path = pathlib.Path(folder, str(number // 900), str(number // 30), f"{number}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")


def calls(program, model, folder, home):
    """The time each command took, in ms."""

    def call(number):
        # The same call again and again would be taken for a loop.
        return {"id": f"c{number}", "name": "run_command", "arguments": {"command": f"true {number}"}}

    rounds = [[{"call": call(number)}] for number in range(TIMES + 1)]
    model.call("/ctl/script", [*rounds, [{"text": "Done."}]])
    settings = {
        "TANDEM_MODEL": "test",
        "TANDEM_BASE_URL": f"{model.url}/v1",
        "TANDEM_CONFIG": f"{home}/config.toml",
        "TANDEM_STATE_DIR": f"{home}/state",
    }
    environment = {"PATH": os.environ["PATH"], "HOME": home, **settings}
    run = [program, "run", "--json", "--mode", "auto", "go"]
    said = subprocess.run(run, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    events = [json.loads(line) for line in said.splitlines()]
    took = [event["execute_duration_ms"] for event in events if "execute_duration_ms" in event]
    assert len(took) == TIMES + 1, said[-2000:]
    return took


def main():
    program = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/release/tandem"
    model = Model()
    try:
        for count in FILES:
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
                fill(folder, count)
                begun = cpu()
                first, *others = calls(program, model, folder, home)
                each = (cpu() - begun) / (TIMES + 1)
                beside = plain()
                median, most = statistics.median(others) - beside, max(others) - beside
                print(f"{count} files: first {first:.0f} ms, then {median:.1f} ms ({most:.1f}) more than plain ({beside:.1f});")
                print(f"    {each:.0f} ms of CPU for each, with the first and all that tandem does besides")
    finally:
        model.process.terminate()
        model.process.wait()


if __name__ == "__main__":
    main()
