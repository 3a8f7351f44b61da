"""Runs a command in a terminal and draws what it shows: python .github/capture.py OUT.svg COMMAND

The README's pictures are made with it, from a directory of their own because the demo leaves files:

    python .github/capture.py .github/demo.svg otel-eval demo --seconds 20
"""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 88, 50
REDRAW = re.compile(r"\x1b\[(\d+)F\x1b\[J")
"""How a live view begins its next drawing: so many lines up, and all below them gone."""
FONTS = re.compile(r" *@font-face \{.*?\}\n?", re.DOTALL)
"""A picture fetches nothing."""


def main(out: str, *command: str) -> None:
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    console.print(Text(f"$ {' '.join(command)}", style="bold"))
    for line in screen(shown(command)):
        console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(title=command[0], unique_id="otel-eval")
    Path(out).write_text(FONTS.sub("", svg), encoding="utf-8")


def shown(command: tuple[str, ...]) -> str:
    """All that the command writes to its terminal."""
    near, far = os.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdout=far, stderr=far, env=environment)
    os.close(far)
    output = b"".join(chunks(near))
    process.wait()
    return output.decode().replace("\r\n", "\n")


def chunks(terminal: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(terminal, 65536):
            yield chunk
    except OSError:
        return  # how Linux ends a terminal that nobody writes to any more


def screen(output: str) -> list[str]:
    """What is on the terminal at the end."""
    lines: list[str] = []
    for line in output.splitlines():
        if found := REDRAW.match(line):
            del lines[-int(found[1]) :]
        lines.append(REDRAW.sub("", line))
    return lines


if __name__ == "__main__":
    main(*sys.argv[1:])
