#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_operator_info
short_description: Show the SR-IOV network operator of a cluster, and whether it is ready
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the state of the SR-IOV network operator, whether it was installed by Helm, by OLM or as part of the NVIDIA
    network operator.
  - Reads custom resource definitions, Deployments, the config daemon, C(SriovOperatorConfig), multus, and the nodes
    with their labels and extended resources.
  - Reports in C(operators.errors) what the API server does not let the user read.
  - Reads on OpenShift which mirrors and which registries the nodes may pull images from, if O(images) is set.
options:
  namespace:
    description:
      - Namespace of the operator.
      - The default is the namespace of its Deployment, else of its C(SriovOperatorConfig).
      - If there is neither, the default is where the guide for this kind of cluster installs it. That is
        C(openshift-sriov-network-operator) on OpenShift and C(sriov-network-operator) elsewhere.
    type: str
  nodes:
    description: Nodes that the operator must serve. If a node lacks a label of O(node_selector), the module also reads
      Node Feature Discovery (NFD).
    type: list
    elements: str
    default: []
  node_selector:
    description: Labels of the nodes that take part.
    type: dict
    default: {}
  images:
    description:
      - Images other than those of the fabrics that pods are started from. The key is the variable that names the image.
        An empty image is ignored.
      - If set, the module also reads C(ImageDigestMirrorSet), C(ImageTagMirrorSet), C(ImageContentSourcePolicy) and the
        C(Image) named C(cluster).
    type: dict
  release:
    description: Name of a Helm release of the operator. If set, the result says whether a run of the collection made
      it.
    type: str
  wait_seconds:
    description:
      - Maximum time in seconds to wait until the operator serves the nodes.
      - V(0) reads the state once, without a wait. The module does not fail if the time is over. The result then shows
        what is missing.
    type: int
    default: 0
  settle_seconds:
    description:
      - If set, the module waits at most this time in seconds until the operator drains and configures no node.
        RV(busy) has the nodes on which it still does then. In check mode, the module does not wait.
    type: int
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.scope
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Show the operator of a cluster
  linerate.rdma.sriov_operator_info:
  register: operators_info
"""

RETURN = r"""
namespace:
  description: Namespace of the operator, or where it belongs if it is not there yet.
  returned: success
  type: str
namespaces:
  description: Namespaces of all SR-IOV network operators in the cluster.
  returned: success
  type: list
  elements: str
configs:
  description: Namespaces with a C(SriovOperatorConfig).
  returned: success
  type: list
  elements: str
config_uid:
  description:
    - C(uid) of the C(SriovOperatorConfig) in RV(namespace), read before O(release) was proven. Empty if there is none.
    - A deletion with this C(uid) as its precondition deletes no other object that has the same name by then.
  returned: if O(release) is set
  type: str
release_stays:
  description:
    - Why a teardown must keep O(release), with its C(subject), C(why) and C(remedy). Empty if it may be removed.
    - Either it is not proven to be of the collection, or RV(users) is not empty.
    - The proof is that the collection made its namespace, and that the operator in it is of this release.
  returned: if O(release) is set
  type: dict
busy:
  description: Nodes that the operator drains, that wait for their drain, or that its config daemon configures. Each has
    its state. Empty if the cluster has no such operator.
  returned: if O(settle_seconds) is set
  type: list
  elements: str
stays:
  description: The operator with the reason why a teardown must keep it, as long as RV(busy) is not empty.
  returned: if O(settle_seconds) is set
  type: list
  elements: dict
users:
  description: Policies, networks and pool configurations of the operator that the collection did not create. Of many,
    some, and the number of the others.
  returned: if O(release) is set
  type: list
  elements: str
operators:
  description: State of the operator and of what it needs.
  returned: success
  type: dict
  contains:
    crds:
      description: Established custom resource definitions of the operator, of C(NetworkAttachmentDefinition) and of
        whereabouts.
      type: list
      elements: str
    installations:
      description: Every SR-IOV network operator with its Deployment, version, origin and resource prefix.
      type: list
      elements: dict
    configs:
      description: Namespaces with a C(SriovOperatorConfig) named C(default).
      type: list
      elements: str
    daemon:
      description: DaemonSet of the config daemon in its namespace, with the nodes on which it is ready. V(null) if
        there is none.
      type: dict
    multus:
      description: DaemonSets that appear to be multus.
      type: list
      elements: dict
    multus_pods:
      description: Number of pods in its namespace with the annotation that multus writes.
      type: int
    attachments:
      description: Number of C(NetworkAttachmentDefinitions). V(null) if the API server does not know the kind.
      type: int
    nodes:
      description: Name, labels, readiness and extended resources of each node.
      type: list
      elements: dict
    states:
      description: For each node, its C(SriovNetworkNodeState), with the desired state and the state that the config
        daemon reports.
      type: list
      elements: dict
    policies:
      description: The C(SriovNetworkNodePolicies) in its namespace.
      type: list
      elements: dict
    supported_nics:
      description: PCI IDs of the NICs that the operator supports, from its ConfigMap C(supported-nic-ids). V(null) if
        there is no such ConfigMap.
      type: list
      elements: dict
    discovery:
      description: NFD workers with their configuration and the nodes on which they are ready. V(null) if no node lacks
        a label.
      type: list
      elements: dict
    olm:
      description: C(ClusterServiceVersions) and C(Subscriptions) of the operator in its namespace, with their status.
      type: list
      elements: dict
    troubles:
      description: Pods in its namespace that are not ready, each with the cause.
      type: list
      elements: str
    errors:
      description: Objects that could not be read, each with the reason.
      type: list
      elements: str
images:
  description: Sources of images. Clusters that are not OpenShift have no rules and no lists.
  returned: if O(images) is set
  type: dict
  contains:
    rules:
      description: Mirror rules. Each has its source, its mirrors, and the form of the image names that it applies to
        (V(digest) or V(tag)).
      type: list
      elements: dict
    registries:
      description: Allowed, blocked and insecure registries.
      type: dict
    named:
      description: The images in O(images).
      type: dict
    errors:
      description: Objects that could not be read, each with the reason.
      type: list
      elements: str
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    make_facts_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import find_folder, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, renew_lease
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.scope import SCOPE_SPEC, read_scope
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.images.mirrors import (
    observe as observe_images,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.busy_nodes import (
    keep_busy_operator,
    wait_until_idle,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.feature_discovery import add_discovery
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import (
    find_config_uid,
    kept_release,
    observe,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.users import (
    find_sriov_users,
    keep_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.wait_for_operator import wait_until_serving


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options, cluster, folder = module.params, connect(module), find_folder(module)
    nodes = options["nodes"] or (folder.start().nodes if folder else [])
    selector = {key: str(value) for key, value in options["node_selector"].items()}
    if module.check_mode or not options["wait_seconds"]:
        facts = observe(cluster, options["namespace"])
    else:
        intent = ClusterIntent(node_selector=selector, operator_namespace=options["namespace"])
        with renew_lease(module, cluster), open_progress(options["progress_file"]) as say:
            facts = wait_until_serving(cluster, intent, nodes, options["wait_seconds"], time.monotonic, time.sleep, say)
    namespaces = sorted({item.deployment.namespace for item in facts.installations})
    seen = add_discovery(cluster, facts, selector, nodes)
    answer = {
        "operators": to_data(seen),
        "namespace": seen.namespace,
        "namespaces": namespaces,
        "configs": list(seen.configs),
    }
    if options["images"] is not None:
        answer["images"] = to_data(
            observe_images(cluster, {key: str(image) for key, image in options["images"].items()})
        )
    if options["settle_seconds"] is not None:
        limit = 0 if module.check_mode else options["settle_seconds"]
        with renew_lease(module, cluster):
            # without an operator, nothing ends what an earlier one has begun
            there = bool(facts.installations or facts.errors)
            busy = wait_until_idle(cluster, seen.namespace, limit, time.monotonic, time.sleep) if there else ()
        subject = f"SR-IOV network operator in {seen.namespace}"
        kept = [keep_busy_operator(subject, seen.namespace, busy)] if busy else []
        answer.update(busy=list(busy), stays=to_data(kept))
    if options["release"]:
        answer["config_uid"] = find_config_uid(cluster, seen.namespace)
        users = find_sriov_users(cluster, read_scope(options, cluster))
        stays = kept_release(cluster, seen.namespace, options["release"])
        if stays is None and users:
            stays = keep_operator(f"Helm release {seen.namespace}/{options['release']}", users)
        answer["release_stays"] = to_data(stays) or {}
        answer["users"] = list(users)
    return answer


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            **SCOPE_SPEC,
            namespace={"type": "str"},
            nodes={"type": "list", "elements": "str", "default": []},
            node_selector={"type": "dict", "default": {}},
            images={"type": "dict"},
            release={"type": "str"},
            wait_seconds={"type": "int", "default": 0},
            settle_seconds={"type": "int"},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(
        module,
        lambda: work(module),
        "operators",
        keep=("namespace", "namespaces", "configs", "release_stays", "users", "busy", "stays"),
    )


if __name__ == "__main__":
    main()
