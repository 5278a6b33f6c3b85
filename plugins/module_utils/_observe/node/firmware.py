# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the firmware of the HCAs of a node from sysfs, devlink (iproute2), and mstconfig (mstflint) or mlxconfig of
NVIDIA. Nothing is changed.

mstconfig reads the settings one after the other. This takes a second or more, and 10 to 20 s on some HCAs, so the HCAs
are queried in parallel.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import time
import typing

from ..._model.base.errors import ParseError, ToolMissing
from ..._model.base.operand import require_operand
from ..._model.node.firmware import (
    DEVLINK,
    KEPT,
    SYSFS,
    VENDOR,
    FirmwareSetting,
    HcaFirmware,
    NodeFirmware,
    ReportedSetting,
)
from ..._model.node.hca import Hca, NodeHcas
from ..._parse.node import devlink, mstconfig
from ..process import command

#: the tool and the package that brings it, the preferred one first: both are one source
TOOLS = (("mstconfig", "mstflint"), ("mlxconfig", "mft"))
#: that one question may take, and all of a node together
_ONE_SECONDS, _ALL_SECONDS, _DEVLINK_SECONDS = 60.0, 90.0, 10.0
_PARALLEL = 16
#: what a build says that does not know the option
_NO_JSON = "invalid argument: -j"


@dataclasses.dataclass(frozen=True)
class Tool:
    """The installed program mstconfig or mlxconfig, which reads and writes firmware settings.

    :ivar path: path of the program
    :ivar version: version of the program as numbers; empty if unknown
    """

    path: str
    version: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the program with its version for messages, such as ``mstconfig 4.31.0``. The version is
        left out if it is unknown.
        """
        return " ".join([os.path.basename(self.path), *([".".join(map(str, self.version))] if self.version else [])])


def find_tool() -> Tool:
    """Return the program that reads and writes firmware settings (mstconfig or mlxconfig), with its version.

    :raises ToolMissing: neither mstconfig nor mlxconfig is installed
    """
    for name, _package in TOOLS:
        path = shutil.which(name, path=command.search_path())
        if path is not None:
            try:
                return Tool(path, mstconfig.parse_version(command.run([path, "-v"], _DEVLINK_SECONDS).stdout))
            except ParseError:
                # the table of all versions is read, whichever this is
                return Tool(path)
    raise ToolMissing(*TOOLS[0])


def read_firmware(
    hcas: NodeHcas, root: str = "/sys", chosen: typing.Container[str] = (), every: bool = False
) -> NodeFirmware:
    """Read the firmware versions and settings of the physical functions of HCAs, and return them in the order of the
    functions. An error is stored with the function that it concerns.

    :param hcas: HCAs of the node
    :param root: sysfs of the running kernel, which the programs use. A function that is missing in it is not queried
    :param chosen: PCI addresses of the functions to read; empty for all
    :param every: whether to return all settings, instead of only those that the collection uses
    """
    functions = [
        hca
        for hca in hcas.functions
        if not hca.is_virtual and (not chosen or (hca.pci is not None and hca.pci.address in chosen))
    ]
    tool: typing.Optional[Tool] = None
    devices = os.path.join(root, "bus/pci/devices")
    if any(_can_query_hca(hca, devices) for hca in functions):
        try:
            tool = find_tool()
        except ToolMissing:
            tool = None
    end = time.monotonic() + _ALL_SECONDS
    return NodeFirmware(
        command.call_each(lambda hca: _look_at_firmware(hca, devices, tool, end, every), functions, _PARALLEL)
    )


def query_settings(tool: Tool, address: str, seconds: float = _ONE_SECONDS) -> tuple[tuple[FirmwareSetting, ...], str]:
    """Return all settings of an HCA, and the error of the program if it could not read all of them. The error is empty
    if the program succeeded.

    :param tool: program that reads the settings
    :param address: PCI address of the HCA
    :param seconds: limit of each program run in seconds
    :raises ParseError: the output is not a table of settings
    """
    asked = [tool.path, "-d", require_operand(address, "the PCI address"), "-e"]
    if tool.version >= mstconfig.JSON_SINCE:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "settings.json")
            finished = command.run([*asked, "-j", path, "query"], seconds)
            # a build without JSON says so at once
            if _NO_JSON not in finished.stdout:
                return _read_settings(finished, lambda: mstconfig.parse_json(_read_text_file(path)))
    finished = command.run([*asked, "query"], seconds)
    return _read_settings(finished, lambda: mstconfig.parse(finished.stdout))


def _read_settings(
    finished: command.Finished, read: typing.Callable[[], mstconfig.Query]
) -> tuple[tuple[FirmwareSetting, ...], str]:
    """Return the settings in the output of the program, and its error message. If the program failed and its output is
    not a table of settings, return no settings and the error of the program rather than that of the parser.

    :param finished: result of the program
    :param read: function without arguments that parses the output of the program
    :raises ParseError: the program succeeded, and its output is not a table of settings
    """
    try:
        return read().settings, finished.failure
    except ParseError:
        if finished.rc == 0:
            raise
        return (), finished.failure


def _read_text_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _can_query_hca(hca: Hca, devices: str) -> bool:
    """Return whether mstconfig can query an HCA: it is an NVIDIA HCA that sysfs shows and that is not passed through to
    a virtual machine (vfio-pci).

    :param devices: folder of the PCI devices in sysfs
    """
    function = hca.pci
    return (
        function is not None
        and function.vendor == VENDOR
        and function.driver != "vfio-pci"
        and os.path.isdir(os.path.join(devices, function.address))
    )


def _look_at_firmware(hca: Hca, devices: str, tool: typing.Optional[Tool], end: float, every: bool) -> HcaFirmware:
    function = hca.pci
    address, device = (function.address, function.device) if function else ("", "")
    running, psid = (ReportedSetting(value, SYSFS) if value else None for value in (hca.firmware, hca.board))
    made = HcaFirmware(address, device, psid, running)
    if function is None or function.driver == "vfio-pci" or not os.path.isdir(os.path.join(devices, address)):
        why = (
            "the function is passed through (vfio-pci)"
            if function and function.driver == "vfio-pci"
            else "the kernel of the node does not list this PCI function"
        )
        return dataclasses.replace(made, not_asked=(f"devlink, mstconfig: {why}",))
    return _add_settings(_add_devlink(made, end), hca, devices, tool, end, every)


def _add_devlink(made: HcaFirmware, end: float) -> HcaFirmware:
    """Return the firmware of an HCA, with the versions that devlink reports added. If devlink is not installed or
    fails, only record that in ``not_asked``. It is not an error, because sysfs reports the running version too.

    :param made: firmware as read from sysfs
    :param end: deadline of the whole query, as time of the monotonic clock in seconds
    """
    try:
        finished = command.run(
            [command.require_tool("devlink", "iproute2"), "-j", "dev", "info", f"pci/{made.address}"],
            _compute_time_left(end, _DEVLINK_SECONDS),
        )
        if finished.rc != 0:
            return dataclasses.replace(made, not_asked=(finished.failure,))
        info = devlink.parse(finished.stdout, made.address)
    except ToolMissing:
        return dataclasses.replace(made, not_asked=("devlink is not installed",))
    except ParseError as error:
        return dataclasses.replace(made, not_asked=(str(error),))
    psid, running, stored = (ReportedSetting(value, DEVLINK) if value else None for value in info)
    return dataclasses.replace(made, psid=psid or made.psid, running=running or made.running, stored=stored)


def _add_settings(
    made: HcaFirmware, hca: Hca, devices: str, tool: typing.Optional[Tool], end: float, every: bool
) -> HcaFirmware:
    if not _can_query_hca(hca, devices):
        return dataclasses.replace(made, not_asked=(*made.not_asked, "mstconfig: the HCA is not an NVIDIA HCA"))
    if tool is None:
        return dataclasses.replace(made, not_asked=(*made.not_asked, "mstconfig is not installed"))
    left = _compute_time_left(end, _ONE_SECONDS)
    if left < 1:
        return dataclasses.replace(
            made, errors=(f"{tool.name} was not asked: querying all HCAs took more than {_ALL_SECONDS:g} s",)
        )
    try:
        settings, failure = query_settings(tool, made.address, left)
    except ParseError as error:
        settings, failure = (), str(error)
    kept = tuple(setting for setting in settings if every or setting.pending or KEPT.fullmatch(setting.name))
    return dataclasses.replace(
        made, settings=kept, settings_from=tool.name if kept else "", errors=(failure,) if failure else ()
    )


def _compute_time_left(end: float, most: float) -> float:
    return max(0.1, min(most, end - time.monotonic()))
