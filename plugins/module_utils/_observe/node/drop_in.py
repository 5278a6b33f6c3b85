# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether containerd's drop-in is on a node, seen from the node itself or from a container that has the node's files in
a folder."""

from __future__ import annotations

import os
import stat

from ..._model.base.errors import RdmaError
from ..._model.kubernetes.host import DROP_IN

#: symbolic links of one path, as Linux follows them [include/linux/namei.h MAXSYMLINKS]
_LINKS = 40


def state(host: str) -> str:
    """``absent``, or what it is: ``file``, ``link``, ``directory``, as the module file calls it, or ``other``.

    :param host: folder in which the node's files are; / on the node itself
    :raises RdmaError: it can't be told
    """
    need_files(host)
    try:
        mode = os.lstat(followed(host, DROP_IN)).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        raise RdmaError(f"{DROP_IN} of the node can't be looked at in {host}: {error.strerror}") from error
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISLNK, "link"), (stat.S_ISDIR, "directory"))
    return next((name for is_one, name in kinds if is_one(mode)), "other")


def need_files(host: str) -> None:
    """Refuse a folder that has no files of a node: what is not in it is not absent.

    :raises RdmaError: it has no folder etc
    """
    if not os.path.isdir(os.path.join(host, "etc")):
        raise RdmaError(
            f"the node's files are not in {host}: it has no folder etc",
            "Name the folder in which the observer has them",
        )


def followed(host: str, path: str) -> str:
    """Return the path on the node that a path leads to: its folders may be links, and an absolute one starts at the
    node's root, not at the container's.

    :param host: folder in which the node's files are
    :raises OSError: a folder of it is not there, or can't be read
    :raises RdmaError: links that lead round
    """
    place, links = host, 0
    left = path.strip("/").split("/")
    while left:
        name = left.pop(0)
        if name in ("", "."):
            continue
        if name == "..":
            place = place if place == host else os.path.dirname(place)
            continue
        here = os.path.join(place, name)
        if not left or not stat.S_ISLNK(os.lstat(here).st_mode):
            place = here
            continue
        links += 1
        if links > _LINKS:
            raise RdmaError(
                f"/{path.strip('/')} of the node can't be looked at in {host}: too many symbolic links, the last one is"
                f" {here}"
            )
        target = os.readlink(here)
        place = host if target.startswith("/") else place
        left = [*target.split("/"), *left]
    return place
