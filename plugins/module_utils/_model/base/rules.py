# SPDX-License-Identifier: GPL-3.0-or-later

"""Apply rules to partially read data. A rule that does not need an unread part still returns its findings."""

from __future__ import annotations

import typing

from .load_exactly import Unread

T = typing.TypeVar("T")


def run_rule(rule: typing.Callable[..., typing.Iterable[T]], *arguments: typing.Any) -> list[T]:
    """Return the findings of a rule. If the rule is a generator and accesses a part of the data that could not be read
    (``Unread``), return the findings that it yielded before.

    :param rule: function that gets the arguments, and returns or yields findings
    :param arguments: arguments of the rule
    """
    found: list[T] = []
    try:
        for item in rule(*arguments):
            found.append(item)
    except Unread:
        pass
    return found


def run_rules(rules: typing.Iterable[typing.Callable[..., typing.Iterable[T]]], *arguments: typing.Any) -> list[T]:
    """Return the findings of several rules, each called with the same arguments.

    :param rules: functions that return or yield findings. A rule that accesses an unread part of the data (``Unread``)
        contributes the findings that it yielded before
    :param arguments: arguments of each rule
    """
    return [item for rule in rules for item in run_rule(rule, *arguments)]
