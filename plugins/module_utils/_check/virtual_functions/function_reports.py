# SPDX-License-Identifier: GPL-3.0-or-later

"""The reports of each layer on a physical function: kernel, operator and config daemon. Part of stage
virtual_functions.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.intent.intent import Fabric
from ..._model.node.hca import Hca
from ..._model.operators.sriov_operator import NodeState, StateInterface, WantedInterface


@dataclasses.dataclass(frozen=True)
class FunctionReports:
    """The reports on one physical function and its VFs: by the kernel, and in the SriovNetworkNodeState by the operator
    and its config daemon.

    :ivar fabric: fabric to which the function belongs
    :ivar node: name of the node
    :ivar hca: the physical function
    :ivar vfs: virtual functions of the physical function, as sysfs shows them
    :ivar state: SriovNetworkNodeState of the node; None if the node has none, or if it is not known
    :ivar unread: reason for which it is not known whether the node has such a state; empty if it is known
    """

    fabric: Fabric
    node: str
    hca: Hca
    vfs: tuple[Hca, ...]
    state: typing.Optional[NodeState]
    unread: str = ""

    @property
    def address(self) -> str:
        return self.hca.pci.address if self.hca.pci else ""

    @property
    def subject(self) -> str:
        return f"{self.fabric.name} {self.node} {self.hca.name} {self.address}".strip()

    @property
    def desired(self) -> typing.Optional[WantedInterface]:
        """Return the configuration that the operator requests for the physical function. Return None if it requests
        none.
        """
        return next((item for item in self.state.wanted if item.address == self.address), None) if self.state else None

    @property
    def reported(self) -> typing.Optional[StateInterface]:
        """Return the report of the config daemon on the physical function. Return None if there is none."""
        return (
            next((item for item in self.state.interfaces if item.address == self.address), None) if self.state else None
        )

    @property
    def in_pods(self) -> tuple[Hca, ...]:
        """Return the VFs without a network interface on the node. The interface is in a pod, or does not exist."""
        return tuple(vf for vf in self.vfs if not vf.netdevs)

    @property
    def hidden(self) -> tuple[Hca, ...]:
        """Return the VFs whose network interface was found neither on the node nor in a pod of the node."""
        return tuple(vf for vf in self.vfs if not vf.all_netdevs)

    @property
    def exclusive(self) -> bool:
        """Return whether the node is in exclusive RDMA mode, in which an RDMA device moves into a pod together with its
        interface. If the config daemon does not report the mode, the VFs show it: only those in pods have no RDMA
        device on the node.
        """
        mode = self.state.rdma_mode if self.state else ""
        return mode == "exclusive" or (
            not mode
            and any(vf.rdma_device and vf.netdevs for vf in self.vfs)
            and all(vf.held for vf in self.vfs if not vf.rdma_device)
        )
