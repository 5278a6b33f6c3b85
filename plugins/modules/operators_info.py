#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: operators_info
short_description: Show which operators an intent needs, and whether they serve
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Derives from the profiles of the fabrics, from C(rdma_cluster) and from C(rdma_job) which operators are needed, and
    in which order.
  - Looks for each of them in all namespaces, whether it was installed by Helm, by OLM, as part of the NVIDIA network
    operator, or by hand.
  - Returns what is to be installed for those that are missing. It installs nothing.
  - Never returns an operator that somebody else installed. If there are two of one kind, it returns nothing to install.
options:
  job:
    description: The variable C(rdma_job). A job needs operators of its own.
    type: raw
  waivers:
    description: The variable C(rdma_waivers), for a driver that RV(configurations) would load.
    type: raw
  nodes:
    description: Nodes that take part. The default is all nodes of the run, if O(facts_dir) and O(run) are set.
    type: list
    elements: str
    default: []
  by:
    description: Who installs operators. V(auto) is OLM on OpenShift, and Helm elsewhere.
    type: str
    choices: [auto, helm, olm]
    default: auto
  charts:
    description:
      - Helm charts other than those of RV(releases) by default. The key is the name of an operator, such as
        V(node-feature-discovery).
      - Each value can have the keys C(chart), C(repository), C(version), C(namespace), C(release) and C(values).
        C(values) replaces those of the intent.
    type: dict
    default: {}
  packages:
    description:
      - Packages of OLM other than those of RV(packages) by default. The key is the name of an operator.
      - Each value can have the keys C(package), C(namespace), C(channel), C(version), C(source) and
        C(source_namespace).
    type: dict
    default: {}
  helm_binary:
    description:
      - Name or path of the Helm binary, which reads from a chart which images it names.
      - If C(rdma_cluster) has a C(mirror) and this option is not set, RV(releases) is empty.
    type: str
  leave:
    description: Operators that somebody else installs.
    type: list
    elements: str
    default: []
  install:
    description:
      - Whether RV(releases) will be installed. The module then examines their namespaces, and leaves out those that may
        be of a tenant.
      - These are a namespace in which others have rights, one with a Helm release that no C(ClusterRoleBinding) is of,
        and one that holds more than data and limits before the operator is installed.
      - To look needs the right to list all resources in these namespaces.
    type: bool
    default: false
  trusted_namespaces:
    description: Namespaces that the module does not examine, because an admin of the cluster made them for the
      operators.
    type: list
    elements: str
    default: []
  namespaces_made:
    description: With O(install), whether the namespaces have been made. One that is not there is not used then, because
      somebody else can make it at any time.
    type: bool
    default: false
  check_limit:
    description:
      - Fail if C(--limit) of C(ansible-playbook) excludes nodes of the run, and RV(drains) is true. Check mode permits
        any limit.
      - Stage C(operators) does that before its first write. It needs O(facts_dir) and O(run).
    type: bool
    default: false
  wait_seconds:
    description:
      - Maximum time in seconds to wait until the operators serve.
      - V(0) reads the state once, without a wait. The module does not fail if the time is over. The result then shows
        what is missing.
    type: int
    default: 0
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Show which operators are needed, and which of them are missing
  linerate.rdma.operators_info:
    fabrics: "{{ rdma_fabrics }}"
  register: operators_table
"""

RETURN = r"""
table:
  description: The operators that are needed, in the order in which they are installed.
  returned: success
  type: list
  elements: dict
  contains:
    operator:
      description: Its name.
      type: str
    why:
      description: What needs it.
      type: list
      elements: str
    serves:
      description: Whether it is there and serves.
      type: bool
    seen:
      description: What was seen of it, with its version and who installed it.
      type: str
    remedy:
      description: The next step. Empty if it serves.
      type: str
releases:
  description:
    - Helm releases to install or upgrade, in this order. Each has its C(operator), C(release), C(namespace), C(chart),
      C(repository), C(version), C(values), C(drains) (whether an upgrade can restart drivers of nodes), C(serves)
      (whether the operator runs, or has run) and C(pinned) (whether the user chose the chart or its version).
    - Only operators that are missing, and those that an earlier run installed. Empty if OLM installs operators.
  returned: success
  type: list
  elements: dict
namespaces:
  description: Namespaces of RV(releases), for M(linerate.rdma.custom_resources).
  returned: success
  type: list
  elements: dict
packages:
  description:
    - Packages of OLM to subscribe to, in this order. Each has its C(package), C(namespace), C(channel), C(version),
      C(source), C(source_namespace), C(target_namespaces) and C(upgrade).
    - Empty if Helm installs operators.
  returned: success
  type: list
  elements: dict
configurations:
  description: Objects without which operators that a run installed by OLM do nothing, and that are missing. For
    M(linerate.rdma.custom_resources). RV(operators.left) has those that are left to an admin.
  returned: success
  type: list
  elements: dict
absent:
  description: With O(install), namespaces of RV(releases) that are not there. For the option C(absent_namespaces) of
    M(linerate.rdma.custom_resources).
  returned: success
  type: list
  elements: str
drains:
  description: Whether an operator that restarts drivers of nodes, and drains the nodes for that, is to be installed or
    upgraded.
  returned: success
  type: bool
untrusted:
  description: Operators that are left out because of their namespace. RV(operators.untrusted) has the reasons.
  returned: success
  type: list
  elements: str
operators:
  description: What was seen.
  returned: success
  type: dict
  contains:
    olm:
      description: Whether OLM installs operators.
      type: bool
    job:
      description: What of O(job) needs operators. V(null) without a job.
      type: dict
    controllers:
      description: Deployments that run one of the operators, with their version and origin.
      type: list
      elements: dict
    configurations:
      description: Objects that configure the operators, with their state.
      type: list
      elements: dict
    packages:
      description: C(ClusterServiceVersions) and C(Subscriptions) of each operator.
      type: dict
    labelled:
      description: Nodes that have all labels that node feature discovery is needed for.
      type: list
      elements: str
    made:
      description: Operators that an earlier run installed.
      type: list
      elements: str
    drivers:
      description: What each C(NicClusterPolicy) and C(ClusterPolicy) says of its driver container.
      type: list
      elements: dict
    hosts:
      description: Operating system, kernel and architecture of the nodes that take part. They decide on the image of a
        driver container.
      type: list
      elements: dict
    errors:
      description: Objects that could not be read, each with the reason.
      type: list
      elements: str
    untrusted:
      description: Operators that are left out because of their namespace, each with its C(namespace) and the reason
        C(why).
      type: dict
    install:
      description: The value of O(install).
      type: bool
    leave:
      description: The value of O(leave).
      type: list
      elements: str
    left:
      description: Operators whose configuration object the run does not create, each with the reason C(why) and the
        C(command) that creates it.
      type: dict
    versions:
      description: Version that the module would have installed, of each operator with a known one.
      type: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import dataclasses
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
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import INTENT_SPEC
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.job import Job
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import (
    OperatorUpgrade,
    UpgradeEffect,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import (
    OperatorsSeen,
    UntrustedNamespace,
    job_needs,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.operator_namespaces import (
    examine,
    find_absent,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.operators import (
    by_olm,
    observe,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan import operators as plan
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import collect_requests
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.configurations import plan_configurations
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.mirrored_releases import on_mirror
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.upgrade_effect import read_upgrade_effect
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.wait_for_operators import (
    wait_until_all_serve,
)

#: lists that the role goes through
KEPT = ("table", "releases", "namespaces", "packages", "configurations", "untrusted", "absent")


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options, folder = module.params, find_folder(module)
    intent, wishes = (
        parse_intent(options["fabrics"], None, options["cluster"]),
        collect_requests(options["charts"], options["packages"], options["leave"]),
    )
    job = job_needs(load(Job, options["job"], "rdma_job")) if options["job"] else None
    nodes = options["nodes"] or (folder.start().nodes if folder else [])
    cluster = connect(module)
    olm = by_olm(cluster) if options["by"] == "auto" else options["by"] == "olm"

    def ask(upgrade: OperatorUpgrade) -> UpgradeEffect:
        waivers = load(tuple[Waiver, ...], options["waivers"] or [], "rdma_waivers")
        return read_upgrade_effect(cluster, upgrade, nodes, intent.cluster, waivers)

    def read_operators(on: Cluster = cluster) -> OperatorsSeen:
        found = dataclasses.replace(
            observe(on, intent, job, nodes, olm, wishes.name_packages()),
            untrusted=untrusted,
            install=options["install"],
            leave=wishes.leave,
            versions=plan.list_versions(wishes, olm),
        )
        # the wait leaves these out
        return dataclasses.replace(found, left=plan_configurations(on, intent, found, wishes, None)[1])

    untrusted: dict[str, UntrustedNamespace] = {}
    absent: tuple[str, ...] = ()
    seen = read_operators()
    if options["install"]:
        places = {
            release.operator: (release.namespace, release.release)
            for release in plan.list_releases(intent, seen, wishes)
        }
        absent = find_absent(cluster, [namespace for namespace, _release in places.values()])
        untrusted = examine(cluster, places, options["trusted_namespaces"], options["namespaces_made"])
        seen = dataclasses.replace(seen, untrusted=untrusted)
    if options["wait_seconds"] and not module.check_mode:
        with renew_lease(module, cluster), open_progress(options["progress_file"]) as say:
            seen = wait_until_all_serve(
                read_operators, intent, nodes, options["wait_seconds"], time.monotonic, time.sleep, say
            )
    releases = plan.list_releases(intent, seen, wishes)
    if intent.cluster.mirror:
        helm = options["helm_binary"]
        releases = tuple(on_mirror(release, intent.cluster.mirror, helm) for release in releases) if helm else ()
    made, left = plan_configurations(cluster, intent, seen, wishes, ask if options["install"] else None)
    seen = dataclasses.replace(seen, left=left)
    return {
        "table": list(plan.list_rows(intent, seen, nodes)),
        "releases": to_data(releases),
        "namespaces": [{"fabric": "", "object": item} for item in plan.list_namespaces(releases)],
        "packages": list(plan.list_packages(intent, seen, wishes)),
        "configurations": [{"fabric": "", "object": item} for item in made],
        "untrusted": sorted(untrusted),
        "absent": list(absent),
        "drains": plan.may_restart_drivers(intent, seen, wishes),
        "operators": to_data(seen),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **INTENT_SPEC,
            **LEASE_SPEC,
            job={"type": "raw"},
            waivers={"type": "raw"},
            nodes={"type": "list", "elements": "str", "default": []},
            by={"type": "str", "choices": ["auto", "helm", "olm"], "default": "auto"},
            charts={"type": "dict", "default": {}},
            packages={"type": "dict", "default": {}},
            helm_binary={"type": "str"},
            leave={"type": "list", "elements": "str", "default": []},
            install={"type": "bool", "default": False},
            trusted_namespaces={"type": "list", "elements": "str", "default": []},
            namespaces_made={"type": "bool", "default": False},
            check_limit={"type": "bool", "default": False},
            wait_seconds={"type": "int", "default": 0},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "needed_operators", keep=KEPT)


if __name__ == "__main__":
    main()
