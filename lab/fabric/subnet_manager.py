# SPDX-License-Identifier: GPL-3.0-or-later

"""A subnet manager of a fabric: its settings, and its answer to sminfo."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing

# of the managers, in their order; the higher one is master
PRIORITIES = (15, 14)

_SMINFO = re.compile(r"sm lid (\d+) sm guid (0x[0-9a-f]+), activity count \d+ priority (\d+) state \d+ (\S+)")


@dataclasses.dataclass(frozen=True)
class SubnetManager:
    """One line of ``sminfo``."""

    lid: int
    guid: int
    priority: int
    state: str


def parse_sminfo(text: str) -> typing.Optional[SubnetManager]:
    """None when no subnet manager answered."""
    match = _SMINFO.search(text)
    if match is None:
        return None
    return SubnetManager(int(match[1]), int(match[2], 16), int(match[3]), match[4].replace("SMINFO_", ""))


def opensm_settings(guid: int, priority: int, folder: pathlib.Path, more: typing.Mapping[str, str]) -> str:
    """opensm.conf: what is not named keeps opensm's default."""
    settings = {
        "guid": f"{guid:#018x}",
        "sm_priority": str(priority),
        # as often as the lab's faults want to be seen; the defaults are made for fabrics of thousands
        "sweep_interval": "3",
        "sminfo_polling_timeout": "1000",
        "polling_retry_number": "3",
        # LIDs come from the description, with either manager
        "honor_guid2lid_file": "TRUE",
        "log_file": str(folder / "opensm.log"),
        "log_max_size": "8",
        "accum_log_file": "FALSE",
        "dump_files_dir": str(folder),
        **more,
    }
    return "".join(f"{key} {value}\n" for key, value in settings.items())
