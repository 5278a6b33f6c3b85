#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: observers
short_description: Start or remove observer pods, which give access to nodes without ssh
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - O(state=present) creates a namespace with a DaemonSet whose pods see the host. The pods are privileged and use the
    network and the processes of the host. They mount C(/) of the host read-only at C(/host). They tolerate every taint.
    They have no token, so they cannot use the API server.
  - The module changes nothing outside of this namespace. It labels no node and creates no custom resource.
  - It waits until every node has an observer, or until waiting cannot help the remaining nodes. It does not fail if a
    node has no observer. RV(nodes) shows the reason, with the message of the API server, the scheduler or the kubelet.
  - It first removes observers of a run that was killed. Observers that belong to no run remain until somebody removes
    them; see O(keep).
  - O(state=absent) removes the namespace and waits until it is gone. The module refuses to remove a namespace that the
    collection did not create.
  - If the user may not create a privileged namespace, an admin prepares one with C(docs/rbac/observers.yml). In such a
    namespace the module creates and removes only its DaemonSet and its ServiceAccount.
  - On OpenShift, which it recognises by the API group C(security.openshift.io), a Role in this namespace admits the
    pods with the SCC C(privileged).
options:
  state:
    description: Whether to start or to remove the observers.
    type: str
    choices: [present, absent]
    default: present
  namespace:
    description: Namespace of the observers.
    type: str
    default: linerate-observers
  image:
    description:
      - Image of the observers, with its digest. A tag may stand for different images on different nodes, so the module
        warns of tags.
      - The default on OpenShift is the image of the cluster, C(openshift/tools:latest). Other clusters have no default.
        C(docs/observers.md) has a Containerfile.
    type: str
  mirror:
    description:
      - The key C(mirror) of C(rdma_cluster). O(image) is then pulled from there.
      - The image of an OpenShift cluster keeps its name, since the cluster itself mirrors its release.
    type: raw
  image_pull_secrets:
    description: Names of pull secrets in O(namespace).
    type: list
    elements: str
    default: []
  image_pull_policy:
    description: When the nodes pull the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  nodes:
    description:
      - Kubernetes names of the nodes that need an observer. The default is the nodes of the run, with O(facts_dir),
        unless O(node_selector) is set.
      - If none of these is set, all Linux nodes need one.
    type: list
    elements: str
    default: []
  excluded:
    description:
      - Names of those nodes that get no observer. If O(keep) is true, an observer that runs there stays.
      - The action plugin of this name sets it to the nodes that C(--limit) of C(ansible-playbook) excludes.
    type: list
    elements: str
    default: []
  node_selector:
    description: Labels that a node must have to get an observer.
    type: dict
    default: {}
  priority_class:
    description:
      - Priority class of the pods. V(system-node-critical) starts them also on full nodes. Some clusters forbid it
        outside of their own namespaces.
    type: str
    default: ""
  lifetime:
    description: Time in seconds after which a container ends itself and everything that runs in it. The kubelet then
      restarts it.
    type: int
    default: 14400
  resources:
    description: Requests and limits of the container, in Kubernetes syntax. The default requests 10m CPU and 64Mi
      memory, and limits memory to 512Mi.
    type: dict
  keep:
    description: Whether the observers remain after the run. They then belong to no run.
    type: bool
    default: false
  wait_seconds:
    description: Maximum time in seconds to wait for the pods, and again for objects that are removed.
    type: int
    default: 300
  unless_held:
    description:
      - With O(state=absent), whether the module removes nothing while another run holds the Lease, if this run has not
        held it. Then this run has started no observers, and the module does not wait for the other run.
    type: bool
    default: false
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module uses the dry run of the API server. It starts no pod and does not wait.
  diff_mode:
    details:
      - The diff leaves out fields that only the API server writes.
"""

EXAMPLES = r"""
- name: Read nodes through observers
  block:
    - name: Start an observer on each node with GPUs
      linerate.rdma.observers:
        image: registry.example/rdma-tools@sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
        node_selector:
          nvidia.com/gpu.present: "true"
      register: observers_started

    - name: Show why nodes have none
      ansible.builtin.debug:
        msg: "{{ observers_started.nodes | rejectattr('phase', 'eq', 'ready') | map(attribute='detail') }}"

  always:
    - name: Remove the observers
      linerate.rdma.observers:
        state: absent
"""

RETURN = r"""
changes:
  description: One line for each object that was written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [created Namespace linerate-observers]
nodes:
  description:
    - For each node its C(phase) (V(ready), V(waiting) or V(failed)), the C(reason) as one word, the C(detail) as a
      message, and the C(remedy).
    - If the node has an observer, also its C(pod), C(uid), C(container), C(image_id) and the C(restarts) of the
      container.
  returned: O(state=present)
  type: list
  elements: dict
ready:
  description: Number of nodes with an observer.
  returned: O(state=present)
  type: int
missing:
  description: Number of nodes without an observer.
  returned: O(state=present)
  type: int
namespace:
  description: Namespace of the observers.
  returned: O(state=present)
  type: str
image:
  description: Image of the observers.
  returned: O(state=present)
  type: str
timed_out:
  description: Whether the maximum time was reached while a node could still have become ready.
  returned: O(state=present)
  type: bool
waited_seconds:
  description: Duration of the wait in seconds.
  returned: O(state=present)
  type: float
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
    format_difference,
    make_facts_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import find_folder, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, has_taken, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.mirror import on_mirror
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.admission import OPENSHIFT_GROUP
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import by_digest
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import (
    LIFETIME_SECONDS,
    NAMESPACE,
    RESOURCES,
    ObserversFacts,
    Wanted,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import LeaseHeld
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import mirror_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.observers import knows_recursive_read_only
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observed_nodes import (
    leave_out,
    nodes_to_observe,
    own_image,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observers import Observers


def wanted_of(module: AnsibleModule, cluster: Cluster) -> Wanted:
    """Return the desired observers, from the options of the module. If the option ``keep`` is set, or if the module
    does not belong to a run, the observers belong to no run and remain until they are removed explicitly. An image
    without a digest causes a warning.
    """
    options, folder, openshift = module.params, find_folder(module), cluster.serves(OPENSHIFT_GROUP)
    image = (
        on_mirror(options["image"], mirror_of(options["mirror"])) if options["image"] else own_image(cluster, openshift)
    )
    if not by_digest(image):
        module.warn(
            f"the image {image} is referenced by a tag, which may refer to different images on different nodes;"
            " reference the image by its digest (@sha256:...)"
        )
    of_run = _nodes_of_run(folder.start()) if folder and not options["node_selector"] else ()
    return Wanted(
        image=image,
        namespace=options["namespace"],
        run="" if options["keep"] else options["run"] or "",
        nodes=tuple(options["nodes"]) or of_run,
        node_selector={key: str(value) for key, value in options["node_selector"].items()},
        pull_secrets=tuple(options["image_pull_secrets"]),
        pull_policy=options["image_pull_policy"],
        priority_class=options["priority_class"],
        lifetime=options["lifetime"],
        resources=options["resources"] or RESOURCES,
        openshift=openshift,
        recursive=knows_recursive_read_only(cluster.version()),
    )


def _nodes_of_run(start: RunStart) -> tuple[str, ...]:
    """Return those nodes of a run that are reached through observers. If there are none yet, return all nodes of the
    run.

    :param start: record of the start of the run, with its nodes
    """
    return start.by_pods or start.nodes


def describe_outcomes(outcomes: typing.Iterable[Outcome]) -> dict[str, typing.Any]:
    changed = [outcome for outcome in outcomes if outcome.changed]
    names = {"unjudged": "created"}
    lines = [
        f"{names.get(item.applied.action, item.applied.action)} {item.applied.kind} {item.applied.name}"
        for item in changed
    ]
    return {"changed": bool(changed), "changes": lines, "diff": format_difference(changed)}


def remove(module: AnsibleModule, cluster: Cluster, wait: typing.Optional[float] = None) -> dict[str, typing.Any]:
    """Remove the observers, and return the result of the module.

    :param wait: longest wait in seconds for another run that holds the Lease; None for the default
    :raises LeaseHeld: another run still holds the Lease
    """
    options = module.params
    with hold_lease(module, cluster, wait) as held, open_progress(options["progress_file"]) as say:
        observers = Observers(
            held.cluster, options["namespace"], options["wait_seconds"], time.monotonic, time.sleep, say
        )
        return describe_outcomes(observers.absent(module.check_mode))


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options, cluster = module.params, connect(module)
    present = options["state"] == "present"
    wanted = wanted_of(module, cluster) if present else None
    if not present and options["unless_held"] and not has_taken(module):
        try:
            return remove(module, cluster, 0.0)
        except LeaseHeld:
            return describe_outcomes([])
    if wanted is None:
        return remove(module, cluster)
    with hold_lease(module, cluster) as held, open_progress(options["progress_file"]) as say:
        observers = Observers(
            held.cluster, options["namespace"], options["wait_seconds"], time.monotonic, time.sleep, say
        )
        wanted, nodes = leave_out(
            held.cluster, wanted, nodes_to_observe(held.cluster, wanted), set(options["excluded"])
        )
        if not nodes:
            return {**describe_outcomes([]), **to_data(ObserversFacts(wanted.namespace, wanted.image))}
        outcomes, facts = observers.present(wanted, options["run"] or "", nodes, module.check_mode)
    ready = sum(node.phase == "ready" for node in facts.nodes)
    return {**describe_outcomes(outcomes), **to_data(facts), "ready": ready, "missing": len(facts.nodes) - ready}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            namespace={"type": "str", "default": NAMESPACE},
            image={"type": "str"},
            mirror={"type": "raw"},
            image_pull_secrets={"type": "list", "elements": "str", "default": [], "no_log": False},
            image_pull_policy={
                "type": "str",
                "choices": ["Always", "IfNotPresent", "Never"],
                "default": "IfNotPresent",
            },
            nodes={"type": "list", "elements": "str", "default": []},
            excluded={"type": "list", "elements": "str", "default": []},
            node_selector={"type": "dict", "default": {}},
            priority_class={"type": "str", "default": ""},
            lifetime={"type": "int", "default": LIFETIME_SECONDS},
            resources={"type": "dict"},
            keep={"type": "bool", "default": False},
            wait_seconds={"type": "int", "default": 300},
            unless_held={"type": "bool", "default": False},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "observers" if module.params["state"] == "present" else "")


if __name__ == "__main__":
    main()
