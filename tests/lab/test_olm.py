# SPDX-License-Identifier: GPL-3.0-or-later

"""An operator by OLM's own processes and a catalog of the lab: Subscription, ClusterServiceVersion that has succeeded, upgrade shown, and the way back."""

from __future__ import annotations

import contextlib
import typing

import pytest
import yaml

from .conftest import Lab

pytestmark = pytest.mark.thorough

OPERATORS = "operators.coreos.com/v1alpha1"
#: of the lab's catalog
PACKAGE, CATALOG, CATALOGS = "linerate-example", "lab", "olm"
SPACE = "linerate-olm"
WISH = {"package": PACKAGE, "namespace": SPACE, "source": CATALOG, "source_namespace": CATALOGS, "target_namespaces": [SPACE]}


@pytest.fixture
def olm(lab: Lab) -> typing.Iterator[Lab]:
    """The lab with OLM's definitions, its two processes and a catalog."""
    with contextlib.ExitStack() as stack:
        started = lab.command("olm", "on")
        stack.callback(lab.command, "olm", "off")
        assert started.returncode == 0, started.stderr
        yield lab


def play(lab: Lab, *options: str, **arguments: typing.Any) -> typing.Any:
    """The module in a playbook of its own."""
    task = {"name": "Operators by OLM", "linerate.rdma.olm": {"kubeconfig": "{{ rdma_kubeconfig }}", **arguments}, "register": "answer"}
    shown = {
        "name": "Show it",
        "ansible.builtin.copy": {"content": "{{ answer | to_json }}", "dest": str(lab.folder / "answer.json"), "mode": "0600"},
        "check_mode": False,
    }
    book = lab.folder / "olm.yml"
    book.write_text(yaml.safe_dump([{"name": "OLM", "hosts": "localhost", "gather_facts": False, "tasks": [task, shown]}]))
    run = lab.playbook(str(book), *options)
    assert run.code == 0, run.end
    return yaml.safe_load((lab.folder / "answer.json").read_text())


def names(lab: Lab, kind: str) -> typing.Set[str]:
    return {item["metadata"]["name"] for item in lab.objects(f"{OPERATORS}/{kind}") if item["metadata"].get("namespace") == SPACE}


def test_an_operator_is_installed_by_olm_and_taken_back(olm: Lab) -> None:
    dry = play(olm, "--check", operators=[WISH])
    assert dry["changed"] and dry["olm"]["operators"][0]["phase"] == "planned" and names(olm, "Subscription") == set()

    done = play(olm, operators=[WISH], wait_seconds=180)
    (stand,) = done["olm"]["operators"]
    assert stand["phase"] == "ready" and stand["ours"] and stand["installed"] == stand["wanted"], stand
    assert names(olm, "ClusterServiceVersion") == {stand["installed"]}
    again = play(olm, operators=[WISH], wait_seconds=180)
    assert not again["changed"] and again["olm"] == done["olm"]

    play(olm, state="absent")
    assert names(olm, "Subscription") == names(olm, "ClusterServiceVersion") == set()
    assert not play(olm, state="absent")["changed"]


def test_a_channel_that_does_not_exist_is_named(olm: Lab) -> None:
    try:
        (stand,) = play(olm, operators=[{**WISH, "channel": "absent"}], wait_seconds=120)["olm"]["operators"]
        assert stand["phase"] == "failed" and "channel absent" in stand["detail"] and stand["remedy"], stand
    finally:
        play(olm, state="absent")
