# SPDX-License-Identifier: GPL-3.0-or-later

"""Run rules on data of which a part could not be read: a rule that does not need that part still gives its findings."""

from __future__ import annotations

import typing

from .load_exactly import Unread

T = typing.TypeVar("T")


def run_rule(rule: typing.Callable[..., typing.Iterable[T]], *arguments: typing.Any) -> list[T]:
    """Return the findings of a rule; of a generator, those before it read a part that is ``Unread``."""
    found: list[T] = []
    try:
        for item in rule(*arguments):
            found.append(item)
    except Unread:
        pass
    return found


def run_rules(rules: typing.Iterable[typing.Callable[..., typing.Iterable[T]]], *arguments: typing.Any) -> list[T]:
    """Return the findings of several rules, each called with the same arguments."""
    return [item for rule in rules for item in run_rule(rule, *arguments)]
