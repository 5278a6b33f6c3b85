# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of all rows that stage tuning checks. A row is one observable property of a node.

Sources: NVIDIA: NVIDIA/skyhook-packages, nvidia-tuned; TuneD: redhat-performance/tuned, profiles; OCI:
oracle-quickstart/oci-hpc; Azure: Azure/azurehpc-health-checks; Imbue: imbue-ai/cluster-health; gpud: leptonai/gpud;
LSR: linux-system-roles hpc; NIC operator: Mellanox/nic-configuration-operator. If they contradict each other, the row
names the recommendations and expects no value.
"""

from __future__ import annotations

from . import cpu, gpu, kernel, kubelet, memory, network, pci, roce
from .row import TuningRow

#: in the order in which they are told
ROWS: tuple[TuningRow, ...] = (
    *cpu.ROWS,
    *memory.ROWS,
    *kernel.ROWS,
    *pci.ROWS,
    *gpu.ROWS,
    *kubelet.ROWS,
    *network.ROWS,
    *roce.ROWS,
)

BY_NAME: dict[str, TuningRow] = {row.name: row for row in ROWS}
