# SPDX-License-Identifier: GPL-3.0-or-later

"""Find NCCL variables of a job that permit RDMA, and take GPUDirect RDMA, HCAs or the queue of RoCE from it. Check id:
``job.transport``.

NCCL reports none of them as an error. They are usual in examples for other clusters. Each is a warning, because some
machines need it.
"""

from __future__ import annotations

import typing

from ..._analysis.fleet.paths.packets import is_index_of_roce_v1
from ..._model.job.job import Variable
from ..._model.job.nccl import is_verbs
from ..._model.run.findings import WARN, Status
from .scope import LintedTemplate, read_integer

_ROCE = ("sriov", "macvlan")
#: parts of the names of network plugins that may send over TCP: libfabric, and those of Google's TCP networks
_PLUGINS = ("ofi", "libfabric", "fastrak", "tcpx")
_REMOVE = "Remove the variable."
_CHANNEL_LIMITS = ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")
#: variables of the rules below whose effect the channels in the log of a job do not show
_SILENT = ("NCCL_PROTO",)
_WITHOUT_GPU_DIRECT = "The data of GPUs then passes through host memory, at a fraction of the rate."


class _Rule(typing.NamedTuple):
    """Values of a variable that the linter warns about.

    :ivar name: name of the variable
    :ivar is_harmful: returns whether a value is harmful
    :ivar why: effect of the value
    :ivar remedy: instruction for the user
    """

    name: str
    is_harmful: typing.Callable[[str], bool]
    why: str
    remedy: str = _REMOVE


def _is_plugin(value: str) -> bool:
    return any(part in value.lower() for part in _PLUGINS)


def _is_other_network(value: str) -> bool:
    return value.lower() not in ("", "socket") and not (is_verbs(value) or value.lower().startswith("ib"))


_RULES = (
    _Rule(
        "NCCL_NET",
        _is_other_network,
        "NCCL uses only the network of this plugin. Plugins of UCX and libfabric may send over TCP, and without the"
        " plugin in the image NCCL stops.",
        "Remove the variable, or set it to IB.",
    ),
    _Rule(
        "NCCL_NET_PLUGIN",
        _is_plugin,
        "NCCL prefers the network of this plugin to its own one. The plugin may send over TCP.",
        "Remove the variable, or set it to none.",
    ),
    _Rule(
        "NCCL_NET_GDR_LEVEL",
        lambda value: value.upper() == "LOC" or value.strip() == "0",
        f"The value disables GPUDirect RDMA. {_WITHOUT_GPU_DIRECT}",
    ),
    _Rule(
        "NCCL_DMABUF_ENABLE",
        lambda value: read_integer(value) == 0,
        "The value disables DMA-BUF, so GPUDirect RDMA works only with nvidia_peermem on the nodes. Without it, data of"
        " GPUs passes through host memory, at a fraction of the rate.",
    ),
    _Rule(
        "NCCL_P2P_DISABLE",
        lambda value: read_integer(value) != 0,
        "The value disables NVLink and PCIe between the GPUs of a pod, so their data passes through host memory.",
    ),
    _Rule(
        "NCCL_P2P_LEVEL",
        # NCCL compares names with upper-case letters only. A number is of the old levels, of which 0 is LOC
        lambda value: value == "LOC" or (value[:1].isdigit() and read_integer(value) == 0),
        "The value disables NVLink and PCIe between the GPUs of a pod, so their data passes through host memory.",
    ),
    _Rule(
        "NCCL_PROTO",
        lambda value: value.strip().upper() == "LL",
        "The protocol LL sends a flag with each 4 bytes of data, so large messages get at most half of the bandwidth.",
    ),
    _Rule(
        "NCCL_IB_PKEY",
        lambda value: read_integer(value) != 0,
        "The variable is an index in the partition table of the port. The function of a pod has a table of its own, in"
        " which another index can be empty or belong to another partition.",
    ),
)
_RULES_OF_ROCE = (
    _Rule(
        "NCCL_IB_GID_INDEX",
        lambda value: read_integer(value) >= 0 and is_index_of_roce_v1(read_integer(value)),
        "With NVIDIA's and Broadcom's drivers, an even index belongs to RoCE v1. Its packets have no IP header, so"
        " switches do not route them and find no DSCP in them.",
        "Remove the variable: NCCL then selects a GID of RoCE v2.",
    ),
    _Rule(
        "NCCL_IB_ROCE_VERSION_NUM",
        lambda value: read_integer(value) == 1,
        "The value selects RoCE v1. Its packets have no IP header, so switches do not route them and find no DSCP in"
        " them.",
    ),
    _Rule(
        "NCCL_IB_TC",
        lambda value: read_integer(value) >> 2 == 0,
        "Packets of this traffic class have DSCP 0. Switches put them into a queue without PFC and ECN, which loses"
        " packets.",
        "Set the variable to the traffic class of the fabric: four times roce.dscp of the intent, plus 2.",
    ),
)


def list_harmful(scope: LintedTemplate) -> typing.Iterator[tuple[Variable, Status, str, str]]:
    """Yield the variables that permit RDMA and harm it, each with its status, cause and remedy.

    :param scope: pod template of a job that has RDMA devices, and the cluster in which it would run
    """
    kinds = {kind for _request, item in scope.attachments() if item for kind in item.kinds}
    rules = (*_RULES, *_RULES_OF_ROCE) if kinds & set(_ROCE) else _RULES
    for rule in rules:
        variable = scope.value(rule.name)
        if variable is not None and variable.value is not None and rule.is_harmful(variable.value):
            yield variable, WARN, rule.why, rule.remedy
    yield from _list_few_channels(scope)


def _list_few_channels(scope: LintedTemplate) -> typing.Iterator[tuple[Variable, Status, str, str]]:
    for name in _CHANNEL_LIMITS:
        variable = scope.value(name)
        if variable is not None and variable.value is not None:
            why = _explain_few_channels(variable.value, len(scope.template.networks))
            if why:
                yield variable, WARN, why, _REMOVE


def _explain_few_channels(value: str, hcas: int) -> str:
    """Return the harm of a limit of channels; an empty text if it has none.

    :param value: value of the variable with the limit
    :param hcas: number of HCAs of a pod
    """
    if not 0 < read_integer(value) < max(2, hcas):
        return ""
    if hcas < 2:
        return "One channel uses one HCA and one queue pair, which do not carry the full bandwidth of a pod."
    return "A channel uses one HCA, and the pods have more HCAs than NCCL may use channels. HCAs stay idle."


def explain_silent(environment: typing.Mapping[str, str], hcas: int) -> typing.Iterator[tuple[str, str, str]]:
    """Yield the variables of a process that harm it without an effect on the transport of its channels. Each has its
    name, cause and remedy.

    :param environment: variables that NCCL reports as read
    :param hcas: number of HCAs that NCCL uses in the process
    """
    for rule in _RULES:
        if rule.name in _SILENT and rule.name in environment and rule.is_harmful(environment[rule.name]):
            yield rule.name, rule.why, rule.remedy
    for name in _CHANNEL_LIMITS:
        why = _explain_few_channels(environment.get(name, ""), hcas)
        if why:
            yield name, why, _REMOVE
