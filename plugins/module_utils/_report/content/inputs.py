# SPDX-License-Identifier: GPL-3.0-or-later

"""The facts of a run as a report reads them. Each fact is read once, and only if the report shows it."""

from __future__ import annotations

import typing

from ..._check.sources import SOURCES
from ..._check.stages import TABLE
from ..._model.base.load import load

#: the data of these fields of a stage's Facts; raises RdmaError where they can't be read
FactSource = typing.Callable[[str, typing.Sequence[str]], typing.Mapping[str, typing.Any]]


def no_facts(stage: str, parts: typing.Sequence[str]) -> typing.Mapping[str, typing.Any]:
    """Return an empty mapping in place of the facts of a stage, for a report that shows only findings.

    :param stage: name of the stage; not used
    :param parts: names of the requested facts; not used
    """
    return {}


class ReportFacts:
    """The typed facts of a run. Facts that several stages share are read and loaded only once, because the HCAs of a
    thousand nodes take seconds.

    :param source: function that gets the name of a stage and the names of fields, and returns the data of these fields
        by name
    """

    def __init__(self, source: FactSource) -> None:
        self._source = source
        self._typed: dict[typing.Hashable, typing.Any] = {}

    def of(self, stage: str, parts: typing.Sequence[str]) -> typing.Any:
        """Return the ``Facts`` object of a stage. Only the fields in ``parts`` are loaded. The other fields, and fields
        without data, have their defaults.

        :param parts: names of fields of the ``Facts`` class of the stage
        :raises RdmaError: the facts cannot be read, or are not facts of this stage
        """
        cls = TABLE[stage][0]
        types, values = typing.get_type_hints(cls), {}
        for part in parts:
            source = SOURCES[stage][part]
            key = (type(source), source, types[part])
            if key not in self._typed:
                data = self._source(stage, (part,))
                if part not in data:
                    continue
                self._typed[key] = load(types[part], data[part], f"{stage}_facts.{part}")
            values[part] = self._typed[key]
        return cls(**values)
