# SPDX-License-Identifier: GPL-3.0-or-later

"""The forms of the lines that NCCL and RCCL write."""

from __future__ import annotations

import re
import typing

INFO, WARN = " NCCL INFO ", " NCCL WARN "
#: host, process and thread, behind whatever stands before them; a GPU; and of a warning its place
HEAD = re.compile(
    r"(?:.*[\s\]>:|]|)([A-Za-z0-9_-]{1,253}):([0-9]{1,10}):([0-9]{1,10}) \[-?[0-9]{1,4}\](?: (\S+:[0-9]+)(?:"
    r" \(\S*\))?)?",
    re.DOTALL,
)
#: of RCCL, AMD's NCCL, rank 0 writes it without a head: "RCCL version : 2.21.5-HEAD:9a0e6a1"
RCCL_VERSION = re.compile(
    r"(?:.*\s|)RCCL version ?:? ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}\S{0,100})(?:\s.{0,200})?", re.DOTALL
)
VERSION = re.compile(r"(?:.*\s|)NCCL version ([0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}\S{0,100})", re.DOTALL)
CHANNEL = re.compile(
    r"Channel ([0-9]{2,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7})\[[0-9a-f]{1,16}\] -> ([0-9]{1,7})\[[0-9a-f]{1,16}\]"
    r" (?:\[(send|receive)\] )?via (.{1,200})"
)
#: what RCCL writes behind the way of a channel, after " comm 0x"
RCCL_CHANNEL = re.compile(r"[0-9a-f]{1,16} nRanks [0-9]{1,7}")
COLLNET = re.compile(
    r"Coll(?:Net)? ([0-9]{2,4})(?:/([0-9]{1,4}))? : ([0-9]{1,7}) \[(send|receive)\] via (COLLNET/.{1,200})"
)
NET = re.compile(r"(NET|COLLNET)/([^/]{1,64})/([0-9]{1,4})(?:\(([0-9]{1,7})\))?(/GDRDMA)?(?:\(PCI\))?(?:/Shared)?")
P2P = re.compile(r"P2P/(direct pointer|IPC|CUMEM|MNNVL|indirect)(?:/[0-9]+\[[0-9a-f]+\])?(?:/read)?(?:/CE)?")
SHM = re.compile(r"SHM/(direct|CE)(?:/(?:direct|CE))?|direct shared memory")
RING = re.compile(r"Channel [0-9]{2,4}/([0-9]{2,4}) :[ 0-9.]*")
COMMUNICATOR = re.compile(
    r"(?:\[Rank [0-9]+\] )?(?:ncclComm\w* )?comm (0x[0-9a-f]+) rank ([0-9]{1,7}) nranks ([0-9]{1,7}) cudaDev"
    r" (-?[0-9]{1,4})(?: nvmlDev -?[0-9]+)? "
    r"busId ([0-9a-f]{1,16})(?: parent (0x[0-9a-f]+|\(nil\))(?: (?:split|child)Count ([0-9]+))? color (-?[0-9]+) key"
    r" -?[0-9]+)?(?: commId (0x[0-9a-f]+))?"
    r"(?: localSize [0-9]{1,18} used [0-9]{1,18} bytes(?: on core -?[0-9]{1,9})?)? ?- Init (START|COMPLETE)"
)
NODES = re.compile(r"comm (0x[0-9a-f]+) rank [0-9]+ nRanks [0-9]+ nNodes ([0-9]{1,7}) localRanks .*")
COUNTS = re.compile(
    r"([0-9]{1,4}) coll channels, (?:[0-9]+ collnet channels, )?(?:[0-9]+ nvls channels, )?([0-9]{1,4}) p2p"
    r" channels, .*"
)
TREES = re.compile(r"Trees((?: \[[0-9]+\] [-0-9/]+->[-0-9]+->[-0-9/|]+)+)")
NETWORK = re.compile(r"Using network (.{1,64})")
USING = re.compile(r"NET/([^/ ]{1,64}) : Using(.*)")
OOB = re.compile(r"(.*?) ?(?:\[RO\])?; OOB ([^\s:]{1,64}):(\S{1,128})<[0-9]+>")
BOOTSTRAP = re.compile(r"Bootstrap ?: Using ?(?:\[[0-9]+\])?([^\s:]{1,64}):(\S{1,128})<[0-9]+>.*")
DEVICE = re.compile(r"\[([0-9]{1,4})\]([^\s:\[\]={}]{1,64}):([0-9]{1,3})(?::([0-9]*))?(?::[0-9]+)?/(IB|RoCE)")
MERGED = re.compile(r"\[([0-9]{1,4})\]=\{([^{}]{1,500})\}")
PART = re.compile(r"\[[0-9]+\] ?([^\s:,]{1,64}):[0-9]{1,3}/(IB|RoCE)")
NETDEV = re.compile(r"\[([0-9]{1,4})\]([^\s:\[\]]{1,64}):\S{1,100}<[0-9]{1,9}>")
MADE = re.compile(r"NET/IB : Made virtual device \[([0-9]{1,4})\] name=(\S{1,500}) speed=.*")
DIRECT = re.compile(
    r"NET/([^/]{1,64}) : GPU Direct RDMA (Enabled|Disabled) for HCA ([0-9]{1,4}) '([^']{1,500})'(?: \((.{1,100})\))?"
)
DISTANCE = re.compile(
    r"GPU Direct RDMA Disabled for GPU.{1,80}?(?:HCA |NET/[0-9]{1,9}-)([0-9a-f]{1,16})\b[^(]{0,60}\([^(]{0,60}?"
    r"(distance [0-9]{1,9} > [0-9]{1,9})\)"
)
CHOICE = re.compile(
    r"(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce): ([0-9]{1,15}) Bytes -> Algo ([A-Z][A-Z0-9_]{1,20}) proto"
    r" ([A-Z0-9]{1,10}) "
    r"channel\{Lo\.\.Hi\}=\{([0-9]{1,3})\.\.([0-9]{1,3})\}(?: comm 0x[0-9a-f]{1,16})?"
)
#: of older releases: "AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008" and "262144 Bytes -> Algo 0 proto 1
#: time 54.707825"
NUMBERED = re.compile(
    r"(?:(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce): )?([0-9]{1,15}) Bytes -> Algo ([0-6]) proto ([0-2]) time"
    r" [0-9]{1,15}\.[0-9]{1,9}"
)
ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
PROTOCOLS = ("LL", "LL128", "SIMPLE")
QUEUE_PAIR = re.compile(
    r"NET/IB ?: (?:NCCL )?(?:Merged)?Dev [0-9]{1,5} (?:IbDev [0-9]{1,5} )?Port [0-9]{1,3} qpn [0-9]{1,9} mtu ([1-5])"
    r" (.{1,500})"
)
GID = re.compile(r"(?:query_ece=\{[^{}]{1,200}\} )?GID ([0-9]{1,3}) \(.{1,200}")
SET = re.compile(r"(NCCL_[A-Z0-9_]{1,100}) set(?: by environment)? to (.{1,500}?)\.?")

SIDES: dict[typing.Optional[str], typing.Literal["send", "receive", ""]] = {
    "send": "send",
    "receive": "receive",
    None: "",
}
#: programs around NCCL whose lines are looked at as well
AROUND = ("Watchdog caught", "Timeout at NCCL work", "remote process has exited")
#: how a document of nccl-tests begins, and what is in its only line; it is no log
DOCUMENT, IN_DOCUMENT = '{"version":', '"nccl_version":'
