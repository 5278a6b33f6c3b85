# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a figure of nccl-tests is one of the network that it is about. Check ids: ``collectives.*``.

A collective over TCP, over shared memory or over another fabric's HCAs prints a well-formed table as well, and so does
one whose result is wrong. A figure counts only when its run is whole and right, and the log of the same run shows each
channel of each rank on its way. What a log, a communicator and a rank must show is judged by _check/job/channels.py, as
in stage training; here each channel is.
"""

from __future__ import annotations

import collections
import dataclasses
import typing

from ..._model.job.nccl import NcclCommunicator, NcclLog, NcclProcess, NcclRank, NcclRoute
from ..._model.job.nccl_tests import NcclTestRow, NcclTests
from ..._model.run.findings import FAIL, PASS, UNKNOWN, Finding, Status, ok
from ..job.channels import judge_log, name_hcas
from ..job.nccl_run import cut_to_run, group_by_process
from ..job.ranks import describe_route, spell_numbers

#: test in which each rank sends to each other one, so that it is known how many connections there must be
EACH_TO_EACH = "alltoall"
#: others that use connections of send and receive alone, of which a log does not say how many there must be
POINT_TO_POINT = ("alltoallv", "gather", "hypercube", "scatter", "sendrecv")
#: settings of chunks, with which NCCL may write past a buffer [NVIDIA/nccl issue 2408: NCCL_CHUNK_SIZE of 1 MiB]
_CHUNKS = (
    "NCCL_CHUNK_SIZE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_P2P_PCI_CHUNKSIZE",
    "NCCL_P2P_NVL_CHUNKSIZE",
    "NCCL_BUFFSIZE",
)
#: of what stage training says of the same log
_CHECKS = {
    "training.channels": "collectives.channels",
    "training.gpu_direct": "collectives.gpu_direct",
    "training.log": "collectives.log",
    "training.problem": "collectives.problem",
    "training.ranks": "collectives.ranks",
    "training.transport": "collectives.transport",
    "training.version": "collectives.version",
}
_WHOLE = "Give the whole log of every rank, from its first line on, with NCCL_DEBUG=INFO."
_EVERY = "each channel by NVLink or PCIe inside of a node, and by RDMA between nodes"


@dataclasses.dataclass(frozen=True)
class RequiredProof:
    """The properties that a run must show.

    :ivar nodes: that take part in each communicator
    :ivar hcas: by host as NCCL writes it the RDMA devices that are on the fabric, each with its rail; None where the
        rail is not known
    :ivar rails: that the run must use, on each host
    :ivar ranks: of each communicator; None takes what the log says
    :ivar gpu_direct: each channel over the network must be GPUDirect RDMA
    :ivar shared_memory: GPUs of a node may exchange data through the host's memory: there is neither NVLink nor PCIe
        between them that they may use
    :ivar multi_node_nvlink: channels between nodes may use NVLink (MNNVL): then the figure is none of the network
    :ivar groups: communicators that the run must have: of NCCL_TESTS_SPLIT several
    :ivar slowest_group: the test was started with -a 3, so that its figure is that of the slowest group
    """

    nodes: int
    hcas: typing.Mapping[str, typing.Mapping[str, typing.Optional[int]]]
    rails: tuple[int, ...]
    ranks: typing.Optional[int] = None
    gpu_direct: bool = True
    shared_memory: bool = False
    multi_node_nvlink: bool = False
    groups: int = 1
    slowest_group: bool = False


@dataclasses.dataclass(frozen=True)
class ChannelVerdict:
    """The channels of one rank that have a verdict and its cause alike.

    :ivar communicator: its name
    :ivar channels: their numbers; none of a rank whose number of channels is not known
    :ivar ways: as NCCL writes them, without the number of the device
    :ivar why: empty of channels that pass
    """

    communicator: str
    host: str
    rank: int
    channels: tuple[int, ...]
    status: Status
    ways: tuple[str, ...]
    why: str = ""
    remedy: str = ""


@dataclasses.dataclass(frozen=True)
class Proof:
    """The proof that a log gives of a run.

    :ivar channels: verdicts on all channels of each rank
    :ivar findings: on the run, its log, its ranks and its hosts
    """

    channels: tuple[ChannelVerdict, ...]
    findings: tuple[Finding, ...]

    @property
    def count(self) -> int:
        """Return the number of channels that were judged; of a test of each to each that of ranks."""
        return _count(self.channels)

    @property
    def status(self) -> Status:
        """Return fail where anything failed, pass where there is a channel and all is proven, else unknown."""
        seen = {verdict.status for verdict in self.channels} | {finding.status for finding in self.findings}
        if FAIL in seen:
            return FAIL
        return UNKNOWN if UNKNOWN in seen or not self.channels else PASS


def _count(verdicts: typing.Iterable[ChannelVerdict]) -> int:
    return sum(len(verdict.channels) or 1 for verdict in verdicts)


def prove_run(log: NcclLog, run: NcclTests, wanted: RequiredProof) -> Proof:
    """Return what the log proves of a run of nccl-tests, and by name what it does not."""
    own, silent = cut_to_run(log, run, group_by_process(log))
    test = run.collective or "test"
    verdicts = tuple(
        verdict
        for communicator in own.communicators
        for verdict in (_judge_ends if run.collective == EACH_TO_EACH else _judge_channels)(communicator, own, wanted)
    )
    findings = [_check_figures(test, run, own), _make_groups(test, run, own, wanted)]
    findings += [_report_silent(host, pid) for host, pid in silent]
    findings += _check_log(own, run, wanted)
    if run.collective in POINT_TO_POINT:
        findings.append(_check_point_to_point(test))
    elif own.communicators and not verdicts:
        findings.append(_report_alone(test))
    findings += [_check_nodes(communicator, wanted) for communicator in own.communicators]
    findings += _of_verdicts(verdicts)
    if wanted.nodes > 1:
        if run.collective != EACH_TO_EACH:
            findings += [finding for communicator in own.communicators for finding in _report_leaving(communicator)]
        findings += _find_rails(own, wanted)
    return Proof(verdicts, tuple(findings))


def count_rows(run: NcclTests, proof: Proof) -> tuple[NcclTestRow, ...]:
    """Return the rows of a run whose figures count: all of one that is proven, none of any other."""
    return run.rows if proof.status == PASS else ()


def _check_figures(test: str, run: NcclTests, log: NcclLog) -> Finding:
    """Judge whether the figures are those of a whole run, and its values right."""
    expected = "a whole run, and no wrong value"
    wrong = sum(figure.wrong or 0 for row in run.rows for figure in row.figures) or run.out_of_bounds or 0
    if wrong:
        said = sorted({name for process in log.processes for name in process.environment if name in _CHUNKS})
        why = (
            "The collective gave wrong values, so that its figure means nothing: a GPU, an HCA, a library or a setting"
            " damages data."
        )
        remedy = (
            "See dmesg of the nodes for Xid and ECC errors, and the counters of the links. Run again with no setting of"
            " NCCL, and with another version."
        )
        if said:
            why = (
                f"The collective gave wrong values, so that its figure means nothing. {', '.join(said)} is set, with"
                " which NCCL may write past its buffers."
            )
            remedy = f"Take {', '.join(said)} out of the job, and run again."
        return Finding("collectives.figures", test, FAIL, f"{wrong} wrong values", expected, why, remedy)
    if run.errors:
        why = "The test ended with an error, so that its figures are not those of the collective."
        return Finding(
            "collectives.figures",
            test,
            FAIL,
            run.errors[0],
            expected,
            why,
            "See the first error in the log, and the findings on it.",
        )
    if run.cpu_time:
        why = (
            "Its times are those that the CPU took to start the collective (option -C), and say nothing of the"
            " bandwidth."
        )
        return Finding("collectives.figures", test, UNKNOWN, "times of the CPU", expected, why, "Run it without -C.")
    if run.lacks:
        why = f"These are not the figures of a whole run: {run.lacks[0]}."
        return Finding(
            "collectives.figures",
            test,
            UNKNOWN,
            f"{len(run.rows)} rows",
            expected,
            why,
            "Give all that the test printed, to its last line.",
        )
    if not all(any(figure.wrong is not None for figure in row.figures) for row in run.rows):
        why = (
            "Nobody looked whether the values are right: -c 0, or a version before 2.13, which says no number of wrong"
            " ones."
        )
        return Finding(
            "collectives.figures", test, UNKNOWN, "not checked", expected, why, "Run a version of today with -c 1."
        )
    return ok("collectives.figures", test, f"{len(run.rows)} rows, 0 wrong", expected)


def _make_groups(test: str, run: NcclTests, log: NcclLog, wanted: RequiredProof) -> Finding:
    """Whose figure is it, and is the log about all groups? A test cuts off a long list of its ranks, so that of a group
    none may be in it."""
    listed, logged = len({rank.group for rank in run.ranks}), len(log.communicators)
    expected = f"{wanted.groups} groups, and the figure of the slowest" if wanted.groups > 1 else "one group"
    if listed > 1 and not wanted.slowest_group:
        why = (
            "The ranks are in several groups, and without -a 3 the figure is that of the first rank's group, or a mean"
            " that hides a slow one."
        )
        return Finding(
            "collectives.groups",
            test,
            UNKNOWN,
            f"{listed} groups",
            expected,
            why,
            "Run it with -a 3: the time of the slowest rank of all groups.",
        )
    if logged and logged != wanted.groups:
        why = (
            "NCCL's log has another number of communicators: the log of some ranks is missing, or the groups are not"
            " those that were asked for."
        )
        remedy = f"Compare NCCL_TESTS_SPLIT with the GPUs of a node. {_WHOLE}"
        return Finding("collectives.groups", test, UNKNOWN, f"{logged} groups in the log", expected, why, remedy)
    return ok("collectives.groups", test, f"{logged or listed or 1} groups", expected)


def _report_silent(host: str, pid: int) -> Finding:
    why = (
        "The test lists this process, and NCCL's log has no communicator of it: it wrote no log, failed before it had"
        " one, or the run left its log out and says why."
    )
    return Finding(
        "collectives.ranks", f"{host} process {pid}", UNKNOWN, "not in the log", "a communicator", why, _WHOLE
    )


def _check_log(log: NcclLog, run: NcclTests, wanted: RequiredProof) -> list[Finding]:
    """Return the failed findings of stage training on the same log, without passes and warnings."""
    # each group has its own number of ranks, and the log itself may say what it is
    found = [item for item in judge_log(log, wanted.ranks, wanted.gpu_direct) if item.status in (FAIL, UNKNOWN)]
    if run.collective in (EACH_TO_EACH, *POINT_TO_POINT):
        found = [
            item
            for item in found
            if item.status == FAIL or item.check not in ("training.channels", "training.transport")
        ]
    return [dataclasses.replace(item, check=_CHECKS[item.check]) for item in found]


def _check_point_to_point(test: str) -> Finding:
    why = (
        "It sends over connections of send and receive, which NCCL makes at their first use. The log does not say how"
        " many there must be, so that it can't be told whether all of them are in it."
    )
    remedy = (
        "Prove the transport by an all_reduce in the same pods; take this figure beside it, as one that nothing proves."
    )
    return Finding("collectives.channels", test, UNKNOWN, "point to point", "each channel in the log", why, remedy)


def _report_alone(test: str) -> Finding:
    why = "Each rank is alone in its communicator, so that nothing was sent."
    return Finding(
        "collectives.channels",
        test,
        UNKNOWN,
        "no channel",
        _EVERY,
        why,
        "See NCCL_TESTS_SPLIT: MOD takes the GPUs of a node, DIV likewise.",
    )


def _check_nodes(communicator: NcclCommunicator, wanted: RequiredProof) -> Finding:
    subject, nodes, expected = f"communicator {communicator.name}", count_nodes(communicator), f"{wanted.nodes} nodes"
    if nodes == wanted.nodes:
        return ok("collectives.nodes", subject, f"{nodes} nodes", expected)
    why = (
        "The group is another one than was asked for, so that its figure can't be held against what that should reach."
    )
    return Finding(
        "collectives.nodes",
        subject,
        FAIL,
        f"{nodes} nodes",
        expected,
        why,
        "Compare the hosts of the launcher, and NCCL_HOSTID, in all pods.",
    )


def count_nodes(communicator: NcclCommunicator) -> int:
    """Return the number of nodes, as its ranks say, else of hosts."""
    return max([rank.nodes or 0 for rank in communicator.ranks] + [len({rank.host for rank in communicator.ranks})])


def _judge_channels(
    communicator: NcclCommunicator, log: NcclLog, wanted: RequiredProof
) -> typing.Iterator[ChannelVerdict]:
    processes = {(process.host, process.pid): process for process in log.processes}
    for rank in communicator.ranks if communicator.size != 1 else ():
        process = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid))
        by_channel: dict[int, list[NcclRoute]] = {}
        for route in rank.routes:
            for channel in route.channels:
                by_channel.setdefault(channel, []).append(route)
        if rank.channels is None:
            why = "the log does not say how many channels the rank has"
            yield ChannelVerdict(communicator.name, rank.host, rank.rank, (), UNKNOWN, (), why, _WHOLE)
        alike: dict[tuple[_Verdict, tuple[str, ...]], list[int]] = {}
        for channel in sorted({*by_channel, *range(rank.channels or 0)}):
            routes = by_channel.get(channel, [])
            ways = tuple(dict.fromkeys(map(describe_route, routes)))
            alike.setdefault((_channel(channel, routes, rank, process, wanted), ways), []).append(channel)
        for ((status, why, remedy), ways), channels in alike.items():
            yield ChannelVerdict(communicator.name, rank.host, rank.rank, tuple(channels), status, ways, why, remedy)


def _judge_ends(communicator: NcclCommunicator, log: NcclLog, wanted: RequiredProof) -> typing.Iterator[ChannelVerdict]:
    """Judge what each rank sends and receives in a test of each to each: at least one connection with each other rank,
    those of other nodes by the network.

    A log has no names of peers there, so the connections are counted.
    """
    processes = {(process.host, process.pid): process for process in log.processes}
    on_host = collections.Counter(rank.host for rank in communicator.ranks)
    for rank in communicator.ranks if communicator.size != 1 else ():
        process = processes.get((rank.host, rank.pid), NcclProcess(rank.host, rank.pid))
        routes = [route for route in rank.routes if route.connection]
        verdicts = [_route(route, rank, process, wanted) for route in routes]
        status, why, remedy = _find(verdicts, FAIL) or _find(verdicts, UNKNOWN) or _PROVEN
        away = (communicator.size or len(communicator.ranks)) - on_host[rank.host]
        if status == PASS:
            for words, found, least in (
                ("to ranks of other nodes", _lines(routes, "send", over=True), away),
                ("from ranks of other nodes", _lines(routes, "receive", over=True), away),
                ("to ranks of its node", _lines(routes, "", over=False), on_host[rank.host] - 1),
            ):
                if found < least:
                    status, remedy = UNKNOWN, _WHOLE
                    why = f"{found} connections {words} are in the log, and there are {least} of these ranks"
                    break
        ways = tuple(dict.fromkeys(map(describe_route, routes)))
        yield ChannelVerdict(communicator.name, rank.host, rank.rank, (), status, ways, why, remedy)


def _lines(routes: typing.Sequence[NcclRoute], direction: str, over: bool) -> int:
    """Count connections of a direction, over the network or inside of a node."""
    return sum(route.lines for route in routes if route.direction == direction and (route.transport == "NET") is over)


#: status, cause and remedy
_Verdict = tuple[Status, str, str]
_PROVEN: _Verdict = (PASS, "", "")


def _channel(
    channel: int, routes: typing.Sequence[NcclRoute], rank: NcclRank, process: NcclProcess, wanted: RequiredProof
) -> _Verdict:
    """Judge the channels: a failure goes before an unknown value."""
    verdicts = [_route(route, rank, process, wanted) for route in routes]
    failed = _find(verdicts, FAIL)
    if failed:
        return failed
    if channel in rank.unseen or not routes:
        return UNKNOWN, "no outgoing connection of it is in the log", _WHOLE
    if channel in rank.unanswered:
        return UNKNOWN, "only the other end of it is in the log", _WHOLE
    return _find(verdicts, UNKNOWN) or _PROVEN


def _find(verdicts: typing.Sequence[_Verdict], status: Status) -> typing.Optional[_Verdict]:
    """Find the first verdict of a status."""
    return next((verdict for verdict in verdicts if verdict[0] == status), None)


def _route(route: NcclRoute, rank: NcclRank, process: NcclProcess, wanted: RequiredProof) -> _Verdict:
    if route.transport == "SHM" and not wanted.shared_memory:
        why = "it goes through the host's memory (SHM), neither by NVLink nor over the network"
        return (
            FAIL,
            why,
            (
                "Take NCCL_P2P_DISABLE and NCCL_P2P_LEVEL out of the job; see nvidia-smi topo -m, and switch ACS off"
                " between GPUs."
            ),
        )
    if route.via == "MNNVL" and not wanted.multi_node_nvlink:
        why = "it goes over NVLink between nodes (MNNVL), and not over the network"
        return FAIL, why, "Set NCCL_MNNVL_ENABLE=0 for a run that is about the network."
    if route.transport in ("P2P", "SHM"):
        return _PROVEN
    if route.via == "Socket":
        return FAIL, "it goes over TCP (NET/Socket)", "See collectives.transport of this rank, which names why."
    if wanted.nodes == 1:
        return (
            FAIL,
            "it leaves the GPUs of its node by the network",
            "Take NCCL_P2P_DISABLE out of the job; see nvidia-smi topo -m.",
        )
    if not route.via.startswith("IB"):
        why = f"network {route.via} is a plugin's, of which it is not known here what it sends by"
        return UNKNOWN, why, "Run it with NCCL_NET=IB, or without the plugin (NCCL_NET_PLUGIN=none)."
    if wanted.gpu_direct and not route.gpu_direct:
        return (
            FAIL,
            "it goes through the host's memory, without GPUDirect RDMA",
            "See collectives.gpu_direct of this rank, which names why.",
        )
    return _hca(route, rank, process, wanted)


def _hca(route: NcclRoute, rank: NcclRank, process: NcclProcess, wanted: RequiredProof) -> _Verdict:
    """Find the HCA of a channel. Where it goes through the GPU of another rank (PXN), the HCA is of the same node all
    the same, whose processes number them alike."""
    allowed = wanted.hcas.get(rank.host)
    if allowed is None:
        return (
            UNKNOWN,
            f"it is not known which HCAs of {rank.host} are on the fabric",
            "Run it in pods whose annotations can be read.",
        )
    names = _list_names(route, process)
    if not names:
        why = (
            "the log does not say which HCA network device"
            f" {'without a number' if route.device is None else route.device} is"
        )
        return UNKNOWN, why, "Run with NCCL_DEBUG_SUBSYS=INIT,NET, which names them."
    foreign = [name for name in names if name not in allowed]
    if foreign:
        return (
            FAIL,
            f"it uses {', '.join(foreign)}, which is not on the fabric",
            "Name the devices in NCCL_IB_HCA, exactly: with '=' in front.",
        )
    return _PROVEN


def _list_names(route: NcclRoute, process: NcclProcess) -> list[str]:
    """Name the HCAs of a route; none where the log does not say."""
    for device in process.devices:
        if device.index == route.device:
            return name_hcas(device.name)
    return []


def _of_verdicts(verdicts: typing.Sequence[ChannelVerdict]) -> typing.Iterator[Finding]:
    """One finding for the channels of a rank that share a cause, and one for all that are proven."""
    together: dict[tuple[str, str, int, Status, str, str], list[ChannelVerdict]] = {}
    proven = 0
    for verdict in verdicts:
        proven += _count((verdict,)) if verdict.status == PASS else 0
        if verdict.status != PASS:
            key = verdict.communicator, verdict.host, verdict.rank, verdict.status, verdict.why, verdict.remedy
            together.setdefault(key, []).append(verdict)
    for (communicator, host, rank, status, why, remedy), found in together.items():
        numbers = spell_numbers(sorted(channel for item in found for channel in item.channels))
        measured = (f"channel {numbers}: " if numbers else "") + (
            ", ".join(dict.fromkeys(name for item in found for name in item.ways)) or "not in the log"
        )
        subject = f"{host} rank {rank} of communicator {communicator}"
        yield Finding(
            "collectives.way",
            subject,
            status,
            measured,
            _EVERY,
            f"{'Of these channels ' if numbers else ''}{why}.",
            remedy,
        )
    if proven and not together:
        yield ok(
            "collectives.way",
            "run",
            f"{proven} channels of {len({(item.communicator, item.rank) for item in verdicts})} ranks",
            _EVERY,
        )


def _report_leaving(communicator: NcclCommunicator) -> typing.Iterator[Finding]:
    """Name the channels that do not leave each node over the network."""
    nodes, hosts = count_nodes(communicator), {rank.host for rank in communicator.ranks}
    if nodes < 2:
        return
    leaves: dict[int, list[str]] = {}
    for rank in communicator.ranks:
        over = {
            channel
            for route in rank.routes
            if route.transport in ("NET", "COLLNET") and route.direction == "send"
            for channel in route.channels
        }
        for channel in over:
            leaves.setdefault(channel, []).append(rank.host)
    channels = range(max((rank.channels or 0 for rank in communicator.ranks), default=0))
    within = [
        channel for channel in channels if len(leaves.get(channel, ())) < nodes or not hosts <= set(leaves[channel])
    ]
    if within:
        why = f"Channel {spell_numbers(within)} does not leave each node over the network, by what is in the log."
        measured = f"{len(within)} of {len(channels)} channels"
        yield Finding(
            "collectives.network",
            f"communicator {communicator.name}",
            UNKNOWN,
            measured,
            "each channel leaves each node",
            why,
            _WHOLE,
        )


def _find_rails(log: NcclLog, wanted: RequiredProof) -> typing.Iterator[Finding]:
    """Name the rails of the run that a host does not use."""
    processes = {(process.host, process.pid): process for process in log.processes}
    used: dict[str, dict[str, None]] = {}
    for communicator in log.communicators:
        for rank in communicator.ranks:
            process = processes.get((rank.host, rank.pid))
            over = [route for route in rank.routes if route.transport in ("NET", "COLLNET") and route.via != "Socket"]
            used.setdefault(rank.host, {}).update(
                dict.fromkeys(name for route in over if process for name in _list_names(route, process))
            )
    expected = f"rail {spell_numbers(wanted.rails)} of each host"
    for host, names in used.items():
        rails = wanted.hcas.get(host, {})
        seen = {rails[name] for name in names if rails.get(name) is not None}
        idle = [rail for rail in wanted.rails if rail not in seen]
        measured = f"rail {spell_numbers(sorted(rail for rail in seen if rail is not None)) or 'none'}"
        unknown = [name for name in names if name in rails and rails[name] is None]
        if not idle:
            yield ok("collectives.rails", host, measured, expected)
        elif unknown or not names or host not in wanted.hcas:
            why = (
                f"It is not known of which rail {', '.join(unknown or names)} is."
                if names
                else "No channel of this host is on an HCA that the log names."
            )
            yield Finding(
                "collectives.rails",
                host,
                UNKNOWN,
                measured,
                expected,
                why,
                "See the stage fabric for the rails, and collectives.way of this host.",
            )
        else:
            why = (
                f"Nothing goes over rail {spell_numbers(idle)}: NCCL_IB_HCA leaves it out, its port is down, or no GPU"
                " of the run is near it."
            )
            yield Finding(
                "collectives.rails",
                host,
                FAIL,
                measured,
                expected,
                why,
                "Compare NCCL_IB_HCA with ibv_devinfo in the pod; use as many GPUs as rails.",
            )
