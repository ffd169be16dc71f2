#!/usr/bin/env python3
"""Drives tandem.exe under Wine as an editor does; `tests/platforms/run windows` runs it inside the root.

  windows.py PROGRAM.EXE     prints a line a check and closes with `N passed, N failed`

Wine has no PowerShell and no Git's bash, so commands run in cmd here. Standard library only."""

import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "editors"))
from jsonrpc import Peer, is_answer  # noqa: E402

DRIVE = pathlib.Path(os.environ["WINEPREFIX"], "drive_c")
PROJECT = DRIVE / "proj"
URIS = ["file:///C:/proj", "file:///c%3A/proj", "file:///c:/proj"]
ROOT = URIS[1]
LIMIT = 20


class Model:
    """The scripted model of tests/editors."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, HERE.parent / "editors/model_server.py"], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().split()[1])

    def control(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/ctl/{path}", data=data)
        return json.loads(urllib.request.urlopen(request, timeout=30).read())

    def script(self, *replies):
        self.control("reset", {})
        self.control("script", list(replies))

    def results(self):
        """The tools' results in the last request."""
        requests = self.control("state")["requests"]
        messages = requests[-1]["messages"] if requests else []
        return [message["content"] for message in messages if message["role"] == "tool"]

    def environment(self):
        url = f"http://127.0.0.1:{self.port}/v1"
        return {"TANDEM_MODEL": "test", "TANDEM_BASE_URL": url, "TANDEM_API": "chat", "TANDEM_API_KEY": "k"}


def wine(arguments, **options):
    """A program in Wine, in the project."""
    environment = {**os.environ, **MODEL.environment()}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(["wine", *arguments], env=environment, cwd=PROJECT, **pipes)


def tandem(*arguments, stdin=b""):
    process = wine([PROGRAM, *arguments])
    out, err = process.communicate(stdin, timeout=90)
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


class Client(Peer):
    """A language client over the server's standard streams."""

    def __init__(self, root=ROOT):
        super().__init__(wine([PROGRAM, "lsp"], stderr=subprocess.DEVNULL))
        self.incoming, self.seen = queue.Queue(), []
        threading.Thread(target=self.read, daemon=True).start()
        folders = [{"uri": root, "name": "proj"}]
        capabilities = {"experimental": {"tandem": {}}}
        self.call("initialize", {"processId": None, "rootUri": root, "capabilities": capabilities, "workspaceFolders": folders}, 60)
        self.notify("initialized", {})

    def read(self):
        try:
            while message := self.receive():
                self.incoming.put(message)
        finally:
            self.incoming.put(None)

    def find(self, fits, limit=LIMIT):
        for index, message in enumerate(self.seen):
            if fits(message):
                return self.seen.pop(index)
        end = time.monotonic() + limit
        while True:
            try:
                message = self.incoming.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing came that fits; tools said {MODEL.results()}; last: {json.dumps(self.seen[-4:])[:2000]}") from None
            assert message is not None, "the server ended"
            if fits(message):
                return message
            self.seen.append(message)

    def answer(self, number, limit=LIMIT):
        return self.find(lambda message: is_answer(message, number), limit)

    def call(self, method, params, limit=LIMIT):
        return self.answer(self.ask(method, params), limit)

    def next(self, method):
        return self.find(lambda message: message.get("method") == method)

    def session(self):
        return self.call("session/new", {"cwd": "C:\\proj", "mcpServers": []})["result"]["sessionId"]

    def prompt(self, session, text="do it"):
        return self.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def allow(self):
        question = self.next("session/request_permission")
        self.send({"id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}})
        return question["params"]

    def turn(self, *calls, asked=True):
        """A session in which the model makes these calls; returns the session and the first call's result."""
        MODEL.script(list(calls), [{"text": "done"}])
        session = self.session()
        number = self.prompt(session)
        if asked:
            self.allow()
        assert self.answer(number, 90)["result"]["stopReason"] == "end_turn"
        return session, MODEL.results()

    def bye(self):
        self.call("shutdown", None)
        self.notify("exit", None)
        assert self.process.wait(30) == 0


def call(name, number=1, **arguments):
    return {"call": {"id": f"c{number}", "name": name, "arguments": arguments}}


def edit(path, old, new):
    return call("edit_file", path=path, edits=[{"old_text": old, "new_text": new}])


def run(command, **arguments):
    return call("run_command", command=command, **arguments)


def fresh():
    shutil.rmtree(PROJECT, ignore_errors=True)
    (PROJECT / "sub").mkdir(parents=True)
    (PROJECT / "a.rs").write_bytes(b"// on disk\nlet x = 1;\n")
    (PROJECT / "sub/b.txt").write_bytes(b"one\r\nmore\r\n")


# The command line of the commands to be ended: Wine's programs are processes of this system, which finds them by it.
MARK = "127.0.0.91"


def alive():
    """Whether a process started with the mark is running."""
    commands = (path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"))
    for path in commands:
        try:
            if MARK.encode() in path.read_bytes():
                return True
        except OSError:
            pass
    return False


def wait_until(state):
    end = time.monotonic() + 20
    while alive() != state:
        assert time.monotonic() < end, f"after 20 s a command {'does not run' if state else 'still runs'}"
        time.sleep(0.1)


def a_prompt_is_answered():
    MODEL.script([{"text": "hello from the model"}])
    code, out, err = tandem("run", "hi")
    assert code == 0 and "hello from the model" in out, (code, out, err)


def the_prompt_may_come_from_a_pipe():
    MODEL.script([{"text": "piped"}])
    code, out, err = tandem("run", "review:", "-", stdin=b"some text\n")
    assert code == 0 and "piped" in out, (code, out, err)


def a_conversation_goes_on_and_is_listed():
    MODEL.script([{"text": "one"}])
    tandem("run", "remember the teapot")
    MODEL.script([{"text": "again"}])
    code, out, err = tandem("run", "--continue", "and?")
    assert code == 0 and "teapot" in json.dumps(MODEL.control("state")["requests"][-1]), (code, out, err)
    code, out, err = tandem("sessions", "list")
    assert code == 0 and "teapot" in out, (code, out, err)


def a_file_keeps_its_line_ends():
    MODEL.script([edit("sub\\b.txt", "one", "two")], [{"text": "done"}])
    code, out, err = tandem("run", "--json", "--mode", "edit", "change it")
    assert code == 0 and (PROJECT / "sub/b.txt").read_bytes() == b"two\r\nmore\r\n", (code, out, err)
    assert sorted(os.listdir(PROJECT / "sub")) == ["b.txt"]


def doctor_says_what_is_there():
    ok = {"text": "ok"}
    MODEL.script([ok], [ok], [ok])
    _, out, err = tandem("doctor")
    assert "sandbox" in out and "C:\\users" in out, (out, err)


def the_demo_runs():
    code, out, err = tandem("demo")
    assert code == 0 and "That is tandem" in out and "FAIL" in out and "ok    total 250 4 50 = 950" in out, (code, out, err)


def names_are_shown_with_slashes():
    calls = [call("grep", 1, pattern="more"), call("glob", 2, pattern="**/*.txt"), call("list_files", 3, path="."), call("read_file", 4, path="sub\\b.txt")]
    MODEL.script(calls, [{"text": "done"}])
    code, out, err = tandem("run", "search")
    results = MODEL.results()
    assert code == 0 and len(results) == 4, (code, out, err)
    assert "sub/b.txt" in results[0] and "sub/b.txt" in results[1] and "b.txt" in results[2] and "more" in results[3], results
    assert not any("\\" in text for text in results + [out]), (results, out)
    system = MODEL.control("state")["requests"][0]["messages"][0]["content"]
    assert "Workspace: C:/proj\n" in system + "\n", system


def nothing_outside_is_read():
    names = ["..\\x.txt", "C:\\windows\\win.ini", "\\\\?\\C:\\windows\\win.ini", "\\windows\\win.ini", "C:x.txt", "a.rs:stream", "sub/../../x",
             "\\\\127.0.0.1\\share\\x", "\\??\\C:\\windows\\win.ini", "Z:\\etc\\passwd", "sub\\..\\..\\windows\\win.ini"]
    MODEL.script([call("read_file", number, path=name) for number, name in enumerate(names)], [{"text": "done"}])
    code, out, err = tandem("run", "read them")
    results = MODEL.results()
    assert code == 0 and len(results) == len(names), (code, out, err)
    for name, result in zip(names, results):
        assert "outside the workspace" in result or "not exist" in result or "no file" in result, (name, result)


def devices_and_odd_names_are_refused():
    names = ["CON", "nul", "COM1.txt", "aux.rs", "sub/LPT9", "a.txt.", "what?.txt"]
    MODEL.script([call("write_file", number, path=name, content="x\n") for number, name in enumerate(names)], [{"text": "done"}])
    tandem("run", "--mode", "edit", "write them")
    for name, result in zip(names, MODEL.results()):
        assert "Windows" in result or "outside" in result, (name, result)
    assert sorted(os.listdir(PROJECT)) == ["a.rs", "sub"], os.listdir(PROJECT)


def every_name_of_a_protected_file_is_protected():
    (PROJECT / ".git").mkdir()
    (PROJECT / ".git/config").write_text("[core]\n")
    (PROJECT / ".env").write_text("KEY=1\n")
    names = [".git/config", ".GIT/config", ".git\\config", ".git./config", ".git /config", ".env", ".ENV", ".env.", "git~1/config",
             ".git::$INDEX_ALLOCATION/config"]
    MODEL.script([call("write_file", number, path=name, content="pwned\n") for number, name in enumerate(names)], [{"text": "done"}])
    tandem("run", "--mode", "edit", "write them")
    texts = [path.read_text() for path in PROJECT.rglob("*") if path.is_file()]
    assert not any("pwned" in text for text in texts), MODEL.results()


def a_denied_path_is_denied_in_every_case():
    (PROJECT / "secret").mkdir()
    (PROJECT / "secret/s.txt").write_text("the treasure\n")
    (PROJECT / ".tandem").mkdir()
    (PROJECT / ".tandem/config.toml").write_text('[permissions]\ndeny = ["read_file(secret/**)"]\n')
    names = ["secret/s.txt", "Secret/s.txt", "SECRET\\S.TXT", "C:\\PROJ\\secret\\s.txt"]
    MODEL.script([call("read_file", number, path=name) for number, name in enumerate(names)], [{"text": "done"}])
    tandem("run", "read them")
    for name, result in zip(names, MODEL.results()):
        assert "treasure" not in result, (name, result)


def a_root_in_another_case_is_the_root():
    MODEL.script([call("read_file", path="c:\\PROJ\\sub\\B.TXT")], [{"text": "done"}])
    tandem("run", "read it")
    assert "more" in MODEL.results()[0], MODEL.results()


def an_open_buffer_is_edited_and_the_disk_is_not(uri):
    MODEL.script([edit("a.rs", "let x = 1;", "let x = 2;")], [{"text": "done"}])
    client, document = Client(uri), uri + "/a.rs"
    text = "// typed, not saved\nlet x = 1;\n"
    client.notify("textDocument/didOpen", {"textDocument": {"uri": document, "languageId": "rust", "version": 1, "text": text}})
    number = client.prompt(client.session())
    shown = client.allow()["toolCall"]["content"][0]
    assert shown["newText"] == text.replace("1", "2"), shown
    request = client.next("workspace/applyEdit")
    assert request["params"]["edit"]["documentChanges"][0]["textDocument"]["uri"] == document, request
    change = {"textDocument": {"uri": document, "version": 2}, "contentChanges": [{"text": shown["newText"]}]}
    client.notify("textDocument/didChange", change)
    client.send({"id": request["id"], "result": {"applied": True}})
    assert client.answer(number)["result"]["stopReason"] == "end_turn"
    assert (PROJECT / "a.rs").read_bytes() == b"// on disk\nlet x = 1;\n"
    client.bye()


def a_new_file_gets_its_folders():
    client = Client()
    client.turn(call("write_file", path="deep/er/n.txt", content="x\n"))
    assert (PROJECT / "deep/er/n.txt").read_bytes() == b"x\n"
    client.bye()


def a_file_in_use_is_replaced_a_moment_later():
    """Another program has it open without sharing, as a virus scanner may."""
    blocker = wine(["cmd", "/d", "/c", "(echo one& echo more& ping -n 2 127.0.0.1 >nul) > sub\\b.txt"])
    time.sleep(0.3)
    MODEL.script([call("write_file", path="sub/new.txt", content="x\n")], [{"text": "done"}])
    code, out, err = tandem("run", "--mode", "edit", "write it")
    blocker.wait(30)
    assert code == 0 and (PROJECT / "sub/new.txt").exists(), (code, out, err)


def a_command_runs():
    client = Client()
    _, results = client.turn(run("echo hi-from-shell & cd"))
    assert "hi-from-shell" in results[0] and "C:\\proj" in results[0] and "exit code 0" in results[0], results
    client.bye()


def a_command_is_shown_as_unheld():
    MODEL.script([run("echo \"a b\" 100%% & dir sub")], [{"text": "done"}])
    client = Client()
    number = client.prompt(client.session())
    question = client.allow()
    assert "without a sandbox" in json.dumps(question) and "NOT in a sandbox" in json.dumps(question), question
    client.answer(number)
    results = MODEL.results()
    assert '"a b" 100%' in results[0] and "b.txt" in results[0], results
    client.bye()


def an_exit_code_is_whole():
    client = Client()
    _, results = client.turn(run("exit 300"))
    assert "exit code 300" in results[0], results
    client.bye()


def output_is_unicode():
    client = Client()
    (PROJECT / "grüße-мир.txt").write_text("x")
    _, results = client.turn(run("dir /b"))
    assert "grüße-мир.txt" in results[0], results
    client.bye()


def a_line_that_cmd_cannot_read_is_refused():
    client = Client()
    _, results = client.turn(run("echo a\necho b"))
    assert "one line" in results[0], results
    client.bye()


def the_environment_is_that_of_windows():
    client = Client()
    _, results = client.turn(run("echo [%SystemRoot%] [%PATHEXT%] [%TEMP%] [%TANDEM_API_KEY%]"))
    assert "[C:\\windows]" in results[0] and ".exe" in results[0].lower() and "[%TANDEM_API_KEY%]" in results[0], results
    client.bye()


def a_cancel_ends_a_command_at_once():
    MODEL.script([run(f"ping -n 60 {MARK}")], [{"text": "done"}])
    client = Client()
    session = client.session()
    number = client.prompt(session)
    client.allow()
    wait_until(True)
    client.notify("session/cancel", {"sessionId": session})
    assert client.answer(number)["result"]["stopReason"] == "cancelled"
    wait_until(False)
    client.bye()


def what_a_command_leaves_is_ended():
    client = Client()
    _, results = client.turn(run(f"start /b ping -n 90 {MARK} >nul & echo started"))
    assert "started" in results[0], results
    wait_until(False)
    client.bye()


def a_killed_server_leaves_no_command():
    MODEL.script([run(f"ping -n 90 {MARK}")], [{"text": "done"}])
    client = Client()
    client.prompt(client.session())
    client.allow()
    wait_until(True)
    wine(["taskkill", "/F", "/IM", "tandem.exe"]).communicate(timeout=60)
    wait_until(False)


def a_background_job_is_read_and_stopped():
    client = Client()
    MODEL.script([run(f"ping -n 90 {MARK}", background=True)], [run("stop", job=1)], [{"text": "done"}])
    number = client.prompt(client.session())
    client.allow()
    assert client.answer(number, 90)["result"]["stopReason"] == "end_turn"
    assert "[job 1]" in MODEL.results()[0], MODEL.results()
    wait_until(False)
    client.bye()


def a_denied_command_is_denied_by_all_its_names():
    (PROJECT / ".tandem").mkdir()
    (PROJECT / ".tandem/config.toml").write_text('[permissions]\ndeny = ["run_command(rm *)"]\n')
    client = Client()
    for line in ["del a.rs", "ERASE a.rs", "rm a.rs"]:
        _, results = client.turn(run(line), asked=False)
        assert "forbids" in results[0], (line, results)
    assert (PROJECT / "a.rs").exists()
    client.bye()


def a_cancel_ends_an_answer():
    MODEL.script([{"text": "half"}, {"gate": "never"}], [{"text": "second"}])
    client = Client()
    session = client.session()
    number = client.prompt(session)
    client.find(lambda message: "half" in json.dumps(message) and message.get("method") == "session/update")
    client.notify("session/cancel", {"sessionId": session})
    assert client.answer(number)["result"]["stopReason"] == "cancelled"
    MODEL.control("state?wait=closed:1")
    assert client.answer(client.prompt(session))["result"]["stopReason"] == "end_turn"
    client.bye()


def the_end_of_its_input_ends_the_server():
    client = Client()
    client.process.stdin.close()
    client.process.wait(20)


def a_long_answer_comes_whole():
    MODEL.script([{"words": "word " * 3000}])
    client = Client()
    session = client.session()
    assert client.answer(client.prompt(session), 90)["result"]["stopReason"] == "end_turn"
    updates = [message["params"]["update"] for message in client.seen if message.get("method") == "session/update"]
    text = "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk")
    assert text.count("word") == 3000, len(text)
    client.bye()


def a_killed_conversation_is_loaded():
    MODEL.script([{"text": "half"}, {"gate": "never"}])
    client = Client()
    session = client.session()
    client.prompt(session, "remember the teapot")
    client.find(lambda message: "half" in json.dumps(message) and message.get("method") == "session/update")
    wine(["taskkill", "/F", "/IM", "tandem.exe"]).communicate(timeout=60)
    client.process.wait(20)
    MODEL.script([{"text": "still here"}])
    client = Client()
    loaded = client.call("session/load", {"sessionId": session, "cwd": "C:\\proj", "mcpServers": []})
    assert "result" in loaded, loaded
    assert client.answer(client.prompt(session, "and now?"))["result"]["stopReason"] == "end_turn"
    assert "teapot" in json.dumps(MODEL.control("state")["requests"][-1])
    client.bye()


def one_server_holds_a_conversation():
    MODEL.script([{"text": "one"}])
    first = Client()
    session = first.session()
    first.answer(first.prompt(session))
    second = Client()
    answer = second.call("session/load", {"sessionId": session, "cwd": "C:\\proj", "mcpServers": []})
    assert "error" in answer, answer
    second.bye()
    first.bye()


CHECKS = [
    a_prompt_is_answered, the_prompt_may_come_from_a_pipe, a_conversation_goes_on_and_is_listed, a_file_keeps_its_line_ends,
    doctor_says_what_is_there, the_demo_runs, names_are_shown_with_slashes, nothing_outside_is_read, devices_and_odd_names_are_refused,
    every_name_of_a_protected_file_is_protected, a_denied_path_is_denied_in_every_case, a_root_in_another_case_is_the_root,
    *[(an_open_buffer_is_edited_and_the_disk_is_not, uri) for uri in URIS], a_new_file_gets_its_folders,
    a_file_in_use_is_replaced_a_moment_later, a_command_runs, a_command_is_shown_as_unheld, an_exit_code_is_whole, output_is_unicode,
    a_line_that_cmd_cannot_read_is_refused, the_environment_is_that_of_windows, a_cancel_ends_a_command_at_once,
    what_a_command_leaves_is_ended, a_killed_server_leaves_no_command, a_background_job_is_read_and_stopped,
    a_denied_command_is_denied_by_all_its_names, a_cancel_ends_an_answer, the_end_of_its_input_ends_the_server,
    a_long_answer_comes_whole, a_killed_conversation_is_loaded, one_server_holds_a_conversation,
]


def main():
    ran = failed = 0
    wanted = sys.argv[2:]
    for check in CHECKS:
        check, arguments = (check[0], check[1:]) if isinstance(check, tuple) else (check, ())
        name = " ".join([check.__name__, *arguments])
        if wanted and not any(part in name for part in wanted):
            continue
        ran += 1
        fresh()
        began = time.monotonic()
        try:
            check(*arguments)
            print(f"ok   {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__} {str(error)[:2500]}", flush=True)
            wine(["taskkill", "/F", "/IM", "tandem.exe"]).communicate(timeout=60)
    MODEL.process.terminate()
    print(f"{ran - failed} passed, {failed} failed")
    sys.exit(failed != 0)


PROGRAM = sys.argv[1]
MODEL = Model()
main()
