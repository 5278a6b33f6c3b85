# SPDX-License-Identifier: GPL-3.0-or-later

"""images_info asks a mirror over TLS for all that a run would pull; charts and their images come from there. Nothing of
a user's password is shown."""

from __future__ import annotations

import json
import pathlib
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators import mirror as check
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.mirror import MirrorFacts
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.tests.unit.bmc_server import Certificates
from ansible_collections.linerate.rdma.tests.unit.modules.test_cluster_doors import FABRIC, run_module
from ansible_collections.linerate.rdma.tests.unit.registry_server import BASIC, PASSWORD, Registry, RegistryServer

# a Helm whose charts name an image by a value, and one that is fixed in a template
HELM = """#!/bin/sh
case "$3" in oci://localhost*) ;; *) echo "Error: no way to $3" >&2; exit 1 ;; esac
if [ "$1" = show ]; then echo "image: {{repository: quay.io/site/$(basename "$3")}}"; exit 0; fi
for word; do [ "$before" = --values ] && values=$word; before=$word; done
repository=$(sed -n 's/.*"image": {{"repository": "\\([^"]*\\)".*/\\1/p' "$values")
cat <<END
kind: Deployment
spec: {{template: {{spec: {{containers: [{{image: "${{repository:-quay.io/site/$(basename "$3")}}:1"}}{fixed}]}}}}}}
END
"""
PODS = {"image": "registry.example/tools:1"}
CHART = "ghcr.io/k8snetworkplumbingwg/sriov-network-operator-chart"
ALL = {
    "m/registry.example/tools": ["1"],
    f"m/{CHART}": ["1.6.0"],
    "m/quay.io/site/sriov-network-operator-chart": ["1"],
}


class Site:
    """A mirror, a Helm and the options that name both."""

    def __init__(self, folder: pathlib.Path, registry: Registry, certificates: Certificates) -> None:
        self.folder, self.registry, self.certificates = folder, registry, certificates
        self.server = RegistryServer(registry, certificates.of())
        self.helm("")

    def helm(self, fixed: str) -> None:
        path = self.folder / "helm"
        path.write_text(HELM.format(fixed=fixed), encoding="utf-8")
        path.chmod(0o755)

    @property
    def cluster(self) -> dict[str, typing.Any]:
        return {"mirror": f"{self.registry.address}/m", "node_selector": {"role": "gpu"}}

    def options(self, **more: typing.Any) -> dict[str, typing.Any]:
        given = {"fabrics": [{**FABRIC, "pods": PODS}], "cluster": self.cluster, "by": "helm", "ask_mirror": True}
        return {
            **given,
            "helm_binary": str(self.folder / "helm"),
            "registry_ca": str(self.certificates.authority),
            **more,
        }


@pytest.fixture(name="site")
def _site(tmp_path: pathlib.Path) -> typing.Iterator[Site]:
    site = Site(tmp_path, Registry(images=dict(ALL)), Certificates(tmp_path))
    yield site
    site.server.stop()


Answer = tuple[int, dict[str, typing.Any]]


def look(site: Site, capsys: pytest.CaptureFixture[str], **more: typing.Any) -> dict[str, typing.Any]:
    code, result = run_module("images_info", site.options(**more), capsys)
    assert (code, result["changed"]) == (0, False), result
    return result


def statuses(site: Site, result: dict[str, typing.Any]) -> dict[str, str]:
    facts = load(MirrorFacts, result["mirror"])
    return {
        finding.subject: finding.status
        for finding in check.check(parse_intent([{**FABRIC, "pods": PODS}], None, site.cluster), facts)
    }


def test_all_is_there(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    result = look(site, capsys)
    assert result["complete"] is True
    assert set(statuses(site, result).values()) == {"pass"}
    assert {answer["source"] for answer in result["mirror"]["answers"]} == {
        "registry.example/tools:1",
        f"{CHART}:1.6.0",
        "quay.io/site/sriov-network-operator-chart:1",
    }
    assert look(site, capsys, _ansible_check_mode=True)["mirror"] == result["mirror"]


def test_what_is_missing_is_named_and_is_there_once_it_was_put(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    tags = site.registry.images.pop("m/registry.example/tools")
    result = look(site, capsys)
    assert result["complete"] is False
    assert [subject for subject, status in statuses(site, result).items() if status == "fail"] == [
        "registry.example/tools:1"
    ]
    (missing,) = (answer for answer in result["mirror"]["answers"] if answer["state"] == "missing")
    assert missing["put"] == [
        "skopeo copy --all docker://registry.example/tools:1"
        f" docker://{site.registry.address}/m/registry.example/tools:1"
    ]
    site.registry.images["m/registry.example/tools"] = tags
    assert look(site, capsys)["complete"] is True


def test_a_chart_that_names_an_image_in_its_template_is_told(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.helm(', {image: "quay.io/fixed/sidecar:1"}')
    site.registry.images["m/quay.io/fixed/sidecar"] = ["1"]
    result = look(site, capsys)
    assert result["mirror"]["elsewhere"] == ["operator sriov-network-operator: quay.io/fixed/sidecar:1"]
    assert result["complete"] is False


def test_a_chart_that_is_not_to_be_read_leaves_the_rest_known(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    result = look(site, capsys, helm_binary="no-such-helm")
    assert not result["complete"] and "no-such-helm" in result["unlisted"][0]
    assert statuses(site, result)["images of operator sriov-network-operator"] == "unknown"
    assert statuses(site, result)["registry.example/tools:1"] == "pass"


def test_who_installs_nothing_asks_for_no_operator(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    result = look(site, capsys, operators=False, by="auto", helm_binary="no-such-helm")
    assert [answer["source"] for answer in result["mirror"]["answers"]] == ["registry.example/tools:1"]


def test_packages_of_olm_are_the_business_of_their_catalog(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    mirrored = {"sriov-network-operator": {"source": "mirrored"}}
    result = look(site, capsys, by="olm", packages=mirrored)
    assert result["complete"] is True
    assert [answer["source"] for answer in result["mirror"]["answers"]] == ["registry.example/tools:1"]


def test_a_user_of_the_file_gets_in_and_is_never_shown(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    site.registry.way = "bearer"
    assert set(statuses(site, look(site, capsys)).values()) == {"unknown"}
    file = tmp_path / "auth.json"
    file.write_text(json.dumps({"auths": {site.registry.address: {"auth": BASIC}}}), encoding="utf-8")
    result = look(site, capsys, registry_auth_file=str(file))
    assert result["complete"] is True
    assert BASIC not in json.dumps(result) and PASSWORD not in json.dumps(result)


@pytest.mark.parametrize("text", [None, f'{{"auths": "{PASSWORD}"}}', PASSWORD])
def test_a_file_of_users_that_is_none_is_refused_without_its_text(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, text: typing.Optional[str]
) -> None:
    file = tmp_path / "auth.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    code, result = run_module("images_info", site.options(registry_auth_file=str(file)), capsys)
    assert code == 1 and str(file) in result["msg"] and PASSWORD not in json.dumps(result)


def test_a_registry_that_fails_or_is_away_is_no_pass(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.registry.status = {"/manifests/1": 500}
    result = look(site, capsys)
    assert statuses(site, result)[f"registry {site.registry.address}"] == "unknown" and not result["complete"]
    assert statuses(site, look(site, capsys, registry_ca=None)) == {f"registry {site.registry.address}": "unknown"}


def test_without_a_mirror_nobody_is_asked(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    code, result = run_module("images_info", site.options(cluster={"node_selector": {"role": "gpu"}}), capsys)
    assert code == 0 and "mirror" not in result and site.registry.asked == []
