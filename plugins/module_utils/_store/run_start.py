# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the start record of a run, ``<report>/run.json``: the nodes, the waivers and the versions with which the run
began. Its limits are checked.
"""

from __future__ import annotations

import os
import re
import typing

from .._model.run.facts import CLUSTER, RunStart
from .._model.run.findings import MOST_WAIVERS
from .._parse.limits import MIB
from .fact_file import ANEW, load_fact_file
from .files import FileError, read_json

#: bytes of what a run began with. Of 20,000 nodes in observers, each with a name of 63 characters, it has 3 MiB
MOST_OF_A_START = 8 * MIB
#: what a run may begin with: each node is looked at in each stage, and each waiver held against each finding. Versions
#: are those of what made the run
_MOST = {
    "nodes": 20_000,
    "by_pods": 20_000,
    "variables": 1000,
    "waivers": MOST_WAIVERS,
    "images": 1000,
    "mistyped": 1000,
    "origins": 20_000,
    "resumes": 1000,
    "versions": 100,
}
_RUN = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


def read_start(report_dir: str) -> typing.Optional[RunStart]:
    """Return the start record of the run in a folder. Return None if the folder contains no run.json.

    :param report_dir: folder of the report, which contains run.json
    :raises FileError: the file cannot be read, or is invalid
    """
    path = os.path.join(report_dir, "run.json")
    data = read_json(path, report_dir, MOST_OF_A_START)
    if data is None:
        return None
    start: RunStart = load_fact_file(
        RunStart, data, path, lambda start: (start.started, *(item.time for item in start.resumes))
    )
    # it becomes a part of names of files
    if not _RUN.match(start.run):
        raise FileError(f"{path}: run is {start.run!r}; expected at most 100 letters, digits, '.', '_' and '-'", ANEW)
    wrong = describe_start_excess(start)
    if wrong:
        raise FileError(f"{path}: {wrong}", ANEW)
    return start


def describe_start_excess(start: RunStart) -> str:
    """Return a message if the start record of a run exceeds a limit, such as the number of nodes. Otherwise return an
    empty string.
    """
    for name, most in _MOST.items():
        value = getattr(start, name)
        # what the user wrote is not loaded yet, and may be anything
        number = len(value) if isinstance(value, (list, tuple, dict)) else 0
        if number > most:
            return f"it names {number} {name}; the limit is {most}"
    # what the user wrote may be anything here too
    if isinstance(start.nodes, (list, tuple)) and CLUSTER in start.nodes:
        return f"a node has the name '{CLUSTER}', which is reserved for the facts of the cluster"
    return ""
