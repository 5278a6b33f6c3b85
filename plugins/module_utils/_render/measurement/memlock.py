# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders the pod that proves how much memory a container may lock. The pod is not root, has no IPC_LOCK, and has one
virtual function of a fabric.

The pod runs ibv_rc_pingpong, which registers its buffer first and then waits for a peer that never connects. Its output
before the wait shows whether the registration succeeded.
"""

from __future__ import annotations

import typing

from ..._model.intent.host_intent import Memlock
from ..._model.intent.intent import ClusterIntent, Fabric
from ..cluster.names import object_name
from .pods import render_measuring_pod

#: seconds that the registration may take; user that the pod runs as; MiB beside the buffer
_LIMIT, _USER, _BESIDE = 15, 65532, 256

_SCRIPT = r"""
echo "user $(id -u)"
echo "soft $(ulimit -S -l)"
echo "hard $(ulimit -H -l)"
echo "asked $1"
device=
for address in $(env | grep '^PCIDEVICE_' | grep -v '_INFO=' | cut -d= -f2- | tr ',' ' '); do
  for found in /sys/bus/pci/devices/$address/infiniband/*; do
    # the second device of an HCA with several planes is for management alone
    [ -e "$found" ] && device=${device:-${found##*/}}
  done
done
[ -n "$device" ] || device=$(rdma link | sed -n 's|^link \([^/]*\)/.* netdev net1 *$|\1|p' | head -n 1)
[ -n "$device" ] || exit 0
echo "device $device"
timeout --kill-after=5 "$2" stdbuf -oL ibv_rc_pingpong -d "$device" -s "$1" 2>&1
echo "code $?"
"""


def render_memlock_pod(
    fabric: Fabric, cluster: ClusterIntent, node: str, memlock: Memlock, run: str = ""
) -> dict[str, typing.Any]:
    """Render the memlock pod. It equals the pod of stage bandwidth except for user, capabilities, memory and command.
    It ends by itself, and its log contains the result.

    :param memlock: settings of the proof, with the amount of memory to lock
    :param run: id of the run that owns the pod; empty for none
    """
    made = render_measuring_pod(fabric, cluster, node, run=run)
    made["metadata"]["name"] = object_name("linerate-memlock", fabric.name, node)
    (container,) = made["spec"]["containers"]
    container["command"] = ["sh", "-c", _SCRIPT, "memlock", str(memlock.proof_bytes), str(_LIMIT)]
    container["securityContext"]["capabilities"] = {"drop": ["ALL"]}
    container["securityContext"].update(runAsNonRoot=True, runAsUser=_USER)
    for amounts in container["resources"].values():
        amounts["memory"] = f"{memlock.proof_mib + _BESIDE}Mi"
    return made
