"""A program in a real terminal, driven as a person would: sends keys and reads the screen (tmux and the standard library)."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

# Long enough for a busy machine; if everything works, nothing waits this long.
PATIENCE = 60

CONFIG = """
set -g default-terminal tmux-256color
set -ga terminal-overrides ",*:Tc"
set -g status off
set -g escape-time 0
set -g remain-on-exit on
"""


class Timeout(AssertionError):
    """The screen never showed what was expected."""


class Terminal:
    """A private tmux server with one window; use it as a context manager."""

    def __init__(self, command, folder, environment, columns=100, rows=32):
        self.folder = tempfile.TemporaryDirectory(prefix="tandem-tmux-")
        self.socket = os.path.join(self.folder.name, "socket")
        config = os.path.join(self.folder.name, "tmux.conf")
        with open(config, "w") as file:
            file.write(CONFIG)
        environment = {**environment, "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
        size = ["-x", str(columns), "-y", str(rows)]
        self.tmux("-f", config, "-u", "new-session", "-d", *size, "-c", folder, shlex.join(command), env=environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server", check=False)
        self.folder.cleanup()

    def tmux(self, *arguments, check=True, env=None):
        command = ["tmux", "-S", self.socket, *arguments]
        return subprocess.run(command, check=check, env=env, capture_output=True, text=True).stdout

    def keys(self, *names):
        """Presses keys by their tmux names: Enter, Escape, Down, C-c…"""
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def colored(self):
        """The screen with its escape sequences, as `screen_png.sh` reads it."""
        return self.tmux("capture-pane", "-p", "-e", "-N")

    def until(self, ready, what):
        """Polls until `ready(screen)` is true, and returns its value."""
        deadline = time.monotonic() + PATIENCE
        while True:
            screen = self.screen()
            if value := ready(screen):
                return value
            if time.monotonic() > deadline:
                raise Timeout(f"{what} did not happen within {PATIENCE} s; the screen was:\n{screen}")
            time.sleep(0.02)

    def program_ends(self):
        """Waits until the program has ended. tmux itself misses some exits: their processes stay zombies."""
        process = pathlib.Path("/proc", self.tmux("display-message", "-p", "#{pane_pid}").strip(), "stat")
        self.until(lambda _: not process.exists() or ") Z " in process.read_text(), "the end of the program")

    def shows(self, pattern):
        return self.until(lambda screen: re.search(pattern, screen), f"showing /{pattern}/")

    def hides(self, pattern):
        return self.until(lambda screen: not re.search(pattern, screen), f"hiding /{pattern}/")
