# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Empties the cache of builds and downloads."""

from __future__ import annotations

import shutil

from .steps import CACHE, say


def main() -> None:
    if CACHE.exists():
        shutil.rmtree(CACHE)
    say(f"{CACHE} is gone")


if __name__ == "__main__":
    main()
