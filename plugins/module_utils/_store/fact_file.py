# SPDX-License-Identifier: GPL-3.0-or-later

"""Load the dataclass of a file of a run, with a check of its schema and of its times, and get the current time for such
files.
"""

from __future__ import annotations

import datetime
import typing

from .._model.base.load import load
from .._model.base.load_error import LoadError
from .._model.base.plausible import wrong_schema, wrong_time
from .._model.run.facts import FACT_SCHEMA
from .files import FileError

#: what to do with a file that a run did not leave like this
ANEW = "Remove the file and run the stage again"


def format_now() -> str:
    """Return the current time as text: UTC, ISO 8601, with milliseconds."""
    return read_clock().isoformat(timespec="milliseconds")


def read_clock() -> datetime.datetime:
    """Return the current time of this machine, in UTC."""
    return datetime.datetime.now(datetime.timezone.utc)


def load_fact_file(
    cls: typing.Any, data: typing.Any, path: str, times: typing.Callable[[typing.Any], typing.Iterable[str]]
) -> typing.Any:
    """Load the dataclass of a fact, or of the start record of a run, from plain data.

    :param cls: the dataclass
    :param data: content of the JSON file
    :param path: path of the file, for messages
    :param times: function that gets the loaded dataclass, and returns the texts of all times in it
    :raises FileError: the data has another schema, is malformed, or has an implausible time
    """
    # first of all: the fields of another schema may be unknown here, and that would be a riddle to the reader
    wrong, remedy = wrong_schema(data, FACT_SCHEMA)
    if wrong:
        raise FileError(f"{path}: {wrong}", remedy)
    try:
        found = load(cls, data)
    except LoadError as error:
        raise FileError(f"{path}: {error}", ANEW) from error
    implausible = next(filter(None, (wrong_time(text, read_clock()) for text in times(found))), "")
    if implausible:
        raise FileError(f"{path}: {implausible}", f"{ANEW}; set the clock of the machine that ran ansible-playbook")
    return found
