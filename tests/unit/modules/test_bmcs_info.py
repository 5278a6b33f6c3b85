# SPDX-License-Identifier: GPL-3.0-or-later

"""What stage platform asks of the BMCs, under a real ansible-playbook: addresses and credentials are variables of
nodes, and no secret gets anywhere."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import typing

import pytest
import yaml
from ansible.parsing.vault import VaultLib, VaultSecret

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import read_bmc_of_node
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_facts
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.check import Facts
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import RunStart
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.bmc_server import (
    BASIC,
    PASSWORD,
    TOKEN,
    USER,
    BmcServer,
    Certificates,
    tree,
)
from lab.bmc.server import Fault

pytestmark = pytest.mark.processes

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUN = "20260102T030405Z-aaaaaa"
WRONG = "an0ther-w0rd"
SECRETS = (PASSWORD, TOKEN, BASIC, WRONG)
Variables = dict[str, typing.Any]


class Vaulted(str):
    """A text that is written as a vault."""


yaml.SafeDumper.add_representer(Vaulted, lambda dumper, text: dumper.represent_scalar("!vault", str(text), style="|"))


def vaulted(text: str, word: str) -> Vaulted:
    return Vaulted(VaultLib([("default", VaultSecret(word.encode()))]).encrypt(text).decode())


class Site:
    """An inventory, and the role of the stage on localhost."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.folder = FactFolder(str(path / "report"), RUN)
        self.output = ""

    def play(
        self, hosts: typing.Mapping[str, Variables], role: typing.Optional[Variables] = None, **environment: str
    ) -> int:
        """:returns: the code of ansible-playbook"""
        self.folder.begin(RunStart(RUN, "2026-01-02T03:04:05+00:00", nodes=tuple(hosts)))
        kept = {"group/linerate.rdma.facts": {"facts_dir": self.folder.report_dir, "run": RUN}}
        debug = {"name": "Show", "ansible.builtin.debug": {"var": "hostvars.localhost"}}
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": kept,
            "roles": [{"role": "linerate.rdma.platform", **(role or {})}],
        }
        (self.path / "play.yml").write_text(yaml.safe_dump([{**play, "post_tasks": [debug]}]), encoding="utf-8")
        (self.path / "hosts.yml").write_text(yaml.safe_dump({"rdma_nodes": {"hosts": dict(hosts)}}), encoding="utf-8")
        (self.path / "word").write_text("w0rd-of-the-vault", encoding="utf-8")
        variables = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "RDMA_BMC_"))},
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"),
            "ANSIBLE_HOME": str(self.path / "home"),
            "ANSIBLE_LOG_PATH": str(self.path / "ansible.log"),
            "ANSIBLE_NOCOLOR": "1",
            **environment,
        }
        program = os.environ.get("LINERATE_ANSIBLE_PLAYBOOK") or str(
            pathlib.Path(sys.executable).parent / "ansible-playbook"
        )
        command = [program, "-vvvv", "-i", "hosts.yml", "--vault-password-file", "word", "play.yml"]
        done = subprocess.run(
            command,
            cwd=self.path,
            env=variables,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        self.output = done.stdout + done.stderr
        written = "".join(path.read_text(encoding="utf-8") for path in (self.path / "report").rglob("*.json"))
        for place, text in (
            ("output", self.output),
            ("log", (self.path / "ansible.log").read_text()),
            ("facts", written),
        ):
            assert not [secret for secret in SECRETS if secret in text], place
        return done.returncode

    def error(self, node: str) -> str:
        return str(self.folder.of_nodes("bios", [node])[node]["error"])

    def asked(self) -> typing.Any:
        return self.folder.value("bmcs")


@pytest.fixture
def site(tmp_path: pathlib.Path) -> Site:
    return Site(tmp_path)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def servers(certificates: Certificates) -> typing.Iterator[tuple[BmcServer, BmcServer]]:
    """A good one, and one that repeats in its refusals what it was sent."""
    with contextlib.ExitStack() as stack:
        good, bad = (stack.enter_context(BmcServer(tree("dell"), certificates.of())) for _number in range(2))
        bad.faults["/redfish/v1/Systems"] = Fault(status=403)
        yield good, bad


def test_each_way_to_a_bmc_and_no_secret_anywhere(
    site: Site, certificates: Certificates, servers: tuple[BmcServer, BmcServer]
) -> None:
    good, bad = servers
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        at = {"rdma_bmc_address": "localhost", "rdma_bmc_port": good.port}
        hosts: dict[str, Variables] = {
            "by-environment": at,
            "by-vault": {**at, "rdma_bmc_user": USER, "rdma_bmc_password": vaulted(PASSWORD, "w0rd-of-the-vault")},
            "by-template": {
                **at,
                "rdma_bmc_address": "{{ 'local' ~ 'host' }}",
                "rdma_bmc_port": "{{ 1 * " + str(good.port) + " }}",
                "rdma_bmc_token": TOKEN,
            },
            "closed": {**at, "rdma_bmc_port": closed.getsockname()[1]},
            "refused": {**at, "rdma_bmc_port": bad.port},
            "wrong": {**at, "rdma_bmc_password": WRONG},
            "undefined": {**at, "rdma_bmc_password": "{{ nowhere_to_be_found }}"},
            "sealed": {**at, "rdma_bmc_password": vaulted(WRONG, "another word")},
            "no-port": {**at, "rdma_bmc_port": "https"},
            "a-url": {**at, "rdma_bmc_address": f"https://root:{WRONG}@bmc"},
            "without": {},
            "blank": {"rdma_bmc_address": "", "rdma_bmc_password": "{{ nowhere_to_be_found }}"},
        }
        role = {"platform_bmc_ca_path": str(certificates.authority), "platform_bmc_seconds": 20}
        assert site.play(hosts, role, RDMA_BMC_USER=USER, RDMA_BMC_PASSWORD=PASSWORD) == 0, site.output
    assert site.asked() == sorted(set(hosts) - {"without", "blank"})
    facts = load(Facts, read_facts(site.folder, "platform")[0], "platform").bioses
    answered = {node for node, one in facts.items() if one.value is not None}
    assert answered == {"by-environment", "by-vault", "by-template"} and set(facts) == set(site.asked()), facts
    assert '"asked": 10' in site.output and '"unanswered": 7' in site.output
    for node, said in {
        "closed": "the connection was refused",
        "refused": "403",
        "wrong": "user or password is wrong",
        "undefined": "the variable rdma_bmc_password could not be read",
        "sealed": "the variable rdma_bmc_password could not be read",
        "no-port": "rdma_bmc_port is not a valid port",
        "a-url": "not the name or the IP address of a BMC",
    }.items():
        assert site.error(node).startswith("failed: ") and said in site.error(node), site.error(node)


def test_without_an_address_nothing_is_asked(site: Site) -> None:
    """Not even for the authorities, which may be missing."""
    assert site.play({"worker-1": {}, "worker-2": {}}, {"platform_bmc_ca_path": "/nowhere.pem"}) == 0, site.output
    assert site.asked() == [] and load(Facts, read_facts(site.folder, "platform")[0], "platform").bioses == {}
    assert not (site.path / "report" / "facts" / "bios").exists()


def test_authorities_that_are_none_fail_the_stage(site: Site) -> None:
    at = {"rdma_bmc_address": "localhost", "rdma_bmc_user": USER, "rdma_bmc_password": PASSWORD}
    assert site.play({"worker-1": at}, {"platform_bmc_ca_path": "/nowhere.pem"}) != 0
    assert "ca_path: /nowhere.pem contains no certificate authorities" in site.output


@pytest.mark.parametrize("port", ["0", "65536", "-1", "4e3", "\u0664\u0664\u0663"])
def test_a_port_is_one(port: str) -> None:
    with pytest.raises(RdmaError, match="rdma_bmc_port is not a valid port"):
        read_bmc_of_node("worker-1", {"address": "bmc", "port": port, "user": USER, "password": PASSWORD})


def test_defaults_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDMA_BMC_TOKEN", TOKEN)
    bmc = read_bmc_of_node("worker-1", {"address": "bmc", "port": "", "user": None})
    assert (bmc.port, bmc.token, bmc.user, bmc.system) == (443, TOKEN, "", "")
    # the user of a node goes before a token of all
    assert read_bmc_of_node("worker-1", {"address": "bmc", "user": USER, "password": PASSWORD}).token == ""
    assert json.dumps(str(bmc)) == '"the BMC of worker-1 (bmc:443)"'
