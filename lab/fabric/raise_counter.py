# SPDX-License-Identifier: GPL-3.0-or-later

"""Keeps raising an error counter of a simulated port, as a bad cable does, until it is ended or the counter is full.

``python -m lab.fabric.raise_counter CONSOLE COMMAND FIRST LARGEST``: COMMAND is ibsim's, without the value.
"""

from __future__ import annotations

import os
import sys
import time
import typing

PERIOD_SECONDS = 0.5
# a counter of 16 bits lasts for an hour and a half, and one of 8 bits for two minutes
STEPS = 10_000


def main(arguments: typing.Sequence[str]) -> int:
    console, command, first, largest = arguments
    step = max(1, int(largest) // STEPS)
    for value in range(int(first) + step, int(largest) + 1, step):
        # a line is written whole: others may write to the console between two of ours
        end = os.open(console, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(end, f"{command}={value}\n".encode())
        finally:
            os.close(end)
        time.sleep(PERIOD_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
