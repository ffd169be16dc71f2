#!/usr/bin/env python3
"""What a long chat costs Helix: how long a typed letter takes to the screen, at rest and while an answer streams.

    HX=… TANDEM_BIN=target/release/tandem tests/editors/helix_bench.py [TURNS] [TOKENS]

A real Helix in a real terminal on a chat file of that many turns; the person types the next question below the answer,
which streams at 100 tokens a second. Fails when a figure is over its limit. Run it on an idle machine.
"""

import math
import subprocess
import sys
import time

from helix_driver import HX, session

LIMIT = 60
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# About as fast as a person types.
PAUSE = 1 / 25
PIECE = """The function `run` **reads** its input before it parses it, see [main.rs](main.rs) and `src/lib.rs:12`.
Each line is *split* at the first colon, and what stands behind it is trimmed.

- first it opens the file, which may fail with `NotFound`
- then it reads all of it, and closes it

```rust
fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}
```

"""


def echo(helix, count):
    """The times until a typed letter is on the screen, in ms. The cursor is in insert mode on an empty line."""
    times, line = [], ""
    for number in range(count):
        letter = LETTERS[number % len(LETTERS)]
        line += letter
        began = time.perf_counter()
        helix.type(letter)
        helix.until(lambda screen: line in screen, f"the letter {letter}")
        times.append((time.perf_counter() - began) * 1000)
        if letter == LETTERS[-1]:
            helix.keys("Enter")
            line = ""
        time.sleep(PAUSE)
    return sorted(times)


def figure(name, times, limit=None):
    """Prints the median and the 95th percentile; returns whether that is within the limit."""
    p95 = times[math.ceil(len(times) * 0.95) - 1]
    is_met = limit is None or p95 <= limit
    goal = "" if limit is None else f" (limit {limit}){'' if is_met else ' OVER'}"
    print(f"{name:<32} median {times[len(times) // 2]:6.1f} ms   p95 {p95:6.1f} ms{goal}   most {times[-1]:6.1f} ms", flush=True)
    return is_met


def main():
    turns, tokens = (int(argument) for argument in [*sys.argv[1:], "100", "2000"][:2])
    chat = "".join(f"## You\n\nQuestion {turn}?\n\n## tandem\n\n{PIECE * 2}\n" for turn in range(turns)) + "## You\n\n"
    answer = PIECE * (tokens // len(PIECE.split()) + 1)
    version = subprocess.run([HX, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"{version}, {turns} turns, {chat.count(chr(10))} lines, {len(answer.split())} tokens", flush=True)
    with session("notes.tandem.md", [{"text": "Now: "}, {"gate": "go"}, {"words": answer, "delay_ms": 10}], chat=chat) as (model, helix):
        helix.ask("Go on")
        model.wait("gate:go")
        helix.shows(r"Now:[\s\S]*## You")
        helix.type("geo")
        helix.shows(r"(?m)^ INS ")
        idle = echo(helix, 52)
        model.open("go")
        helix.until(lambda _: "The function `run`" in helix.wire().split('"Now:')[-1], "the stream")
        # At least ten seconds, so that the stream is running throughout.
        streaming = echo(helix, 104)
        assert helix.ended() == 0, "the stream ended before the typing: give more tokens"
    figure("echo of a letter, idle", idle)
    is_met = figure("echo of a letter, at 100 tokens/s", streaming, LIMIT)
    sys.exit(not is_met)


if __name__ == "__main__":
    main()
