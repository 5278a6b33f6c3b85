# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage tuning, for the pages to which the report links. Check ids: ``tuning.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "tuning.alike": Explanation(
        means=(
            "A node shows another value than its like: the same models of CPU, GPU and HCA. In a collective the odd one"
            " slows down all."
        ),
        measured="Each row of `tuning` over nodes of one kind; what most of them show is usual.",
        causes=(
            "Somebody set it by hand, or the node was installed at another time.",
            "Another release of the kernel, the driver or the BIOS.",
            "A tuning daemon runs there, or does not.",
        ),
        look=(
            "tuned-adm active",
            "sysctl -a",
            "uname -r",
        ),
        remedy=(
            "Bring the node to what its like show, or the others to it. It warns only; a rule in"
            " `rdma_cluster.tuning.expected` makes it fail."
        ),
    ),
    "tuning.cpu": Explanation(
        means=(
            "CPUs are not as they should be for RDMA: a clock that saves power, or idle states that take long to leave,"
            " add latency to each message."
        ),
        measured=(
            "Governor, driver of the clocks, idle states, SMT, isolated CPUs, NUMA: rows of group cpu, read from sysfs"
            " and the kernel's command line."
        ),
        causes=(
            "The governor is powersave or schedutil, the default of most distributions.",
            "The BIOS has a power profile that saves, or decides on clocks by itself.",
            "No TuneD profile is active.",
        ),
        look=(
            "cpupower frequency-info",
            "cpupower idle-info",
            "tuned-adm active",
            "lscpu -e",
        ),
        remedy=(
            "`tuned-adm profile latency-performance` (or throughput-performance), or what"
            " `rdma_cluster.tuning.expected` names with `set: true`."
        ),
    ),
    "tuning.gpu": Explanation(
        means=(
            "GPUs are not as they should be: no persistence mode, ECC off, MIG on, clocks that are held down, or no"
            " NVLink fabric. A GPU that slows itself down slows down all ranks."
        ),
        measured="Rows of group gpu, read by nvidia-smi and from the kernel's configuration.",
        causes=(
            "The GPU throttles: heat, power cap, a hardware brake (`gpu_slowed`).",
            "Persistence mode is off, so the driver is loaded anew for each job.",
            "The driver is too old for the CUDA that the intent names.",
            "The kernel has neither P2PDMA nor nvidia_peermem.",
            "Fabric Manager does not run, so the GPUs are not registered with the NVLink fabric (`gpu_fabric`).",
            "A link or a route of NVLink has failed (`gpu_fabric_health`).",
        ),
        look=(
            "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC",
            "nvidia-smi",
            "lsmod",
        ),
        remedy=(
            "Throttled: see cooling and power supply. `nvidia-smi -pm 1` for persistence, `nvidia-smi -e 1` for ECC"
            " (then reset the GPU)."
        ),
    ),
    "tuning.kernel": Explanation(
        means=(
            "The kernel is not as RDMA needs it: the IOMMU translates where it should pass through, ib_umad is missing,"
            " or the kernel log tells of faults."
        ),
        measured=(
            "Rows of group kernel: kernel arguments, modules, RDMA mode, profile of TuneD, and faults of GPUs, HCAs and"
            " PCIe in the kernel log."
        ),
        causes=(
            "`iommu=pt` is missing in the kernel arguments.",
            "ib_umad is not loaded at boot.",
            "A card, a GPU or a PCIe link told of errors (Xid, AER, mlx5 health).",
        ),
        look=(
            "cat /proc/cmdline",
            "lsmod",
            "dmesg",
            "rdma system",
        ),
        remedy=(
            "Add `iommu=pt` by `rdma_cluster.host.kernel_arguments`; `modprobe ib_umad` and /etc/modules-load.d. For"
            " faults in the log: find the card at the address that is named."
        ),
    ),
    "tuning.kubelet": Explanation(
        means=(
            "The kubelet does not place pods as a training job needs it: CPUs, memory, GPU and NIC of one pod may be of"
            " several NUMA nodes."
        ),
        measured="Rows of group kubelet, from the kubelet's configuration on the node.",
        causes=(
            "The CPU manager is at its default (none).",
            "The topology manager has no policy, or best-effort.",
            "A KubeletConfig does not select the pool of the node.",
        ),
        look=(
            "kubectl get --raw /api/v1/nodes/NODE/proxy/configz",
            "oc get kubeletconfig",
        ),
        remedy=(
            "Set `rdma_cluster.host.kubelet` (OpenShift), or cpuManagerPolicy and topologyManagerPolicy in the"
            " kubelet's configuration, and restart it."
        ),
    ),
    "tuning.memory": Explanation(
        means=(
            "Memory is not as RDMA needs it: swap, NUMA balancing, or a limit of locked memory. Memory that moves costs"
            " latency, and what can't be locked can't be registered."
        ),
        measured="Rows of group memory: sysctl values, swap, hugepages, transparent hugepages, memlock.",
        causes=(
            "Swap is on.",
            "kernel.numa_balancing is on, the default of most distributions.",
            "vm.min_free_kbytes is too low, so the kernel reclaims in the path of packets.",
            "The container runtime has the default limit of locked memory.",
        ),
        look=(
            "sysctl kernel.numa_balancing vm.min_free_kbytes vm.zone_reclaim_mode",
            "swapon --show",
            "cat /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        remedy=(
            "`sysctl -w kernel.numa_balancing=0`, `swapoff -a`, `sysctl -w vm.min_free_kbytes=135168`; to keep it:"
            " `rdma_cluster.tuning` with `set: true`."
        ),
    ),
    "tuning.network": Explanation(
        means=(
            "Interfaces and kernel settings of the network are not as expected: ring sizes, MTU, ARP cache, buffers of"
            " sockets."
        ),
        measured="Rows of group network, by sysctl, ethtool and sysfs.",
        causes=(
            "Defaults of the distribution, too small for a large fleet (ARP cache, `gc_thresh3`).",
            "An interface with an MTU of its own.",
            "Settings of a NIC that differ from the profile's.",
        ),
        look=(
            "sysctl net.ipv4.neigh.default.gc_thresh3",
            "ethtool -g DEVICE",
            "ethtool -k DEVICE",
            "ip -d link show DEVICE",
        ),
        remedy=(
            "Set the value that the finding expects, or write your own into `rdma_cluster.tuning.expected`; `set: true`"
            " has it set."
        ),
    ),
    "tuning.node": Explanation(
        means="A node did not say how it is tuned.",
        measured="Whether `node_info` answered, and how many rows it could not read.",
        causes=(
            "ssh, sudo or the observer does not work.",
            "The node is down.",
        ),
        look=("ansible NODE -m ansible.builtin.ping -b",),
        remedy="Make the node answer, or take it out of the group `rdma_nodes`.",
    ),
    "tuning.nvlink_domain": Explanation(
        means=(
            "NVLink joins the GPUs of several nodes (GB200, GB300). The nodes of one NVLink domain are not all in one"
            " clique, or a node does not report its clique. GPUs of different cliques have no NVLink between them."
        ),
        measured=(
            "The row `gpu_clique` of each node: `fabric.clusterUuid` and `fabric.cliqueId` of nvidia-smi. The"
            " ClusterUUID names the domain."
        ),
        causes=(
            "The rack is divided into NVLink partitions.",
            "A partition was changed, and the GPUs of a node were not reset afterwards.",
            "Fabric Manager of a switch has not configured all GPUs.",
            "The driver of the node does not report the fields, or nvidia-smi failed there.",
        ),
        look=(
            "nvidia-smi --query-gpu=fabric.clusterUuid,fabric.cliqueId --format=csv",
            "kubectl get nodes -L nvidia.com/gpu.clique",
        ),
        remedy=(
            "Set the NVLink partitions of the rack with NMX-C. If the partitions are intended, waive the finding, and"
            " select the nodes of a job by the label `nvidia.com/gpu.clique`."
        ),
    ),
    "tuning.pci": Explanation(
        means=(
            "PCI is not as GPUs and HCAs need it: ACS sends peer traffic over the root complex, reads are small, or a"
            " GPU's link has fewer lanes."
        ),
        measured=(
            "Rows of group pci: lspci's capabilities from sysfs, NUMA nodes, ways between GPU and HCA, interrupts."
        ),
        causes=(
            "ACS is on in bridges between a GPU and its HCA: GPUDirect RDMA then takes the long way.",
            "MaxReadReq is at the BIOS's default of 512.",
            "Relaxed ordering is off.",
            "The BIOS does not say of which NUMA node a card is.",
            "A GPU's link trained down.",
        ),
        look=(
            "lspci -vvv -s ADDRESS",
            "lspci -tv",
            "nvidia-smi topo -m",
            "setpci -s ADDRESS CAP_EXP+8.w",
        ),
        remedy=(
            "Switch ACS off on bare metal (BIOS, or `setpci` at boot), raise MaxReadReq to 4096 by the firmware or the"
            " NIC operator, and reseat a card whose link trained down."
        ),
    ),
    "tuning.roce": Explanation(
        means=(
            "NICs of an Ethernet fabric do not treat RoCE alike, or not as the fabric says. PFC on one side only loses"
            " packets under load."
        ),
        measured=(
            "Trust, PFC, ECN, DSCP to priority, and traffic class of each NIC (dcb, sysfs), against `roce` of the"
            " fabric or NVIDIA's defaults."
        ),
        causes=(
            "The setting is lost at each boot and nothing sets it again.",
            "One node was set by another tool or operator.",
            "PFC is on for another priority, or on the switch only.",
        ),
        look=(
            "dcb pfc show dev DEVICE",
            "mlnx_qos -i DEVICE",
            "cma_roce_tos -d mlx5_0",
            "lldptool -t -i DEVICE -V PFC",
        ),
        remedy=(
            "`mlnx_qos -i DEVICE --trust dscp --pfc 0,0,0,1,0,0,0,0` on each NIC, and the same priority on the"
            " switches; `cma_roce_tos -d mlx5_0 -t 106` for DSCP 26. NVIDIA's NIC configuration operator keeps it over"
            " boots."
        ),
    ),
    "tuning.set": Explanation(
        means="What `rdma_cluster.tuning` asks to be set was not set on a node.",
        measured="What TuneD (OpenShift's Node Tuning Operator) or the module kernel_settings reported of each node.",
        causes=(
            "A PerformanceProfile tunes the same lines.",
            "Another Tuned has a lower priority number and matches the node.",
            "TuneD is degraded on the node: a line that it can't set.",
            "The node is reached by an observer, and the cluster has no Node Tuning Operator.",
            "The kernel of the node does not take a value, or something else on the node sets it at once.",
        ),
        look=(
            "oc -n openshift-cluster-node-tuning-operator get profiles.tuned.openshift.io",
            "oc -n openshift-cluster-node-tuning-operator get tuned",
            "tuned-adm active",
        ),
        remedy=(
            "Give one of the two the line; correct the line that TuneD names; or set it by hand and write"
            " `rdma_cluster.tuning.set: false`."
        ),
    ),
}
