# SPDX-License-Identifier: GPL-3.0-or-later

"""Each finding has one explanation, in the file of its stage, and one page that the report leads to. What the pages
name exists."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.version import DOCUMENTATION
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.check_ids import (
    CHECKS,
    PAGES,
    address_of,
    name_page,
)
from dev import findings
from dev.explained import EXPLAINED
from dev.explained.explanation import Explanation

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEARDOWN = frozenset(
    check
    for path in (ROOT / "plugins/module_utils/_check/teardown").glob("*.py")
    for check in re.findall(r'"(teardown\.[a-z_]+)"', path.read_text(encoding="utf-8"))
)
#: whose commands are shown, by the package or program that has them
TOOLS = {
    "infiniband-diags": (
        "sminfo saquery ibstat ibping ibqueryerrors iblinkinfo ibnetdiscover ibhosts ibswitches ibportstate ibtracert"
        " perfquery smpquery dump_fts"
    ),
    "rdma-core": "ibv_devinfo rping",
    "perftest": "ib_write_bw ib_write_lat",
    "mstflint, MFT": "mstconfig mstflint mlxlink",
    "scripts of DOCA-OFED": "mlnx_qos cma_roce_tos show_gids",
    "iproute2": "ip rdma devlink dcb",
    "the system": (
        "cat grep ls lsns lspci setpci dmesg lsmod modinfo modprobe sysctl swapon lscpu uname free df env ulimit"
        " systemctl journalctl timedatectl"
    ),
    "packages of the distribution": (
        "mokutil ausearch chronyc ethtool numactl cpupower tuned-adm driverctl lldptool ipcalc curl tcpdump ssh"
    ),
    "the cluster": "kubectl oc helm skopeo crio",
    "Dell": "racadm",
    "NVIDIA": "nvidia-smi nvidia-imex-ctl",
    "UCX": "ucx_info",
    "Ansible": "ansible ansible-playbook ansible-inventory ansible-doc python3",
}
NAMES = {tool for tools in TOOLS.values() for tool in tools.split()}
PLACEHOLDERS = {
    "NODE",
    "ADDRESS",
    "DEVICE",
    "LID",
    "PORT",
    "NAMESPACE",
    "POD",
    "NAME",
    "IMAGE",
    "MIRROR",
    "FILE",
    "SOURCE_LID",
    "DESTINATION_LID",
}
#: values of options and settings, which are no placeholders
WORDS = {
    "CONFIG_PCI_P",
    "PDMA",
    "SRIOV_EN",
    "NUM_OF_VFS",
    "LINK_TYPE_P",
    "BIOS",
    "PFC",
    "PERFORMANCE,CLOCK,ECC",
    "CAP_EXP",
}
#: kinds as 'kubectl get' takes them: of Kubernetes, of OpenShift, of operators with their group where a short name may
#: be somebody else's
KINDS = set(
    "nodes node pods pod events deployments deployment daemonsets cronjobs,daemonsets,deployments configmap configmaps"
    " namespace crd storageclasses persistentvolumes persistentvolumeclaims poddisruptionbudgets"
    " validatingwebhookconfigurations"
    " network-attachment-definitions sriovnetworknodepolicies,network-attachment-definitions installplans"
    " catalogsources packagemanifests clusterserviceversions computedomains nodefeatures machineconfigpools"
    " machineconfigpool kubeletconfig"
    " kubeletconfigs tuned profiles.tuned.openshift.io imagedigestmirrorset,imagetagmirrorset"
    " image.config.openshift.io sriovnetworknodestates.sriovnetwork.openshift.io"
    " sriovnetworknodepolicies.sriovnetwork.openshift.io sriovnetworkpoolconfigs.sriovnetwork.openshift.io"
    " sriovoperatorconfigs.sriovnetwork.openshift.io nicclusterpolicies.mellanox.com clusterpolicies.nvidia.com"
    " nicclusterpolicies.mellanox.com,clusterpolicies.nvidia.com nicdevices.configuration.net.nvidia.com"
    " nicnodepolicies.mellanox.com,nvidiadrivers.nvidia.com ippools.nv-ipam.nvidia.com cidrpools.nv-ipam.nvidia.com"
    " ippools.whereabouts.cni.cncf.io subscriptions.operators.coreos.com localqueues.kueue.x-k8s.io"
    " nvidiadrivers.nvidia.com clusterqueues.kueue.x-k8s.io machineconfigs resourceclaimtemplates deviceclasses"
    " resourceslices".split()
)


def texts(item: Explanation) -> tuple[str, ...]:
    return (item.means, item.measured, *item.causes, item.remedy)


def test_each_finding_is_explained_once() -> None:
    assert TEARDOWN
    assert set(EXPLAINED) == {name_page(check) for check in CHECKS} | TEARDOWN
    homes: dict[str, list[str]] = {}
    for path in (ROOT / "dev" / "explained").glob("*.py"):
        for name in re.findall(
            r'^    "([a-z_]+\.[a-z_]+)": Explanation\(', path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            homes.setdefault(name, []).append(path.stem)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
    # in the file of the stage
    assert [name for name, places in homes.items() if places[0] not in (name.partition(".")[0], "job", "frame")] == []


@pytest.mark.parametrize("name", EXPLAINED)
def test_an_explanation_says_something(name: str) -> None:
    item = EXPLAINED[name]
    assert [text for text in texts(item) if not text.rstrip("`)").endswith(".")] == []
    # the shortest of each that says something
    assert len(item.means.split()) >= 6 and len(item.measured.split()) >= 3 and len(item.remedy.split()) >= 4
    assert item.causes and len(set(item.causes)) == len(item.causes)
    assert item.look


def test_no_explanation_is_a_copy() -> None:
    for field in ("means", "remedy"):
        said: dict[str, list[str]] = {}
        for name, item in EXPLAINED.items():
            said.setdefault(getattr(item, field), []).append(name)
        same = [names for names in said.values() if len(names) > 1]
        # rights and nodes that do not answer are the same remedy wherever they are met
        assert all(
            field == "remedy" and {name.partition(".")[2] for name in names} <= {"read", "lint_read", "node", "rights"}
            for names in same
        ), same


@pytest.mark.parametrize("name", EXPLAINED)
def test_commands_are_real_ones(name: str) -> None:
    for command in EXPLAINED[name].look:
        words = shlex.split(command)
        assert words[0] in NAMES, command
        spelled = set(re.findall(r"(?<![A-Za-z])[A-Z][A-Z_]+[A-Z](?:,[A-Z]+)*(?![A-Za-z])", command))
        assert spelled <= PLACEHOLDERS | WORDS, command
        if words[0] in ("kubectl", "oc"):
            verbs = [word for word in words[1:] if not word.startswith("-") and word not in PLACEHOLDERS]
            if "get" in words or "describe" in words:
                verb = words.index("get" if "get" in words else "describe")
                assert words[verb + 1] in KINDS or words[verb + 1] == "--raw", command
            else:
                assert {"logs", "auth", "api-resources", "cluster-info", "config", "apply", "explain"} & set(verbs), (
                    command
                )
        if words[0] == "ansible-playbook":
            assert (ROOT / "playbooks" / f"{words[1].rpartition('.')[2]}.yml").is_file(), command
        if words[0] == "ansible-doc":
            assert words[1:3] == ["-t", "role"] and (ROOT / "roles" / words[3].rpartition(".")[2]).is_dir(), command


@pytest.fixture(scope="module")
def options() -> set[str]:
    """Of all roles."""
    specs = [
        yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")
    ]
    return {option for spec in specs for entry in spec.values() for option in entry.get("options") or ()}


@pytest.mark.parametrize("name", EXPLAINED)
def test_what_is_named_exists(name: str, options: set[str]) -> None:
    schema = json.loads((ROOT / "docs/intent.schema.json").read_text(encoding="utf-8"))
    roles = tuple(f"{path.name}_" for path in (ROOT / "roles").iterdir())
    for text in texts(EXPLAINED[name]):
        for code in re.findall(r"`([^`]+)`", text):
            if code.startswith("rdma_cluster."):
                where = schema["properties"]["rdma_cluster"]
                for key in code.partition(":")[0].split(".")[1:]:
                    where = inner(where, schema)["properties"][key]
            elif (
                re.fullmatch(r"[a-z_]+\.[a-z_]+", code)
                and code.partition(".")[0] in {check.partition(".")[0] for check in CHECKS}
                and code not in FIELDS
            ):
                assert code in CHECKS, code
            elif re.match(r"[a-z]+_[a-z_]+(: |$)", code) and code.startswith(roles):
                assert code.partition(":")[0] in options, code


#: of a fabric in the intent, and of other objects; their names begin as a stage does
FIELDS = {
    "network.max_tx_rate",
    "network.pod_security",
    "bandwidth.layers",
    "network.name",
    "network.link_state",
    "network.meta_plugins",
    "bandwidth.rounds",
    "bandwidth.sweep",
}


def inner(where: typing.Any, schema: typing.Any) -> typing.Any:
    """The object that a part of a schema is, be it by reference or one of several."""
    if "$ref" in where:
        return inner(schema["$defs"][where["$ref"].rpartition("/")[2]], schema)
    # an expression, or what is meant; null, or what is meant
    parts = [*([where["else"]] if "else" in where else []), *where.get("anyOf", ()), *where.get("oneOf", ())]
    return next((found for found in (inner(part, schema) for part in parts) if "properties" in found), where)


def test_the_pages_are_made_from_the_explanations() -> None:
    there = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs/findings").glob("*")}
    assert there == findings.pages(), "run: PYTHONPATH=build/collections build/venv/bin/python -m dev.findings"


def test_the_waiver_that_a_page_shows_can_be_taken_as_it_is() -> None:
    blocks = [
        block for text in findings.pages().values() for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    ]
    assert len(blocks) > 50
    for block in blocks:
        (key,) = re.findall(r"^\w.*", block, re.MULTILINE)
        assert key == "rdma_waivers:" and set(yaml.safe_load(block)["rdma_waivers"][0]) == {
            "check",
            "subject",
            "reason",
        }


def test_each_finding_leads_to_its_page() -> None:
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    assert galaxy["documentation"] == DOCUMENTATION
    for check in CHECKS:
        address = address_of(check)
        assert address.startswith(f"{galaxy['documentation']}/")
        assert (ROOT / "docs" / address[len(DOCUMENTATION) + 1 :]).is_file(), address
    assert address_of("fabric.run", "https://docs.example/{page}.html") == "https://docs.example/stage.run.html"
    assert address_of("validate.intent") == PAGES.replace("{page}", "validate.intent")
