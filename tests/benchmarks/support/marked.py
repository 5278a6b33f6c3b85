# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a page that a benchmark makes: between its marks, so that the words around them stay."""

from __future__ import annotations

import pathlib


def replace(page: pathlib.Path, benchmark: str, text: str) -> None:
    """Put a text between the marks of a benchmark.

    :raises SystemExit: the page has no such marks
    """
    begin, end = f"<!-- made by tests/benchmarks/{benchmark}.py -->\n", "<!-- end of what is made -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _old, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(
            f"{page} has no line '{begin.strip()}' with '{end.strip()}' below it: add both where the table shall be"
        )
    page.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")
