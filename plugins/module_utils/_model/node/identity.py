# SPDX-License-Identifier: GPL-3.0-or-later

"""The identity of machines: the comparison of the system behind a BMC with a node, to prove that both are the same
machine. The functions are pure.

UUID and serial number are those of SMBIOS [DSP0134 7.2, System Information, type 1]. A BMC reports them as
``ComputerSystem.UUID`` and ``SerialNumber`` [DSP0268], the kernel as ``product_uuid`` and ``product_serial`` of
/sys/class/dmi/id, the kubelet as ``status.nodeInfo.systemUUID``. SMBIOS writes the first three fields of a UUID in
little-endian order, but not every vendor does. The same UUID in the other byte order is the same machine.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing

from ..boundary.form import Bound

_UUID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")
_SERIAL = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{2,62}[\x21-\x7e])")
#: that boards have whose maker has set none: AMI's default in both orders, and others that many boards share
_DEFAULT_UUIDS = frozenset(
    {
        "03000200-0400-0500-0006-000700080009",
        "00020003-0004-0005-0006-000700080009",
        "12345678-1234-5678-90ab-cddeefaabbcc",
        "01234567-89ab-cdef-0123-456789abcdef",
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "03020100-0504-0706-0809-0a0b0c0d0e0f",
        "11111111-2222-3333-4444-555555555555",
    }
)
#: what stands in place of a serial number that nobody has set, without blanks, dots, brackets and other signs
_DEFAULT_SERIALS = re.compile(
    r"none|null|nil|na|unknown|undefined|unspecified|empty|invalid|tbd|test|oem|sn"
    r"|default(?:string|serial(?:number)?)?"
    r"|not(?:specified|available|applicable|set|provided|defined|present|programmed)"
    r"|(?:system|chassis|product|baseboard|board|enclosure|asset|no)?(?:serial(?:number|no)?|assettag)"
    r"|(?:tobe)?filledby\w*|tobedetermined"
    r"|0?12345(?:6(?:7(?:8(?:9a?b?c?d?e?f?)?)?)?)?|1234567890|01234567890123456789ab\w*"
)

#: serial numbers of one machine: DMI shows that of the system and that of the board
_MOST_SERIALS = 2

#: proven: one machine. asserted: nobody can compare them, and the inventory says that they are. other: not one machine,
#: or nobody's alone. unknown: nobody can compare them
State = typing.Literal["proven", "asserted", "other", "unknown"]

#: of one machine: system, board, chassis, and one for each part of a chassis
SERIALS = Bound("serial numbers", 1024)


@dataclasses.dataclass(frozen=True)
class Identity:
    """The identity of a machine, as its BMC or the machine itself reports it.

    :ivar uuid: UUID in lower case with dashes, in the reported byte order; empty if no valid one is reported
    :ivar serials: serial numbers of the system; empty if none are reported
    """

    uuid: str = ""
    serials: typing.Annotated[tuple[str, ...], SERIALS] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that must be unique to the machine, independent of byte order and letter case: the UUID alone
        if there is one, otherwise the serial numbers. Machines in one chassis may share a serial number.
        """
        return self.every[:1] if self.uuid else self.every

    @property
    def every(self) -> tuple[str, ...]:
        """Return the UUID, if there is one, and each serial number, as keys that are independent of byte order and
        letter case.
        """
        uuid = (min(self.uuid, swap_byte_order(self.uuid)),) if self.uuid else ()
        return (*uuid, *(f"serial {one.lower()}" for one in self.serials))

    def __str__(self) -> str:
        return (
            ", ".join(
                [*([f"UUID {self.uuid}"] if self.uuid else []), *(f"serial number {one}" for one in self.serials)]
            )
            or "no UUID and no serial number"
        )


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result of comparing the system behind a BMC with a node: proven to be the node, asserted by the inventory,
    another machine, or unknown.

    :ivar state: ``proven`` (same machine), ``asserted`` (not comparable, but the inventory asserts it), ``other``
        (another machine, or one that several nodes claim) or ``unknown`` (not comparable)
    :ivar why: reason of the state; empty if it is ``proven``
    :ivar remedy: instruction to the user that resolves the cause
    """

    state: State
    why: str = ""
    remedy: str = ""

    @property
    def refused(self) -> bool:
        """Return whether the BMC is refused. A refused BMC is not written to, and its reports do not count for the
        node.
        """
        return self.state in ("other", "unknown")


@dataclasses.dataclass(frozen=True)
class Claims:
    """The identities that the nodes of a cluster and their BMCs report. They show whether a BMC belongs to a node.

    :ivar reported: systemUUID of each node, from its kubelet
    :ivar looked: DMI identity of each node that was read on the node itself
    :ivar machines: identity of the system behind the BMC of each node whose BMC was queried
    :ivar places: normalized address of the BMC of each node; equal for two nodes if they share a BMC
    """

    reported: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    looked: typing.Mapping[str, Identity] = dataclasses.field(default_factory=dict)
    places: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    machines: typing.Mapping[str, Identity] = dataclasses.field(default_factory=dict)

    def of(self, node: str) -> Identity:
        """Return the identity of one node. The UUID of its kubelet takes precedence over that of its DMI.

        :param node: name of the node
        """
        seen = self.looked.get(node, Identity())
        # the node's own words: held to their form once more, and who tells the numbers of a whole hall says nothing by
        # the rest of them
        told = make_identity(seen.uuid, seen.serials[:_MOST_SERIALS])
        # without dashes it is the machine ID of the operating system, which the kubelet tells where DMI shows no UUID
        # [src cadvisor GetSystemUUID]
        return Identity(uuid_of(self.reported.get(node, "")) or told.uuid, told.serials)

    def judge(self, node: str, machine: Identity, asserted: bool) -> Verdict:
        """Return whether the system behind a BMC is this node: proven, asserted, another machine, or unknown, with the
        reason.

        :param node: name of the node
        :param machine: identity of the system, as the BMC reports it
        :param asserted: whether the inventory asserts that it is the node; used only if the identities cannot be
            compared
        """
        refused = self.refusal(node)
        if refused is not None:
            return refused
        own = self.of(node)
        same = compare_identities(own, machine)
        if same and own.uuid and machine.uuid:
            return Verdict("proven")
        # a serial number alone proves it only where it is no other node's as well, whatever UUID that one has
        others = [name for name in self._names if name != node and _may_be(self.of(name), machine, same)]
        if same and not others:
            return Verdict("proven")
        if same is False or others:
            whose = f"the machine is {', '.join(others[:3])}" if others else f"the node reports {own}"
            return Verdict(
                "other",
                f"the BMC belongs to a different machine ({machine}); {whose}",
                f"Correct rdma_bmc_address and rdma_bmc_system of {node}",
            )
        why = (
            f"the run could not determine whether this is the BMC of {node}: the BMC reports {machine}, and the"
            f" node reports {own}"
        )
        shared = sorted(
            name for name, other in self.machines.items() if name != node and {*other.keys} & {*machine.keys}
        )
        if shared:
            told = (
                f"the BMC addresses in the inventory lead to the same machine ({machine}) for"
                f" {', '.join([node, *shared[:3]])}"
            )
            return Verdict("other", told, f"Give each of these nodes, including {node}, the address of its own BMC")
        if asserted:
            return Verdict("asserted", f"{why}; the inventory asserts that the BMC is correct (rdma_bmc_identity)")
        remedy = (
            "Let Ansible connect to the node as root, so that the DMI data of the node can be read. If you"
            f" have verified manually that this is the BMC of the node, set rdma_bmc_identity: asserted for {node}"
        )
        return Verdict("unknown", why, remedy)

    def refusal(self, node: str) -> typing.Optional[Verdict]:
        """Return the verdict for a node for which no BMC can be accepted, with the reason: the node's own reports
        contradict each other, or it shares its identity or its BMC with another node. Return None if a BMC can be
        accepted.

        :param node: name of the node
        """
        own, seen = self.of(node), self.looked.get(node, Identity())
        if own.uuid and seen.uuid and own.uuid not in (seen.uuid, swap_byte_order(seen.uuid)):
            why = (
                f"{node} reports two different UUIDs: its kubelet reports {own.uuid}, and its DMI data has {seen.uuid}"
            )
            return Verdict(
                "other",
                why,
                (
                    f"Restart the kubelet of {node}. If the UUIDs still differ, find the cause of the change to the"
                    f" UUID that {node} reports"
                ),
            )
        twins = sorted(
            {name for key in own.every for name in self._owners[key] if _are_twins(own, self.of(name))} - {node}
        )
        if twins:
            why = (
                f"{', '.join([node, *twins[:3]])} report the same identity ({own}), so a BMC cannot be assigned to"
                " one of these nodes"
            )
            return Verdict(
                "other",
                why,
                (
                    "Find the node that reports the identity of a different node. If a board has the identity of a"
                    " different board, ask its vendor to set a unique identity"
                ),
            )
        shared = [name for name in self._at.get(self.places.get(node, ""), ()) if name != node]
        if shared:
            why = f"the inventory has the same BMC for {', '.join([node, *shared[:3]])}"
            return Verdict(
                "other",
                why,
                "Set rdma_bmc_address of each node to the address of its own BMC. If one BMC has several systems, set"
                " rdma_bmc_system of each node",
            )
        return None

    @functools.cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.reported, *self.looked}))

    @functools.cached_property
    def _owners(self) -> dict[str, list[str]]:
        """Return an index from each UUID and serial number to the names of the nodes that report it."""
        found: dict[str, list[str]] = {}
        for name in self._names:
            for key in self.of(name).every:
                found.setdefault(key, []).append(name)
        return found

    @functools.cached_property
    def _at(self) -> dict[str, list[str]]:
        """Return an index from the address of each BMC to the names of its nodes."""
        found: dict[str, list[str]] = {}
        for name, place in sorted(self.places.items()):
            found.setdefault(place, []).append(name)
        return found


def _are_twins(one: Identity, other: Identity) -> bool:
    """Return whether two nodes report the same identity. If both have a UUID, serial numbers are ignored, otherwise
    they are compared.
    """
    return bool({*one.keys} & {*other.keys} or (not (one.uuid and other.uuid) and {*one.every} & {*other.every}))


def _may_be(node: Identity, machine: Identity, by_serial: typing.Optional[bool]) -> bool:
    """Return whether the machine behind the BMC of one node may instead be another node.

    :param node: identity of the other node
    :param machine: identity of the machine behind the BMC
    :param by_serial: whether the machine matches the first node by its serial number alone; then any shared serial
        number counts as a match with the other node
    """
    return bool(compare_identities(node, machine) or (by_serial and {*node.every} & {*machine.every}))


def uuid_of(text: typing.Any) -> str:
    """Return a UUID in lower case with dashes. Return an empty text for any other text, and for default values of
    boards without a UUID of their own. Example::

        >>> uuid_of("4C4C4544-0035-3510-8054-C6C04F503347"), uuid_of("00000000-0000-0000-0000-000000000000")
        ('4c4c4544-0035-3510-8054-c6c04f503347', '')
    """
    found = text.strip().lower() if isinstance(text, str) and len(text) < 100 else ""
    digits = found.replace("-", "")
    # all zeros and all F, and other fillings
    filled = len({digits[place : place + 2] for place in range(0, len(digits), 2)}) < 3
    return found if _UUID.fullmatch(found) and not filled and found not in _DEFAULT_UUIDS else ""


def serial_of(text: typing.Any) -> str:
    """Return a serial number without surrounding spaces. Return an empty text if there is none, or a placeholder of the
    vendor. Example::

        >>> serial_of(" F54P1G3 "), serial_of("To be filled by O.E.M."), serial_of("0123456789")
        ('F54P1G3', '', '')
    """
    found = text.strip() if isinstance(text, str) and len(text) < 200 else ""
    plain = re.sub(r"[^0-9a-z]", "", found.lower())
    dull = _DEFAULT_SERIALS.fullmatch(plain) or len(set(plain)) < 2
    return found if _SERIAL.fullmatch(found) and not dull else ""


def make_identity(uuid: typing.Any, serials: typing.Iterable[typing.Any]) -> Identity:
    """Return an identity from texts that a BMC or a node reports. Invalid texts are left out.

    :param uuid: UUID of the machine as reported
    :param serials: serial numbers of the machine as reported
    """
    return Identity(uuid_of(uuid), tuple(dict.fromkeys(filter(None, map(serial_of, serials)))))


def swap_byte_order(uuid: str) -> str:
    """Return a UUID with the byte order of its first three fields reversed. Example::

    >>> swap_byte_order("00112233-4455-6677-8899-aabbccddeeff")
    '33221100-5544-7766-8899-aabbccddeeff'
    """
    parts = uuid.split("-")
    return "-".join(
        ["".join(reversed([part[place : place + 2] for place in range(0, len(part), 2)])) for part in parts[:3]]
        + parts[3:]
    )


def compare_identities(node: Identity, machine: Identity) -> typing.Optional[bool]:
    """Return whether two identities belong to the same machine, or None if that is not known.

    The UUID takes precedence. Vendors report different serial numbers (board, system, chassis), so a different one with
    the same UUID proves nothing. The same serial number with different UUIDs gives None.

    :param node: identity of a node
    :param machine: identity of the system behind a BMC
    """
    uuids = (
        (node.uuid == machine.uuid or swap_byte_order(node.uuid) == machine.uuid)
        if node.uuid and machine.uuid
        else None
    )
    if uuids:
        return True
    serials = {one.lower() for one in node.serials} & {one.lower() for one in machine.serials}
    if uuids is False:
        return None if serials else False
    if node.serials and machine.serials:
        return bool(serials)
    return None
