# SPDX-License-Identifier: GPL-3.0-or-later

"""BIOS settings that affect SR-IOV and the speed of RDMA, as the BMC of a node reports them."""

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
    """The BIOS settings that the intent requires on each node, by key. A key that is None, or an empty tuple, leaves
    the setting unchanged.

    :ivar sriov: whether SR-IOV must be on (true) or off (false)
    :ivar iommu: whether the IOMMU (VT-d, AMD-Vi) must be on or off
    :ivar acs: whether Access Control Services of PCIe must be on or off
    :ivar ari: whether Alternative Routing-ID Interpretation of PCIe must be on or off
    :ivar above_4g: whether PCI memory above 4 GiB must be allowed or not
    :ivar numa_per_socket: number of NUMA nodes of a socket
    :ivar smt: whether simultaneous multithreading must be on or off
    :ivar c_states: whether the idle states of the CPUs must be on or off
    :ivar relaxed_ordering: whether relaxed ordering of PCIe must be on or off
    :ivar max_read_request: largest read request of a PCIe device, in bytes
    :ivar profile: accepted profile names of the BIOS, which differ between vendors
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
    """An allowed value of an attribute.

    :ivar value: value in the form in which the BMC reports and accepts it
    :ivar label: display name in the registry; equal to ``value`` if there is only one name
    """

    value: str
    label: str


@dataclasses.dataclass(frozen=True)
class BiosAttribute:
    """One attribute of a BIOS.

    :ivar name: name in the resource Bios
    :ivar current: text, number or boolean; None if the BIOS does not report it
    :ivar display_name: display name in the registry; empty if the attribute was found by its name, without a registry
    :ivar pending: value that a reset would apply; None for none, also if it equals the current one
    :ivar allowed: allowed values; empty if the registry does not list them
    :ivar read_only: why it cannot be written now; empty if it is not known to be read-only
    :ivar reset_required: whether a new value requires a reset; None if the registry does not define it
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
    """The attributes of a BIOS that belong to one key of the intent, such as ``sriov``. A BIOS may have several for a
    key, such as one for each root port.

    :ivar key: key of the intent
    :ivar attributes: the attributes that were found; empty if none was
    :ivar looked_for: display names (as patterns) or attribute names that were searched for
    """

    key: Key
    attributes: typing.Annotated[tuple[BiosAttribute, ...], ATTRIBUTES] = ()
    looked_for: typing.Annotated[tuple[str, ...], VALUES] = ()


@dataclasses.dataclass(frozen=True)
class BiosJob:
    """A pending job of the BMC that writes BIOS attributes. While it exists, the BMC refuses other jobs.

    :ivar id: id of the job
    :ivar state: state as the BMC names it: Scheduled, Running...
    :ivar name: name of the job
    """

    id: str
    state: str
    name: str = ""


@dataclasses.dataclass(frozen=True)
class NodeBios:
    """The BIOS settings of a node, and the state of its BMC that matters for writing them, as the BMC reports them.

    :ivar version: version of the BIOS; empty if the BMC does not report it, like vendor and model
    :ivar settings: attributes of each key of the intent
    :ivar registry: path of the attribute registry with the display names; empty without one
    :ivar registry_error: reason why the registry of the BIOS was not read; empty if it was
    :ivar settings_uri: resource to which new values are written; empty if the BMC has none
    :ivar apply_times: supported apply times, as the BMC names them
    :ivar jobs: jobs that block the BIOS; None if the BMC has no such jobs, or they could not be read (see errors)
    :ivar lockdown: whether the BMC refuses changes; None if it has no such mode, or it could not be read (see errors)
    :ivar last_apply: error of the last application of values; empty if none is reported
    :ivar pending_error: why the values pending for a reset are not known
    :ivar others_pending: names of attributes with a value that a reset would apply, and that no setting covers
    :ivar errors: other parts that could not be read
    :ivar identity: identity of the system, as the BMC reports it
    :ivar asserted: whether the inventory asserts that the BMC belongs to the node, for use if the identities cannot be
        compared
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
    others_pending: typing.Annotated[tuple[str, ...], ATTRIBUTES] = ()
    errors: Messages = ()
    identity: Identity = dataclasses.field(default_factory=Identity)
    asserted: bool = False


@dataclasses.dataclass(frozen=True)
class BiosState:
    """The result of comparing a BIOS setting with its desired value.

    :ivar key: key of the intent
    :ivar state: ``ok``; ``wrong``; ``pending``, right after the next reset; ``read_only``, wrong and not writable now;
        or ``unknown``, no attribute was found or its value is ambiguous
    :ivar wanted: accepted values
    :ivar measured: attributes with their values, as text
    :ivar why: reason of any state but ok
    :ivar job: id of the job that blocks the BIOS; empty without one
    """

    key: Key
    state: State
    wanted: tuple[typing.Any, ...]
    measured: str
    why: str = ""
    job: str = ""


@dataclasses.dataclass(frozen=True)
class BiosWrite:
    """A new value to write to an attribute of a BIOS.

    :ivar key: key of the intent
    :ivar attribute: name of the attribute
    :ivar before: value after a reset without this write: the pending value, else the current one
    :ivar after: new value, in the form in which the BMC accepts it
    :ivar reset_required: whether it requires a reset; True also if the registry does not define it
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
    """The reason why the collection does not write a desired BIOS setting, with the remedy.

    :ivar key: key of the intent
    :ivar cause: ``attribute`` (no such attribute), ``value`` (no such value), ``read_only``, ``lockdown`` or ``job``
        (the BMC accepts no change of the BIOS)
    :ivar why: the reason, with the attribute
    """

    key: Key
    cause: Refused
    why: str
    remedy: str


@dataclasses.dataclass(frozen=True)
class BiosPlan:
    """The result of planning the changes of a BIOS.

    :ivar writes: values to write, so that the BIOS has its desired settings after the next reset
    :ivar refusals: desired settings that cannot be written. If there are any, nothing is written
    """

    writes: tuple[BiosWrite, ...] = ()
    refusals: tuple[BiosRefusal, ...] = ()


@dataclasses.dataclass(frozen=True)
class BiosChange:
    """The values that were written to a BIOS, or would be written in check mode.

    :ivar writes: the values
    :ivar reset_required: whether a desired value is pending for a reset
    :ivar job: job that applies it; empty if the BMC needs none
    """

    writes: tuple[BiosWrite, ...] = ()
    reset_required: bool = False
    job: str = ""


#: BIOS of one node, as its BMC reports it
ObservedBios = Observed[NodeBios]
