# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage network, for the pages to which the report links. Check ids: ``network.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "network.address_overlap": Explanation(
        means=(
            "The range of a fabric, or one of its routes, overlaps a network that the cluster already uses. A pod would"
            " send packets for one network into the other network."
        ),
        measured=(
            "The ranges and routes of the intent, compared with the networks of pods, services and other attachments,"
            " the pools of nv-ipam, the addresses of nodes, and the networks of the NICs of the hosts (/proc/net). On a"
            " NIC of the fabric itself, only those addresses of hosts count that a pod may get."
        ),
        causes=(
            "The range was chosen at random from 10.0.0.0/8.",
            (
                "The hosts have addresses on the network of the fabric (IPoIB, storage), and ipam.exclude does not name"
                " them. Or the range is the network of another interface of the hosts."
            ),
            (
                "Two attachments or pools of nv-ipam share a range (warn), on purpose or because a tenant created one"
                " of them."
            ),
            "A node reports a value that is not an address (unknown, for this node only).",
            (
                "A node reports an address in the range, and no other node has an address of this kind in it (unknown,"
                " for this node only): its kubelet is wrong or compromised, or the range contains its address."
            ),
            "A pool of nv-ipam that the intent does not name is invalid (warn).",
            "The networks of the cluster could not all be read (unknown).",
        ),
        look=(
            "kubectl get nodes -o wide",
            "kubectl get network-attachment-definitions -A -o yaml",
            "kubectl cluster-info dump",
        ),
        remedy="Set `ipam.range` of the fabric to a network that is not in use, then run stage network again.",
    ),
    "network.address_pool": Explanation(
        means=(
            "The pool of nv-ipam does not exist, differs from the intent, or has no share for a node. Pods on that node"
            " get no address."
        ),
        measured="The IPPool or CIDRPool: its network, its shares and the nodes with a share.",
        causes=(
            "The pool's nodeSelector does not select the node, or the pool has no free share.",
            "The controller of nv-ipam does not run.",
            "A user or another tool created the pool, and the pool differs from the intent.",
        ),
        look=(
            "kubectl get ippools.nv-ipam.nvidia.com -A -o yaml",
            "kubectl get cidrpools.nv-ipam.nvidia.com -A -o yaml",
        ),
        remedy=(
            "Correct `ipam.pool` in the intent, or correct the pool. Before you change a pool with shares, stop the"
            " pods of its network. Then run stage network again."
        ),
    ),
    "network.addresses": Explanation(
        means=(
            "whereabouts keeps addresses that no pod holds. When the range has no free address, new pods stay in"
            " ContainerCreating."
        ),
        measured=(
            "The allocations in the IPPools of whereabouts, compared with the pods and with the addresses in their"
            " annotation k8s.v1.cni.cncf.io/network-status, and the number of addresses in the range."
        ),
        causes=(
            "A node failed, so the addresses of its pods were not released.",
            "The CNI plugin failed when a pod ended. Its successor of the same name, as in a StatefulSet, then has a"
            " second allocation.",
            "The reconciler of whereabouts does not run.",
            "An IPPool is invalid, so its allocations are unknown (subject `leases`).",
        ),
        look=(
            "kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml",
            "kubectl -n kube-system get cronjobs,daemonsets,deployments",
        ),
        remedy=(
            "Run the reconciler of whereabouts, or remove the entries by hand: `kubectl -n kube-system edit"
            " ippools.whereabouts.cni.cncf.io`. Then run stage network again."
        ),
    ),
    "network.allocatable": Explanation(
        means="A node does not offer the virtual functions that the policy requests. Pods that need them stay Pending.",
        measured=(
            "The node's allocatable resources, and the steps before them: policy, SriovNetworkNodeState, config daemon,"
            " drain, device plugin."
        ),
        causes=(
            "The config daemon failed or hangs. The finding contains its last error.",
            "The node waits for its turn to drain, or a PodDisruptionBudget blocks the eviction of a pod.",
            "A MachineConfigPool is paused or degraded.",
            "The node is NotReady, or it reboots repeatedly.",
            "The device plugin does not find the virtual functions.",
            "The configuration takes longer than `rdma_cluster.wait_seconds`.",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "kubectl describe node NODE",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon --tail=-1",
            "kubectl logs -n NAMESPACE -l app=sriov-device-plugin --tail=-1",
        ),
        remedy=(
            "Correct the cause that the finding reports. If the node only needs more time, raise"
            " `rdma_cluster.wait_seconds`. Then run stage network again."
        ),
    ),
    "network.attachment_accepted": Explanation(
        means="The API server rejected the network that pods name in their annotation.",
        measured="The response of the API server and its webhooks to the object (server-side apply).",
        causes=(
            "The API server does not serve the kind: the operator or multus is not installed.",
            "Another tool owns a field of the object.",
            "The user of the kubeconfig does not have the right to write the object.",
            "The namespace does not exist.",
        ),
        look=(
            "kubectl get network-attachment-definitions -A",
            "kubectl auth can-i create network-attachment-definitions.k8s.cni.cncf.io -n NAMESPACE",
        ),
        remedy="Correct the cause that the message of the API server reports, then run stage network again.",
    ),
    "network.disruption": Explanation(
        means=(
            "A node would be drained or rebooted, and the intent does not allow this. Or the effect on the node is"
            " unknown. No object was applied."
        ),
        measured=(
            "The changes by the policies, the MachineConfigs and the drivers of NVIDIA's operators on each node,"
            " according to the rules of the operators, compared with `rdma_cluster.disruption`."
        ),
        causes=(
            "The first policy on a ConnectX HCA changes the firmware settings of the HCA, which requires a reboot.",
            "A different number of virtual functions, a different MTU or a different driver requires a drain.",
            (
                "`rdma_cluster.network_operator.ofed_driver` is new, changed or removed. NVIDIA's network operator then"
                " loads or removes its driver on each node with NVIDIA's NICs, also outside of the inventory."
            ),
            (
                "`rdma_cluster.host.gpudirect` is `peermem`, and the ClusterPolicy does not enable it yet. The GPU"
                " operator then restarts its driver on each node with GPUs, also outside of the inventory."
            ),
            "The config daemon has not reported the node (unknown).",
            "Pods without a controller would be lost (warn).",
            "A NIC changes that pods or a network of the node may use (warn).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "kubectl get nicclusterpolicies.mellanox.com,clusterpolicies.nvidia.com -o yaml",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
        ),
        remedy=(
            "If the nodes may be drained or rebooted, set `rdma_cluster.disruption` to the value in the finding."
            " Otherwise undo the change that the finding names. Then run stage network again."
        ),
    ),
    "network.drain": Explanation(
        means=(
            "Nodes would have to be drained. A drain is blocked permanently, or the current state of the cluster does"
            " not allow it. No object was applied."
        ),
        measured=(
            "Pods, PodDisruptionBudgets, MachineConfigPools, SriovNetworkPoolConfigs and `maxUnavailable`, unavailable"
            " nodes, etcd, and the health checks of nodes. All of them are checked before any object is applied."
        ),
        causes=(
            "A PodDisruptionBudget allows no eviction: the workload has one replica, or one of its pods is not ready.",
            (
                "The drain would delete pods that no controller recreates, or their emptyDir data, and"
                " `rdma_cluster.drain` does not permit this."
            ),
            "The NIC driver would be removed from under running pods that use it.",
            (
                "NVIDIA's NIC configuration operator and the SR-IOV operator would set different numbers of virtual"
                " functions in the firmware of a card (NUM_OF_VFS), and reboot the node in turns without end."
            ),
            (
                "The SR-IOV operator would set a smaller NUM_OF_VFS for a card, and another port of the card has more"
                " virtual functions, which no policy created."
            ),
            (
                "The last policy of a card would go, and a NicConfigurationTemplate sets a number of virtual functions"
                " for the card. The SR-IOV operator then sets NUM_OF_VFS 0."
            ),
            "A MachineConfigPool is paused or degraded.",
            "The node is cordoned by a user or another program. The SR-IOV operator would uncordon it after the drain.",
            "`maxUnavailable` is a percentage that rounds down to 0 nodes.",
            "Two KubeletConfigs select the same pool.",
            (
                "Another node is not Ready or is cordoned, so that `rdma_cluster.node_pool.max_unavailable` allows no"
                " further unavailable node, or a pool would take down more nodes at the same time. Without"
                " `rdma_cluster.node_pool` the limit is 1."
            ),
            (
                "A control-plane node would reboot while another control-plane node is unavailable, while etcd is not"
                " healthy, or together with another control-plane node."
            ),
            "A MachineHealthCheck or a NodeHealthCheck would remediate a node while the node reboots.",
        ),
        look=(
            "kubectl get nodes",
            "kubectl get poddisruptionbudgets -A",
            "oc get machineconfigpools",
            "kubectl get sriovnetworkpoolconfigs.sriovnetwork.openshift.io -A -o yaml",
        ),
        remedy=(
            "Allow an eviction in the PodDisruptionBudget (add one replica), delete the pod, permit its deletion in"
            " `rdma_cluster.drain`, repair the MachineConfigPool, or set `rdma_cluster.node_pool.max_unavailable` to at"
            " least 1. Then run stage network again."
        ),
    ),
    "network.kubelet": Explanation(
        means=(
            "A KubeletConfig of this collection is not in force on all machines. On these machines, the kubelet places"
            " pods with its earlier settings."
        ),
        measured="The conditions of the KubeletConfig for its current generation, and the machines of its pools.",
        causes=(
            "The machine config operator rejected the KubeletConfig.",
            "Another KubeletConfig selects the same pool. A node has the settings of only one of them.",
            "No MachineConfigPool has the labels that the KubeletConfig selects.",
            "The MachineConfigPool has not finished its roll.",
        ),
        look=(
            "oc get kubeletconfigs",
            "oc describe kubeletconfig",
            "oc get machineconfigpools",
        ),
        remedy=(
            "Correct the cause that the condition reports, merge all settings into one KubeletConfig, add the labels to"
            " the MachineConfigPool, or let the MachineConfigPool finish its roll. Then run stage network again."
        ),
    ),
    "network.leftover": Explanation(
        means=(
            "The cluster has an object of this collection that the current intent does not require. The object keeps"
            " its resources, such as virtual functions."
        ),
        measured=(
            "The objects with the label `app.kubernetes.io/managed-by=linerate.rdma`, compared with the objects that"
            " the current intent renders."
        ),
        causes=(
            "A fabric was renamed or removed from the intent.",
            "A different intent for the same cluster created the object.",
        ),
        look=(
            (
                "kubectl get sriovnetworknodepolicies,network-attachment-definitions -A -l"
                " app.kubernetes.io/managed-by=linerate.rdma"
            ),
        ),
        remedy=(
            "If no other intent contains the object, delete it with the command in the finding. The finding states the"
            " effect first: the deletion of a policy drains nodes, and that of a MachineConfig or KubeletConfig reboots"
            " them, without the checks of a run. A teardown removes all objects of the intent, not only this one."
        ),
    ),
    "network.lint_functions": Explanation(
        means=(
            "A policy requests more virtual functions than a card supports, or so many virtual functions on InfiniBand"
            " that the operator cannot set GUIDs."
        ),
        measured=(
            "`virtual_functions` of the fabric, compared with `totalvfs` of each physical function in the"
            " SriovNetworkNodeState."
        ),
        causes=(
            "NUM_OF_VFS in the firmware is lower than `virtual_functions`.",
            "SR-IOV is off in the BIOS or in the firmware.",
            "The fabric has 16 or more virtual functions on InfiniBand (warn).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "mstconfig -d ADDRESS -e query NUM_OF_VFS",
        ),
        remedy=(
            "Lower `virtual_functions`, or raise NUM_OF_VFS in the firmware (see stage `platform`). Then run stage"
            " network again."
        ),
    ),
    "network.lint_link": Explanation(
        means=(
            "A port does not support the link layer or the MTU of the fabric. The API server would accept the policy,"
            " and the policy would fail on the node."
        ),
        measured=(
            "The link type, MTU and state of each physical function, compared with the profile and `mtu` of the fabric."
        ),
        causes=(
            "The profile is for the other link layer.",
            "The MTU is above the maximum of the interface or of its driver.",
            "The interface is down (warn).",
        ),
        look=(
            "ip -d link show DEVICE",
            "mstconfig -d ADDRESS -e query LINK_TYPE_P1",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
        ),
        remedy=(
            "Use a profile for the link layer of the port, lower `mtu`, or raise the MTU of the interface first. Then"
            " run stage network again."
        ),
    ),
    "network.lint_operator": Explanation(
        means="NVIDIA's network operator cannot use the fabric's part of the NicClusterPolicy.",
        measured="The NicClusterPolicy, the owners of its parts, and other objects of this kind.",
        causes=(
            (
                "Another user or tool wrote the configuration of the device plugin. The NicClusterPolicy holds only"
                " one such configuration."
            ),
            "A NicClusterPolicy of a different name exists, which the operator ignores (warn).",
        ),
        look=("kubectl get nicclusterpolicies.mellanox.com -o yaml --show-managed-fields",),
        remedy=(
            "Configure fabrics for the resources in the existing configuration and remove that configuration from the"
            " NicClusterPolicy, or remove this fabric from the intent. Then run stage network again."
        ),
    ),
    "network.lint_overlap": Explanation(
        means=(
            "Another policy requests the same virtual functions. The operator gives them to only one of the two"
            " policies."
        ),
        measured=(
            "The virtual functions of each policy in the cluster on each physical function, according to the rules of"
            " the operator."
        ),
        causes=(
            "A policy of an earlier installation or of another team still exists.",
            "Two policies are intended to share a card, but they have no ranges.",
        ),
        look=("kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A -o yaml",),
        remedy=(
            "Give each policy separate virtual functions (`eth0#0-3` and `eth0#4-7` in `select.netdev`), or delete the"
            " other policy. Then run stage network again."
        ),
    ),
    "network.lint_policy": Explanation(
        means="The operator's webhook rejects a policy, or the policy has no effect.",
        measured=(
            "Each policy as it would be applied, according to the rules of the operator's webhook and its list of"
            " supported NICs."
        ),
        causes=(
            "`resource_name` contains a hyphen.",
            "`select.device` contains the PCI device ID of a virtual function.",
            "The operator does not support the NIC.",
            "A range ends before it starts.",
        ),
        look=(
            "kubectl get configmap supported-nic-ids -n NAMESPACE -o yaml",
            "lspci -nn -d 15b3:",
        ),
        remedy=(
            "Correct the key that the finding names. If the NIC is known to work, add it to `supportedExtraNICs` in the"
            " values of the operator's Helm chart. Then run stage network again."
        ),
    ),
    "network.lint_rdma": Explanation(
        means=(
            "Pods would get no RDMA device: the driver has none, or the RDMA mode of the node does not match the CNI"
            " plugins."
        ),
        measured=(
            "The driver and the RDMA device of each function, and the RDMA mode of the node compared with"
            " `network.meta_plugins`."
        ),
        causes=(
            "The driver's RDMA module is not loaded.",
            "`network.meta_plugins` contains `{type: rdma}` and the RDMA mode of the node is shared, or the reverse.",
            "The NIC does not support RDMA.",
        ),
        look=(
            "rdma system",
            "rdma link",
            "lsmod",
        ),
        remedy=(
            "Set `rdma_cluster.node_pool.rdma_mode` to the mode that the network needs (this reboots the nodes),"
            " correct `network.meta_plugins`, or set `rdma: false` if the fabric needs no RDMA. Then run stage network"
            " again."
        ),
    ),
    "network.lint_read": Explanation(
        means="The objects were not checked completely before they were applied: some kinds could not be read.",
        measured="The responses of the API server to each list request of this check.",
        causes=("The user of the kubeconfig does not have a required right.", "The run ended before this check."),
        look=("kubectl auth can-i --list",),
        remedy=(
            "As an admin of the cluster, give the user the rights in docs/rbac/look.yml: `kubectl apply -f"
            " docs/rbac/look.yml`. Then run stage network again."
        ),
    ),
    "network.lint_select": Explanation(
        means=(
            "A policy would not select exactly `hcas_per_node` physical functions on a node. The finding names the"
            " nearest match and its differences."
        ),
        measured=(
            "The selectors of the policy, compared with the physical functions that the operator reports for each node."
        ),
        causes=(
            "`select` contains a typing error, or the names differ between nodes.",
            (
                "The operator does not report the HCA: the HCA has no SR-IOV, or the operator's list of supported NICs"
                " does not contain it."
            ),
            "The node does not carry the label that the policy selects.",
            "The config daemon has not reported the node (unknown).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "lspci -D -nn -d 15b3:",
        ),
        remedy=(
            "Correct `select` and `hcas_per_node` of the fabric, or correct the reason for which the operator does not"
            " report the NIC. Then run stage network again."
        ),
    ),
    "network.lint_uplink": Explanation(
        means=(
            "A fabric selects a physical function that carries the default route or an address of its node. Its link"
            " is interrupted when the operator changes its MTU or eSwitch mode. If the operator fails to create virtual"
            " functions, it resets the physical function. Or NVIDIA's network operator would load or remove the driver"
            " of a NIC that carries the default route, an address or a bond of its node (subject `ofed_driver`)."
            " Or pods of the fabric take an interface that the node uses itself: a pod with `profile: host_device` gets"
            " the whole interface, and a `macvlan` in mode `passthru` receives all of its packets. The measuring pods"
            " do this on all nodes at the same time."
        ),
        measured=(
            "The interfaces of the default routes of each node, and the interfaces whose networks contain an InternalIP"
            " or ExternalIP of the Node, with the interfaces below them (bond, bridge, VLAN), compared with the"
            " physical functions that the policies change, and with the interfaces that pods take. For these, also the"
            " bonds and the other networks of the node (warn)."
        ),
        causes=(
            "The node has one NIC for all of its traffic.",
            "`select` has only `vendor` and `device`, and the NIC of the node itself is of the same model.",
            "The kubelet registered the node with an address on the NIC of the fabric.",
            "A fabric with `profile: host_device` or `network.mode: passthru` selects an interface of the node itself.",
            "The default routes of the node could not be read (warn).",
            "`rdma_cluster.network_operator.ofed_driver` is new, changed or removed on a node with NVIDIA's NICs only.",
        ),
        look=("ip route show default", "kubectl get node NODE -o wide", "ip -d link show DEVICE"),
        remedy=(
            "Exclude the NIC with `select.pci` or `select.netdev`, or move the default route or the address of the node"
            " to another NIC. If the"
            " loss of the link is acceptable, add a waiver for the finding, and apply the policy to one node first,"
            " with access to its console. Then run stage network again."
        ),
    ),
    "network.namespace_accepted": Explanation(
        means="The API server rejected the namespace of the pods.",
        measured="The response of the API server to the object.",
        causes=(
            "The user of the kubeconfig does not have the right to create namespaces.",
            "An admission policy of the cluster requires labels or an owner.",
        ),
        look=(
            "kubectl auth can-i create namespaces",
            "kubectl get namespace NAMESPACE -o yaml",
        ),
        remedy=(
            "Have an admin of the cluster create the namespace, or have the admin give the user the right: `kubectl"
            " apply -f docs/rbac/namespaces.yml`. Then run stage network again."
        ),
    ),
    "network.object_accepted": Explanation(
        means=(
            "The API server rejected an object of one of these kinds: node pool, address pool, MachineConfig,"
            " KubeletConfig, NicClusterPolicy."
        ),
        measured=(
            "The response of the API server and its webhooks to each object. If a finding `network.lint_*` of a"
            " fabric failed, no object of the fabric was applied."
        ),
        causes=(
            "The operator of that kind is not installed.",
            "Another tool owns a field of the object with a different value.",
            "The user of the kubeconfig does not have the right to write the object.",
            "A finding `network.lint_*` of the fabric failed.",
            "The intent was changed after the objects were applied.",
        ),
        look=(
            "kubectl api-resources",
            "kubectl get events -A",
        ),
        remedy=(
            "Correct the cause that the message of the API server reports, or the causes in the findings"
            " `network.lint_*`. Then run stage network again."
        ),
    ),
    "network.policy_accepted": Explanation(
        means=(
            "The API server or the operator's webhook rejected the policy. Without the policy, the operator creates no"
            " virtual functions."
        ),
        measured="The response of the API server and its webhooks to the SriovNetworkNodePolicy.",
        causes=(
            "No node has a NIC that the policy selects.",
            "The policy requests more virtual functions than a card has.",
            "Another policy already has its virtual functions.",
            "The API server cannot reach the webhook.",
            "The user of the kubeconfig does not have the right to write the object.",
            (
                "The SriovNetworkPoolConfig was refused or has other limits than the intent. The run then applies no"
                " policy, because the operator would drain more nodes at the same time than the plan has."
            ),
        ),
        look=(
            "kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A",
            "kubectl get validatingwebhookconfigurations",
        ),
        remedy=(
            "Correct the cause that the message of the webhook reports. The findings `network.lint_*` report the same"
            " cause with the nearest match. Then run stage network again."
        ),
    ),
    "network.ready": Explanation(
        means="Pods on a node cannot be attached to a network without virtual functions.",
        measured=(
            "The requirements of each profile: the operator's object, its pods on the node, the"
            " NetworkAttachmentDefinition, the address pool, the node's resource."
        ),
        causes=(
            (
                "A pod of NVIDIA's network operator on the node is not ready because of its image, missing resources"
                " or a taint."
            ),
            "The node does not carry the label of node feature discovery for its NICs.",
            "The NetworkAttachmentDefinition differs from the intent.",
            "The selectors of the device plugin match no interface.",
            "The device plugin runs with an earlier configuration and offers a different number of its resource.",
        ),
        look=(
            "kubectl get nicclusterpolicies.mellanox.com -o yaml",
            "kubectl get pods -n nvidia-network-operator -o wide",
            "kubectl describe node NODE",
        ),
        remedy=(
            "Correct the cause that the finding reports, or raise `rdma_cluster.wait_seconds`. Then run stage network"
            " again."
        ),
    ),
    "network.roll": Explanation(
        means=(
            "Some nodes of a MachineConfigPool did not get the new configuration, or the nodes rebooted more often than"
            " planned."
        ),
        measured="The machines of the pool with its desired configuration, and the number of rolls during the run.",
        causes=(
            "The drain of a node hangs, or the node does not return after its reboot.",
            "Another tool or user changed MachineConfigs at the same time.",
            "The run did not wait for the pool (unknown).",
        ),
        look=(
            "oc get machineconfigpools",
            "oc describe machineconfigpool",
            "oc logs -n openshift-machine-config-operator -l k8s-app=machine-config-daemon --tail=-1",
        ),
        remedy=(
            "Read the log of the machine-config-daemon on the node that hangs, and correct the cause. Then run stage"
            " network again."
        ),
    ),
}
