#!/usr/bin/env python3
"""Drives the real Helix ($HX) with the real tandem ($TANDEM_BIN) against a scripted model.

    tests/editors/helix.py [TEST…]

Standard library and tmux only. Each test has its own project, its own Helix and its own model. Screens of failed tests go
to $TANDEM_TEST_OUT. The last line is `N passed, N failed`.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
import traceback
import urllib.request

from terminal import Terminal

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = HERE.parent.parent / "editors" / "helix"
HX = os.environ.get("HX", "hx")
TANDEM = os.environ.get("TANDEM_BIN", str(HERE.parent.parent / "target/debug/tandem"))
OUT = pathlib.Path(os.environ.get("TANDEM_TEST_OUT", tempfile.gettempdir()))

CODE = """/// Adds two numbers.
pub fn add(a: i32, b: i32) -> i32 {
    a + b
}
"""
CHAT = "# Notes\n\n## You\n\n"


class Model:
    """The scripted model server."""

    def __init__(self):
        command = [sys.executable, str(HERE / "model_server.py")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ctl/{path}", data) as response:
            return json.load(response)

    def script(self, *replies):
        self.call("script", replies)

    def open(self, gate):
        self.call(f"open/{gate}", {})

    def wait(self, condition):
        """Waits for `gate:NAME`, `requests:N` or `closed:N`, and returns the state."""
        return self.call(f"state?wait={condition}")

    def requests(self):
        return self.call("state")["requests"]


def model_environment(model):
    return {
        "TANDEM_MODEL": "test",
        "TANDEM_BASE_URL": f"http://127.0.0.1:{model.port}/v1",
        "TANDEM_API_KEY": "sk-test-000000000000",
        "TANDEM_API": "chat",
    }


class Helix(Terminal):
    """Helix on a small project, with our own configuration files as they are."""

    def __init__(self, file, settings):
        self.file = file
        self.home = tempfile.TemporaryDirectory(prefix="tandem-helix-")
        home = pathlib.Path(self.home.name)
        self.project = home / "project"
        self.log = home / "cache/helix/helix.log"
        for folder in ("bin", "config/helix", "cache", "state", "project/.git", "project/src"):
            (home / folder).mkdir(parents=True)
        (home / "bin/tandem").symlink_to(TANDEM)
        for name in ("languages.toml", "config.toml"):
            (home / "config/helix" / name).write_text((CONFIG / name).read_text())
        (self.project / "src/lib.rs").write_text(CODE)
        (self.project / "notes.tandem.md").write_text(CHAT)
        environment = {
            "PATH": f"{home}/bin:/usr/bin:/bin",
            "HOME": str(home),
            "XDG_CONFIG_HOME": f"{home}/config",
            "XDG_CACHE_HOME": f"{home}/cache",
            "TANDEM_CONFIG": f"{home}/config/none.toml",
            "TANDEM_STATE_DIR": f"{home}/state",
            **settings,
        }
        super().__init__([HX, "-v", file], str(self.project), environment)

    def __enter__(self):
        # The log shows what goes over the wire: without this a save could come before the server knows the document.
        with contextlib.ExitStack() as stack:
            stack.push(self)
            self.shows(re.escape(pathlib.Path(self.file).name))
            self.until(lambda _: "textDocument/didOpen" in self.wire(), "opening the document")
            stack.pop_all()
        return self

    def __exit__(self, kind, *rest):
        if kind is not None:
            OUT.mkdir(parents=True, exist_ok=True)
            (OUT / "helix-failed-screen.txt").write_text(self.colored())
            (OUT / "helix-failed.log").write_text(self.wire())
        super().__exit__(kind, *rest)
        self.home.cleanup()

    def wire(self):
        """What went between Helix and tandem so far, from Helix's log."""
        return self.log.read_text() if self.log.exists() else ""

    @property
    def has_message_menus(self):
        """Newer versions show `window/showMessageRequest` as a menu; older ones refuse it."""
        return '"messageActionItem"' in self.wire()

    def __exit__(self, kind, *rest):
        if kind is not None:
            OUT.mkdir(parents=True, exist_ok=True)
            (OUT / "helix-failed-screen.txt").write_text(self.colored())
            if self.log.exists():
                (OUT / "helix-failed.log").write_text(self.log.read_text())
        super().__exit__(kind, *rest)
        self.home.cleanup()

    def read(self, file):
        return (self.project / file).read_text()

    def saved(self, file, ready):
        """Waits until the file on disk is as it should be: Helix writes in the background."""
        self.until(lambda _: ready(self.read(file)), f"saving {file}")

    def command(self, text):
        """Runs a typable command from normal mode."""
        self.type(f":{text}")
        self.shows(rf"(?m)^:{re.escape(text)}\s*$")
        self.keys("Enter")
        self.hides(rf"(?m)^:{re.escape(text)}\s*$")

    def insert(self, keys, text):
        """Enters insert mode by `keys`, types, and is back in normal mode."""
        self.type(keys)
        self.shows(r"(?m)^ INS ")
        for number, line in enumerate(text.split("\n")):
            if number:
                self.keys("Enter")
            self.type(line)
        self.keys("Escape")
        self.shows(r"(?m)^ NOR ")

    def action(self, title):
        """Takes the first of tandem's code actions whose title matches, out of the menu that `space a` opens."""
        self.type(" a")

        def entries(screen):
            menu = re.findall(r"(?m) tandem: ([A-Z].*)$", screen)
            at = next((row for row, text in enumerate(menu) if re.match(title, text)), None)
            return None if at is None else ["Down"] * at + ["Enter"]

        self.keys(*self.until(entries, f"a code action /{title}/"))

    def answer(self, title):
        """Answers the open permission question: in the menu where Helix shows one, else by code action."""
        if not self.has_message_menus:
            return self.action(title)

        def entries(screen):
            # The entries stand below the box with the question, in its columns; the first is selected.
            lines = screen.split("\n")
            box = next(((row, line.index("└")) for row, line in enumerate(lines) if "└" in line), None)
            menu = [line[box[1] :].strip() for line in lines[box[0] + 1 :]] if box else []
            at = next((row for row, text in enumerate(menu) if re.match(title, text)), None)
            return None if at is None else ["Down"] * at + ["Enter"]

        self.keys(*self.until(entries, f"a menu with /{title}/"))

    def close_menu(self):
        """Leaves the open question undecided, where Helix shows it as a menu."""
        if self.has_message_menus:
            self.shows("Allow for this file")
            self.keys("Escape")
            self.hides("Allow for this file")


class Skipped(Exception):
    """Why a test has nothing to test here."""


TESTS = []


def test(function):
    TESTS.append(function)
    return function


@contextlib.contextmanager
def session(file, *replies):
    with Model() as model, Helix(file, model_environment(model)) as helix:
        model.script(*replies)
        yield model, helix


def question(request):
    """The last message of the user in a request, as text."""
    content = [message for message in request["messages"] if message["role"] == "user"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@test
def configuration_lists_tandem_for_every_language():
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home, "helix")
        folder.mkdir()
        for name in ("languages.toml", "config.toml"):
            (folder / name).write_text((CONFIG / name).read_text())
        languages = tomllib.loads((CONFIG / "languages.toml").read_text())["language"]
        assert len(languages) > 20
        for language in languages:
            command = [HX, "--health", language["name"]]
            health = subprocess.run(command, env={**os.environ, "XDG_CONFIG_HOME": home}, capture_output=True, text=True)
            assert "tandem" in health.stdout, f"{language['name']}: {health.stdout}{health.stderr}"


@test
def chat_file_answers_while_it_streams():
    reply = [{"words": "The first half,"}, {"gate": "middle"}, {"words": " and the second half."}]
    with session("notes.tandem.md", reply, [{"text": "Once more."}]) as (model, helix):
        helix.insert("geo", "How does streaming look?")
        helix.command("w")
        asked = question(model.wait("gate:middle")["requests"][0])
        assert "How does streaming look?" in asked, asked + helix.screen()
        helix.shows("The first half,")
        assert "second half" not in helix.screen()
        model.open("middle")
        helix.shows("and the second half.")
        helix.shows(r"## tandem[\s\S]*## You")
        helix.command("w")
        exchange = "How does streaming look?\n\n## tandem\n\nThe first half, and the second half.\n\n## You\n"
        helix.saved("notes.tandem.md", lambda text: text.startswith(CHAT + exchange))
        # The save above asked nothing: the next request is the second question, and it carries the first exchange.
        helix.insert("geo", "And again?")
        helix.command("w")
        helix.shows("Once more.")
        requests = model.requests()
        assert len(requests) == 2, len(requests)
        assert "And again?" in question(requests[1])
        assert "and the second half." in json.dumps(requests[1]["messages"])


@test
def asking_about_a_selection_answers_in_a_chat_file():
    with session("src/lib.rs", [{"text": "It adds two numbers."}]) as (model, helix):
        helix.insert("ggO", "// typed, not saved")
        helix.type("%")
        helix.action("Ask about")
        request = model.wait("requests:1")["requests"][0]
        assert "// typed, not saved" in json.dumps(request["messages"])
        assert "pub fn add" in json.dumps(request["messages"])
        helix.shows("It adds two numbers.")
        helix.shows(r"\.tandem\.md")
        assert helix.read("src/lib.rs") == CODE


@test
def edit_waits_for_permission_and_is_one_undo_step():
    edit = {"path": "src/lib.rs", "edits": [{"old_text": "a + b // unsaved", "new_text": "a.wrapping_add(b)"}]}
    call = {"call": {"id": "call_1", "name": "edit_file", "arguments": edit}, "fragments": 6}
    with session("src/lib.rs", [call], [{"text": "It cannot overflow now."}]) as (model, helix):
        helix.type("ggjj")
        helix.insert("A", " // unsaved")
        helix.type("%")
        helix.action("Edit")
        helix.shows(r"wrapping_add[\s\S]*Allow\* or")
        assert helix.read("src/lib.rs") == CODE
        helix.answer(r"Allow(?! for)")
        helix.shows("It cannot overflow now.")
        helix.command("open src/lib.rs")
        helix.shows(r"a\.wrapping_add\(b\)")
        assert helix.read("src/lib.rs") == CODE, "the disk is touched before :w"
        helix.type("u")
        helix.hides("wrapping_add")
        helix.shows(r"a \+ b // unsaved")
        helix.type("U")
        helix.shows("wrapping_add")
        helix.command("w")
        helix.saved("src/lib.rs", lambda text: text == CODE.replace("a + b", "a.wrapping_add(b)"))


@test
def question_is_a_hint_in_the_code_and_answered_there():
    edit = {"path": "src/lib.rs", "edits": [{"old_text": "a + b", "new_text": "a - b"}]}
    call = {"call": {"id": "call_1", "name": "edit_file", "arguments": edit}}
    with session("notes.tandem.md", [call], [{"text": "There you are."}]) as (_, helix):
        helix.insert("geo", "Subtract, please.")
        helix.command("w")
        helix.shows(r"Allow\* or")
        helix.close_menu()
        helix.command("open src/lib.rs")
        helix.type("3gg")
        helix.shows("tandem asks: Edit src/lib.rs")
        helix.action(r"Allow(?! for)")
        helix.shows("a - b")
        helix.hides("tandem asks")
        assert helix.read("src/lib.rs") == CODE, "the disk is touched before :w"


@test
def rejected_edit_changes_nothing():
    edit = {"path": "src/lib.rs", "edits": [{"old_text": "a + b", "new_text": "a - b"}]}
    call = {"call": {"id": "call_1", "name": "edit_file", "arguments": edit}}
    with session("notes.tandem.md", [call], [{"text": "Left as it was."}]) as (model, helix):
        helix.insert("geo", "Break it, please.")
        helix.command("w")
        helix.shows(r"a - b[\s\S]*Allow\* or")
        helix.close_menu()
        helix.command("lsp-workspace-command tandem.reject")
        helix.shows("Left as it was.")
        told = model.requests()[1]["messages"][-1]
        assert told["role"] == "tool" and "said no" in told["content"], told
        assert helix.read("src/lib.rs") == CODE


@test
def ask_command_takes_a_question():
    with session("src/lib.rs", [{"text": "Forty-two."}]) as (model, helix):
        if not helix.has_message_menus:
            raise Skipped("this Helix sends commands without arguments")
        helix.command('lsp-workspace-command tandem.ask {"prompt": "What is the answer?"}')
        assert "What is the answer?" in question(model.wait("requests:1")["requests"][0])
        helix.shows("Forty-two.")


@test
def cancel_hangs_up_on_the_model():
    with session("notes.tandem.md", [{"text": "I begin to"}, {"hang": True}], [{"text": "Back again."}]) as (model, helix):
        helix.insert("geo", "Talk for ever.")
        helix.command("w")
        helix.shows("I begin to")
        helix.command("lsp-workspace-command tandem.cancel")
        model.wait("closed:1")
        helix.shows("> stopped")
        helix.shows(r"## tandem[\s\S]*## You")
        helix.insert("geo", "Still there?")
        helix.command("w")
        helix.shows("Back again.")


@test
def without_a_model_the_chat_says_what_to_do():
    with Helix("notes.tandem.md", {}) as helix:
        helix.insert("geo", "Anybody home?")
        helix.command("w")
        helix.shows("(?i)no model")
        helix.shows("TANDEM_BASE_URL")


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {function.__name__ for function in TESTS}
    if unknown:
        sys.exit(f"no such test: {', '.join(unknown)}")
    # A run that is stopped from outside still takes its Helix and its model down with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    passed = failed = skipped = 0
    for function in TESTS:
        if wanted and function.__name__ not in wanted:
            continue
        try:
            function()
        except Skipped as reason:
            skipped += 1
            print(f"skipped {function.__name__}: {reason}", flush=True)
        except Exception as error:
            failed += 1
            traceback.print_tb(error.__traceback__, file=sys.stdout)
            print(f"FAILED {function.__name__}: {type(error).__name__}: {error}", flush=True)
        else:
            passed += 1
            print(f"ok {function.__name__}", flush=True)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
