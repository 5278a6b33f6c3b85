# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage tuning, for the pages to which the report links. Check ids: ``tuning.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "tuning.alike": Explanation(
        means=(
            "A node has a different value than comparable nodes, which have the same models of CPU, GPU and HCA. In a"
            " collective, this node can slow down all nodes."
        ),
        measured="Each setting of comparable nodes. The usual value is the value of most of them.",
        causes=(
            "A user changed the setting by hand, or the node was installed at a different time.",
            "The node has a different release of the kernel, the driver or the BIOS.",
            "A tuning daemon runs only on this node, or on all nodes except this node.",
        ),
        look=(
            "tuned-adm active",
            "sysctl -a",
            "uname -r",
        ),
        remedy=(
            "Set the value of the comparable nodes on this node, or the value of this node on the comparable nodes."
            " Then run stage `tuning` again. This finding is only a warning. To make a difference fail, add a rule to"
            " `rdma_cluster.tuning.expected`."
        ),
    ),
    "tuning.cpu": Explanation(
        means=(
            "CPU settings are unsuitable for RDMA: power-saving clock rates or idle states with a long exit time"
            " increase the latency of each message."
        ),
        measured=(
            "Governor, clock driver, idle states, SMT, isolated CPUs and NUMA, read from sysfs and"
            " the kernel command line."
        ),
        causes=(
            "The governor is powersave or schedutil, the default of most distributions.",
            "The BIOS has a power-saving profile, or controls the clock rates itself.",
            "No TuneD profile is active.",
        ),
        look=(
            "cpupower frequency-info",
            "cpupower idle-info",
            "tuned-adm active",
            "lscpu -e",
        ),
        remedy=(
            "Run `tuned-adm profile latency-performance` (or throughput-performance), or set the values in"
            " `rdma_cluster.tuning.expected` with `set: true`. Then run stage `tuning` again."
        ),
    ),
    "tuning.gpu": Explanation(
        means=(
            "GPU settings or states are unsuitable: persistence mode or ECC off, MIG on, limited clock rates, or no"
            " NVLink fabric. A GPU that reduces its clock rate slows down all ranks."
        ),
        measured="Settings of the GPUs, read from nvidia-smi and from the kernel configuration.",
        causes=(
            "The GPU throttles because of heat or a hardware brake, not the power cap (`gpu_slowed`).",
            "Persistence mode is off, so the driver is loaded again for each job.",
            "The driver is too old for the CUDA version in the intent.",
            "The kernel supports neither P2PDMA nor nvidia_peermem.",
            "Fabric Manager does not run, so the GPUs are not registered in the NVLink fabric (`gpu_fabric`).",
            "An NVLink link or route failed (`gpu_fabric_health`).",
        ),
        look=(
            "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC",
            "nvidia-smi",
            "lsmod",
        ),
        remedy=(
            "If a GPU throttles, check its cooling and power supply. Run `nvidia-smi -pm 1` for persistence mode and"
            " `nvidia-smi -e 1` for ECC (drain the node, then reset the GPU). Then run stage `tuning` again."
        ),
    ),
    "tuning.kernel": Explanation(
        means=(
            "The kernel settings are unsuitable for RDMA: the IOMMU translates instead of passing through, ib_umad is"
            " missing, or the kernel log reports faults."
        ),
        measured=(
            "Kernel arguments, modules, RDMA mode, TuneD profile, and faults of GPUs, HCAs and PCIe in the kernel log."
        ),
        causes=(
            "`iommu=pt` is missing in the kernel arguments.",
            "ib_umad is not loaded at boot.",
            "A card, a GPU or a PCIe link reported errors (Xid, AER, mlx5 health).",
        ),
        look=(
            "cat /proc/cmdline",
            "lsmod",
            "dmesg",
            "rdma system",
        ),
        remedy=(
            "Add `iommu=pt` to `rdma_cluster.host.kernel_arguments`. For ib_umad, run `modprobe ib_umad`, and add it to"
            " /etc/modules-load.d. For faults in the kernel log, check the card at the named address. Then run stage"
            " `tuning` again."
        ),
    ),
    "tuning.kubelet": Explanation(
        means=(
            "The kubelet does not place pods as a training job needs: the CPUs, memory, GPUs and NICs of a pod can be"
            " on different NUMA nodes."
        ),
        measured=(
            "Settings of the kubelet, from its configuration file, its drop-ins (`--config-dir`), the flags of its"
            " process, and the state files of its CPU and memory managers."
        ),
        causes=(
            "The CPU manager has its default policy (none).",
            "The topology manager has no policy, or the policy best-effort.",
            "A KubeletConfig does not select the pool of the node.",
            "A drop-in of `--config-dir` or a flag of the kubelet overrides its configuration file.",
        ),
        look=(
            "kubectl get --raw /api/v1/nodes/NODE/proxy/configz",
            "oc get kubeletconfig",
        ),
        remedy=(
            "Set `rdma_cluster.host.kubelet` (OpenShift), or drain the node, set cpuManagerPolicy and"
            " topologyManagerPolicy in the kubelet configuration, and restart the kubelet. Then run stage `tuning`"
            " again."
        ),
    ),
    "tuning.memory": Explanation(
        means=(
            "Memory settings are unsuitable for RDMA: swap, NUMA balancing, or a limit of locked memory. Moving memory"
            " pages increases the latency, and memory that cannot be locked cannot be registered."
        ),
        measured="Sysctl values, swap, hugepages, transparent hugepages, memlock.",
        causes=(
            "Swap is on.",
            "kernel.numa_balancing is on, the default of most distributions.",
            "vm.min_free_kbytes is too low, so the kernel reclaims memory while it processes packets.",
            "The container runtime has the default limit of locked memory.",
        ),
        look=(
            "sysctl kernel.numa_balancing vm.min_free_kbytes vm.zone_reclaim_mode",
            "swapon --show",
            "cat /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        remedy=(
            "Run `sysctl -w kernel.numa_balancing=0`, `swapoff -a` and `sysctl -w vm.min_free_kbytes=135168`. To make"
            " the values persistent, use `rdma_cluster.tuning` with `set: true`. Then run stage `tuning` again."
        ),
    ),
    "tuning.network": Explanation(
        means=(
            "Network interfaces and network settings of the kernel differ from the expected values: ring sizes, MTU,"
            " ARP cache, socket buffers."
        ),
        measured="Settings of the network, read from sysctl, ethtool and sysfs.",
        causes=(
            "Default values of the distribution, which are too small for a large fleet (ARP cache, `gc_thresh3`).",
            "An interface with a different MTU.",
            "NIC settings that differ from the profile.",
        ),
        look=(
            "sysctl net.ipv4.neigh.default.gc_thresh3",
            "ethtool -g DEVICE",
            "ethtool -k DEVICE",
            "ip -d link show DEVICE",
        ),
        remedy=(
            "Set the value that the finding expects, or add your own value to `rdma_cluster.tuning.expected`. With"
            " `set: true`, linerate.rdma sets the values. Then run stage `tuning` again."
        ),
    ),
    "tuning.node": Explanation(
        means="The data collection failed on a node, so its tuning is unknown.",
        measured="Whether the module `node_info` returned data, and how many settings it could not read.",
        causes=(
            "The connection by ssh, sudo or the pod that inspects the node does not work.",
            "The node is down.",
        ),
        look=("ansible NODE -m ansible.builtin.ping -b",),
        remedy="Make the node reachable, or remove it from the group `rdma_nodes`. Then run stage `tuning` again.",
    ),
    "tuning.nvlink_domain": Explanation(
        means=(
            "NVLink joins the GPUs of several nodes (GB200, GB300). The nodes of one NVLink domain are not all in one"
            " clique, or a node does not report its clique. GPUs of different cliques have no NVLink between them."
        ),
        measured=(
            "The value `gpu_clique` of each node: `fabric.clusterUuid` and `fabric.cliqueId` of nvidia-smi. The"
            " ClusterUUID names the domain."
        ),
        causes=(
            "The rack is divided into NVLink partitions.",
            "A partition was changed, and the GPUs of a node were not reset after the change.",
            "The Fabric Manager of a switch has not configured all GPUs.",
            "The driver of the node does not report the fields, or nvidia-smi failed on the node.",
        ),
        look=(
            "nvidia-smi --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv",
            "kubectl get nodes -L nvidia.com/gpu.clique",
        ),
        remedy=(
            "Set the NVLink partitions of the rack with NMX-C, then run stage `tuning` again. If the partitions are"
            " intended, waive the finding, and select the nodes of a job by the label `nvidia.com/gpu.clique`."
        ),
    ),
    "tuning.pci": Explanation(
        means=(
            "PCI settings are unsuitable for GPUs and HCAs: ACS redirects peer-to-peer traffic over the root complex,"
            " read requests are small, or the link of a GPU has fewer lanes."
        ),
        measured="PCI capabilities from sysfs, NUMA nodes, paths between GPU and HCA, interrupts.",
        causes=(
            (
                "ACS is enabled in bridges between a GPU and its HCA: GPUDirect RDMA then uses the longer path over the"
                " root complex."
            ),
            "MaxReadReq has the BIOS default of 512.",
            "Relaxed ordering is disabled.",
            "The BIOS does not report the NUMA node of a card.",
            "The link of a GPU trained to a lower speed or width.",
        ),
        look=(
            "lspci -vvv -s ADDRESS",
            "lspci -tv",
            "nvidia-smi topo -m",
            "setpci -s ADDRESS CAP_EXP+8.w",
        ),
        remedy=(
            "On bare metal, disable ACS (in the BIOS, or with `setpci` at boot). Raise MaxReadReq to 4096 with the"
            " firmware or the NIC operator. Reseat a card whose link trained to a lower speed or width. Then run stage"
            " `tuning` again."
        ),
    ),
    "tuning.roce": Explanation(
        means=(
            "The NICs of an Ethernet fabric have different RoCE settings, or settings that differ from the fabric. If"
            " PFC is enabled on only one side of a link, the link loses packets under load."
        ),
        measured=(
            "Trust, PFC, ECN, mapping of DSCP to priority, and traffic class of each NIC (dcb, sysfs), compared with"
            " `roce` of the fabric or NVIDIA's default values."
        ),
        causes=(
            "The setting is lost at each boot, and no tool sets it again.",
            "A different tool or operator configured one of the nodes.",
            "PFC is enabled for a different priority, or only on the switch.",
            "Only one port of a bond (RoCE LAG) was configured. Each port has settings of its own.",
        ),
        look=(
            "dcb pfc show dev DEVICE",
            "mlnx_qos -i DEVICE",
            "cma_roce_tos -d mlx5_0",
            "lldptool -t -i DEVICE -V PFC",
        ),
        remedy=(
            "Run `mlnx_qos -i DEVICE --trust dscp --pfc 0,0,0,1,0,0,0,0` for each NIC, and enable the same priority on"
            " the switches. For DSCP 26, run `cma_roce_tos -d mlx5_0 -t 106`. NVIDIA's NIC configuration operator makes"
            " the settings persistent. Then run stage `tuning` again."
        ),
    ),
    "tuning.set": Explanation(
        means="Settings that `rdma_cluster.tuning` requires were not applied on a node.",
        measured=(
            "The results that TuneD (OpenShift's Node Tuning Operator) or the module kernel_settings reported for each"
            " node."
        ),
        causes=(
            "A PerformanceProfile sets the same values.",
            "A different Tuned object has a lower priority number and matches the node.",
            (
                "A different Tuned object tunes a node that the Tuned of linerate.rdma would take from it, perhaps a"
                " node outside of the inventory. Then nothing is set."
            ),
            "TuneD is degraded on the node because it cannot apply one of the values.",
            "linerate.rdma reads the node through a pod that inspects it, and the cluster has no Node Tuning Operator.",
            (
                "The kernel of the node rejects a value, or a different program on the node overwrites the value"
                " immediately."
            ),
        ),
        look=(
            "oc -n openshift-cluster-node-tuning-operator get profiles.tuned.openshift.io",
            "oc -n openshift-cluster-node-tuning-operator get tuned",
            "tuned-adm active",
        ),
        remedy=(
            "Write the values into the profile of the other Tuned, or correct the value that TuneD reports."
            " Alternatively set the value by hand and set `rdma_cluster.tuning.set: false`. Then run stage `tuning`"
            " again."
        ),
    ),
}
