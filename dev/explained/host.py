# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage host, for the pages that the report links to. Check ids: ``host.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "host.cluster_policy": Explanation(
        means=(
            "The ClusterPolicy does not request nvidia-peermem, or the GPU operator has not loaded it. GPUDirect RDMA"
            " then needs DMA-BUF. Without DMA-BUF, data goes through the host memory."
        ),
        measured=(
            "The ClusterPolicy: exactly one, with `driver.rdma.enabled: true`, in state ready. If it leaves the driver"
            " to NVIDIADrivers (`useNvidiaDriverCRD`): each one that selects nodes of the inventory, with"
            " `rdma.enabled: true`, in state ready."
        ),
        causes=(
            "RDMA is disabled in the ClusterPolicy, and another tool owns the field.",
            "There is no ClusterPolicy, or more than one.",
            "RDMA is disabled in the NVIDIADriver of the nodes, or no NVIDIADriver selects them.",
            "The GPU operator is recreating the driver pods.",
        ),
        look=(
            "kubectl get clusterpolicies.nvidia.com -o yaml",
            "kubectl get nvidiadrivers.nvidia.com -o yaml",
            "kubectl get pods -n gpu-operator -o wide",
        ),
        remedy=(
            "Set `driver.rdma.enabled: true` in the source of the ClusterPolicy, and wait until it is ready. Then run"
            " stages `platform` and `host` again."
        ),
    ),
    "host.containerd": Explanation(
        means=(
            "containerd does not run with the limit of locked memory that the intent requires. Its containers inherit"
            " its limit."
        ),
        measured=(
            "The limit of the process of containerd, after the drop-in was written. On a node with an observer,"
            " LimitMEMLOCK of its unit, as systemd reports it."
        ),
        causes=(
            "systemd reads another drop-in after the one of linerate.rdma.",
            "containerd was not restarted.",
            "linerate.rdma reaches the node through a pod that inspects it, and the pod changes nothing on the node.",
        ),
        look=(
            "systemctl show containerd -p LimitMEMLOCK",
            "systemctl cat containerd",
        ),
        remedy=(
            "Remove the other drop-in on the node, and run `systemctl daemon-reload` and `systemctl restart"
            " containerd`; or set the limit in the image of the node. Then run stage `host` again."
        ),
    ),
    "host.gpudirect": Explanation(
        means=(
            "The HCAs of a node cannot access GPU memory in the way that the intent requires. NCCL then copies data"
            " through the host memory, at a fraction of the rate."
        ),
        measured=(
            "The version and the kind of the GPU driver, the version of the kernel, and the state of the module"
            " nvidia_peermem. Of the configuration of the kernel, CONFIG_PCI_P2PDMA, if it could be read."
        ),
        causes=(
            "The GPU driver uses the proprietary kernel modules, which do not export DMA-BUF.",
            "The kernel is older than 5.12.",
            "The kernel is built without CONFIG_PCI_P2PDMA (unknown).",
            "The NICs of the fabrics are not from NVIDIA, and their RDMA driver in this kernel is too old (unknown).",
            "nvidia_peermem is not loaded, or it is not registered with the RDMA core of the NIC driver.",
            "The GPU driver is not loaded (unknown).",
        ),
        look=(
            "cat /proc/driver/nvidia/version",
            "lsmod",
            "modinfo nvidia",
            "grep CONFIG_PCI_P2PDMA /boot/config-$(uname -r)",
        ),
        remedy=(
            "DMA-BUF: set `spec.driver.kernelModuleType: open` in the ClusterPolicy. nvidia-peermem: set"
            " `spec.driver.rdma.enabled: true` in the ClusterPolicy and install DOCA-OFED. Then run stages `platform`"
            " and `host` again."
        ),
    ),
    "host.kernel_arguments": Explanation(
        means=(
            "A node was booted without kernel arguments that the intent requires, and no MachineConfig with these"
            " arguments reached the node in this run."
        ),
        measured=(
            "`/proc/cmdline` of the node, compared with `rdma_cluster.host.kernel_arguments`; the MachineConfig that"
            " stage `network` applies; and the MachineConfigPools for which stage `network` waited."
        ),
        causes=(
            "The run had no `platform_settle: true`, and the node belongs to no MachineConfigPool.",
            "The MachineConfig exists, but its pool is paused or not updated, or the node belongs to another pool.",
            "An admin or a tool removed the arguments from the boot loader.",
            "A later argument with the same name overrides them, or may override them (unknown).",
            "The node could not be queried (unknown).",
        ),
        look=("cat /proc/cmdline", "kubectl get machineconfigs", "kubectl get machineconfigpools"),
        remedy=(
            "Run site.yml with `platform_settle: true`, which sets the arguments and resets the nodes one after the"
            " other; or set the arguments in the boot loader of the node. Then run stages `platform` and `host` again."
        ),
    ),
    "host.kubelet": Explanation(
        means=(
            "The kubelet of a node runs with other settings than the intent requires, so pods may get GPUs, NICs and"
            " CPUs of different NUMA nodes."
        ),
        measured=(
            "The policies of the topology manager and the CPU manager, the scope of the topology manager, and the"
            " reserved CPUs, from the configuration"
            " file, the drop-ins, the flags and the state file of the kubelet. Stage `tuning` reads"
            " them. Stage `host` reads them again on each node that a MachineConfigPool rolled in this run."
        ),
        causes=(
            "A drop-in of `--config-dir`, or a flag, overrides the configuration file that the KubeletConfig writes.",
            "Another KubeletConfig, a MachineConfig or a PerformanceProfile writes the configuration of the kubelet.",
            "The pool of the node is paused or not updated, or the KubeletConfig does not select it.",
            "The kubelet could not be read, or could not be read again after this run rolled the node (unknown).",
        ),
        look=(
            "kubectl get --raw /api/v1/nodes/NODE/proxy/configz",
            "systemctl cat kubelet",
            "oc get kubeletconfig",
        ),
        remedy=(
            "Remove the value that overrides the KubeletConfig, and restart the kubelet. Then run stages `tuning` and"
            " `host` again."
        ),
    ),
    "host.memlock": Explanation(
        means=(
            "A pod can lock less memory than the intent requires. A job that registers more memory fails with `Cannot"
            " allocate memory`, or NCCL falls back to TCP."
        ),
        measured="`ulimit -l` in a pod of a non-root user, and a registration of `proof_mib` with ibv_rc_pingpong.",
        causes=(
            "The container runtime was not restarted with the new limit.",
            "CRI-O: a later file overrides default_ulimits, or the MachineConfig has not reached the node.",
            "The pod ran as root, so the limit of other users could not be verified (unknown).",
            "The virtual function has no GUID, so the registration fails for a different reason.",
        ),
        look=(
            "ulimit -l",
            "systemctl show containerd -p LimitMEMLOCK",
            "crio config",
        ),
        remedy=(
            "Restart the container runtime with the drop-in, or let the MachineConfig reach the node (finding"
            " `network.roll`). Then run stage `host` again. Pods that already run keep their old limit."
        ),
    ),
    "host.memlock_limit": Explanation(
        means=(
            "The intent requires no limit of locked memory. Locked memory cannot be reclaimed, so any container could"
            " lock all memory and stop the kubelet."
        ),
        measured="The key `rdma_cluster.host.memlock` of the intent.",
        causes=(
            "`unlimited: true` was copied from a guide.",
            "No fabric gives pods an RDMA device, so no application needs a limit.",
        ),
        look=("free -m",),
        remedy=(
            "Set `rdma_cluster.host.memlock.limit_gib` to the memory that the application registers: the buffers of"
            " NCCL plus the pinned memory of the framework. Then run stage `host` again."
        ),
    ),
}
