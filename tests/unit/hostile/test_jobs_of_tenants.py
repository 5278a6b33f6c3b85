# SPDX-License-Identifier: GPL-3.0-or-later

"""What a tenant, a pod or a node tells of a job is not what others of them tell: their pods, logs, devices and objects
are told apart, or named."""

from __future__ import annotations

import builtins
import collections
import dataclasses
import json
import pathlib
import tracemalloc
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint, list_objects
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log import channels
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.channels import judge_log
from ansible_collections.linerate.rdma.plugins.module_utils._check.training.check import check
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclLog, TrainingPod
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.surroundings import (
    JobObjects,
    JobSurroundings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.device_claims import (
    DeviceAlternative,
    DeviceClaim,
    DeviceClaims,
    DeviceClass,
    DeviceRequest,
    DeviceSlice,
    PodClaim,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import (
    FAIL,
    PASS,
    UNKNOWN,
    WARN,
    Finding,
    judge,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.jobs import observe
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse_files
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.pod_template import parse_networks
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.dra.device_claims import read_slice
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.multus import training_pods
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import ResourceError
from ansible_collections.linerate.rdma.plugins.module_utils._store.job_logs import read_files
from ansible_collections.linerate.rdma.tests.unit.check import job_world
from ansible_collections.linerate.rdma.tests.unit.check import test_training as training
from ansible_collections.linerate.rdma.tests.unit.limit import bounded
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
Made = dict[str, typing.Any]


def statuses(findings: typing.Iterable[Finding], check_id: str) -> dict[str, str]:
    return {finding.subject: finding.status for finding in findings if finding.check == check_id}


# pods


def pod(name: str, phase: str = "Running", uid: str = "job-1", controller: bool = True, **metadata: typing.Any) -> Made:
    """The captured pod with a virtual function, as a pod of an Indexed Job."""
    found: Made = yaml.safe_load((FIXTURES / "kubernetes" / "pod-with-vf.yaml").read_text(encoding="utf-8"))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": uid, "controller": controller}
    found["metadata"] = {**found["metadata"], "name": name, "ownerReferences": [owner] if uid else [], **metadata}
    found["spec"]["hostname"], found["status"]["phase"] = "job-0", phase
    return found


def names(*pods: Made) -> list[str]:
    return [item.name for item in training_pods(pods)]


def test_a_pod_that_only_names_the_job_as_an_owner_replaces_none_of_its_pods() -> None:
    """Whoever makes a pod writes its owners. A controller takes those that name it as their controller for its own, and
    deletes one more of an index."""
    failed, forged = pod("job-0-b", "Failed"), pod("aaa", controller=False)
    assert names(forged, failed) == ["aaa", "job-0-b"]
    assert names(pod("job-0-c"), failed) == ["job-0-c"]


def test_a_pod_that_is_being_deleted_does_not_count_beside_the_one_in_its_place() -> None:
    ends = pod("job-0-a", deletionTimestamp="2026-11-28T08:00:00Z")
    assert names(ends, pod("job-0-b")) == ["job-0-b"]
    assert names(ends) == ["job-0-a"]
    assert names(ends, pod("job-0-b", uid="other")) == ["job-0-a", "job-0-b"]


def test_the_job_of_a_pod_is_what_its_operator_marks_or_its_controller() -> None:
    label = {"jobset.sigs.k8s.io/jobset-name": "train"}
    made = training_pods([pod("a"), pod("b", labels=label), pod("c", uid=""), pod("d", controller=False, labels=label)])
    assert [item.job for item in made] == ["job-1", "train", "", ""]


def test_pods_of_two_jobs_are_not_those_of_one_log() -> None:
    """The pod of a job that is gone leaves its host name to others."""
    mine, other = (training.pod(*place, job="job-1") for place in training.ETHERNET)
    assert judge(check(training.intent(), training.facts(pods=(mine, other)))).open
    stranger = training.pod(*training.ETHERNET[1], job="job-2")
    findings = check(training.intent(), training.facts(pods=(mine, stranger)))
    assert statuses(findings, "training.hcas") == {"job-worker-0": UNKNOWN, "job-worker-1": UNKNOWN}
    found, _other = (finding for finding in findings if finding.check == "training.hcas")
    assert "job-1" in found.measured and "job-2" in found.measured and "training_selectors" in found.remedy


def test_of_more_than_two_hosts_the_pod_of_another_job_alone_is_unknown() -> None:
    job = Job(hosts=3, hcas=tuple(training.FUNCTIONS))
    places = (*training.ETHERNET, ("job-worker-2", "worker-1"))
    pods = [training.pod(*place, job="job-1") for place in places]
    strange: TrainingPod = training.pod(*places[1], job="")
    for given, expected in ((pods, {PASS}), ([pods[0], strange, pods[2]], {PASS, UNKNOWN})):
        found = statuses(check(training.intent(), training.facts(job, pods=tuple(given))), "training.hcas")
        assert set(found.values()) == expected
    assert [subject for subject, status in found.items() if status == UNKNOWN] == ["job-worker-1"]


# logs


def test_lines_that_another_pod_writes_are_not_those_of_a_process_that_wrote_none() -> None:
    """The captured log of two processes, as the files of two pods: what the second one hides, the first one writes."""
    text = (
        (FIXTURES / "nccl" / "2.28.9-torchrun.txt")
        .read_text(encoding="utf-8")
        .replace("vm:11895:", "job-worker-0:11895:")
    )
    text = text.replace("vm:11896:", "job-worker-1:11896:")
    second = "job-worker-1:11896:"
    mine = "".join(line for line in text.splitlines(keepends=True) if second not in line)
    its = "".join(line for line in text.splitlines(keepends=True) if second in line)
    cases = {
        "one file with all ranks": ([text], set()),
        "a file for each pod": ([mine, its], set()),
        "a silent pod": ([mine + its, "starting\n"], {"job-worker-0 rank 0", "job-worker-1 rank 1"}),
        "a pod that both write for": ([mine + its, its], {"job-worker-0 rank 0", "job-worker-1 rank 1"}),
    }
    for case, (texts, doubted) in cases.items():
        findings = judge_log(parsed(*texts), None, False)
        assert {finding.subject for finding in findings if finding.status == UNKNOWN} >= doubted, case
        assert judge(findings).open == (not doubted), case
    found = {finding.subject: finding for finding in findings if finding.check == "training.ranks"}
    assert (
        found["job-worker-1 rank 1"].measured == "lines in 0.log, 1.log"
        and found["job-worker-0 rank 0"].measured == "lines in 0.log, with lines of hosts job-worker-1"
    )


def parsed(*texts: str) -> NcclLog:
    return parse_files((f"{number}.log", text.splitlines(keepends=True)) for number, text in enumerate(texts))


def of_host(job: Job, *hosts: int) -> str:
    """What the processes of some hosts write."""
    ranks = [rank for host in hosts for rank in range(host * job.gpus, (host + 1) * job.gpus)]
    return "".join(f"{line}\n" for rank in ranks for line in job.process(rank))


def test_a_host_that_another_pod_speaks_for_is_judged_by_neither() -> None:
    job = Job(hosts=3, hcas=tuple(training.FUNCTIONS))
    places = (*training.ETHERNET, ("job-worker-2", "worker-1"))
    pods = tuple(training.pod(*place) for place in places)
    honest, one = [of_host(job, 0), of_host(job, 1), of_host(job, 2)], of_host(job, 1).splitlines(keepends=True)[0]

    def hcas_of(*texts: str) -> dict[str, str]:
        return statuses(check(training.intent(), training.facts(log=parsed(*texts), pods=pods)), "training.hcas")

    assert set(hcas_of(*honest).values()) == {PASS} == set(hcas_of("".join(honest)).values())
    # the pod of host 0 writes one line of a process of host 1
    found = hcas_of(honest[0] + one, *honest[1:])
    assert found == {"job-worker-0": UNKNOWN, "job-worker-1": UNKNOWN, "compute job-worker-2": PASS}
    # ... and a process of its own making on host 1
    forged = one.replace(one.split(":")[1], "99999", 1)
    found = hcas_of(
        honest[0] + forged + forged.partition(" NCCL INFO ")[0] + " NCCL INFO Using network IB\n", *honest[1:]
    )
    assert found == {"job-worker-0": UNKNOWN, "job-worker-1": UNKNOWN, "compute job-worker-2": PASS}


def test_a_warning_in_the_name_of_another_host_is_doubted_with_its_file() -> None:
    job = Job(hosts=2, hcas=tuple(training.FUNCTIONS))
    pods = tuple(training.pod(*place) for place in training.ETHERNET)
    warning = (
        "job-worker-0:100:200 [0] misc/ibvwrap.cc:250 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<1> with"
        " status=12 opcode=0 len=0 vendor err 129 (Recv)\n"
    )
    log = parsed(of_host(job, 0), of_host(job, 1) + warning)
    found = check(training.intent(), training.facts(log=log, pods=pods))
    assert any(
        item.status == UNKNOWN
        and "job-worker-1" in item.subject
        and "with lines of hosts job-worker-0" in item.measured
        for item in found
    )


def test_a_file_for_each_process_and_a_document_of_a_test_are_believed() -> None:
    job = Job(hcas=tuple(training.FUNCTIONS))
    ranks = ["".join(f"{line}\n" for line in job.process(rank)) for rank in range(4)]
    document = (FIXTURES / "nccl-tests" / "all_reduce.json").read_text(encoding="utf-8")
    for texts in (ranks, ["".join(ranks), document], [document, "".join(ranks)]):
        assert judge(check(training.intent(), training.facts(log=parsed(*texts)))).open
    # lines of processes are a log, whatever stands before them, and JSON of another program is no document of a test
    for texts in (
        [document + "".join(ranks), "silent\n"],
        ["".join(ranks), '{"version": "1.1", "host": "job-worker-1"}\n'],
    ):
        assert not judge(check(training.intent(), training.facts(log=parsed(*texts)))).open


def test_a_file_that_is_given_twice_is_read_once(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "all.log"
    path.write_text("a\nb\n", encoding="utf-8")
    assert [(name, list(lines)) for name, lines in read_files([str(path), str(path)])] == [("all.log", ["a\n", "b\n"])]
    (tmp_path / "again").mkdir()
    other = tmp_path / "again" / "all.log"
    other.write_text("c\n", encoding="utf-8")
    assert [name for name, _lines in read_files([str(path), str(other)])] == [str(path), str(other)]


def test_many_files_that_speak_for_one_process_are_named_in_few_words() -> None:
    job = Job(hosts=40, gpus=1, channels=1)
    every = of_host(job, *range(40))
    log = parsed(*[every] * 40)
    assert (
        max(len(process.files) for process in log.processes) == 20
        and max(len(process.beside) for process in log.processes) == 20
    )


def made_up(number: int, host: str = "job-worker-1", ranks: int = 4096) -> str:
    """What a pod writes to have many findings on itself: communicators of which it is in each one rank, by one
    channel."""
    head = "{host}:1:77 [0] NCCL INFO "
    lines = (
        f"{head.format(host=host.format(item))}{text}\n"
        for item in range(number)
        for text in (
            f"comm 0x{item:x} rank {item % ranks} nranks 5000 cudaDev 0 busId 1 commId 0x{item:x} - Init START",
            f"Channel 00/0 : {item % ranks}[0] -> 4999[0] [send] via NET/IB/0/GDRDMA",
        )
    )
    return "".join(lines)


def test_communicators_that_one_pod_makes_up_are_one_finding_that_names_it() -> None:
    """64,000 of them were 256,003 findings, of which the publisher took 1.1 GiB."""
    job, pods = Job(hosts=2, hcas=tuple(training.FUNCTIONS)), tuple(training.pod(*place) for place in training.ETHERNET)
    first, second = of_host(job, 0), of_host(job, 1)
    honest = check(training.intent(), training.facts(log=parsed(first, second), pods=pods))
    assert judge(honest).open
    for texts, source in (
        ((first, second + made_up(5000)), "1.log"),
        ((first + second + made_up(5000),), "job-worker-1"),
    ):
        found = check(training.intent(), training.facts(log=parsed(*texts), pods=pods))
        assert not judge(found).open and len(found) <= len(honest) + 1
        (forged,) = [item for item in found if item.subject == source and item.check == "training.ranks"]
        assert forged.status == UNKNOWN and int(forged.measured.split()[0]) > 5000
        # what the other pod wrote is judged
        assert {item.subject for item in found if item.check == "training.channels" and item.status == PASS} == {
            "job-worker-0 rank 0",
            "job-worker-0 rank 1",
        }
    # many hosts in the name of which one pod writes: where it has a file of its own, this is named
    found = check(training.intent(), training.facts(log=parsed(first, second + made_up(5000, "evil-{}")), pods=pods))
    assert not judge(found).open and len(found) <= len(honest) + 1 and "1.log" in {item.subject for item in found}


def test_findings_beyond_a_limit_are_counted_by_their_check_and_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one file with all ranks it is not known which pod writes: made-up hosts fill neither the record nor hide what
    failed."""
    monkeypatch.setattr(channels, "MOST_FINDINGS", 50)
    job, slow = Job(hosts=30, gpus=1, channels=1), of_host(Job(hosts=30, gpus=1, channels=1, network="Socket"), 0)
    honest = of_host(job, *range(30))
    log = parsed(honest)
    found = judge_log(log, None, False)
    assert judge(found).open and len(found) <= 50 + 6
    counted = {item.check: int(item.measured.split()[0]) for item in found if item.subject == "further findings"}
    named = collections.Counter(item.check for item in found if item.subject != "further findings")
    assert {check: named[check] + counted.get(check, 0) for check in ("training.channels", "training.transport")} == {
        "training.channels": 30,
        "training.transport": 30,
    }
    flooded = judge_log(parsed(honest + made_up(500, "evil-{}")), None, False)
    assert not judge(flooded).open and len(flooded) <= 3 * 50 + 12
    assert UNKNOWN in {item.status for item in flooded if item.subject == "further findings"}
    # what fails is named, whatever else is unknown
    failed = judge_log(parsed(honest.replace(of_host(job, 0), "") + made_up(500, "evil-{}") + slow), None, False)
    assert [
        item.subject.split()[0] for item in failed if item.status == FAIL and item.check == "training.transport"
    ] == ["job-worker-0"]


# objects

NAD, CLAIM, TEMPLATE = "NetworkAttachmentDefinition", "ResourceClaim", "ResourceClaimTemplate"


class Tenants:
    """An API server whose tenants have made many large objects of each kind, and the few of a job between them."""

    def __init__(self, number: int, **kinds: builtins.list[Made]) -> None:
        self.number, self.kinds = number, kinds

    def _all(self, kind: str) -> typing.Iterator[Made]:
        yield from self.kinds.get(kind, [])
        for place in range(self.number if kind in (NAD, CLAIM, TEMPLATE) else 0):
            requests = [{"name": f"r{one}", "exactly": {"deviceClassName": f"c-{place}-{one}"}} for one in range(32)]
            config = json.dumps({"plugins": [{"type": f"{one:02x}-{place}"} for one in range(30)]})
            devices = {"devices": {"requests": requests}}
            spec = {"config": config} if kind == NAD else {"spec": devices} if kind == TEMPLATE else devices
            annotations = {"k8s.v1.cni.cncf.io/resourceName": "openshift.io/other" if place else "openshift.io/spare"}
            yield {
                "metadata": {"name": f"t-{place}", "namespace": "training", "annotations": annotations},
                "spec": spec,
            }

    def pages(
        self,
        kind: str,
        namespace: str = "",
        selector: str = "",
        *,
        only: typing.Callable[[Made], bool] = lambda _item: True,
    ) -> typing.Iterator[Made]:
        assert not selector
        yield from (item for item in self._all(kind) if only({"kind": kind, "metadata": item["metadata"]}))

    def list(
        self, kind: str, namespace: str = "", selector: str = "", *, only: typing.Callable[[Made], bool]
    ) -> Listing:
        assert not selector
        return Listing(
            tuple({"kind": kind, **item} for item in self._all(kind) if only({"metadata": item["metadata"]})), "1"
        )

    def get(self, kind: str, namespace: str, name: str) -> Made:
        raise ApiError(404, "NotFound", "absent", kind)


def wanted_by(*resources: Made) -> JobObjects:
    return list_objects(resources, resources)


def test_of_the_objects_of_tenants_those_alone_are_kept_that_the_job_names() -> None:
    (job,) = job_world.objects()
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["resourceClaims"] = [
        {"name": "nics", "resourceClaimTemplateName": "nics"}
    ]
    claim = {"metadata": {"name": "nics", "namespace": "training"}, "spec": {"spec": {"devices": {"requests": []}}}}
    mine = job_world.definition("sriov-ib-compute", "ib-sriov", "openshift.io/mlx_compute")

    def seen(number: int) -> JobSurroundings:
        tenants = Tenants(number, **{NAD: [mine], TEMPLATE: [claim]})
        return observe(typing.cast(Cluster, tenants), ["training"], [], {}, wanted_by(job))

    few, many = seen(10), seen(3000)
    for found in (few, many):
        assert [item.name for item in found.attachments] == ["training/sriov-ib-compute"]
        assert [(item.name, item.template) for item in found.device_claims or ()] == [("training/nics", True)]
    # for what a name is like, some of the others' names; and no more of them
    assert few.others[NAD][0] == "training/t-0" and len(many.others[NAD]) == 1000
    tracemalloc.start()
    try:
        kept = seen(3000)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000 and kept.errors == ()
    finally:
        tracemalloc.stop()


def broken(number: int, **more: typing.Any) -> list[Made]:
    """Objects that are of no form of theirs: a DeviceClass with an endless selector, a PersistentVolumeClaim whose
    modes are a text."""
    spec = {"accessModes": "x" * 100_000, "selectors": [{"cel": {"expression": "x" * 100_000}}]}
    return [{"metadata": {"name": f"{place:05d}", **more}, "spec": spec} for place in range(number)]


def test_an_object_that_is_not_of_its_form_is_an_error_by_its_name_and_hides_no_other() -> None:
    good = {
        "metadata": {"name": "good", "namespace": "training"},
        "spec": {"accessModes": ["ReadWriteMany"]},
        "status": {"phase": "Bound"},
    }
    claims = [*broken(3, namespace="training"), good]
    classes = [*broken(20_000), {"metadata": {"name": "nic"}, "spec": {}}]
    found = observe(
        typing.cast(Cluster, Tenants(0, PersistentVolumeClaim=claims, DeviceClass=classes)),
        ["training"],
        [],
        {},
        JobObjects(),
    )
    assert [item.name for item in found.claims] == ["training/good"]
    assert [item.name for item in found.device_classes or ()] == ["nic"]
    assert [text.partition(":")[0] for text in found.errors] == [
        f"PersistentVolumeClaim 0000{place} in namespace training" for place in range(3)
    ]
    assert [text.partition(":")[0] for text in found.device_errors[:5]] == [
        f"DeviceClass 0000{place}" for place in range(5)
    ]
    assert found.device_errors[5:] == ("19995 more of DeviceClass that could not be read",)
    assert all(len(text) < 400 for text in (*found.errors, *found.device_errors))


def with_networks(name: str, interfaces: typing.Sequence[str], device: str = "mlx5_6", requested: str = "a") -> Made:
    """A pod that runs, as whoever may make pods marks it as one of the job."""
    entries = [
        {"name": "training/a", "interface": text, "device-info": {"pci": {"rdma-device": device}}}
        for text in interfaces
    ]
    annotations = {"k8s.v1.cni.cncf.io/networks": requested, "k8s.v1.cni.cncf.io/network-status": json.dumps(entries)}
    labels = {"training.kubeflow.org/job-name": "train"}
    return {
        "metadata": {"name": name, "namespace": "training", "labels": labels, "annotations": annotations},
        "status": {"phase": "Running"},
    }


def test_a_pod_with_more_networks_or_devices_than_any_is_an_error_by_its_name() -> None:
    pods = [
        with_networks("good", ["net1", "net2"]),
        with_networks("many", [f"net{number}" for number in range(257)]),
        with_networks("devices", ["net1"], ",".join(f"mlx5_{number}" for number in range(257))),
        with_networks("long", ["n" * 16]),
        with_networks("odd", ["net1"], "a b"),
        with_networks("most", [f"net{number}" for number in range(256)]),
    ]
    found = observe(typing.cast(Cluster, Tenants(0, Pod=pods)), ["training"], [("training", "train")], {}, JobObjects())
    assert [(item.name, len(item.interfaces), len(item.devices)) for item in found.pods] == [
        ("good", 2, 2),
        ("most", 256, 256),
    ]
    assert [text.partition(" in ")[0] for text in found.errors] == ["Pod many", "Pod devices", "Pod long", "Pod odd"]


def test_mirror_pods_with_the_label_of_a_job_are_none_of_its_pods() -> None:
    """A kubelet invents them in any namespace, of any number, and so chooses what a job is compared with."""
    forged = [with_networks(f"evil{number}", ["eth9"], "mlx5_99") for number in range(20)]
    for pod in forged:
        pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x"
    pods = [*forged, with_networks("good", ["net1"])]
    found = observe(typing.cast(Cluster, Tenants(0, Pod=pods)), ["training"], [("training", "train")], {}, JobObjects())
    assert [item.name for item in found.pods] == ["good"] and not found.errors


def test_of_more_pods_than_any_job_has_the_others_are_counted() -> None:
    pods = [with_networks(f"p{number}", [f"net{place}" for place in range(256)]) for number in range(400)]
    found = observe(typing.cast(Cluster, Tenants(0, Pod=pods)), ["training"], [("training", "train")], {}, JobObjects())
    assert len(found.pods) == 100_000 // 513
    assert found.errors == ("206 of the 400 pods with labels of the jobs were not read",)


def test_a_template_that_asks_for_more_networks_than_any_is_refused() -> None:
    for many in (",".join(["a"] * 257), json.dumps([{"name": "a"}] * 257), ",".join(["a"] * 200_000)):
        with pytest.raises(
            ResourceError, match=r"annotation k8s\.v1\.cni\.cncf\.io/networks has \d+ networks; the limit is 256"
        ):
            parse_networks(many, "training", "the pod")
    assert len(parse_networks(",".join(["a"] * 256), "training", "the pod")) == 256
    with pytest.raises(ResourceError, match="does not have the form"):
        parse_networks("a,,b", "training", "the pod")


def test_a_claim_beside_objects_that_are_not_of_their_form() -> None:
    """Who may write one closes the gate of no job by it; and what lacks may be that one."""
    (job,) = job_world.objects()
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["resourceClaims"] = [{"name": "nics", "resourceClaimTemplateName": "nics"}]
        replica["template"]["spec"]["containers"][0]["resources"]["claims"] = [{"name": "nics"}]
    claim = DeviceClaim("training/nics", True, (DeviceRequest("all", (DeviceAlternative("dra.net", 1),)),))
    said = ("DeviceClass other: selectors is not a list of mappings",)
    for classes, without, beside in (((DeviceClass("dra.net"),), {PASS}, {WARN}), ((), {FAIL}, {UNKNOWN, WARN})):
        world = dataclasses.replace(job_world.WORLD, device_claims=(claim,), device_classes=classes, device_slices=())
        for errors, expected in (((), without), (said, beside)):
            findings = [
                item
                for item in lint([job], [], dataclasses.replace(world, device_errors=errors))
                if item.check == "job.device_claims"
            ]
            assert {item.status for item in findings} == expected
            assert any(said[0] in item.why for item in findings) == bool(errors)


def test_a_resource_that_only_attachments_of_others_need_is_still_one_of_a_network() -> None:
    (job,) = job_world.objects()
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        for amounts in replica["template"]["spec"]["containers"][0]["resources"].values():
            amounts["openshift.io/spare"] = 1
    found = observe(typing.cast(Cluster, Tenants(2)), ["training"], [], {}, wanted_by(job))
    assert found.offered == {"openshift.io/spare"}
    world = dataclasses.replace(job_world.WORLD, offered=found.offered)
    assert [
        item.subject.split()[-1]
        for item in lint([job], [], world)
        if item.check == "job.devices" and item.status == FAIL
    ] == ["openshift.io/spare"] * 2


def test_a_name_that_is_like_one_of_others_is_said() -> None:
    (job,) = job_world.objects()
    world = dataclasses.replace(job_world.WORLD, attachments=(), others={NAD: ("training/sriov-ib-computer",)})
    said = [item.expected for item in lint([job], [], world) if item.check == "job.networks"]
    assert said and all("did you mean 'training/sriov-ib-computer'" in text for text in said)


def test_a_job_that_can_t_be_read_names_nothing() -> None:
    assert list_objects([{"kind": "Job", "metadata": {"name": "a"}}], []) == JobObjects()


def test_many_claims_are_found_at_once() -> None:
    claims = tuple(DeviceClaim(f"training/c-{number}", True) for number in range(20_000))
    known = DeviceClaims(claims)
    with bounded(0.5):
        for number in range(2000):
            found = known.find("training", PodClaim("c", f"c-{number + 18_000}", True))
            assert found is not None and found.name == f"training/c-{number + 18_000}"
    # of two of one name the first, which is that of the file; and a template is no claim
    first, second = DeviceClaim("training/a", True, (DeviceRequest("x", ()),)), DeviceClaim("training/a", True)
    assert DeviceClaims((first, second)).find("training", PodClaim("c", "a", True)) is first
    assert DeviceClaims((first,)).find("training", PodClaim("c", "a", False)) is None


# nodes


def sliced(node: str, pool: str, generation: int, devices: int) -> DeviceSlice:
    offered = {
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{n}"} for n in range(devices)],
    }
    return read_slice(
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": node, **offered},
        }
    )


def judged_claim(count: int, *more: DeviceSlice, nodes: int = 4) -> list[Finding]:
    """Findings on a pod that claims so many GPUs, of machines with eight and of what one node says."""
    (job,) = job_world.objects()
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        replica["template"]["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
        replica["template"]["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpus"}]
    claim = DeviceClaim("training/gpus", True, (DeviceRequest("all", (DeviceAlternative("gpu.nvidia.com", count),)),))
    classes = (DeviceClass("gpu.nvidia.com", ("gpu.nvidia.com",)),)
    slices = (*(sliced(f"worker-{n}", f"worker-{n}", 1, 8) for n in range(nodes)), *more)
    world = dataclasses.replace(job_world.WORLD, device_claims=(claim,), device_classes=classes, device_slices=slices)
    return [item for item in lint([job], [], world) if item.check == "job.device_claims"]


def test_slices_of_one_node_are_about_no_other_node() -> None:
    forged = [sliced("evil", f"worker-{n}", 2**62, 0) for n in range(4)]
    for given in ((), forged):
        assert {item.status for item in judged_claim(8, *given)} == {PASS}


def test_a_claim_that_one_node_alone_could_meet_names_that_node() -> None:
    assert {item.status for item in judged_claim(64)} == {FAIL}
    found = judged_claim(64, *(sliced("evil", f"pool-{n}", 1, 128) for n in range(4)))
    assert {item.status for item in found} == {WARN} and all(
        "evil" in item.measured and "512" in item.measured for item in found
    )
    # what the only node has, is all that there is to compare
    assert {item.status for item in judged_claim(8, nodes=1)} == {PASS}


def test_more_devices_than_a_machine_has_do_not_count_and_are_named() -> None:
    lies = [sliced("evil", f"pool-{n}", 1, 128) for n in range(17)]
    for count, status in ((8, WARN), (64, FAIL)):
        found = judged_claim(count, *lies)
        assert {item.status for item in found} == {status, WARN}
        assert all("evil" in item.measured and "2176 devices" in item.measured for item in found if item.status == WARN)
    assert all("at most 8 on a node" in item.measured for item in found if item.status == FAIL)


def room(**nodes: int) -> list[Finding]:
    """Findings on the room for 16 pods of 8 GPUs on nodes with so many GPUs each."""
    (job,) = job_world.objects(nodes=16)
    world = dataclasses.replace(
        job_world.WORLD, nodes=tuple(job_world.node(name, **{"nvidia.com/gpu": count}) for name, count in nodes.items())
    )
    return [item for item in lint([job], [], world) if item.check == "job.resources"]


def test_the_room_of_one_node_is_not_that_of_the_cluster() -> None:
    assert [item.status for item in room(a=8, b=8)] == [FAIL]
    found = room(a=8, b=8, evil=100_000_000)
    assert {item.status for item in found} == {FAIL, WARN}
    assert [item.measured for item in found if item.status == FAIL] == ["room for 2 pods on 2 ready nodes"]
    assert [item.measured for item in found if item.status == WARN] == ["evil"]


def test_room_that_is_mostly_on_one_node_names_that_node() -> None:
    (job,) = job_world.objects(nodes=4)
    machines = (
        job_world.node("a"),
        job_world.node("b"),
        job_world.node("evil", **{"nvidia.com/gpu": 800, "openshift.io/mlx_compute": 800}),
    )
    found = [
        item
        for item in lint([job], [], dataclasses.replace(job_world.WORLD, nodes=machines))
        if item.check == "job.resources"
    ]
    assert WARN in {item.status for item in found} and FAIL not in {item.status for item in found}
    (warned,) = (item for item in found if item.status == WARN)
    assert "evil" in warned.measured and "100" in warned.measured
    # two nodes say the same of themselves
    twice = (*machines, dataclasses.replace(machines[-1], name="fat"))
    assert {
        item.status
        for item in lint([job], [], dataclasses.replace(job_world.WORLD, nodes=twice))
        if item.check == "job.resources"
    } == {PASS}
