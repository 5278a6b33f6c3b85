#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: olm
short_description: Install or remove operators by the Operator Lifecycle Manager
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Installs operators by the Operator Lifecycle Manager (OLM v0), which OpenShift has and other clusters may have.
    Applies a namespace, an C(OperatorGroup) and a C(Subscription) for each operator. Then waits until its
    C(ClusterServiceVersion) has succeeded and its webhooks serve.
  - The approval of each C(Subscription) is V(Manual). The module approves an C(InstallPlan) only if it contains nothing
    but the versions of O(operators).
  - Never upgrades an operator unless O(operators[].version) asks for it. RV(olm.operators[].upgrade) shows a newer
    version.
  - Uses an C(OperatorGroup) that exists, and a C(Subscription) of the same package in any namespace. Never changes one
    without the label of the collection.
  - Applies nothing for an operator that its catalog does not offer, because a C(Subscription) without a solution blocks
    the other ones in its namespace.
  - The module does not fail if an operator cannot be installed. The result names the cause, and the check of the stage
    judges it.
  - O(state=absent) removes each operator whose C(Subscription) has the label of the collection. The order is labelled
    objects of the operator, C(ClusterServiceVersion), C(Subscription), custom resource definitions without objects,
    C(Operator), C(OperatorGroup). RV(stays) lists what remains.
  - With O(cluster) or O(fabrics), an operator stays while another intent has objects in the cluster. Node feature
    discovery stays while the SR-IOV, GPU or network operator does.
  - The GPU operator stays while pods use GPUs, and if C(disruption) of O(cluster) is V(none), because its driver goes
    from all nodes with it.
options:
  state:
    description: Whether to install O(operators), to remove the operators of the collection, or only to show which ones
      there are.
    type: str
    choices: [present, absent, shown]
    default: present
  operators:
    description: Operators to install.
    type: list
    elements: dict
    default: []
    suboptions:
      package:
        description: Name of the package in the catalog.
        type: str
        required: true
      namespace:
        description: Namespace of the operator.
        type: str
        required: true
      channel:
        description: Channel of updates. The default is that of the existing C(Subscription), and without one the
          default channel of the catalog.
        type: str
        default: ""
      version:
        description:
          - Version to install, as the name of its C(ClusterServiceVersion) or as its version. No other version is
            installed.
          - By default, the module installs the newest version of the channel once, and then leaves it as it is.
          - To upgrade an operator, set this option to the version in RV(olm.operators[].upgrade).
        type: str
        default: ""
      source:
        description: Name of the C(CatalogSource). The default is the only one that offers the package.
        type: str
        default: ""
      source_namespace:
        description: Namespace of the C(CatalogSource). The default is C(openshift-marketplace) if it has one of this
          name, and otherwise where it is.
        type: str
        default: ""
      target_namespaces:
        description: Namespaces that the operator watches. An empty list means all namespaces.
        type: list
        elements: str
        default: []
      upgrade:
        description: Whether O(operators[].version) may replace another version that is installed. If not, the operator
          stays as it is, and has failed.
        type: bool
        default: true
      operator:
        description:
          - V(gpu-operator) or V(network-operator), if the package is that operator.
          - Before an upgrade, the module then reads on which nodes of the cluster the operator restarts its driver, in
            the inventory or not, and what is against it, as M(linerate.rdma.sriov_plan) does. If anything is, the
            operator stays as it is, and has failed. The module asks again right before it approves the C(InstallPlan).
        type: str
        default: ""
  trusted_namespaces:
    description:
      - Namespaces that an admin of the cluster made for the operators.
      - In any other namespace that exists, the module makes nothing if others have rights there, or if it holds a
        C(Pod), a C(ServiceAccount) or a C(CatalogSource) before the operator is installed. It reads C(RoleBindings),
        and the roles that they name.
    type: list
    elements: str
    default: []
  packages:
    description:
      - Packages of OLM other than those of the collection, as the variable C(operators_packages) of the role
        P(linerate.rdma.operators#role). The key is the name of an operator.
      - With O(state=absent), the module recognizes an operator by the package that this option names, by the name of
        its C(ClusterServiceVersion), and by its custom resource definitions.
    type: dict
    default: {}
  nodes:
    description: Names of the nodes of the inventory, for O(operators[].operator). The default is all nodes of the run.
    type: list
    elements: str
  waivers:
    description: The variable C(rdma_waivers), for O(operators[].operator).
    type: raw
  wait_seconds:
    description: Maximum time in seconds to wait for all operators, or for each object to be gone.
    type: int
    default: 600
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.scope
  - linerate.rdma._options.progress
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    description: Can run in check mode and predict changes without making them.
    support: full
    details:
      - The module uses the dry run of the API server. It cannot predict what OLM does with new objects.
  diff_mode:
    description: Returns what changed or would change, in diff mode.
    support: full
  idempotent:
    description: A second run with the same arguments reports no change.
    support: full
"""

EXAMPLES = r"""
- name: Install an operator from the default channel of its catalog
  linerate.rdma.olm:
    operators:
      - package: sriov-network-operator
        namespace: openshift-sriov-network-operator
        source: redhat-operators
        target_namespaces: [openshift-sriov-network-operator]

- name: Remove the operators of the collection
  linerate.rdma.olm:
    state: absent
"""

RETURN = r"""
olm:
  description: State of the operators.
  returned: with O(state=present)
  type: dict
  contains:
    operators:
      description: One item for each item of O(operators).
      type: list
      elements: dict
      contains:
        package:
          description: Name of the package.
          type: str
        namespace:
          description: Namespace of its C(Subscription), or where it belongs.
          type: str
        phase:
          description: V(ready), V(waiting) if the time was over first, V(failed), or V(planned) in check mode.
          type: str
        detail:
          description: What is there, or the cause.
          type: str
        remedy:
          description: Next step. Empty if the operator is ready.
          type: str
        subscription:
          description: Namespace and name of its C(Subscription).
          type: str
        ours:
          description: Whether the C(Subscription) has the label of the collection.
          type: bool
        wanted:
          description: Name of the C(ClusterServiceVersion) that was asked for.
          type: str
        installed:
          description: Name of the C(ClusterServiceVersion) that is installed.
          type: str
        upgrade:
          description: Name of a newer one. The module does not install it by itself.
          type: str
applied:
  description: Result for each object that was removed. It has the keys of
    RV(linerate.rdma.custom_resources#module:applied).
  returned: with O(state=absent) or O(state=shown)
  type: list
  elements: dict
stays:
  description: Objects that remain.
  returned: with O(state=absent) or O(state=shown)
  type: list
  elements: dict
  contains:
    subject:
      description: Kind and name of the object.
      type: str
    why:
      description: Why it remains.
      type: str
namespaces:
  description: Namespaces in which an operator of the collection remains.
  returned: with O(state=absent) or O(state=shown)
  type: list
  elements: str
changes:
  description: One line for each object that was written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [created Subscription openshift-nfd/nfd]
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import secrets
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    format_difference,
    make_facts_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import list_nodes, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.scope import SCOPE_SPEC, read_scope
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import (
    OperatorUpgrade,
    UpgradeEffect,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.olm import DesiredOperator
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.olm import Installer
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.remove_olm import Remover
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.upgrade_effect import read_upgrade_effect

TEXT = {"type": "str", "default": ""}
OPERATOR_SPEC: dict[str, typing.Any] = {
    "package": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    **dict.fromkeys(("channel", "version", "source", "source_namespace"), TEXT),
    "target_namespaces": {"type": "list", "elements": "str", "default": []},
    "upgrade": {"type": "bool", "default": True},
    "operator": TEXT,
}


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options, cluster = module.params, connect(module)
    limit, answer = options["wait_seconds"], typing.cast(dict[str, typing.Any], {})
    outcomes: tuple[Outcome, ...] = ()
    if options["state"] == "present":
        wishes = load(tuple[DesiredOperator, ...], options["operators"], "operators")
        with hold_lease(module, cluster) as held, open_progress(options["progress_file"]) as say:
            installer = Installer(
                held.cluster,
                time.monotonic,
                time.sleep,
                say,
                lambda: secrets.token_hex(4),
                trusted=options["trusted_namespaces"],
                ask=lambda upgrade: ask(module, held.cluster, upgrade),
            )
            found, outcomes = installer.run(wishes, module.check_mode, limit)
        answer["olm"] = to_data(found)
    elif options["state"] == "absent":
        with hold_lease(module, cluster) as held:
            removed = Remover(
                held.cluster,
                module.check_mode,
                limit,
                time.monotonic,
                time.sleep,
                read_scope(options, held.cluster),
                load(ClusterIntent, options["cluster"] or {}, "rdma_cluster").disruption,
                collect_requests({}, options["packages"], []).packages,
            ).run()
        outcomes = removed.outcomes
    else:
        removed = Remover(cluster, module.check_mode, limit, time.monotonic, time.sleep).show()
    if options["state"] != "present":
        applied = to_data([outcome.applied for outcome in outcomes])
        answer.update(applied=applied, stays=to_data(removed.stays), namespaces=list(removed.namespaces))
    changes = [describe(outcome) for outcome in outcomes if outcome.changed]
    return {"changed": bool(changes), "changes": changes, "diff": format_difference(outcomes), **answer}


def ask(module: AnsibleModule, cluster: Cluster, upgrade: OperatorUpgrade) -> UpgradeEffect:
    intent = load(ClusterIntent, module.params["cluster"] or {}, "rdma_cluster")
    waivers = load(tuple[Waiver, ...], module.params["waivers"] or [], "rdma_waivers")
    return read_upgrade_effect(cluster, upgrade, list_nodes(module), intent, waivers)


def describe(outcome: Outcome) -> str:
    applied = outcome.applied
    verb = "approved" if applied.kind == "InstallPlan" else applied.action
    return f"{verb} {applied.kind} {applied.namespace + '/' if applied.namespace else ''}{applied.name}"


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            **SCOPE_SPEC,
            state={"type": "str", "choices": ["present", "absent", "shown"], "default": "present"},
            operators={"type": "list", "elements": "dict", "default": [], "options": OPERATOR_SPEC},
            trusted_namespaces={"type": "list", "elements": "str", "default": []},
            packages={"type": "dict", "default": {}},
            nodes={"type": "list", "elements": "str"},
            waivers={"type": "raw"},
            wait_seconds={"type": "int", "default": 600},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "olm", keep=("namespaces",))


if __name__ == "__main__":
    main()
