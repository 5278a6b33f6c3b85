# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage training: what a job's log proves, and that all that it does not prove closes the gate."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import tracemalloc
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log import problems
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log import ranks as rank_checks
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.channels import judge_log
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.problems import CAUSES
from ansible_collections.linerate.rdma.plugins.module_utils._check.training import queue_pairs
from ansible_collections.linerate.rdma.plugins.module_utils._check.training.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate import check as validate
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    LinkEnd,
    ObservedSubnets,
    ObservedTopologies,
    SeenSubnet,
    Topology,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import (
    ClusterIntent,
    Fabric,
    Intent,
    Select,
    Training,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import (
    NcclCommunicator,
    NcclDevice,
    NcclLog,
    NcclProblem,
    NcclProcess,
    PodFunction,
    TrainingPod,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.completions import STATUSES
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import (
    Hca,
    NodeHcas,
    ObservedHcas,
    PciFunction,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning import (
    NodeTuning,
    ObservedTuning,
    RowReading,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import WHAT
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job import transports
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl import kinds as nccl_kinds
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse, parse_text
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.check.fabric_world import node, subnets
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import SIX_HCAS, plain_guid
from ansible_collections.linerate.rdma.tests.unit.truth import fleet as fleets

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures" / "nccl"
#: the four HCAs of fabric 1, each with one virtual function, mlx5_20 to mlx5_25
RAILS = [(device, address) for device, _netdev, address, fabric in SIX_HCAS if fabric == 1]
FUNCTIONS = {f"mlx5_2{device[-1]}": address[:-1] + "1" for device, address in RAILS}
ETHERNET = (("job-worker-0", "worker-1"), ("job-worker-1", "worker-2"))


def intent(**training: typing.Any) -> Intent:
    select = Select(hcas_per_node=4, subnet_manager=("any",))
    compute = Fabric(
        "compute",
        "sriov_infiniband",
        Network("test", "sriov-ib"),
        select,
        8,
        "mlx_compute",
        Ipam("whereabouts", "100.100.0.0/22"),
    )
    return Intent((compute,), cluster=ClusterIntent(training=Training(**training)))


def hcas(number: int) -> ObservedHcas:
    """A worker with a virtual function on each HCA of fabric 1."""
    seen = node(number)
    functions = tuple(
        Hca(
            name,
            name,
            (),
            PciFunction(address, "15b3", "101e", "0207", "mlx5_core"),
            physical_function=f"{address[:-1]}0",
            vf_index=0,
        )
        for name, address in FUNCTIONS.items()
    )
    return ObservedHcas(NodeHcas((*seen.hcas, *functions)))


def pod(host: str, on: str, **changes: typing.Any) -> TrainingPod:
    functions = tuple(
        PodFunction("test/sriov-ib", f"net{number}", address, name)
        for number, (name, address) in enumerate(FUNCTIONS.items(), 1)
    )
    return dataclasses.replace(TrainingPod(host, host, on, functions), **changes)


def facts(job: typing.Optional[Job] = None, **changes: typing.Any) -> Facts:
    job = job or Job(hcas=tuple(FUNCTIONS))
    whole = Facts(
        parse(job.lines()),
        tuple(pod(*place) for place in ETHERNET),
        {"worker-1": hcas(1), "worker-2": hcas(2)},
        {name: ObservedSubnets(subnets()) for name in ("worker-1", "worker-2")},
    )
    return dataclasses.replace(whole, **changes)


def found(findings: typing.Iterable[Finding], what: str, status: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == f"training.{what}" and finding.status == status]


def closing(findings: typing.Iterable[Finding]) -> set[str]:
    return {f"{finding.check.partition('.')[2]} {finding.status}" for finding in judge(findings).closing()}


def with_gpus(state: str) -> dict[str, ObservedTuning]:
    rows: dict[str, tuple[RowReading, ...]] = {"gpu_fabric": (RowReading(state, ("0000:18:00.0", "0000:2a:00.0")),)}
    return {name: ObservedTuning(NodeTuning(rows)) for name in ("worker-1", "worker-2")}


IN_MEMORY = Job(hcas=tuple(FUNCTIONS), inside="SHM/direct/direct")


@pytest.mark.parametrize(
    ("tunings", "status", "says"),
    [
        ({}, WARN, "waive"),
        (with_gpus("In Progress"), WARN, "waive"),
        (with_gpus("Success"), FAIL, "nvidia-smi nvlink -s"),
    ],
)
def test_gpus_of_a_pod_that_exchange_data_through_host_memory_are_no_pass(
    tunings: dict[str, ObservedTuning], status: str, says: str
) -> None:
    told = found(check(intent(), facts(IN_MEMORY, tunings=tunings)), "transport", status)
    assert {finding.subject for finding in told} == {"job-worker-0 rank 0", "job-worker-1 rank 2"}
    assert all("host memory (SHM)" in finding.why and says in finding.remedy for finding in told)


@pytest.mark.parametrize(
    "setting", ["NCCL_P2P_DISABLE set by environment to 1.", "NCCL_P2P_LEVEL set by environment to LOC"]
)
def test_a_variable_that_leads_through_host_memory_is_named(setting: str) -> None:
    job = dataclasses.replace(IN_MEMORY, more=(setting,))
    told = found(check(intent(), facts(job, tunings=with_gpus("Success"))), "transport", FAIL)
    assert told and all(f"because {setting[:14]}" in finding.why for finding in told)
    assert all(finding.remedy.startswith(f"Remove {setting[:14]}") for finding in told)
    # without an effect on the channels it is no finding
    job = dataclasses.replace(job, inside="P2P/CUMEM")
    assert judge(check(intent(), facts(job))).open


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("NCCL_PROTO LL", "half of the bandwidth"),
        ("NCCL_MAX_NCHANNELS 1", "HCAs stay idle"),
        ("NCCL_MAX_CTAS 3", "idle"),
    ],
)
def test_a_variable_whose_harm_the_channels_do_not_show_is_a_warning(value: str, says: str) -> None:
    name, number = value.split()
    job = Job(hcas=tuple(FUNCTIONS), more=(f"{name} set by environment to {number}.",))
    (told,) = found(check(intent(), facts(job)), "problem", WARN)
    assert (told.subject, told.measured) == (name, f"{name}={number} in 4 processes of 4")
    assert says in told.why and told.remedy.startswith("Remove the variable.")


@pytest.mark.parametrize("value", ["NCCL_PROTO Simple", "NCCL_MAX_NCHANNELS 16", "NCCL_IB_TIMEOUT 22"])
def test_a_variable_without_harm_is_no_warning(value: str) -> None:
    name, number = value.split()
    job = Job(hcas=tuple(FUNCTIONS), more=(f"{name} set by environment to {number}.",))
    assert found(check(intent(), facts(job)), "problem", WARN) == []


def test_a_good_job_opens_the_gate() -> None:
    findings = check(intent(ranks=4), facts())
    assert judge(findings).open
    assert {finding.check.partition(".")[2] for finding in findings} == set(WHAT["training"]) - {
        "problem",
        "queue_pairs",
        "ucx",
    }
    assert all(finding.status == PASS for finding in findings)
    assert {finding.subject for finding in findings if finding.check == "training.rails"} == {
        "compute job-worker-0",
        "compute job-worker-1",
    }
    assert found(findings, "transport", PASS)[0].measured == "NET/IB/GDRDMA 4, P2P/CUMEM 4"
    assert found(findings, "rails", PASS)[0].measured == "4 of 4 rails used: 0, 1, 2, 3"


def test_no_job_asked_for() -> None:
    assert judge(check(Intent(intent().fabrics), Facts())).open


def test_job_asked_for_without_a_log() -> None:
    findings = check(intent(), Facts())
    assert closing(findings) == {"log unknown"} and "training_logs" in findings[0].remedy


@pytest.mark.parametrize("text", ["", "epoch 1 loss 2.3\n" * 100])
def test_log_without_nccl(text: str) -> None:
    (finding,) = check(intent(), facts(log=parse_text(text)))
    assert (finding.check, finding.status) == ("training.log", UNKNOWN) and "NCCL_DEBUG=INFO" in finding.remedy


def test_lines_that_only_list_devices_prove_nothing() -> None:
    job = Job(
        hcas=tuple(FUNCTIONS),
        more=tuple(
            f"NET/IB : GPU Direct RDMA Enabled for HCA {index} '{name}'" for index, name in enumerate(FUNCTIONS)
        ),
    )
    log = parse(line for line in job.lines() if " via " not in line)
    findings = check(intent(), facts(log=log))
    assert closing(findings) == {"channels unknown", "transport unknown", "hcas unknown", "rails unknown"}
    assert "NCCL 2.22 and later connect at the first collective" in found(findings, "channels", UNKNOWN)[0].why


def test_channel_that_is_not_seen() -> None:
    findings = check(intent(), facts(Job(hcas=tuple(FUNCTIONS), channels=8, skip=(5, 6))))
    assert closing(findings) == {"channels unknown"}
    finding = found(findings, "channels", UNKNOWN)[0]
    assert (
        finding.measured == "6 of 8 channels with a connection"
        and "channels 5-6:" in finding.why
        and "torn" in finding.why
    )


def test_channel_that_is_seen_from_one_end_only() -> None:
    """What one end does, says nothing of the other: it may receive without GPUDirect RDMA."""
    lost = [
        line
        for line in Job(hcas=tuple(FUNCTIONS)).lines()
        if "[receive]" not in line or "worker-0" not in line or "Channel 02" not in line
    ]
    findings = check(intent(), facts(log=parse(lost)))
    assert closing(findings) == {"channels unknown"}
    (finding,) = found(findings, "channels", UNKNOWN)
    assert (
        finding.subject == "job-worker-0 rank 0"
        and finding.measured == "1 of 4 channels seen from one end only"
        and "on channel 2, but the lines of this rank" in finding.why
    )


def test_rank_that_is_not_in_the_log() -> None:
    job = Job(hcas=tuple(FUNCTIONS))
    findings = check(intent(), facts(log=parse(f"{line}\n" for rank in (0, 1, 2) for line in job.process(rank))))
    (finding,) = found(findings, "ranks", UNKNOWN)
    assert finding.measured == "3 of 4 ranks in the log" and "rank 3" in finding.why


def test_a_communicator_of_more_ranks_than_any_job_has_costs_nothing() -> None:
    line = (
        "h{0}:1:1 [0] NCCL INFO ncclCommInitRank comm 0x{0:x} rank 0 nranks {1} cudaDev 0 nvmlDev 0 busId 1b000 commId"
        " 0x{0:x} - Init COMPLETE\n"
    )
    tracemalloc.start()
    try:
        log = parse_text(line.format(1, 1_000_000) + line.format(2, 9_999_999))
        assert len(log.communicators) == 1
        (finding,) = [
            item
            for item in judge_log(log, None, True)
            if item.subject == "communicator 0x1" and item.check == "training.ranks"
        ]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (finding.status, finding.measured) == (
        "unknown",
        "1 of 1000000 ranks in the log",
    ) and "ranks 1-999999." in finding.why


def test_a_fact_with_more_ranks_than_any_job_has_is_refused() -> None:
    with pytest.raises(LoadError, match="a number of ranks from 1 to"):
        load(NcclCommunicator, {"name": "0x1", "size": 10**60, "ranks": []})


@hypothesis.given(some.sets(some.integers(0, 40)), some.integers(1, 35))
def test_gaps_are_the_ranks_that_are_missing(seen: set[int], size: int) -> None:
    missing = [rank for rank in range(size) if rank not in seen]
    assert rank_checks._spell_spans(rank_checks._find_gaps(sorted(seen), size)) == rank_checks.spell_numbers(missing)


def test_rank_that_never_completed() -> None:
    findings = check(
        intent(),
        facts(
            log=parse(
                line for line in Job(hcas=tuple(FUNCTIONS)).lines() if "rank 2" not in line or "COMPLETE" not in line
            )
        ),
    )
    (finding,) = found(findings, "ranks", UNKNOWN)
    assert finding.measured == "3 of 4 ranks with a complete initialization"


def test_beginning_that_is_missing() -> None:
    findings = check(intent(), facts(log=parse(line for line in Job().lines() if " - Init " not in line)))
    assert {finding.measured for finding in found(findings, "ranks", UNKNOWN)} == {
        "0 communicators",
        "channels of 4 ranks, number of all ranks not in the log",
    }


def test_job_of_another_size() -> None:
    (finding,) = found(check(intent(ranks=16), facts()), "ranks", FAIL)
    assert (finding.measured, finding.expected) == ("4 ranks", "16 ranks")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "no RDMA device"),
        (("NCCL_IB_HCA set to mlx5_9",), "NCCL_IB_HCA=mlx5_9"),
        (("NCCL_IB_DISABLE set by environment to 1.",), "NCCL_IB_DISABLE is set"),
        (("NCCL_NET set by environment to Socket.",), "NCCL_NET=Socket"),
        (("NCCL_NET set by environment to socket.",), "because NCCL_NET=socket is set"),
        (("Failed to open libibverbs.so[.1]",), "libibverbs is not in the image"),
    ],
)
def test_tcp_in_silence(more: tuple[str, ...], words: str) -> None:
    findings = check(intent(), facts(Job(hcas=(), network="Socket", gpu_direct=False, more=more)))
    assert closing(findings) == {"transport fail", "hcas unknown", "rails unknown"}
    assert all(words in finding.why for finding in found(findings, "transport", FAIL))
    assert len(found(findings, "transport", FAIL)) == 4


@pytest.mark.parametrize("network", ["UCX", "OFI", "AWS Libfabric", "Libfabric", "SOCKETX", "FasTrak", "SHARP"])
def test_the_network_of_a_plugin_proves_no_rdma(network: str) -> None:
    """UCX and the providers of libfabric may take TCP, and NCCL's log does not say so."""
    told = found(check(intent(), facts(Job(network=network))), "transport", UNKNOWN)
    assert len(told) == 4
    assert all(f"over the network plugin {network}." in item.why and "NCCL_NET=IB" in item.remedy for item in told)


@pytest.mark.parametrize("network", ["IB", "IBext_v8", "IBext_v11", "gIB", "RCCL-ANP"])
def test_the_networks_that_are_verbs(network: str) -> None:
    """The plugins list the devices as NCCL does."""
    assert closing(check(intent(), facts(Job(network=network, hcas=tuple(FUNCTIONS))))) == set()


def test_a_network_that_is_verbs_lists_the_devices_with_its_own_name() -> None:
    text = Job(network="gIB", hcas=tuple(FUNCTIONS)).text().replace("NET/IB : Using", "NET/gIB : Using")
    assert closing(check(intent(), facts(log=parse(text.splitlines(keepends=True))))) == set()


def test_tcp_although_there_are_devices() -> None:
    findings = check(intent(), facts(Job(network="Socket", gpu_direct=False)))
    assert "the log does not show the reason" in found(findings, "transport", FAIL)[0].why


def test_real_fallback_to_tcp() -> None:
    findings = check(
        intent(), facts(log=parse_text((FIXTURES / "2.28.9-mpirun-hosts.txt").read_text(encoding="utf-8")))
    )
    assert len(found(findings, "transport", FAIL)) == 4
    assert found(findings, "transport", FAIL)[2].subject.startswith(
        "vm rank 0 of communicator 0x7c092242a24d00ca split 1 color"
    )


def test_staged_through_the_host() -> None:
    without = Job(hcas=tuple(FUNCTIONS), gpu_direct=False)
    findings = check(intent(), facts(without))
    assert closing(findings) == {"gpu_direct fail"}
    assert "The log does not show the reason" in found(findings, "gpu_direct", FAIL)[0].why
    assert judge(check(intent(gpu_direct=False), facts(without))).open
    said = dataclasses.replace(without, more=("NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_21' (no module)",))
    assert "mlx5_21: no module" in found(check(intent(), facts(said)), "gpu_direct", FAIL)[0].why
    # on these NCCL itself leaves it off
    for job in (without, said):
        assert (
            "On GH200 and GB200, set NCCL_NET_GDR_C2C=1"
            in found(check(intent(), facts(job)), "gpu_direct", FAIL)[0].remedy
        )


def test_two_versions() -> None:
    mixed = [
        line.replace("2.28.9+cuda12.4", "2.27.3+cuda12.4") if "worker-1" in line else line
        for line in Job(hcas=tuple(FUNCTIONS)).lines()
    ]
    assert closing(check(intent(), facts(log=parse(mixed)))) == {"version fail"}
    none = [line for line in Job(hcas=tuple(FUNCTIONS)).lines() if "NCCL version" not in line]
    assert closing(check(intent(), facts(log=parse(none)))) == {"version unknown"}


def test_loopback() -> None:
    log = parse(line.replace("OOB eth0:", "OOB lo:") for line in Job(hcas=tuple(FUNCTIONS)).lines())
    assert closing(check(intent(), facts(log=log))) == {"oob fail"}
    log = parse(line for line in Job(hcas=tuple(FUNCTIONS)).lines() if "OOB" not in line and "Bootstrap" not in line)
    # with the line the names of the devices are gone as well
    assert closing(check(intent(), facts(log=log))) == {"oob unknown", "hcas unknown", "rails unknown"}


def test_one_host_proves_nothing_of_the_network() -> None:
    findings = check(intent(), facts(Job(hosts=1, hcas=tuple(FUNCTIONS))))
    assert closing(findings) == {"hcas unknown"} and "one host" in found(findings, "hcas", UNKNOWN)[0].why


# the pods


def test_physical_function_instead_of_the_pod_s_own() -> None:
    used = ("mlx5_0", *list(FUNCTIONS)[1:])
    findings = check(intent(), facts(Job(hcas=used)))
    assert closing(findings) == {"hcas fail", "rails fail"}
    assert found(findings, "hcas", FAIL)[0].why.startswith("The pod did not get mlx5_0 from its networks")


def test_function_that_is_not_used() -> None:
    findings = check(intent(), facts(Job(hcas=tuple(FUNCTIONS)[:3], channels=6)))
    assert closing(findings) == {"hcas fail", "rails fail"}
    assert "mlx5_25" in found(findings, "hcas", FAIL)[0].why
    rails = found(findings, "rails", FAIL)[0]
    assert "no channel uses rail 3" in rails.why and "NCCL_CROSS_NIC" in rails.remedy


def test_pod_with_too_few_functions() -> None:
    few = tuple(pod(*place, functions=pod(*place).functions[:3]) for place in ETHERNET)  # type: ignore[index]
    findings = check(intent(), facts(Job(hcas=tuple(FUNCTIONS)[:3], channels=6), pods=few))
    assert closing(findings) == {"rails fail"}
    rails = found(findings, "rails", FAIL)[0]
    assert rails.why == "The pod has no HCA on rail 3." and "one network attachment for each rail" in rails.remedy
    assert rails.remedy.endswith("run stage training again with the new log.")


def test_pod_without_a_function_of_the_fabric() -> None:
    findings = check(intent(), facts(pods=tuple(pod(*place, functions=()) for place in ETHERNET)))
    assert "hcas fail" in closing(findings) and "got no HCA of this fabric" in found(findings, "hcas", FAIL)[0].why


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        (None, "did not read the pods of the job"),
        ((), "No pod in training_namespace"),
        (
            tuple(pod(*place, functions=None, error="pod x has no annotation") for place in ETHERNET),
            "has no annotation",
        ),
    ],
)
def test_pods_that_are_not_known(pods: typing.Any, words: str) -> None:
    findings = check(intent(), facts(pods=pods))
    assert closing(findings) == {"hcas unknown"} and words in found(findings, "hcas", UNKNOWN)[0].why


def test_fabric_without_rdma() -> None:
    ethernet = dataclasses.replace(intent().fabrics[0], profile="sriov_ethernet", rdma=False)
    findings = check(Intent((ethernet,)), facts())
    assert closing(findings) == {"hcas unknown"} and "no fabric with RDMA" in found(findings, "hcas", UNKNOWN)[0].why


def test_names_come_from_the_node_where_multus_says_none() -> None:
    def bare(place: tuple[str, str]) -> TrainingPod:
        return pod(
            *place,
            functions=tuple(
                dataclasses.replace(function, rdma_device=None) for function in pod(*place).functions or ()
            ),
        )

    pods = tuple(bare(place) for place in ETHERNET)
    assert judge(check(intent(), facts(pods=pods))).open
    findings = check(intent(), facts(pods=pods, hcas={}))
    assert closing(findings) == {"hcas unknown", "rails unknown"}


def test_rails_that_are_not_known() -> None:
    assert closing(check(intent(), facts(hcas={}))) == {"rails unknown"}


def test_the_leaf_tells_the_rail_of_another_server_model() -> None:
    """Its slots are in the opposite order, and its devices have other names: the finding must name the rail as it is
    cabled."""
    other, moved, leaves = [], [], []
    for place, (device, _address) in enumerate(RAILS):
        index, bus = int(device[-1]), 0xE0 - 16 * place
        pf, vf = (
            PciFunction(f"0000:{bus:02x}:00.0", "15b3", "1021", "0207", "mlx5_core"),
            PciFunction(f"0000:{bus:02x}:00.1", "15b3", "101e", "0207"),
        )
        other.append(dataclasses.replace(world.hca(2, index), name=f"ib{place}", rdma_device=f"ib{place}", pci=pf))
        name = list(FUNCTIONS)[place]
        moved.append(Hca(name, name, (), vf, physical_function=pf.address, vf_index=0))
        leaves.append(FabricNode("Switch", f"0x{0x200 + place:016x}", f"leaf-{place}", 65, place))
    links = [
        Link(
            LinkEnd("Switch", leaf.guid, number, 1),
            LinkEnd("Ca", plain_guid(number, int(device[-1])), 1, 1, plain_guid(number, int(device[-1]), 1)),
            4,
            "NDR",
        )
        for leaf, (device, _address) in zip(leaves, RAILS)
        for number in (1, 2)
    ]
    functions = tuple(
        PodFunction("test/sriov-ib", f"net{place}", hca.pci.address, hca.name)
        for place, hca in enumerate(moved)
        if hca.pci
    )
    given = facts(
        Job(hcas=tuple(FUNCTIONS)[:3], channels=6),
        pods=(pod(*ETHERNET[0]), pod(*ETHERNET[1], functions=functions[:3])),
        hcas={"worker-1": hcas(1), "worker-2": ObservedHcas(NodeHcas((*other, *moved)))},
        subnets={
            "worker-1": ObservedSubnets(subnets()),
            "worker-2": ObservedSubnets(tuple(SeenSubnet(hca.name, 1, world.MASTERS[1]) for hca in other)),
        },
    )
    by_slot = found(check(intent(), given), "rails", FAIL)[-1]
    seen = ObservedTopologies(world.seen_topologies(Topology(tuple(leaves), tuple(links))))
    by_cable = found(check(intent(), dataclasses.replace(given, topologies={"worker-1": seen})), "rails", FAIL)[-1]
    assert (by_slot.subject, by_slot.measured) == ("compute job-worker-1", "3 of 4 rails used: 1, 2, 3")
    assert (by_cable.subject, by_cable.measured) == ("compute job-worker-1", "3 of 4 rails used: 0, 1, 2")


def test_shared_hcas() -> None:
    """Pods of a macvlan network on shared HCAs see those of their node, under the node's names."""
    shared = dataclasses.replace(
        intent().fabrics[0], profile="rdma_shared", select=Select(4, pci=tuple(address for _device, address in RAILS))
    )
    ethernet = {
        name: ObservedHcas(NodeHcas(tuple(dataclasses.replace(hca, ports=()) for hca in node(number).hcas)))
        for number, name in ((1, "worker-1"), (2, "worker-2"))
    }
    pods = tuple(pod(*place, functions=(PodFunction("test/sriov-ib", "net1"),)) for place in ETHERNET)
    job = Job(hcas=tuple(device for device, _address in RAILS))
    assert judge(check(Intent((shared,)), facts(job, pods=pods, hcas=ethernet))).open


def test_a_shared_hca_without_an_rdma_device_is_a_rail_that_nobody_uses() -> None:
    shared = dataclasses.replace(
        intent().fabrics[0], profile="rdma_shared", select=Select(4, pci=tuple(address for _device, address in RAILS))
    )
    bare = tuple(
        dataclasses.replace(hca, ports=(), rdma_device=None if hca.name == RAILS[0][0] else hca.rdma_device)
        for hca in node(1).hcas
    )
    pods = (pod(*ETHERNET[0], functions=(PodFunction("test/sriov-ib", "net1"),)),)
    job = Job(hcas=tuple(device for device, _address in RAILS[1:]), channels=6)
    findings = check(Intent((shared,)), facts(job, pods=pods, hcas={"worker-1": ObservedHcas(NodeHcas(bare))}))
    assert statuses(findings, "hcas")["compute job-worker-0"] == PASS
    assert statuses(findings, "rails") == {"compute job-worker-0": FAIL}


# problems


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", FAIL),
        ("init.cc:9 NCCL WARN something new", WARN),
    ],
)
def test_problems(text: str, status: str) -> None:
    log = parse(
        [
            *Job(hcas=tuple(FUNCTIONS)).lines(),
            f"job-worker-0:100:200 [0] {text}\n",
            f"job-worker-0:100:200 [0] {text}\n",
        ]
    )
    (finding,) = found(check(intent(), facts(log=log)), "problem", status)
    assert "(2 times)" in finding.measured and finding.subject.startswith("job-worker-0 line ")
    assert finding.status == WARN or "memlock" in finding.why


PUBLIC = FIXTURES.parent / "public"
ON_INFINIBAND = "job-worker-0:100:200 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"
#: what concerns RoCE alone
ROCE = ("PFC", "ECN", "MTU", "RoCE", "GID index")


def problems_of(*lines: str) -> list[Finding]:
    """Findings on the problems of a log."""
    return [
        finding
        for finding in judge_log(parse_text("".join(f"{line}\n" for line in lines)), None, True)
        if finding.check == "training.problem"
    ]


def failed_completion(words: str) -> str:
    return f"job-worker-0:100:200 [0] transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer {words}"


def test_completions_between_two_hcas_of_one_pod_name_the_route_inside_of_the_node() -> None:
    lost, flushed = problems_of(*(PUBLIC / "nccl-one-pod.txt").read_text().splitlines())
    assert lost.status == FAIL and "(2 times)" in lost.measured
    ends = "(fd00:0:9000:5000:4:200:3:ff22 to fd00:0:9000:5000:4:200:3:ff1f)"
    assert (
        lost.why
        == f"Both ends of the connection are in one pod. Packets between two of its HCAs do not arrive {ends}, because"
        " the node has no route between them (status 12)."
    )
    assert "NCCL_P2P_DISABLE" in lost.remedy and "CNI plugin sbr" in lost.remedy and "PFC" not in lost.remedy
    # of the same queue pair, later
    assert flushed.status == WARN and "This error is a consequence of the earlier failure" in flushed.why


def test_completions_between_two_hosts_name_both_ends_and_roce() -> None:
    lost, flushed = problems_of(*(PUBLIC / "nccl-two-nodes.txt").read_text().splitlines())
    assert (
        lost.status == FAIL
        and "(status 12)" in lost.why
        and lost.why.endswith(" From ::ffff:198.51.100.3 to ::ffff:198.51.100.5.")
    )
    assert "PFC (dcb pfc show)" in lost.remedy and "ibqueryerrors" not in lost.remedy
    assert flushed.status == WARN


def test_gids_of_two_subnets_need_a_route() -> None:
    text = (
        "192.0.2.5<53908> with status=12 opcode=129 len=0 vendor err 129 (Recv) localGid ::ffff:10.0.1.3"
        " remoteGids::ffff:10.0.2.3 hca mlx5_10"
    )
    (finding,) = problems_of(failed_completion(text))
    assert "the two GIDs are in two subnets (::ffff:10.0.1.3 to ::ffff:10.0.2.3, mlx5_10)" in finding.why
    assert (
        "ip route get 10.0.2.3 in the pod" in finding.remedy
        and "NCCL_CROSS_NIC=0" in finding.remedy
        and "PFC" not in finding.remedy
    )


def test_no_advice_on_roce_is_given_on_infiniband() -> None:
    network = "job-worker-0:100:200 [0] NCCL INFO Using network IB"
    (finding,) = problems_of(
        ON_INFINIBAND,
        network,
        failed_completion("10.0.0.2<5> with status=12 opcode=1 len=0 vendor err 129 (Send) hca mlx5_0"),
    )
    assert finding.status == FAIL and "ibqueryerrors" in finding.remedy
    assert not any(word in finding.why + finding.remedy for word in ROCE)


def test_flushed_requests_alone_are_a_failure() -> None:
    (finding,) = problems_of(failed_completion("10.0.0.2<5> with status=5 opcode=1 len=0 vendor err 249 (Recv)"))
    assert finding.status == FAIL and "Find the first error of the same queue pair" in finding.remedy


@pytest.mark.parametrize("status", [status for status in STATUSES if status not in (5, 12)])
def test_each_completion_status_has_a_cause(status: int) -> None:
    (finding,) = problems_of(failed_completion(f"10.0.0.2<5> with status={status} opcode=1 len=0 vendor err 81 (Send)"))
    assert finding.status == FAIL and f"tatus {status}" in finding.why and finding.remedy


def test_a_status_that_is_not_known_is_a_failure() -> None:
    (finding,) = problems_of(failed_completion("10.0.0.2<5> with status=99 opcode=1 len=0 vendor err 81 (Send)"))
    assert (finding.status, finding.why) == (
        FAIL,
        "A transfer over the network ended with an error, whose status the message under 'measured' has.",
    )


def test_a_kind_of_an_earlier_version_is_judged_by_its_text() -> None:
    problem = NcclProblem(
        "retry",
        "NET/IB: Got completion from peer 10.0.0.1<5> with status=12 opcode=1 len=0 vendor err 129 (Send)",
        "",
        ("h",),
        1,
        1,
    )
    assert problems.check_problem(problem, NcclLog(problems=(problem,))).status == FAIL


def rccl(name: str, gpu_direct: bool = False) -> dict[str, list[Finding]]:
    """Findings on a log of RCCL with all of its lines, by check."""
    lines = (PUBLIC / name).read_text().splitlines()
    counts = [
        f"amd-{rank}:5819{rank + 2}:582{rank + 10} [0] NCCL INFO 1 coll channels, 0 collnet channels, 0 nvls channels,"
        " 1 p2p channels, 1 x"
        for rank in (0, 1)
    ]
    place = next(number for number, line in enumerate(lines) if "Init COMPLETE" in line)
    lines = [*lines[:place], *counts, *lines[place:]]
    found: dict[str, list[Finding]] = {}
    for finding in judge_log(parse_text("".join(f"{line}\n" for line in lines)), 2, gpu_direct):
        found.setdefault(finding.check.partition(".")[2], []).append(finding)
    return found


def test_a_log_of_rccl_is_judged_and_named() -> None:
    found = rccl("rccl.txt")
    assert {check: {finding.status for finding in findings} for check, findings in found.items()} == {
        "log": {PASS},
        "version": {PASS},
        "ranks": {PASS},
        "channels": {PASS},
        "transport": {PASS},
        "gpu_direct": {PASS},
        "problem": {WARN},
    }
    assert found["log"][0].measured == "19 lines of RCCL" and found["version"][0].measured == "RCCL 2.21.5-HEAD:9a0e6a1"
    assert "iommu=pt" in found["problem"][0].remedy


def test_a_log_of_rccl_over_tcp_fails() -> None:
    assert {finding.status for finding in rccl("rccl-socket.txt")["transport"]} == {FAIL}


def test_gpu_direct_of_rccl_has_no_remedy_of_nvidia_s() -> None:
    finding, _other = rccl("rccl.txt", gpu_direct=True)["gpu_direct"]
    assert (
        finding.status == FAIL
        and "NCCL_DMABUF_ENABLE=1" in finding.remedy
        and "nvidia" not in finding.why + finding.remedy
    )


def test_a_log_of_rccl_whose_channels_are_not_counted_is_unknown() -> None:
    log = parse_text((PUBLIC / "rccl.txt").read_text())
    assert {finding.status for finding in judge_log(log, 2, False) if finding.check == "training.channels"} == {UNKNOWN}


def test_a_provider_that_does_not_fit_the_kernel_explains_the_fallback_to_tcp() -> None:
    warning = (PUBLIC / "libibverbs-abi.txt").read_text().splitlines()[:2]
    head = "job-worker-0:100:200 [0] NCCL INFO"
    lines = [
        *warning,
        f"{head} NET/IB : No device found.",
        f"{head} Using network Socket",
        f"{head} ncclCommInitRank comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x2 - Init START",
        f"{head} Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0",
    ]
    findings = judge_log(parse_text("".join(f"{line}\n" for line in lines)), None, False)
    (transport,) = [finding for finding in findings if finding.check == "training.transport"]
    assert (
        transport.status == FAIL
        and "rdma-core in the image does not match the driver of the node" in transport.why
        and "fell back to TCP" in transport.why
    )
    assert transport.remedy.startswith("Use an image whose rdma-core release matches the driver of the node")
    (problem,) = [finding for finding in findings if finding.check == "training.problem"]
    assert problem.status == WARN and "(2 times)" in problem.measured


def test_every_kind_of_problem_has_a_cause() -> None:
    assert set(CAUSES) == {*typing.get_args(nccl_kinds.Kind), *typing.get_args(transports.Kind)}


# several hosts, processes and networks


def statuses(findings: typing.Iterable[Finding], what: str) -> dict[str, str]:
    return {finding.subject: finding.status for finding in findings if finding.check == f"training.{what}"}


def log_of(job: typing.Optional[Job] = None) -> NcclLog:
    return parse((job or Job(hcas=tuple(FUNCTIONS))).lines())


def replaced_devices(log: NcclLog, change: typing.Callable[[NcclDevice], typing.Optional[NcclDevice]]) -> NcclLog:
    """The log with each process's devices as ``change`` makes them; None leaves one out."""
    processes = [
        dataclasses.replace(item, devices=tuple(new for device in item.devices for new in [change(device)] if new))
        for item in log.processes
    ]
    return dataclasses.replace(log, processes=tuple(processes))


def test_a_communicator_within_a_node_does_not_hide_that_the_job_spans_nodes() -> None:
    log = log_of()
    (job,) = log.communicators
    inner = dataclasses.replace(
        job, name="inner", size=2, ranks=tuple(dataclasses.replace(rank, nodes=1) for rank in job.ranks[:2])
    )
    findings = check(intent(), facts(log=dataclasses.replace(log, communicators=(job, inner))))
    assert set(statuses(findings, "hcas").values()) == {PASS}


def test_two_jobs_within_their_nodes_prove_nothing_of_either() -> None:
    log = log_of()
    (job,) = log.communicators
    halves = [
        dataclasses.replace(job, name=name, size=2, ranks=tuple(dataclasses.replace(rank, nodes=1) for rank in ranks))
        for name, ranks in (("a", job.ranks[:2]), ("b", job.ranks[2:]))
    ]
    findings = check(intent(), facts(log=dataclasses.replace(log, communicators=tuple(halves))))
    assert statuses(findings, "hcas") == {"job-worker-0": UNKNOWN, "job-worker-1": UNKNOWN}


def test_each_host_answers_for_its_own_interface() -> None:
    log = log_of()
    # one process of the host is enough to break it
    first, *rest = log.processes
    findings = check(
        intent(), facts(log=dataclasses.replace(log, processes=(dataclasses.replace(first, oob_interface="lo"), *rest)))
    )
    assert statuses(findings, "oob") == {"job-worker-0": FAIL, "job-worker-1": PASS}


def test_each_host_without_a_fabric_or_a_pod_is_said() -> None:
    ethernet = dataclasses.replace(intent().fabrics[0], profile="sriov_ethernet", rdma=False)
    assert statuses(check(Intent((ethernet,)), facts()), "hcas") == {"job-worker-0": UNKNOWN, "job-worker-1": UNKNOWN}
    findings = check(intent(), facts(pods=(pod(*ETHERNET[1]),)))
    assert statuses(findings, "hcas") == {"job-worker-0": UNKNOWN, "compute job-worker-1": PASS}


def test_ranks_without_a_host_name_have_a_subject() -> None:
    log = facts().log
    assert log is not None
    nameless = tuple(dataclasses.replace(process, host="", oob_interface="") for process in log.processes)
    findings = check(intent(), facts(log=dataclasses.replace(log, processes=nameless), pods=()))
    for name in ("hcas", "oob"):
        of_check = statuses(findings, name)
        assert of_check["host without a name"] == UNKNOWN and "" not in of_check
    assert any("The log contains no host name" in item.why for item in found(findings, "hcas", UNKNOWN))


def test_a_second_pod_of_a_host_name_is_not_believed_in_the_place_of_the_first() -> None:
    """Each tenant of the namespace may give a pod the host name of another's."""
    mine, other = pod(*ETHERNET[0]), pod(*ETHERNET[1])
    forged = dataclasses.replace(mine, name="aaa-forged", functions=(other.functions or ())[:0])
    for pods in ((forged, mine, other), (mine, forged, other)):
        findings = check(intent(), facts(pods=pods))
        assert statuses(findings, "hcas") == {"job-worker-0": UNKNOWN, "compute job-worker-1": PASS}
        (found,) = (finding for finding in findings if finding.check == "training.hcas" and finding.status == UNKNOWN)
        assert "aaa-forged" in found.measured and mine.name in found.measured
    same = dataclasses.replace(mine, name="job-worker-0-again")
    assert statuses(check(intent(), facts(pods=(mine, same, other))), "hcas") == {
        "compute job-worker-0": PASS,
        "compute job-worker-1": PASS,
    }


def test_ways_inside_the_node_do_not_hide_those_over_the_network() -> None:
    log = log_of()
    (job,) = log.communicators
    (inside,) = (route for route in job.ranks[0].routes if route.transport == "P2P")
    ranks = tuple(
        dataclasses.replace(rank, routes=(inside, *(route for route in rank.routes if route.transport == "NET")))
        for rank in job.ranks
    )
    findings = check(
        intent(), facts(log=dataclasses.replace(log, communicators=(dataclasses.replace(job, ranks=ranks),)))
    )
    assert statuses(findings, "hcas") == {"compute job-worker-0": PASS, "compute job-worker-1": PASS}


def test_the_second_pci_function_of_an_hca_is_the_hca() -> None:
    def direct(device: NcclDevice) -> NcclDevice:
        return dataclasses.replace(device, name=f"{device.name}+{device.name}_dma")

    assert judge(check(intent(), facts(log=replaced_devices(log_of(), direct)))).open


def test_a_device_without_a_name_leaves_an_idle_rail_unknown() -> None:
    def all_but_the_first(device: NcclDevice) -> typing.Optional[NcclDevice]:
        return device if device.index else None

    findings = check(intent(), facts(log=replaced_devices(log_of(), all_but_the_first)))
    assert set(statuses(findings, "hcas").values()) == set(statuses(findings, "rails").values()) == {UNKNOWN}


def test_nodes_that_did_not_answer_leave_the_rails_unknown() -> None:
    findings = check(intent(), facts(hcas={"worker-1": hcas(1), "worker-2": ObservedHcas(error="ssh: timed out")}))
    assert statuses(findings, "rails") == {"compute job-worker-0": PASS, "compute job-worker-1": UNKNOWN}
    silent = {"worker-1": ObservedSubnets(subnets()), "worker-2": ObservedSubnets(error="ssh: timed out")}
    assert statuses(check(intent(), facts(subnets=silent)), "hcas") == {
        "compute job-worker-0": PASS,
        "compute job-worker-1": PASS,
    }


def test_interfaces_of_other_networks_are_none_of_the_fabric_s() -> None:
    more = tuple(
        pod(*place, functions=(*(pod(*place).functions or ()), PodFunction("test/storage", "net9")))
        for place in ETHERNET
    )
    assert judge(check(intent(), facts(pods=more))).open


def test_hcas_of_the_node_without_an_rdma_device_or_an_address() -> None:
    bare = {
        name: ObservedHcas(NodeHcas((*(seen.value or NodeHcas(())).hcas, Hca("rxe0", "rxe0", ()))))
        for name, seen in facts().hcas.items()
    }
    assert judge(check(intent(), facts(hcas=bare))).open


def test_a_member_that_is_no_pci_function_has_no_function_of_a_pod() -> None:
    """Its rail is not known; the other node's are."""
    seen = hcas(1).value
    assert seen is not None
    first, *rest = seen.hcas
    odd = ObservedHcas(NodeHcas((dataclasses.replace(first, pci=None), *rest)))
    findings = check(intent(), facts(hcas={**facts().hcas, "worker-1": odd}))
    assert statuses(findings, "hcas") == {"compute job-worker-0": PASS, "compute job-worker-1": PASS}
    assert statuses(findings, "rails") == {"compute job-worker-0": UNKNOWN, "compute job-worker-1": PASS}


def test_a_pod_that_got_the_physical_function_itself() -> None:
    given = tuple(
        PodFunction("test/sriov-ib", f"net{number}", address, device)
        for number, (device, address) in enumerate(RAILS, 1)
    )
    job = Job(hcas=tuple(device for device, _address in RAILS))
    assert judge(check(intent(), facts(job, pods=tuple(pod(*place, functions=given) for place in ETHERNET)))).open


# what the log says of communicators


@pytest.mark.parametrize("small_first", [True, False])
def test_the_size_of_the_job_is_that_of_its_largest_communicator(small_first: bool) -> None:
    log = log_of()
    (job,) = log.communicators
    both = (dataclasses.replace(job, name="inner", size=2, ranks=job.ranks[:2]), job)
    findings = check(
        intent(ranks=4), facts(log=dataclasses.replace(log, communicators=both if small_first else both[::-1]))
    )
    assert statuses(findings, "ranks")["job"] == PASS
    assert "job-worker-0 rank 0" in statuses(
        findings, "channels"
    ) and "job-worker-0 rank 0 of communicator inner" in statuses(findings, "channels")


def test_releases_that_do_not_say_how_many_nodes() -> None:
    """Before 2.20 only the hosts in the log tell that a job spans nodes."""
    old = Job(release=(2, 18, 6), hcas=tuple(FUNCTIONS))
    assert set(statuses(check(intent(), facts(old)), "hcas").items()) == {
        ("compute job-worker-0", PASS),
        ("compute job-worker-1", PASS),
    }
    assert statuses(check(intent(), facts(dataclasses.replace(old, hosts=1))), "hcas") == {"job-worker-0": UNKNOWN}


@pytest.mark.parametrize("said_by", [1, 2])
def test_a_job_of_two_nodes_of_which_one_has_no_log(said_by: int) -> None:
    job = Job(hcas=tuple(FUNCTIONS))
    log = parse(f"{line}\n" for rank in (0, 1) for line in job.process(rank))
    (half,) = log.communicators
    ranks = tuple(
        rank if place < said_by else dataclasses.replace(rank, nodes=None) for place, rank in enumerate(half.ranks)
    )
    findings = check(
        intent(), facts(log=dataclasses.replace(log, communicators=(dataclasses.replace(half, ranks=ranks),)))
    )
    assert statuses(findings, "hcas") == {"compute job-worker-0": PASS}, (
        "this half is proven; the other is missing among the ranks"
    )
    assert closing(findings) >= {"ranks unknown"}


def test_a_rank_of_whose_process_nothing_is_known() -> None:
    findings = check(intent(), facts(log=dataclasses.replace(log_of(), processes=log_of().processes[1:])))
    assert [(finding.subject, finding.measured) for finding in found(findings, "ranks", UNKNOWN)] == [
        ("job-worker-0 rank 0", "network devices of the process not in the log")
    ]


def test_two_ranks_need_channels_as_more_do() -> None:
    log = parse(line for line in Job(gpus=1, hcas=tuple(FUNCTIONS)).lines() if " via " not in line)
    findings = check(intent(), facts(log=log))
    assert set(statuses(findings, "channels").values()) == set(statuses(findings, "transport").values()) == {UNKNOWN}


def test_a_rank_that_does_not_say_how_many_channels_it_has() -> None:
    log = log_of()
    (job,) = log.communicators
    ranks = (dataclasses.replace(job.ranks[0], channels=None), *job.ranks[1:])
    findings = check(
        intent(), facts(log=dataclasses.replace(log, communicators=(dataclasses.replace(job, ranks=ranks),)))
    )
    assert [finding.subject for finding in found(findings, "channels", UNKNOWN)] == ["job-worker-0 rank 0"]
    assert closing(findings) == {"channels unknown"}


def test_a_job_over_nvlink_between_nodes_alone_proves_nothing_about_the_hcas() -> None:
    text = re.sub(r"\[(send|receive)\] via NET/IB/\d+(/GDRDMA)?", "via P2P/MNNVL", Job().text())
    findings = check(intent(), facts(log=parse(text.splitlines(keepends=True))))
    unknown = [item for item in findings if item.check == "training.hcas"]
    assert {(item.status, item.measured) for item in unknown} == {(UNKNOWN, "channels use only NVLink")}
    assert all("MNNVL" in item.why and "NCCL_MNNVL_ENABLE=0" in item.remedy for item in unknown)


def test_a_job_over_several_nvlink_domains_leaves_hcas_idle_that_are_not_at_fault() -> None:
    """A channel leaves an NVLink domain from one of its nodes, so that the others have HCAs without a channel."""
    inside = re.compile(r"(Channel 0[1-3]/0 : .*)\[send\] via NET/IB/\d+/GDRDMA")
    lines = [
        inside.sub(r"\1via P2P/MNNVL", line)
        for line in Job(hcas=tuple(FUNCTIONS)).lines()
        if not re.search(r"Channel 0[1-3]/0 : .*\[receive\] via NET", line)
    ]
    findings = check(intent(), facts(log=parse(lines)))
    assert closing(findings) == {"hcas unknown", "rails unknown"}
    told = found(findings, "hcas", UNKNOWN) + found(findings, "rails", UNKNOWN)
    assert len(told) == 4
    assert all("MNNVL" in item.why and "NCCL_MNNVL_ENABLE=0" in item.remedy for item in told)


def test_nvlink_between_nodes_that_does_not_work_fails_and_names_imex() -> None:
    text = (
        "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration"
        " (/dev/nvidia-caps-imex-channels)."
    )
    lines = [*Job().lines(), f"job-worker-0:4100:4180 [0] mnnvl.cc:62 NCCL WARN {text}\n"]
    (found,) = [item for item in judge_log(parse(lines), None, True) if item.check == "training.problem"]
    assert (found.status, "IMEX" in found.why, "ComputeDomain" in found.remedy) == ("fail", True, True)


ROCE_FABRIC = parse_intent(
    [
        {
            "name": "roce",
            "profile": "sriov_ethernet",
            "select": {"hcas_per_node": 1},
            "virtual_functions": 1,
            "resource_name": "x",
            "mtu": 9000,
            "roce": {"dscp": 26, "priority": 3},
            "network": {"name": "net", "namespace": "test"},
            "ipam": {"type": "whereabouts", "range": "10.0.0.0/24"},
        }
    ]
).fabrics[0]
IB_FABRIC = dataclasses.replace(intent().fabrics[0], mtu=4092)


@pytest.mark.parametrize(
    ("fabric", "said", "words"),
    [
        (IB_FABRIC, {"mtus": (4096,)}, ""),
        (IB_FABRIC, {"mtus": (2048, 4096)}, "MTU 2048, 4096 bytes; all queue pairs with MTU 4096 bytes"),
        (dataclasses.replace(IB_FABRIC, mtu=2044), {"mtus": (2048,)}, ""),
        (IB_FABRIC, {"mtus": (4096,), "gid_indexes": (0,)}, ""),
        (IB_FABRIC, {"environment": {"NCCL_IB_TC": "0"}}, ""),
        (dataclasses.replace(IB_FABRIC, mtu=None), {"mtus": (1024,)}, ""),
        (ROCE_FABRIC, {"mtus": (4096,), "gid_indexes": (3,), "environment": {"NCCL_IB_TC": "106"}}, ""),
        (ROCE_FABRIC, {"mtus": (1024,)}, "MTU 1024 bytes; all queue pairs with MTU 4096 bytes"),
        (dataclasses.replace(ROCE_FABRIC, mtu=1500), {"mtus": (1024,)}, ""),
        (dataclasses.replace(ROCE_FABRIC, mtu=4092), {"mtus": (2048,)}, ""),
        (ROCE_FABRIC, {"gid_indexes": (0, 3)}, "GID index 0 (RoCE v1); a GID index of RoCE v2"),
        # of an IPv4 address: 2 is RoCE v1, and 3 is RoCE v2
        (ROCE_FABRIC, {"gid_indexes": (2, 3, 4)}, "GID index 2, 4 (RoCE v1); a GID index of RoCE v2"),
        (ROCE_FABRIC, {"gid_indexes": (1, 5)}, ""),
        (ROCE_FABRIC, {"environment": {"NCCL_IB_TC": "0"}}, "NCCL_IB_TC=0; NCCL_IB_TC=106"),
        (
            ROCE_FABRIC,
            {"mtus": (4096,), "gid_indexes": (3,), "environment": {"NCCL_SOCKET_IFNAME": "eth0"}},
            "NCCL_IB_TC not set; NCCL_IB_TC=106",
        ),
        # NCCL logs these without ENV as well, so NCCL_IB_TC may be set
        (ROCE_FABRIC, {"mtus": (4096,), "environment": {"NCCL_IB_HCA": "mlx5_0"}}, ""),
        (IB_FABRIC, {"mtus": (4096,), "environment": {"NCCL_SOCKET_IFNAME": "eth0"}}, ""),
    ],
)
def test_queue_pairs_have_what_the_fabric_gives(fabric: Fabric, said: dict[str, typing.Any], words: str) -> None:
    (item,) = queue_pairs.check("a", [NcclProcess("a", 1), NcclProcess("a", 2, **said)], [fabric])
    assert (item.check, item.subject, item.status) == ("training.queue_pairs", "a", WARN if words else "pass")
    assert words in f"{item.measured}; {item.expected}" and bool(item.why) is bool(item.remedy) is bool(words)
    if "MTU 2048" in words:
        assert "an MTU of 2048 bytes" in item.why and "for 'mtu 4'" in item.remedy, "the number of the MTU in the log"


@pytest.mark.parametrize(
    ("by_node", "said", "measured"),
    [
        (set(), {"mtus": (4096,)}, "NCCL_IB_TC not set"),
        ({"0"}, {"mtus": (4096,)}, "NCCL_IB_TC not set"),
        ({"0", "106"}, {"mtus": (4096,)}, "NCCL_IB_TC not set"),
        ({"106"}, {"mtus": (4096,)}, "MTU 4096, traffic class 106 of the node"),
        # NCCL reads the variable when it makes a queue pair
        (set(), {}, None),
    ],
)
def test_unset_traffic_class_counts_as_that_of_the_node(
    by_node: set[str], said: dict[str, typing.Any], measured: typing.Optional[str]
) -> None:
    process = NcclProcess("a", 1, environment={"NCCL_SOCKET_IFNAME": "eth0"}, **said)
    items = queue_pairs.check("a", [process], [ROCE_FABRIC], by_node=by_node)
    assert [item.measured for item in items] == ([] if measured is None else [measured])
    assert [item.measured for item in queue_pairs.check("a", [process], [ROCE_FABRIC], frozenset(), by_node, True)] in (
        [[measured]] if measured is not None else [["NCCL_IB_TC not set"]]
    )


def test_traffic_class_that_the_log_does_not_show_is_no_part_of_a_pass() -> None:
    (item,) = queue_pairs.check("a", [NcclProcess("a", 1, mtus=(4096,), gid_indexes=(3,))], [ROCE_FABRIC])
    assert (item.status, "class" in item.expected) == ("pass", False)
    (item,) = queue_pairs.check("a", [NcclProcess("a", 1, environment={"NCCL_IB_TC": "106"})], [ROCE_FABRIC])
    assert (item.status, "traffic class 106" in item.expected) == ("pass", True)


@pytest.mark.parametrize(
    ("value", "where", "status"),
    [("106", None, "pass"), ("0", None, "warn"), ("106", ("mlx5_99",), "warn")],
)
def test_traffic_class_of_the_node_counts_for_the_hcas_of_the_fabric_alone(
    value: str, where: typing.Optional[tuple[str, ...]], status: str
) -> None:
    fleet = fleets.healthy(fleets.ROCE)
    whole = fleet.of("training")
    named = tuple(
        dataclasses.replace(process, environment={"NCCL_SOCKET_IFNAME": "eth0"}) for process in whole.log.processes
    )

    def change(observed: typing.Any) -> typing.Any:
        (reading,) = observed.value.rows["roce_traffic_class"]
        changed = dataclasses.replace(reading, value=value, where=where or reading.where)
        rows = {**observed.value.rows, "roce_traffic_class": (changed,)}
        return dataclasses.replace(observed, value=dataclasses.replace(observed.value, rows=rows))

    log = dataclasses.replace(whole.log, processes=named)
    tunings = {node: change(observed) for node, observed in whole.tunings.items()}
    findings = check(fleet.intent, dataclasses.replace(whole, log=log, tunings=tunings))
    assert set(statuses(findings, "queue_pairs").values()) == {status} and judge(findings).open
    if status == "pass":
        unread = check(fleet.intent, dataclasses.replace(whole, log=log, tunings={}))
        assert set(statuses(unread, "queue_pairs").values()) == {"warn"}


@pytest.mark.parametrize(
    ("vendors", "status"),
    [
        ({"15b3"}, WARN),
        ({"14e4"}, WARN),
        ({"8086"}, "pass"),
        ({"1dd8"}, "pass"),
        ({"8086", "15b3"}, WARN),
        (set(), WARN),
    ],
)
def test_index_0_is_of_roce_v2_where_the_driver_has_no_v1(vendors: set[str], status: str) -> None:
    """irdma and ionic have RoCE v2 alone."""
    (item,) = queue_pairs.check("a", [NcclProcess("a", 1, gid_indexes=(0,))], [ROCE_FABRIC], vendors)
    assert item.status == status


def test_of_queue_pairs_that_the_log_does_not_show_nothing_is_told() -> None:
    assert queue_pairs.check("a", [NcclProcess("a", 1)], [IB_FABRIC]) == []


def test_small_packets_of_a_job_are_told_of_each_host() -> None:
    whole = facts()
    assert whole.log is not None
    small = dataclasses.replace(
        whole.log, processes=tuple(dataclasses.replace(process, mtus=(1024,)) for process in whole.log.processes)
    )
    fabrics = tuple(dataclasses.replace(fabric, mtu=4092) for fabric in intent().fabrics)
    findings = check(dataclasses.replace(intent(ranks=4), fabrics=fabrics), dataclasses.replace(whole, log=small))
    assert [item.subject for item in found(findings, "queue_pairs", WARN)] == ["job-worker-0", "job-worker-1"]
    assert judge(findings).open


@pytest.mark.parametrize(("ranks", "status"), [({}, "unknown"), ({"ranks": 16}, "warn")])
def test_a_pod_of_the_job_with_hcas_and_without_a_line_in_the_log_is_missed(
    ranks: dict[str, typing.Any], status: str
) -> None:
    """It may hang before its first rank. A launcher has no HCAs."""
    own = [pod(f"job-worker-{index}", f"node-{index + 1}", job="job") for index in range(3)]
    launcher = dataclasses.replace(own[2], name="job-launcher", host="job-launcher", functions=())
    other = dataclasses.replace(own[2], name="other-worker-0", host="other-worker-0", job="other")
    wanted = intent(**ranks)
    assert "job-worker-2" not in statuses(check(wanted, facts(pods=(*own[:2], launcher, other))), "hcas")
    told = statuses(check(wanted, facts(pods=tuple(own))), "hcas")
    assert told.pop("job-worker-2") == status and set(told.values()) == {"pass"}


@pytest.mark.parametrize(
    ("nodes", "alone"),
    [
        (("worker-1", "worker-2"), {}),
        (("worker-1", "worker-1"), {"job-worker-0": "unknown", "job-worker-1": "unknown"}),
        # the log has no line of the third pod, so its node does not count
        (
            ("worker-1", "worker-1", "worker-2"),
            {"job-worker-0": "unknown", "job-worker-1": "unknown", "job-worker-2": "warn"},
        ),
    ],
)
def test_pods_on_one_node_prove_no_network(nodes: tuple[str, ...], alone: dict[str, str]) -> None:
    pods = tuple(pod(f"job-worker-{index}", node) for index, node in enumerate(nodes))
    findings = check(intent(ranks=4), facts(pods=pods))
    assert {subject: status for subject, status in statuses(findings, "hcas").items() if status != "pass"} == alone
    told = found(findings, "hcas", UNKNOWN)
    assert all(item.measured == "pods on 1 node: worker-1" and "podAntiAffinity" in item.remedy for item in told)


def test_pods_on_one_node_that_also_send_to_another_node_prove_the_network() -> None:
    pods = tuple(pod(f"job-worker-{index}", f"worker-{index // 2 + 1}") for index in range(4))
    findings = check(intent(), facts(Job(hosts=4, hcas=tuple(FUNCTIONS)), pods=pods))
    assert set(statuses(findings, "hcas").values()) == {"pass"}


def halves(*nodes: str) -> tuple[tuple[TrainingPod, ...], Job]:
    """Pods with the functions of two of the four rails each: of the first and of the last, in turn."""
    names = list(FUNCTIONS)
    parts = (slice(0, 2), slice(2, 4))
    pods = []
    for index, on in enumerate(nodes):
        whole = pod(f"job-worker-{index}", on, job="job")
        pods.append(dataclasses.replace(whole, functions=(whole.functions or ())[parts[index % 2]]))
    return tuple(pods), Job(hosts=len(nodes), hcas=tuple(names[:2]))


def by_halves(job: Job) -> NcclLog:
    """The log of these pods: every second host uses the last two HCAs."""
    names = list(FUNCTIONS)
    lines = []
    for line in job.lines():
        changed = line
        if int(line.partition("job-worker-")[2].partition(":")[0] or 0) % 2:
            for before, after in zip(names[:2], names[2:]):
                changed = changed.replace(before, after)
        lines.append(changed)
    log: NcclLog = parse(lines)
    return log


def test_pods_of_a_node_that_have_all_rails_together_pass() -> None:
    pods, job = halves("worker-1", "worker-1", "worker-2", "worker-2")
    findings = check(intent(), facts(log=by_halves(job), pods=pods))
    told = [item for item in findings if item.check == "training.rails"]
    assert [item.status for item in told] == ["pass"] * 4
    assert told[0].measured == "2 of 4 rails used: 0, 1; other pods of the node have the rest"
    assert judge(findings).open


def test_rails_that_only_pods_of_other_nodes_have_fail() -> None:
    pods, job = halves("worker-1", "worker-2")
    findings = check(intent(), facts(log=by_halves(job), pods=pods))
    told = found(findings, "rails", FAIL)
    assert len(told) == 2 and "no HCA on rail 2, 3" in told[0].why and "rdma_job.interfaces" in told[0].remedy


@pytest.mark.parametrize(("asked", "status"), [(1, PASS), (2, PASS), (3, FAIL), (None, FAIL)])
def test_a_job_that_asks_for_some_of_the_rails_is_judged_by_these(asked: typing.Optional[int], status: str) -> None:
    pods, job = halves("worker-1", "worker-2")
    findings = check(intent(interfaces=asked), facts(log=by_halves(job), pods=pods))
    told = [item for item in findings if item.check == "training.rails"]
    assert [item.status for item in told] == [status] * 2
    assert status == FAIL or f"{asked} rail" in told[0].expected


def test_rails_that_a_pod_has_and_does_not_use_fail_whatever_the_job_asks_for() -> None:
    pods, job = halves("worker-1", "worker-2")
    whole = tuple(dataclasses.replace(item, functions=pod(item.host, item.node).functions) for item in pods)
    findings = check(intent(interfaces=2), facts(log=by_halves(job), pods=whole))
    assert len(found(findings, "rails", FAIL)) == 2


@pytest.mark.parametrize(("asked", "status"), [(0, "fail"), (1, "pass"), (4, "pass"), (5, "fail")])
def test_a_job_gets_as_many_rails_as_a_node_has_at_most(asked: int, status: str) -> None:
    told = validate.check(intent(interfaces=asked), validate.Facts(("a", "b")))
    subjects = {item.subject for item in told if item.status == "fail"}
    assert ("rdma_cluster.training.interfaces" in subjects) == (status == "fail")


def test_hca_that_a_pod_does_not_use_fails_beside_pods_with_all_rails() -> None:
    pods, job = halves("worker-1", "worker-1", "worker-2", "worker-2")
    whole = tuple(dataclasses.replace(item, functions=pod(item.host, item.node).functions) for item in pods)
    findings = check(intent(), facts(log=by_halves(job), pods=whole))
    assert len(found(findings, "rails", FAIL)) == len(found(findings, "hcas", FAIL)) == 4
