# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the storage NIC of a worker and of its virtual functions, on the host and in pods, and of what is measured
over them. Each is injected for real, and has its way back."""

from __future__ import annotations

import typing

from .fault import Action, Fault, Target, on_worker, take_nothing_back
from .planes import Lab

#: seconds that a fault waits for what it strikes
_THERE_LIMIT = 180.0
_SLOW_OUT = "tc qdisc replace dev net1 root tbf rate 3mbit burst 64kb latency 400ms"
_SLOW_IN = (
    "tc qdisc replace dev net1 handle ffff: ingress",
    "tc filter add dev net1 parent ffff: matchall action police rate 3mbit burst 256k conform-exceed drop",
)
_FAST_OUT, _FAST_IN = "tc qdisc del dev net1 root", "tc qdisc del dev net1 ingress"
_FIREWALL = "iptables -w"
# iWARP runs over TCP; RoCE would be UDP port 4791
_RDMA = "INPUT -i net1 -p tcp -j DROP"


def _storage_link(state: str) -> Action:
    def act(lab: Lab, target: Target) -> str:
        netdev = lab.description.sriov.netdev
        on_worker(lab, target.worker, f"ip link set {netdev} {state}")
        return f"{target.worker} {netdev} is {state}"

    return act


def _limit_functions(rate: int) -> Action:
    """The rate of each VF, in Mb/s; 0 is no limit. The emulated NIC takes it and does not keep to it."""

    def act(lab: Lab, target: Target) -> str:
        netdev = lab.description.sriov.netdev
        numbers = f"$(seq 0 $(($(cat /sys/class/net/{netdev}/device/sriov_numvfs) - 1)))"
        on_worker(
            lab,
            target.worker,
            f"for number in {numbers}; do ip link set {netdev} vf $number max_tx_rate {rate} || exit 1; done",
        )
        return f"the VFs of {target.worker} {netdev} have {f'a limit of {rate} Mb/s' if rate else 'no limit'}"

    return act


#: what RDMA on the host gets, in steady figures: what soft RDMA reaches by itself varies threefold
_STEADY, _SLOW = "12mbit", "3mbit"


def _on_functions(lab: Lab, target: Target, functions: typing.Sequence[str], commands: str) -> None:
    """Run shell commands for each network interface of these functions of the storage NIC that the host has, which is
    ``$netdev`` in them."""
    netdev = lab.description.sriov.netdev
    places = {"pf": f"/sys/class/net/{netdev}/device/net/*", "vf": f"/sys/class/net/{netdev}/device/virtfn*/net/*"}
    folders = " ".join(places[one] for one in functions)
    on_worker(
        lab,
        target.worker,
        f'for folder in {folders}; do [ -e "$folder" ] || continue; netdev=${{folder##*/}}; {commands}; done',
    )


def _limited(rate: str) -> str:
    return f'tc qdisc replace dev "$netdev" root tbf rate {rate} burst 16kb latency 400ms || exit 1'


def _host_rdma_on(lab: Lab, target: Target) -> str:
    add = 'ip link set "$netdev" up && rdma link add "rxe-$netdev" type rxe netdev "$netdev" || exit 1'
    _on_functions(lab, target, ("pf", "vf"), f"{add}; {_limited(_STEADY)}")
    return (
        f"{target.worker}: the storage NIC and its virtual functions have RDMA devices on the host, which send"
        f" {_STEADY}"
    )


def _host_rdma_off(lab: Lab, target: Target) -> str:
    # a function that a pod had since has lost its device on the way
    remove = 'rdma link delete "rxe-$netdev" 2> /dev/null; tc qdisc del dev "$netdev" root 2> /dev/null; true'
    _on_functions(lab, target, ("pf", "vf"), remove)
    return f"{target.worker}: the storage NIC has no RDMA device on the host"


def _host_rate(function: str, rate: str) -> Action:
    """A limit of one kind of function on the host, which has RDMA devices there (``host-rdma``)."""

    def act(lab: Lab, target: Target) -> str:
        _on_functions(lab, target, (function,), _limited(rate))
        return f"{target.worker}: the {function.upper()} of the storage NIC sends {rate} at most on the host"

    return act


def _in_pods(*commands: str, otherwise: str = "exit 1") -> Action:
    """Run commands in the network namespace of each of a worker's pods that has a VF, which is net1 there.

    :param otherwise: what the shell does when one of them fails
    """

    def act(lab: Lab, target: Target) -> str:
        inside = "; ".join(f'nsenter --net="$pod" {command} || {otherwise}' for command in commands)
        script = (
            f'for pod in /run/netns/*; do if nsenter --net="$pod" ip link show net1 > /dev/null 2>&1; then {inside};'
            " fi; done"
        )
        on_worker(lab, target.worker, script)
        return f"{target.worker}: {'; '.join(commands)}"

    return act


def _back_in_pods(*commands: str) -> Action:
    """The way back: a pod that never had the fault, or is gone, needs none."""
    return _in_pods(*(f"{command} 2> /dev/null" for command in commands), otherwise="true")


#: waits until data flows between a server of ib_write_bw and its client, then kills the server: the client prints its
#: table all the same
_KILL_SERVER = r"""
end=$(($(date +%%s) + %d))
while [ "$(date +%%s)" -lt "$end" ]; do
  for pid in $(pgrep -x ib_write_bw); do
    # the last word of a client is its server's address
    case "$(tr '\0' '\n' 2>/dev/null < "/proc/$pid/cmdline" | tail -n 1)" in *.*.*.*) continue ;; esac
    received=$(awk '$1 == "net1:" { print $2 }' "/proc/$pid/net/dev" 2>/dev/null)
    [ -n "$received" ] || continue
    eval "first=\${first_$pid:=$received}"
    if [ $((received - first)) -gt 200000 ]; then kill -KILL "$pid"; exit; fi
  done
  sleep 0.05
done
echo "no server of ib_write_bw received data" >&2
exit 1
"""


def _kill_server(lab: Lab, target: Target) -> str:
    lab.agent(target.worker).check(_KILL_SERVER % _THERE_LIMIT, limit=_THERE_LIMIT + 30)
    return f"{target.worker}: a server of ib_write_bw was killed while it received"


NIC_FAULTS = (
    Fault(
        "vf-down",
        "the PF of the storage NIC is down, so its VFs lose their carrier",
        ("worker",),
        _storage_link("down"),
        _storage_link("up"),
    ),
    Fault(
        "slow-node",
        "the VFs in a worker's pods send and receive 3 Mb/s at most",
        ("worker",),
        _in_pods(_SLOW_OUT, *_SLOW_IN),
        _back_in_pods(_FAST_OUT, _FAST_IN),
    ),
    Fault(
        "vf-limited",
        "the PF lets each VF of a worker send 3 Mb/s at most",
        ("worker",),
        _limit_functions(3),
        _limit_functions(0),
    ),
    Fault(
        "host-rdma",
        "the storage NIC and its virtual functions have RDMA devices on a worker itself, as HCAs do",
        ("worker",),
        _host_rdma_on,
        _host_rdma_off,
    ),
    Fault(
        "slow-pf",
        "the storage NIC of a worker with host-rdma sends 3 Mb/s at most",
        ("worker",),
        _host_rate("pf", _SLOW),
        _host_rate("pf", _STEADY),
    ),
    Fault(
        "slow-vf",
        "the VFs that no pod has of a worker with host-rdma send 3 Mb/s at most",
        ("worker",),
        _host_rate("vf", _SLOW),
        _host_rate("vf", _STEADY),
    ),
    Fault(
        "slow-direction",
        "the VFs in a worker's pods send 3 Mb/s at most",
        ("worker",),
        _in_pods(_SLOW_OUT),
        _back_in_pods(_FAST_OUT),
    ),
    Fault(
        "rdma-dropped",
        "what arrives for RDMA at the VFs in a worker's pods is dropped in silence",
        ("worker",),
        _in_pods(f"{_FIREWALL} -I {_RDMA}"),
        _back_in_pods(f"{_FIREWALL} -D {_RDMA}"),
    ),
    Fault(
        "address-gone",
        "the VFs in a worker's pods lose their address; nothing to take back",
        ("worker",),
        _in_pods("ip addr flush dev net1"),
        take_nothing_back,
    ),
    Fault(
        "server-killed",
        "a server of ib_write_bw is killed while it receives; nothing to take back",
        ("worker",),
        _kill_server,
        take_nothing_back,
    ),
)
