# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The memory of this process."""

from __future__ import annotations

import pathlib
import re


def peak() -> float:
    """The most that was resident so far, in MiB. Not getrusage's, which a process takes over from the one that started
    it."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", pathlib.Path("/proc/self/status").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit("/proc/self/status has no VmHWM")
    return int(found.group(1)) / 1024
