#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: observers
short_description: Starts privileged pods through which nodes are seen that nobody can log in to, and removes them
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - With O(state=present) it makes a namespace, and in it a DaemonSet whose pods see the host. They are privileged, in the host's network and with its
    processes, and have C(/) of the host below C(/host), read-only. They have no token, so they can do nothing in the cluster. They tolerate every taint.
  - It changes nothing outside of this namespace. No node gets a label, and no custom resource is made.
  - It waits until each node has an observer, or waiting does not help those any more that have none. It is no failure of the module when a node has
    none; RV(nodes) has the reason in the words of the API server, the scheduler or the kubelet, for whoever judges it.
  - What a run has left that was killed is removed first. Observers that belong to no run stay until somebody removes them; see O(keep).
  - With O(state=absent) it removes the namespace, and waits until it is gone. A namespace that is not the collection's is refused.
  - Where the user may make no privileged namespace, an admin prepares one, with C(docs/rbac-observers.yml). In such a namespace the module makes and
    removes its DaemonSet and ServiceAccount alone.
  - On OpenShift, which it knows by the API group C(security.openshift.io), the pods are admitted by a Role for the SCC C(privileged) in this namespace.
options:
  state:
    description: Whether the observers are there.
    type: str
    choices: [present, absent]
    default: present
  namespace:
    description: Namespace of the observers.
    type: str
    default: linerate-observers
  image:
    description:
      - Image of the observers, with its digest. What a tag names may differ from node to node, so that a tag is warned of.
      - The default is the cluster's own image on OpenShift, C(openshift/tools:latest). Other clusters have none. C(docs/observers.md) has a Containerfile.
    type: str
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
      - Nodes that are to have an observer, as the cluster names them. The default is those of the run, with O(facts_dir), unless O(node_selector) is given.
      - Without any of them all nodes with Linux are.
    type: list
    elements: str
    default: []
  node_selector:
    description: Labels that a node must have to get an observer.
    type: dict
    default: {}
  priority_class:
    description:
      - Priority class of the pods. V(system-node-critical) has them started on full nodes; some clusters forbid it outside of their own namespaces.
    type: str
    default: ""
  lifetime:
    description: Seconds after which a container ends itself, and with it what hangs in it. The kubelet starts it anew.
    type: int
    default: 14400
  resources:
    description: Requests and limits of the container, as Kubernetes writes them. The default asks for 10m of CPU and 64Mi, and gets 512Mi at most.
    type: dict
  keep:
    description: Whether the observers stay when the run ends. They belong to no run then.
    type: bool
    default: false
  wait_seconds:
    description: Limit of the wait for the pods, and of that for what is to go.
    type: int
    default: 300
  progress_file:
    description: File to which a line is added whenever the count of ready nodes or a reason changes. Without it the lines go to Ansible's output.
    type: path
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Asks the API server by its dry run, starts no pod, and does not wait.
  diff_mode:
    support: full
    description: Shows each object before and after, without what only the API server writes.
  idempotent:
    support: full
    description: Observers that are as they are asked for stay as they are.
"""

EXAMPLES = r"""
- name: See the nodes through observers
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
  description: One line for each object that was written or removed, or would be.
  returned: success
  type: list
  elements: str
  sample: [created Namespace linerate-observers]
nodes:
  description:
    - For each node its C(phase) (V(ready), V(waiting), V(failed)), C(reason) in a word, C(detail) in the words of who refused it, and C(remedy).
    - Of a node that has an observer C(pod), C(uid), C(container), C(image_id), and C(restarts) of its container.
  returned: O(state=present)
  type: list
  elements: dict
ready:
  description: How many nodes have an observer.
  returned: O(state=present)
  type: int
missing:
  description: How many have none.
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
  description: Whether the limit was reached while some node could still have become ready.
  returned: O(state=present)
  type: bool
waited_seconds:
  description: How long it took.
  returned: O(state=present)
  type: float
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, difference, facts_spec, progress
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import folder_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.observers import LIFETIME_SECONDS, NAMESPACE, RESOURCES, Wanted
from ansible_collections.linerate.rdma.plugins.module_utils._observe.apply import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.observers import knows_recursive_read_only
from ansible_collections.linerate.rdma.plugins.module_utils._render.observers import by_digest
from ansible_collections.linerate.rdma.plugins.module_utils._run.observers import Observers, nodes_to_observe, own_image

GROUP = "security.openshift.io"


def wanted_of(module: AnsibleModule, cluster: Cluster) -> Wanted:
    """What is asked for. Modules beside the run belong to none, and so do observers that are to stay."""
    options, folder, openshift = module.params, folder_of(module), cluster.serves(GROUP)
    image = options["image"] or own_image(cluster, openshift)
    if not by_digest(image):
        module.warn(f"the image {image} is named by a tag, which may be another image on another node; name it with its digest (@sha256:...)")
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


def _nodes_of_run(start: RunStart) -> typing.Tuple[str, ...]:
    """Those that are reached by observers; all of them where none is so far."""
    return start.by_pods or start.nodes


def described(outcomes: typing.Iterable[Outcome]) -> typing.Dict[str, typing.Any]:
    changed = [outcome for outcome in outcomes if outcome.changed]
    names = {"unjudged": "created"}
    lines = [f"{names.get(item.applied.action, item.applied.action)} {item.applied.kind} {item.applied.name}" for item in changed]
    return {"changed": bool(changed), "changes": lines, "diff": difference(changed)}


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options, cluster = module.params, connect(module)
    present = options["state"] == "present"
    wanted = wanted_of(module, cluster) if present else None
    with working(module, cluster) as held, progress(options["progress_file"]) as say:
        observers = Observers(held.cluster, options["namespace"], options["wait_seconds"], time.monotonic, time.sleep, say)
        if wanted is None:
            return described(observers.absent(module.check_mode))
        outcomes, facts = observers.present(wanted, options["run"] or "", nodes_to_observe(held.cluster, wanted), module.check_mode)
    ready = sum(node.phase == "ready" for node in facts.nodes)
    return {**described(outcomes), **to_data(facts), "ready": ready, "missing": len(facts.nodes) - ready}


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            namespace={"type": "str", "default": NAMESPACE},
            image={"type": "str"},
            image_pull_secrets={"type": "list", "elements": "str", "default": [], "no_log": False},
            image_pull_policy={"type": "str", "choices": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent"},
            nodes={"type": "list", "elements": "str", "default": []},
            node_selector={"type": "dict", "default": {}},
            priority_class={"type": "str", "default": ""},
            lifetime={"type": "int", "default": LIFETIME_SECONDS},
            resources={"type": "dict"},
            keep={"type": "bool", "default": False},
            wait_seconds={"type": "int", "default": 300},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "observers" if module.params["state"] == "present" else "")


if __name__ == "__main__":
    main()
