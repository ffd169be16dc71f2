#!/usr/bin/env python3
"""What sessions cost in memory: `tandem acp` as an editor starts it, with the scripted model of the editor tests.

usage: benches/memory.py [PROGRAM]   (target/release/tandem when left out; Linux, standard library only)

Prints the proportional set (PSS of /proc/PID/smaps_rollup) of the process with one session, with 50 sessions whose turns
all run, and before and after a session of 200 rounds of tools, beside the bytes of that conversation.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).parents[1]
SESSIONS = 50
ROUNDS = 200
LINES = 60
MB = 1e6


class Model:
    """The editor tests' scripted model, in a process of its own."""

    def __init__(self):
        script = ROOT / "tests/editors/model_server.py"
        self.process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().split()[1]}"

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data)) as answer:
            return json.load(answer)


class Tandem:
    """`tandem acp` and a client that allows nothing and reads everything."""

    def __init__(self, program, model, home):
        self.home = home
        settings = {
            "TANDEM_MODEL": "test",
            "TANDEM_BASE_URL": f"{model.url}/v1",
            "TANDEM_CONFIG": f"{home}/config.toml",
            "TANDEM_STATE_DIR": f"{home}/state",
        }
        self.process = subprocess.Popen(
            [program, "acp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "HOME": home, **settings},
        )
        self.last = 0
        self.answers = {}
        self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def ask(self, method, params):
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self.last

    def answer(self, number):
        while number not in self.answers:
            message = json.loads(self.process.stdout.readline())
            if "method" not in message:
                self.answers[message["id"]] = message
        answer = self.answers.pop(number)
        assert "result" in answer, answer
        return answer["result"]

    def call(self, method, params):
        return self.answer(self.ask(method, params))

    def session(self):
        return self.call("session/new", {"cwd": self.home, "mcpServers": []})["sessionId"]

    def prompt(self, session, text):
        return self.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def pss(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        raise ValueError("no Pss")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        assert self.process.wait() == 0


def many(tandem, model):
    """50 sessions, each in the middle of its answer."""
    reply = [{"text": "The beginning. "}, {"gate": "end"}, {"text": "The end."}]
    model.call("/ctl/script", [reply] * SESSIONS)
    first = tandem.session()
    print(f"one session: {tandem.pss() / MB:.1f} MB")
    sessions = [first] + [tandem.session() for _ in range(SESSIONS - 1)]
    prompts = [tandem.prompt(session, "Tell me.") for session in sessions]
    model.call(f"/ctl/state?wait=requests:{SESSIONS}")
    print(f"{SESSIONS} sessions, a turn in each: {tandem.pss() / MB:.1f} MB")
    model.call("/ctl/open/end", {})
    for prompt in prompts:
        tandem.answer(prompt)


def long(tandem, model):
    """A session of 200 rounds, each of which reads a different file."""

    def round(number):
        lines = [f"{number:03} {line:02} {'some words of a line, not all of them alike ' * 2}\n" for line in range(LINES)]
        pathlib.Path(tandem.home, f"{number}.txt").write_text("".join(lines))
        return [{"call": {"id": f"c{number}", "name": "read_file", "arguments": {"path": f"{number}.txt"}}}]

    # The code of a round is in memory before what a conversation adds is measured.
    model.call("/ctl/script", [round(0), [{"text": "Hello."}], *map(round, range(1, ROUNDS + 1)), [{"text": "Read."}]])
    session = tandem.session()
    tandem.answer(tandem.prompt(session, "Read one."))
    before = tandem.pss()
    tandem.answer(tandem.prompt(session, "Read the others."))
    after = tandem.pss()
    requests = model.call("/ctl/state")["requests"]
    first, last = (len(json.dumps(requests[at]["messages"], ensure_ascii=False).encode()) for at in (1, -1))
    rounds = sum(message["role"] == "tool" for message in requests[-1]["messages"]) - 1
    grown, text = (after - before) / MB, (last - first) / MB
    print(f"{rounds} rounds: from {before / MB:.1f} to {after / MB:.1f} MB, {grown:.2f} more for {text:.2f} MB of text")


def main():
    program = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target/release/tandem"
    for measure in (many, long):
        model = Model()
        try:
            with tempfile.TemporaryDirectory() as home:
                tandem = Tandem(program, model, home)
                measure(tandem, model)
                tandem.end()
        finally:
            model.process.terminate()
            model.process.wait()


if __name__ == "__main__":
    main()
