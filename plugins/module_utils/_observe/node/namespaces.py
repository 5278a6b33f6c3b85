# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the interfaces and RDMA devices that are in the network namespaces of pods, and so are missing in the sysfs of
the node.

A sysfs shows the interfaces, and in exclusive mode the RDMA devices, of the network namespace in which it was mounted.
So one sysfs is mounted for each namespace (``namespace_sysfs``). This requires root, but neither a tool nor the API
server.

The namespaces of all processes are read, and those to which a container engine gave a name. A pod that crashed or is
gone has no process left in its namespace. No file of a container is opened. A tenant still controls the values that the
kernel lets it set in its namespace: names, addresses, MTU and aliases of interfaces. Only the kernel decides to which
PCI function an interface belongs.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.devices import INTERFACE, RDMA_DEVICE
from ..._model.boundary.form import Form
from ..._model.boundary.words import WORD
from ..._model.node.hca import HeldParts, Netdev
from ..._parse.node.sysfs import parse_guid, pci_address_of_link
from .namespace_sysfs import ReadNamespace, read_namespaces
from .sysfs import read_netdev, read_ports
from .sysfs_reader import SysfsReader, make_natural_sort_key

#: of one node, of one class in a namespace, and of one function: who may make namespaces and interfaces makes any
#: number of them
_MOST_NAMESPACES, _MOST_ENTRIES, _MOST_NETDEVS = 2048, 1024, 64
_MOST_ERRORS = 16
#: where container engines and ip keep namespaces by name, seen from the first process
_NAMED = "1/root/run/netns"
_IDENTITY = re.compile(r"net:\[[0-9]+\]", re.ASCII)


class HeldByPods(typing.NamedTuple):
    """The interfaces and RDMA devices of a node that are in the network namespaces of pods.

    :ivar parts: interfaces and RDMA devices, by the PCI address of their function
    :ivar errors: messages about namespaces, interfaces and devices that could not be read or were left out
    """

    parts: dict[str, HeldParts]
    errors: tuple[str, ...] = ()


def read_held_parts(
    roots: typing.Sequence[str],
    proc: str = "/proc",
    enter: typing.Callable[[typing.Sequence[str], ReadNamespace], typing.Sequence[str]] = read_namespaces,
) -> HeldByPods:
    """Return the interfaces and RDMA devices in the network namespaces of pods. Only PCI functions are included whose
    interface or RDMA device is missing in the sysfs of the node.

    A namespace that ends meanwhile is left out. Without root, no namespace can be entered, and the functions in them
    are missing in the result.

    :param roots: sysfs roots of the node, usually only /sys
    :param proc: procfs that shows the processes of the node
    :param enter: function that gets paths of namespaces and a reader. It calls the reader with the path and the sysfs
        root of each namespace, and returns the errors of those that could not be read
    """
    known = _list_other_namespaces(proc)
    idle = _idle_namespaces(proc, known)
    namespaces = [*known.values(), *idle]
    found = _Found(roots, idle)
    if len(namespaces) > _MOST_NAMESPACES:
        found.left_out(
            f"{proc}: there are {len(namespaces)} network namespaces: the content beyond the first {_MOST_NAMESPACES}"
            " is unknown"
        )
    for error in enter(namespaces[:_MOST_NAMESPACES], found.read_namespace):
        found.left_out(error)
    return found.result()


class _Found:
    """A collector of the interfaces and RDMA devices of PCI functions, to which network namespaces are added one by
    one.

    :param roots: sysfs roots of the node
    :param idle: paths of the namespaces without a process
    """

    def __init__(self, roots: typing.Sequence[str], idle: typing.Container[str] = ()) -> None:
        self._idle, self._lost = idle, typing.cast(dict[str, str], {})
        self._errors: list[str] = []
        self._more_errors = 0
        here = {
            kind: [
                _list_functions(os.path.join(root, "class", kind), _list_folder(os.path.join(root, "class", kind)))
                for root in roots
            ]
            for kind in _FORMS
        }
        self._here = {
            kind: {address for functions in every for address in functions.values()} for kind, every in here.items()
        }
        self._netdevs: dict[str, list[Netdev]] = {}
        self._names: dict[str, list[str]] = {}
        self._devices: dict[str, HeldParts] = {}

    def left_out(self, why: str) -> None:
        """Record the reason why an interface, a device or a namespace was left out. The first ``_MOST_ERRORS`` reasons
        are kept, and only the number of further ones.
        """
        if len(self._errors) < _MOST_ERRORS:
            self._errors.append(why)
        else:
            self._more_errors += 1

    def read_namespace(self, namespace: str, root: str) -> None:
        """Add the interfaces and RDMA devices of one namespace.

        :param namespace: path of the namespace, for messages
        :param root: sysfs of the namespace
        """
        own: dict[str, list[Netdev]] = {}
        for name, address in self._iterate_foreign_functions(namespace, root, "net"):
            netdevs = self._netdevs.setdefault(address, [])
            if len(netdevs) >= _MOST_NETDEVS:
                self.left_out(
                    f"{namespace}: {address} has more than {_MOST_NETDEVS} interfaces: the others were not read"
                )
                continue
            reader = SysfsReader(os.path.join(root, "class/net", name))
            netdev = read_netdev(reader, name, SysfsReader(root))
            if netdev is None:
                continue
            if netdev.bond is not None and not self._is_valid_name(
                INTERFACE, netdev.bond, f"{namespace}: the bond of {name}, {address}"
            ):
                netdev = dataclasses.replace(netdev, bond=None)
            if netdev.bridge is not None and not self._is_valid_name(
                INTERFACE, netdev.bridge, f"{namespace}: the bridge of {name}, {address}"
            ):
                netdev = dataclasses.replace(netdev, bridge=None)
            netdevs.append(netdev)
            self._record_lost_function(address, namespace)
            own.setdefault(address, []).append(netdev)
            # the name that it had on the node [containernetworking/plugins main/host-device moveLinkIn]; any other
            # alias is none
            alias = INTERFACE.parse(reader.text("ifalias"))
            if alias is not None:
                self._names.setdefault(address, []).append(alias)
        for name, address in self._iterate_foreign_functions(namespace, root, "infiniband"):
            device = SysfsReader(os.path.join(root, "class/infiniband", name))
            ports = read_ports(device, own.get(address, ()))
            self._devices[address] = HeldParts(
                rdma_device=name, node_guid=device.value("node_guid", parse_guid), ports=ports
            )
            self._record_lost_function(address, namespace)

    def _record_lost_function(self, address: str, namespace: str) -> None:
        if namespace in self._idle:
            self._lost[address] = os.path.basename(namespace)

    def result(self) -> HeldByPods:
        """Return the interfaces and devices that were found, and the recorded reasons why parts were left out."""
        every = sorted(self._devices.keys() | {address for address, netdevs in self._netdevs.items() if netdevs})
        parts = {
            address: dataclasses.replace(
                self._devices.get(address, HeldParts()),
                netdevs=tuple(self._netdevs.get(address, ())),
                names=tuple(self._names.get(address, ())),
                idle=WORD.parse(self._lost.get(address)),
            )
            for address in every
        }
        more = [f"network namespaces: {self._more_errors} more were skipped or not read"] if self._more_errors else []
        return HeldByPods(parts, (*self._errors, *more))

    def _iterate_foreign_functions(self, namespace: str, root: str, kind: str) -> typing.Iterator[tuple[str, str]]:
        """Yield the name of each interface or RDMA device in a namespace, with the PCI address of its function.
        Functions that have such an entry in the sysfs of the node are left out.

        :param namespace: identity of the namespace, for messages
        :param root: folder with the sysfs of the namespace
        :param kind: class folder in sysfs, such as ``net`` or ``infiniband``
        """
        folder = os.path.join(root, "class", kind)
        names = _list_folder(folder)
        if len(names) > _MOST_ENTRIES:
            self.left_out(
                f"{namespace}: {len(names)} entries in {folder}: those after the first {_MOST_ENTRIES} were not read"
            )
        for name, address in _list_functions(folder, names[:_MOST_ENTRIES]).items():
            if address not in self._here[kind] and self._is_valid_name(
                _FORMS[kind], name, f"{namespace}: {folder}, {address}"
            ):
                yield name, address

    def _is_valid_name(self, form: Form, text: str, source: str) -> bool:
        """Return whether the name of a pod's interface or device has the form that facts require. The kernel allows
        other names too. A name of another form is recorded as left out, and the caller skips it so that the facts of
        the node remain valid.

        :param form: form that the facts require
        :param text: name of the interface or device
        :param source: file with the name, for the message
        """
        try:
            form.of(text, source)
        except ParseError as error:
            self.left_out(f"{error}: skipped")
            return False
        return True


_FORMS: dict[str, Form] = {"net": INTERFACE, "infiniband": RDMA_DEVICE}


def _list_other_namespaces(proc: str) -> dict[str, str]:
    """Return the path of each network namespace except that of this process, by identity of the namespace, such as
    ``net:[4026531840]``. The path is that of the process with the lowest ID in the namespace.

    :param proc: folder in which procfs is mounted
    """
    own = _read_link(os.path.join(proc, "self/ns/net"))
    found: dict[str, str] = {}
    for pid in sorted(filter(str.isdigit, _list_folder(proc)), key=int):
        path = os.path.join(proc, pid, "ns/net")
        namespace = _read_link(path)
        if namespace and namespace != own:
            found.setdefault(namespace, path)
    return found


def _idle_namespaces(proc: str, known: typing.Container[str]) -> list[str]:
    """Return the paths of network namespaces to which a container engine gave a name and in which no process runs.

    :param proc: folder in which procfs is mounted
    :param known: identities of the namespaces that have processes
    """
    folder, own = os.path.join(proc, _NAMED), os.path.join(proc, "self/ns/net")
    paths = {
        _read_namespace_identity(path, own): path
        for path in (os.path.join(folder, name) for name in _list_folder(folder))
    }
    return [
        path for identity, path in paths.items() if identity and identity not in known and identity != _read_link(own)
    ]


def _read_namespace_identity(path: str, own: str) -> str:
    """Return the identity of a network namespace, such as ``net:[4026531840]``. Return an empty string if the path does
    not lead to a network namespace.

    :param path: link in /proc, or file at which a container engine mounted the namespace
    :param own: path of the network namespace of this process, for comparison
    """
    text = _read_link(path)
    if _IDENTITY.fullmatch(text):
        return text
    try:
        seen, like = os.lstat(path), os.stat(own)
    except OSError:
        return ""
    return f"net:[{seen.st_ino}]" if stat.S_ISREG(seen.st_mode) and seen.st_dev == like.st_dev else ""


def _list_functions(folder: str, names: typing.Sequence[str]) -> dict[str, str]:
    """Return the PCI address of each interface or RDMA device in a class folder of sysfs, by its name. Entries without
    a PCI function are left out.

    :param folder: class folder, such as ``/sys/class/net``
    :param names: names of the entries of the folder
    """
    found = {name: pci_address_of_link(_read_link(os.path.join(folder, name))) for name in names}
    return {name: address for name, address in found.items() if address}


def _list_folder(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder), key=make_natural_sort_key)
    except OSError:
        return []


def _read_link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
