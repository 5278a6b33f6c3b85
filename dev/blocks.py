# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of a page that a command makes, between two comments: ``<!-- made by 'python -m dev.parts' -->`` and ``<!-- end
-->``."""

from __future__ import annotations

import pathlib
import re

from .steps import ROOT, StepError


def read_block(page: str, module: str, path: pathlib.Path) -> str:
    """The block of a page that a module makes.

    :param path: of the page, for an error
    :raises StepError: there is none, or several
    """
    return _find(page, module, path)[1]


def put_block(page: str, module: str, path: pathlib.Path, made: str) -> str:
    """The text of a page with this as its block.

    :param path: of the page, for an error
    :raises StepError: there is none, or several
    """
    before, _block, after = _find(page, module, path)
    return before + made + after


def _find(page: str, module: str, path: pathlib.Path) -> tuple[str, str, str]:
    begin = f"<!-- made by 'python -m {module}' -->\n"
    found = [
        (match.start(1), match.end(1))
        for match in re.finditer(rf"{re.escape(begin)}(.*?)<!-- end -->\n", page, re.DOTALL)
    ]
    if len(found) != 1:
        raise StepError(
            f"{path.relative_to(ROOT)} has {len(found)} places for what {module} makes; expected 1",
            f"Put it between {begin}and <!-- end -->.",
        )
    ((start, end),) = found
    return page[:start], page[start:end], page[end:]
