# SPDX-License-Identifier: GPL-3.0-or-later

"""The answer of date: of GNU coreutils, of busybox, and of a node that answers what it likes."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.date import parse_date


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1764126000.123456789\n", 1764126000.123456789),
        ("1764126000.5\r\n", 1764126000.5),
        ("1764126000.%N\n", None),
        ("1764126000\n", None),
        ("", None),
        ("1764126000.12345678", 1764126000.12345678),
        ("1764126000.123\nroot", None),
        ("-1.5", None),
        ("nan", None),
        ("1e9.5", None),
        ("\u0663.\u0665", None),
        ("9" * 4_000_000 + ".5", None),
        ("1.5" + " " * 4_000_000, None),
    ],
)
def test_date(text: str, seconds: typing.Optional[float]) -> None:
    assert parse_date(text) == seconds
