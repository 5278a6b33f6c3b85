# SPDX-License-Identifier: GPL-3.0-or-later

"""Predict the effect of the SR-IOV operator on a physical function itself, also if no policy selects it any longer.
Pure.

The operator resets a physical function with virtual functions that it configured before. It removes the virtual
functions, and sets the eSwitch mode and the MTU of before its policy. Where it does not know them, it sets the mode
legacy and the MTU 1500 (InfiniBand: 2048).
[k8snetworkplumbingwg/sriov-network-operator pkg/host/internal/sriov/sriov.go getConfigureAndReset,
checkForConfigAndReset, ResetSriovDevice]

The driver mlx5_core takes the carrier off while it sets an MTU. For another eSwitch mode it makes network interface and
RDMA device again. _analysis/disruption/link_users.py names its source.
"""

from __future__ import annotations

import typing

from ...._model.operators.sriov_operator import NodeState, StateInterface, WantedInterface
from .changes import list_function_changes

_ETHERNET_MTU, _INFINIBAND_MTU = 1500, 2048


class FunctionChange(typing.NamedTuple):
    """The change of a physical function itself, not of its virtual functions.

    :ivar texts: the changes, as text; empty if nothing changes
    :ivar interrupts: whether the link of the function is interrupted during the change
    :ivar remakes: whether the driver removes and creates the network interface and the RDMA device of the function
    """

    texts: tuple[str, ...] = ()
    interrupts: bool = False
    remakes: bool = False


def find_function_change(
    wish: typing.Optional[WantedInterface], interface: StateInterface, state: NodeState
) -> FunctionChange:
    """Return the change of a physical function by the operator.

    :param wish: desired state of the physical function; None if no policy selects it
    :param interface: physical function as the config daemon reports it
    :param state: SriovNetworkNodeState of the node
    """
    if wish is None:
        return _find_reset(interface, state)
    if wish.external:
        return FunctionChange()
    remakes = (wish.eswitch_mode or "legacy") != (interface.eswitch_mode or "legacy")
    return FunctionChange(
        tuple(list_function_changes(wish, interface)), wish.mtu > (interface.mtu or 0) or remakes, remakes
    )


def _find_reset(interface: StateInterface, state: NodeState) -> FunctionChange:
    ours = any(item.address == interface.address and not item.external for item in state.wanted)
    if not ours or not interface.vfs_count:
        return FunctionChange()
    texts = []
    standard = _INFINIBAND_MTU if (interface.link_type or "").upper() == "IB" else _ETHERNET_MTU
    smaller = (interface.mtu or 0) > standard
    if smaller:
        texts.append(f"MTU {interface.mtu} -> that of before the policy, or {standard}")
    remakes = (interface.eswitch_mode or "legacy") != "legacy"
    if remakes:
        texts.append(f"eSwitch mode {interface.eswitch_mode} -> that of before the policy, or legacy")
    texts.append(f"no policy selects it any longer, virtual functions {interface.vfs_count} -> 0")
    return FunctionChange(tuple(texts), smaller or remakes, remakes)
