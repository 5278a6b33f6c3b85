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
