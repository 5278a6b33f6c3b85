# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
