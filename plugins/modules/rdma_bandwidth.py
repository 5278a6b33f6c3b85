#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_bandwidth
short_description: Measure the RDMA or TCP bandwidth between pods on the nodes
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Starts one pod per node and rail, each with one interface on the fabric. The pods are in the namespace
    C(linerate-measure), which the module creates and removes, and into which it copies the network of each fabric. A
    network that differs from O(fabrics) is not copied. A C(NetworkPolicy) there admits connections to the pods from
    pods of the same run only.
  - Finds the RDMA device, the address and the HCA of each pod.
  - Measures the fabrics one after the other, so that the nodes run the pods of only one fabric at a time.
  - First, C(rping) verifies the RDMA connection of a pair. Then C(ib_write_bw) measures the pair. Pairs without a
    common node are measured in parallel, in rounds.
  - Measures TCP with C(iperf3) if a network has no RDMA by intent and its pods have no RDMA device.
  - With more than 16 nodes on InfiniBand, or with C(rounds) V(auto) in O(fabrics), measures the rounds that use each
    link of the fabric in both directions, and then the suspected links alone. This needs the facts of stage fabric in
    O(facts_dir).
  - On Ethernet with RDMA it does so if O(facts_dir) has the facts C(neighbours) of M(linerate.rdma.node_info), and the
    ports of most nodes hear a switch. Each flow has a flow label of its own then, if perftest in the pods has the
    option C(--flow_label).
  - If the pairs of an HCA fail, measures it again with partners that passed, until it is clear which end is at fault.
  - Measures suspect pairs again from the physical function on the host to the pod if the run has observers, as
    C(layers) in O(fabrics) says. On the hosts, the observers run C(ib_write_bw).
  - Measures again, with the counters of the ports on the way read before and after, where the measurements of
    InfiniBand name no link and the run has an observer on the node that saw the fabric. This observer runs
    C(perfquery).
  - Uses one connection to each pod for all commands in the pod, to limit the load on the API server.
  - The exit code of a command decides whether it failed, whatever its output. A result of zero, inf or nan is not a
    measurement.
  - Every command has a time limit inside and outside of the pod.
  - Always removes the pods, also after an interrupt. Removes and reports pods that an earlier run left.
  - Does not fail if a measurement fails. The check of the stage judges the result.
options:
  rails:
    description:
      - Rail of each HCA, by fabric, node and PCI address. The default comes from the facts of the run, if O(facts_dir)
        and O(run) are set.
      - A node without an entry has one rail, and any of its HCAs can be used.
    type: dict
    default: {}
  parallel:
    description:
      - Maximum number of pairs of a round to measure at the same time.
      - Each pair needs one thread on the controller, and CPU time only on its own two nodes.
    type: int
    default: 512
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
      - The module starts no pod and measures nothing. Each pod in the result has an error that says so.
  diff_mode:
    support: N/A
    details:
      - The module removes everything that it creates.
  idempotent:
    details:
      - Only the removal of pods that an earlier run left is a change.
"""

EXAMPLES = r"""
- name: Measure each pair of nodes
  linerate.rdma.rdma_bandwidth:
    fabrics: "{{ rdma_fabrics }}"
    cluster: "{{ rdma_cluster }}"
    nodes: "{{ groups['rdma_nodes'] }}"
    rails: {compute: {worker-1: {"0000:3c:00.0": 0}, worker-2: {"0000:3c:00.0": 0}}}
  register: bandwidth_measured
"""

RETURN = r"""
earlier:
  description:
    - The figures of the runs that are kept in the same folder and were asked for the same fabrics.
    - C(runs) has their names, C(unread) those of runs that cannot be read.
  returned: if O(facts_dir) and O(run) are set, and not in check mode
  type: dict
changes:
  description: One line for each removed pod of an earlier run.
  returned: success
  type: list
  elements: str
fabrics:
  description: Bandwidth of each fabric that has a measurement, in Gb/s.
  returned: success
  type: list
  elements: dict
bandwidth:
  description: The measurements.
  returned: success
  type: dict
  contains:
    pods:
      description: Each pod with its rail, RDMA device, address, port rate and PCIe rate in Gb/s, or the reason why it
        could not be used.
      type: list
      elements: dict
    pairs:
      description:
        - Each ordered pair with its transport, its round trips, and its average and peak bandwidth in Gb/s.
        - If a pair failed, the kind of the failure and the output line that shows it.
        - C(wider) is the second figure of a pair that was too slow, with more queue pairs and larger messages, or the
          reason why there is none.
        - C(errors) has the error counters of both RDMA devices of a pair on RoCE, how much they rose, or the reason why
          they are unknown.
      type: list
      elements: dict
    layers:
      description:
        - Each pair that was measured layer by layer, with a figure in Gb/s for each step or the reason why there is
          none, and what is known of both ends.
      type: list
      elements: dict
    counted:
      description:
        - Each pair that was measured with counters of ports. For each port, how much its counters rose, which were
          cleared, or why it was not read.
      type: list
      elements: dict
    latencies:
      description: Each pair whose latency was measured, with median and p99 in us, or the kind of the failure.
      type: list
      elements: dict
    leftovers:
      description: Pods of an earlier run that were removed at the start.
      type: list
      elements: str
    remaining:
      description: Pods that could not be removed.
      type: list
      elements: str
    plans:
      description:
        - For each fabric, the number of planned rounds, the number of possible rounds, and their typical and maximum
          duration in seconds.
        - C(cover) says how many directions of links rounds of V(auto) use. C(why) says why they are rounds of pairs
          instead.
      type: list
      elements: dict
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
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.facts import NOTHING, Facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.results import keep_valid_results
from ansible_collections.linerate.rdma.plugins.module_utils._check.compare.check import list_bandwidths
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measure_pairs import BandwidthRun
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import (
    MeasuringNamespace,
    prepare_measurement,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import (
    NOT_CHECKED,
    Plan,
    list_all_unstarted,
    list_excluded,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.removal import remove_pods
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.round_plans import plan_rounds
from ansible_collections.linerate.rdma.plugins.module_utils._store.earlier import read_earlier_figures


def answer(facts: BandwidthFacts, figures: typing.Optional[BandwidthFacts] = None) -> dict[str, typing.Any]:
    """Return the result of the module: the measurements, a summary of each fabric, and the changes.

    :param facts: all measurements of the run
    :param figures: the measurements without pairs whose figure is not valid, for the summary of each fabric; None for
        all
    """
    changes = [f"removed leftover pod {name}" for name in facts.leftovers]
    return {
        "changed": bool(changes),
        "bandwidth": to_data(facts),
        "fabrics": to_data(list_bandwidths(figures or facts)),
        "changes": changes,
    }


def _read_link_facts(module: AnsibleModule) -> Facts:
    """Return the facts of the run about the links of the HCAs. Return empty facts if the task names no folder for facts
    of runs.
    """
    folder = find_folder(module)
    if folder is None:
        return NOTHING
    data, _counts = read_facts(folder, "bandwidth", ("nodes", "hcas", "subnets", "topologies", "neighbours"))
    seen: Facts = load(Facts, data, "facts")
    return seen


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    plan = Plan(
        intent.fabrics,
        intent.cluster,
        list_nodes(module),
        find_rails(module, intent),
        options["parallel"],
        options["pod_seconds"],
    )
    excluded = list_excluded(plan, list_excluded_nodes(module))
    if module.check_mode:
        pods = (*list_all_unstarted(plan, NOT_CHECKED), *excluded)
        return answer(BandwidthFacts(pods, (), plans=plan_rounds(plan, _read_link_facts(module))))
    if excluded and not plan.nodes:
        return answer(BandwidthFacts(excluded, ()))
    # two connections or so for each pair at once, where 1024 files are all that a process may usually have open
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    seen, folder = _read_link_facts(module), find_folder(module)
    # before it measures: what can't be read then costs no measurement
    before = {} if folder is None else {"earlier": to_data(read_earlier_figures(folder))}
    observers = read_observers(folder)
    with hold_lease(module, connect(module)) as held, open_progress(options["progress_file"]) as say:
        swept = remove_pods(held.cluster, plan.pod_seconds, time.monotonic, time.sleep, say)
        place = MeasuringNamespace(held.cluster, held.run, plan.pod_seconds, time.monotonic, time.sleep)
        with prepare_measurement(place, held.cluster, plan.fabrics, plan.cluster, held.run) as seats:
            there = dataclasses.replace(plan, fabrics=seats.fabrics, refused=seats.refused, run=held.run)
            facts = BandwidthRun(held.cluster, there, time.monotonic, time.sleep, say, seen, observers).run()
    facts = dataclasses.replace(facts, pods=(*facts.pods, *excluded), leftovers=(*swept, *facts.leftovers))
    return {**answer(facts, keep_valid_results(intent.fabrics, facts, seen)), **before}


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(
        argument_spec=make_pods_spec(
            **LEASE_SPEC,
            rails={"type": "dict", "default": {}},
            parallel={"type": "int", "default": 512},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "bandwidth")


if __name__ == "__main__":
    main()
