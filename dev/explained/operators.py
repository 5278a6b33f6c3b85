# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage operators, for the pages to which the report links. Check ids:
``operators.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "operators.config": Explanation(
        means=(
            "The SriovOperatorConfig `default` does not exist in the namespace of the operator. Without it, the"
            " operator starts no config daemon."
        ),
        measured="The SriovOperatorConfig `default` in the namespace where the operator runs.",
        causes=(
            "The object was never created. The Helm chart creates it only with `sriovOperatorConfig.deploy=true`.",
            "The object is in a different namespace.",
        ),
        look=("kubectl get sriovoperatorconfigs.sriovnetwork.openshift.io -A",),
        remedy=(
            "Create the object, or set `sriovOperatorConfig.deploy=true` in the values of the Helm chart"
            " (`operators_install` does this). Then run stage operators again."
        ),
    ),
    "operators.daemon": Explanation(
        means=(
            "The config daemon creates the virtual functions of a node. On this node it is not ready, or it has not"
            " reported the node."
        ),
        measured=(
            "The ready pods of the DaemonSet sriov-network-config-daemon by node, and the SriovNetworkNodeState of the"
            " node."
        ),
        causes=(
            "`configDaemonNodeSelector` of the SriovOperatorConfig does not select the node.",
            "A taint keeps the pod of the config daemon off the node.",
            "The pod of the config daemon fails because of its image, missing rights or a missing kernel module.",
            "The operator does not run, so the DaemonSet does not exist.",
        ),
        look=(
            "kubectl get pods -A -o wide -l app=sriov-network-config-daemon",
            "kubectl get sriovnetworknodestates.sriovnetwork.openshift.io -A",
            "kubectl logs -n NAMESPACE -l app=sriov-network-config-daemon --tail=-1",
        ),
        remedy=(
            "Compare `configDaemonNodeSelector` and the tolerations of the DaemonSet with the labels and taints of the"
            " node. Read the events and the log of the pod. Then run stage operators again."
        ),
    ),
    "operators.definition": Explanation(
        means="The API server does not serve a kind that the profiles need.",
        measured="The CustomResourceDefinitions and the kinds that the API server serves.",
        causes=(
            "The operator of the kind is not installed.",
            "The API server rejected the definition, or the definition was deleted.",
        ),
        look=(
            "kubectl api-resources",
            "kubectl get crd",
        ),
        remedy=(
            "Install the operator that the finding names, for example with `operators_install: true`. Then run stage"
            " operators again."
        ),
    ),
    "operators.driver": Explanation(
        means=(
            "The driver container of an NVIDIA policy may not start on nodes with this kernel. This check runs before"
            " the policy is applied, because the policy drains nodes."
        ),
        measured=(
            "The labels by which the operator chooses the image, the kernel, secure boot, the status that the operator"
            " reports, and the known published images."
        ),
        causes=(
            "Labels of node feature discovery are missing.",
            "Secure boot is on, so the kernel loads only signed modules.",
            "No precompiled image for this kernel exists.",
            (
                "The kernel headers come from repositories that require a subscription, or that a disconnected site"
                " cannot reach."
            ),
            (
                "A NicNodePolicy or an NVIDIADriver deploys the driver on some nodes, and its operator does not report"
                " that the driver runs there (unknown)."
            ),
            (
                "The default route of a node uses an interface of mlx5_core. The driver container reloads this module,"
                " and the node is unreachable during the reload."
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
            "Follow the remedy in the finding for this kernel. If the driver of the nodes is sufficient, remove"
            " `rdma_cluster.network_operator.ofed_driver`. Then run stage operators again."
        ),
    ),
    "operators.driver_kernels": Explanation(
        means=(
            "The nodes of one driver policy have several kernels. Each kernel needs its own image, and an image named"
            " by digest fits only one kernel."
        ),
        measured="The kernels of the nodes that the policy selects.",
        causes=(
            "Some nodes were updated, and the other nodes were not.",
            "The policy names the image by digest.",
        ),
        look=("kubectl get nodes -o wide",),
        remedy=(
            "Let all nodes run the same kernel, or set a version of the driver instead of the digest (for example in"
            " `spec.ofedDriver.version` or `rdma_cluster.network_operator.ofed_driver`). Then run stage operators"
            " again."
        ),
    ),
    "operators.image": Explanation(
        means=(
            "According to the rules of the cluster (OpenShift), nodes would not pull an image that the run needs for"
            " its pods."
        ),
        measured=(
            "The name of the image, compared with the mirror rules (ImageDigestMirrorSet, ImageTagMirrorSet,"
            " ImageContentSourcePolicy) and the lists of allowed and blocked registries."
        ),
        causes=(
            "The registry is blocked, or the list of allowed registries does not contain it.",
            "The mirrors apply only to names with a digest, and the name of the image has a tag.",
            "The name of the image contains no registry.",
            "NeverContactSource is set, and no mirror has the image.",
        ),
        look=(
            "oc get imagedigestmirrorset,imagetagmirrorset",
            "oc get image.config.openshift.io cluster -o yaml",
            "skopeo inspect docker://IMAGE",
        ),
        remedy=(
            "Use an image of an allowed registry, and name it by digest if the mirrors are for digests. Or have an"
            " admin of the cluster change the rule. Then run stage operators again."
        ),
    ),
    "operators.label": Explanation(
        means=(
            "A node does not carry a label of `rdma_cluster.node_selector`, so no policy selects the node. The finding"
            " names the layer that prevents the label, from the hardware up."
        ),
        measured=(
            "The labels of the node, its PCI functions, and the workers of node feature discovery with their"
            " configuration."
        ),
        causes=(
            "No worker of node feature discovery runs on the node because of a selector or a taint.",
            "`core.labelSources`, `deviceClassWhitelist` or `deviceLabelFields` exclude the label.",
            "SR-IOV is off, so node feature discovery does not set the label `network-sriov.capable`.",
            "No component sets the label automatically.",
        ),
        look=(
            "kubectl get node NODE --show-labels",
            "kubectl get nodefeatures -A",
            "kubectl get pods -A -o wide -l app.kubernetes.io/name=node-feature-discovery",
        ),
        remedy=(
            "Correct the configuration of node feature discovery that the finding names, or set the label by hand:"
            " `kubectl label node NODE KEY=VALUE`. Then run stage operators again."
        ),
    ),
    "operators.machine": Explanation(
        means=(
            "The data of a node comes from a different machine than the machine that the cluster knows by this name, or"
            " this could not be determined. Other findings on the node then describe a different machine."
        ),
        measured=(
            "The boot ID in the data of the node (facts `hcas` and `platform`), and the boot ID in its Node object,"
            " which its kubelet writes."
        ),
        causes=(
            "The values of `ansible_host` of two nodes are swapped in the inventory.",
            "`ansible_host` is the address of a machine that is not a node of the cluster.",
            "The node has rebooted since its data was collected.",
        ),
        look=(
            "cat /proc/sys/kernel/random/boot_id",
            "kubectl get node NODE -o yaml",
        ),
        remedy=(
            "Correct `ansible_host` in the inventory, and run all stages again. The run then collects the data again."
        ),
    ),
    "operators.mirror": Explanation(
        means="The mirror of this disconnected site does not have an image or chart that the run would pull.",
        measured="Each image and chart of the run, queried from the registries in `rdma_cluster.mirror`.",
        causes=(
            "The image or chart was never copied to the mirror, or it was copied in a different release.",
            "The registry requires credentials, or this machine does not trust its certificate (unknown).",
            "The chart sets the name of an image in a template that its values do not change.",
        ),
        look=(
            "skopeo inspect --raw docker://IMAGE",
            "curl -v https://MIRROR/v2/",
        ),
        remedy=(
            "On a machine with internet access, copy the image or chart with the command in the finding, or copy all of"
            " them with `ansible-playbook linerate.rdma.images`. For credentials, use `-e"
            " operators_registry_auth_file=FILE`. Then run stage operators again."
        ),
    ),
    "operators.multus": Explanation(
        means=(
            "multus attaches the secondary interface of pods, and it has no ready pod on a node. Pods on that node get"
            " no secondary interface and report no error."
        ),
        measured="The ready pods of the DaemonSet of multus by node, and the pods that carry its network-status.",
        causes=(
            "multus is not installed (plain Kubernetes does not include it).",
            "A taint keeps the pod of multus off the node.",
            "The pod of multus fails, or its CNI file is not the first file in /etc/cni/net.d.",
        ),
        look=(
            "kubectl get daemonsets -A",
            "kubectl get pods -A -o wide -l app=multus",
            "ls /etc/cni/net.d",
        ),
        remedy=(
            "Install multus, or make it run on the node: read the events of its pods and the taints of the node. Then"
            " run stage operators again."
        ),
    ),
    "operators.needed": Explanation(
        means="An operator that the intent or the job needs is not installed, is installed twice, or is not ready.",
        measured=(
            "The Deployments of the known operators, their configuration objects, their Helm releases and the objects"
            " of OLM."
        ),
        causes=(
            "The operator is not installed.",
            "The Helm release of the operator is incomplete, because a run was interrupted.",
            (
                "The configuration object of the operator is missing (a NicClusterPolicy, a ClusterPolicy, a"
                " NodeFeatureDiscovery)."
            ),
            "The operator is installed twice, because NVIDIA's chart also installs it.",
            (
                "NVIDIA's network operator is of another release than `rdma_cluster.network_operator.version`, whose"
                " images its NicClusterPolicy names (warn)."
            ),
            (
                "No run installed the SR-IOV network operator, and its version is not the one for which stage network"
                " writes its objects (warn)."
            ),
        ),
        look=(
            "helm list -A --all",
            "kubectl get deployments -A",
            "kubectl get clusterserviceversions -A",
        ),
        remedy=(
            "Set `operators_install: true`, or run the command in the finding. If the operator is installed twice,"
            " remove one installation. Then run stage operators again."
        ),
    ),
    "operators.node": Explanation(
        means="The cluster has no node of this name, or the node cannot accept pods.",
        measured="The conditions of the node, and whether it is cordoned.",
        causes=(
            "The name in the inventory differs from the name of the node in the cluster.",
            "The kubelet of the node does not report.",
            "A user or an interrupted roll cordoned the node.",
        ),
        look=(
            "kubectl get nodes",
            "kubectl describe node NODE",
        ),
        remedy=(
            "Name the host in the inventory as `kubectl get nodes` lists the node. When the node is healthy, run"
            " `kubectl uncordon NODE`. Then run stage operators again."
        ),
    ),
    "operators.olm": Explanation(
        means="OLM did not install a requested operator, or it reports a problem with an operator.",
        measured=(
            "The Subscription, InstallPlan, ClusterServiceVersion, CatalogSource and OperatorGroups, with their"
            " conditions."
        ),
        causes=(
            "The catalog does not respond, or it has no such package, channel or version.",
            "An InstallPlan waits for approval.",
            "The namespace has two OperatorGroups, or an OperatorGroup with the wrong install mode.",
            "A requirement is missing, or an image cannot be pulled.",
            "A webhook does not respond.",
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
            "A pod in the namespace of the operator is not ready. Your nodes do not necessarily depend on this pod, so"
            " the finding is a warning."
        ),
        measured="The pods of this namespace, with the states of their containers and their last events.",
        causes=(
            "An image cannot be pulled.",
            (
                "The pod crashes because of missing rights, the certificate of a webhook, or a kind that the API"
                " server does not serve."
            ),
            "No node has the resources for the pod, or a taint keeps the pod off the nodes.",
        ),
        look=(
            "kubectl -n NAMESPACE get pods -o wide",
            "kubectl -n NAMESPACE describe pod POD",
            "kubectl -n NAMESPACE logs POD --previous",
        ),
        remedy=(
            "Correct the cause that the events of the pod report: `kubectl -n NAMESPACE describe pod POD`. Then run"
            " stage operators again."
        ),
    ),
    "operators.read": Explanation(
        means="The API server did not return the objects of a kind, so they are unknown.",
        measured="The responses of the API server to each list request of the stage.",
        causes=(
            "The user of the kubeconfig does not have the right to list the kind.",
            "The kubeconfig is for a different cluster, or its credentials have expired.",
        ),
        look=(
            "kubectl auth can-i --list",
            "kubectl cluster-info",
        ),
        remedy=(
            "As an admin of the cluster, give the user the rights in docs/rbac/look.yml: `kubectl apply -f"
            " docs/rbac/look.yml`, and bind the user to its roles. Then run stage operators again."
        ),
    ),
    "operators.ready": Explanation(
        means="The operator does not run, so no policy is applied. Or some pods of the operator do not run.",
        measured=(
            "The available pods of the Deployment of the operator, and the reasons why the other pods are not"
            " available."
        ),
        causes=(
            "An image cannot be pulled.",
            "The operator crashes. Its previous log contains the cause.",
            "The Deployment is scaled to 0.",
            "No node accepts the pod because of taints of the control plane.",
        ),
        look=(
            "kubectl -n NAMESPACE describe deployment sriov-network-operator",
            "kubectl -n NAMESPACE logs deployment/sriov-network-operator",
        ),
        remedy=(
            "Correct the cause that the events of the pods report. If the Deployment is scaled to 0, run `kubectl -n"
            " NAMESPACE scale deployment sriov-network-operator --replicas=1`. Then run stage operators again."
        ),
    ),
    "operators.resource_prefix": Explanation(
        means=(
            "The operator gives resources a different prefix than the intent. Pods would request a resource that no"
            " node offers."
        ),
        measured="RESOURCE_PREFIX of the Deployment of the operator, compared with `rdma_cluster.resource_prefix`.",
        causes=(
            "The prefix is `openshift.io` in OpenShift's operator, and usually a different one in other Helm charts.",
        ),
        look=(
            "kubectl -n NAMESPACE get deployment sriov-network-operator -o yaml",
            "kubectl describe node NODE",
        ),
        remedy="Set `rdma_cluster.resource_prefix` to the prefix of the operator, then run stage operators again.",
    ),
    "operators.rights": Explanation(
        means=(
            "The user of the kubeconfig does not have a right that a stage needs. This check runs before the run"
            " changes anything, because the API server would otherwise reject a request in the middle of the run."
        ),
        measured="SelfSubjectAccessReviews for each right in docs/rbac that the current intent needs.",
        causes=(
            "The user is bound to a custom role, or to an older version of the role.",
            "The rights for namespaces or for the teardown were omitted on purpose (warn).",
        ),
        look=(
            "kubectl auth can-i create sriovnetworknodepolicies.sriovnetwork.openshift.io -n NAMESPACE",
            "kubectl auth can-i --list",
        ),
        remedy=(
            "Have an admin of the cluster apply the files that the finding names, for example `kubectl apply -f"
            " docs/rbac/look.yml`. Then run stage operators again."
        ),
    ),
    "operators.rollout": Explanation(
        means=(
            "The DaemonSet sriov-network-config-daemon has pods that are not ready or are of an earlier template, or"
            " its image is of a different release than the image of the operator. During an upgrade of the operator,"
            " the new release cannot be verified."
        ),
        measured=(
            "desiredNumberScheduled, numberReady and updatedNumberScheduled of the DaemonSet, and the tags of both"
            " images."
        ),
        causes=(
            "An upgrade of the operator is still replacing the pods.",
            (
                "The new pod fails because of its image, missing rights or a missing kernel module. The old pods"
                " continue to run and appear healthy."
            ),
            "A node outside the inventory is down.",
            "The values of the Helm chart name the image of a different release.",
        ),
        look=(
            "kubectl get daemonsets -n NAMESPACE sriov-network-config-daemon",
            "kubectl get pods -A -o wide -l app=sriov-network-config-daemon",
        ),
        remedy=(
            "Wait for the rollout, or read the events of the pod that fails. Set both images to the same release. Then"
            " run stage operators again."
        ),
    ),
    "operators.single": Explanation(
        means=(
            "The cluster must have exactly one SR-IOV network operator, in the namespace that the intent names. Two"
            " operators change the same nodes, and each reverts the changes of the other."
        ),
        measured="The Deployments in all namespaces that run the operator.",
        causes=(
            "The operator is not installed.",
            "NVIDIA's chart installed one operator, and OLM or a separate chart installed another one.",
            "`rdma_cluster.operator_namespace` names a different namespace.",
        ),
        look=(
            "kubectl get deployments -A",
            "helm list -A",
        ),
        remedy=(
            "If the operator is not installed, set `operators_install: true`. If it is installed twice, run `helm"
            " uninstall` for one of them, or set `sriovNetworkOperator.enabled=false` in NVIDIA's chart. Then run stage"
            " operators again."
        ),
    ),
    "operators.version": Explanation(
        means=(
            "The version of the operator is unknown. The linter then applies only the rules that are common to all"
            " versions."
        ),
        measured="The labels of the Deployment of the operator, RELEASE_VERSION, and the tag of its image.",
        causes=("The image is named by digest, and neither the labels nor RELEASE_VERSION contain the version.",),
        look=("kubectl -n NAMESPACE get deployment sriov-network-operator -o yaml",),
        remedy="Use an image with a version tag, then run stage operators again. You can ignore this warning.",
    ),
}
