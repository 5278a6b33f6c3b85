# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage platform with a BMC: what a node proves is true, what it leaves open its BMC decides, and what it fails for its
BMC names."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.bios import find_wanted, find_wanted_by
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import (
    KEYS,
    BiosAttribute,
    BiosIntent,
    BiosJob,
    BiosSetting,
    BiosValue,
    NodeBios,
    ObservedBios,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import VfMemory
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding, judge
from ansible_collections.linerate.rdma.plugins.module_utils._plan.bios import make_body, plan_bios
from ansible_collections.linerate.rdma.tests.unit.check import fabric_world as world
from ansible_collections.linerate.rdma.tests.unit.check.test_node_stages import (
    IDENTITY,
    NO_CAPABILITY,
    NODES,
    OFFERS,
    one,
    platforms,
    proof,
)

ON_OFF = (BiosValue("Enabled", "Enabled"), BiosValue("Disabled", "Disabled"))
NAMES = {"sriov": "SriovGlobalEnable", "iommu": "ProcVirtualization", "above_4g": "MmioAbove4Gb", "smt": "LogicalProc"}
JOB = BiosJob("JID_7", "Scheduled")
ALL_OPEN: dict[str, typing.Any] = NO_CAPABILITY


def bios(jobs: typing.Optional[tuple[BiosJob, ...]] = (), lockdown: bool = False, **attributes: typing.Any) -> NodeBios:
    """Of a Dell; by key changes of its attribute, or None where it has none."""
    settings = []
    for key in KEYS:
        change = attributes.get(key, {})
        there = key in NAMES and change is not None
        found = (
            (BiosAttribute(**{"name": NAMES[key], "current": "Enabled", "allowed": ON_OFF, **change}),) if there else ()
        )
        settings.append(BiosSetting(key, found, ("SR-?IOV",)))
    said = NodeBios(
        "Dell Inc.",
        "PowerEdge R750",
        "1.8.2",
        tuple(settings),
        registry="/registry",
        jobs=jobs,
        lockdown=lockdown,
        apply_times=("OnReset",),
    )
    return dataclasses.replace(said, identity=IDENTITY)


def told(
    answer: typing.Union[NodeBios, str, None], wishes: typing.Optional[BiosIntent] = None, **evidence_of: typing.Any
) -> tuple[Finding, ...]:
    """Findings of a node with that BMC; None: the inventory names none.

    :param evidence_of: what the node shows of each function
    """
    node = NODES["worker-1"]
    observed = ObservedBios(error=answer) if isinstance(answer, str) else ObservedBios(answer)
    functions = tuple(proof(hca, **evidence_of) for hca in node.hcas if hca.pci)
    intent = Intent(world.intent().fabrics, cluster=ClusterIntent(bios=wishes or BiosIntent()))
    return platforms(intent=intent, functions=functions, bioses={"worker-1": observed} if answer is not None else {})


def about(findings: typing.Sequence[Finding], subject: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == "platform.bios" and finding.subject.startswith(subject)]


OFF = {"current": "Disabled"}


def test_a_bmc_that_says_all_is_on() -> None:
    findings = told(bios())
    assert {finding.status for finding in findings} == {"pass"} and judge(findings).open
    (said,) = about(findings, "worker-1 BMC")
    assert (
        said.measured
        == "Dell Inc. PowerEdge R750 1.8.2: SriovGlobalEnable Enabled, MmioAbove4Gb Enabled, ProcVirtualization Enabled"
    )


@pytest.mark.parametrize(
    ("answer", "status", "measured", "why", "remedy"),
    [
        (bios(), "pass", "by its BMC: SriovGlobalEnable Enabled", "", ""),
        # no such switches, and none that is wrong
        (bios(above_4g=None), "pass", "by its BMC", "", ""),
        (
            bios(sriov=OFF),
            "fail",
            "SriovGlobalEnable Disabled",
            "Without SR-IOV in the BIOS, VFs get no memory and no bus numbers",
            "Set SriovGlobalEnable to Enabled with the module linerate.rdma.bios (wanted: {sriov: true})",
        ),
        (
            bios(above_4g=OFF),
            "fail",
            "MmioAbove4Gb Disabled",
            "Without memory above 4 GiB for PCI, the memory of the VFs may not fit",
            "Set MmioAbove4Gb to Enabled",
        ),
        (
            bios((JOB,), sriov={**OFF, "pending": "Enabled"}),
            "fail",
            "SriovGlobalEnable Disabled (Enabled after a reset)",
            "Enabled takes effect at the next reset by the job JID_7 (Scheduled)",
            "Drain the node and reset it. If the setting is still not in effect after the reset, check job JID_7",
        ),
        (
            bios(None, sriov={**OFF, "pending": "Enabled"}),
            "fail",
            "Disabled (Enabled after",
            "takes effect at the next reset.",
            "check the log of the BMC",
        ),
        (
            bios((), sriov={**OFF, "pending": "Enabled"}),
            "fail",
            "Disabled",
            "no job exists that applies it",
            "Run the module linerate.rdma.bios",
        ),
        (
            bios((JOB,), sriov={**OFF, "read_only": "job scheduled: JID_7"}),
            "fail",
            "Disabled",
            "job scheduled: JID_7",
            "racadm jobqueue delete -i JID_7",
        ),
        (
            bios(lockdown=True, sriov={**OFF, "read_only": "lockdown"}),
            "fail",
            "Disabled",
            "not on; lockdown",
            "Disable the lockdown mode",
        ),
        (
            bios(sriov={**OFF, "read_only": "dependency: x is y"}),
            "fail",
            "Disabled",
            "dependency: x is y",
            "Set the settings first on which this setting depends",
        ),
        (
            bios(sriov={"pending": "Disabled"}),
            "fail",
            "Enabled (Disabled after a reset)",
            "the value Disabled, which takes effect at the next reset, does not mean on",
            "Set SriovGlobalEnable to Enabled",
        ),
        (
            dataclasses.replace(bios(sriov=OFF), last_apply="the job JID_7 ended with state Failed"),
            "fail",
            "Disabled",
            "the job JID_7 ended",
            "on the BIOS setup screen",
        ),
        (
            bios(sriov={"current": "Auto"}),
            "unknown",
            "not verified",
            "The BMC does not determine it either: SriovGlobalEnable: the value Auto does not show",
            "lspci",
        ),
        (
            bios(sriov=None),
            "unknown",
            "not verified",
            "The BMC does not determine it either: No such attribute",
            "lspci",
        ),
        (
            "failed: the BMC of worker-1 (x:443): user or password is wrong. Correct that",
            "unknown",
            "not verified",
            "password is wrong",
            "the BMC must respond.",
        ),
        (
            "failed: the BMC of worker-1 (x:443): its certificate has expired",
            "unknown",
            "not verified",
            "has expired",
            "the BMC must respond.",
        ),
    ],
)
def test_what_a_node_leaves_open_its_bmc_decides(
    answer: typing.Union[NodeBios, str], status: str, measured: str, why: str, remedy: str
) -> None:
    finding = one(told(answer, **ALL_OPEN), "platform.bios", "mlx5_0")
    assert (finding.status, measured in finding.measured, why in finding.why, remedy in finding.remedy) == (
        status,
        True,
        True,
        True,
    ), finding


def test_what_contradicts_itself_no_bmc_decides() -> None:
    assert one(told(bios(), sriov_current=8), "platform.bios", "mlx5_0").status == "unknown"
    assert one(told(bios(), memory=VfMemory((0, 2))), "platform.bios", "mlx5_0").status == "unknown"


def test_what_a_node_fails_for_its_bmc_names() -> None:
    no_memory: dict[str, typing.Any] = {"memory": VfMemory((), (0,))}
    finding = one(told(bios(above_4g=OFF), **no_memory), "platform.bios", "mlx5_0")
    assert (
        finding.status == "fail"
        and "did not fit" in finding.why
        and finding.why.endswith(
            "The BMC reports: MmioAbove4Gb Disabled. The BMC reports as required: SriovGlobalEnable Enabled."
        )
    )
    assert (
        finding.remedy.startswith("Set MmioAbove4Gb to Enabled with the module")
        and "PCI resource padding" in finding.remedy
    )
    # with all of it on, the BMC still is evidence
    on = one(told(bios(), **no_memory), "platform.bios", "mlx5_0")
    assert "The BMC reports as required: SriovGlobalEnable Enabled, MmioAbove4Gb Enabled." in on.why
    assert on.remedy.startswith("Drain the node. In its BIOS, increase the memory for PCI"), "both switches are on"
    assert (
        "The BMC of the node reports no settings: dead."
        in one(told("dead", **no_memory), "platform.bios", "mlx5_0").why
    )
    assert [finding.subject for finding in about(told(bios(above_4g=OFF), **no_memory), "worker-1 BMC")] == [
        "worker-1 BMC"
    ], "it is told once"


def test_a_bios_that_says_off_where_functions_are_proven_warns() -> None:
    findings = told(bios(sriov=OFF))
    (said,) = about(findings, "worker-1 BMC")
    assert (said.subject, said.status) == ("worker-1 BMC sriov", "warn") and judge(findings).open
    # what not every BIOS has is nothing to be warned of
    assert {finding.status for finding in about(told(bios(sriov=None)), "worker-1 BMC")} == {"pass"}


@pytest.mark.parametrize("answer", [None, "failed: the BMC of worker-1: nothing answers."])
@pytest.mark.parametrize(("proof", "status"), [({}, "warn"), (ALL_OPEN, "unknown")])
def test_a_wish_for_what_vfs_need_is_known_by_the_node_or_by_its_bmc(
    answer: typing.Optional[str], proof: typing.Any, status: str
) -> None:
    (said,) = about(told(answer, BiosIntent(sriov=True), **proof), "worker-1 BMC")
    assert (said.status, said.measured) == (status, "not read" if answer else "not read: no BMC in the inventory")
    assert ("Set rdma_bmc_address" in said.remedy) == (answer is None)


def test_a_bmc_without_an_answer_warns_where_the_node_proves_it() -> None:
    findings = told("failed: the BMC of worker-1 (x:443): no response within 10 s. See its power.")
    (said,) = about(findings, "worker-1 BMC")
    assert (
        (said.status, said.measured) == ("warn", "not read")
        and "no response within" in said.why
        and judge(findings).open
    )
    assert one(findings, "platform.bios", "mlx5_0").status == "pass"


@pytest.mark.parametrize(
    ("wishes", "answer", "status", "subject"),
    [
        ({"sriov": True}, bios(), "pass", ""),
        ({"sriov": True}, bios(sriov=OFF), "fail", " sriov"),
        ({"sriov": True}, bios((JOB,), sriov={**OFF, "pending": "Enabled"}), "fail", " sriov"),
        # its registry has no such attribute, and the node shows that it is on
        ({"sriov": True}, bios(sriov=None), "pass", ""),
        ({"sriov": True}, bios(sriov={"current": "Auto"}), "warn", " sriov"),
        ({"sriov": True}, bios(sriov={"pending": "Auto"}), "unknown", " sriov"),
        ({"above_4g": True}, bios(above_4g=None), "pass", ""),
        ({"iommu": True}, bios(iommu=None), "pass", ""),
        ({"iommu": False}, bios(iommu=None), "unknown", " iommu"),
        ({"ari": True}, bios(), "pass", ""),
        ({"iommu": True}, bios(iommu=OFF), "fail", " iommu"),
        ({"smt": False}, bios(), "warn", " smt"),
        ({"smt": True}, bios(), "pass", ""),
        ({"profile": ("PerfOptimized",)}, bios(), "warn", " profile"),
        ({"max_read_request": 4096}, bios(), "warn", " max_read_request"),
        ({"smt": True}, "dead", "warn", ""),
    ],
)
def test_what_the_intent_asks_for(
    wishes: dict[str, typing.Any], answer: typing.Union[NodeBios, str], status: str, subject: str
) -> None:
    """Without a need for it a wish is advice."""
    (said,) = about(told(answer, BiosIntent(**wishes)), "worker-1 BMC")
    assert (said.status, said.subject) == (status, f"worker-1 BMC{subject}")


def test_a_wish_that_no_attribute_of_the_bios_shows_is_proven_by_the_node() -> None:
    (said,) = about(told(bios(sriov=None), BiosIntent(sriov=True)), "worker-1 BMC")
    assert said.measured.endswith("ProcVirtualization Enabled, sriov verified on the node (not found in its BIOS)")
    assert {
        finding.status
        for finding in told(bios(sriov=None), BiosIntent(sriov=True), sriov_current=8, memory=None, **ALL_OPEN)
    } == {"pass"}


@pytest.mark.parametrize(
    ("wishes", "answer", "evidence_of"),
    [
        # no VF is there, and nobody may read whether one could be
        ({"sriov": True}, bios(sriov=None), ALL_OPEN),
        # that VFs could be is the word of the BMC, which has no such attribute
        ({"above_4g": True}, bios(above_4g=None), ALL_OPEN),
        ({"ari": True}, bios(), {"capability": dataclasses.replace(OFFERS, ari=False)}),
        ({"ari": True}, bios(), {"sriov_current": 8, "memory": None, **ALL_OPEN}),
        # what waits for the next reset is not known
        ({"sriov": True}, dataclasses.replace(bios(sriov={"current": "Auto"}), pending_error="no settings object"), {}),
    ],
)
def test_what_the_node_does_not_show_stays_unknown(
    wishes: dict[str, typing.Any], answer: NodeBios, evidence_of: dict[str, typing.Any]
) -> None:
    findings = told(answer, BiosIntent(**wishes), **evidence_of)
    assert (
        "unknown" in {finding.status for finding in findings if finding.check == "platform.bios"}
        and not judge(findings).open
    )
    (key,) = wishes
    (said,) = about(findings, f"worker-1 BMC {key}")
    assert said.status == "unknown" and f"remove {key} from rdma_cluster.bios" in said.remedy


def test_a_wish_for_no_functions_proves_none() -> None:
    findings = told(bios(sriov=OFF), BiosIntent(sriov=False), **ALL_OPEN)
    assert one(findings, "platform.bios", "mlx5_0").status == "fail"


def test_a_wish_without_a_bmc_warns() -> None:
    intent = Intent(world.intent().fabrics, cluster=ClusterIntent(bios=BiosIntent(smt=True)))
    finding = one(platforms(intent=intent), "platform.bios", "worker-1 BMC")
    assert finding.status == "warn" and "rdma_bmc_address" in finding.remedy
    assert not about(platforms(), "worker-1 BMC"), "nobody asked for one"


def test_the_iommu_s_own_check_names_the_setting() -> None:
    none: dict[str, typing.Any] = {"iommu_devices": (), "iommu_groups": 0, "acpi_tables": ()}
    observed = {"worker-1": ObservedBios(bios(iommu=OFF))}
    finding = one(platforms(bioses=observed, **none), "platform.iommu")
    assert finding.status == "warn" and "The BMC reports: ProcVirtualization Disabled." in finding.why
    assert finding.remedy.startswith(
        "Set ProcVirtualization to Enabled with the module linerate.rdma.bios (wanted: {iommu: true})"
    ) and finding.remedy.endswith(
        "Drain the node, enable VT-d (Intel) or IOMMU (AMD) in its BIOS, and reboot it. If no pod uses vfio-pci, you"
        " can waive this finding instead. Then run stage platform again."
    )
    unread = one(platforms(bioses=observed, iommu_groups=None), "platform.iommu")
    assert unread.status == "unknown" and "ProcVirtualization Disabled" in unread.why
    assert not [
        finding for finding in about(platforms(bioses=observed, **none), "worker-1 BMC") if finding.status != "pass"
    ], "it is told once"
    waits = {"worker-1": ObservedBios(bios((JOB,), iommu={**OFF, "pending": "Enabled"}))}
    assert "check job JID_7" in one(platforms(bioses=waits, **none), "platform.iommu").remedy


def test_wishes_are_the_keys_of_the_model() -> None:
    assert tuple(field.name for field in dataclasses.fields(BiosIntent)) == KEYS
    assert find_wanted_by(BiosIntent()) == {}
    assert find_wanted_by(BiosIntent(sriov=False, profile=("A", "B"), max_read_request=4096)) == {
        "sriov": (False,),
        "max_read_request": (4096,),
        "profile": ("A", "B"),
    }


WORDS = some.sampled_from(["Enabled", "Disabled", "Auto", "1", "0", True, False, 4, "NPS1", "4096B", "custom"])


@hypothesis.given(
    some.sampled_from(KEYS),
    some.one_of(WORDS, some.text(min_size=1, max_size=6).filter(str.strip)),
    WORDS,
    some.none() | WORDS,
    some.booleans(),
    some.sampled_from(["", "dependency"]),
)
def test_a_plan_leads_to_what_is_wanted_or_says_why_not(
    key: str, wanted: typing.Any, current: typing.Any, pending: typing.Any, known: bool, held: str
) -> None:
    """What a plan writes is right once it is there: the next plan has nothing to do."""
    wish = find_wanted({key: wanted})
    attribute = BiosAttribute(
        "A", current, pending=pending if pending != current else None, allowed=ON_OFF if known else (), read_only=held
    )
    before = NodeBios("x", "y", "z", (BiosSetting(typing.cast(typing.Any, key), (attribute,)),))
    found = plan_bios(before, wish)
    assert not (found.writes and found.refusals) or key in ("profile", "c_states")
    assert not found.writes or not held
    for write in found.writes:
        assert write.after is not None and make_body(before, found.writes) == {"Attributes": {"A": write.after}}
        after = dataclasses.replace(
            before, settings=(BiosSetting(write.key, (dataclasses.replace(attribute, pending=write.after),)),)
        )
        assert plan_bios(after, wish).writes == ()
