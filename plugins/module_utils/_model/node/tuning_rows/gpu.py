# SPDX-License-Identifier: GPL-3.0-or-later

"""Tuning rows of GPUs: driver, modes and clocks."""

from __future__ import annotations

from .row import TuningRow
from .words import OTHER

#: least branch of the driver by version of CUDA [CUDA Toolkit release notes, table of driver versions]
LEAST_DRIVER = {13: 580, 12: 525, 11: 450}

ROWS: tuple[TuningRow, ...] = (
    TuningRow(
        "gpu_driver",
        "gpu",
        "version of the GPU driver",
        "CUDA programs may behave differently on the node, or may not start.",
        "On OpenShift, set spec.driver.version of the ClusterPolicy. On other clusters, update the driver packages on"
        " the node.",
    ),
    TuningRow(
        "gpu_persistence",
        "gpu",
        "persistence mode of the GPUs",
        "The driver unloads when no job runs, so each job start takes seconds longer.",
        "Without the GPU operator, run systemctl enable --now nvidia-persistenced on the node. With it, drain the node"
        " and delete its pod of the DaemonSet nvidia-driver-daemonset, whose container starts the daemon.",
        "Enabled",
        "Enabled",
        source="azurehpc-health-checks",
    ),
    TuningRow(
        "gpu_ecc",
        "gpu",
        "ECC of the GPU memory",
        "A bit error in the GPU memory corrupts the weights without being detected.",
        "Drain the node, run nvidia-smi -i GPU -e 1 on it, then reset the GPU (nvidia-smi -r -i GPU).",
        "Enabled",
        "Enabled",
        source="azurehpc-health-checks",
    ),
    TuningRow(
        "gpu_mig",
        "gpu",
        "MIG mode of the GPUs",
        "MIG instances do not support peer-to-peer access, so NCCL sends the data through the host.",
        "With the GPU operator, set the node label nvidia.com/mig.config=all-disabled. Without it, drain the node, then"
        " run nvidia-smi -i GPU -mig 0 on it.",
        "Disabled",
        source="NVIDIA MIG user guide",
    ),
    TuningRow(
        "gpu_max_clock",
        "gpu",
        "maximum clock of the GPU cores",
        OTHER,
        "Run nvidia-smi -q -d CLOCK on the node. To remove a clock lock, run nvidia-smi -rgc.",
    ),
    TuningRow(
        "gpu_slowed",
        "gpu",
        "reason why the GPU reduces its clock",
        "All ranks of a job wait for the slowest GPU.",
        "Run nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER on the node. If it shows a thermal reason, correct the"
        " fans or the inlet temperature. If it shows a power reason, correct the power supplies or the power limit."
        " Otherwise drain the node and replace the GPU.",
        "none",
        "none",
        "fail",
        source="azurehpc-health-checks, leptonai/gpud",
        alike=False,
    ),
    TuningRow(
        "gpu_fabric",
        "gpu",
        "registration of the GPUs with the NVLink fabric",
        "CUDA does not start on a GPU that is not registered, or NVLink of the GPU is down and NCCL does not use"
        " NVLink.",
        "Drain the node, because a restart of Fabric Manager ends all CUDA programs of the node. Then run systemctl"
        " restart nvidia-fabricmanager on it, and read its log. Where the GPU operator installs"
        " the driver, its driver container runs Fabric Manager: kubectl -n gpu-operator logs POD. For GB200 and"
        " GB300, Fabric Manager runs on an NVLink switch.",
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
        "NVLink of the GPU is slower than NVLink of the other GPUs, and every collective operation waits for this GPU.",
        "Run nvidia-smi -q on the node, and read Health in section Fabric. If the configuration is incorrect, correct"
        " the partitions of the fabric manager or of NMX-C. Otherwise drain the node and reset the GPU (nvidia-smi"
        " -r). If the fault remains, replace the GPU or its NVLink cable or switch.",
        "Healthy",
        "Healthy",
        source="nvml.h of NVIDIA",
    ),
    TuningRow(
        "gpu_clique",
        "gpu",
        "NVLink clique of the GPUs (ClusterUUID.CliqueId)",
        OTHER,
        "Run nvidia-smi --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv on the node. NMX configures the"
        " NVLink partitions.",
        source="tuning.nvlink_domain compares it",
        alike=False,
    ),
    TuningRow(
        "gpu_link_speed",
        "gpu",
        "PCIe generation of the link of the GPU in performance state P0, compared with the maximum of GPU and system",
        "Transfers to and from the GPU memory do not reach the full PCIe rate.",
        "Run nvidia-smi --query-gpu=pci.bus_id,pstate,pcie.link.gen.current,pcie.link.gen.max --format=csv on the node"
        " while a job uses the GPU. If the generation stays lower, drain the node, power it off, and reseat the GPU or"
        " its riser.",
        "full|idle",
        "full|idle",
        source="nvidia-smi --help-query-gpu: the generation may be lower while the GPU is not in use",
        alike=False,
    ),
    TuningRow(
        "p2pdma",
        "gpu",
        "mechanism of GPUDirect RDMA",
        "The HCA cannot access GPU memory through DMA-BUF, so GPUDirect RDMA does not work.",
        "Drain the node and boot a kernel that is built with CONFIG_PCI_P2PDMA=y. Or, with GPUs of NVIDIA, run modprobe"
        " nvidia_peermem on the node, which requires the peer memory support of DOCA-OFED. With GPUs of AMD, waive this"
        " finding if stage training proves GPUDirect RDMA: amdgpu of ROCm's package supports peer memory too.",
        "on|peermem",
        "on|peermem",
        source="leptonai/gpud, siderolabs/pkgs#1356",
        meaning="CONFIG_PCI_P2PDMA of the kernel or the module nvidia_peermem",
    ),
)
