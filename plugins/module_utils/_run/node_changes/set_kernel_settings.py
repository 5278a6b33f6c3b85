# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets sysctls and files of sysfs on a node, now and at each boot. The collection owns one file for systemd-sysctl and
one for systemd-tmpfiles. Each file names the intent that wrote it, and a file of another intent stays.

[man sysctl.d(5), tmpfiles.d(5): type ``w`` writes into existing files]
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.node.file_owner import explain_owner, find_owner, has_settings, is_of_other_intent
from ..._model.node.node_tuning import SYSCTL, TMPFILES
from ..._render.node.kernel_settings import sysctl_file, sysctl_line, tmpfiles_file
from ..._store.files import remove_file, write_text

_KEY = re.compile(r"\A[a-z0-9_]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){1,8}\Z", re.ASCII)
_FILE = re.compile(r"\A/sys(?:/[A-Za-z0-9_*-][A-Za-z0-9_*.-]{0,127}){1,16}\Z", re.ASCII)
_VALUE = re.compile(r"\A[A-Za-z0-9_+-]{1,64}\Z", re.ASCII)
#: a number that a sysctl must have at least (>) or at most (<), as TuneD writes it
_BOUND = re.compile(r"\A([<>])([0-9]{1,18})\Z", re.ASCII)
#: characters of a file that are read
_MOST = 65536

Values = typing.Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class SettingsOutcome:
    """The result of setting kernel settings.

    :ivar changes: a line for each change, or for each planned change in a dry run
    :ivar absent: settings that the kernel of the node does not have and that are left out
    :ivar before: text of both files before the change
    :ivar after: text of both files after the change
    :ivar refusal: why nothing was set: a file of another intent has other values. Empty if the values were set
    :ivar stays: files of other intents that were left unchanged, as text with the name of the intent
    """

    changes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    refusal: str = ""
    stays: tuple[str, ...] = ()


def set_kernel_settings(sysctl: Values, sysfs: Values, root: str, dry: bool, owner: str) -> SettingsOutcome:
    """Set sysctls and files of sysfs in the running kernel and for each boot, and remove all other settings from the
    files of the intent. Return the changes. Without any values, both files are removed. A file of another intent is
    used if it has the same values; if it has others, nothing is set.

    Settings that are removed keep their values in the running kernel until the next boot, because their earlier values
    are unknown.

    :param sysctl: desired value, or a bound such as ``>4096`` (at least) or ``<10`` (at most), by key. A value within
        its bound is not changed
    :param sysfs: desired value by path below /sys, which may contain ``*``
    :param root: folder with the node's files
    :param dry: whether nothing is written
    :param owner: name of the intent, which marks its files
    :raises RdmaError: a key, a path or a value is invalid, a file cannot be read or written, or the kernel refuses a
        value
    """
    _refuse_invalid_settings(sysctl, sysfs)
    before = {
        name: _read_text(os.path.join(root, name)) if os.path.lexists(os.path.join(root, name)) else ""
        for name in (SYSCTL, TMPFILES)
    }
    absent: list[str] = []
    ours: dict[str, str] = {}
    due: list[tuple[str, str, str]] = []
    for key, value in sysctl.items():
        path = os.path.join(root, "proc/sys", *key.split("."))
        if not os.path.exists(path):
            absent.append(key)
            continue
        now = _read_text(path).strip()
        chosen, number = _choose_sysctl_value(value, now), value.lstrip("<>")
        if chosen != now:
            due.append((path, chosen, f"sysctl {key}: {now} -> {chosen}"))
        # what is within its bound by others than our own file is left to them
        if chosen != now or chosen == value or sysctl_line(key, number) in before[SYSCTL].splitlines():
            ours[key] = number
    for pattern, value in sysfs.items():
        paths = sorted(glob.glob(os.path.join(root, pattern.lstrip("/"))))
        if not paths:
            absent.append(pattern)
        for path in paths:
            now = _read_text(path).strip()
            if value != now and f"[{value}]" not in now.split():
                due.append((path, value, f"{os.path.join('/', os.path.relpath(path, root))}: {now} -> {value}"))
    after = {
        SYSCTL: sysctl_file(ours, owner),
        TMPFILES: tmpfiles_file({path: value for path, value in sysfs.items() if path not in absent}, owner),
    }
    others = [name for name, text in before.items() if is_of_other_intent(text, owner)]
    stays = tuple(f"/{name} of the intent '{find_owner(before[name])}'" for name in others)
    for name in others:
        if not has_settings(before[name], after[name]):
            texts = "".join(before.values())
            refusal = explain_owner(f"/{name}", before[name], "rdma_cluster.tuning")
            return SettingsOutcome((), tuple(absent), texts, texts, refusal, stays)
    after.update({name: before[name] for name in others})
    files = [(name, text) for name, text in after.items() if text != before[name]]
    changes = [f"{'wrote' if text else 'removed'} /{name}" for name, text in files] + [
        line for _path, _value, line in due
    ]
    if not dry:
        for name, text in files:
            _write_or_remove(os.path.join(root, name), text)
        for path, value, _line in due:
            _set_kernel_value(path, value)
    return SettingsOutcome(
        tuple(changes), tuple(absent), "".join(before.values()), "".join(after.values()), stays=stays
    )


def _refuse_invalid_settings(sysctl: Values, sysfs: Values) -> None:
    """Raise an error if a name or a value of a setting does not have a valid form.

    :param sysctl: value or bound, by key
    :param sysfs: value, by path below /sys
    :raises RdmaError: a key, a path or a value is invalid
    """
    wrong = [key for key in sysctl if not _KEY.match(key)] + [path for path in sysfs if not _FILE.match(path)]
    wrong += [value for value in sysctl.values() if not (_VALUE.match(value) or _BOUND.match(value))]
    wrong += [value for value in sysfs.values() if not _VALUE.match(value)]
    if wrong:
        raise RdmaError(
            f"{', '.join(map(repr, wrong[:5]))}: not a valid sysctl key, path below /sys, or value",
            "Correct the option, then rerun",
        )


def _choose_sysctl_value(value: str, now: str) -> str:
    """Return the value to set for a sysctl. For a bound, this is the present value if it is within the bound, otherwise
    the number of the bound.

    :param value: desired value, or a bound such as ``>4096`` (at least) or ``<10`` (at most)
    :param now: present value
    """
    bound = _BOUND.match(value)
    if bound is None:
        return value
    number = int(bound[2])
    within = now.isdecimal() and (int(now) >= number if bound[1] == ">" else int(now) <= number)
    return now if within else bound[2]


def _write_or_remove(path: str, text: str) -> None:
    if not text:
        remove_file(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_text(path, text)


def _set_kernel_value(path: str, value: str) -> None:
    """Write a value into a file of the kernel, and verify it by reading the file again.

    :param path: path below /proc/sys or /sys
    :param value: text to write
    :raises RdmaError: the kernel refuses the value, or the file has another value afterwards
    """
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        raise RdmaError(
            f"the kernel rejected {value} for {path}: {error.strerror}",
            "Check the values that the kernel of the node supports, and rerun as root",
        ) from error
    now = _read_text(path).strip()
    if now != value and f"[{value}]" not in now.split():
        raise RdmaError(
            f"{path} was set to {value}, but has the value {now[:100]}",
            "Find the other component on the node that sets this value, such as TuneD",
        )


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read(_MOST)
    except OSError as error:
        raise RdmaError(f"{path} could not be read: {error.strerror}", "Rerun as root") from error
