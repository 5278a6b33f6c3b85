# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the kernel arguments that the collection has set on a node for its next boots. Works on the node itself, and in
a container that has the files of the node in a folder.
"""

from __future__ import annotations

import contextlib
import os
import typing

from ..._model.node.kernel_arguments import DROP_IN, RECORD
from ..._parse.node.kernel_arguments import drop_in
from ..._store.files import read_bytes
from .drop_in import resolve_node_path

#: bytes of one of the two files, which have a few words
_MOST_BYTES = 65_536


def read_left_arguments(host: str) -> tuple[str, ...]:
    """Return the kernel arguments that the collection has set, either in the drop-in file of GRUB or with another tool,
    without duplicates. The record of the collection on the node names the arguments that another tool set, even if that
    tool has been removed.

    :param host: folder with the files of the node; / on the node itself
    :raises RdmaError: a file cannot be read, or was not written by the collection
    """
    of_grub, recorded = _read_host_file(host, DROP_IN), _read_host_file(host, RECORD)
    return tuple(dict.fromkeys((*(drop_in(of_grub) if of_grub is not None else ()), *(recorded or "").split())))


def _read_host_file(host: str, path: str) -> typing.Optional[str]:
    """Return the text of a file. Return None if it does not exist.

    :param host: folder with the files of the node
    :param path: absolute path of the file on the node
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        place = resolve_node_path(host, path)
        if os.path.lexists(place):
            return read_bytes(place, most=_MOST_BYTES).decode("utf-8", "backslashreplace")
    return None
