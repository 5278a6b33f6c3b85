# SPDX-License-Identifier: GPL-3.0-or-later

"""Which known problem a warning of NCCL, or of PyTorch around it, is, and what a failed completion names.

Texts: [src NVIDIA/nccl v2.8.4 to v2.30.7, WARN, and texts of the libraries of 2.31.2 and 2.32.3], [src pytorch
ProcessGroupNCCL.cpp]. The order matters: the first match wins. A test holds each warning of the source against it.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import typing

from ..._model.base.vocabulary import Vocabulary, compile_vocabulary, find_kind
from ..pods import libibverbs
from . import transports

Kind = typing.Literal[
    "",
    "provider_abi",
    "provider_missing",
    "uverbs_abi",
    "imex",
    "open_files",
    "memlock",
    "peer_memory",
    "completion",
    "gid_change",
    "sm_event",
    "async_event",
    "failover",
    "slow_requests",
    "queue_pair",
    "pkey",
    "link_layers",
    "nic_counts",
    "merged_nics",
    "no_libibverbs",
    "no_device",
    "verbs",
    "gid_settings",
    "routed_subnets",
    "forced",
    "gpu_initiated",
    "ignored_interface",
    "no_interface",
    "no_network",
    "address",
    "bootstrap",
    "strange_peer",
    "connection",
    "shared_memory",
    "unix_sockets",
    "same_gpu",
    "versions",
    "nvls",
    "collnet",
    "gdrcopy",
    "gpu_memory",
    "threads",
    "memory",
    "aborted",
    "driver",
    "peer_access",
    "iommu",
    "affinity",
    "topology_file",
    "no_algorithm",
    "no_transport",
    "topology",
    "collective_mismatch",
    "plugin",
    "hint",
    "timeout",
    "proxy",
    "application",
]

_VOCABULARY: Vocabulary[Kind] = compile_vocabulary(
    (
        (
            "imex",
            (
                r"\bMNNVL\b.{0,200}\bnot (?:working|supported)\b.{0,100}Check",
                r"\bIMEX\b",
                r"\bnvidia-imex",
                r"cuMem(?:Export|Import)\w{1,60} \(FABRIC\) failed",
            ),
        ),
        ("open_files", (r"[Ff]ail.{0,100}Too many open files",)),
        ("memlock", (r"Call to ibv_\w{1,60} failed with error Cannot allocate memory",)),
        ("peer_memory", (r"Call to ibv_reg_\w{1,60} failed with error (?:Bad address|Invalid argument)",)),
        ("completion", (r"Got completion [^=]{0,200} (?:error |status=)",)),
        ("gid_change", (r"GID table change", r"GID info query failed", r"during GID change", r"GID-change event")),
        (
            "sm_event",
            (
                r"async .{0,10}event ?: .{0,20}(?:SM change|client reregistration|LID change|P_Key change"
                r"|port active)",
            ),
        ),
        ("async_event", (r"NET/IB : .{0,80}\basync .{0,80}\bevent", r"NET/IB : .{0,80} unknown event type")),
        (
            "failover",
            (
                r"Device [0-9]{1,9} marked as failed",
                r"Got CQE with error",
                r"Detected [0-9]{1,9} failed devices",
                r"functional device",
                r"probing attempts",
                r"NET/IB: .{0,60}The error is fatal",
                r"replacement QP for the failed QP",
                r"Port recovery",
                r"port.recovery UC QP",
            ),
        ),
        ("slow_requests", (r"NET/IB: WQE (?:slow|stall)",)),
        ("queue_pair", (r"Call to ibv_modify_qp failed",)),
        ("pkey", (r"NCCL_IB_PKEY_VALUE=\S{1,200} not found", r"Call to ibv_query_pkey failed")),
        (
            "link_layers",
            (r"incompatible devices", r"device is incompatible with the local", r"link_layer"),
        ),
        (
            "nic_counts",
            (
                r"mixed local (?:CollNet|Net) device counts",
                r"has a different number of devices",
                r"requires NIC .{1,40}not available for rank",
            ),
        ),
        (
            "merged_nics",
            (
                r"TOPO/NET : (?:Could not force merge|Only matched|Tried|Couldn't generate|Can't find)",
                r"Trying to merge multiple devices",
                r"Specified fused NIC",
                r"Fusing NET devices",
                r"Cannot allocate any more virtual devices",
                r"virtual NIC with 0 devices",
                r"NET/TOPO : Couldn't find net with name",
            ),
        ),
        ("no_libibverbs", (r"Failed to open libibverbs\.so", r"dlv?sym failed on .{0,80}\bibv_")),
        (
            "no_device",
            (
                r"NET/IB : Unable to (?:open|query) (?:device|port)",
                r"IB device \S{1,200} not found",
                r"Call to ibv_(?:open_device|get_device_list|query_device|query_port)\b.{0,20}failed",
            ),
        ),
        (
            "verbs",
            (
                r"(?:Call to )?\bibv_\w{1,60}(?:\(\))? (?:failed|returned)",
                r"NET/MLX5: Call to",
                r"mlx5dv_\w{1,60} failed",
                r"mlx5dv_get_data_direct_sysfs_path",
            ),
        ),
        (
            "gid_settings",
            (
                r"NET/IB: Ip address (?:mask )?'.{0,100}' is invalid for family",
                r"failed in ncclIbRoceGetVersionNum",
            ),
        ),
        ("routed_subnets", (r"remote FLID configured as zero", r"NCCL_IB_SUBNET_PREFIX_LEN")),
        (
            "forced",
            (
                r"MNNVL is not supported on this system",
                r"OOO RQ is force enabled",
                r"NCCL_NVLS_ENABLE has been set",
                r"Do not force-enable NVLS",
                r"CUMEM (?:Host is )?not supported",
            ),
        ),
        (
            "gpu_initiated",
            (
                r"Unable to use GIN",
                r"GIN(?: is disabled|-capable|(?: not|\b.{0,20}does not) support|.{0,40} but not all ranks)",
                r"No (?:GIN|RMA)-capable devices",
                r"support GDAKI",
                r"(?:Gin|Rma) connect : min local net count is zero",
                r"\bDOCA (?:Error|failure)",
                r"GIN Error",
                r"GIN Proxy: RMA backend",
                r"RMA not supported",
                r"host RMA is not supported",
                r"requires DMABUF support with GIN",
                r"One-sided RMA requires",
            ),
        ),
        ("ignored_interface", (r"no device found matching \S{1,200}, ignoring",)),
        (
            "no_interface",
            (
                r"no socket interface found",
                r"No IP interface found",
                r"No usable listening interface found",
                r"no device found (?:match|after excl)",
                r"NET/Socket : no interface found",
                r"No interface found in the same subnet",
            ),
        ),
        ("no_network", (r"Failed to initialize any NET plugin", r"Error: network \S{1,200} not found")),
        (
            "address",
            (
                r"Net : (?:No valid|string is null|unsupported IP|Unsupported address"
                r"|error encountered when getting)",
                r"Invalid NCCL_COMM_ID",
                r"is neither AF_INET",
            ),
        ),
        ("bootstrap", (r"Bootstrap Root : ", r"bootstrapInit: ")),
        (
            "strange_peer",
            (r"wrong magic", r"wrong type [0-9]{1,9} != ", r"Handshake receive from \S{1,200} failed"),
        ),
        (
            "connection",
            (
                r"[Cc]onnect to \S{1,200} (?:failed|returned)",
                r"Connection closed by remote peer",
                r"Call to (?:\S{1,200} )?(?:recv|send).{0,200}failed",
                r"remote process has exited",
                r"ocketPollConnect(?: to|:| poll\(\))(?!.{0,5}pass NULL)",
                r"connect returned .{1,80}exceeded",
                r"exceeded (?:error retry count|retries|timeouts)",
                r"Accept failed",
                r"ocketProgressOpt: Call to",
                r"NET/Socket : socket progress error",
                r"socketTryAccept: get errno",
            ),
        ),
        (
            "shared_memory",
            (
                r"shared memory",
                r"[Ff]ailed to extend \S{1,200} to",
                r"Could not map \S",
                r"SHM legacy",
                r"shm (?:unlink|close) failed",
            ),
        ),
        (
            "unix_sockets",
            (r"\bUDS(?:\b|:)", r"ncclProxyClient(?:GetFd|ConvertFd|QueryFd)", r"Failed to get FD from rank"),
        ),
        ("same_gpu", (r"Duplicate GPU detected", r"Multiple Ranks are using the same GPU")),
        (
            "versions",
            (
                r"Mismatched NCCL (?:git )?version",
                r"NCCL library (?:version )?is (?:too old|not backwards)",
                r"compiled with too old version",
                r"NCCL version mismatch",
            ),
        ),
        (
            "nvls",
            (
                r"NVLink SHARP",
                r"NVLS (?:register|buffer|graph)",
                r"Multicast support requested",
                r"NVLS Multicast bind",
                r"system does not support multimem",
            ),
        ),
        ("collnet", (r"\bCollNet\b", r"\bCOLLNET\b", r"collnet plugin", r"sharp resources")),
        ("gdrcopy", (r"\bgdr_\w{1,60}\(?", r"GDRCOPY failure", r"Failed to open libgdrapi")),
        ("gpu_memory", (r"Failed to CUDA (?:host )?[mc]?alloc", r"Cuda failure (?:2 )?'out of memory'")),
        ("threads", (r"Thread creation failed",)),
        (
            "memory",
            (
                r"Failed to malloc",
                r"malloc\(.{1,60}returned null",
                r"calloc\(.{1,40}returned null",
                r"Allocation failed(?: at |$)",
                r"Failed to allocate",
                r"fail.{0,80}Cannot allocate memory",
            ),
        ),
        (
            "aborted",
            (
                r"in abort state",
                r"in abort, error",
                r"abortFlag",
                r"communicator was revoked",
                r"communicator encountered a fatal error",
                r"commReclaim: ",
                r"commDestroySync: ",
                r"ncclAsyncJobComplete",
                r"asyncJobLaunch",
                r"ncclCommSetAsyncError",
                r"ncclProxyStop",
                r"Error encountered progressing operation",
            ),
        ),
        (
            "driver",
            (
                r"CUDA Driver version found is",
                r"CUDA driver is older",
                r"installed CUDA driver",
                r"old driver, disabling",
                r"Failed to (?:find|load) CUDA",
                r"(?:NVML|[Cc]uda) failure",
                r"\bnvml[A-Z]\w{1,60}\(.{0,80}\) (?:failed|reported)",
                r"\bnvml[A-Z]\w{1,60}\(.{0,80}\) ?failed|\bnvml\w{1,60}\(.{0,80}\) failed:",
                r"Failed to open libnvidia-ml",
                r"No NVML device handle",
                r"PCI info from NVML",
                r"cuDriverGetVersion failed",
                r"PFN functions not found",
                r"Failed to (?:set|create) CUDA (?:context|device)",
                r"does not support this CUDA version",
                r"failed to peer with device",
                r"\bcuda[A-Z]\w{1,60} .{0,20}failed",
                r"Retrieve \S{1,200} .{0,40}failed with",
                r"maxSharedMem",
                r"hostStreamPlanCallback\(\) failed",
            ),
        ),
        ("peer_access", (r"P2P is disabled between NVLINK connected GPUs", r"DEGRADED_BANDWIDTH")),
        ("iommu", (r"Missing \"iommu=pt\" from kernel command line",)),
        ("affinity", (r"sched_[gs]etaffinity failed",)),
        (
            "topology_file",
            (
                r"\bXML\b",
                r"Attribute \S{1,200} of node",
                r"KV Convert to str",
                r"Error : (?:name|value) .{0,200} too long",
                r"system node not found in XML",
            ),
        ),
        ("no_algorithm", (r"o algorithm/protocol available", r"no symmetric kernel available")),
        ("no_transport", (r"[Nn]o transport found", r"has no transport for", r"Error no transport for")),
        (
            "topology",
            (
                r"Could not find (?:NET|NIC|a path|any local path|gpu|id|intermediate|local GPU|net|node"
                r"|real path|rev)",
                r"could not find (?:DEV|GPU|PCI SW|CPU|rank)",
                r"No path computed",
                r"Failed to find reverse path",
                r"too many (?:DEV nodes|Topo links|nodes)",
                r"Failed to determine (?:intra|local)",
                r"unable to find GPU/CPU",
                r"Unknown CPU architecture",
                r"ncclTopoFillNet: ",
                r"ran out of room to store found nodes",
                r"not found in the list of system hostHashes",
                r"should be a diviser",
                r"Error : ring [0-9]{1,9} does not",
            ),
        ),
        (
            "collective_mismatch",
            (r"collective mismatch error", r"posted incorrect receive info", r"[Mm]essage truncated"),
        ),
        (
            "plugin",
            (
                r"net plugin returned invalid",
                r"(?:net|gin|rma)Plugin\[",
                r"Profiler init failed",
                r"Tuner plugin",
                r"UNPACK plugin has incompatible version",
            ),
        ),
        (
            "hint",
            (
                r"is larger than #channels upper limit",
                r"is larger than maxCTAs",
                r"User asked for a (?:maximum|minimum) of",
                r"falling back to",
                r"unknown value '.{0,200}', defaulting",
                r"is being ignored",
                r"is ignored because",
                r"is too small. Minimum",
                r"Limiting value to",
                r"Ignoring SHM locality",
                r"maximum allowed, setting",
                r"not a valid value 0/1",
                r"Unsetting POLICY",
                r"Invalid \S{1,200} [0-9-]{1,9} \((?:maximum|minimum|must be a multiple)",
                r"Invalid NCCL_COMM_BLOCKING",
                r"POOL_SIZE has invalid value",
                r"cannot use (?:a|more than [0-9]{1,9}) plane",
                r"Unrecognized (?:element|prefix) token",
                r"All entries except the first must have a prefix",
                r"PARAM: Duplicate",
                r"not dumping topology",
                r"leaving it set at",
                r"takes precedence over",
            ),
        ),
        ("timeout", (r"Watchdog caught collective operation timeout", r"Timeout at NCCL work")),
        (
            "proxy",
            (
                r"\[(?:Proxy (?:Progress|Service|service)|Service thread|Rem Allocator)",
                r"Proxy Call to rank",
                r"Socket recv failed while polling",
                r"ncclProxyCall\w{1,60} call to",
            ),
        ),
        (
            "application",
            (
                r"argument is NULL",
                r"is not a valid pointer",
                r"invalid (?:root|type|reduction operation|pointer|device count)",
                r"mismatchs with NCCL device",
                r"unknown to this communicator",
                r"[Ii]nvali[dg] config",
                r"via NCCL_\w{1,60}_INITIALIZER",
                r"not in a group call",
                r"has already been destroyed",
                r"ncclRedOp",
                r"improper usage of ncclCommInitRank",
                r"ncclCommGrow: ",
                r"bcastGrowHandle: ",
                r"ncclCommGetUniqueId should not",
                r"previous operation returned",
                r"not allowed in the same group",
                r"different streams within a group",
                r"ncclGroup\(\) can be CUDA graph",
                r"in graph mode while",
                r"corrupted comm object",
                r"Invalid (?:device(?: count)?|rank) (?:[0-9]{1,9} \(|requested)",
                r"to self without a matching",
                r"netName \S{1,200} (?:does not match|is different)",
                r"FP8 reduction support",
                r"valid range of ranks",
            ),
        ),
    )
)

#: how much of a text is looked at
_LONGEST = 1000


def classify(text: str) -> Kind:
    """Return the kind of a problem; empty when it is not known here."""
    return _classify(text[:_LONGEST])


# many ranks write the same
@functools.lru_cache(maxsize=1024)
def _classify(text: str) -> Kind:
    provider = libibverbs.parse(text).kind
    if provider is not None:
        return provider
    return find_kind(_VOCABULARY, text) or ""


_COMPLETION = re.compile(
    r"Got completion (?:from peer (\S{1,128}?)(?:<[0-9]{1,9}>)? )?with (?:error"
    r" |status=(?:[^()=]{0,60}\()?)([0-9]{1,3})\b"
    r"(?:.{0,300}? localGid ?([0-9A-Fa-f:.]{2,45}))?(?:.{0,100}? remoteGids? ?([0-9A-Fa-f:.]{2,45}))?(?:.{0,100}? hca"
    r" ([\w.-]{1,64}))?"
)
#: bits of an address that are alike in one subnet, as networks of hosts commonly have it; the upper half of a GID is
#: its subnet prefix
_SUBNET_BITS = {4: 24, 6: 64}


class Completion(typing.NamedTuple):
    """A failed completion, as UCX reports it, or NCCL: from 2.12 on with the peer, from 2.14 on with the GIDs of RoCE,
    from 2.22 on with the HCA.

    :ivar status: of the work completion
    :ivar peer: address of the other process, without its port; empty where the line has none, as the next three
    :ivar local_gid: of this end
    :ivar remote_gid: of the other end
    :ivar device: RDMA device of this end
    :ivar link: of this end, where the line has it, as UCX writes it
    """

    status: int
    peer: str = ""
    local_gid: str = ""
    remote_gid: str = ""
    device: str = ""
    link: typing.Literal["", "InfiniBand", "Ethernet"] = ""

    @property
    def crosses_subnets(self) -> bool:
        """Return whether the two GIDs are of two subnets, so that packets between them need a route."""
        ends = [_parse_gid(self.local_gid), _parse_gid(self.remote_gid)]
        if ends[0] is None or ends[1] is None:
            return False
        networks = [
            ipaddress.ip_network((str(end), _SUBNET_BITS[end.version]), strict=False) for end in ends if end is not None
        ]
        return networks[0] != networks[1]


def parse_completion(text: str) -> typing.Optional[Completion]:
    """Return what a warning says of a failed completion; None where it is about something else."""
    found = _COMPLETION.search(text[:_LONGEST])
    if found is None:
        failed = transports.parse_failed(text[:_LONGEST])
        return None if failed is None else Completion(failed.status, device=failed.device, link=failed.link)
    peer, status, local, remote, device = found.groups()
    return Completion(int(status), peer or "", local or "", remote or "", device or "")


def _parse_gid(text: str) -> typing.Optional[typing.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]]:
    """Return a GID as an address, that of IPv4 where it has one; None of a text that is none."""
    try:
        found = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found
