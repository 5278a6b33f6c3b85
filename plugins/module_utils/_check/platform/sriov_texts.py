# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts on HCAs that cannot create VFs, with the number of VFs that the fabric requires."""

from __future__ import annotations

from ..._analysis.fleet import why_no_sriov
from ..._model.intent.intent import Fabric
from ..._model.node.hca import Hca


def describe_no_sriov(hca: Hca, fabric: Fabric) -> tuple[str, str]:
    """Return the reason why a physical function cannot create VFs, and the remedy, which ends with the stage to run
    again.
    """
    why, remedy = why_no_sriov.explain_no_sriov(hca)
    return why, f"{insert_count(remedy, fabric)} Then run stage platform again."


def insert_count(remedy: str, fabric: Fabric) -> str:
    """Return a remedy with the number of VFs of the fabric in place of the word NUMBER after an equals sign."""
    return remedy.replace("=NUMBER", f"={fabric.virtual_functions}")
