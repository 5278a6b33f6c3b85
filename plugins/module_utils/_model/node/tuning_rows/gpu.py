# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of GPUs: driver, modes and clocks."""

from __future__ import annotations

from .row import TuningRow
from .words import OTHER

#: least branch of the driver by version of CUDA [CUDA Toolkit release notes, table of driver versions; row S4.8]
LEAST_DRIVER = {13: 580, 12: 525, 11: 450}

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "gpu_driver",
        "gpu",
        "driver of the GPUs",
        "CUDA programs behave otherwise there, or refuse to run.",
        "OpenShift: spec.driver.version of the ClusterPolicy. Elsewhere: update the packages of the driver.",
    ),
    TuningRow(
        "gpu_persistence",
        "gpu",
        "persistence mode of the GPUs",
        "The driver unloads when no job runs, and each start takes seconds longer.",
        "systemctl enable --now nvidia-persistenced; the GPU operator's driver container does it.",
        "Enabled",
        "Enabled",
        source="Azure",
    ),
    TuningRow(
        "gpu_ecc",
        "gpu",
        "ECC of the GPUs' memory",
        "A bit that flips goes into the weights unseen.",
        "nvidia-smi -i GPU -e 1, then reset the GPU.",
        "Enabled",
        "Enabled",
        source="Azure",
    ),
    TuningRow(
        "gpu_mig",
        "gpu",
        "MIG of the GPUs",
        "Instances of a GPU have no peer-to-peer, so NCCL goes through the host.",
        "GPU operator: label nvidia.com/mig.config=all-disabled. Elsewhere: nvidia-smi -i GPU -mig 0.",
        "Disabled",
        source="NVIDIA MIG user guide",
    ),
    TuningRow(
        "gpu_max_clock",
        "gpu",
        "highest clock of the GPUs' cores",
        OTHER,
        "nvidia-smi -q -d CLOCK; nvidia-smi -rgc takes a lock back.",
    ),
    TuningRow(
        "gpu_slowed",
        "gpu",
        "why the GPU slows itself down",
        "One slow GPU holds up all ranks.",
        "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER: look at fans, inlet and power supplies of the node.",
        "none",
        "none",
        "fail",
        source="Azure, gpud",
        alike=False,
    ),
    TuningRow(
        "gpu_fabric",
        "gpu",
        "registration of the GPUs with the NVLink fabric",
        "CUDA does not start on a GPU that is not registered, or its NVLink is down and NCCL leaves it out.",
        "systemctl restart nvidia-fabricmanager, and read its log. Where the GPU operator installs the driver, its"
        " driver container runs Fabric Manager: kubectl -n gpu-operator logs POD. Of GB200 and GB300 it runs"
        " on an NVLink switch.",
        "Success",
        "Success",
        "fail",
        source="NVIDIA Fabric Manager user guide",
        alike=False,
    ),
    TuningRow(
        "gpu_fabric_health",
        "gpu",
        "health of the GPUs' NVLink fabric",
        "NVLink of the GPU is slower than that of the others, and each collective waits for it.",
        "nvidia-smi -q shows the reason below Fabric, Health: bandwidth, route, access timeout, configuration.",
        "Healthy",
        "Healthy",
        source="NVIDIA nvml.h",
    ),
    TuningRow(
        "gpu_clique",
        "gpu",
        "clique of the GPUs: ClusterUUID.CliqueId of the NVLink domain",
        OTHER,
        "nvidia-smi --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv; partitions of NVLink are set by NMX.",
        source="tuning.nvlink_domain compares it",
        alike=False,
    ),
    TuningRow(
        "p2pdma",
        "gpu",
        "CONFIG_PCI_P2PDMA of the kernel, or the module nvidia_peermem in its place",
        "The HCA gets no memory of the GPUs by DMA-BUF, and GPUDirect RDMA does not work.",
        "Run a kernel that is built with CONFIG_PCI_P2PDMA=y; or load nvidia_peermem, which needs the peer memory of"
        " DOCA-OFED.",
        "on|peermem",
        "on|peermem",
        source="siderolabs/pkgs#1356, gpud",
    ),
)
