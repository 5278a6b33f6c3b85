# SPDX-License-Identifier: GPL-3.0-or-later

"""A fleet whose pods run nccl-tests: an API server, shells, mpirun with its daemons, the program's output and NCCL's
logs, all played."""

from __future__ import annotations

import dataclasses
import re
import threading
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import CommandResult
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.collectives import host_name

from .nccl_job import Job
from .run.test_pairs import Api

#: RDMA devices of the two rails, in each pod
DEVICES = ("mlx5_21", "mlx5_22")
#: GB/s of a rail of 392 Gb/s, and of the inside of a node
RAIL, INSIDE = 49.0, 370.0
#: seconds of a test, by the defaults of the intent
LIMIT = 300
GIB = 1 << 30
FABRIC: dict[str, typing.Any] = {
    "name": "compute",
    "profile": "sriov_ethernet",
    "select": {"hcas_per_node": 2},
    "virtual_functions": 4,
    "resource_name": "rails",
    "network": {"name": "net", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
}
COLLECTIVES: dict[str, typing.Any] = {
    "image": "registry.example/nccl-tests:1",
    "cpu": "8",
    "memory": "64Gi",
    "gpus_per_node": 2,
}
CLUSTER: dict[str, typing.Any] = {"collectives": COLLECTIVES}


def functions_of(node: int) -> list[tuple[str, str, str]]:
    """Return the virtual functions of a pod: address, physical function and RDMA device."""
    return [
        (f"0000:{1 + rail:02x}:10.{node % 8}", f"0000:{1 + rail:02x}:00.0", device)
        for rail, device in enumerate(DEVICES)
    ]


def tests_text(
    collective: str, ranks: typing.Sequence[tuple[int, int, str, int]], size: int, bus: float, wrong: int = 0
) -> str:
    """Return what nccl-tests prints.

    :param ranks: group, process, host and GPU of each
    :param size: ranks of a communicator
    :param bus: bus bandwidth of all messages, in GB/s
    """
    factor = 2 * (size - 1) / size if collective == "all_reduce" else (size - 1) / size
    lines = [
        "# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809",
        f"# Collective test starting: {collective}_perf",
        (
            f"# nThread 1 nGpus 1 minBytes {GIB} maxBytes {8 * GIB} step: 2(factor) warmup iters: 5 iters: 20 agg"
            " iters: 1 validation: 1 graph: 0 unalign: 0"
        ),
        "#",
        "# Using devices",
    ]
    for number, (group, pid, host, gpu) in enumerate(ranks):
        lines.append(
            f"#  Rank {number:2d} Group {group:2d} Pid {pid:6d} on {host:>10} device {gpu:2d} [0000:{gpu + 6:02x}:00]"
            " NVIDIA H100"
        )
    lines += [
        "#",
        (
            "#                                                              out-of-place                       in-place"
            "          "
        ),
        (
            "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw  "
            " busbw  #wrong "
        ),
        (
            "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s) "
            " (GB/s)         "
        ),
    ]
    for step in range(4):
        bytes_ = GIB << step
        algorithm = bus / factor if factor else bus
        part = f"{bytes_ / algorithm / 1e3:8.2f} {algorithm:7.2f} {bus:7.2f} {wrong:7d}"
        lines.append(f"{bytes_:12d} {bytes_ // 4:13d} {'float':>9} {'sum':>7} {-1:7d} {part} {part}")
    lines += [
        f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}",
        f"# Avg bus bandwidth    : {bus:.2f} ",
        "#",
    ]
    return "\n".join([*lines, f"# Collective test concluded: {collective}_perf", "#", ""])


def small_text(text: str, time_us: float) -> str:
    """Return what nccl-tests prints of messages of 8 bytes with option -I.

    :param text: that it prints of large ones
    """
    each = " ".join(f"{value:8.2f}" for value in (0.8 * time_us, 2 * time_us, 1.3 * time_us, 9.0))
    part = f"{time_us:8.2f} {0:7.2f} {0:7.2f} {0:7d} {each}"
    row = f"{8:12d} {2:13d} {'float':>9} {'sum':>7} {-1:7d} {part} {part}"
    text = re.sub(r"minBytes \d+ maxBytes \d+", "minBytes 8 maxBytes 8", text)
    text = text.replace("#wrong ", "#wrong    i_min    i_max    i_p99    i_cv% ")
    text = re.sub(r"Avg bus bandwidth    : \S+", "Avg bus bandwidth    : 0", text)
    rows = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return text.replace("\n".join(rows), row)


class Mpirun:
    """One run of mpirun.

    :ivar hosts: of its pods, in their order
    """

    def __init__(self, command: typing.Sequence[str]) -> None:
        self.command = tuple(command)
        self.hosts = [item.rpartition(":")[0] for item in command[command.index("--host") + 1].split(",")]
        variables = dict(word.split("=", 1) for before, word in zip(command, command[1:]) if before == "-x")
        #: variables that the image sets, which are taken out
        self.without = {word for before, word in zip(command, command[1:]) if before == "-u"}
        self.variables = variables
        self.small = "-I" in command
        self.name = variables["NCCL_DEBUG_FILE"].rpartition("/")[2].partition(".")[0]
        self.split = "NCCL_TESTS_SPLIT" in variables
        self.gpu = int(variables["CUDA_VISIBLE_DEVICES"]) if "CUDA_VISIBLE_DEVICES" in variables else None
        self.collective = next(word.rpartition("/")[2][: -len("_perf")] for word in command if word.endswith("_perf"))
        self.asks = list(enumerate(self.hosts[1:], start=4711))
        self.answers: dict[int, int] = {}

    @property
    def ended(self) -> bool:
        return len(self.answers) == len(self.hosts) - 1 or any(self.answers.values())

    def jobs(self) -> list[tuple[int, Job]]:
        """Return each communicator with its rail."""
        whole = Job(hosts=len(self.hosts), gpus=2, hcas=DEVICES, each_to_each=self.collective == "alltoall")
        if self.split or self.gpu is not None:
            rails = (0, 1) if self.gpu is None else (self.gpu,)
            return [(rail, dataclasses.replace(whole, gpus=1, hcas=(DEVICES[rail],))) for rail in rails]
        return [(0, whole)]


class NcclApi(Api):
    """An API server with such pods.

    :ivar slow: rails of nodes that give half of their rate; -1: the inside of the node
    :ivar tcp: nodes that fall back to TCP
    :ivar mute: nodes whose logs are lost
    :ivar dies: kind of run in which mpirun ends with an error: its number of nodes
    :ivar cures: share of its rate that a slow rail gives with a variable, by ``NAME=VALUE``, or ``-NAME`` without it
    :ivar image_sets: variables that the image sets
    :ivar overrides: variables that a file of the image sets, whatever the run says
    :ivar late: nodes whose small messages take three times as long
    :ivar rccl: the library is AMD's, which writes its version in lines without a host
    :ivar grows: error counters that rise during a soak, by node and device: ``NAME VALUE``
    :ivar uncounted: nodes whose pods show no error counters
    :ivar clock: that goes on while a soak runs; ``hurry`` is how many times as fast as before it runs
    :ivar unsteady: slow rails give more when a group runs again
    :ivar runs: each run of mpirun
    :ivar executed: words of daemons, by pod
    """

    def __init__(self, nodes: tuple[str, ...] = ("a", "b", "c", "d")) -> None:
        super().__init__(nodes)
        self.slow: set[tuple[str, int]] = set()
        self.tcp: set[str] = set()
        self.mute: set[str] = set()
        self.one_rail: set[str] = set()
        self.dies: set[int] = set()
        self.cures: dict[str, float] = {}
        self.image_sets: dict[str, str] = {}
        self.overrides: dict[str, str] = {}
        self.unsteady = False
        self.late: set[str] = set()
        self.rccl = False
        self.grows: dict[tuple[str, str], dict[str, int]] = {}
        self.uncounted: set[str] = set()
        self.clock: typing.Any = None
        self.hurry = 1.0
        #: readings of the counters, by pod
        self.readings: dict[str, int] = {}
        #: pods have the HCAs themselves, and no function of their own
        self.shared = False
        self.wrong = 0
        #: runs of mpirun, by their number, whose connection breaks
        self.breaks: set[int] = set()
        self.asked_for = ""
        self.runs: list[Mpirun] = []
        self.removed_logs: list[str] = []
        self.executed: list[tuple[str, str]] = []
        self.definitions: list[dict[str, typing.Any]] = []
        self.lock = threading.RLock()

    def create(self, definition: dict[str, typing.Any], manager: str = "") -> dict[str, typing.Any]:
        with self.lock:
            self.definitions.append(definition)
            made = super().create(definition)
            made["spec"] = {"hostname": definition["spec"]["hostname"], "nodeName": made["node"]}
            return made

    def shell(
        self, namespace: str, pod: str, container: str, command: tuple[str, ...], clock: typing.Any
    ) -> typing.Any:
        if pod not in self.pods:
            raise ApiError(404, "NotFound", f"pods {pod} not found", "GET")
        assert container == "collectives"
        return NcclShell(self, pod, command[-1].split())

    def node_of(self, pod: str) -> str:
        return str(self.pods[pod]["node"])

    def node_named(self, host: str) -> str:
        """Return the node whose pod has a host name."""
        return next(name for name in self.nodes if host_name(name) == host)

    def probe_of(self, node: str, asked: typing.Sequence[str]) -> str:
        """Return the greeting of a shell.

        :param asked: addresses that it shall tell of
        """
        found = functions_of(self.nodes.index(node))
        if self.shared:
            devices = {function: device for _address, function, device in found}
            return "".join(f"pci {address} {devices[address]}\n" for address in asked if address in devices)
        if node in self.one_rail:
            found = [found[0], (f"{found[0][0][:-1]}7", found[0][1], "mlx5_29")]
        lines = [f"env PCIDEVICE_OPENSHIFT_IO_RAILS={','.join(address for address, _function, _device in found)}"]
        for address, function, device in found:
            lines += [f"pci {address} {device}", f"numa {address} 0", f"physfn {address} {function}"]
        return "\n".join(lines) + "\n"

    def run_named(self, path: str) -> typing.Optional[Mpirun]:
        return next((run for run in reversed(self.runs) if run.name == path.rpartition("/")[2]), None)

    def printed(self, ran: Mpirun) -> CommandResult:
        """Return what mpirun prints at the end."""
        if self.runs.index(ran) in self.breaks:
            return CommandResult("mpirun", None, "", error="the connection to the pod broke: reset")
        if any(ran.answers.values()):
            return CommandResult("mpirun", 1, "ORTE was unable to reliably start one or more daemons.\n")
        if len(ran.hosts) in self.dies:
            return CommandResult(
                "mpirun", 139, "mpirun noticed that process rank 1 exited on signal 11 (Segmentation fault).\n"
            )
        nodes = [self.node_named(host) for host in ran.hosts]
        limit = int(ran.command[ran.command.index("-T") + 1])
        if self.clock is not None and ran.command[ran.command.index("-n") + 1] not in ("20", "1000"):
            # the limit of a soak is half as long again as it, and that of a test
            self.clock.now += (limit - LIMIT) / 1.5 / self.hurry
        rails = {0, 1} if ran.gpu is None else {ran.gpu}
        slow = any((node, rail) in self.slow for node in nodes for rail in rails)
        bound = INSIDE if len(nodes) == 1 else RAIL * (1 if ran.split or ran.gpu is not None else 2)
        if len(nodes) == 1:
            slow = (nodes[0], -1) in self.slow
        ranks = [
            (rail if ran.split else 0, 100 + 10 * rail + gpu, host, rail if ran.split else gpu)
            for rail, job in ran.jobs()
            for host in ran.hosts
            for gpu in range(job.gpus)
        ]
        job = ran.jobs()[0][1]
        size = job.ranks
        if job.each_to_each and job.hosts > 1:
            bound *= (size - 1) / (job.gpus * (size - job.gpus))
        said = [f"{name}={value}" for name, value in ran.variables.items()] + [f"-{name}" for name in ran.without]
        before = self.runs[: self.runs.index(ran)]
        again = any((other.hosts, other.gpu) == (ran.hosts, ran.gpu) for other in before)
        usual = 0.7 if self.unsteady and again else 0.5
        share = next((self.cures[word] for word in said if word in self.cures), usual) if slow else 0.96
        text = tests_text(ran.collective, ranks, size, bound * share, self.wrong)
        if ran.small:
            text = small_text(text, 60.0 if self.late.intersection(nodes) else 20.0)
        return CommandResult("mpirun", 0, text)

    def log(self, run: Mpirun, host: str) -> str:
        """Return NCCL's log of the ranks of a host."""
        node = self.node_named(host)
        if node in self.mute:
            return ""
        lines = []
        read = {name: value for name, value in {**self.image_sets, **run.variables}.items() if name not in run.without}
        read.update(self.overrides)
        more = tuple(f"{name} set by environment to {value}." for name, value in read.items())
        for rail, job in run.jobs():
            said = dataclasses.replace(job, more=more, gpu_direct=read.get("NCCL_NET_GDR_LEVEL") != "LOC")
            text = said.text().replace("0x6b99be0cc5a5bfbf", f"0x6b99be0cc5a5bfb{rail}")
            for line in text.splitlines(keepends=True):
                number = int(line.partition("-worker-")[2].partition(":")[0])
                if run.hosts[number] != host:
                    continue
                if self.rccl and "NCCL version" in line:
                    lines += ["RCCL version : 2.21.5-HEAD:9a0e6a1\n", "HIP version  : 6.3.42131-fa1d09cbd\n"]
                    continue
                lines.append(self._said(run, node, rail, f"{host}:{line.partition(':')[2]}"))
        return "".join(lines)

    def counters(self, pod: str, devices: typing.Sequence[str]) -> str:
        """Return the counters of the devices of a pod, the first time or again."""
        node, number = self.node_of(pod), self.readings.get(pod, 0)
        self.readings[pod] = number + 1
        lines = []
        for device in devices:
            lines.append(f"count {device} port_rcv_data {1000 * number}")
            if node not in self.uncounted:
                values = {"packet_seq_err": 3, "link_downed": 1, "local_ack_timeout_err": 0}
                rises = self.grows.get((node, device), {}) if number else {}
                lines += [f"count {device} {name} {value + rises.get(name, 0)}" for name, value in values.items()]
        return "\n".join(lines) + "\n"

    def _said(self, run: Mpirun, node: str, rail: int, line: str) -> str:
        """Return a line of a process of a rail: each has numbers of its own, and a GPU of its own on its node."""
        host, pid, rest = line.split(":", 2)
        thread, blank, rest = rest.partition(" ")
        if run.split:
            rest = rest.replace("cudaDev 0", f"cudaDev {rail}")
        if node in self.tcp and len(run.hosts) > 1:
            rest = re.sub(r"NET/IB/[0-9]+/GDRDMA", "NET/Socket/0", rest)
        return f"{host}:{int(pid) + 10 * rail}:{int(thread) + 10 * rail}{blank}{rest}"


class NcclShell:
    """A shell in such a pod."""

    def __init__(self, api: NcclApi, pod: str, asked: typing.Sequence[str]) -> None:
        self.api, self.pod, self.open = api, pod, True
        self.result = CommandResult("shell", 0, api.probe_of(api.node_of(pod), asked))
        self.mpirun: typing.Optional[Mpirun] = None

    def start(self, command: typing.Sequence[str]) -> None:
        with self.api.lock:
            assert all(word.isprintable() for word in command), command
            self.mpirun = None
            self.result = self._ran(list(command))

    def _ran(self, command: list[str]) -> CommandResult:
        api, line = self.api, " ".join(command)
        if "mpirun" in command:
            self.mpirun = Mpirun(command)
            api.runs.append(self.mpirun)
            return CommandResult("mpirun", None, "")
        if "mkdir" in line:
            return CommandResult(line, 0, "")
        if ".*.ask" in line:
            run = api.run_named(command[-1])
            asks, said = (run.asks if run is not None else []), ""
            for number, host in asks:
                said += f"ask {number}\n{api.asked_for or host}\norted --of {run.name if run is not None else ''}\n"
            asks.clear()
            return CommandResult(line, 0, said)
        if "orted" in line:
            api.executed.append((self.pod, command[-2]))
            return CommandResult(line, 0, "")
        if 'echo "$1"' in line:
            path, _dot, rest = command[-1].partition(".")
            run = api.run_named(path)
            assert run is not None
            run.answers[int(rest.partition(".")[0])] = int(command[-2])
            return CommandResult(line, 0, "")
        if "tail -c" in line:
            run = api.run_named(command[4])
            text = api.log(run, host_name(api.node_of(self.pod))) if run is not None else ""
            start, size = int(command[5]) - 1, int(command[6])
            return CommandResult(line, 0, text[start : start + size])
        if "hw_counters" in line:
            return CommandResult(line, 0, api.counters(self.pod, command[4:]))
        if "rm -f" in line:
            api.removed_logs.append(command[4])
            return CommandResult(line, 0, "")
        raise AssertionError(line)

    @property
    def running(self) -> bool:
        return self.open and self.mpirun is not None and not self.mpirun.ended

    def wait_for(self, text: str, seconds: float) -> bool:
        return False

    def wait(self, seconds: float, lost: typing.Callable[[], str] = str) -> CommandResult:
        with self.api.lock:
            if self.mpirun is None:
                return self.result
            if not self.mpirun.ended:
                self.open = False
                return CommandResult("mpirun", None, "", not lost(), error=lost())
            return self.api.printed(self.mpirun)

    def close(self) -> None:
        self.open = False
