# SPDX-License-Identifier: GPL-3.0-or-later

"""The names in NCCL_IB_HCA and NCCL_SOCKET_IFNAME, and findings that both variables share."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.text import cut_text, join_first
from ..._model.run.findings import UNKNOWN, Finding

#: characters of a list of names in a finding, of which each node and each pod may have one
SHOWN = 400
FROM_OTHER = "The job takes the value from another object (valueFrom), which job_lint does not read."
COMPUTED = "A shell computes the value when the pod starts, so job_lint could not read it."
WRITE_VALUE = "Write the value itself (value: ...) into env of the container, instead of valueFrom."

WRITE_COMPUTED = "Write the value itself (value: ...) into env of the container, and remove it from the command."


@dataclasses.dataclass(frozen=True)
class Choice:
    """The parsed value of NCCL_IB_HCA or NCCL_SOCKET_IFNAME, which selects HCAs or interfaces by their names.

    A ``:port`` after a name is ignored.

    :ivar patterns: the names, or prefixes of names
    :ivar exclude: whether the patterns are excluded instead of selected (leading ``^``)
    :ivar exact: whether a name must equal a pattern (leading ``=``); otherwise the patterns are prefixes of names
    """

    patterns: tuple[str, ...]
    exclude: bool
    exact: bool

    @classmethod
    def parse(cls, value: str) -> Choice:
        """Parse the value of NCCL_IB_HCA or NCCL_SOCKET_IFNAME. Any text is a valid value."""
        text = value.strip()
        exclude = text.startswith("^")
        exact = text[exclude:].startswith("=")
        text = text[exclude + exact :]
        return cls(tuple(name for part in text.split(",") if (name := part.partition(":")[0].strip())), exclude, exact)

    def _is_pattern_match(self, pattern: str, name: str) -> bool:
        return name == pattern if self.exact else name.startswith(pattern)

    def takes(self, name: str) -> bool:
        """Return whether the value of the variable selects an HCA or interface of this name."""
        return any(self._is_pattern_match(pattern, name) for pattern in self.patterns) != self.exclude

    def unmatched(self, names: typing.Iterable[str]) -> list[str]:
        """Return the patterns that match none of the names. Return an empty list if the value excludes names."""
        names = tuple(names)
        return (
            []
            if self.exclude
            else [
                pattern for pattern in self.patterns if not any(self._is_pattern_match(pattern, name) for name in names)
            ]
        )


def format_names(names: typing.Sequence[str]) -> str:
    """Return a list of names from the job as text, cut to ``SHOWN`` characters.

    It is cut because a finding for each node and pod repeats it.
    """
    return cut_text(join_first(names), SHOWN)


def check_in_another_object(check: str, subject: str, expected: str) -> Finding:
    """Return a finding of status unknown on a variable whose value comes from another object (valueFrom), such as a
    ConfigMap.

    :param check: check id of the finding
    :param subject: subject of the finding
    :param expected: value that the variable should have, as text
    """
    return Finding(check, subject, UNKNOWN, "value not read", expected, FROM_OTHER, WRITE_VALUE)


def report_uncompared(check: str, subject: str, value: str, expected: str, what: str) -> Finding:
    why = f"The jobs and their pods have so many names that the linter did not compare {what} with the variable."
    remedy = "Run job_lint with fewer jobs. If pods of other jobs have the labels of this job, end them."
    return Finding(check, f"{subject} not compared", UNKNOWN, value, expected, why, remedy)
