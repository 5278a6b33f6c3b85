# SPDX-License-Identifier: GPL-3.0-or-later

"""What a node, a pod, an API, a BMC or a tool says costs the controller little, and is at worst the error of that one."""

from __future__ import annotations

import math
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB, decode_json


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[" * 600 + "]" * 600, "nesting of lists and mappings"),
        ("[" * 100_000, "nesting of lists and mappings"),
        ('{"a":' * 600 + "1" + "}" * 600, "nesting of lists and mappings"),
        ('{"rate": 1.0, "rate": 390}', "rate"),
        ('[{"a": {"b": 1, "b": 1}}]', "b"),
        ("[NaN]", "NaN"),
        ("-Infinity", "-Infinity"),
        ("[1e400]", "1e400"),
        ("1" * 5000, "1" * 200),
        ('"\\ud800"', "surrogate"),
        ('["\ud800"]', "surrogate"),
        (b'"\xff"', "0xff"),
        ("", "''"),
        ("{", "{"),
        ("[1] [2]", "[1] [2]"),
        (" " * (4 * MIB + 1), f"{4 * MIB + 1} bytes"),
        ("[" + "{}," * MIB + "{}]", "values"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_json_that_is_not_taken(text: typing.Union[str, bytes], seen: str) -> None:
    with pytest.raises(ParseError) as refused:
        decode_json(text, "ip -j link")
    assert str(refused.value).startswith("ip -j link: ")
    assert seen in str(refused.value)
    assert len(str(refused.value)) < 500


def test_json_that_is_taken() -> None:
    text = '{"a": [1, -2.5, 1e3, true, null, "\\ud83d\\ude00\\u00e4"], "b": {"a": {"a": 18446744073709551615}}, "": []}'
    expected = {"a": [1, -2.5, 1000.0, True, None, "\U0001f600ä"], "b": {"a": {"a": 2**64 - 1}}, "": []}
    assert decode_json(text, "a file") == decode_json(text.encode(), "a file") == expected
    assert decode_json("[[[]]]", "a file", most_depth=3) == [[[]]]
    assert decode_json("[[[1]]]", "a file", most_depth=3) == [[[1]]]
    assert math.isclose(decode_json("0.1", "a file"), 0.1)
    with pytest.raises(ParseError, match="at most 2 levels"):
        decode_json("[[[]]]", "a file", most_depth=2)
