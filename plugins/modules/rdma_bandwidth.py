#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_bandwidth
short_description: Measures RDMA, or TCP where there is none, between pods on the nodes
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Starts one pod a node and rail, each with one interface on the fabric, and finds the RDMA device, the address and the HCA of each.
  - The fabrics come one after the other, so that the nodes hold the pods of one of them at a time.
  - First rping proves the RDMA connection of a pair, then ib_write_bw measures. Pairs that share no node are measured at once, in rounds.
  - Where a network has no RDMA by intent, and its pods no RDMA device, iperf3 measures TCP.
  - An end whose pairs fail is measured again with partners that passed, until it is clear which end is at fault.
  - One connection to each pod serves all that runs in it, so that the API server is not asked again for each measurement.
  - The exit code of each command decides whether it failed, whatever it printed. A zero, inf or nan is no measurement.
  - Every command is bounded inside the pod and outside.
  - The pods are removed in any case, also after an interrupt. Pods that an earlier run left behind are removed first and reported.
  - A failed measurement is no failure of the module; it is in the result for the check of the stage to judge.
options:
  rails:
    description:
      - Which HCA is on which rail, by fabric, node and PCI address. The default is what the facts of the run show, with O(facts_dir).
      - A node that is missing has one rail, of whatever HCA.
    type: dict
    default: {}
  parallel:
    description: How many pairs of a round are measured at once, at most. Each takes a thread of the controller and the processors of its own nodes only.
    type: int
    default: 512
  progress_file:
    description: File to which a line is added for each pod and pair. Without it the lines go to Ansible's output.
    type: path
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.pods
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Starts no pod and measures nothing; each pod is returned with that as its error.
  diff_mode:
    support: N/A
    description: Nothing that it makes stays.
  idempotent:
    support: full
    description: It leaves the cluster as it was. Only the removal of an earlier run's pods is a change.
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
changes:
  description: One line for each pod of an earlier run that was removed.
  returned: success
  type: list
  elements: str
fabrics:
  description: The figures of each fabric that has some, in Gb/s.
  returned: success
  type: list
  elements: dict
bandwidth:
  description: What was measured.
  returned: success
  type: dict
  contains:
    pods:
      description: Each pod with its rail, RDMA device, address, port rate and PCIe rate in Gb/s, or why it could not be used.
      type: list
      elements: dict
    pairs:
      description: Each ordered pair with its transport, round trips, average and peak in Gb/s, or the kind of failure and the line that shows it.
      type: list
      elements: dict
    leftovers:
      description: Pods of an interrupted earlier run that were removed first.
      type: list
      elements: str
    remaining:
      description: Pods that could not be removed.
      type: list
      elements: str
    plans:
      description: Of each fabric the rounds that were planned, out of how many, and the seconds that they take as a rule and at most.
      type: list
      elements: dict
"""

import dataclasses
import resource
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.check import NOTHING, Facts, sound
from ansible_collections.linerate.rdma.plugins.module_utils._check.compare.check import bandwidths
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, end_by_interrupt, pods_spec, progress
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import folder_of, nodes_of, rails_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._folder import facts_of
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measure_pairs import Bench, plans_of
from ansible_collections.linerate.rdma.plugins.module_utils._run.pods import NOT_CHECKED, Plan, unstarted


def answer(facts: BandwidthFacts, figures: typing.Optional[BandwidthFacts] = None) -> typing.Dict[str, typing.Any]:
    """:param figures: the same without figures that are no measurement"""
    changes = [f"removed leftover pod {name}" for name in facts.leftovers]
    return {"changed": bool(changes), "bandwidth": to_data(facts), "fabrics": to_data(bandwidths(figures or facts)), "changes": changes}


def _seen(module: AnsibleModule) -> Facts:
    """What is known of the links of the HCAs, where there is a folder of facts."""
    folder = folder_of(module)
    if folder is None:
        return NOTHING
    data, _counts = facts_of(folder, "bandwidth", ("nodes", "hcas", "subnets", "topologies"))
    seen: Facts = load(Facts, data, "facts")
    return seen


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    plan = Plan(intent.fabrics, intent.cluster, nodes_of(module), rails_of(module, intent), options["parallel"], options["pod_seconds"])
    if module.check_mode:
        return answer(BandwidthFacts(unstarted(plan, NOT_CHECKED), (), plans=plans_of(plan)))
    # two connections or so for each pair at once, where 1024 files are all that a process may usually have open
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    seen = _seen(module)
    with working(module, connect(module)) as held, progress(options["progress_file"]) as say:
        facts = Bench(held.cluster, dataclasses.replace(plan, run=held.run), time.monotonic, time.sleep, say, seen).run()
    return answer(facts, sound(intent.fabrics, facts, seen))


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(
        argument_spec=pods_spec(
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
