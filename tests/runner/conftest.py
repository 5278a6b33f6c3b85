# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that several tests look at; each runs once. By 'make runner', which 'make test' leaves out."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import yaml

from ansible_collections.linerate.rdma.tests.runner.job import CHECKOUT, Data, Ended, Job, launch

EXAMPLE = CHECKOUT / "extensions" / "molecule" / "judge"
#: as a credential type of AWX's own, and those that linerate.rdma.awx makes, put them into the environment; and one
#: into a variable
SECRETS = {
    "K8S_AUTH_API_KEY": "ey-n0b0dy-may-see-1",
    "RDMA_BMC_PASSWORD": "n0b0dy-may-see-2",
    "RDMA_BMC_TOKEN": "n0b0dy-may-see-3",
    "RDMA_REPORT_ARCHIVE_TOKEN": "n0b0dy-may-see-4",
}
SIGNATURE, INJECTED = "n0b0dy-may-see-5", "n0b0dy-may-see-6"

#: what a job of AWX leaves; the second is the volume that all jobs see
Launched = tuple[Ended, pathlib.Path]


def intent() -> Data:
    read: Data = yaml.safe_load((EXAMPLE / "vars" / "intent.yml").read_text(encoding="utf-8"))
    return read


def inventory() -> Data:
    """Two nodes, and the intent in variables of all hosts, as the source of an inventory leaves them in AWX."""
    nodes = ("node-1", "node-2")
    variables = {
        name: {"remote_tower_enabled": "true", "remote_tower_id": number} for number, name in enumerate(nodes, 1)
    }
    return {
        "all": {"vars": intent(), "children": ["rdma_nodes"]},
        "rdma_nodes": {"hosts": list(nodes)},
        "_meta": {"hostvars": variables},
    }


def judged(folder: pathlib.Path, variables: Data) -> Launched:
    """The template 'judge', by the facts of two nodes on a volume."""
    volume = folder / "volume"
    shutil.copytree(EXAMPLE / "run", volume / "run")
    asked = {"rdma_report_dir": str(volume / "run"), "rdma_judged_dir": str(volume / "judged"), **variables}
    return launch(Job("playbooks/judge.yml", asked), folder / "job"), volume


@pytest.fixture(scope="session")
def green(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    return judged(tmp_path_factory.mktemp("green"), {})


@pytest.fixture(scope="session")
def red(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    (fabric,) = intent()["rdma_fabrics"]
    return judged(
        tmp_path_factory.mktemp("red"),
        {"rdma_fabrics": [{**fabric, "select": {**fabric["select"], "hcas_per_node": 32}}]},
    )


@pytest.fixture(scope="session")
def validated(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """The template 'stage validate'. The image's working directory is no place for a report."""
    folder = tmp_path_factory.mktemp("validated")
    return (
        launch(Job("playbooks/validate.yml", {"rdma_report_dir": str(folder / "volume")}, inventory()), folder / "job"),
        folder / "volume",
    )


@pytest.fixture(scope="session")
def secretive(tmp_path_factory: pytest.TempPathFactory) -> Launched:
    """The template 'site' with all credentials and at AWX's third verbosity; of the stages only what needs no
    cluster."""
    folder = tmp_path_factory.mktemp("secretive")
    # nobody listens there
    environment = {
        **SECRETS,
        "K8S_AUTH_HOST": "https://127.0.0.1:1",
        "K8S_AUTH_VERIFY_SSL": "False",
        "RDMA_REPORT_ARCHIVE": f"https://127.0.0.1:1/reports/{{run}}.tar.gz?signature={SIGNATURE}",
    }
    variables = {"rdma_report_dir": str(folder / "volume"), "report_archive_retries": 1, "report_archive_delay": 1}
    job = Job(
        "playbooks/site.yml",
        variables,
        inventory(),
        environment,
        {"rdma_bmc_password": INJECTED},
        verbosity=3,
        tags="validate,report",
    )
    return launch(job, folder / "job"), folder / "volume"
