# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage virtual_functions, for the pages to which the report links. Check ids:
``virtual_functions.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "virtual_functions.allocatable": Explanation(
        means=(
            "The kubelet does not offer the virtual functions that the kernel has. Pods that ask for them stay Pending."
        ),
        measured="Allocatable of the resource on the node, against the functions in the node's sysfs.",
        causes=(
            "The device plugin runs from before the policy, or not at all.",
            "It sees functions as unhealthy or of another resource.",
            "Another prefix than `rdma_cluster.resource_prefix`.",
            "The kernel itself has too few: see `virtual_functions.count`.",
        ),
        look=(
            "kubectl describe node NODE",
            "kubectl logs -n NAMESPACE -l app=sriov-device-plugin",
            "kubectl get configmap device-plugin-config -n NAMESPACE -o yaml",
        ),
        remedy=(
            "See the device plugin's log on the node; where it is older than the policy, delete its pod: `kubectl -n"
            " NAMESPACE delete pod -l app=sriov-device-plugin`."
        ),
    ),
    "virtual_functions.count": Explanation(
        means=(
            "Kernel, operator and intent do not agree on how many virtual functions a physical one has. The finding"
            " says which layer is wrong."
        ),
        measured="sriov_numvfs and the functions on the node, what the operator reports, and what it wants.",
        causes=(
            "The config daemon has not made them: its last error says why.",
            "Another policy decides on this function.",
            "The firmware offers fewer.",
            "Somebody changed sriov_numvfs by hand.",
        ),
        look=(
            "cat /sys/class/net/DEVICE/device/sriov_numvfs",
            "ip link show DEVICE",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io NODE -n NAMESPACE -o yaml",
        ),
        remedy=(
            "Follow the layer that is named: firmware (NUM_OF_VFS), policy (priority and nicSelector), config daemon"
            " (its log)."
        ),
    ),
    "virtual_functions.driver": Explanation(
        means="Virtual functions have no network driver, or several. Pods on them get no interface.",
        measured="The driver of each virtual function in sysfs.",
        causes=(
            "The module is not loaded, or refuses the functions.",
            "They are bound to vfio-pci from an earlier policy.",
        ),
        look=(
            "lspci -nnk",
            "dmesg",
        ),
        remedy="Load the driver (`modprobe mlx5_core`), or see dmesg for why it refuses them.",
    ),
    "virtual_functions.guids": Explanation(
        means=(
            "An InfiniBand virtual function has no GUID, an old one, or one that another function has. Its port gets no"
            " LID, and pods fail with `GUID is not valid`."
        ),
        measured=(
            "GUIDs as the driver has them, as the physical function was given them, and as the operator reports them."
        ),
        causes=(
            "The config daemon gave none: 16 functions or more, or a file of GUIDs that is too short.",
            "They were changed after the driver took the function.",
            "A CNI plugin set them for a pod, and gave back others, or ones.",
            "All nodes have the same file of GUIDs.",
        ),
        look=(
            "ip link show DEVICE",
            "rdma link",
            "cat /etc/sriov-operator/infiniband/guids",
        ),
        remedy=(
            "Unbind the functions from mlx5_core and bind them again, which a restart of the config daemon does:"
            " `kubectl delete pod` of it on the node. Give each node GUIDs of its own."
        ),
    ),
    "virtual_functions.hardware_addresses": Explanation(
        means=(
            "A virtual function of a fabric of Ethernet has the MAC address of another function of it. A switch sends"
            " the packets of one to the other, and pods on both lose connections."
        ),
        measured=(
            "The MAC address of each interface of the physical and virtual functions of the fabric, on the nodes and in"
            " their pods. Virtual functions of one node that are all in pods may share one, as the parts of a bond do."
        ),
        causes=(
            "A script or udev rule sets the same address on each node.",
            "A node was cloned with addresses that are kept in its configuration.",
            "A pod asks for an address that another one has (annotation k8s.v1.cni.cncf.io/networks).",
        ),
        look=("ip link show DEVICE", "ip -br link"),
        remedy="Remove what sets the address, and make the functions anew, or set one for each with `ip link set`.",
    ),
    "virtual_functions.link_state": Explanation(
        means="Links of virtual functions do not come up, so pods on them see a dead port.",
        measured="The link state that was set (`ip link`), and the state of their ports, on the node and in pods.",
        causes=(
            "On InfiniBand nothing sets `network.link_state`, and the default follows nothing.",
            (
                "The subnet manager does not serve virtual functions (opensm: `virt_enabled`): ports stay INIT or DOWN,"
                " with a physical state of LinkUp."
            ),
            "Pods are older than the setting.",
        ),
        look=(
            "ip link show DEVICE",
            "ibstat",
        ),
        remedy=(
            "Set `network.link_state: enable` in the fabric, have opensm serve virtual functions (`virt_enabled 2`),"
            " and make older pods anew."
        ),
    ),
    "virtual_functions.machine": Explanation(
        means=(
            "What was read of a node after the network was made is not of the machine on which its kubelet runs,"
            " or nobody can tell. The virtual functions that were judged are then those of another machine."
        ),
        measured=(
            "The ID of the boot in the node's own answers (facts `hcas_after_network` and `hcas_in_use`),"
            " and the boot ID in its Node object, which its kubelet writes."
        ),
        causes=(
            "The inventory leads to another node, or to a machine outside of the cluster (`ansible_host`).",
            "The node booted after the virtual functions were read, as where the SR-IOV operator resets it once more.",
        ),
        look=(
            "cat /proc/sys/kernel/random/boot_id",
            "kubectl get node NODE -o yaml",
        ),
        remedy="Correct the inventory; after a boot run from this stage on: `-e rdma_from=virtual_functions`.",
    ),
    "virtual_functions.members": Explanation(
        means=(
            "The fabric has another number of physical functions on the node than the intent says, so its virtual"
            " functions can't be right either."
        ),
        measured="The members of the fabric on the node against `hcas_per_node`.",
        causes=(
            "See `fabric.hcas` or `discover.hcas`: a port, a cable, a card.",
            "`hcas_per_node` is wrong.",
        ),
        look=(
            "ibstat",
            "lspci -D -nn -d 15b3:",
        ),
        remedy="Correct what stages `discover` and `fabric` name for this node.",
    ),
    "virtual_functions.mtu": Explanation(
        means=(
            "The MTU of virtual functions is not that of the fabric in every layer. Large messages are dropped in"
            " silence, or fragmented."
        ),
        measured=(
            "MTU of the physical function, of each virtual one on the node and in pods, of the operator's wish and"
            " report."
        ),
        causes=(
            "Another policy wants another MTU.",
            "A pod set it, and the function kept it.",
            "The config daemon failed with the driver's answer.",
            "Functions of a node have another MTU than those of other nodes, and the intent names none (unknown).",
        ),
        look=(
            "ip -d link show DEVICE",
            "kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A -o yaml",
        ),
        remedy=(
            "Correct `mtu` of the policy that decides; make older pods anew; delete the config daemon's pod on the"
            " node, so that it sets it again."
        ),
    ),
    "virtual_functions.node": Explanation(
        means="A node did not say which virtual functions it has.",
        measured="Whether `node_info` came back with an answer.",
        causes=(
            "ssh, sudo or the observer does not work.",
            "The node is down, perhaps after a reboot by the operator.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "kubectl get node NODE",
        ),
        remedy="Make the node answer, and run the stage again.",
    ),
    "virtual_functions.rdma_device": Explanation(
        means="Virtual functions have no RDMA device. Pods on them have an interface, and RDMA fails.",
        measured="The RDMA device below each function, on the node and in pods; RDMA mode of the node.",
        causes=(
            "mlx5_ib is not loaded, or was loaded after the functions were made.",
            "With RDMA mode exclusive the device is in the pod that has the function (warn).",
            "The NIC has no RDMA.",
        ),
        look=(
            "rdma link",
            "rdma system",
            "lsmod",
        ),
        remedy=(
            "`modprobe mlx5_ib`, then restart the config daemon on the node; `rdma: false` in the fabric where none is"
            " meant."
        ),
    ),
    "virtual_functions.read": Explanation(
        means="Some files of the node could not be read, so findings that need them say unknown.",
        measured="The error of each file that the module tried to read.",
        causes=(
            "Functions came or went meanwhile: the next run is right.",
            "The task did not run as root.",
        ),
        look=("ls -l /sys/bus/pci/devices",),
        remedy="Run the stage again; if it stays, read the file that is named by hand, as root.",
    ),
    "virtual_functions.report": Explanation(
        means=(
            "What the operator reports of virtual functions is not what the kernel shows, or what it wants of them is"
            " not what the fabric says. It acts on its report, and its next sync makes what it wants."
        ),
        measured=(
            "PCI addresses and drivers of the functions in sysfs and in the status of SriovNetworkNodeState; in its"
            " spec `linkType`, `eSwitchMode`, `externallyManaged` and the `vfGroups` (`deviceType`, `isRdma`,"
            " `resourceName`, `mtu`, `vfRange`)."
        ),
        causes=(
            "The report is old: the config daemon looks at intervals.",
            "Somebody changed the functions by hand.",
            "Another policy with a higher priority selects the function, or somebody changed the policy of the fabric.",
            "The API server was not asked (unknown).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io NODE -n NAMESPACE -o yaml",
            "kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A -o yaml",
            "ip link show DEVICE",
        ),
        remedy=(
            "Run the stage again; if it stays, delete the config daemon's pod on the node, so that it looks anew. Where"
            " the settings that it wants are others, correct or delete the policy that has them, and run the stage"
            " `network` again."
        ),
    ),
    "virtual_functions.settings": Explanation(
        means="A pod has a virtual function, and VLAN, trust, spoof check or rates of it are not what the fabric says.",
        measured=(
            "A pod takes a function on each node, and `ip link` of the physical function shows what was set for it."
        ),
        causes=(
            "The NetworkAttachmentDefinition is another one.",
            "The CNI plugin is too old for the key, or failed.",
            "Pods hold all functions, so nothing could be tried.",
        ),
        look=(
            "ip link show DEVICE",
            "kubectl get network-attachment-definitions NAME -n NAMESPACE -o yaml",
        ),
        remedy="Correct the network that the attachment names, run stage `network` again, and make older pods anew.",
    ),
    "virtual_functions.stuck": Explanation(
        means=(
            "Virtual functions are in a network namespace in which nothing runs. If their pod is gone, the kubelet"
            " hands them to the next one, which does not find them on the node and fails with `failed to find netdev`"
            " or the like."
        ),
        measured=(
            "The interfaces and RDMA devices in network namespaces that a container engine has named below /run/netns,"
            " and the processes in them."
        ),
        causes=(
            "A pod that just starts or restarts: run the stage again.",
            (
                "The container engine or the node went down in the middle of a pod's removal, and the CNI plugin was"
                " not called."
            ),
            "The CNI plugin failed to give the function back.",
        ),
        look=(
            "lsns -t net",
            "ip -all netns exec ip -br link",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
        ),
        remedy="If no pod is there that crashes, give the functions back: `ip netns delete NAME` on the node.",
    ),
    "virtual_functions.sync": Explanation(
        means=(
            "The operator's config daemon failed on the node, or is still at work there, or the RDMA mode that the"
            " operator wants of the node is another one."
        ),
        measured="syncStatus, lastSyncError and `system.rdmaMode` of SriovNetworkNodeState.",
        causes=(
            "The driver refused a setting: MTU, number of functions, mode of the eSwitch.",
            "No interrupt vectors (MSI-X) or no address space are left for virtual functions.",
            "The kernel is locked down, as with secure boot, so the operator can't write the NIC's firmware.",
            "The node waits for a drain or a reboot.",
            "A SriovNetworkPoolConfig asks for another RDMA mode than the intent, or the node has not booted since.",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon",
        ),
        remedy=(
            "Do what the finding names for the error, or correct what the log names; where it is still at work, run the"
            " stage again when it is done."
        ),
    ),
}
