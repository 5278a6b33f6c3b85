# SPDX-License-Identifier: GPL-3.0-or-later

"""A node that tells the serial numbers of all others takes their BMCs from none of them but two, the most that a
machine has."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Claims, Identity

#: as a kubelet tells the machine ID of the operating system in place of a UUID
NO_UUID = "0123456789abcdef0123456789abcdef"
MACHINES = {
    f"worker-{number}": Identity(f"4c4c4544-0035-3510-8054-c6c04f5{number:05d}", (f"SN{number:05d}",))
    for number in range(100)
}


def judged(serials: tuple[str, ...], uuid: str = "") -> list[str]:
    """States of the BMCs of the others, each of which tells what its node does."""
    reported = {**{name: machine.uuid for name, machine in MACHINES.items()}, "evil": NO_UUID}
    claims = Claims(reported, {**MACHINES, "evil": Identity(uuid, serials)})
    return [claims.judge(name, machine, False).state for name, machine in MACHINES.items()]


def test_a_node_is_at_most_two_others() -> None:
    every = tuple(serial for machine in MACHINES.values() for serial in machine.serials)
    assert judged(()) == judged(("SN99999",)) == ["proven"] * len(MACHINES)
    assert judged(every) == ["other"] * 2 + ["proven"] * (len(MACHINES) - 2)


def test_what_is_no_serial_number_and_no_uuid_is_not_told() -> None:
    placeholders = ("None", "To be filled by O.E.M.")
    claims = Claims(
        {},
        {
            "one": Identity("", placeholders),
            "two": Identity("", placeholders),
            "three": Identity("00000000-0000-0000-0000-000000000000"),
        },
    )
    assert [claims.refusal(name) for name in ("one", "two")] == [None, None]
    assert claims.of("one") == claims.of("two") == claims.of("three") == Identity()
