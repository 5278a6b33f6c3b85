# SPDX-License-Identifier: GPL-3.0-or-later

"""Find settings by which the pods of a job announce the loopback interface to each other. Check id:
``job.interfaces``.

NCCL permits such values, because they are right for a job of one pod. In a job of several pods, the processes of each
other pod connect to themselves. [src NVIDIA/nccl v2.30.7 src/os/linux.cc ncclOsFindInterfaces, src/bootstrap.cc;
horovod/horovod#700 on ``^docker0``; pytorch torch/csrc/distributed/c10d/init.cpp GLOO_SOCKET_IFNAME]
"""

from __future__ import annotations

import ipaddress
import typing

from ..._model.base.text import cut_text
from ..._model.job.job import Variable
from ..._model.run.findings import FAIL, WARN, Finding, Status
from .choice import SHOWN, Choice
from .scope import LintedTemplate, read_integer

LOOPBACK = "lo"
_EXPECTED = "interfaces that other pods can reach"


def is_loopback(host: str) -> bool:
    """Return whether a host is the loopback address of each pod.

    :param host: name or IP address, without a port
    """
    text = host.strip().strip("[]").lower()
    if text in ("localhost", "localhost.localdomain"):
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def cut_port(address: str) -> str:
    """Return the host of an address in the form ``host``, ``host:port``, ``[IPv6]:port`` or IPv6."""
    text = address.strip()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def list_loopbacks(scope: LintedTemplate) -> typing.Iterator[Finding]:
    """Yield the variables of a job with more than one pod by which its processes meet at the loopback interface.

    :param scope: pod template of a job, and the cluster in which it would run
    """
    if not scope.has_peers:
        return
    for name, judge in _RULES:
        variable = scope.value(name)
        found = judge(scope, variable.value) if variable is not None and variable.value else None
        if variable is not None and found is not None:
            yield _report(scope, variable, *found)


_Judged = typing.Optional[tuple[Status, str, str]]


def _judge_sockets(_scope: LintedTemplate, value: str) -> _Judged:
    choice = Choice.parse(value)
    if not choice.patterns or not choice.takes(LOOPBACK):
        return None
    why = (
        "NCCL makes its first connections over the first interface that the value takes. The kernel lists lo first, and"
        " other pods cannot reach its address 127.0.0.1."
    )
    remedy = "Remove lo from NCCL_SOCKET_IFNAME: name the interfaces of the annotation (net1, net2 ...), or eth0."
    if choice.exclude:
        remedy = f"Add lo to the excluded interfaces ({value.strip().rstrip(',')},lo), or remove the variable."
    return FAIL, why, remedy


def _judge_first_address(_scope: LintedTemplate, value: str) -> _Judged:
    if not is_loopback(cut_port(value)):
        return None
    why = "All processes of the job meet at this address. It is a different place in each pod, so the pods never meet."
    return FAIL, why, "Remove NCCL_COMM_ID, or set it to an address of the pod with rank 0 that other pods can reach."


def _judge_out_of_band(scope: LintedTemplate, value: str) -> _Judged:
    enabled = scope.value("NCCL_OOB_NET_ENABLE")
    if enabled is None or not enabled.value or read_integer(enabled.value) == 0:
        return None
    choice = Choice.parse(value)
    if choice.exclude or LOOPBACK not in choice.patterns:
        return None
    why = (
        "The variable names devices of NCCL's network. No RDMA device has the name lo, so NCCL stops. Over TCP, other"
        " pods cannot reach lo."
    )
    return FAIL, why, "Remove lo from NCCL_OOB_NET_IFNAME, or remove the variable."


def _judge_gloo(_scope: LintedTemplate, value: str) -> _Judged:
    if LOOPBACK not in (name.strip() for name in value.split(",")):
        return None
    why = "Process groups of Gloo announce the address 127.0.0.1 of this interface, which other pods cannot reach."
    return WARN, why, "Set GLOO_SOCKET_IFNAME to eth0, or remove the variable."


_RULES: tuple[tuple[str, typing.Callable[[LintedTemplate, str], _Judged]], ...] = (
    ("NCCL_SOCKET_IFNAME", _judge_sockets),
    ("NCCL_COMM_ID", _judge_first_address),
    ("NCCL_OOB_NET_IFNAME", _judge_out_of_band),
    ("GLOO_SOCKET_IFNAME", _judge_gloo),
)


def _report(scope: LintedTemplate, variable: Variable, status: Status, why: str, remedy: str) -> Finding:
    return Finding(
        "job.interfaces",
        f"{scope.subject} {variable.name}",
        status,
        cut_text(variable.value or "", SHOWN),
        _EXPECTED,
        why,
        remedy,
    )
