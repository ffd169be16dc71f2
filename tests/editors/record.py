#!/usr/bin/env python3
"""Records Neovim working with tandem for the READMEs: a real editor, the real server, a scripted model. A PNG is the last frame.

    cargo build && NVIM=/path/to/nvim tests/editors/record.py undo docs/media/undo.webp

Needs tmux, chromium, imagemagick and webp from the distribution.
"""

import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import screen_html
from helix_driver import TANDEM, Model, model_environment
from terminal import Terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS, ROWS = 126, 28
MODEL = "qwen3"
FRAME_SECONDS = 0.12
LAST_FRAME_MS = 3000
QUALITY = 60
# Pixels for each pixel of the page, for sharp screens.
SCALE = 2
# The permission request shows the directory; it is created for the recording and must not exist yet.
HOME = pathlib.Path("/home/ada")
# Chromium draws pages up to this height in one piece.
PAGE_HEIGHT = 16000 // SCALE

INIT = """
vim.opt.runtimepath:append('{plugin}')
vim.opt.termguicolors, vim.opt.number, vim.opt.laststatus, vim.opt.swapfile = true, true, 3, false
vim.api.nvim_create_autocmd('FileType', {{ command = 'setlocal formatoptions-=ro' }})
vim.g.tandem = {{ cmd = {{ '{tandem}', 'lsp' }} }}
"""
FILES = {
    "src/main.rs": """\
use std::env;

mod legacy;

/// The port to listen on, from `PORT`.
fn port() -> u16 {
    let text = env::var("PORT").unwrap();
    text.parse().unwrap()
}

fn main() {
    println!("listening on {}", port());
}
""",
    "src/legacy/mod.rs": "pub mod v1;\npub mod v2;\n",
    "src/legacy/v1.rs": "pub fn greet() -> &'static str {\n    \"hello\"\n}\n",
    "src/legacy/v2.rs": "pub fn greet(name: &str) -> String {\n    format!(\"hello, {name}\")\n}\n",
}


class Edit:
    """A request, an edit that streams in and is approved, and its review."""

    def script(self):
        old = """    let text = env::var("PORT").unwrap();
    text.parse().unwrap()"""
        new = """    let text = env::var("PORT").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(8080)"""
        edit = {"path": "src/main.rs", "edits": [{"old_text": old, "new_text": new}]}
        return (
            [
                {"words": "`port()` panics when `PORT` is unset or not a number. I will fall back to 8080.", "delay_ms": 60},
                {"call": {"id": "c1", "name": "edit_file", "arguments": edit}, "fragments": 30, "delay_ms": 60},
            ],
            [{"words": "`port()` now falls back to 8080 (`src/main.rs:7`). Nothing else changed.", "delay_ms": 60}],
        )

    def play(self, terminal):
        person_types(terminal, ":Tandem ask make port() fall back to 8080")
        terminal.shows(r"unwrap_or\(8080\)")
        terminal.shows(r"[Aa]llow")
        time.sleep(2.0)
        person_types(terminal, ":Tandem allow")
        terminal.shows("Nothing else changed")
        time.sleep(1.5)
        person_types(terminal, ":Tandem review")
        time.sleep(1.5)


class Undo:
    """Text that was never saved, a command that destroys it along with files, and one undo."""

    command = "git checkout -q . && rm -rf src/legacy"

    def script(self):
        call = {"id": "c1", "name": "run_command", "arguments": {"command": self.command}}
        return (
            [
                {"words": "I'll start from a clean checkout and delete the module.", "delay_ms": 60},
                {"call": call, "fragments": 12, "delay_ms": 60},
            ],
            [{"words": "Done: `src/legacy` is gone.", "delay_ms": 60}],
        )

    def play(self, terminal):
        terminal.keys("G", "o", "Enter")
        for line in ("// Not saved yet.", "fn retry(times: u32) -> bool {", "times > 0", "}"):
            person_types(terminal, line)
        terminal.keys("Escape")
        terminal.shows(r"\[\+\]")
        time.sleep(1.0)
        person_types(terminal, ":Tandem ask remove the legacy module")
        terminal.shows(r"[Aa]llow")
        time.sleep(1.5)
        person_types(terminal, ":Tandem allow")
        terminal.shows("is gone")
        time.sleep(2.5)
        person_types(terminal, ":Tandem undo")
        terminal.shows(r"[Uu]ndid")
        time.sleep(1.0)
        person_types(terminal, ":!ls src/legacy")
        terminal.shows("v2.rs")
        time.sleep(1.0)


class Command:
    """A command that requires approval."""

    def script(self):
        call = {"id": "c1", "name": "run_command", "arguments": {"command": "cargo test"}}
        return ([{"text": "I'll run the tests."}, {"call": call}],)

    def play(self, terminal):
        person_types(terminal, ":Tandem ask do the tests pass?")
        terminal.shows(r"[Aa]llow")
        time.sleep(1.0)


STORIES = {"command": Command, "edit": Edit, "undo": Undo}


def person_types(terminal, line):
    """Types a line at the speed of a fast typist."""
    for key in line:
        terminal.type(key)
        time.sleep(0.03)
    terminal.keys("Enter")


class Recorder:
    """Captures the screen at a steady pace in the background; equal frames become one that lasts longer."""

    def __init__(self, terminal):
        self.terminal, self.frames, self.running = terminal, [], True
        self.thread = threading.Thread(target=self.record)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.running = False
        self.thread.join()

    def record(self):
        while self.running:
            began = time.monotonic()
            screen = self.terminal.colored()
            if self.frames and self.frames[-1][0] == screen:
                self.frames[-1][1] += FRAME_SECONDS
            else:
                self.frames.append([screen, FRAME_SECONDS])
            time.sleep(max(0, FRAME_SECONDS - (time.monotonic() - began)))


def page(screen):
    """The frame as HTML, and its size."""
    out, err, sys.stdin = io.StringIO(), io.StringIO(), io.StringIO(screen)
    sys.stdout, sys.stderr = out, err
    try:
        screen_html.main()
    finally:
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    width, height = map(int, err.getvalue().split(","))
    return out.getvalue(), width, height


def draw(frames, folder):
    """One PNG per frame: many frames are drawn as one long page, which is then cut up."""
    pages = [page(screen) for screen, _ in frames]
    width, height = pages[0][1:]
    style = re.search(r"<style>.*?</style>", pages[0][0], re.S).group()
    batch = PAGE_HEIGHT // height
    images = []
    for first in range(0, len(pages), batch):
        part = pages[first : first + batch]
        bodies = [re.sub(r"^.*?</style>\n", "", text, flags=re.S) for text, _, _ in part]
        wrap = f'<section style="box-sizing:border-box;height:{height}px;padding:{screen_html.PADDING}px;overflow:hidden">'
        html = '<meta charset="utf-8">' + style + "<style>body { padding: 0 }</style>"
        (folder / "page.html").write_text(html + "".join(wrap + body + "</section>" for body in bodies))
        shot = folder / "page.png"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--force-device-scale-factor={SCALE}", f"--user-data-dir={folder}/profile", f"--window-size={width},{height * len(part)}",
             f"--screenshot={shot}", f"file://{folder}/page.html"],
            check=True, capture_output=True,
        )  # fmt: skip
        names = [folder / f"frame{first + index:04}.png" for index in range(len(part))]
        for index, name in enumerate(names):
            crop = f"{width * SCALE}x{height * SCALE}+0+{index * height * SCALE}"
            subprocess.run(["convert", str(shot), "-crop", crop, "+repage", str(name)], check=True)
        images += names
    return images


def project(folder):
    """A small repository with everything committed."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    for command in (["init", "-q"], ["add", "."], [*person, "commit", "-qm", "begin"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


@contextlib.contextmanager
def temporary_home():
    HOME.mkdir()
    try:
        yield HOME
    finally:
        shutil.rmtree(HOME)


def main(name, out):
    nvim, story = os.environ.get("NVIM", "nvim"), STORIES[name]()
    with temporary_home() as home, Model() as model:
        project(home / "project")
        (home / "init.lua").write_text(INIT.format(plugin=ROOT / "editors" / "neovim", tandem=TANDEM))
        model.script(*story.script())
        environment = {**os.environ, **model_environment(model), "TANDEM_MODEL": MODEL}
        environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        command = [nvim, "-u", str(home / "init.lua"), "src/main.rs"]
        with Terminal(command, str(home / "project"), environment, COLUMNS, ROWS) as terminal:
            recorder = Recorder(terminal)
            terminal.shows("fn port")
            # Pauses in a story are for the viewer; everything else waits for the screen.
            with recorder:
                story.play(terminal)
        frames = recorder.frames
        if out.endswith(".png"):
            shutil.copy(*draw(frames[-1:], home), out)
            return
        images = draw(frames, home)
        arguments = ["img2webp", "-loop", "0", "-lossy", "-q", str(QUALITY), "-m", "6"]
        for image, (_, seconds) in zip(images[:-1], frames[:-1]):
            arguments += ["-d", str(round(seconds * 1000)), str(image)]
        arguments += ["-d", str(LAST_FRAME_MS), str(images[-1])]
        subprocess.run([*arguments, "-o", out], check=True)
    print(f"{out}: {len(frames)} frames, {os.path.getsize(out) // 1000} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
