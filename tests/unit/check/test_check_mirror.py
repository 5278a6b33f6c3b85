# SPDX-License-Identifier: GPL-3.0-or-later

"""What the mirror lacks, as findings: each image by its name with its command, and one cause for each registry that
does not tell."""

from __future__ import annotations

import dataclasses
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators import mirror
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.mirror import MirrorAnswer, MirrorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.operator_requests import OperatorRequests
from ansible_collections.linerate.rdma.plugins.module_utils._plan.pulls import collect_pulls
from ansible_collections.linerate.rdma.tests.unit.plan.test_pulls import SHARED, SRIOV

INTENT = parse_intent([SRIOV], None, {"mirror": "m.example"})


def answer(name: str, state: typing.Any, said: str = "", **more: typing.Any) -> MirrorAnswer:
    return MirrorAnswer(
        name,
        f"m.example/{name}",
        ("operator nfd",),
        (f"skopeo copy --all docker://{name} docker://m.example/{name}",),
        state,
        said,
        **more,
    )


#: what the intent itself needs
TOOLS = f"registry.example/tools@sha256:{'a' * 64}"


def findings(*answers: MirrorAnswer, **more: typing.Any) -> tuple[Finding, ...]:
    """Of all but the image of the pods, which is there."""
    found = mirror.check(INTENT, MirrorFacts((answer(TOOLS, "there"), *answers), **more))
    assert found[0].subject == TOOLS and found[0].status == "pass"
    return found[1:]


def test_without_a_mirror_nothing_is_said() -> None:
    assert mirror.check(parse_intent([SRIOV]), None) == ()
    assert mirror.check(parse_intent([SRIOV]), MirrorFacts((answer("a.b/c:1", "missing"),))) == ()


def test_nobody_asked_is_no_pass() -> None:
    (finding,) = mirror.check(INTENT, None)
    assert finding.status == "unknown"


def test_what_is_there_passes_and_what_is_missing_has_its_command() -> None:
    there, missing = findings(answer("a.b/c:1", "there"), answer("a.b/d:1", "missing", "not found (404)"))
    assert (there.status, there.subject) == ("pass", "a.b/c:1")
    assert (missing.status, missing.subject) == ("fail", "a.b/d:1")
    assert (
        "skopeo copy --all docker://a.b/d:1 docker://m.example/a.b/d:1" in missing.remedy
        and "operator nfd" in missing.why
    )


def test_a_driver_is_named_with_what_its_tag_lacks() -> None:
    (finding,) = findings(answer("a.b/driver:580", "missing", "no tag", by_system=True))
    assert finding.subject == "a.b/driver:580-*" and "ubuntu24.04" in finding.remedy


def test_a_registry_that_does_not_tell_is_one_cause() -> None:
    silent = [answer(f"a.b/{number}:1", "silent", "no connection to m.example: refused") for number in range(7)]
    refused = [answer("a.b/x:1", "refused", "HTTP 401 for nobody")]
    seen = findings(*silent, *refused)
    assert [(item.subject, item.status) for item in seen] == [("registry m.example", "unknown")] * 2
    assert "operators_registry_auth_file" in seen[0].remedy and "HTTP 401" in seen[0].measured
    assert (
        "and 2 more" in seen[1].why
        and "curl -v https://m.example/v2/" in seen[1].remedy
        and "7 images" in seen[1].measured
    )


def test_what_is_not_known_and_what_comes_from_elsewhere_is_no_pass() -> None:
    unlisted, elsewhere = findings(
        unlisted=("images of operator nfd: helm said no",), elsewhere=("operator nfd: quay.io/a/b:1",)
    )
    assert unlisted.status == "unknown" and "The error is: images of operator nfd: helm said no." in unlisted.why
    assert "Otherwise correct the error. Then run stage operators again." in unlisted.remedy
    assert elsewhere.status == "fail" and "quay.io/a/b:1" in elsewhere.measured and "for nfd" in elsewhere.remedy
    (nameless,) = findings(elsewhere=("nfd",))
    assert nameless.subject == "nfd, image without a name" and "for nfd in operators_charts" in nameless.remedy
    assert "name an image whose name is unknown" in nameless.why and "helm template" in nameless.remedy


def test_complete_is_all_of_it() -> None:
    good = MirrorFacts((answer("a.b/c:1", "there"),))
    assert good.complete and load(MirrorFacts, to_data(good)) == good
    for state in ("missing", "refused", "silent"):
        assert not MirrorFacts((answer("a.b/c:1", state),)).complete
    assert not MirrorFacts(unlisted=("x",)).complete and not MirrorFacts(elsewhere=("x",)).complete


def unasked(intent: Intent, *answers: MirrorAnswer, **more: typing.Any) -> list[str]:
    found = mirror.check(intent, MirrorFacts(answers, **more))
    assert all(item.status == "unknown" and item.remedy for item in found if item.measured.endswith("not queried"))
    return [item.subject for item in found if item.measured.endswith("not queried")]


def test_no_answer_and_one_about_another_image_are_no_pass() -> None:
    place = f"m.example/{TOOLS}"
    assert unasked(INTENT) == [place]
    assert unasked(INTENT, answer("a.b/c:1", "there")) == [place]
    # another digest, another mirror
    assert unasked(INTENT, answer(TOOLS.replace("a" * 64, "b" * 64), "there")) == [place]
    assert unasked(INTENT, dataclasses.replace(answer(TOOLS, "there"), place=f"other.example/{TOOLS}")) == [place]
    for state in ("there", "missing", "refused", "silent"):
        assert unasked(INTENT, answer(TOOLS, state)) == []
    # the list says itself that it has no name for it
    assert unasked(INTENT, unlisted=("image tools of pods of fabric compute: it names no registry",)) == []
    assert (
        unasked(
            parse_intent(
                [{**SRIOV, "pods": {"image": TOOLS, "image_pull_policy": "Never"}}], None, {"mirror": "m.example"}
            )
        )
        == []
    )


def test_each_image_that_the_intent_has_pulled_is_one_that_was_asked_for() -> None:
    """What is listed for a run, and what the check wants an answer for, by the same intent."""
    operator = {"ofed_driver": "doca3.1.0", "nv_ipam": True, "nic_feature_discovery": True}
    device = {**SRIOV, "name": "device", "profile": "host_device", "virtual_functions": 0}
    ipoib = {
        **SHARED,
        "name": "ipoib",
        "profile": "ipoib",
        "resource_name": "",
        "select": {"hcas_per_node": 1, "subnet_manager": ["any"], "netdev": ["ib0"]},
    }
    ipoib.pop("mtu")
    for fabrics in ([SRIOV], [SHARED], [device], [ipoib], [SRIOV, SHARED, device]):
        for cluster in ({}, {"network_operator": operator}):
            listed = collect_pulls(
                parse_intent(fabrics, None, cluster),
                None,
                False,
                OperatorRequests(leave=tuple(item.name for item in TABLE)),
                {},
                {},
            )
            intent = parse_intent(fabrics, None, {**cluster, "mirror": "m.example"})
            places = sorted({f"m.example/{image.name}" for image in listed.images})
            assert sorted(set(unasked(intent))) == places and places
            assert unasked(intent, *(answer(image.name, "there") for image in listed.images)) == []
