# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage virtual_functions, for the pages to which the report links. Check ids:
``virtual_functions.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "virtual_functions.allocatable": Explanation(
        means=(
            "The kubelet does not offer the virtual functions that the kernel has. Pods that request them stay Pending."
        ),
        measured=(
            "The allocatable amount of the resource on the node, compared with the virtual functions in sysfs of the"
            " node."
        ),
        causes=(
            "The device plugin was started before the policy was created, or does not run.",
            "The device plugin regards the functions as unhealthy, or assigns them to a different resource.",
            "The prefix of the resource differs from `rdma_cluster.resource_prefix`.",
            "The kernel has too few virtual functions: see `virtual_functions.count`.",
        ),
        look=(
            "kubectl describe node NODE",
            "kubectl logs -n NAMESPACE -l app=sriov-device-plugin --tail=-1",
            "kubectl get configmap device-plugin-config -n NAMESPACE -o yaml",
        ),
        remedy=(
            "Read the log of the device plugin on the node. If the device plugin is older than the policy, delete its"
            " pod: `kubectl -n NAMESPACE delete pod -l app=sriov-device-plugin`. Then run stage `virtual_functions`"
            " again."
        ),
    ),
    "virtual_functions.count": Explanation(
        means=(
            "Kernel, operator and intent have different numbers of virtual functions for a physical function. The"
            " finding reports which layer is wrong."
        ),
        measured=(
            "sriov_numvfs and the functions on the node, the number that the operator reports, and the number that the"
            " operator requests."
        ),
        causes=(
            "The config daemon has not created the functions: its last error contains the reason.",
            "Another policy takes precedence for this function.",
            "The firmware supports fewer functions.",
            "sriov_numvfs was changed manually.",
        ),
        look=(
            "cat /sys/class/net/DEVICE/device/sriov_numvfs",
            "ip link show DEVICE",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io NODE -n NAMESPACE -o yaml",
        ),
        remedy=(
            "Correct the layer that the finding reports: firmware (NUM_OF_VFS), policy (priority and nicSelector), or"
            " config daemon (its log). Then run stage `virtual_functions` again."
        ),
    ),
    "virtual_functions.driver": Explanation(
        means="Virtual functions have no network driver, or different drivers. Pods on them get no interface.",
        measured="The driver of each virtual function in sysfs.",
        causes=(
            "The kernel module is not loaded, or rejects the functions.",
            "The functions are still bound to vfio-pci by an earlier policy.",
        ),
        look=(
            "lspci -nnk",
            "dmesg",
        ),
        remedy="Load the driver (`modprobe mlx5_core`). If the driver rejects the functions, find the reason in dmesg.",
    ),
    "virtual_functions.free_settings": Explanation(
        means=(
            "A virtual function that is in no pod has a rate limit that the intent does not set (fail), is only a"
            " limited member of its partitions (fail), or has settings that differ from most free functions of the"
            " fabric (warn). The CNI plugin does not change these settings, so the next pod that gets the function is"
            " slower than others, does not reach them, or behaves differently."
        ),
        measured=(
            "Of each free virtual function: the rates, and on Ethernet also trust, spoof check and link policy in its"
            " physical function (`ip link`); the number of ports of its RDMA device, their partition keys, and the MTU"
            " if the intent sets none. Settings that the network of the fabric names are left out, because the CNI"
            " plugin sets them for each pod. So is the VLAN, which the CNI plugin always sets on Ethernet."
        ),
        causes=(
            "A script or an administrator set the value for some functions.",
            "The node went down while a pod had the function, so the CNI plugin did not restore the value.",
            "The subnet manager gives the functions different partition keys.",
            "The subnet manager gives full membership of the partition only to the ports that its configuration names.",
        ),
        look=("ip -d link show DEVICE", "rdma link"),
        remedy=(
            "Set the usual value for the function (`ip link set PF vf NUMBER ...`), or set it under `network` of the"
            " fabric, so that the CNI plugin applies it to each pod."
        ),
    ),
    "virtual_functions.guids": Explanation(
        means=(
            "An InfiniBand virtual function has no GUID, an outdated GUID, or the GUID of another function. Its port"
            " gets no LID, and pods fail with `GUID is not valid`."
        ),
        measured=(
            "The GUIDs in the driver, the GUIDs that were set in the physical function, and the GUIDs that the operator"
            " reports."
        ),
        causes=(
            (
                "The config daemon assigned no GUIDs: a function has at least 16 virtual functions, or the file of"
                " GUIDs is too short."
            ),
            "The GUIDs were changed after the driver took the function.",
            "A CNI plugin set the GUIDs for a pod, and later restored different GUIDs or set all ones.",
            "All nodes have the same file of GUIDs.",
        ),
        look=(
            "ip link show DEVICE",
            "rdma link",
            "cat /etc/sriov-operator/infiniband/guids",
        ),
        remedy=(
            "Unbind the functions from mlx5_core and bind them again. A restart of the config daemon does this: delete"
            " its pod on the node with `kubectl delete pod`. Give each node its own GUIDs."
        ),
    ),
    "virtual_functions.hardware_addresses": Explanation(
        means=(
            "A virtual function of an Ethernet fabric has the MAC address of another function of the fabric. A switch"
            " sends packets for one function to the other, and pods on both lose connections."
        ),
        measured=(
            "The MAC address of each interface of the physical and virtual functions of the fabric, on the nodes and in"
            " their pods. Virtual functions of one node that are all in pods may share an address, as members of a bond"
            " do."
        ),
        causes=(
            "A script or udev rule sets the same address on each node.",
            "A node was cloned together with MAC addresses in its configuration.",
            "A pod requests an address that another function has (annotation k8s.v1.cni.cncf.io/networks).",
        ),
        look=("ip link show DEVICE", "ip -br link"),
        remedy=(
            "Remove the script, rule or annotation that sets the address, and recreate the functions. Or set a unique"
            " address for each function with `ip link set`."
        ),
    ),
    "virtual_functions.link_state": Explanation(
        means="Links of virtual functions do not come up, so pods on them have a port that is down.",
        measured="The configured link state (`ip link`), and the state of the ports, on the node and in pods.",
        causes=(
            "On InfiniBand, `network.link_state` is not set, and by default the link stays down.",
            "On Ethernet, the physical function disables the link, and `network.link_state` is not set.",
            (
                "The subnet manager does not support virtual functions (opensm: `virt_enabled`): ports stay INIT or"
                " DOWN, with the physical state LinkUp."
            ),
            "The pods are older than the setting.",
        ),
        look=(
            "ip link show DEVICE",
            "ibstat",
        ),
        remedy=(
            "Set `network.link_state: enable` in the fabric, enable virtual functions in opensm (`virt_enabled 2`), and"
            " recreate older pods."
        ),
    ),
    "virtual_functions.machine": Explanation(
        means=(
            "The data of a node after stage network do not come from the machine on which its kubelet runs, or this"
            " could not be verified. The findings may then describe the virtual functions of a different machine."
        ),
        measured=(
            "The boot ID in the data of the node (facts `hcas_after_network` and `hcas_in_use`), and the boot ID in its"
            " Node object, which its kubelet writes."
        ),
        causes=(
            "The inventory points to a different node, or to a machine outside the cluster (`ansible_host`).",
            (
                "The node booted after the virtual functions were read, for example because the SR-IOV operator reset"
                " it again."
            ),
        ),
        look=(
            "cat /proc/sys/kernel/random/boot_id",
            "kubectl get node NODE -o yaml",
        ),
        remedy="Correct the inventory. After a boot, rerun from this stage: `-e rdma_from=virtual_functions`.",
    ),
    "virtual_functions.members": Explanation(
        means=(
            "The number of physical functions of the fabric on the node differs from the intent, so the number of"
            " virtual functions is wrong as well."
        ),
        measured="The physical functions of the fabric on the node, compared with `hcas_per_node`.",
        causes=(
            "A port, a cable or a card has a fault: see `fabric.hcas` or `discover.hcas`.",
            "`hcas_per_node` is wrong.",
        ),
        look=(
            "ibstat",
            "lspci -D -nn -d 15b3:",
        ),
        remedy="Correct the findings of the stages `discover` and `fabric` for this node.",
    ),
    "virtual_functions.mtu": Explanation(
        means=(
            "The MTU of virtual functions differs from the MTU of the fabric in at least one layer. Large messages are"
            " dropped without an error, or fragmented."
        ),
        measured=(
            "The MTU of the physical function, of each virtual function on the node and in pods, and the MTU that the"
            " operator requests and reports."
        ),
        causes=(
            "Another policy sets a different MTU.",
            "A pod set the MTU, and the function kept it.",
            "The config daemon failed because the driver rejected the MTU.",
            "The MTU of the functions of a node differs from the other nodes, and the intent sets no MTU (unknown).",
            (
                "The intent sets no MTU, and free virtual functions of an Ethernet fabric have another MTU than their"
                " physical function (warn). A virtual function starts with the MTU of its driver, often 1500."
            ),
        ),
        look=(
            "ip -d link show DEVICE",
            "kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A -o yaml",
        ),
        remedy=(
            "Correct `mtu` of the policy that takes precedence, and recreate older pods. Delete the pod of the config"
            " daemon on the node, so that the daemon sets the MTU again."
        ),
    ),
    "virtual_functions.node": Explanation(
        means="The virtual functions of a node are unknown, because data collection failed on the node.",
        measured="Whether data collection (module `node_info`) succeeded on the node.",
        causes=(
            "ssh, sudo or the observer pod does not work.",
            "The node is down, for example after a reboot by the operator.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "kubectl get node NODE",
        ),
        remedy="Make the node reachable, then run stage `virtual_functions` again.",
    ),
    "virtual_functions.rdma_device": Explanation(
        means="Virtual functions have no RDMA device. Pods on them have an interface, but RDMA fails.",
        measured="The RDMA device of each function, on the node and in pods, and the RDMA mode of the node.",
        causes=(
            "mlx5_ib is not loaded, or was loaded after the functions were created.",
            "In RDMA mode exclusive, the RDMA device is in the pod that has the function (warn).",
            "The NIC does not support RDMA.",
        ),
        look=(
            "rdma link",
            "rdma system",
            "lsmod",
        ),
        remedy=(
            "Run `modprobe mlx5_ib` on the node, and restart the config daemon on the node. If RDMA is not required,"
            " set `rdma: false` in the fabric. Then run stage `virtual_functions` again."
        ),
    ),
    "virtual_functions.read": Explanation(
        means="Some files of the node could not be read, so findings that depend on them have the status unknown.",
        measured="The error of each file that the module node_info could not read.",
        causes=(
            "Functions were created or removed during the data collection: the next run can read the files.",
            "The task did not run as root.",
        ),
        look=("ls -l /sys/bus/pci/devices",),
        remedy=(
            "Run stage `virtual_functions` again. If the finding remains, read the files in the finding on the node as"
            " root."
        ),
    ),
    "virtual_functions.report": Explanation(
        means=(
            "The report of the operator on virtual functions differs from the kernel, or its desired state differs from"
            " the fabric. The operator acts on its report, and its next sync applies the desired state."
        ),
        measured=(
            "PCI addresses and drivers of the functions in sysfs and in the status of SriovNetworkNodeState. In its"
            " spec: `linkType`, `eSwitchMode`, `externallyManaged` and the `vfGroups` (`deviceType`, `isRdma`,"
            " `resourceName`, `mtu`, `vfRange`)."
        ),
        causes=(
            "The report is outdated: the config daemon reads the functions at intervals.",
            "The functions were changed manually.",
            "Another policy with a higher priority selects the function, or the policy of the fabric was changed.",
            "The API server was not queried (unknown).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io NODE -n NAMESPACE -o yaml",
            "kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A -o yaml",
            "ip link show DEVICE",
        ),
        remedy=(
            "Run stage `virtual_functions` again. If the finding remains, delete the pod of the config daemon on the"
            " node, so that the daemon reads the functions again. If the desired settings differ, correct or delete the"
            " policy that contains them, then run stage `network` again."
        ),
    ),
    "virtual_functions.settings": Explanation(
        means=(
            "VLAN, trust, spoof check or rates of a virtual function in a pod differ from the settings of the fabric."
        ),
        measured=(
            "A pod gets a virtual function on each node, and `ip link` of the physical function shows the settings of"
            " the virtual function."
        ),
        causes=(
            "The NetworkAttachmentDefinition differs from the intent.",
            "The CNI plugin is too old for the setting, or failed.",
            "Pods hold all functions, so no function could be tested.",
        ),
        look=(
            "ip link show DEVICE",
            "kubectl get network-attachment-definitions NAME -n NAMESPACE -o yaml",
        ),
        remedy=(
            "Correct the network of the attachment, run stage `network` again, and recreate older pods. Then run stage"
            " `virtual_functions` again."
        ),
    ),
    "virtual_functions.stuck": Explanation(
        means=(
            "Virtual functions are in a network namespace without processes. If their pod is gone, the kubelet assigns"
            " them to the next pod. The CNI plugin does not find them on the node and fails with an error such as"
            " `failed to find netdev`."
        ),
        measured=(
            "The interfaces, RDMA devices and processes in the network namespaces that a container engine created in"
            " /run/netns."
        ),
        causes=(
            "A pod is starting or restarting: run stage `virtual_functions` again.",
            (
                "The container engine or the node went down during the removal of a pod, and the CNI plugin was not"
                " called."
            ),
            "The CNI plugin failed to return the function to the node.",
        ),
        look=(
            "lsns -t net",
            "ip -all netns exec ip -br link",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
        ),
        remedy=(
            "If no pod on the node is starting or crashing, return the functions to the node: run `ip netns delete"
            " NAME` on the node. Then run stage `virtual_functions` again."
        ),
    ),
    "virtual_functions.sync": Explanation(
        means=(
            "The config daemon of the operator failed on the node or has not finished, or the RDMA mode that the"
            " operator requests for the node differs from the intent or from the node."
        ),
        measured="syncStatus, lastSyncError and `system.rdmaMode` of SriovNetworkNodeState.",
        causes=(
            "The driver rejected a setting: MTU, number of functions, or eSwitch mode.",
            "No interrupt vectors (MSI-X) or no address space are left for virtual functions.",
            (
                "The kernel is locked down, for example by secure boot, so the operator cannot write the firmware of"
                " the NIC."
            ),
            "The node waits for a drain or a reboot.",
            (
                "A SriovNetworkPoolConfig requests an RDMA mode that differs from the intent, or the node has not"
                " booted since the mode was changed."
            ),
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon --tail=-1",
        ),
        remedy=(
            "Follow the remedy of the finding, or correct the error in the log. If the config daemon has not finished,"
            " wait until it has. Then run stage `virtual_functions` again."
        ),
    ),
}
