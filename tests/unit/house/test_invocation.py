# SPDX-License-Identifier: GPL-3.0-or-later

"""What site.yml is asked for: what runs no stage is refused with the names of the stages."""

from __future__ import annotations

import typing

import ansible.context
import pytest
from ansible.errors import AnsibleLookupError

from ansible_collections.linerate.rdma.plugins.lookup.invocation import LookupModule
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES
from ansible_collections.linerate.rdma.plugins.plugin_utils import _first_cause
from ansible_collections.linerate.rdma.plugins.plugin_utils._invocation import explain_limit, explain_refusal


@pytest.mark.parametrize(
    "tags", [[], ["all"], ["tagged"], ["fabric"], ["discover", "report"], ["report"], *[[stage] for stage in STAGES]]
)
@pytest.mark.parametrize("skip", [[], ["host"], ["never"], ["untagged"], ["molecule-notest", "notest"]])
def test_a_run_of_stages_is_fine(tags: list[str], skip: list[str]) -> None:
    assert bool(explain_refusal(tags, skip, None)) == (tags == skip != [])


@pytest.mark.parametrize(
    ("tags", "skip", "task", "said"),
    [
        (
            ["fabrik"],
            [],
            None,
            "--tags names fabrik, which is no stage (did you mean 'fabric'?); the stages are validate, discover,",
        ),
        (["fabric", "x"], [], None, "--tags names x, which is no stage; "),
        (["untagged"], [], None, "--tags names untagged"),
        (["always"], [], None, "--tags names always"),
        ([], ["all"], None, "--tags all and --skip-tags all leave no stage to run"),
        (["fabric"], ["tagged"], None, "--tags fabric and --skip-tags tagged leave no stage to run"),
        (["fabric"], ["fabric"], None, "leave no stage to run"),
        (["fabric"], [], "Judge", "--start-at-task 'Judge' was given. "),
    ],
)
def test_what_would_end_with_0_and_prove_nothing(
    tags: list[str], skip: list[str], task: typing.Optional[str], said: str
) -> None:
    text = explain_refusal(tags, skip, task)
    assert said in text and all(stage in text for stage in STAGES)


@pytest.mark.parametrize("option", ["listtags", "listtasks", "listhosts", "syntax"])
def test_what_only_lists_is_never_refused(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """--list-tags sets the tag 'never' itself."""
    given = {"tags": ("all", "never"), "skip_tags": (), "start_at_task": None}
    monkeypatch.setattr(ansible.context, "CLIARGS", given)
    lookup = object.__new__(LookupModule)
    with pytest.raises(AnsibleLookupError, match="--tags names never"):
        lookup.run(["localhost"])
    monkeypatch.setattr(ansible.context, "CLIARGS", {**given, option: True})
    assert lookup.run(["localhost"]) == ["localhost"]
    monkeypatch.setattr(ansible.context, "CLIARGS", {**given, "tags": ("all",), "step": True})
    assert lookup.run(["localhost"]) == ["localhost"]


@pytest.mark.parametrize(
    ("subset", "refused"),
    [
        (None, False),
        ("localhost,worker-1", False),
        ("worker-1:localhost", False),
        ("all", True),
        ("worker-1:local*", True),
        ("rdma_nodes", True),
        ("rdma_nodes,!localhost", True),
        ("worker-1:&localhost", True),
    ],
)
def test_a_limit_without_localhost_is_refused_where_the_inventory_gave_no_nodes(
    subset: typing.Optional[str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ansible itself would warn, run nothing and end with 0."""
    cause = "kubeconfig mine.conf: there is no such file"
    assert explain_limit(subset, "") == ""
    assert (f"the inventory gives no nodes: {cause}" in explain_limit(subset, cause)) == refused
    monkeypatch.setattr(ansible.context, "CLIARGS", {"tags": ("all",), "skip_tags": (), "subset": subset})
    monkeypatch.setattr(_first_cause, "_causes", [cause])
    lookup = object.__new__(LookupModule)
    if refused:
        with pytest.raises(AnsibleLookupError, match="name localhost as well: --limit 'localhost,"):
            lookup.run(["localhost"])
    else:
        assert lookup.run(["localhost"]) == ["localhost"]
