# SPDX-License-Identifier: GPL-3.0-or-later

"""The type of a tuning row, which describes one observable property of a node: the expected value by profile, its
source, the harm of other values, and the instruction to set it. Also the evaluation of the rules for expected values.
"""

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
    """The setting by which a tuning row (one property of a node) gets its expected value without a reboot: a key in a
    section of a TuneD profile.

    :ivar section: section of the TuneD profile
    :ivar key: key in that section
    :ivar best: preferred value if a rule accepts several, such as that of OpenShift's own profile; empty for the bound
        of the rule, or its first value
    :ivar word: TuneD's spelling of ``best`` if it differs; no other value can then be set
    """

    section: typing.Literal["cpu", "vm", "sysctl", "modules"]
    key: str
    best: str = ""
    word: str = ""


@dataclasses.dataclass(frozen=True)
class TuningRow:
    """A tuning row: one observable property of a node, with its expected value by profile and the texts of its
    findings.

    :ivar name: identifier of the row, such as ``cpu_governor``
    :ivar check: id of the check that judges the row, without its stage
    :ivar what: description of the property with its unit
    :ivar harm: consequence of a value other than the expected one; for a row without an expected value, of a node that
        differs from comparable nodes
    :ivar remedy: instruction how to set it, on OpenShift and elsewhere
    :ivar training: rule for the value in the profile ``training``; empty if nothing is expected
    :ivar inference: rule for the value in the profile ``inference``; empty if nothing is expected
    :ivar level: status of the finding on a node that violates the profile, or could not be read; ``fail`` for a rule of
        the intent
    :ivar source: source of the expected value; for a row without one, the contradicting recommendations
    :ivar alike: whether comparable nodes are compared with each other
    :ivar setting: setting that needs no reboot; None if there is none
    :ivar elsewhere: remedy for NICs of other vendors than NVIDIA; empty if it is the same
    :ivar meaning: meaning of the values that the profile ``training`` expects; empty if they need no explanation
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
    meaning: str = ""

    def explain_rule(self, rule: str) -> str:
        """Return what a rule means, as the end of a text. The text is empty if the rule needs no explanation, or is not
        that of the profile ``training``.

        :param rule: rule for the value, such as ``local``
        """
        return f", that is, {self.meaning}" if self.meaning and rule == self.training else ""


def rule_accepts(rule: str, value: str) -> bool:
    """Return whether an observed value of a tuning row satisfies a rule.

    :param rule: options separated by ``|``, of which one must match: a value, or ``>=N`` or ``<=N``, which is compared
        with the leading number of the value
    :param value: observed value. ``unlimited`` satisfies every ``>=N``
    """
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


def choose_setting(rule: str, best: str = "") -> tuple[str, str]:
    """Return the setting that makes a tuning row satisfy a rule: an operator and a value. The operator is ``>`` or
    ``<`` if the rule is a bound, so that a node whose value already satisfies it keeps its value. It is empty if
    exactly this value is to be set.

    :param rule: options separated by ``|``: a value, ``>=N`` or ``<=N``
    :param best: preferred value, used if the rule accepts it; empty for none
    """
    options = [option.strip() for option in rule.split("|")]
    option = next((option for option in options if best and _is_fitting_value(option, best)), options[0])
    bound = _BOUND.match(option)
    if not bound:
        return "", option
    return bound.group(1)[0], best if best and _is_fitting_value(option, best) else bound.group(2)


def rule_of(written: typing.Any) -> typing.Optional[str]:
    """Return a rule of the user as text: options separated by ``|``. Return None if it is neither a text nor an
    integer, or is invalid. A bare ``on`` in YAML is a boolean, and so invalid.

    :param written: value in ``rdma_cluster.tuning.expected``
    """
    if isinstance(written, bool) or not isinstance(written, (str, int)):
        return None
    text = str(written).strip()
    options = [option.strip() for option in text.split("|")]
    wrong = any(not option or (option[0] in "<>" and not _BOUND.match(option)) for option in options)
    return None if wrong or not _PRINTABLE.match(text) else text
