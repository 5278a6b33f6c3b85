# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out whether a node has the systemd drop-in that the collection writes for the unit of containerd. Works on the
node itself, and in a container that has the files of the node in a folder.
"""

from __future__ import annotations

import os
import stat

from ..._model.base.errors import RdmaError
from ..._model.kubernetes.host import DROP_IN, OF_INTENT
from ..._model.node.file_owner import find_owner
from ..._store.files import read_bytes

#: symbolic links of one path, as Linux follows them [include/linux/namei.h MAXSYMLINKS]
_LINKS = 40
#: bytes of the drop-in, which has a few lines
_MOST_BYTES = 65_536


def state(host: str) -> str:
    """Return the type of the file at the path of containerd's drop-in: ``absent``, ``file``, ``link`` or ``directory``,
    with the meaning that these words have in Ansible's module file, or ``other``. For a file that contains the name of
    its intent, return ``OF_INTENT`` followed by that name instead.

    :param host: folder with the files of the node; / on the node itself
    :raises RdmaError: the path cannot be examined, or the file cannot be read
    """
    need_files(host)
    try:
        path = resolve_node_path(host, DROP_IN)
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError as error:
        raise RdmaError(f"{DROP_IN} of the node could not be read in {host}: {error.strerror}") from error
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISLNK, "link"), (stat.S_ISDIR, "directory"))
    owner = find_owner(read_bytes(path, most=_MOST_BYTES).decode("utf-8", "replace")) if stat.S_ISREG(mode) else ""
    return f"{OF_INTENT}{owner}" if owner else next((name for is_one, name in kinds if is_one(mode)), "other")


def need_files(host: str) -> None:
    """Verify that a folder contains the files of a node: it must have a folder ``etc``. Without this check, a wrong
    folder would make every file of the node appear to be absent.

    :param host: folder with the files of the node
    :raises RdmaError: there is no folder ``etc``
    """
    if not os.path.isdir(os.path.join(host, "etc")):
        raise RdmaError(
            f"the files of the node are not in {host}: {host} has no folder etc",
            "Set the folder where the observer mounts the files of the node",
        )


def resolve_node_path(host: str, path: str) -> str:
    """Return the path below ``host`` to which a path on the node resolves. Symbolic links to folders are followed, and
    an absolute link starts at ``host``. A link in the last component is not followed.

    :param host: folder with the files of the node
    :param path: absolute path on the node
    :raises OSError: a folder of the path does not exist or cannot be read
    :raises RdmaError: there are too many symbolic links, such as a loop
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
                f"/{path.strip('/')} of the node could not be read in {host}: too many symbolic links, the last one"
                f" is {here}"
            )
        target = os.readlink(here)
        place = host if target.startswith("/") else place
        left = [*target.split("/"), *left]
    return place
