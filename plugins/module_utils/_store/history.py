# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep earlier runs, each in the folder ``<report>/runs/<run>``. The link ``runs/latest`` points to the newest one.

Files of a run are written completely and never changed in place, so hard links are sufficient. A kept run needs no disk
space as long as the report folder still has its files.
"""

from __future__ import annotations

import os
import re
import shutil
import typing

from .._model.base.errors import RdmaError
from .evidence import RUNS, list_files
from .files import FileError, list_names_in, refuse_links
from .run_start import read_start

LATEST = "latest"
#: identity of a run, as the frame makes them: they sort by time
_RUN = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{6}")
_Value = typing.TypeVar("_Value")


def list_kept(report_dir: str) -> list[str]:
    """Return the names of the kept runs, the oldest first. Other entries of the folder are ignored.

    :param report_dir: folder of the report, which contains the kept runs
    :raises FileError: the folder cannot be read
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
    """Read each kept run before this one, the oldest first. Return two values: the results by name of the run, and a
    message for each run that could not be read.

    :param report_dir: folder of the report, which contains the kept runs
    :param run: id of this run
    :param read: function that is called with the folder and the name of a run, and returns its result
    :param most: limit of the number of runs, of which the newest are read; None means all
    :raises FileError: the folder of the kept runs cannot be read
    """
    values, unread = {}, []
    names = [name for name in list_kept(report_dir) if name < run]
    for name in names if most is None else names[-most:]:
        try:
            values[name] = read(find_folder(report_dir, name), name)
        except RdmaError as error:
            unread.append(f"{name}: {error}")
    return values, tuple(unread)


def find_before(report_dir: str, run: str) -> typing.Optional[str]:
    """Return the folder of the newest kept run before this one that has the same check mode. Runs in check mode are not
    compared with runs that change the cluster.

    :param report_dir: folder of the report, which contains the kept runs
    :param run: id of this run
    :returns: path of the folder; None if there is no such run
    :raises FileError: the folder of the kept runs, or the start of this run, cannot be read
    """
    start = read_start(report_dir)
    if start is None or start.run != run:
        return None
    for name in reversed(list_kept(report_dir)):
        folder = find_folder(report_dir, name)
        if name < run and _check_mode(folder) is start.check_mode:
            return folder
    return None


def keep_run(report_dir: str, run: str, most: int) -> list[str]:
    """Keep a run: store its files in a folder with the id of the run, and remove the oldest kept runs.

    :param report_dir: folder of the run
    :param run: id of the run in the folder. If the folder belongs to another run, nothing is kept
    :param most: number of kept runs that remain. If it is less than 1, nothing is kept or removed
    :returns: names of the runs that were removed
    :raises FileError: the folder cannot be read or written
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
        remedy = (
            "Check that there is free space and that this user may write there, or store no runs: rdma_report_keep: 0"
        )
        raise FileError(f"{root}: run {run} could not be stored: {error}", remedy) from error
    return gone


def find_folder(report_dir: str, run: str) -> str:
    """Return the path of the folder in which a kept run is stored.

    :param report_dir: folder of the report
    """
    return os.path.join(report_dir, RUNS, run)


def _check_mode(folder: str) -> typing.Optional[bool]:
    """Return whether a kept run was in check mode. Return None if its start record cannot be read or does not exist.
    Such a run is not compared with any other.

    :param folder: folder of the kept run
    """
    try:
        start = read_start(folder)
    except FileError:
        return None
    return None if start is None else start.check_mode


def _link_all(report_dir: str, fresh: str, target: str) -> None:
    """Create hard links of the files of a run in a new folder, and rename the folder to ``target``. Files that are
    older than the start of the run are left out, because they belong to an earlier run.

    :param report_dir: folder of the run
    :param fresh: path of the new folder
    :param target: final path of the new folder
    """
    begun = os.path.getmtime(os.path.join(report_dir, "run.json"))
    shutil.rmtree(fresh, ignore_errors=True)
    if os.path.islink(fresh):
        os.unlink(fresh)
    for name in list_files(report_dir)[0]:
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
