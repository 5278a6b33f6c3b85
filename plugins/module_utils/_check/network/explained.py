# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage network, for the pages to which the report links. Check ids: ``network.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "network.address_overlap": Explanation(
        means=(
            "The range of a fabric, or one of its routes, meets a network that the cluster uses already. A pod would"
            " send what is meant for the other into the wrong one."
        ),
        measured=(
            "Ranges and routes of the intent against networks of pods, services and other attachments, pools of"
            " nv-ipam, and addresses of nodes. The networks that the nodes are in are not known."
        ),
        causes=(
            "The range was taken at random out of 10.0.0.0/8.",
            "Two attachments or pools of nv-ipam share a range (warn), on purpose or since a tenant made one of them.",
            "A node shows something else than its addresses (unknown, of that node alone).",
            "Something could not be read (unknown).",
        ),
        look=(
            "kubectl get nodes -o wide",
            "kubectl get network-attachment-definitions -A -o yaml",
            "kubectl cluster-info dump",
        ),
        remedy="Take a network that nobody uses, in `ipam.range` of the fabric.",
    ),
    "network.address_pool": Explanation(
        means=(
            "The pool of nv-ipam is not there, is another one than the intent says, or has no share for a node. Pods"
            " there get no address."
        ),
        measured="IPPool or CIDRPool: its network, its shares and the nodes that have one.",
        causes=(
            "The pool's nodeSelector leaves the node out, or the pool is used up.",
            "The controller of nv-ipam does not run.",
            "Somebody else made the pool, and it differs.",
        ),
        look=(
            "kubectl get ippools.nv-ipam.nvidia.com -A -o yaml",
            "kubectl get cidrpools.nv-ipam.nvidia.com -A -o yaml",
        ),
        remedy=(
            "Correct `ipam.pool` in the intent, or the pool. Before a pool with shares is changed, stop the pods of its"
            " network."
        ),
    ),
    "network.addresses": Explanation(
        means=(
            "whereabouts keeps addresses for pods that are gone. When the range is used up, pods wait in"
            " ContainerCreating for ever."
        ),
        measured="Allocations in whereabouts' IPPools against the pods that there are, and what is left of the range.",
        causes=(
            "A node died, so its pods never gave their addresses back.",
            "The CNI plugin failed when a pod ended.",
            "The reconciler of whereabouts does not run.",
        ),
        look=(
            "kubectl get ippools.whereabouts.cni.cncf.io -A -o yaml",
            "kubectl -n kube-system get cronjobs,daemonsets",
        ),
        remedy=(
            "Run the reconciler of whereabouts, or take the entries out: `kubectl -n kube-system edit"
            " ippools.whereabouts.cni.cncf.io`."
        ),
    ),
    "network.allocatable": Explanation(
        means="A node does not offer the virtual functions that the policy asks for. Pods that need them stay Pending.",
        measured=(
            "The node's allocatable resources, and on the way there: policy, SriovNetworkNodeState, config daemon,"
            " drain, device plugin."
        ),
        causes=(
            "The config daemon failed or hangs: see its last error.",
            "The node waits for its turn, or a PodDisruptionBudget holds a pod.",
            "A MachineConfigPool is paused or degraded.",
            "The node is NotReady, or reboots again and again.",
            "The device plugin does not see the functions.",
            "It only takes longer than `rdma_cluster.wait_seconds`.",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "kubectl describe node NODE",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon",
            "kubectl logs -n NAMESPACE -l app=sriov-device-plugin",
        ),
        remedy=(
            "Correct what it waits for, as the finding names it. If it only takes longer, raise"
            " `rdma_cluster.wait_seconds`."
        ),
    ),
    "network.attachment_accepted": Explanation(
        means="The API server did not take the network that pods name in their annotation.",
        measured="The answer of the API server and its webhooks to the object, server-side.",
        causes=(
            "The kind is not there: the operator or multus is not installed.",
            "Another tool owns a field.",
            "The user may not write it.",
            "The namespace does not exist.",
        ),
        look=(
            "kubectl get network-attachment-definitions -A",
            "kubectl auth can-i create network-attachment-definitions.k8s.cni.cncf.io -n NAMESPACE",
        ),
        remedy="Correct what the words of the API server name, and run the stage again.",
    ),
    "network.disruption": Explanation(
        means=(
            "A node would be drained or rebooted, and the intent does not allow it; or what would happen to it is not"
            " known. Nothing was applied."
        ),
        measured=(
            "What the policies and MachineConfigs change on each node, by the operators' own rules, against"
            " `rdma_cluster.disruption`."
        ),
        causes=(
            "The first policy on ConnectX changes its firmware, which reboots.",
            "Another number of virtual functions, an MTU, or a change of driver: a drain.",
            "The config daemon has not reported the node (unknown).",
            "Pods without a controller would be lost (warn).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE",
        ),
        remedy=(
            "When the nodes may go down, set `rdma_cluster.disruption` to what is named; else undo the change that is"
            " named beside it."
        ),
    ),
    "network.drain": Explanation(
        means=(
            "Nodes would have to be drained, and something keeps them from it for ever, or the cluster does not bear it"
            " now. Nothing was applied."
        ),
        measured=(
            "PodDisruptionBudgets, MachineConfigPools, SriovNetworkPoolConfigs and `maxUnavailable`; nodes that are"
            " away, etcd, and health checks of nodes. All of it before anything is applied."
        ),
        causes=(
            "A PodDisruptionBudget allows no eviction: one replica, or a pod that is not ready.",
            "A MachineConfigPool is paused or degraded.",
            "`maxUnavailable` is a percentage that rounds down to 0 nodes.",
            "Two KubeletConfigs select one pool.",
            "Another node is not Ready or is cordoned, and `rdma_cluster.node_pool.max_unavailable` leaves no room.",
            (
                "A control-plane node would reboot while another one is away, while etcd is not whole, or together with"
                " another one."
            ),
            "A MachineHealthCheck or a NodeHealthCheck would remediate a node that reboots.",
        ),
        look=(
            "kubectl get nodes",
            "kubectl get poddisruptionbudgets -A",
            "oc get machineconfigpools",
            "kubectl get sriovnetworkpoolconfigs.sriovnetwork.openshift.io -A -o yaml",
        ),
        remedy=(
            "Let the budget allow an eviction (one replica more), end the pod, bring the pool in order, or give "
            "`rdma_cluster.node_pool.max_unavailable` a number of 1 at least."
        ),
    ),
    "network.kubelet": Explanation(
        means="A KubeletConfig of the collection is not in force on all machines. Pods there are placed as before.",
        measured="Conditions of the KubeletConfig for its present generation, and the machines of its pools.",
        causes=(
            "The machine config operator refused it.",
            "Another KubeletConfig selects the same pool; a node has the settings of one of them alone.",
            "No pool has the labels by which it selects.",
            "The pool has not rolled to its end.",
        ),
        look=(
            "oc get kubeletconfigs",
            "oc describe kubeletconfig",
            "oc get machineconfigpools",
        ),
        remedy=(
            "Correct what its words name; put all settings into one KubeletConfig; label the pool; or bring the pool to"
            " its end."
        ),
    ),
    "network.leftover": Explanation(
        means=(
            "An object of the collection is there that this intent does not ask for. It keeps what it has, such as"
            " virtual functions."
        ),
        measured=(
            "Objects with the label `app.kubernetes.io/managed-by=linerate.rdma` against those that the intent renders."
        ),
        causes=(
            "A fabric was renamed or taken out of the intent.",
            "Another intent for the same cluster made it.",
        ),
        look=(
            (
                "kubectl get sriovnetworknodepolicies,network-attachment-definitions -A -l"
                " app.kubernetes.io/managed-by=linerate.rdma"
            ),
        ),
        remedy=(
            "If no other intent names it, delete it by the command of the finding. A teardown takes it back as well."
        ),
    ),
    "network.lint_functions": Explanation(
        means=(
            "A policy asks for more virtual functions than a card can make, or for so many on InfiniBand that GUIDs"
            " can't be set."
        ),
        measured="`virtual_functions` against `totalvfs` of each physical function in SriovNetworkNodeState.",
        causes=(
            "NUM_OF_VFS in the firmware is lower.",
            "SR-IOV is off in BIOS or firmware.",
            "16 or more on InfiniBand (warn).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "mstconfig -d ADDRESS -e query NUM_OF_VFS",
        ),
        remedy="Lower `virtual_functions`, or raise NUM_OF_VFS in the firmware; see stage `platform`.",
    ),
    "network.lint_link": Explanation(
        means=(
            "A port can't do the link layer or MTU that the fabric asks for. The operator would take the policy and"
            " fail on the node."
        ),
        measured="Link type, MTU and state of each physical function against profile and `mtu`.",
        causes=(
            "The profile is for the other link layer.",
            "The MTU is above what the interface or the driver takes.",
            "The interface is down (warn).",
        ),
        look=(
            "ip -d link show DEVICE",
            "mstconfig -d ADDRESS -e query LINK_TYPE_P1",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
        ),
        remedy="Use the profile of the port's link layer, lower `mtu`, or raise that of the interface first.",
    ),
    "network.lint_operator": Explanation(
        means="NVIDIA's network operator can't take the fabric's part of the NicClusterPolicy.",
        measured="The NicClusterPolicy, who owns its parts, and other objects of that kind.",
        causes=(
            "Somebody else wrote the device plugin's configuration; a second text can't stand beside it.",
            "There is a NicClusterPolicy of another name, which the operator ignores (warn).",
        ),
        look=("kubectl get nicclusterpolicies.mellanox.com -o yaml --show-managed-fields",),
        remedy=(
            "Make fabrics of the other's resources and take that part out of the policy there, or leave this fabric out"
            " of the intent."
        ),
    ),
    "network.lint_overlap": Explanation(
        means="Another policy asks for the same virtual functions. The operator gives them to one of the two.",
        measured="Functions of each policy in the cluster on each physical function, by the operator's own rules.",
        causes=(
            "A policy of an earlier set-up, or of another team, is still there.",
            "Two policies were meant to share a card, and have no ranges.",
        ),
        look=("kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A -o yaml",),
        remedy=(
            "Give each policy functions of its own (`eth0#0-3` and `eth0#4-7` in `select.netdev`), or delete the other"
            " one."
        ),
    ),
    "network.lint_policy": Explanation(
        means="A policy is one that the operator's webhook refuses, or can't mean anything.",
        measured=(
            "Each policy as it would be applied, by the rules of the operator's webhook and its list of supported NICs."
        ),
        causes=(
            "A hyphen in `resource_name`.",
            "The PCI id of a virtual function in `select.device`.",
            "A NIC that the operator does not support.",
            "A range that ends before it starts.",
        ),
        look=(
            "kubectl get configmap supported-nic-ids -n NAMESPACE -o yaml",
            "lspci -nn -d 15b3:",
        ),
        remedy=(
            "Correct the key that is named; for a NIC that is known to work, add it to `supportedExtraNICs` of the"
            " chart."
        ),
    ),
    "network.lint_rdma": Explanation(
        means="Pods would get no RDMA device: the driver has none, or the node's RDMA mode does not fit the plugins.",
        measured="Driver and RDMA device of each function, and RDMA mode of the node against `network.meta_plugins`.",
        causes=(
            "The driver's RDMA module is not loaded.",
            "`{type: rdma}` in meta_plugins, and the node's mode is shared; or the reverse.",
            "The NIC has no RDMA.",
        ),
        look=(
            "rdma system",
            "rdma link",
            "lsmod",
        ),
        remedy=(
            "Set `rdma_cluster.node_pool.rdma_mode` to what the network needs (it reboots), or correct"
            " `network.meta_plugins`; `rdma: false` where no RDMA is meant."
        ),
    ),
    "network.lint_read": Explanation(
        means="The linter could not read all that it judges by. What it says holds only for the rest.",
        measured="Answers of the API server to each list that the linter asks for.",
        causes=("The user of the kubeconfig lacks a right.", "The linter did not run."),
        look=("kubectl auth can-i --list",),
        remedy=(
            "Give the user the rights of docs/rbac/look.yml: `kubectl apply -f docs/rbac/look.yml`. Where the linter"
            " did not run, run the stage again."
        ),
    ),
    "network.lint_select": Explanation(
        means=(
            "A policy would not select exactly `hcas_per_node` functions on a node. The finding names the nearest match"
            " and what differs."
        ),
        measured="The policy's selectors against the functions that the operator reports of each node.",
        causes=(
            "A typing mistake in `select`, or names that differ between nodes.",
            "The operator does not report the HCA: no SR-IOV, not in its list.",
            "The node lacks the policy's label.",
            "The config daemon has not reported the node (unknown).",
        ),
        look=(
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A -o yaml",
            "lspci -D -nn -d 15b3:",
        ),
        remedy="Correct `select` and `hcas_per_node` of the fabric, or make the operator see the NIC.",
    ),
    "network.namespace_accepted": Explanation(
        means="The API server did not take the namespace of the pods.",
        measured="The answer of the API server to the object.",
        causes=(
            "The user may not make namespaces.",
            "A policy of the cluster asks for labels or an owner.",
        ),
        look=(
            "kubectl auth can-i create namespaces",
            "kubectl get namespace NAMESPACE -o yaml",
        ),
        remedy=(
            "Have an admin make the namespace, or give the user the right (docs/rbac/namespaces.yml), and run the stage"
            " again."
        ),
    ),
    "network.object_accepted": Explanation(
        means=(
            "The API server did not take one of the other objects: a node pool, an address pool, a MachineConfig, a"
            " KubeletConfig, a NicClusterPolicy."
        ),
        measured=(
            "The answer of the API server and its webhooks to each object; of a fabric that the linter held back, that"
            " nothing was applied."
        ),
        causes=(
            "The operator of that kind is not installed.",
            "Another tool owns a field with another value.",
            "The user may not write it.",
            "A finding `network.lint_*` held the fabric back.",
            "The intent was changed after the objects had been applied.",
        ),
        look=(
            "kubectl api-resources",
            "kubectl get events -A",
        ),
        remedy=(
            "Correct what the words of the API server name, or the findings `network.lint_*`, and run the stage again."
        ),
    ),
    "network.policy_accepted": Explanation(
        means="The API server or the operator's webhook refused the policy. Without it nothing is made.",
        measured="The answer of the API server and its webhooks to the SriovNetworkNodePolicy.",
        causes=(
            "No node has a NIC that it selects.",
            "It asks for more functions than a card has.",
            "Its functions are another policy's.",
            "The webhook is not reachable.",
            "The user may not write it.",
        ),
        look=(
            "kubectl get sriovnetworknodepolicies.sriovnetwork.openshift.io -A",
            "kubectl get validatingwebhookconfigurations",
        ),
        remedy=(
            "Correct what the webhook's words name. The findings `network.lint_*` say the same with the nearest match."
        ),
    ),
    "network.ready": Explanation(
        means="Pods could not be attached to a network without virtual functions on a node.",
        measured=(
            "What each profile needs: the operator's object, its pods on the node, the NetworkAttachmentDefinition, the"
            " address pool, the node's resource."
        ),
        causes=(
            "A pod of NVIDIA's operator on the node is not ready: image, room, a taint.",
            "The node has no label of node feature discovery for its NICs.",
            "The NetworkAttachmentDefinition is another one.",
            "The device plugin's selectors fit no interface.",
            "The device plugin runs with an earlier configuration, and offers another number of its resource.",
        ),
        look=(
            "kubectl get nicclusterpolicies.mellanox.com -o yaml",
            "kubectl get pods -n nvidia-network-operator -o wide",
            "kubectl describe node NODE",
        ),
        remedy="Correct what it waits for, as the finding names it, or raise `rdma_cluster.wait_seconds`.",
    ),
    "network.roll": Explanation(
        means=(
            "Nodes of a MachineConfigPool did not all get the new configuration, or rebooted more often than planned."
        ),
        measured="The pool's machines on its wanted configuration, and how often it rolled during the run.",
        causes=(
            "A node hangs in its drain or does not come back.",
            "Something else changed MachineConfigs at the same time.",
            "Nobody waited for it (unknown).",
        ),
        look=(
            "oc get machineconfigpools",
            "oc describe machineconfigpool",
            "oc logs -n openshift-machine-config-operator -l k8s-app=machine-config-daemon",
        ),
        remedy="See the machine-config-daemon's log on the node that hangs, correct it, then run the stage again.",
    ),
}
