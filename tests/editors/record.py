#!/usr/bin/env python3
"""Records Neovim working with tandem for the README: a real editor, the real server, a scripted model.

    cargo build && NVIM=/path/to/nvim tests/editors/record.py docs/media/session.webp

Needs tmux, chromium, imagemagick and webp from the distribution.
"""

import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
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
# Chromium draws pages up to this height in one go.
PAGE_HEIGHT = 16000

SOURCE = """\
use std::env;

/// The port to listen on, from `PORT`.
fn port() -> u16 {
    let text = env::var("PORT").unwrap();
    text.parse().unwrap()
}

fn main() {
    println!("listening on {}", port());
}
"""
OLD = """    let text = env::var("PORT").unwrap();
    text.parse().unwrap()"""
NEW = """    let text = env::var("PORT").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(8080)"""
INIT = """
vim.opt.runtimepath:append('{plugin}')
vim.opt.termguicolors, vim.opt.number, vim.opt.laststatus, vim.opt.swapfile = true, true, 3, false
vim.g.tandem = {{ cmd = {{ '{tandem}', 'lsp' }} }}
"""


def script():
    edit = {"path": "src/main.rs", "edits": [{"old_text": OLD, "new_text": NEW}]}
    return (
        [
            {"words": "`port()` panics when `PORT` is unset or not a number. I will fall back to 8080.", "delay_ms": 60},
            {"call": {"id": "c1", "name": "edit_file", "arguments": edit}, "fragments": 30, "delay_ms": 60},
        ],
        [{"words": "`port()` now falls back to 8080 (`src/main.rs:5`). Nothing else changed.", "delay_ms": 60}],
    )


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


def play(terminal, recorder):
    """What the person does. Pauses are for the viewer; everything else waits for the screen."""
    terminal.shows("fn port")
    with recorder:
        for key in ":Tandem ask make port() fall back to 8080":
            terminal.type(key)
            time.sleep(0.03)
        terminal.keys("Enter")
        terminal.shows(r"unwrap_or\(8080\)")
        terminal.shows(r"[Aa]llow")
        time.sleep(2.0)
        terminal.type(":Tandem allow")
        terminal.keys("Enter")
        terminal.shows("Nothing else changed")
        time.sleep(1.5)
        terminal.type(":Tandem review")
        terminal.keys("Enter")
        time.sleep(1.5)


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
    """One PNG per frame: many frames are drawn as one long page, which is then cut."""
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
             f"--user-data-dir={folder}/profile", f"--window-size={width},{height * len(part)}",
             f"--screenshot={shot}", f"file://{folder}/page.html"],
            check=True, capture_output=True,
        )  # fmt: skip
        names = [folder / f"frame{first + index:04}.png" for index in range(len(part))]
        for index, name in enumerate(names):
            crop = f"{width}x{height}+0+{index * height}"
            subprocess.run(["convert", str(shot), "-crop", crop, "+repage", str(name)], check=True)
        images += names
    return images


def main(out):
    nvim = os.environ.get("NVIM", "nvim")
    with tempfile.TemporaryDirectory() as folder, Model() as model:
        home = pathlib.Path(folder)
        (home / "project" / "src").mkdir(parents=True)
        (home / "project" / ".git").mkdir()
        (home / "project" / "src" / "main.rs").write_text(SOURCE)
        (home / "init.lua").write_text(INIT.format(plugin=ROOT / "editors" / "neovim", tandem=TANDEM))
        model.script(*script())
        environment = {**os.environ, **model_environment(model), "TANDEM_MODEL": MODEL, "HOME": folder}
        environment["XDG_CACHE_HOME"] = folder + "/cache"
        command = [nvim, "-u", str(home / "init.lua"), "src/main.rs"]
        with Terminal(command, str(home / "project"), environment, COLUMNS, ROWS) as terminal:
            recorder = Recorder(terminal)
            play(terminal, recorder)
        frames = recorder.frames
        images = draw(frames, home)
        arguments = ["img2webp", "-loop", "0", "-lossy", "-q", str(QUALITY), "-m", "6"]
        for image, (_, seconds) in zip(images[:-1], frames[:-1]):
            arguments += ["-d", str(round(seconds * 1000)), str(image)]
        arguments += ["-d", str(LAST_FRAME_MS), str(images[-1])]
        subprocess.run([*arguments, "-o", out], check=True)
    print(f"{out}: {len(frames)} frames, {os.path.getsize(out) // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1])
