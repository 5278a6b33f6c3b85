# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Up, down and status of the whole lab."""

from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import time

from . import controlplane, network, workers
from .build import disk as disk_build
from .build import gotools
from .console import LabError, say, step
from .description import Description
from .processes import Processes

FOLDER = pathlib.Path(__file__).parent.parent / ".lab"
CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    """Put this process into the network namespace; Python 3.11 has no os.setns.

    :raises LabError: refused by the kernel
    """
    with open(f"/run/netns/{namespace}", "rb") as handle:
        if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET) != 0:
            raise LabError(f"cannot enter the network namespace {namespace}: {os.strerror(ctypes.get_errno())}", "run it as root")


class Lab:
    """The lab of this checkout."""

    def __init__(self, description: Description, folder: pathlib.Path = FOLDER) -> None:
        self.description = description
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.processes = Processes(folder, description.network.namespace)
        self.fabric = fabric_plane.FabricPlane(description.fabric_plane, folder, self.processes)

    @property
    def authority(self) -> Pki:
        return controlplane.pki(self.description, self.folder)

    def build(self) -> pathlib.Path:
        """Build what is not in the cache; returns the workers' disk."""
        gotools.check_go()
        for name in gotools.TOOL:
            gotools.binary(name)
        return disk_build.disk(fabric_build.umad2sim())
