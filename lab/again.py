# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a command again whenever it ends, as a kubelet does with a container: python3 again.py COMMAND..."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

SECONDS_BETWEEN = 2


def main() -> int:
    child = subprocess.Popen(sys.argv[1:])

    def end(number: int, _frame: object) -> None:
        child.terminate()
        child.wait()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    while True:
        print(f"ended with {child.wait()}, starting it again", flush=True)
        time.sleep(SECONDS_BETWEEN)
        child = subprocess.Popen(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
