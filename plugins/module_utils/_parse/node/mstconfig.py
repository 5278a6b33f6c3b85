# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of ``mstconfig -d <device> -e query`` and of mlxconfig, NVIDIA's own build of it (mstflint
mlxconfig/mlxcfg_ui.cpp, 4.21 to 4.36).

The header of the table names its columns: ``Configurations:   Default  Current  Next Boot``. Without -e, and with
firmware that does not report all values, there are fewer columns. A row has a mark (``*``: the next value differs),
from 4.26 on ``RO`` (read-only), the name, and one value for each column. The column widths grew with the versions (36
and 16, 44 and 20, 48 and more), so columns are separated by blanks only. Values contain no blanks. From 4.31 on ``-j
<file>`` writes the same data as JSON.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..._model.node.firmware import FirmwareSetting
from ..limits import decode_json

SOURCE = "mstconfig"
#: first version that writes JSON
JSON_SINCE = (4, 31)
_HEADER = re.compile(r"^Configurations:[ \t]+((?:Default[ \t]+)?(?:Current[ \t]+)?Next Boot|Default)[ \t]*$", re.ASCII)
_COLUMNS = {"Default": "default", "Current": "current", "Next": "next"}
_ROW = re.compile(
    r"^(\*| )?(RO)?[ \t]+([A-Za-z][A-Za-z0-9_]{0,99}(?:\[[0-9]{1,4}\])?)[ \t]+(\S+(?:[ \t]+\S+){0,2})[ \t]*$", re.ASCII
)
#: a name that fills the column of 4.21, 36 wide, or of later versions runs into its value; none that anybody here asks
#: for is so long
_GLUED = re.compile(r"^(\*| )?(RO)?[ \t]+\S{37,}", re.ASCII)
_VALUE = re.compile(r"\A[!-~]{1,200}\Z")
_TYPE = re.compile(r"^Device type:[ \t]*(\S+)[ \t]*$", re.MULTILINE | re.ASCII)
_VERSION = re.compile(
    r"^(mst|mlx)config, m(?:st)?f(?:lint|t) ([0-9]{1,4})\.([0-9]{1,4})[0-9.\-]{0,20}(?:,|$)", re.MULTILINE | re.ASCII
)


class Query(typing.NamedTuple):
    """The firmware settings of one HCA, as mstconfig reports them.

    :ivar device_type: ConnectX7, BlueField3 or another type; empty if the output does not name it
    :ivar settings: settings in the order of the output
    """

    device_type: str
    settings: tuple[FirmwareSetting, ...]


def parse_version(text: str) -> tuple[int, int]:
    """Return the major and minor version of the tool from the output of ``mstconfig -v``: ``mstconfig, mstflint 4.21.0,
    Git SHA Hash: N/A``, or ``mlxconfig, mft 4.30.1-113, ...`` of mlxconfig.

    :raises ParseError: the output does not have exactly one such line
    """
    found = _VERSION.findall(text)
    if len(found) != 1:
        raise ParseError(SOURCE, text.strip(), "one line with the version of mstconfig")
    return int(found[0][1]), int(found[0][2])


def parse(text: str) -> Query:
    """Return the settings of one HCA from the table that mstconfig prints, in the order of the table. A line in which a
    long name and its value are not separated is left out.

    :raises ParseError: there is no table or one for several devices, a line of the table does not have a value for each
        column, or the last line is incomplete
    """
    lines = text.split("\n")
    headers = [index for index, line in enumerate(lines) if line.startswith("Configurations:")]
    match = _HEADER.match(lines[headers[0]]) if len(headers) == 1 else None
    if match is None or lines[-1]:
        raise ParseError(SOURCE, text.strip()[-200:], "the table 'Configurations:' of one device, to its end")
    # Next Boot is one column of two words; a table of defaults alone says nothing of this device
    columns = [_COLUMNS[word] for word in match.group(1).split() if word in _COLUMNS]
    if "next" not in columns:
        raise ParseError(SOURCE, lines[headers[0]], "a table with a column 'Next Boot'")
    settings: dict[str, FirmwareSetting] = {}
    for line in lines[headers[0] + 1 :]:
        row = _ROW.match(line)
        if row is None:
            if _GLUED.match(line):
                continue
            if line[:1] in (" ", "*") and line.strip() and not line.strip().startswith("Failed to query"):
                raise ParseError(SOURCE, line, f"a row with {len(columns)} values")
            # blank, or the remarks below the table
            break
        values = row.group(4).split()
        if len(values) != len(columns):
            if _GLUED.match(line):
                continue
            raise ParseError(SOURCE, line, f"a row with {len(columns)} values")
        _add_setting(settings, row.group(3), dict(zip(columns, values)), row.group(2) is not None)
    return _build_query(_TYPE.findall("\n".join(lines[: headers[0]])), settings, text)


def parse_json(text: str) -> Query:
    """Return the settings of one HCA from the JSON file that mstconfig writes with ``-j``.

    :raises ParseError: the text is not the settings of exactly one device, or contains no setting
    """
    settings: dict[str, FirmwareSetting] = {}
    try:
        ((title, device),) = decode_json(text, f"{SOURCE} -j").items()
        rows = device["tlv_configuration"] or {}
        for name, row in rows.items():
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,99}(\[[0-9.]{1,9}\])?", name, re.ASCII) or not isinstance(
                row["read_only"], bool
            ):
                raise ValueError(name)
            values = {
                column: row[f"{column}_value"]
                for column in ("default", "current", "next")
                if column == "next" or f"{column}_value" in row
            }
            if any(
                isinstance(value, bool) or not isinstance(value, (int, str)) or len(str(value)) > 200
                for value in values.values()
            ):
                raise ValueError(name)
            _add_setting(settings, name, {column: str(value) for column, value in values.items()}, row["read_only"])
        if not title.startswith("Device #"):
            raise ValueError(title)
        kind = [str(device.get("device_type") or "")]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ParseError(f"{SOURCE} -j", text, "the settings of one device, in JSON") from None
    return _build_query(kind, settings, text)


def _build_query(kinds: typing.Sequence[str], settings: typing.Mapping[str, FirmwareSetting], text: str) -> Query:
    if not settings:
        raise ParseError(SOURCE, text.strip()[-200:], "a table with at least one setting")
    return Query(kinds[0] if len(kinds) == 1 else "", tuple(settings.values()))


def _add_setting(
    settings: dict[str, FirmwareSetting], name: str, values: typing.Mapping[str, str], read_only: bool
) -> None:
    """Add a setting of the firmware. A value of ``N/A`` is left out.

    :param settings: settings by name, which this function changes
    :param values: value of each column, by name of the field
    :raises ParseError: a value contains blanks, or the setting occurs twice with different values
    """
    for value in values.values():
        if not _VALUE.match(value):
            raise ParseError(SOURCE, f"{name} {value}", "a value without blanks")
    known = {column: value for column, value in values.items() if value != "N/A"}
    setting = FirmwareSetting(name, read_only=read_only, **known)
    if settings.setdefault(name, setting) != setting:
        raise ParseError(SOURCE, name, "one value for each setting")
