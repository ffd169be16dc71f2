"""The real Helix ($HX) on a small project with the real tandem ($TANDEM_BIN), and the scripted model behind it."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
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
    """Helix on a small project, with tandem's configuration files unchanged."""

    def __init__(self, file, settings, chat=CHAT, home=None):
        self.file = file
        self.asked = 0
        self.home = home or tempfile.TemporaryDirectory(prefix="tandem-helix-", ignore_cleanup_errors=True)
        home = pathlib.Path(self.home.name)
        self.project = home / "project"
        self.log = home / "cache/helix/helix.log"
        for folder in ("bin", "config/helix", "cache", "state", "project/.git", "project/src"):
            (home / folder).mkdir(parents=True)
        (home / "bin/tandem").symlink_to(TANDEM)
        for name in ("languages.toml", "config.toml"):
            (home / "config/helix" / name).write_text((CONFIG / name).read_text())
        (self.project / "src/lib.rs").write_text(CODE)
        (self.project / "notes.tandem.md").write_text(chat)
        self.path = f"{home}/bin:/usr/bin:/bin"
        environment = {
            "PATH": self.path,
            "HOME": str(home),
            "XDG_CONFIG_HOME": f"{home}/config",
            "XDG_CACHE_HOME": f"{home}/cache",
            "TANDEM_CONFIG": f"{home}/config/none.toml",
            "TANDEM_STATE_DIR": f"{home}/state",
            **settings,
        }
        super().__init__([HX, "-v", file], str(self.project), environment)

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.push(self)
            self.opens(1)
            stack.pop_all()
        return self

    def opens(self, times):
        """Waits until Helix has opened its file this many times: a save could come before the server knows the document."""
        self.shows(re.escape(pathlib.Path(self.file).name))
        self.until(lambda _: self.wire().count('"method":"textDocument/didOpen"') >= times, "opening the document")

    def __exit__(self, kind, *rest):
        if kind is not None:
            OUT.mkdir(parents=True, exist_ok=True)
            (OUT / "helix-failed-screen.txt").write_text(self.colored())
            (OUT / "helix-failed.log").write_text(self.wire())
        super().__exit__(kind, *rest)
        self.home.cleanup()

    def restart(self):
        """Quits Helix, which has saved everything, and starts it again on the same file."""
        opened = self.wire().count('"method":"textDocument/didOpen"')
        self.command("qa")
        self.program_ends()
        self.asked = self.ended()  # the end of its last turn may not have arrived
        # Otherwise it would inherit the path of the surrounding tmux.
        self.tmux("respawn-pane", "-k", env={**os.environ, "PATH": self.path})
        self.opens(opened + 1)

    def wire(self):
        """The messages between Helix and tandem so far, from Helix's log."""
        return self.log.read_text() if self.log.exists() else ""

    @property
    def has_message_menus(self):
        """Newer versions show `window/showMessageRequest` as a menu; older ones refuse it."""
        return '"messageActionItem"' in self.wire()

    def read(self, file):
        return (self.project / file).read_text()

    def saved(self, file, ready):
        """Waits until the file on disk is as expected: Helix writes in the background, and moves the old file away first."""

        def is_saved(_):
            with contextlib.suppress(FileNotFoundError):
                return ready(self.read(file))

        self.until(is_saved, f"saving {file}")

    def command(self, text):
        """Runs a typable command from normal mode."""
        self.type(f":{text}")
        self.shows(rf"(?m)^:{re.escape(text)}\s*$")
        self.keys("Enter")
        self.hides(rf"(?m)^:{re.escape(text)}\s*$")

    def insert(self, keys, text):
        """Enters insert mode with `keys`, types, and returns to normal mode."""
        self.type(keys)
        self.shows(r"(?m)^ INS ")
        for number, line in enumerate(text.split("\n")):
            if number:
                self.keys("Enter")
            self.type(line)
        self.keys("Escape")
        self.shows(r"(?m)^ NOR ")

    def ask(self, question):
        """Writes a prompt at the end of the chat and sends it."""
        self.insert("geo", question)
        self.send()

    def send(self):
        """Saves the chat, which sends its prompt, once the earlier answers have ended."""
        self.until(lambda _: self.ended() >= self.asked, "the end of the turn before")
        self.asked += 1
        self.command("w")

    def ended(self):
        """The number of finished turns."""
        return len(re.findall(r'"message":"tandem: (?:done|stopped)"', self.wire()))

    def search(self, text, place):
        """Moves the cursor to a text, which is at this line and column."""
        self.type(f"gg/{text}")
        self.keys("Enter")
        self.shows(rf"(?m) {place}\s*$")

    def complete(self, keys, text, label):
        """Enters insert mode with `keys`, types, accepts the first completion, and returns to normal mode."""
        self.type(keys)
        self.shows(r"(?m)^ INS ")
        self.type(text)
        self.shows(rf"{re.escape(label)} +(file|folder|reference|function)")
        self.keys("Tab", "Enter", "Escape")
        self.shows(r"(?m)^ NOR ")

    def action(self, title):
        """Chooses the first of tandem's code actions whose title matches, from the menu that `space a` opens.

        The menu is opened again until it has that action: a turn may be about to end.
        """

        def entries(_):
            self.type(" a")
            menu = self.until(lambda screen: re.findall(r"(?m) tandem: ([A-Z].*)$", screen), "code actions")
            at = next((row for row, text in enumerate(menu) if re.match(title, text)), None)
            if at is None:
                self.close(r"(?m) tandem: [A-Z].*$")
            return None if at is None else ["Down"] * at + ["Enter"]

        self.keys(*self.until(entries, f"a code action /{title}/"))

    def answer(self, title):
        """Answers the open permission request: in the menu if Helix shows one, otherwise by code action."""
        if not self.has_message_menus:
            return self.action(title)

        def entries(screen):
            # The entries are below the box with the question, in the same columns; the first is selected.
            lines = screen.split("\n")
            box = next(((row, line.index("└")) for row, line in enumerate(lines) if "└" in line), None)
            menu = [line[box[1] :].strip() for line in lines[box[0] + 1 :]] if box else []
            at = next((row for row, text in enumerate(menu) if re.match(title, text)), None)
            return None if at is None else ["Down"] * at + ["Enter"]

        self.keys(*self.until(entries, f"a menu with /{title}/"))

    def close_menu(self):
        """Leaves the open request undecided, where Helix shows it as a menu."""
        if self.has_message_menus:
            self.shows(r"Always \(session\)")
            self.close(r"Always \(session\)")

    def close(self, shown):
        """Closes the open menu. A key pressed right after Escape would be read as one with Alt."""
        self.keys("Escape")
        self.hides(shown)


@contextlib.contextmanager
def session(file, *replies, chat=CHAT):
    with Model() as model, Helix(file, model_environment(model), chat) as helix:
        model.script(*replies)
        yield model, helix


def question(request):
    """The last message of the user in a request, as text."""
    content = [message for message in request["messages"] if message["role"] == "user"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
