#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bios_info
short_description: Show the BIOS settings that decide on SR-IOV and RDMA, by the BMC of each node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Asks many BMCs over Redfish at the same time for the settings of the BIOS that have another name with each vendor,
    such as SR-IOV and the IOMMU. Runs on the controller.
  - Finds the attributes of a setting by what the registry of the BIOS calls them on the screen. There may be several,
    and then all of them count. If the BMC has no body of that registry, a table of names of Dell, HPE, Lenovo, NVIDIA
    and Supermicro takes its place.
  - Shows of each attribute the current value, the value that waits for a reset, the allowed values, and why it cannot
    be written now. With O(wanted) it adds a state.
  - Reads the registry of each BMC from that BMC, since what a BMC says of its model and version proves nothing for
    another one.
  - A BMC that gives no answer is an entry with an error of its own, which names the cause. It neither fails the module
    nor delays the others.
  - Only sends GET. It opens no session on a BMC, and uses no proxy.
options:
  keys:
    description: Settings to show.
    type: list
    elements: str
    choices: [sriov, iommu, acs, ari, above_4g, numa_per_socket, smt, c_states, relaxed_ordering, max_read_request,
      profile]
    default: [sriov, iommu, acs, ari, above_4g, numa_per_socket, smt, c_states, relaxed_ordering, max_read_request,
      profile]
  wanted:
    description:
      - Wanted value of each key, or a list of values, each of which is right. A key that is missing here is shown and
        not judged.
      - V(true) and V(false) stand for on and off in the words of each vendor. V(numa_per_socket) and
        V(max_read_request) take numbers. Other texts are compared with the names of the value in the registry, whatever
        their case.
      - A value that says neither on nor off, such as C(Auto), is unknown.
    type: dict
    default: {}
  seconds:
    description: Limit for all answers of one BMC together. A BMC that answers nothing at all is given up after 10
      seconds.
    type: float
    default: 60
extends_documentation_fragment:
  - linerate.rdma._options.bmcs
  - linerate.rdma._options.facts
  - linerate.rdma._attributes.reads
notes:
  - Keep passwords in a vault, in the environment, or in a credential of AWX that sets the environment. They never
    appear in results, facts or errors.
  - P(community.general.redfish_info#module) shows all attributes of one BIOS with their current values by its command
    C(GetBiosAttributes), and suits to look at one BMC. It shows neither pending values nor jobs. Its command
    C(GetBiosRegistries) opens the registry by the name in C(Bios), which is not that of a registry on some BMCs, and
    missing on others.
  - It does not find an attribute by what it is called on the screen, or ask many BMCs in one task.
seealso:
  - module: linerate.rdma.bios
    description: Sets them.
  - module: linerate.rdma.node_info
    description: Shows what of SR-IOV and the IOMMU has arrived in the kernel of a node.
"""

EXAMPLES = r"""
- name: Is SR-IOV switched on in the BIOS of each node?
  linerate.rdma.bios_info:
    bmcs:
      - {node: worker-1, address: worker-1-bmc.example.com}
      - {node: worker-2, address: 192.0.2.12, user: root, password: "{{ worker_2_bmc_password }}"}
    user: "{{ bmc_user }}"
    password: "{{ bmc_password }}"
    ca_path: /etc/pki/bmc-ca.pem
    wanted: {sriov: true, iommu: true, profile: [PerfOptimized, MaximumPerformance]}
  register: bios

- name: Show those that are not as wanted
  ansible.builtin.debug:
    msg: "{{ bios.bmcs | selectattr('error') | map(attribute='error') | list }} {{ bios.states }}"
"""

RETURN = r"""
bmcs:
  description: One entry for each BMC, in the order of O(bmcs).
  returned: unless O(facts_dir) and O(run) are set
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      type: str
    error:
      description: Why there is no answer, and what to do. Empty if there is one.
      type: str
    cause:
      description:
        - Kind of the error, V(address), V(controller), V(no_route), V(refused), V(timeout), V(closed), V(tls),
          V(tls_expired), V(tls_authority), V(tls_name), V(tls_pin), V(password), V(rights), V(not_found), V(busy),
          V(status), V(not_json), V(too_large) or V(not_understood).
        - Empty if there is no error.
      type: str
    bios:
      description: What the BMC says. V(null) with an error.
      type: dict
      contains:
        vendor:
          description: Manufacturer of the system.
          type: str
        model:
          description: Model of the system.
          type: str
        version:
          description: Version of the BIOS.
          type: str
        registry:
          description: Path of the registry of attributes. Empty if its body is missing; C(registry_error) then says
            why.
          type: str
        registry_error:
          description: Why there is no registry.
          type: str
        settings_uri:
          description: Path of the resource that takes new values.
          type: str
        apply_times:
          description: When the BMC can apply new values.
          type: list
          elements: str
        jobs:
          description: Jobs that hold the BIOS. V(null) if the BMC has no such jobs or they could not be read.
          type: list
          elements: dict
        lockdown:
          description: Whether the BMC refuses all changes. V(null) if it has no such mode or does not say.
          type: bool
        last_apply:
          description: What went wrong when values were applied last. Empty if nothing did, or if the BMC does not say
            so.
          type: str
        others_pending:
          description: Names of other BIOS attributes that have a value which the next reset applies.
          type: list
          elements: str
        pending_error:
          description: Why the pending values are not known.
          type: str
        errors:
          description: Other parts that could not be read.
          type: list
          elements: str
        identity:
          description: C(uuid) and C(serials) of the system, as the BMC tells them. What boards have whose maker has set
            none is left out.
          type: dict
        asserted:
          description: Whether O(bmcs[].identity) says that the BMC is that of the node.
          type: bool
        settings:
          description:
            - One entry for each key with its C(attributes), each with C(name), C(display_name), C(current), C(pending),
              C(allowed), C(read_only) and C(reset_required). C(read_only) is the reason why it cannot be written now.
            - C(looked_for) lists the patterns of display names, or the names, that were compared.
          type: list
          elements: dict
    states:
      description:
        - One entry for each wanted key, with C(key), C(state), C(wanted), C(measured), C(why) and C(job).
        - C(state) is V(ok) if the value is as wanted and nothing else waits for a reset, V(pending) if the next reset
          makes it so, V(wrong), V(read_only) if it is wrong and cannot be written now, and V(unknown) if the attribute
          was not found or its value does not say.
      type: list
      elements: dict
states:
  description: Number of settings of all nodes in each state.
  returned: success
  type: dict
  sample: {ok: 1998, wrong: 1, pending: 0, read_only: 0, unknown: 1}
asked:
  description: Number of BMCs.
  returned: success
  type: int
  sample: 1000
unanswered:
  description: Number of BMCs that gave no answer.
  returned: success
  type: int
  sample: 0
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import list_states
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import (
    collect_wanted_by_node,
    list_bmcs,
    make_bmc_spec,
    read_claims,
    read_trust,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import find_folder
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import OBSERVER_SPEC, run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import KEYS, STATES
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.read_bios import (
    SECONDS,
    BiosQuery,
    read,
)


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options, folder = module.params, find_folder(module)
    bmcs, wanted = list_bmcs(module), collect_wanted_by_node(module)
    counts = dict.fromkeys(STATES, 0)
    shown: dict[str, typing.Any] = {}
    unanswered = 0
    keys = tuple(key for key in KEYS if key in options["keys"] or any(key in one for one in wanted.values()))
    asked = BiosQuery(keys, options["seconds"], read_claims(module, bmcs))
    for bmc, outcome in read(bmcs, read_trust(options), asked, options["parallel"]):
        error = outcome if isinstance(outcome, BmcError) else None
        bios = None if isinstance(outcome, BmcError) else outcome
        judged = list_states(bios, wanted[bmc.node]) if bios else ()
        unanswered += error is not None
        for one in judged:
            counts[one.state] += 1
        if folder:
            folder.write("bios", bmc.node, bios, f"failed: {error}" if error else None)
        else:
            shown[bmc.node] = {
                "node": bmc.node,
                "error": str(error or ""),
                "cause": error.cause if error else "",
                **to_data({"bios": bios, "states": judged}),
            }
    result = {"states": counts, "asked": len(bmcs), "unanswered": unanswered}
    return result if folder else {**result, "bmcs": [shown[bmc.node] for bmc in bmcs]}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_bmc_spec(
            SECONDS,
            keys={"type": "list", "elements": "str", "choices": list(KEYS), "default": list(KEYS), "no_log": False},
            wanted={"type": "dict", "default": {}},
            **OBSERVER_SPEC,
        ),
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
