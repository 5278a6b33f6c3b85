#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_collectives
short_description: Run collectives of NCCL in pods on the nodes
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Starts one pod per node with the GPUs of the node and an interface on each rail of the fabric. The pods are in the
    namespace C(linerate-measure), which the module creates and removes, and into which it copies the network of the
    fabric. A C(NetworkPolicy) there admits connections to the pods from pods of the same run only. The CNI must enforce
    it, because C(mpirun) takes commands from any pod that reaches it.
  - Runs the programs of nccl-tests that C(rdma_cluster.collectives) names, one collective after the other. C(mpirun)
    runs in the pod of the first node of a group. The module starts its daemons in the other pods, so that the image
    needs no sshd.
  - Begins with each node alone, then runs two nodes rail by rail, all nodes of a leaf, one node of each leaf, and all
    nodes. Each step takes only nodes that the steps before have proven. If a group is slow, it is halved rail by rail
    until a port, node, leaf, uplink or rail is named.
  - At the end repeats the smallest slow group of each collective, with one variable of NCCL changed each time. It makes
    only changes that the log and the facts make plausible, 6 at most.
  - Reads the log of NCCL of every rank. A figure counts only if the log proves its transport, so the module keeps both.
  - Needs the facts of stage bandwidth in O(facts_dir) for the floors, and those of stage fabric for the leaves. On
    Ethernet, the leaves come from the intent or from what the nodes heard by LLDP.
  - Every command has a time limit inside and outside of the pod.
  - Always removes the pods, also after an interrupt. Removes and reports pods that an earlier run left.
  - Does not fail if a test fails. The check of the stage judges the result.
options:
  rails:
    description:
      - Rail of each HCA, by fabric, node and PCI address. The default comes from the facts of the run, if O(facts_dir)
        and O(run) are set.
    type: dict
    default: {}
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.pods
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
      - The module starts no pod and runs nothing. Each pod in the result has an error that says so.
  diff_mode:
    support: N/A
    details:
      - The module removes everything that it creates.
  idempotent:
    details:
      - Only the removal of pods that an earlier run left is a change.
"""

EXAMPLES = r"""
- name: Run collectives on all nodes of the run
  linerate.rdma.rdma_collectives:
    fabrics: "{{ rdma_fabrics }}"
    cluster: "{{ rdma_cluster }}"
    nodes: "{{ groups['rdma_nodes'] }}"
  register: collectives_ran
"""

RETURN = r"""
changes:
  description: One line for each removed pod of an earlier run.
  returned: success
  type: list
  elements: str
collectives:
  description: The tests.
  returned: success
  type: dict
  contains:
    fabric:
      description: Name of the fabric.
      type: str
    pods:
      description: The pod of each node with its host name and its HCAs, or the reason why it could not be used.
      type: list
      elements: dict
    runs:
      description:
        - Each test with its nodes, the figures that nccl-tests printed, and what the log of NCCL shows of each rank.
        - If a test failed, the kind of the failure and the output line that shows it.
      type: list
      elements: dict
    announced:
      description: Number of tests that were announced, if nothing is slow.
      type: int
    ended:
      description: Reason why the tests ended before the last one. Empty if they did not.
      type: str
    leftovers:
      description: Pods of an earlier run that were removed at the start.
      type: list
      elements: str
    remaining:
      description: Pods that could not be removed.
      type: list
      elements: str
steps:
  description: The bus bandwidths of the proven groups of each step of each collective, in GB/s.
  returned: success
  type: list
  elements: dict
  contains:
    fabric:
      description: Name of the fabric.
      type: str
    test:
      description: Name of the collective.
      type: str
    kind:
      description: Name of the step.
      type: str
    nodes:
      description: Number of nodes of each group.
      type: int
    groups:
      description: Number of groups that are proven.
      type: int
    worst:
      description: Bus bandwidth of the slowest group.
      type: float
    median:
      description: Bus bandwidth of the group in the middle.
      type: float
    best:
      description: Bus bandwidth of the fastest group.
      type: float
latencies:
  description: The latencies of small messages over the proven pairs of nodes, in microseconds. Empty unless the intent
    has C(latency).
  returned: success
  type: list
  elements: dict
  contains:
    fabric:
      description: Name of the fabric.
      type: str
    test:
      description: Name of the collective.
      type: str
    pairs:
      description: Number of pairs that are proven.
      type: int
    best:
      description: Mean of the fastest pair.
      type: float
    median:
      description: Mean of the pair in the middle.
      type: float
    worst:
      description: Mean of the slowest pair.
      type: float
    p99:
      description: Highest 99th percentile of the pairs. C(null) if nccl-tests prints none.
      type: float
earlier:
  description:
    - The medians of the same steps in the kept runs below O(facts_dir) that were asked for the same collectives over
      the same fabrics.
  returned: if O(facts_dir) and O(run) are set and something ran
  type: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import dataclasses
import resource
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    end_by_interrupt,
    make_pods_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    find_folder,
    find_rails,
    list_excluded_nodes,
    list_nodes,
    read_observers,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.check import Facts, judge_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.latency import summarize_latencies
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.trend import summarize_group_figures
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.wanted import pick_fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Fabric, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.collectives import (
    Collectives,
    CollectivesFacts,
    LatencyFigures,
    StepFigures,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.collectives import (
    CollectivesRun,
    list_excluded,
    make_unstarted_facts,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import (
    MeasuringNamespace,
    prepare_measurement,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import NOT_CHECKED, Plan
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.removal import remove_pods
from ansible_collections.linerate.rdma.plugins.module_utils._store.earlier_collectives import read_earlier_collectives


def answer(
    facts: CollectivesFacts,
    steps: typing.Sequence[StepFigures] = (),
    latencies: typing.Sequence[LatencyFigures] = (),
) -> dict[str, typing.Any]:
    """Return the result of the module: the pods, the tests, a summary and the changes.

    :param facts: results of all tests
    :param steps: proven figures of each step of the collectives
    :param latencies: proven latencies of small messages
    """
    changes = [f"removed leftover pod {name}" for name in facts.leftovers]
    return {
        "changed": bool(changes),
        "collectives": to_data(facts),
        "steps": to_data(tuple(steps)),
        "latencies": to_data(tuple(latencies)),
        "changes": changes,
    }


def _require_collectives(intent: Intent) -> tuple[Collectives, Fabric]:
    """Return two objects: the settings of the collectives in the intent, and the fabric over which they run.

    :raises RdmaError: the intent has no collectives, or does not determine their fabric
    """
    wanted = intent.cluster.collectives
    fabric = pick_fabric(wanted, intent.fabrics) if wanted is not None else None
    if wanted is None or fabric is None:
        seen = (
            "rdma_cluster.collectives is not set"
            if wanted is None
            else "rdma_cluster.collectives.fabric names no fabric with RDMA"
        )
        raise RdmaError(seen, "Set it as docs/intent.md describes")
    return wanted, fabric


def _seen(module: AnsibleModule) -> Facts:
    """Return the facts of the run about the rates of the rails and the topology of the nodes. Return empty facts if the
    task names no folder of facts.
    """
    folder = find_folder(module)
    if folder is None:
        return Facts()
    data, _counts = read_facts(
        folder, "collectives", ("nodes", "bandwidth", "hcas", "subnets", "topologies", "tunings", "neighbours")
    )
    seen: Facts = load(Facts, data, "facts")
    return seen


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    """Run the collectives of the intent, and return the result of the module: the pods, the tests and the changes. In
    check mode, or if ``--limit`` excludes all nodes, nothing is run and each pod is reported as not started.
    """
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    wanted, fabric = _require_collectives(intent)
    plan = Plan(
        (fabric,), intent.cluster, list_nodes(module), find_rails(module, intent), pod_seconds=options["pod_seconds"]
    )
    excluded = list_excluded(list_excluded_nodes(module))
    if module.check_mode or (excluded and not plan.nodes):
        unstarted = make_unstarted_facts(plan, NOT_CHECKED)
        return answer(dataclasses.replace(unstarted, pods=(*unstarted.pods, *excluded)))
    # some connections for each pod of a round at once, where 1024 files are all that a process may usually have open
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    seen, folder = _seen(module), find_folder(module)
    observers = read_observers(folder)
    # before it runs: what can't be read then costs no test
    before = {} if folder is None else {"earlier": to_data(read_earlier_collectives(folder))}
    with hold_lease(module, connect(module)) as held, open_progress(options["progress_file"]) as say:
        swept = remove_pods(held.cluster, plan.pod_seconds, time.monotonic, time.sleep, say)
        place = MeasuringNamespace(held.cluster, held.run, plan.pod_seconds, time.monotonic, time.sleep)
        with prepare_measurement(place, held.cluster, plan.fabrics, plan.cluster, held.run) as seats:
            there = dataclasses.replace(plan, fabrics=seats.fabrics, refused=seats.refused, run=held.run)
            facts = CollectivesRun(held.cluster, there, wanted, time.monotonic, time.sleep, say, seen, observers).run()
    facts = dataclasses.replace(facts, pods=(*facts.pods, *excluded), leftovers=(*swept, *facts.leftovers))
    judged = judge_facts(intent, dataclasses.replace(seen, collectives=facts))
    steps = summarize_group_figures(fabric.name, judged.figures)
    return {**answer(facts, steps, summarize_latencies(fabric.name, judged.latencies)), **before}


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(
        argument_spec=make_pods_spec(
            **LEASE_SPEC,
            rails={"type": "dict", "default": {}},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "collectives")


if __name__ == "__main__":
    main()
