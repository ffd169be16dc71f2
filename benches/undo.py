#!/usr/bin/env python3
"""What a command that changes 10,000 files costs: the command, its undo and its redo.

usage: benches/undo.py [PROGRAM [FILES]]   (target/release/tandem and 10000 when left out; Linux, standard library only)

Changes every file with one `sed` in a turn of `tandem acp` with the scripted model of the editor tests. Prints the time of the
turn, of listing its changes, and of undoing and redoing them, with the bytes that the client got and its largest message. The
files are compared with what they should be each time.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from memory import ROOT, Model, Tandem

LINES = "".join(f"line {number} of a file that a codemod changes\n" for number in range(20))
SED = "find . -name '*.txt' -exec sed -i 's/codemod/program/' {} +"


class Client(Tandem):
    def timed(self, what, method, params):
        """Sends a request; prints how long the response took, and the messages until then."""
        begun, sizes, answer = time.perf_counter(), [], None
        number = self.ask(method, params)
        while answer is None:
            line = self.process.stdout.readline()
            sizes.append(len(line))
            message = json.loads(line)
            if "method" not in message and message["id"] == number:
                answer = message
        took = time.perf_counter() - begun
        print(f"{what}: {took:.2f} s; {sum(sizes) / 1e6:.2f} MB, of which the largest message {max(sizes) / 1e6:.2f} MB")
        assert "result" in answer, answer
        return answer["result"]


def fill(folder, count):
    for number in range(count):
        path = pathlib.Path(folder, "src", str(number // 900), str(number // 30), f"{number}.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n{LINES}")


def check(folder, word, count):
    files = list(pathlib.Path(folder).rglob("*.txt"))
    assert len(files) == count, len(files)
    other = {"codemod": "program", "program": "codemod"}[word]
    wrong = [path for path in files if word not in (text := path.read_text()) or other in text]
    assert not wrong, wrong[:5]


def measure(program, model, folder, home, count):
    fill(folder, count)
    call = {"id": "c1", "name": "run_command", "arguments": {"command": SED}}
    model.call("/ctl/script", [[{"call": call}], [{"text": "Done."}]])
    client = Client(program, model, home)
    session = client.call("session/new", {"cwd": folder, "mcpServers": []})["sessionId"]
    client.call("session/set_mode", {"sessionId": session, "modeId": "auto"})
    prompt = [{"type": "text", "text": "Change them."}]
    client.timed("turn", "session/prompt", {"sessionId": session, "prompt": prompt})
    check(folder, "program", count)
    for action, word in [("list", "program"), ("undo", "codemod"), ("redo", "program"), ("undo", "codemod")]:
        client.timed(action, "_tandem/review", {"sessionId": session, "action": action})
        check(folder, word, count)
    client.end()


def main():
    program = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/release/tandem"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    model = Model()
    try:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
            fill(folder, count)
            begun = time.perf_counter()
            subprocess.run(["bash", "-c", SED], cwd=folder, check=True)
            print(f"the command alone: {time.perf_counter() - begun:.2f} s")
            measure(program, model, folder, home, count)
    finally:
        model.process.terminate()
        model.process.wait()


if __name__ == "__main__":
    main()
