#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bios
short_description: Set the BIOS settings that decide on SR-IOV and RDMA, through the BMC of each node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Sets settings of the BIOS that have another name with each vendor, on many nodes at the same time, over Redfish.
    Runs on the controller.
  - Finds the attributes of a setting as M(linerate.rdma.bios_info) does, and writes each value in the words of that
    BIOS.
  - Before each write the module reads the UUID and the serial number of the system behind the BMC again, and compares
    them with O(bmcs[].uuid) and O(bmcs[].serial). It writes nothing to a BMC that is that of another machine, that two
    nodes share, or that cannot be compared, unless O(bmcs[].identity) says V(asserted) for the last case.
  - Holds no C(Lease), because it needs no cluster and resets no node. Do not use it beside a run with
    C(platform_settle).
  - Never resets a node. RV(bmcs[].reset_required) says that something waits for a reset. Drain the node, then reset it.
  - Is idempotent before the reset, too. A value that waits counts, unless the BMC would only apply it by a job and has
    none.
  - Writes nothing to a BMC if one thing that is wanted of it is not to be had, such as an attribute that is missing or
    read-only, a value that is not allowed, a job that holds the BIOS, or lockdown.
  - Has new values applied at the next reset, if the BMC supports that time. An iDRAC then makes a job for them.
  - Sends the ETag of what it read. If somebody else has changed the settings since, it reads and decides once more. The
    second time is an error.
  - Reads what waits after each write. A BMC that says yes and keeps nothing is an error.
  - A BMC with an error does not delay the others. The module fails at the end, and RV(bmcs) has all results.
options:
  wanted:
    description:
      - Value of each key, or a list of values, each of which is right. The first one that the BIOS has is written.
      - The keys are C(sriov), C(iommu), C(acs), C(ari), C(above_4g), C(numa_per_socket), C(smt), C(c_states),
        C(relaxed_ordering), C(max_read_request) and C(profile).
      - V(true) and V(false) stand for on and off in the words of each vendor. V(numa_per_socket) and
        V(max_read_request) take numbers. Other texts are words of the BIOS, whatever their case.
      - A setting that says neither on nor off, such as C(Auto), is set.
    type: dict
    default: {}
  seconds:
    description: Limit for all answers of one BMC together, which is read twice. A BMC that answers nothing at all is
      given up after 10 seconds.
    type: float
    default: 120
extends_documentation_fragment:
  - linerate.rdma._options.bmcs
  - linerate.rdma._attributes.changes
notes:
  - Keep passwords in a vault, in the environment, or in a credential of AWX that sets the environment. They never
    appear in results or errors.
  - P(community.general.redfish_config#module) with its command C(SetBiosAttributes) sends an ETag and can set any
    attribute by its name. It compares with the current values only, so that it is not idempotent before the reset. It
    warns of an attribute that is unknown, and does not look into the registry. It sets a time on Dell servers only. Use
    it for attributes that this module has no key for.
  - The module C(dellemc.openmanage.idrac_bios) checks values by the registry, counts what waits, makes, follows and
    deletes jobs, and resets a server. It sets Dell servers only, one for each task, and needs the names of the
    attributes. Use it where a job has to be deleted or followed to its end.
  - Neither of them reads after a write whether the value waits.
seealso:
  - module: linerate.rdma.bios_info
    description: Shows what is set, and what waits.
  - module: community.general.redfish_command
    description: Resets a node.
"""

EXAMPLES = r"""
- name: Switch on SR-IOV and the IOMMU in the BIOS of each node
  linerate.rdma.bios:
    bmcs:
      - {node: worker-1, address: worker-1-bmc.example.com, uuid: "{{ hostvars['worker-1'].ansible_product_uuid }}"}
      - {node: worker-2, address: 192.0.2.12, user: root, password: "{{ worker_2_bmc_password }}", identity: asserted}
    user: "{{ bmc_user }}"
    password: "{{ bmc_password }}"
    ca_path: /etc/pki/bmc-ca.pem
    wanted: {sriov: true, iommu: true, profile: [PerfOptimized, MaximumPerformance]}
  register: bios

- name: Show the nodes that have to be reset
  ansible.builtin.debug:
    msg: "{{ bios.bmcs | selectattr('reset_required') | map(attribute='node') | list }}"
"""

RETURN = r"""
bmcs:
  description: One entry for each BMC, in the order of O(bmcs).
  returned: always
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      type: str
    changed:
      description: Whether something was written.
      type: bool
    reset_required:
      description: Whether something that is wanted waits for a reset.
      type: bool
    job:
      description: ID of the job that applies it. Empty if the BMC needs none.
      type: str
    writes:
      description: Each new value with its C(key), C(attribute), C(before), C(after) and C(reset_required). C(before) is
        the value that waited, if any.
      type: list
      elements: dict
    error:
      description: Why nothing was set, and what to do. Empty if there is no error.
      type: str
    cause:
      description:
        - Kind of the error. Each cause of M(linerate.rdma.bios_info), or one of these.
        - V(attribute) if there is no such attribute, V(value) if the attribute cannot have the value, V(read_only) if
          it cannot be written now, V(lockdown) if the BMC refuses all changes, and V(job) if a job holds the BIOS. Then
          nothing was written.
        - V(identity) if the BMC is not proven to be that of the node. Then nothing was written.
        - V(changed) if somebody else changes the settings at the same time, V(not_taken) if the BMC refused the values,
          and V(not_kept) if it said yes and a value neither holds nor waits.
        - Empty if there is no error.
      type: str
reset_required:
  description: Number of nodes on which something waits for a reset.
  returned: always
  type: int
  sample: 2
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import (
    collect_wanted_by_node,
    list_bmcs,
    make_bmc_spec,
    read_claims,
    read_trust,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import BiosChange
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.guard import Guard
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import BmcError
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.bios.set_bios import SECONDS, May, set_all

Result = dict[str, typing.Any]


def make_result(node: str, outcome: typing.Union[BiosChange, BmcError]) -> Result:
    if isinstance(outcome, BmcError):
        return {"node": node, **to_data(BiosChange()), "changed": False, "error": str(outcome), "cause": outcome.cause}
    return {"node": node, **to_data(outcome), "changed": bool(outcome.writes), "error": "", "cause": ""}


def diff_of(one: Result) -> Result:
    before, after = ({write["attribute"]: write[name] for write in one["writes"]} for name in ("before", "after"))
    return {"before_header": one["node"], "after_header": one["node"], "before": before, "after": after}


def work(module: AnsibleModule) -> Result:
    options, bmcs, wanted = module.params, list_bmcs(module), collect_wanted_by_node(module)
    may = May(read_claims(module, bmcs), Guard.unfenced(options["seconds"]))
    outcomes = set_all(
        bmcs, wanted, read_trust(options), may, module.check_mode, options["parallel"], options["seconds"]
    )
    by_node = {bmc.node: make_result(bmc.node, outcome) for bmc, outcome in outcomes}
    found = [by_node[bmc.node] for bmc in bmcs]
    result: Result = {
        "changed": any(one["changed"] for one in found),
        "bmcs": found,
        "reset_required": sum(one["reset_required"] for one in found),
    }
    if module._diff:
        result["diff"] = [diff_of(one) for one in found if one["writes"]]
    errors = [one["error"] for one in found if one["error"]]
    if errors:
        module.fail_json(msg=f"{len(errors)} of {len(found)} BMCs were not set: {'; '.join(errors[:5])}", **result)
    return result


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_bmc_spec(SECONDS, wanted={"type": "dict", "default": {}}), supports_check_mode=True
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
