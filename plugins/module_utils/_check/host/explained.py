# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage host, for the pages that the report links to. Check ids: ``host.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "host.cluster_policy": Explanation(
        means=(
            "The GPU operator was not asked for nvidia-peermem, or has not brought it. GPUDirect RDMA then needs"
            " DMA-BUF, or data goes through the host's memory."
        ),
        measured="The ClusterPolicy: one, with `driver.rdma.enabled`, ready.",
        causes=(
            "RDMA is off in it, and another tool owns the field.",
            "There is none, or more than one.",
            "The operator renews the driver's pods just now.",
        ),
        look=(
            "kubectl get clusterpolicies.nvidia.com -o yaml",
            "kubectl get pods -n gpu-operator -o wide",
        ),
        remedy=(
            "Set `driver.rdma.enabled: true` where the policy comes from, wait until it is ready, then run stages"
            " platform and host again."
        ),
    ),
    "host.containerd": Explanation(
        means=(
            "containerd does not run with the limit of locked memory that the intent asks for. Its containers get its"
            " limit."
        ),
        measured="LimitMEMLOCK of containerd as systemd has it after the drop-in.",
        causes=(
            "Another drop-in comes after ours.",
            "containerd was not restarted.",
            "The node is reached by an observer, which changes nothing.",
        ),
        look=(
            "systemctl show containerd -p LimitMEMLOCK",
            "systemctl cat containerd",
        ),
        remedy=(
            "Take the other drop-in away, `systemctl daemon-reload` and `systemctl restart containerd`; or set the"
            " limit where the node's image is made."
        ),
    ),
    "host.gpudirect": Explanation(
        means=(
            "HCAs can't reach the memory of GPUs on a node by the way that the intent asks for. NCCL then copies"
            " through the host's memory, at a fraction of the rate."
        ),
        measured="Version and kind of the GPU driver, the kernel, and the module nvidia_peermem.",
        causes=(
            "The driver's kernel modules are the proprietary ones, which export no DMA-BUF.",
            "The kernel is older than 5.12.",
            "nvidia_peermem is not loaded, or the NIC driver does not register it.",
            "The driver is not loaded at all (unknown).",
        ),
        look=(
            "cat /proc/driver/nvidia/version",
            "lsmod",
            "modinfo nvidia",
        ),
        remedy=(
            "DMA-BUF: `spec.driver.kernelModuleType: open` in the ClusterPolicy. nvidia-peermem:"
            " `spec.driver.rdma.enabled: true` and DOCA-OFED."
        ),
    ),
    "host.kernel_arguments": Explanation(
        means=(
            "A node was booted without kernel arguments that the intent asks for, and this run has rolled no"
            " MachineConfig to it that brings them."
        ),
        measured=(
            "`/proc/cmdline` of the node against `rdma_cluster.host.kernel_arguments`, and the MachineConfig that stage"
            " network applies, with the MachineConfigPools that it waited for."
        ),
        causes=(
            "The run had no `platform_settle: true`, and the node is of no MachineConfigPool.",
            "The MachineConfig is there, and the pool is paused or not updated, or the node is of another pool.",
            "Somebody took them out of the boot loader.",
            "A later argument of the same name undoes them, or may do so (unknown).",
            "The node could not be asked (unknown).",
        ),
        look=("cat /proc/cmdline", "kubectl get machineconfigs", "kubectl get machineconfigpools"),
        remedy=(
            "Run site.yml with `platform_settle: true`, which sets them and resets node after node; or set them in the"
            " boot loader of the node."
        ),
    ),
    "host.memlock": Explanation(
        means=(
            "A pod may lock less memory than the intent asks for, so a job that registers more fails with `Cannot"
            " allocate memory`, or NCCL falls back to TCP."
        ),
        measured=(
            "`ulimit -l` in a pod of a user that is not root, and a registration of `proof_mib` with ibv_rc_pingpong."
        ),
        causes=(
            "The runtime was not restarted with the new limit.",
            "CRI-O: a later file replaces default_ulimits; the MachineConfig has not rolled.",
            "The pod ran as root, which proves nothing (unknown).",
            "The virtual function has no GUID, so the registration fails for another reason.",
        ),
        look=(
            "ulimit -l",
            "systemctl show containerd -p LimitMEMLOCK",
            "crio config",
        ),
        remedy=(
            "Restart the runtime with the drop-in, or let the MachineConfig roll (`network.roll`); pods that ran before"
            " keep their limit."
        ),
    ),
    "host.memlock_limit": Explanation(
        means=(
            "The intent asks for no limit of locked memory. What is locked can't be reclaimed, so any container could"
            " take all of it and bring the kubelet down."
        ),
        measured="`rdma_cluster.host.memlock` of the intent.",
        causes=(
            "`unlimited: true` was copied from a guide.",
            "No fabric gives pods RDMA, so nothing needs it.",
        ),
        look=("free -m",),
        remedy=(
            "Give `rdma_cluster.host.memlock.limit_gib` what the application registers; NCCL's buffers and the"
            " framework's pinned memory together."
        ),
    ),
}
