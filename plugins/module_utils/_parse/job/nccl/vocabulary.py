# SPDX-License-Identifier: GPL-3.0-or-later

"""The patterns by which warnings of NCCL, and of PyTorch about NCCL, are assigned to kinds of problems.

Texts: [src NVIDIA/nccl v2.8.4 to 2.31.0, WARN, and texts of the libraries of 2.31.2 and 2.32.3], [src pytorch
ProcessGroupNCCL.cpp]. The order matters: the first match wins.
"""

from __future__ import annotations

from ...._model.base.vocabulary import Vocabulary, compile_vocabulary
from .kinds import Kind, Rows
from .network_vocabulary import NETWORK

#: about the node, its GPUs, the libraries and the program of the user
_BESIDE_NETWORK: Rows = (
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
    (
        "gdrcopy",
        (
            r"\bgdr_\w{1,60}\(?",
            r"GDRCOPY failure",
            r"Failed to open libgdrapi",
            r"NCCL_GDRCOPY_USE_INTERNAL_DMABUF",
            r"\bm(?:un)?map DMA-BUF",
        ),
    ),
    ("gpu_memory", (r"Failed to CUDA (?:host )?[mc]?alloc", r"Cuda failure (?:2 )?'out of memory'")),
    # texts of cudaGetErrorString [CUDA Runtime API, cudaError]
    (
        "gpu_hardware",
        (
            r"uncorrectable (?:ECC|NVLink) error",
            r"[Cc]uda failure .{0,20}'[^']{0,100}hardware (?:stack )?error",
        ),
    ),
    ("fabric_manager", (r"[Cc]uda failure (?:802 )?'system not yet initialized'",)),
    (
        "gpu_kernel",
        (
            r"[Cc]uda failure (?:[0-9]{1,4} )?'(?:an illegal (?:memory access|instruction) was encountered"
            r"|unspecified launch failure|misaligned address|invalid program counter|device-side assert triggered)",
        ),
    ),
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
            r"\bcu[A-Z]\w{1,60}(?:\(\w{1,80}\))? failed: [0-9]",
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
    ("no_algorithm", (r"o algorithm/protocol (?:available|nor symKernelId)", r"no symmetric kernel available")),
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
            r"cannot use (?:a|more than [0-9]{1,9}) (?:user-defined )?plane",
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
VOCABULARY: Vocabulary[Kind] = compile_vocabulary((*NETWORK, *_BESIDE_NETWORK))
