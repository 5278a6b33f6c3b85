# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage operators, for the pages to which the report links. Check ids:
``operators.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "operators.config": Explanation(
        means=(
            "The SriovOperatorConfig `default` is not in the operator's namespace. Without it the operator starts no"
            " config daemon."
        ),
        measured="SriovOperatorConfig of that name in the namespace where the operator runs.",
        causes=(
            "It was never made: the chart does so only with `sriovOperatorConfig.deploy=true`.",
            "It is in another namespace.",
        ),
        look=("kubectl get sriovoperatorconfigs.sriovnetwork.openshift.io -A",),
        remedy="Create it, or set `sriovOperatorConfig.deploy=true` in the chart's values (`operators_install` does).",
    ),
    "operators.daemon": Explanation(
        means=(
            "The config daemon makes the virtual functions of a node, and it is not ready there or has not reported the"
            " node."
        ),
        measured="Ready pods of DaemonSet sriov-network-config-daemon by node, and SriovNetworkNodeState of the node.",
        causes=(
            "`configDaemonNodeSelector` of the SriovOperatorConfig leaves the node out.",
            "A taint keeps it away.",
            "Its pod fails: image, rights, a kernel module.",
            "The operator does not run, so there is no DaemonSet.",
        ),
        look=(
            "kubectl get pods -A -o wide -l app=sriov-network-config-daemon",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon",
        ),
        remedy=(
            "Compare `configDaemonNodeSelector` and tolerations with the node's labels and taints; see the pod's events"
            " and log."
        ),
    ),
    "operators.definition": Explanation(
        means="The API server does not serve a kind that the profiles need.",
        measured="CustomResourceDefinitions and what the API server serves.",
        causes=(
            "The operator that owns it is not installed.",
            "Its definition was refused, or deleted.",
        ),
        look=(
            "kubectl api-resources",
            "kubectl get crd",
        ),
        remedy="Install the operator that is named; `operators_install: true` does it.",
    ),
    "operators.driver": Explanation(
        means=(
            "The driver container of NVIDIA's policy may not come up on nodes of this kernel. It is told before the"
            " policy is applied, since it drains nodes."
        ),
        measured=(
            "Labels by which the operator chooses the image, kernel, secure boot, what the operator says, and what is"
            " known of published images."
        ),
        causes=(
            "Labels of node feature discovery are missing.",
            "Secure boot: the kernel takes signed modules only.",
            "There is no precompiled image for this kernel.",
            "Headers come from repositories that need a subscription, or that a disconnected site does not reach.",
            (
                "A NicNodePolicy or an NVIDIADriver brings the driver to some nodes, and its operator does not say that"
                " it runs there (unknown)."
            ),
            (
                "The default route of a node leads over an interface of mlx5_core, which the driver container reloads:"
                " the node is cut off meanwhile."
            ),
        ),
        look=(
            "kubectl get node NODE --show-labels",
            "mokutil --sb-state",
            "ip route show default",
            "skopeo list-tags docker://nvcr.io/nvidia/mellanox/doca-driver",
            "kubectl describe nicclusterpolicies.mellanox.com",
            "kubectl get nicnodepolicies.mellanox.com,nvidiadrivers.nvidia.com",
        ),
        remedy=(
            "Do what the finding names for this kernel. Where the nodes' own driver does, leave"
            " `rdma_cluster.network_operator.ofed_driver` out."
        ),
    ),
    "operators.driver_kernels": Explanation(
        means=(
            "Nodes of one driver policy have several kernels. Each needs an image of its own, and one digest fits one"
            " kernel alone."
        ),
        measured="Kernels of the nodes that the policy selects.",
        causes=(
            "A node was updated and the others were not.",
            "The image is named by digest.",
        ),
        look=("kubectl get nodes -o wide",),
        remedy="Bring the nodes to one kernel, or name a version in place of the digest.",
    ),
    "operators.image": Explanation(
        means="Nodes would not pull an image that the run starts pods from, by the rules of the cluster (OpenShift).",
        measured=(
            "The image's name against mirror rules (ImageDigestMirrorSet, ImageTagMirrorSet, ImageContentSourcePolicy)"
            " and the lists of allowed and blocked registries."
        ),
        causes=(
            "The registry is blocked, or not in the list of allowed ones.",
            "The mirrors are for digests, and the image has a tag.",
            "The name has no registry in front.",
            "NeverContactSource, and no mirror has it.",
        ),
        look=(
            "oc get imagedigestmirrorset,imagetagmirrorset",
            "oc get image.config.openshift.io cluster -o yaml",
            "skopeo inspect docker://IMAGE",
        ),
        remedy=(
            "Name an image with a registry that is allowed, by digest where mirrors are for digests; or have the"
            " cluster's admin change the rule."
        ),
    ),
    "operators.label": Explanation(
        means=(
            "A node lacks a label of `rdma_cluster.node_selector`, so no policy takes it. The finding names the layer,"
            " from the metal up."
        ),
        measured=(
            "The node's labels, its PCI functions, and the workers of node feature discovery with their configuration."
        ),
        causes=(
            "No worker of node feature discovery is on the node: a selector or a taint.",
            "`core.labelSources`, `deviceClassWhitelist` or `deviceLabelFields` leave the label out.",
            "SR-IOV is off, so the label `network-sriov.capable` is not earned.",
            "It is a label that nobody sets by himself.",
        ),
        look=(
            "kubectl get node NODE --show-labels",
            "kubectl get nodefeatures -A",
            "kubectl get pods -A -o wide -l app.kubernetes.io/name=node-feature-discovery",
        ),
        remedy=(
            "Correct the configuration of node feature discovery that is named, or label the node by hand: `kubectl"
            " label node NODE KEY=VALUE`."
        ),
    ),
    "operators.machine": Explanation(
        means=(
            "The answers of a node do not come from the machine that the cluster knows by its name, or nobody can tell."
            " What other findings say of the node is then true of another machine."
        ),
        measured=(
            "The ID of the boot in the node's own answers (facts `hcas` and `platform`),"
            " and the boot ID in its Node object, which its kubelet writes."
        ),
        causes=(
            "`ansible_host` of two nodes is swapped in the inventory.",
            "`ansible_host` leads to a machine that is no node of the cluster.",
            "The node has booted since it was looked at.",
        ),
        look=(
            "cat /proc/sys/kernel/random/boot_id",
            "kubectl get node NODE -o yaml",
        ),
        remedy="Correct `ansible_host` in the inventory, and run all stages: the facts are looked at again.",
    ),
    "operators.mirror": Explanation(
        means="An image or chart that the run would pull is not on the mirror of this disconnected site.",
        measured="Each image and chart of the run, asked of the registries that `rdma_cluster.mirror` names.",
        causes=(
            "It was never copied, or in another release.",
            "The registry wants credentials, or its certificate is not trusted here (unknown).",
            "The chart names an image in a way that its values do not change.",
        ),
        look=(
            "skopeo inspect --raw docker://IMAGE",
            "curl -v https://MIRROR/v2/",
        ),
        remedy=(
            "Copy it where the internet is, by the command of the finding, or all of it: `ansible-playbook"
            " linerate.rdma.images`. For credentials: `-e operators_registry_auth_file=FILE`."
        ),
    ),
    "operators.multus": Explanation(
        means=(
            "multus gives pods their second interface, and has no ready pod on a node. Pods there get none, and say"
            " nothing of it."
        ),
        measured="Ready pods of multus's DaemonSet by node, and pods that carry its network-status.",
        causes=(
            "It is not installed (plain Kubernetes brings none).",
            "A taint keeps it away from the node.",
            "Its pod fails, or its CNI file is not first in /etc/cni/net.d.",
        ),
        look=(
            "kubectl get daemonsets -A",
            "kubectl get pods -A -o wide -l app=multus",
            "ls /etc/cni/net.d",
        ),
        remedy="Install multus, or let it run on the node: see the events of its pods and the node's taints.",
    ),
    "operators.needed": Explanation(
        means="An operator that the intent or the job needs is not there, there twice, or does not serve.",
        measured=(
            "Deployments of the operators that are known, their configuration objects, their Helm releases and OLM's"
            " objects."
        ),
        causes=(
            "It is not installed.",
            "Its Helm release is half there: a run was cut off.",
            "What configures it is missing (a NicClusterPolicy, a ClusterPolicy, a NodeFeatureDiscovery).",
            "Two installations of it: NVIDIA's chart brings one of its own.",
        ),
        look=(
            "helm list -A --all",
            "kubectl get deployments -A",
            "kubectl get clusterserviceversions -A",
        ),
        remedy="`operators_install: true` installs it, or the command of the finding does. Of two, remove one.",
    ),
    "operators.node": Explanation(
        means="The cluster does not know the node, or it can't take pods.",
        measured="The node's conditions and whether it is cordoned.",
        causes=(
            "The inventory calls it otherwise than the cluster.",
            "Its kubelet does not report.",
            "Somebody, or an interrupted roll, has cordoned it.",
        ),
        look=(
            "kubectl get nodes",
            "kubectl describe node NODE",
        ),
        remedy="Name the host in the inventory as `kubectl get nodes` does. `kubectl uncordon NODE` when it is fit.",
    ),
    "operators.olm": Explanation(
        means="OLM did not install an operator that it was asked for, or says that something is wrong with one.",
        measured=(
            "Subscription, InstallPlan, ClusterServiceVersion, CatalogSource and OperatorGroups, with their conditions."
        ),
        causes=(
            "The catalog does not answer, or has no such package, channel or version.",
            "An InstallPlan waits for approval.",
            "Two OperatorGroups are in the namespace, or one with the wrong install mode.",
            "A requirement is missing, or an image can't be pulled.",
            "A webhook does not serve.",
        ),
        look=(
            "kubectl describe subscriptions.operators.coreos.com -A",
            "kubectl get installplans -A",
            "kubectl get catalogsources -A",
            "kubectl get packagemanifests",
        ),
        remedy=(
            "Do what the finding names. An InstallPlan: `kubectl -n NAMESPACE patch installplan NAME --type merge -p"
            ' \'{"spec":{"approved":true}}\'`.'
        ),
    ),
    "operators.pods": Explanation(
        means=(
            "A pod in the operator's namespace is not ready. It need not be one that your nodes depend on, so it warns."
        ),
        measured="Pods of that namespace with their containers' states and last events.",
        causes=(
            "An image can't be pulled.",
            "It crashes: rights, a webhook's certificate, a missing kind.",
            "No node has room, or a taint keeps it away.",
        ),
        look=(
            "kubectl -n NAMESPACE get pods -o wide",
            "kubectl -n NAMESPACE describe pod POD",
            "kubectl -n NAMESPACE logs POD --previous",
        ),
        remedy="Correct what the pod's events name: `kubectl -n NAMESPACE describe pod POD`.",
    ),
    "operators.read": Explanation(
        means="The API server did not let a kind be listed. What is there of it is unknown.",
        measured="Answers of the API server to each list that the stage asks for.",
        causes=(
            "The user of the kubeconfig lacks the right.",
            "The kubeconfig leads to another cluster, or its credentials are over.",
        ),
        look=(
            "kubectl auth can-i --list",
            "kubectl cluster-info",
        ),
        remedy=(
            "Give the user the rights of docs/rbac/look.yml: `kubectl apply -f docs/rbac/look.yml`, and bind the user"
            " to its roles."
        ),
    ),
    "operators.ready": Explanation(
        means="The operator does not run, so nobody acts on a policy; or not all of its pods do.",
        measured="Available pods of its Deployment, and what the others wait for.",
        causes=(
            "An image can't be pulled.",
            "It crashes: see its last log.",
            "It is scaled to 0.",
            "No node may take it (taints of the control plane).",
        ),
        look=(
            "kubectl -n NAMESPACE describe deployment sriov-network-operator",
            "kubectl -n NAMESPACE logs deployment/sriov-network-operator",
        ),
        remedy=(
            "Correct what its pods' events name; `kubectl -n NAMESPACE scale deployment sriov-network-operator"
            " --replicas=1` where it is scaled to 0."
        ),
    ),
    "operators.resource_prefix": Explanation(
        means=(
            "The operator gives resources another prefix than the intent says. Pods would ask for a resource that no"
            " node offers."
        ),
        measured="RESOURCE_PREFIX of the operator's Deployment against `rdma_cluster.resource_prefix`.",
        causes=("OpenShift's operator has `openshift.io`, a chart for others mostly another one.",),
        look=(
            "kubectl -n NAMESPACE get deployment sriov-network-operator -o yaml",
            "kubectl describe node NODE",
        ),
        remedy="Set `rdma_cluster.resource_prefix` to what the operator has.",
    ),
    "operators.rights": Explanation(
        means=(
            "The user of the kubeconfig lacks a right that a stage needs. It is told before anything is begun, since"
            " the API server would refuse it half-way."
        ),
        measured="SelfSubjectAccessReviews for each right of docs/rbac that this intent needs.",
        causes=(
            "The user is bound to a role of its own, or to an older one.",
            "The rights for namespaces or teardown were left out on purpose (warn).",
        ),
        look=(
            "kubectl auth can-i create sriovnetworknodepolicies.sriovnetwork.openshift.io -n NAMESPACE",
            "kubectl auth can-i --list",
        ),
        remedy=(
            "Have an admin of the cluster apply the files that the finding names: `kubectl apply -f"
            " docs/rbac/look.yml`."
        ),
    ),
    "operators.rollout": Explanation(
        means=(
            "DaemonSet sriov-network-config-daemon has pods that are not ready or of an earlier template, or its image"
            " is of another release than the operator's. An operator in the middle of an upgrade proves nothing of the"
            " release that it comes to."
        ),
        measured=(
            "desiredNumberScheduled, numberReady and updatedNumberScheduled of the DaemonSet, and the tags of both"
            " images."
        ),
        causes=(
            "An upgrade of the operator still replaces the pods.",
            "The new pod fails: image, rights, a kernel module. The old ones stay and look healthy.",
            "A node outside the inventory is down.",
            "The chart's values name the image of another release.",
        ),
        look=(
            "kubectl get daemonsets -n NAMESPACE sriov-network-config-daemon",
            "kubectl get pods -A -o wide -l app=sriov-network-config-daemon",
        ),
        remedy="Wait for the rollout, or see the events of the pod that fails; set the images of one release.",
    ),
    "operators.single": Explanation(
        means=(
            "There must be one SR-IOV network operator, where the intent says. Two change the same nodes, each undoing"
            " what the other did."
        ),
        measured="Deployments in all namespaces that run it.",
        causes=(
            "None is installed.",
            "NVIDIA's chart brought one, and OLM or a chart of its own another.",
            "`rdma_cluster.operator_namespace` names another namespace.",
        ),
        look=(
            "kubectl get deployments -A",
            "helm list -A",
        ),
        remedy=(
            "None: `operators_install: true`. Two: `helm uninstall` one of them, or"
            " `sriovNetworkOperator.enabled=false` in NVIDIA's chart."
        ),
    ),
    "operators.version": Explanation(
        means=(
            "Which version of the operator runs is not known. The linter then judges by the rules that all versions"
            " share."
        ),
        measured="Labels of its Deployment, RELEASE_VERSION, and the tag of its image.",
        causes=("The image is named by digest, and nothing else tells.",),
        look=("kubectl -n NAMESPACE get deployment sriov-network-operator -o yaml",),
        remedy="Use an image with a version tag, or leave it: it only warns.",
    ),
}
