#!/usr/bin/env python3
"""Turns a captured terminal screen (`tmux capture-pane -p -e -N`, UTF-8) on stdin into a web page on stdout.

Prints its size on stderr as `WIDTH,HEIGHT` in CSS pixels, so that a screenshot needs no cropping.
"""

import collections
import html
import re
import sys
import unicodedata

CELL_WIDTH, CELL_HEIGHT, PADDING = 9, 19, 12
FOREGROUND, BACKGROUND = "#d8dee9", "#1e1e2e"
ANSI = "#45475a #f38ba8 #a6e3a1 #f9e2af #89b4fa #f5c2e7 #94e2d5 #bac2de".split()
BRIGHT = "#585b70 #f38ba8 #a6e3a1 #f9e2af #89b4fa #f5c2e7 #94e2d5 #ffffff".split()
STYLES = {
    1: "font-weight:700",
    2: "opacity:.6",
    3: "font-style:italic",
    4: "text-decoration:underline",
    9: "text-decoration:line-through",
}
OFF = {22: (1, 2), 23: (3,), 24: (4,), 27: (7,), 29: (9,)}
WIDE = r"\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\uff60\U0001f000-\U0003ffff"

PAGE = """<meta charset="utf-8">
<style>
  body {{ margin: 0; padding: {padding}px; background: {background}; color: {foreground} }}
  div {{ height: {height}px; font: 15px/{height}px "JetBrains Mono", "DejaVu Sans Mono", monospace;
        white-space: pre; font-variant-ligatures: none }}
  span {{ display: inline-block; height: {height}px; vertical-align: top }}
</style>
"""


def indexed(number):
    """A color of the 256-color palette."""
    if number < 16:
        return (ANSI + BRIGHT)[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return "#" + "".join(f"{steps[number // unit % 6]:02x}" for unit in (36, 6, 1))


class Pen:
    """The SGR state: what the escape sequences have set so far."""

    def __init__(self):
        self.on, self.foreground, self.background = set(), None, None

    def apply(self, sequence):
        # `4:3` (a curly underline) is drawn as a plain one.
        codes = [int(code.partition(":")[0] or 0) for code in sequence.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.__init__()
            elif code in (38, 48, 58):
                color = self.color(codes)
                self.foreground = color if code == 38 else self.foreground
                self.background = color if code == 48 else self.background
            elif code == 39:
                self.foreground = None
            elif code == 49:
                self.background = None
            elif code in OFF:
                self.on -= set(OFF[code])
            elif code < 10:
                self.on.add(code)
            else:
                self.plain(code)

    def color(self, codes):
        if codes.pop(0) == 5:
            return indexed(codes.pop(0))
        return "#" + "".join(f"{codes.pop(0):02x}" for _ in range(3))

    def plain(self, code):
        for base, palette in ((30, ANSI), (90, BRIGHT)):
            if base <= code < base + 8:
                self.foreground = palette[code - base]
            elif base + 10 <= code < base + 18:
                self.background = palette[code - base - 10]

    def colors(self):
        pair = self.foreground or FOREGROUND, self.background
        return (pair[1] or BACKGROUND, pair[0]) if 7 in self.on else pair

    def css(self):
        foreground, background = self.colors()
        rules = [f"color:{foreground}"] + [STYLES[code] for code in sorted(self.on & STYLES.keys())]
        return ";".join(rules + ([f"background:{background}"] if background else []))


def width(text):
    """The number of terminal cells that `text` takes."""
    wide = len(re.findall(f"[{WIDE}]", text))
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def main():
    pen, areas, rows, columns = Pen(), collections.Counter(), [], 0
    for line in sys.stdin.read().removesuffix("\n").split("\n"):
        row, cells = [], 0
        for sequence, text in re.findall(r"\x1b\[([\d;:]*)m|([^\x1b]+)", line):
            if not text:
                pen.apply(sequence)
                continue
            # Each wide character gets a box of its own, so that the font's width for it cannot shift the line.
            for part in re.findall(f"[{WIDE}]|[^{WIDE}]+", text):
                areas[pen.colors()[1]] += width(part)
                cells += width(part)
                row.append(f'<span style="width:{width(part) * CELL_WIDTH}px;{pen.css()}">{html.escape(part)}</span>')
        rows.append("<div>" + "".join(row) + "</div>")
        columns = max(columns, cells)
    background = areas.most_common(1)[0][0] or BACKGROUND
    print(
        PAGE.format(padding=PADDING, background=background, foreground=FOREGROUND, height=CELL_HEIGHT) + "\n".join(rows)
    )
    print(f"{columns * CELL_WIDTH + 2 * PADDING},{len(rows) * CELL_HEIGHT + 2 * PADDING}", file=sys.stderr)


if __name__ == "__main__":
    main()
