# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the warnings of libibverbs, which precede the output of a tool and explain why libibverbs finds no device.

Texts: rdma-core's libibverbs/init.c and ibdev_nl.c, releases 17 to 57. "couldn't load driver" alone is not a cause. An
image without the providers of other vendors prints it for each of them, and works.
"""

from __future__ import annotations

import re
import typing

Kind = typing.Literal["provider_abi", "provider_missing", "uverbs_abi"]

_PATTERNS: tuple[tuple[Kind, typing.Pattern[str]], ...] = (
    (
        "uverbs_abi",
        re.compile(r"[Ff]atal: (?:kernel ABI version \d{1,9} doesn't match|couldn't read uverbs ABI version)"),
    ),
    ("provider_abi", re.compile(r"Driver \S{1,100} does not support the kernel ABI of \d{1,9}")),
    ("provider_missing", re.compile(r"no userspace device-specific driver found for ")),
)
_MARK = "libibverbs: "
#: warnings that are shown, and characters of each
_SHOWN, _LONGEST = 4, 250


class Warnings(typing.NamedTuple):
    """The warnings of libibverbs in the output of a tool.

    :ivar kind: kind of the warning that explains why no device was found; None if no warning does
    :ivar lines: the warnings, each once, with those of that kind first
    """

    kind: typing.Optional[Kind]
    lines: tuple[str, ...]


def parse(text: str) -> Warnings:
    """Return the warnings of libibverbs in the output of a tool, at most four. The result has no kind and no lines if
    there are none.
    """
    lines = dict.fromkeys(line[line.index(_MARK) :].strip()[:_LONGEST] for line in text.splitlines() if _MARK in line)
    for kind, pattern in _PATTERNS:
        deciding = [line for line in lines if pattern.search(line)]
        if deciding:
            return Warnings(kind, tuple([*deciding, *(line for line in lines if line not in deciding)][:_SHOWN]))
    return Warnings(None, tuple(lines)[:_SHOWN])
