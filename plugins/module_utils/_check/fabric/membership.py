# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage fabric: check that each node has the HCAs of the fabric that the intent requires, and explain why HCAs are
missing. Check ids: ``fabric.membership``, ``fabric.hcas``.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.hcas_of_fabric import Membership, find_candidates
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import SeenSubnet
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband
from ..._model.node.hca import Hca
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .names import MOST, FabricFacts, words_of_ports
from .unqueryable_ports import explain_cause, find_unasked

#: of the HCAs that a node has on a fabric, in the words of a finding
MOST_HCAS = 16


def check_membership(
    fabric: Fabric, membership: Membership, fabric_facts: FabricFacts, memberships: typing.Mapping[str, Membership]
) -> list[Finding]:
    """Check that the HCAs of the fabric could be identified, and that each node has the expected number of them.

    :param membership: HCAs that belong to the fabric, by node, with their rails
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param memberships: HCAs that belong to each fabric of the intent, by the name of the fabric
    """
    wanted = fabric.select.hcas_per_node
    expected = f"{count_of(wanted, 'HCA')} on each node" + (
        ", all with the same subnet manager" if is_infiniband(fabric) else ""
    )
    if not membership.resolved:
        unasked = [
            name for name in fabric_facts.nodes if is_infiniband(fabric) and find_unasked(fabric, name, fabric_facts)
        ]
        if unasked and not any(
            seen.master or seen.silent for subnets in fabric_facts.subnets.values() for seen in subnets
        ):
            why, remedy = explain_cause(unasked, fabric_facts)
            return [
                Finding("fabric.membership", fabric.name, UNKNOWN, "no port could be queried", expected, why, remedy)
            ]
        reason = format_clause(membership.why)
        why = f"{reason[0].upper()}{reason[1:]}." + (words_of_ports(fabric_facts) if is_infiniband(fabric) else "")
        return [
            Finding(
                "fabric.membership",
                fabric.name,
                FAIL,
                "HCAs not identified",
                expected,
                why,
                f"{membership.remedy}. Then run stage fabric again.",
            )
        ]
    by = (
        f"identified by subnet manager {' and '.join(membership.subnet_managers)}"
        if membership.subnet_managers
        else "identified by the selectors of the intent"
    )
    count = sum(len(members) for members in membership.members.values())
    findings = [
        build_pass(
            "fabric.membership",
            fabric.name,
            f"{count_of(count, 'HCA')} on {count_of(len(membership.members), 'node')}, {by}",
            expected,
        )
    ]
    for name, members in membership.members.items():
        subject = f"{name} {fabric.name}"
        measured = count_of(len(members), "HCA") + (
            f": {join_first([member.hca.name for member in members], MOST_HCAS)}" if members else ""
        )
        if len(members) == wanted:
            findings.append(build_pass("fabric.hcas", subject, measured, count_of(wanted, "HCA")))
            continue
        mute = find_unasked(fabric, name, fabric_facts) if is_infiniband(fabric) else ()
        if len(members) < wanted <= len(members) + len(mute):
            why, remedy = explain_cause([name], fabric_facts, mute)
            findings.append(
                Finding(
                    "fabric.hcas",
                    subject,
                    UNKNOWN,
                    f"{measured}; {count_of(len(mute), 'HCA')} not queried",
                    count_of(wanted, "HCA"),
                    why,
                    remedy,
                )
            )
            continue
        why, step = _explain_count(fabric, membership, name, fabric_facts, memberships)
        remedy = (
            f"{f'{step} Or correct' if step else 'Correct'} select or hcas_per_node of the fabric '{fabric.name}' in"
            " the intent. Then run stage fabric again."
        )
        findings.append(Finding("fabric.hcas", subject, FAIL, measured, count_of(wanted, "HCA"), why, remedy))
    return findings


def _explain_count(
    fabric: Fabric,
    membership: Membership,
    name: str,
    fabric_facts: FabricFacts,
    memberships: typing.Mapping[str, Membership],
) -> tuple[str, str]:
    """Return why a node has a different number of HCAs on the fabric than the intent requires, and the instruction
    for its ports and cables. The instruction is empty if only the intent can be wrong.

    :param name: name of the node
    :param fabric_facts: HCAs, subnet managers and topologies of the nodes whose facts could be read
    :param memberships: HCAs that belong to each fabric of the intent, by the name of the fabric
    """
    members = {member.hca.name for member in membership.members[name]}
    elsewhere = {
        member.hca.name: other
        for other, its in memberships.items()
        for member in its.members.get(name, ())
        if member.hca.name not in members
    }
    more = len(membership.members[name]) > fabric.select.hcas_per_node
    others = [hca for hca in find_candidates(fabric, fabric_facts.nodes[name]) if hca.name not in members]
    if not is_infiniband(fabric):
        why = f"The selectors of the fabric match {'all' if more else 'only'} these physical functions of the node."
        return why, ""
    if more:
        why = "The ports of all these HCAs see the subnet manager of this fabric."
        return why, "Move the cables that belong to a different fabric."
    free = [hca for hca in others if hca.name not in elsewhere]
    if not free:
        why = "The node has no further InfiniBand HCA that matches the selectors of the intent." + "".join(
            f" {join_first([hca.name for hca in others if elsewhere[hca.name] == other], MOST)} belong"
            f"{'s' if sum(elsewhere[hca.name] == other for hca in others) == 1 else ''} to the fabric {other}."
            for other in dict.fromkeys(elsewhere[hca.name] for hca in others)
        )
        return why, (
            f"If {name} has a finding discover.hcas, discover.driver or discover.fleet, follow its remedy: it names"
            f" an HCA that is missing or not usable. Otherwise run lspci and dmesg on {name}, and repair or install"
            " the missing HCA."
        )
    words, steps = _explain_ports(
        free, {(item.rdma_device, item.port): item for item in fabric_facts.subnets.get(name, ())}
    )
    which = "This port was" if len(words) == 1 else "These ports were"
    return f"{which} not assigned to a fabric of the intent: {join_first(words, MOST, '; ')}.", " ".join(steps)


def _explain_ports(
    hcas: typing.Sequence[Hca], seen: typing.Mapping[tuple[str, int], SeenSubnet]
) -> tuple[list[str], list[str]]:
    """Return one text for each port with the subnet manager or the error that the port reports, and the instructions
    for these ports, each once.

    :param hcas: HCAs that are not on the fabric
    :param seen: answer of each port, by RDMA device and number
    """
    words = []
    steps: dict[str, None] = {}
    for hca in hcas:
        for port in hca.ports:
            answer = seen.get((hca.rdma_device or "", port.number))
            if answer is None:
                words.append(f"{hca.name} port {port.number} was not queried")
                steps["Check with rdma link and lspci whether the ports that were not queried exist."] = None
            elif answer.master is not None:
                manager = (
                    f"the subnet manager {answer.master.guid}"
                    if answer.master.guid
                    else "a subnet manager whose GUID is unknown"
                )
                words.append(f"{hca.name} port {port.number} sees {manager}")
                if not answer.master.guid:
                    steps[
                        "For each port with an unknown GUID, run sminfo -C DEVICE -P PORT as root on the node: it shows"
                        " the GUID of the subnet manager. If it fails, correct the error that it prints."
                    ] = None
                steps["If a port that sees a different subnet manager belongs to this fabric, move its cable."] = None
            else:
                words.append(f"{hca.name} port {port.number}: {format_clause(answer.error)}")
                steps[
                    "Run ibstat on the node, and check the cable and the switch port of each port that it does not"
                    " show as Active."
                ] = None
    return words, list(steps)
