# SPDX-License-Identifier: GPL-3.0-or-later

"""Finding fabric.partitions: HCAs of one fabric that partition keys keep apart."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import Member, Membership
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.paths.partitions import list_shared_keys
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric import partitions
from ansible_collections.linerate.rdma.plugins.module_utils._check.fabric.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    ObservedSubnets,
    ObservedTopologies,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas, Port
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding

from . import fabric_world as world

FULL, LIMITED, OTHER = "0xffff", "0x7fff", "0x8001"
#: HCAs of fabric 1, as indexes of row S1.6
MEMBERS = {"mlx5_0": 0, "mlx5_1": 1, "mlx5_4": 4, "mlx5_5": 5}


def findings(usual: tuple[str, ...], **keys: tuple[str, ...]) -> list[Finding]:
    """What the stage says; a keyword gives an HCA of worker-1 other keys than all others of the fabric have."""
    nodes = {}
    for name, number in world.NODES.items():
        own = keys if number == 1 else {}
        hcas = {device: world.hca(number, index, pkeys=own.get(device, usual)) for device, index in MEMBERS.items()}
        nodes[name] = ObservedHcas(world.node(number, **hcas))
    subnets = {name: ObservedSubnets(world.subnets()) for name in nodes}
    facts = Facts(
        nodes, subnets, {"worker-1": ObservedTopologies(world.seen_topologies()), "worker-2": ObservedTopologies(())}
    )
    return [finding for finding in check(world.intent(), facts) if finding.check == "fabric.partitions"]


@pytest.mark.parametrize("usual", [(), (FULL,), (LIMITED, OTHER)])
def test_ports_that_meet_are_no_finding(usual: tuple[str, ...]) -> None:
    assert findings(usual) == []


@pytest.mark.parametrize("keys", [(LIMITED, FULL), (LIMITED,), (FULL, OTHER)])
def test_one_port_that_meets_the_usual_ones_is_none(keys: tuple[str, ...]) -> None:
    assert findings((FULL,), mlx5_0=keys) == []


def test_a_port_that_is_in_another_partition_is_named_with_its_guid() -> None:
    (finding,) = findings((FULL,), mlx5_0=(OTHER,))
    assert (finding.subject, finding.status, finding.measured) == (
        "compute",
        "fail",
        "1 of 8 ports do not share a partition with all others",
    )
    assert finding.why == (
        "The subnet manager gave these ports different P_Keys: worker-1 mlx5_0 has 0x8001. The most frequent"
        " keys are 0xffff. Packets between ports without a common partition are dropped."
    )
    guid = world.hca(1, 0).ports[0].guid
    assert finding.remedy.startswith(
        f"Make these ports full members of the partition of the other ports: {guid}. In partitions.conf of opensm"
    )
    # other tenants keep their partitions, and no standby takes over with older ones
    assert "'compute=0x0001, ipoib : GUID=full, GUID=full;'" in finding.remedy and "-HUP" in finding.remedy
    assert "ALL=full;' only if the fabric has no other tenants" in finding.remedy
    assert "restart opensm" not in finding.remedy


def test_two_limited_members_do_not_meet_each_other() -> None:
    (finding,) = findings((FULL,), mlx5_0=(LIMITED,), mlx5_1=(LIMITED,))
    assert finding.measured == "2 of 8 ports do not share a partition with all others"
    assert "worker-1 mlx5_0 has 0x7fff (limited); worker-1 mlx5_1 has 0x7fff (limited)" in finding.why


def test_two_limited_members_with_different_keys_do_not_meet_each_other() -> None:
    """Each meets the usual ports, which are full members."""

    def told(*keys: tuple[str, ...]) -> list[Finding]:
        members = {
            node: (Member(0, world.hca(1, 0), Port(1, guid=f"0x{number}", pkeys=its)),)
            for number, (node, its) in enumerate(zip("abcdef", keys))
        }
        return partitions.check_partitions(world.intent().fabrics[0], Membership("compute", ("0x1",), members))

    (found,) = told((FULL,), (FULL,), (FULL,), (LIMITED,), (LIMITED, "0x0002"), (FULL, OTHER))
    assert (found.status, found.measured) == ("fail", "2 of 6 ports do not share a partition with all others")
    assert all(f"{node} mlx5_0 has 0x7fff (limited)" in found.why or "0x0002" in found.why for node in "de")
    assert "0x3, 0x4." in found.remedy
    # one of both is a full member, or both are full members of another partition
    assert told((FULL,), (FULL,), (FULL,), (LIMITED,), (FULL, "0x0002")) == []
    assert told((FULL,), (FULL,), (FULL,), (LIMITED, OTHER), (LIMITED, OTHER, "0x0002")) == []


def test_of_many_partitions_the_first_ports_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_MOST", 2)
    (finding,) = findings((FULL,), **{device: (f"0x800{number}",) for number, device in enumerate(MEMBERS, 1)})
    assert finding.measured == "4 of 8 ports do not share a partition with all others"
    assert "mlx5_0 has 0x8001; worker-1 mlx5_1 has 0x8002. The most frequent" in finding.why


def test_limited_members_alone() -> None:
    (finding,) = findings((LIMITED,))
    assert (finding.status, finding.measured) == ("fail", "8 of 8 ports are only limited members")
    assert finding.why.startswith(
        "The subnet manager gave these ports the P_Keys 0x7fff (limited), and limited members drop"
    )
    assert finding.remedy.startswith("Make these ports full members: 0x")


def test_what_two_ports_share() -> None:
    assert list_shared_keys((LIMITED, OTHER), (FULL, "0x0001")) == ("0x8001", FULL)
    assert list_shared_keys((LIMITED,), (LIMITED,)) == ()


@pytest.mark.parametrize(
    ("keys", "words"), [(["", FULL], "a partition key"), ([FULL] * 1025, "at most 1024 partition keys")]
)
def test_keys_of_a_port_that_can_not_be_true_are_refused(keys: list[str], words: str) -> None:
    with pytest.raises(LoadError, match=words):
        load(Port, {"number": 1, "pkeys": keys})


def test_a_node_that_tells_more_ports_than_all_others_has_one_voice() -> None:
    ports = {
        name: (Member(0, world.hca(number, 0), Port(1, guid=f"0x{number:016x}", pkeys=(FULL,))),)
        for name, number in world.NODES.items()
    }
    crowd = tuple(
        Member(rail, world.hca(3, 0), Port(1, guid=f"0x{rail + 16:016x}", pkeys=(OTHER,))) for rail in range(20)
    )
    (finding,) = partitions.check_partitions(
        world.fabric(), Membership("compute", ("0x1",), {**ports, "worker-3": crowd})
    )
    assert finding.measured == "20 of 22 ports do not share a partition with all others"
    assert "The most frequent keys are 0xffff" in finding.why
