# SPDX-License-Identifier: GPL-3.0-or-later

"""The firmware of HCAs: versions, and settings that take effect after a reset. Each value has its source. PCI addresses
are dddd:bb:dd.f in lower case.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..base.observed import Observed
from ..boundary.devices import PciAddress
from ..boundary.form import Bound
from ..boundary.kubernetes import Label, ObjectName, Subdomain
from ..boundary.numbers import Messages
from ..boundary.words import Version, Word
from .hca import FUNCTIONS

#: of one HCA; ConnectX-7 has some 500
SETTINGS = Bound("settings of a firmware", 8192)
#: vendor of the HCAs whose firmware mstconfig can ask
VENDOR = "15b3"
#: where a value is from, the preferred one first
NIC_DEVICE, DEVLINK, SYSFS = "NicDevice", "devlink", "sysfs"
#: PCI devices that are a BlueField: 2, 3 Lx, 3 and 4 [nic-configuration-operator pkg/consts]
BLUEFIELDS = ("a2d6", "a2d9", "a2dc", "a2df")
#: enabled (0) means that the Arm cores of a BlueField own it (DPU mode), disabled (1) that the host does (NIC mode)
DPU_MODE = "INTERNAL_CPU_OFFLOAD_ENGINE"
_PORTS = (
    "LINK_TYPE",
    "ROCE_CC_PRIO_MASK",
    "CNP_DSCP",
    "CNP_802P_PRIO",
    "KEEP_IB_LINK_UP",
    "KEEP_ETH_LINK_UP",
    "SRIOV_IB_ROUTING_MODE",
)
#: settings that facts keep: an HCA has hundreds, and a fleet thousands of HCAs. What waits for a reset is kept whatever
#: it is
KEPT = re.compile(
    r"SRIOV_EN|NUM_OF_VFS|PF_NUM_OF_VF\w*(\[\d+\])?|NUM_OF_PF|ADVANCED_PCI_SETTINGS|PCI_WR_ORDERING|MAX_ACC_OUT_READ|ATS_ENABLED|UCTX_EN|NUM_[PV]F_MSIX"
    r"|INTERNAL_CPU_MODEL|INTERNAL_CPU_OFFLOAD_ENGINE|(" + "|".join(_PORTS) + r")_P[1-9]",
    re.ASCII,
)
_IN_BRACKETS = re.compile(r"\A(.*)\(((?:0x)?[0-9a-fA-F]{1,18})\)\Z", re.DOTALL)


#: kinds of facts: what NVIDIA's operator is to set, and what becomes of the settings of a node
FIRMWARE_PLAN, FIRMWARE_SETTINGS = "nic_firmware_plan", "nic_firmware_settings"


@dataclasses.dataclass(frozen=True)
class ReportedSetting:
    """A firmware value, such as a version, with its source.

    :ivar value: value as the source reports it
    :ivar source: ``NicDevice``, ``devlink``, ``sysfs``, or ``mstconfig`` with its version
    """

    value: Word
    source: Word


@dataclasses.dataclass(frozen=True)
class FirmwareSetting:
    """A parameter of the firmware, with values as mstconfig writes them: ``True(1)``, ``IB(1)``, ``16``.

    :ivar name: name of the parameter, such as NUM_OF_VFS
    :ivar next: value after the next reset; None if the tool prints N/A
    :ivar current: value in force; None if the tool prints N/A, or the firmware does not report it
    :ivar default: value of the manufacturer; None if the tool prints N/A
    :ivar read_only: whether the firmware does not accept other values
    """

    ONCE = ("name",)

    name: Word
    next: typing.Optional[str] = None
    current: typing.Optional[str] = None
    default: typing.Optional[str] = None
    read_only: bool = False

    @property
    def pending(self) -> bool:
        """Return whether the value changes with the next reset."""
        return None not in (self.next, self.current) and not is_equal(str(self.next), str(self.current))


@dataclasses.dataclass(frozen=True)
class HcaFirmware:
    """The firmware versions and settings of one physical function.

    :ivar address: PCI address
    :ivar device: PCI device id, four hex digits
    :ivar psid: PSID of the board; None if no source reports it
    :ivar running: running version; None if no source reports it
    :ivar stored: version that starts with the next reset; None if no source reports it
    :ivar settings: settings that match KEPT, and all that change with the next reset; empty if no tool could be queried
    :ivar settings_from: source of the settings
    :ivar not_asked: tools that could not be queried, each with the reason; this is not an error
    :ivar errors: errors of tools that were queried and failed
    """

    ONCE = ("address",)

    address: PciAddress
    device: Word = ""
    psid: typing.Optional[ReportedSetting] = None
    running: typing.Optional[ReportedSetting] = None
    stored: typing.Optional[ReportedSetting] = None
    settings: typing.Annotated[tuple[FirmwareSetting, ...], SETTINGS] = ()
    settings_from: str = ""
    not_asked: Messages = ()
    errors: Messages = ()

    def setting(self, name: str) -> typing.Optional[FirmwareSetting]:
        """Return a firmware parameter of the HCA by its name. Return None if the firmware does not have the parameter,
        or if no tool could be queried.
        """
        return next((setting for setting in self.settings if setting.name == name), None)

    @property
    def dpu(self) -> bool:
        """Return whether the HCA is a BlueField in DPU mode. The host must not change the settings of such an HCA,
        because its Arm cores own it.
        """
        mode = self.setting(DPU_MODE)
        return self.device in BLUEFIELDS and mode is not None and parse_number(mode.current or mode.next) == 0


@dataclasses.dataclass(frozen=True)
class FirmwareIntent:
    """The firmware settings that the intent requires on HCAs with VFs, in addition to those of their fabric: SR-IOV,
    number of VFs, link type. A field that is None leaves its setting unchanged. Each field is a parameter of the
    firmware, whose name is that of the field in capitals: a new field is required of each HCA and written to it.

    :ivar num_of_vfs: number of VFs that the firmware offers, if it is higher than the fabric's
    :ivar advanced_pci_settings: whether to expose the advanced PCI settings, which include ``pci_wr_ordering`` and
        ``max_acc_out_read``
    :ivar ats_enabled: Address Translation Services; off without virtualization
    :ivar pci_wr_ordering: relaxed ordering for all writes, or as each memory key requests
    :ivar max_acc_out_read: concurrent PCI reads; 0 is the firmware's default
    """

    num_of_vfs: typing.Optional[int] = None
    advanced_pci_settings: typing.Optional[bool] = None
    ats_enabled: typing.Optional[bool] = None
    pci_wr_ordering: typing.Optional[typing.Literal["per_mkey", "force_relax"]] = None
    max_acc_out_read: typing.Optional[int] = None

    def settings(self) -> dict[str, str]:
        """Return the settings by their firmware names, without unset ones: each field of this class except the number
        of VFs, which is at least that of each fabric. Stage platform requires these settings, and a run writes them to
        the HCAs.
        """
        wished = {
            field.name.upper(): getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "num_of_vfs"
        }
        return {name: format_value(value) for name, value in wished.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class NodeFirmware:
    """The firmware of all HCAs of a node, as the module node_info returns it."""

    hcas: typing.Annotated[tuple[HcaFirmware, ...], FUNCTIONS] = ()


#: firmware of the HCAs of one node (module node_info)
ObservedFirmware = Observed[NodeFirmware]


@dataclasses.dataclass(frozen=True)
class FirmwareChange:
    """The settings of one HCA that are changed. Both mappings are empty if all settings have the desired value.

    :ivar address: PCI address
    :ivar device: PCI device id, four hex digits
    :ivar before: values before the change that would be in force after the next reset, by name of the setting
    :ivar after: new values, in the format of the tool
    """

    address: str
    device: str
    before: dict[str, str]
    after: dict[str, str]


@dataclasses.dataclass(frozen=True)
class FirmwareSet:
    """The result of writing the desired firmware settings to the HCAs of a node.

    :ivar hcas: changes that were made, or would be in check mode
    :ivar refusal: why nothing can be set, with a remedy
    """

    hcas: tuple[FirmwareChange, ...] = ()
    refusal: str = ""


#: firmware settings that one node got
ObservedFirmwareSet = Observed[FirmwareSet]


@dataclasses.dataclass(frozen=True)
class NicDevice:
    """A network card, as NVIDIA's NIC configuration operator reports it.

    :ivar node: node that has the card
    :ivar namespace: namespace of the operator
    :ivar type: PCI device id, four hex digits
    :ivar ports: PCI addresses of its functions
    :ivar psid: PSID of the board
    :ivar serial: serial number of the card; empty if it has none
    :ivar firmware: version that is stored on it
    :ivar dpu: whether it is a BlueField in DPU mode
    :ivar configured: whether a NicConfigurationTemplate manages its settings
    :ivar updated: whether a NicFirmwareTemplate manages its firmware
    :ivar waits: reason of the pending change, as the operator reports it; empty if no change is pending
    :ivar message: message of the operator
    """

    name: ObjectName
    node: Subdomain
    ports: tuple[PciAddress, ...] = ()
    psid: Word = ""
    firmware: Version = ""
    dpu: bool = False
    configured: bool = False
    updated: bool = False
    waits: Word = ""
    message: str = ""
    namespace: Label = ""
    type: Word = ""
    serial: Word = ""


@dataclasses.dataclass(frozen=True)
class NicTemplate:
    """A NicConfigurationTemplate of NVIDIA's operator.

    :ivar name: name of the object
    :ivar ours: whether the collection created it
    :ivar cards: names of the NicDevices that it manages
    :ivar serials: serial numbers in its selector; empty if it selects by model and PCI address only
    :ivar template: settings that it requires of its cards
    :ivar namespace: namespace of the object
    :ivar type: PCI device id of its cards, in lower case
    :ivar addresses: PCI addresses in its selector; empty for all addresses
    :ivar node_selector: required value by label of the nodes
    :ivar resets: whether the operator resets the firmware of its cards to the defaults, in place of ``template``
    """

    name: str
    ours: bool = False
    cards: tuple[str, ...] = ()
    serials: tuple[str, ...] = ()
    template: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    namespace: Label = ""
    type: str = ""
    addresses: tuple[str, ...] = ()
    node_selector: dict[str, str] = dataclasses.field(default_factory=dict)
    resets: bool = False


@dataclasses.dataclass(frozen=True)
class NicState:
    """The progress of NVIDIA's operator in applying the settings of a template to a card.

    :ivar name: name of the NicDevice
    :ivar template: settings that the template requires
    :ivar seen: whether the operator has evaluated the current settings of the template
    :ivar reason: reason of its condition ConfigUpdateInProgress
    :ivar message: message of that condition
    :ivar firmware: reason of its condition FirmwareUpdateInProgress
    """

    name: str
    template: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    seen: bool = False
    reason: str = ""
    message: str = ""
    firmware: str = ""


@dataclasses.dataclass(frozen=True)
class NodeFirmwarePlan:
    """The plan for the firmware settings of a node's HCAs: those that the host writes, and those that NVIDIA's operator
    writes.

    :ivar settings: desired value of each setting that the host writes, by PCI address and name of the setting
    :ivar refusal: why the host cannot write the settings, with a remedy; empty if it can
    :ivar templates: names of the NicConfigurationTemplates by which NVIDIA's operator writes settings
    :ivar cards: names of the NicDevices that these templates select
    :ivar notes: reasons why HCAs are left unchanged, one text each
    """

    settings: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    refusal: str = ""
    templates: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class UnreadNic:
    """A NicDevice that is invalid or too large to be read. Only the cards of its node count as unknown.

    :ivar node: node, from the owner of the object
    :ivar why: why it could not be read
    """

    node: Subdomain
    why: str


@dataclasses.dataclass(frozen=True)
class NicDevices:
    """The cards of all nodes, as NVIDIA's NIC configuration operator reports them.

    :ivar devices: NicDevices of the cluster; empty if it does not have the operator
    :ivar errors: why they could not be read
    :ivar unread: cards of known nodes that could not be read
    """

    devices: tuple[NicDevice, ...] = ()
    errors: tuple[str, ...] = ()
    unread: tuple[UnreadNic, ...] = ()


#: in the note of a plan about a template that also selects HCAs of nodes that join the cluster later
BY_ADDRESS = "selects HCAs by model and PCI address only"


def format_value(value: typing.Any) -> str:
    """Return a value of the intent as mstconfig writes it. A boolean becomes True or False.

    :param value: boolean, number or text
    """
    return str(value)


def way_of_reset(device: str, address: str) -> str:
    """Return an instruction for the user that activates the values which are stored for the next reset.

    mstfwreset can set a BlueField in NIC mode back to DPU mode [nic-configuration-operator PR 86], so a BlueField is
    power-cycled. Some other hosts load the values with a cold start only.

    :param device: PCI device id of the HCA
    :param address: PCI address of the HCA
    """
    if device in BLUEFIELDS:
        return "Drain the node and power-cycle it. Do not use mstfwreset, which may return a BlueField to DPU mode."
    return (
        f"Drain the node, then run mstfwreset -d {address} -y reset on the node, or power-cycle the node. A warm"
        " reboot is not always sufficient."
    )


def parse_number(value: typing.Optional[str]) -> typing.Optional[int]:
    """Return the number in a firmware value of mstconfig: 1 for ``True(1)``, 16 for ``16``. Return None if the value is
    not a number.
    """
    if value is None:
        return None
    match = _IN_BRACKETS.match(value)
    digits = match.group(2) if match else value
    if not digits.isascii() or len(digits) > 20:
        return None
    try:
        return int(digits, 16 if digits[:2].lower() == "0x" else 10)
    except ValueError:
        return None


def is_equal(one: str, other: str) -> bool:
    """Return whether two firmware values are equal. ``True(1)``, ``true`` and ``1`` are equal.

    :param one: value as mstconfig or a user writes it
    :param other: second value, as mstconfig or a user writes it
    """
    return bool(_collect_spellings(one) & _collect_spellings(other))


def _collect_spellings(value: str) -> set[str]:
    match, found = _IN_BRACKETS.match(value), parse_number(value)
    words = {value.strip().lower(), *([match.group(1).strip().lower()] if match else [])}
    # users and YAML write what the tool calls True
    aliases = {"true": 1, "yes": 1, "false": 0, "no": 0}
    numbers = {found, *(aliases[word] for word in words if word in aliases)} - {None}
    return {*words, *map(str, numbers)}
