# SPDX-License-Identifier: GPL-3.0-or-later

"""sysfs of ``ib_umad`` of a worker's HCAs, which the emulated HCA has not: it has no queue pairs for MADs, and the
diagnostics talk to ibsim.

The workers see it read-only, at a place of its own: a user's ``rdma_sysfs`` names it beside /sys.
"""

from __future__ import annotations

import pathlib
import typing

from .emulated import MISSING
from .model import Fabrics


def tree(fabrics: Fabrics, flaws: typing.Mapping[str, str]) -> dict[str, str]:
    """Contents of files by path below the root of the tree. Pure.

    :param flaws: see ``emulated.ports``
    """
    files = {"class/infiniband_mad/abi_version": "5\n"}
    for number, hca in enumerate(fabrics.hcas):
        for kind in ("umad", "issm") if flaws.get(hca.name) != MISSING else ():
            files[f"class/infiniband_mad/{kind}{number}/ibdev"] = f"{hca.name}\n"
            files[f"class/infiniband_mad/{kind}{number}/port"] = "1\n"
    return files


def write(root: pathlib.Path, wanted: typing.Mapping[str, str]) -> int:
    """Bring the folder to the tree.

    :returns: how many files were written or removed
    """
    there = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    changed = [name for name, content in wanted.items() if name not in there or (root / name).read_text() != content]
    for name in changed:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(wanted[name])
    gone = there - set(wanted)
    for name in gone:
        (root / name).unlink()
        if not any((root / name).parent.iterdir()):
            (root / name).parent.rmdir()
    return len(changed) + len(gone)
