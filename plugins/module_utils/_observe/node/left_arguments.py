# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments that the collection has noted for the next boot of a node, seen from the node itself or from a
container that has its files in a folder."""

from __future__ import annotations

import contextlib
import os
import typing

from ..._model.node.kernel_arguments import DROP_IN, RECORD
from ..._parse.node.kernel_arguments import drop_in
from ..._store.files import read_bytes
from .drop_in import followed

#: bytes of one of the two files, which have a few words
_MOST_BYTES = 65_536


def read_left_arguments(host: str) -> tuple[str, ...]:
    """Return what we have noted by whichever tool: that the tool is gone takes nothing back.

    :param host: folder in which the node's files are; / on the node itself
    :raises RdmaError: a file can't be read, or is not ours
    """
    of_grub, recorded = _read_host_file(host, DROP_IN), _read_host_file(host, RECORD)
    return tuple(dict.fromkeys((*(drop_in(of_grub) if of_grub is not None else ()), *(recorded or "").split())))


def _read_host_file(host: str, path: str) -> typing.Optional[str]:
    """Return the text of a file; None where there is none."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        place = followed(host, path)
        if os.path.lexists(place):
            return read_bytes(place, most=_MOST_BYTES).decode("utf-8", "backslashreplace")
    return None
