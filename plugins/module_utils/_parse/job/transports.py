# SPDX-License-Identifier: GPL-3.0-or-later

"""Classify the messages of UCX and libfabric, the libraries through which MPI and plugins of NCCL use RDMA, and parse
the transports over which an endpoint of UCX sends.

Texts: [src openucx/ucx v1.8.1 to v1.22.0: src/uct/ib, src/ucp/core/ucp_context.c, src/ucp/wireup/select.c; src
ofiwg/libfabric v1.10.1 to v2.6.0: prov/verbs, prov/rxm]. The order of the patterns matters: the first match wins.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.vocabulary import Vocabulary, compile_vocabulary, find_kind
from ..._model.boundary.words import HOST
from ..._model.job.ucx import LANE, MOST_LANES

Kind = typing.Literal[
    "",
    "memlock",
    "peer_memory",
    "completion",
    "gid_change",
    "sm_event",
    "async_event",
    "no_device",
    "verbs",
    "transport_names",
    "no_transport_between",
    "partition",
    "gid_choice",
    "unconnected",
    "transport_setting",
    "transport_version",
    "forked",
    "rdma_cm",
    "other_protocol",
    "no_ip_of_device",
    "no_active_port",
]

_VOCABULARY: Vocabulary[Kind] = compile_vocabulary(
    (
        (
            "memlock",
            (
                r"max locked memory",
                r"(?:ibv_\w{0,60}reg\w{0,60}|ibv_create_\w{1,60}"
                r"|ibv_alloc_\w{1,60})\b.{0,120}Cannot allocate memory",
                r"Unable to register MSG MR",
            ),
        ),
        ("peer_memory", (r"Couldn't enable GPUDirect RDMA",)),
        (
            "completion",
            (
                r"\(synd 0x[0-9a-f]{1,8} vend 0x",
                r"[Cc]ompletion.{0,60} with error",
                r"[Ss]end completion .{0,40}error",
            ),
        ),
        ("gid_change", (r"[Aa]sync event .{0,100}GID table change",)),
        (
            "sm_event",
            (r"[Aa]sync event .{0,100}(?:SM change|client reregistration|LID change|P_Key change|port active)",),
        ),
        ("async_event", (r"[Aa]sync event (?:on|for) \S",)),
        (
            "transport_names",
            (
                r"not available, please use one or more of",
                r"(?:TLs|device) lists? (?:is|are) empty",
                r"No allocation methods",
                r"Invalid allocation method",
                r"device '\S{1,200}' is specified multiple times",
                r"Invalid value of (?:device_name|iface)\b",
                r"Invalid info->domain_attr->name",
            ),
        ),
        (
            "no_transport_between",
            (
                r"no usable transports/devices",
                r"No transports selected to",
                r"no \S.{0,60} transport to ",
                r"destination is unreachable",
                r"none of the available components supports SOCKADDR_CM",
                r"there are no UCT components with CM capability",
            ),
        ),
        ("partition", (r"valid pkey", r"pkey 0x[0-9a-f]{1,8} (?:is invalid|on)", r"query P_Key")),
        (
            "gid_choice",
            (
                r"[Ii]nvalid (?:GID|gid)\[",
                r"ROCE_SUBNET",
                r"RoCE subnet",
                r"subnet (?:list|filter)",
                r"RoCE packet does not contain GRH",
                r"RoCE address size",
                r"gid type",
                r"convert GID",
                r"Invalid value of gid index",
                r"ibv_query_gid",
            ),
        ),
        (
            "unconnected",
            (
                r"(?:modify|modifying).{0,60} to (?:RTR|RTS|state)",
                r"modify_qp\(\S{1,200} (?:RTR|RTS)\)",
                r"failed to connect dci",
                r"ibv_create_ah\(",
                r"create Address Handle",
                r"unhandled timeout error",
                r"transport error: ",
            ),
        ),
        ("no_active_port", (r"there are no active ports",)),
        ("no_ip_of_device", (r"no valid IPoIB interfaces found",)),
        (
            "other_protocol",
            (
                r"version mismatch",
                r"mismatch \(local: ",
                r"(?:op_version|ctrl_version|endianness|eager_limit) mismatch",
                r"CM data size too small",
                r"cm data too small",
                r"Is sender running FI_PROTO_RXM",
                r"connection protocol mismatch",
                r"max_rd_atomic values do not match",
            ),
        ),
        (
            "rdma_cm",
            (
                r"\brdma_(?!cm\b)[a-z_]+",
                r"got error event",
                r"CM error event",
                r"connection reject",
                r"connection request to .{0,100} rejected",
                r"rdmacm connection request",
                r"received event \S{1,200} status =",
                r"failed to process a connect response",
                r"remote peer didn't accept",
                r"Unable to accept incoming connection",
                r"unable to connect msg_ep",
                r"RDMACM event",
                r"rdmacm event",
            ),
        ),
        (
            "no_device",
            (r"ibv_(?:open_device|query_device|query_port)\w{0,60} ?\(?", r"Failed to query device capabilities"),
        ),
        (
            "transport_version",
            (
                r"UCP version is incompatible",
                r"libmlx5 version matches",
                r"DV failed to get mlx5 information",
                r"Failed to get mlx5 QP information",
                r"DEVX requested but not supported",
            ),
        ),
        ("forked", (r"fork\(\)", r"data corruption might occur", r"ibv_fork_init", r"D(?:O|ONT)FORK")),
        (
            "verbs",
            (
                r"\bibv_\w{1,60}",
                r"\bmlx5dv_\w{1,60}",
                r"[Ff]ailed to create (?:\S{1,200} ){1,2}(?:QP|CQ|qp|cq)\b",
                r"failed to create (?:DC target|cq)",
                r"modify (?:\S{1,200} ){1,3}(?:to INIT|to RESET)",
                r"modifying \S{1,200} to INIT",
                r"Unable to create (?:verbs CQ|completion channel)",
                r"verbs CQ",
            ),
        ),
        (
            "transport_setting",
            (
                r"\bmust (?:be|not)\b",
                r"\bshould(?:n't)? be\b",
                r"Invalid value (?:of|for)",
                r"[Ii]nvalid (?:value|parameter|max_rd_atomic|dct_affinity|MTU|device flag|NIC affinity)",
                r"is set to [0-9]{1,12}, but at least",
                r"requested but (?:not |un)?supported",
                r"requested, but (?:not |un)supported",
                r"is requested, but not supported",
                r"is too (?:high|big|low|short|long)",
                r"AR=\S{1,200} was requested",
                r"please select only one",
                r"does not support setUCX",
                r"requires UCX_PROTO_ENABLE",
                r"exceeded transports/devices limit",
                r"can have at most",
                r"SAR limit",
                r"FI_OPT_BUFFERED_(?:LIMIT|MIN)",
                r"NIC affinity policy",
                r"falling back to none policy",
                r"value out of valid range",
                r"Max congestion avoidance window",
                r"using maximal value for",
                r"parse (?:size|device) config",
            ),
        ),
    )
)

#: a line of UCX: "[1700000000.123456] [host:12:0]  ib_md.c:285  UCX  ERROR text"
_UCX = re.compile(r"\S{1,100}:[0-9]{1,6} {1,20}UCX {1,4}(?:ERROR|FATAL|WARN|DIAG) {1,4}(.*)")
#: of an endpoint, which it writes with UCX_LOG_LEVEL=info [src openucx/ucx src/ucp/core/ucp_worker.c; its pull requests
#: 3511 and 8699 show lines of both forms]: "[1700000000.123456] [host:12:0]  ucp_worker.c:1855  UCX  INFO
#: ucp_context_0 inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)", and in older releases "ep_cfg[1]: tag(rc_mlx5/mlx5_0:1);"
_ENDPOINT = re.compile(
    r"\[(?P<host>[^\s:\[\]]{1,253}):[0-9]{1,10} {0,4}:[0-9]{1,10}\] {1,20}"
    r"\S{1,100}:[0-9]{1,6} {1,20}UCX {1,4}INFO {1,8}"
    r"(?:(?:\S{1,64} )?(?P<scope>self|intra-node|inter-node) cfg#[0-9]{1,6} ?|ep_cfg\[[0-9]{1,6}\]: )"
    r"(?P<lanes>(?:[a-z_]{1,16}\([^()]{0,1500}\);? ?){0,8})$"
)
#: such a line as far as its number, also where the rest is lost
_ENDPOINT_BEGUN = re.compile(r" UCX {1,4}INFO {1,8}(?:\S{1,64} )?(?:(?:self|intra-node|inter-node) cfg#|ep_cfg\[)")
_LANES = re.compile(r"([a-z_]{1,16})\(([^()]{0,1500})\)")
#: lanes that carry no data: they only tell whether the peer is alive
_ALIVE = "ka"
#: one of libfabric: "libfabric:12:1700000000::verbs:domain:vrb_open():123<warn> text"
_LIBFABRIC = re.compile(r"\blibfabric:[0-9]{1,10}:[^<>]{1,300}<(?:warn|crit)> ?(.*)")
#: characters of a message, and of a line, that are looked at
_LONGEST, _LONGEST_LINE = 1000, 3000

#: UCX's words for a failed completion of mlx5 are of its own; the number is mlx5's, and the status is that of verbs
_SYNDROME = re.compile(r"on ([\w.-]{1,64}):[0-9]{1,3}/(IB|RoCE) \(synd 0x([0-9a-f]{1,2}) vend 0x")
_STATUS_OF_SYNDROME = {
    0x01: 1,
    0x02: 2,
    0x04: 4,
    0x05: 5,
    0x06: 6,
    0x10: 7,
    0x11: 8,
    0x12: 9,
    0x13: 10,
    0x14: 11,
    0x15: 12,
    0x16: 13,
    0x22: 16,
}


class Problem(typing.NamedTuple):
    """A warning or error of UCX or libfabric.

    :ivar kind: kind of the problem; empty if unknown
    :ivar text: the message without the prefix of the line, cut to 1000 characters
    """

    kind: Kind
    text: str


class EndpointLine(typing.NamedTuple):
    """A line of UCX's log about one endpoint, which is a connection to another process.

    :ivar host: host that wrote the line
    :ivar scope: location of the other process: self, intra-node or inter-node; empty if this version of UCX does not
        print it
    :ivar lanes: transport and device of each lane that carries data, such as ``rc_mlx5/mlx5_0:1``, each once, sorted
    """

    host: str
    scope: typing.Literal["self", "intra-node", "inter-node", ""]
    lanes: tuple[str, ...]


class Failed(typing.NamedTuple):
    """A failed completion, as UCX reports it for HCAs of NVIDIA.

    :ivar status: status number of the work completion (``ibv_wc_status``)
    :ivar device: RDMA device
    :ivar link: link layer of the device
    """

    status: int
    device: str
    link: typing.Literal["InfiniBand", "Ethernet"]


def parse(line: str) -> typing.Optional[Problem]:
    """Parse a line of a log as a warning or error of UCX or libfabric. Return None for any other line."""
    line = line[:_LONGEST_LINE]
    found = (_UCX.search(line) if "UCX " in line else None) or (
        _LIBFABRIC.search(line) if "libfabric:" in line else None
    )
    if found is None:
        return None
    text = found[1].strip()[:_LONGEST]
    return Problem(classify(text), text)


def parse_endpoint(line: str) -> typing.Optional[EndpointLine]:
    """Parse a line of UCX's log about an endpoint. Return None for any other line, and for a line that is incomplete,
    too long or has an invalid host or lane.
    """
    line = line.rstrip()
    found = _ENDPOINT.search(line) if " UCX " in line and len(line) <= _LONGEST_LINE else None
    if found is None or not HOST.fits(found["host"]):
        return None
    lanes: dict[str, None] = {}
    for name, listed in _LANES.findall(found["lanes"]):
        lanes.update({} if name == _ALIVE else dict.fromkeys(listed.split()))
    if len(lanes) > MOST_LANES or not all(map(LANE.fits, lanes)):
        return None
    scope = typing.cast(typing.Literal["self", "intra-node", "inter-node", ""], found["scope"] or "")
    return EndpointLine(_cut_host(found["host"]), scope, tuple(sorted(lanes)))


def _cut_host(name: str) -> str:
    """Return a host name up to its first dot, which is the form in NCCL's log and in the facts about pods. UCX writes
    the full name. An IP address is returned unchanged.
    """
    first = name.partition(".")[0]
    return name if not first or first.isdigit() else first


def names_endpoint(line: str) -> bool:
    """Return whether a line contains the beginning of UCX's line about an endpoint. The end of that line may be
    missing.
    """
    return _ENDPOINT_BEGUN.search(line[:_LONGEST_LINE]) is not None


def classify(text: str) -> Kind:
    """Return the kind of a problem from its message, of which the first 1000 characters are used. Return an empty
    string if the kind is unknown.
    """
    text = text[:_LONGEST]
    return find_kind(_VOCABULARY, text) or ""


def parse_failed(text: str) -> typing.Optional[Failed]:
    """Return the failed completion in a message. Return None if the message contains no syndrome number, or one whose
    completion status is not known.
    """
    found = _SYNDROME.search(text[:_LONGEST])
    status = _STATUS_OF_SYNDROME.get(int(found[3], 16)) if found else None
    if found is None or status is None:
        return None
    return Failed(status, found[1], "InfiniBand" if found[2] == "IB" else "Ethernet")
