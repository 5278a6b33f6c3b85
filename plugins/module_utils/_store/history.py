# SPDX-License-Identifier: GPL-3.0-or-later

"""The runs that were, each in a folder of its own: ``<report>/runs/<run>``, and ``runs/latest`` that leads to the
newest.

What a run leaves is written whole and never changed in place, so a link to it is enough: a kept run takes no room as
long as the folder of the report still has its files.
"""

from __future__ import annotations

import os
import re
import shutil
import typing

from .._model.base.errors import RdmaError
from .evidence import RUNS, listed
from .facts import read_start
from .files import FileError, list_names_in, refuse_links

LATEST = "latest"
#: identity of a run, as the frame makes them: they sort by time
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_Value = typing.TypeVar("_Value")


def list_kept(report_dir: str) -> list[str]:
    """Return the names of the runs that are kept, the oldest first. What else lies there is nobody's business here.

    :raises FileError: the folder can't be read
    """
    names = list_names_in(os.path.join(report_dir, RUNS), report_dir)
    return sorted(
        name
        for name in names
        if _RUN.fullmatch(name)
        and os.path.isdir(find_folder(report_dir, name))
        and not os.path.islink(find_folder(report_dir, name))
    )


def read_earlier(
    report_dir: str, run: str, read: typing.Callable[[str, str], _Value], most: typing.Optional[int] = None
) -> tuple[dict[str, _Value], tuple[str, ...]]:
    """Read each kept run before this one, by its name, the oldest first; and those that can't be read, with the reason.

    :param read: of the path of a run's folder and its name
    :param most: only so many, the newest; None: all
    :raises FileError: the folder of the runs can't be read
    """
    values, unread = {}, []
    names = [name for name in list_kept(report_dir) if name < run]
    for name in names if most is None else names[-most:]:
        try:
            values[name] = read(find_folder(report_dir, name), name)
        except RdmaError as error:
            unread.append(f"{name}: {error}")
    return values, tuple(unread)


def before(report_dir: str, run: str) -> typing.Optional[str]:
    """Folder of the newest kept run before this one that is of its kind: a check mode and a run that makes something
    are not compared.

    :returns: None where there is none
    :raises FileError: the folder of the runs, or what this run began with, can't be read
    """
    start = read_start(report_dir)
    if start is None or start.run != run:
        return None
    for name in reversed(list_kept(report_dir)):
        folder = find_folder(report_dir, name)
        if name < run and _check_mode(folder) is start.check_mode:
            return folder
    return None


def keep(report_dir: str, run: str, most: int) -> list[str]:
    """Keep a run under its own name, and let the oldest go.

    :param run: the run of the folder; one that is not begun there is not kept
    :param most: how many stay
    :returns: names of those that were removed
    :raises FileError: the folder can't be read or written
    """
    start = read_start(report_dir)
    if most < 1 or start is None or start.run != run or not _RUN.fullmatch(run):
        return []
    root = os.path.join(report_dir, RUNS)
    try:
        # what is kept and what goes is in this folder, and nowhere else
        refuse_links(root, report_dir)
        os.makedirs(root, exist_ok=True)
        _link_all(report_dir, os.path.join(root, f".{run}"), find_folder(report_dir, run))
        _update_latest_link(root, run)
        gone = list_kept(report_dir)[:-most]
        for name in gone:
            shutil.rmtree(find_folder(report_dir, name))
    except OSError as error:
        remedy = "Look whether there is room and this user may write there, or keep no runs: rdma_report_keep: 0"
        raise FileError(f"{root}: run {run} can't be kept: {error}", remedy) from error
    return gone


def find_folder(report_dir: str, run: str) -> str:
    """Return the folder of a kept run."""
    return os.path.join(report_dir, RUNS, run)


def _check_mode(folder: str) -> typing.Optional[bool]:
    """Of a kept run; None of one that can't be read, with which nothing can be compared."""
    try:
        start = read_start(folder)
    except FileError:
        return None
    return None if start is None else start.check_mode


def _link_all(report_dir: str, fresh: str, target: str) -> None:
    """All that is not older than the run: the folder may hold files of one before it."""
    begun = os.path.getmtime(os.path.join(report_dir, "run.json"))
    shutil.rmtree(fresh, ignore_errors=True)
    if os.path.islink(fresh):
        os.unlink(fresh)
    for name in listed(report_dir)[0]:
        source, goal = os.path.join(report_dir, name), os.path.join(fresh, name)
        if os.path.getmtime(source) >= begun:
            os.makedirs(os.path.dirname(goal), exist_ok=True)
            _link_or_copy(source, goal)
    # a run that went on was kept before
    shutil.rmtree(target, ignore_errors=True)
    os.rename(fresh, target)


def _link_or_copy(source: str, goal: str) -> None:
    try:
        os.link(source, goal)
    except OSError:
        # not every file system has links, and what is wrong beside that the copy says
        shutil.copy2(source, goal)


def _update_latest_link(root: str, run: str) -> None:
    fresh = os.path.join(root, f".{LATEST}")
    if os.path.lexists(fresh):
        os.unlink(fresh)
    os.symlink(run, fresh)
    os.replace(fresh, os.path.join(root, LATEST))
