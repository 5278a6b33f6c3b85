# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be told of data of which a part could not be read: what each rule says that does not ask for that part. So
no mistake hides another."""

from __future__ import annotations

import typing

from .load import Unread

T = typing.TypeVar("T")


def told(rule: typing.Callable[..., typing.Iterable[T]], *arguments: typing.Any) -> list[T]:
    """What the rule says; of a generator what it said before it asked for what could not be read."""
    said: list[T] = []
    try:
        for item in rule(*arguments):
            said.append(item)
    except Unread:
        pass
    return said


def told_by(rules: typing.Iterable[typing.Callable[..., typing.Iterable[T]]], *arguments: typing.Any) -> list[T]:
    """What all rules say, each asked the same."""
    return [item for rule in rules for item in told(rule, *arguments)]
