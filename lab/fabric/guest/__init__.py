# SPDX-License-Identifier: GPL-3.0-or-later

"""What the workers get so that their own InfiniBand diagnostics work on the simulated HCAs."""

from __future__ import annotations

import pathlib
import stat
import typing

from ..emulated import FIRMWARE, HCA_TYPE
from ..model import Fabrics
from ..topology import Topology

WRAPPER = pathlib.Path(__file__).with_name("diagnostic")
# what of infiniband-diags talks to a port, or calls what does; ibstatus reads /sys itself, and the Perl scripts want
# Perl
TOOLS = (
    "dump_fts ibaddr ibccconfig ibccquery ibhosts iblinkinfo ibnetdiscover ibnodes ibping ibportstate ibqueryerrors"
    " ibroute ibrouters ibstat ibswitches ibsysstat ibtracert perfquery saquery sminfo smpdump smpquery vendstat"
).split()
LIBRARY = "usr/local/lib/lab/libumad2sim.so"
HCAS = "etc/lab/hcas"


def hca_map(fabrics: Fabrics, topologies: typing.Mapping[str, Topology], worker: str) -> str:
    """``/etc/lab/hcas`` of a worker: one line for each HCA, its device, its node and the address and port of its
    ibsim."""
    lines = [
        f"{hca.name} {topologies[hca.fabric].hca(worker, hca.name).id} {fabrics.address}"
        f" {fabrics.fabric(hca.fabric).port}\n"
        for hca in fabrics.hcas
    ]
    return f"# device, node, ibsim; all are {HCA_TYPE} with firmware {FIRMWARE}\n" + "".join(lines)


def install(root: pathlib.Path, umad2sim: pathlib.Path) -> None:
    """Put what is the same on all workers into a root file system: the wrapper under the tools' names, and the library.

    Each worker needs its :func:`hca_map` at ``/etc/lab/hcas`` besides.
    """
    library = root / LIBRARY
    library.parent.mkdir(parents=True, exist_ok=True)
    library.write_bytes(umad2sim.read_bytes())
    folder = root / "usr/local/sbin"
    folder.mkdir(parents=True, exist_ok=True)
    first = folder / TOOLS[0]
    first.unlink(missing_ok=True)
    first.write_text(WRAPPER.read_text())
    first.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    for tool in TOOLS[1:]:
        name = folder / tool
        name.unlink(missing_ok=True)
        name.symlink_to(TOOLS[0])
