# SPDX-License-Identifier: GPL-3.0-or-later

"""How nodes pull the images of a run, by OpenShift's mirror rules and lists of registries: as registries.conf and
policy.json have it."""

from __future__ import annotations

import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.images import (
    check,
    count_matched,
    find_pull_path,
    is_in_scope,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import (
    Form,
    ImageFacts,
    MirrorRule,
    RegistrySources,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Finding
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.images import parse_reference

DIGEST = f"quay.io/site/rdma-tools@sha256:{'a' * 64}"
TAG = "quay.io/site/rdma-tools:1"


def rule(source: str, *mirrors: str, form: Form = "digest", never: bool = False) -> MirrorRule:
    return MirrorRule(
        f"Image{form.title()}MirrorSet own", form, source, mirrors or ("mirror.example:5000/site",), never
    )


def wishes(**images: str) -> Intent:
    network: dict[str, typing.Any] = {
        "network": {"name": "pods", "namespace": "training"},
        "select": {"hcas_per_node": 1},
    }
    return parse_intent(
        [
            {"name": name, "profile": "pod_network", **network, "pods": {"image": image}}
            for name, image in images.items()
        ]
    )


def one(image: str, *rules: MirrorRule, **registries: tuple[str, ...]) -> Finding:
    (found,) = check(wishes(compute=image), ImageFacts(rules, RegistrySources(**registries)))
    return found


@pytest.mark.parametrize(
    ("image", "rules", "registries", "status", "measured", "remedy"),
    [
        # neither a rule nor a list: any cluster but OpenShift
        (TAG, [], {}, "pass", "from quay.io itself, no mirror rule applies", ""),
        (
            "Site/RDMA tools",
            [],
            {},
            "fail",
            "not a valid image name",
            "Write pods.image of fabric compute as registry/path",
        ),
        ("rdma-tools", [], {}, "pass", "from a registry that the node searches itself", ""),
        # rules of others
        (
            DIGEST,
            [rule("quay.io/sit"), rule("registry.redhat.io")],
            {},
            "pass",
            "from quay.io itself, no mirror rule applies",
            "",
        ),
        # a host, a namespace, a repository, a domain
        (
            DIGEST,
            [rule("quay.io")],
            {},
            "pass",
            "from mirror.example:5000/site/site/rdma-tools, else quay.io itself",
            "",
        ),
        (
            DIGEST,
            [rule("quay.io/site")],
            {},
            "pass",
            "from mirror.example:5000/site/rdma-tools, else quay.io itself",
            "",
        ),
        (
            DIGEST,
            [rule("quay.io/site/rdma-tools", "m.example/t")],
            {},
            "pass",
            "from m.example/t, else quay.io itself",
            "",
        ),
        (DIGEST, [rule("*.io", "m.example")], {}, "pass", "from m.example/site/rdma-tools, else quay.io itself", ""),
        (
            "quay.io:443/site/tools:1",
            [rule("*.io", "m.example", form="tag")],
            {},
            "pass",
            "from m.example:443/site/tools, else quay.io:443 itself",
            "",
        ),
        (
            TAG,
            [rule("quay.io/site", form="tag")],
            {},
            "pass",
            "from mirror.example:5000/site/rdma-tools, else quay.io itself",
            "",
        ),
        (
            "pytorch/pytorch:2",
            [rule("docker.io", form="tag")],
            {},
            "warn",
            "no registry in the name",
            "Write pods.image of fabric compute with the host of the registry",
        ),
        (
            "docker.io/debian:12",
            [rule("docker.io/library", "m.example", form="tag")],
            {},
            "pass",
            "from m.example/debian, else docker.io itself",
            "",
        ),
        # several mirrors, in their order; the source among them is no mirror
        (
            DIGEST,
            [rule("quay.io", "a.example", "quay.io", "b.example", never=True)],
            {},
            "pass",
            "from a.example/site/rdma-tools, else b.example/site/rdma-tools",
            "",
        ),
        # both at once, as a tag and a digest are: the digest counts
        (
            f"{TAG}@sha256:{'a' * 64}",
            [rule("quay.io/site", never=True)],
            {},
            "pass",
            "from mirror.example:5000/site/rdma-tools",
            "",
        ),
        # the form
        (
            TAG,
            [rule("quay.io/site")],
            {},
            "warn",
            "from quay.io itself, although mirrors exist",
            "to print the name with the digest, and set pods.image of fabric compute to it.",
        ),
        (
            DIGEST,
            [rule("quay.io/site", form="tag")],
            {},
            "warn",
            "from quay.io itself, although mirrors exist",
            "add mirrors for quay.io/site/rdma-tools to an ImageDigestMirrorSet",
        ),
        (
            TAG,
            [rule("quay.io/site", never=True)],
            {},
            "fail",
            "no permitted registry: quay.io/site is blocked",
            "to print the name with the digest, and set pods.image of fabric compute to it.",
        ),
        (
            DIGEST,
            [rule("quay.io/site", form="tag", never=True)],
            {},
            "fail",
            "no permitted registry: quay.io/site is blocked",
            "to an ImageDigestMirrorSet",
        ),
        (
            TAG,
            [rule("quay.io/site"), rule("quay.io/site", form="tag")],
            {},
            "pass",
            "from mirror.example:5000/site/rdma-tools",
            "",
        ),
        # the longest source counts alone
        (
            DIGEST,
            [rule("quay.io", "a.example"), rule("quay.io/site", "b.example")],
            {},
            "pass",
            "from b.example/rdma-tools, else quay.io itself",
            "",
        ),
        (
            DIGEST,
            [rule("quay.io", never=True), rule("quay.io/site", "b.example")],
            {},
            "pass",
            "from b.example/rdma-tools, else quay.io itself",
            "",
        ),
        (
            DIGEST,
            [rule("quay.io"), rule("quay.io/site", form="tag")],
            {},
            "warn",
            "from quay.io itself",
            "to an ImageDigestMirrorSet",
        ),
        (
            DIGEST,
            [rule("quay.io/site")],
            {"insecure": ("quay.io/site/rdma-tools",)},
            "warn",
            "from quay.io itself",
            "ImageDigestMirrorSet",
        ),
        # rules without a mirror are none
        (
            DIGEST,
            [MirrorRule("r", "digest", "quay.io", (), True)],
            {},
            "pass",
            "from quay.io itself, no mirror rule applies",
            "",
        ),
        (
            DIGEST,
            [rule("quay.io", "quay.io", never=True)],
            {},
            "pass",
            "from quay.io itself, no mirror rule applies",
            "",
        ),
        # lists of registries
        (
            DIGEST,
            [rule("quay.io/site")],
            {"blocked": ("quay.io",)},
            "fail",
            "blocked: quay.io",
            "oc edit image.config.openshift.io cluster",
        ),
        (DIGEST, [], {"blocked": ("*.io",)}, "fail", "blocked: *.io", "oc edit"),
        (DIGEST, [], {"blocked": ("quay.io/other", "redhat.io")}, "pass", "from quay.io itself", ""),
        (
            DIGEST,
            [rule("quay.io/site")],
            {"allowed": ("registry.redhat.io", "mirror.example:5000")},
            "fail",
            "not allowed: quay.io",
            "to an image of one of these registries",
        ),
        (
            DIGEST,
            [rule("quay.io/site", never=True)],
            {"allowed": ("quay.io",)},
            "pass",
            "from mirror.example:5000/site/rdma-tools",
            "",
        ),
        (TAG, [], {"allowed": (TAG,)}, "pass", "from quay.io itself", ""),
        (DIGEST, [], {"allowed": (TAG,)}, "fail", "not allowed: quay.io", "oc edit"),
        # mirrors may be blocked themselves
        (
            DIGEST,
            [rule("quay.io", "a.example", "b.example")],
            {"blocked": ("a.example",)},
            "pass",
            "from b.example/site/rdma-tools, else quay.io",
            "",
        ),
        (
            DIGEST,
            [rule("quay.io", "a.example")],
            {"blocked": ("a.example",)},
            "warn",
            "from quay.io itself",
            "These mirrors must not be blocked",
        ),
        (
            DIGEST,
            [rule("quay.io", "a.example", never=True)],
            {"blocked": ("*.example",)},
            "fail",
            "no permitted registry: quay.io is blocked",
            "These mirrors must not be blocked",
        ),
    ],
)
def test_each_way_of_an_image(
    image: str, rules: list[MirrorRule], registries: dict[str, tuple[str, ...]], status: str, measured: str, remedy: str
) -> None:
    found = one(image, *rules, **registries)
    assert (found.check, found.subject, found.status) == ("operators.image", f"image {image}", status), found
    assert found.measured.startswith(measured), found
    assert remedy in found.remedy, found


def test_a_host_that_the_name_begins_with_is_another_one() -> None:
    assert [
        count_matched(scope, "quay.io/site/tools")
        for scope in ("quay.i", "quay.io/site/tool", "*.quay.io", "quay.io:443", "", "*.")
    ] == [0] * 6
    assert not is_in_scope("quay.io/sit", parse_reference(DIGEST)) and not is_in_scope("", parse_reference(DIGEST))


def test_an_image_has_one_finding_that_names_all_who_ask_for_it() -> None:
    named = {"rdma_observers_image": TAG, "rdma_job.image": ""}
    found = check(wishes(compute=TAG, storage=DIGEST), ImageFacts((rule("quay.io/site"),), named=named))
    assert {item.subject: item.status for item in found} == {f"image {TAG}": "warn", f"image {DIGEST}": "pass"}
    (bad,) = [item for item in found if item.status == "warn"]
    assert "set pods.image of fabric compute, rdma_observers_image to it" in bad.remedy
    assert "docker://quay.io/site/rdma-tools:1" in bad.remedy and "'{{.Name}}@{{.Digest}}'" in bad.remedy
    assert "ImageDigestMirrorSet own" in bad.why


def test_what_nodes_do_not_pull_has_no_finding() -> None:
    intent = wishes(compute=TAG)
    pods = dataclasses.replace(intent.fabrics[0].pods, image_pull_policy="Never")
    intent = dataclasses.replace(intent, fabrics=(dataclasses.replace(intent.fabrics[0], pods=pods),))
    assert check(intent, ImageFacts(registries=RegistrySources(blocked=("quay.io",)))) == ()


def test_rules_that_were_not_read_are_unknown() -> None:
    errors = ("GET /apis/config.openshift.io/v1/imagedigestmirrorsets: forbidden",)
    for seen in (None, ImageFacts(errors=errors), ImageFacts((rule("quay.io"),), errors=errors)):
        (found,) = check(wishes(compute=TAG), seen)
        assert (found.status, found.subject) == ("unknown", "cluster")
        assert ("docs/rbac/look.yml" in found.remedy) == (seen is not None)
        assert "un stage operators again." in found.remedy
        assert seen is None or errors[0] in found.why


def test_facts_survive_the_way_through_ansible() -> None:
    facts = ImageFacts(
        (rule("quay.io", never=True),), RegistrySources(("a",), ("b",), ("c",)), {"rdma_job.image": TAG}, ("x",)
    )
    assert load(ImageFacts, to_data(facts), "images") == facts


HOSTS = some.sampled_from(["a.example", "b.example", "a.example:5000", "c.b.example"])
SCOPES = some.one_of(
    HOSTS,
    some.sampled_from(["*.example", "*.b.example"]),
    some.builds("{}/{}".format, HOSTS, some.sampled_from(["n", "n/r", "m"])),
)
NAMES = some.builds(
    "{}/{}{}".format,
    HOSTS,
    some.sampled_from(["n/r", "n/q", "m/r", "x"]),
    some.sampled_from([":1", "", f"@sha256:{'a' * 64}"]),
)
LISTS = some.lists(SCOPES, max_size=3).map(tuple)
RULES = some.lists(
    some.builds(
        MirrorRule,
        some.just("o"),
        some.sampled_from(["digest", "tag"]),
        SCOPES,
        some.lists(some.builds("{}/m".format, HOSTS), max_size=3).map(tuple),
        some.booleans(),
    ),
    max_size=5,
).map(tuple)


@hypothesis.given(NAMES, RULES, LISTS, LISTS, LISTS)
def test_a_pass_means_that_the_nodes_may_pull_it(
    image: str,
    rules: tuple[MirrorRule, ...],
    allowed: tuple[str, ...],
    blocked: tuple[str, ...],
    insecure: tuple[str, ...],
) -> None:
    name, seen = parse_reference(image), ImageFacts(rules, RegistrySources(allowed, blocked, insecure))
    (found,) = check(wishes(compute=image), seen)
    taken = find_pull_path(name, seen)
    rejected = any(is_in_scope(scope, name) for scope in blocked) or bool(
        allowed and not any(is_in_scope(scope, name) for scope in allowed)
    )
    assert (found.status == "fail") == (rejected or not (taken.mirrors or taken.source)), found
    if found.status == "pass":
        assert taken.mirrors or not taken.rules
    fitting = [item for item in rules if item.form == name.form and count_matched(item.source, name.repository)]
    for mirror in taken.mirrors:
        assert any(mirror.startswith(part) for item in fitting for part in item.mirrors)
        assert (
            not any(count_matched(scope, mirror) for scope in blocked)
            or any(count_matched(item.source, mirror) for item in rules)
            or any(count_matched(scope, mirror) for scope in insecure)
        )
    # a rule for names of the other form changes nothing, unless it fits better, or something is blocked
    own, others = (
        tuple(item for item in rules if item.form == name.form),
        [item for item in rules if item.form != name.form],
    )
    before = find_pull_path(name, ImageFacts(own, seen.registries))
    better = any(
        count_matched(item.source, name.repository) and len(item.source) >= len(before.scope) for item in others
    )
    if not better and not blocked and not any(item.never for item in rules):
        assert before.mirrors == taken.mirrors
