# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of the BIOS that decide on SR-IOV and on the speed of RDMA, as the BMC of a node tells them."""

from __future__ import annotations

import dataclasses
import typing

from ..base.observed import Observed
from ..boundary.form import Bound
from ..boundary.numbers import Messages
from ..boundary.paths import Path
from .identity import Identity

Key = typing.Literal[
    "sriov",
    "iommu",
    "acs",
    "ari",
    "above_4g",
    "numa_per_socket",
    "smt",
    "c_states",
    "relaxed_ordering",
    "max_read_request",
    "profile",
]
#: what each vendor has another name for
KEYS: tuple[Key, ...] = typing.get_args(Key)
SETTINGS = Bound("settings of a BIOS", 10 * len(KEYS))
#: a BIOS has an attribute for each root port of each socket, and a hundred values of one
ATTRIBUTES, VALUES = Bound("attributes of a setting", 4096), Bound("values or names of an attribute", 4096)
#: a BMC keeps some hundred
JOBS = Bound("jobs of a BMC", 4096)


@dataclasses.dataclass(frozen=True)
class BiosIntent:
    """The BIOS settings that the intent asks of each node, by key. None, or nothing, leaves a setting as it is.

    :ivar numa_per_socket: NUMA nodes
    :ivar max_read_request: bytes
    :ivar profile: words of the BIOS, of which any is right: vendors have words of their own
    """

    sriov: typing.Optional[bool] = None
    iommu: typing.Optional[bool] = None
    acs: typing.Optional[bool] = None
    ari: typing.Optional[bool] = None
    above_4g: typing.Optional[bool] = None
    numa_per_socket: typing.Optional[int] = None
    smt: typing.Optional[bool] = None
    c_states: typing.Optional[bool] = None
    relaxed_ordering: typing.Optional[bool] = None
    max_read_request: typing.Optional[int] = None
    profile: tuple[str, ...] = ()


#: ok: as wanted, and nothing waits that would change it. pending: as wanted after the next reset. read_only: wrong, and
#: it can't be written now. unknown: no such attribute was found, or its value does not say
State = typing.Literal["ok", "wrong", "pending", "read_only", "unknown"]
STATES: tuple[State, ...] = typing.get_args(State)


@dataclasses.dataclass(frozen=True)
class BiosValue:
    """A value that an attribute may take.

    :ivar value: as the BMC tells the current one, and as it is written
    :ivar label: its other name in the registry; the same where there is but one
    """

    value: str
    label: str


@dataclasses.dataclass(frozen=True)
class BiosAttribute:
    """One attribute of a BIOS.

    :ivar name: in the resource Bios
    :ivar current: text, number or truth value; None where the BIOS does not tell it
    :ivar display_name: in the registry; empty where it was found by its name, without a registry
    :ivar pending: value that waits for a reset; None when none does, so also when it is the current one
    :ivar allowed: empty where the registry does not say
    :ivar read_only: why it can't be written now; empty when it can, or nobody says that it can't
    :ivar reset_required: whether a new value waits for a reset; None where the registry does not say
    """

    name: str
    current: typing.Any
    display_name: str = ""
    pending: typing.Any = None
    allowed: typing.Annotated[tuple[BiosValue, ...], VALUES] = ()
    read_only: str = ""
    reset_required: typing.Optional[bool] = None


@dataclasses.dataclass(frozen=True)
class BiosSetting:
    """The attributes behind one key; several where a BIOS has several, such as one for each root port.

    :ivar looked_for: display names (as patterns) or names, whichever were compared
    """

    key: Key
    attributes: typing.Annotated[tuple[BiosAttribute, ...], ATTRIBUTES] = ()
    looked_for: typing.Annotated[tuple[str, ...], VALUES] = ()


@dataclasses.dataclass(frozen=True)
class BiosJob:
    """A job of the BMC that waits to write BIOS attributes. While there is one, others are refused.

    :ivar state: as the BMC names it: Scheduled, Running...
    """

    id: str
    state: str
    name: str = ""


@dataclasses.dataclass(frozen=True)
class NodeBios:
    """The BIOS of a node, as its BMC reports it.

    :ivar version: of the BIOS; empty where the BMC does not tell it, as vendor and model
    :ivar registry: path of the attribute registry that the display names are from; empty without one
    :ivar registry_error: why there is none
    :ivar settings_uri: resource that takes new values; empty where the BMC offers none
    :ivar apply_times: that it supports, as the BMC names them
    :ivar jobs: those that hold the BIOS; None where the BMC has no such jobs, or they could not be read (see errors)
    :ivar lockdown: whether the BMC refuses changes; None where it has no such mode, or it could not be read (see
        errors)
    :ivar last_apply: what went wrong when values were applied last; empty where nothing did, or nobody says so
    :ivar pending_error: why it is not known what waits for a reset
    :ivar errors: other parts that could not be read
    :ivar identity: what the BMC calls the system
    :ivar asserted: the inventory says that the BMC is the node's, for where nothing can be compared
    """

    vendor: str
    model: str
    version: str
    settings: typing.Annotated[tuple[BiosSetting, ...], SETTINGS] = ()
    registry: str = ""
    registry_error: str = ""
    settings_uri: Path = ""
    apply_times: typing.Annotated[tuple[str, ...], VALUES] = ()
    jobs: typing.Optional[typing.Annotated[tuple[BiosJob, ...], JOBS]] = None
    lockdown: typing.Optional[bool] = None
    last_apply: str = ""
    pending_error: str = ""
    errors: Messages = ()
    identity: Identity = dataclasses.field(default_factory=Identity)
    asserted: bool = False


@dataclasses.dataclass(frozen=True)
class BiosState:
    """A setting against what is wanted of it.

    :ivar wanted: any of these is right
    :ivar measured: attributes with their values, as text
    :ivar why: of any state but ok
    :ivar job: id of the job that holds the BIOS; empty without one
    """

    key: Key
    state: State
    wanted: tuple[typing.Any, ...]
    measured: str
    why: str = ""
    job: str = ""


@dataclasses.dataclass(frozen=True)
class BiosWrite:
    """A new value of an attribute.

    :ivar before: what it would be after a reset: the value that waits, else the current one
    :ivar after: as the BMC takes it
    :ivar reset_required: whether it waits for a reset; also where the registry does not say
    """

    key: Key
    attribute: str
    before: typing.Any
    after: typing.Any
    reset_required: bool = True


#: why a wanted value can't be written: no such attribute; no such value; a value that nobody may write now; all of the
#: BIOS is held
Refused = typing.Literal["attribute", "value", "read_only", "lockdown", "job"]


@dataclasses.dataclass(frozen=True)
class BiosRefusal:
    """The reason why a desired setting can't be made.

    :ivar why: with the attribute
    """

    key: Key
    cause: Refused
    why: str
    remedy: str


@dataclasses.dataclass(frozen=True)
class BiosPlan:
    """The values that must be written, so that a BIOS is as wanted after its next reset. With a refusal nothing is
    written."""

    writes: tuple[BiosWrite, ...] = ()
    refusals: tuple[BiosRefusal, ...] = ()


@dataclasses.dataclass(frozen=True)
class BiosChange:
    """A value that was written to a BIOS, or would be.

    :ivar reset_required: something that is wanted waits for a reset
    :ivar job: that applies it; empty where the BMC needs none
    """

    writes: tuple[BiosWrite, ...] = ()
    reset_required: bool = False
    job: str = ""


#: BIOS of one node, as its BMC reports it
ObservedBios = Observed[NodeBios]
