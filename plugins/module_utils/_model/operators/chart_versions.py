# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare versions of Helm charts by the precedence of SemVer 2."""

from __future__ import annotations

import re
import typing

#: SemVer 2 with an optional v; Helm completes a version with fewer numbers [semver.org, helm.sh/docs/topics/charts]
_VERSION = re.compile(
    r"v?([0-9]{1,20})(?:\.([0-9]{1,20}))?(?:\.([0-9]{1,20}))?(?:-([0-9A-Za-z.-]{1,100}))?(?:[+_][0-9A-Za-z.-]{1,100})?"
)
#: end of the text CHART-VERSION; a name of a chart and a pre-release can contain hyphens
_AT_END = re.compile(r"-(v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+_].*)?)$", re.DOTALL)


def find_chart_version(chart: str) -> str:
    """Return the version in the text ``CHART-VERSION`` by which Helm describes the chart of a release.

    :param chart: text such as ``gpu-operator-v26.3.3``
    """
    found = _AT_END.search(chart)
    return found.group(1) if found else chart.rpartition("-")[2]


def is_same(first: str, second: str) -> bool:
    """Return whether two texts are the same version. A ``v`` at the start is ignored."""
    return first.removeprefix("v") == second.removeprefix("v")


def is_older(first: str, second: str) -> bool:
    """Return whether the first version has a lower precedence than the second one. Return False if one of the texts is
    not a version.
    """
    before, after = _rank(first), _rank(second)
    return before is not None and after is not None and before < after


def _rank(text: str) -> typing.Optional[tuple[typing.Any, ...]]:
    """Return a tuple by which versions can be sorted. Return None if the text is not a version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    numbers = tuple(int(number or 0) for number in found.group(1, 2, 3))
    # numbers come before words, and a release comes after its pre-releases
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in (found.group(4) or "").split("."))
    return (*numbers, found.group(4) is None, parts)
