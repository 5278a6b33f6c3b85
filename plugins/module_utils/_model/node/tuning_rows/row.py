# SPDX-License-Identifier: GPL-3.0-or-later

"""One row of stage tuning: what is expected of it by profile, who says so, what harm it does otherwise, how it is set;
and the rules of what is expected."""

from __future__ import annotations

import dataclasses
import re
import typing

_BOUND = re.compile(r"\A(>=|<=)\s*([0-9]{1,18})\Z")
_NUMBER = re.compile(r"\A([0-9]{1,18})(?![0-9])")
_PRINTABLE = re.compile(r"\A[ -~]{1,80}\Z")

Level = typing.Literal["fail", "warn"]


@dataclasses.dataclass(frozen=True)
class RowSetting:
    """The setting of a row that needs no reboot: a key in a section of a profile of TuneD.

    :ivar best: value to choose where a rule takes several, such as what OpenShift's own profile has; empty: the bound
        of the rule, or its first value
    :ivar word: what TuneD writes for ``best``, where that is another word; no other value can then be set
    """

    section: typing.Literal["cpu", "vm", "sysctl", "modules"]
    key: str
    best: str = ""
    word: str = ""


@dataclasses.dataclass(frozen=True)
class TuningRow:
    """One thing that a node shows.

    :ivar check: id of the check that judges it, without its stage
    :ivar what: in words, with its unit
    :ivar harm: what comes of another value; for a row of which nothing is expected, of one node that has another than
        its like
    :ivar remedy: how to set it, on OpenShift and elsewhere
    :ivar training: rule of this profile; empty: nothing is expected
    :ivar inference: likewise
    :ivar level: of a node that does not fit the profile, or of which it could not be read; with a rule of the intent's
        own it is ``fail``
    :ivar source: who expects it; for a row of which nothing is expected, what experts say against each other
    :ivar alike: nodes of one kind are held against each other
    :ivar setting: how it is set without a reboot; None: it is not
    :ivar elsewhere: remedy at NICs of other vendors than NVIDIA; empty: the same
    """

    name: str
    check: str
    what: str
    harm: str
    remedy: str
    training: str = ""
    inference: str = ""
    level: Level = "warn"
    source: str = ""
    alike: bool = True
    setting: typing.Optional[RowSetting] = None
    elsewhere: str = ""


def fits(rule: str, value: str) -> bool:
    """Return whether a rule accepts a value: one of several with | between them, each a value, or ``>=N`` or ``<=N`` of
    the number that it begins with."""
    return any(_is_fitting_value(option.strip(), value) for option in rule.split("|"))


def _is_fitting_value(option: str, value: str) -> bool:
    bound = _BOUND.match(option)
    if not bound:
        return option == value
    number = _NUMBER.match(value)
    if not number:
        return value == "unlimited" and bound.group(1) == ">="
    return (
        int(number.group(1)) >= int(bound.group(2))
        if bound.group(1) == ">="
        else int(number.group(1)) <= int(bound.group(2))
    )


def chosen(rule: str, best: str = "") -> tuple[str, str]:
    """Return the one value to set for a rule, with ``>`` or ``<`` before it where the rule is a bound: what fits it
    already is then left as it is.

    :param best: taken where the rule takes it
    """
    options = [option.strip() for option in rule.split("|")]
    option = next((option for option in options if best and _is_fitting_value(option, best)), options[0])
    bound = _BOUND.match(option)
    if not bound:
        return "", option
    return bound.group(1)[0], best if best and _is_fitting_value(option, best) else bound.group(2)


def rule_of(written: typing.Any) -> typing.Optional[str]:
    """Return the rule that somebody wrote: a text or a whole number; None when it is none. A bare ``on`` of YAML is a
    boolean, and no rule."""
    if isinstance(written, bool) or not isinstance(written, (str, int)):
        return None
    text = str(written).strip()
    options = [option.strip() for option in text.split("|")]
    wrong = any(not option or (option[0] in "<>" and not _BOUND.match(option)) for option in options)
    return None if wrong or not _PRINTABLE.match(text) else text
