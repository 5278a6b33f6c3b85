# SPDX-License-Identifier: GPL-3.0-or-later

"""kernel_settings as Ansible runs it, on a node in a temporary root whose files take what they are given, or not."""

from __future__ import annotations

import io
import json
import pathlib
import subprocess
import typing

import pytest
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.module_utils._model.node.file_owner import make_rename_command
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import SYSCTL, TMPFILES
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes import set_kernel_settings
from ansible_collections.linerate.rdma.plugins.modules import kernel_settings

Result = dict[str, typing.Any]
GOVERNOR = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
WANTED: Result = {
    "sysctl": {"vm.swappiness": "10", "vm.min_free_kbytes": ">65536", "net.ipv4.neigh.default.gc_thresh1": ">8192"},
    "sysfs": {GOVERNOR: "performance"},
}


class Node:
    """A node's files."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._monkeypatch = root, monkeypatch
        monkeypatch.setattr(kernel_settings, "ROOT", str(root))
        self.write("proc/sys/vm/swappiness", "60\n")
        self.write("proc/sys/vm/min_free_kbytes", "45056\n")
        # another file on the node sets more than is asked for
        self.write("proc/sys/net/ipv4/neigh/default/gc_thresh1", "16384\n")
        for number in range(2):
            self.write(GOVERNOR.lstrip("/").replace("*", str(number)), "powersave\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def ours(self) -> list[str]:
        return [name for name in (SYSCTL, TMPFILES) if (self.root / name).exists()]

    def run(self, check: bool = False, **options: typing.Any) -> Result:
        output = io.StringIO()
        with (
            self._monkeypatch.context() as patch,
            patch_module_args({**options, "_ansible_check_mode": check, "_ansible_diff": True}),
        ):
            patch.setattr("sys.stdout", output)
            with pytest.raises(SystemExit):
                kernel_settings.main()
        answer: Result = json.loads(output.getvalue().strip().splitlines()[-1])
        return answer


@pytest.fixture(name="node")
def _node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_check_then_run_then_again_then_a_change_then_back(node: Node) -> None:
    checked = node.run(check=True, **WANTED)
    assert node.ours() == [] and node.read("proc/sys/vm/swappiness") == "60\n"
    made = node.run(**WANTED)
    assert checked == made and made["changed"] and made["absent"] == []
    assert "sysctl vm.min_free_kbytes: 45056 -> 65536" in made["changes"] and f"wrote /{SYSCTL}" in made["changes"]
    assert made["diff"]["before"] == "" and made["diff"]["after"] == node.read(SYSCTL) + node.read(TMPFILES)
    # what others keep within its bound is theirs
    assert node.read(SYSCTL).splitlines()[2:] == ["vm.min_free_kbytes = 65536", "vm.swappiness = 10"]
    assert node.read(TMPFILES).splitlines()[2:] == [f"w {GOVERNOR} - - - - performance"]
    assert node.read("proc/sys/net/ipv4/neigh/default/gc_thresh1") == "16384\n"
    assert {node.read(GOVERNOR.lstrip("/").replace("*", str(number))) for number in range(2)} == {"performance"}

    assert not node.run(**WANTED)["changed"]
    changed = node.run(sysctl={**WANTED["sysctl"], "vm.swappiness": "1"}, sysfs=WANTED["sysfs"])
    assert changed["changes"] == [f"wrote /{SYSCTL}", "sysctl vm.swappiness: 10 -> 1"]

    gone = node.run(check=True, state="absent")
    assert gone["changes"] == [f"removed /{SYSCTL}", f"removed /{TMPFILES}"] and len(node.ours()) == 2
    assert node.run(state="absent")["changes"] == gone["changes"] and node.ours() == []
    assert node.read("proc/sys/vm/swappiness") == "1" and not node.run(state="absent")["changed"]


def test_a_value_that_something_else_took_back_is_set_again(node: Node) -> None:
    node.run(**WANTED)
    node.write("proc/sys/vm/min_free_kbytes", "4096\n")
    assert node.run(**WANTED)["changes"] == ["sysctl vm.min_free_kbytes: 4096 -> 65536"]


@pytest.mark.parametrize(
    ("bound", "now", "then"),
    [("<10", "60", "10"), ("<10", "5", "5"), (">10", "10", "10"), (">10", "", "10"), (">10", "x", "10")],
)
def test_a_bound_takes_away_nothing_that_fits(node: Node, bound: str, now: str, then: str) -> None:
    node.write("proc/sys/vm/swappiness", now)
    answer = node.run(sysctl={"vm.swappiness": bound})
    assert node.read("proc/sys/vm/swappiness") == then and answer["changed"] is (now != then)


def test_the_chosen_word_of_several_is_the_value(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.write(PAGES.lstrip("/"), "[always] madvise never\n")
    assert not [line for line in node.run(check=True, sysfs={PAGES: "always"})["changes"] if "->" in line]
    # as the kernel shows what it was given
    monkeypatch.setattr(
        set_kernel_settings,
        "_set_kernel_value",
        lambda path, value: node.write(PAGES.lstrip("/"), f"always madvise [{value}]\n"),
    )
    assert f"{PAGES}: [always] madvise never -> never" in node.run(sysfs={PAGES: "never"})["changes"]
    assert not node.run(sysfs={PAGES: "never"})["changed"]


def test_what_the_kernel_does_not_have_is_named_and_left_out(node: Node) -> None:
    answer = node.run(sysctl={"kernel.numa_balancing": "0"}, sysfs={PAGES: "never"})
    assert not answer["changed"] and answer["absent"] == ["kernel.numa_balancing", PAGES] and node.ours() == []


def test_a_value_that_the_kernel_does_not_keep_is_a_failure(node: Node) -> None:
    (node.root / "proc/sys/vm/swappiness").unlink()
    (node.root / "proc/sys/vm/swappiness").symlink_to("/dev/full")
    answer = node.run(sysctl={"vm.swappiness": "10"})
    assert answer["failed"] and "swappiness" in answer["msg"]


@pytest.mark.parametrize(
    "options",
    [
        {"sysctl": {"vm/../../etc/passwd": "1"}},
        {"sysctl": {"..": "1"}},
        {"sysctl": {"vm.swappiness": "10\nkernel.core_pattern = |/x"}},
        {"sysctl": {"vm.swappiness": ">x"}},
        {"sysfs": {"/etc/passwd": "x"}},
        {"sysfs": {"/sys/../etc/passwd": "x"}},
        {"sysfs": {PAGES: "never - -\nw /etc/passwd"}},
    ],
)
def test_what_is_no_setting_is_refused_and_nothing_is_touched(node: Node, options: Result) -> None:
    answer = node.run(**options)
    assert answer["failed"] and "Correct the option, then rerun" in answer["msg"] and node.ours() == []


def test_files_of_another_intent_stay_and_are_named(node: Node) -> None:
    node.run(intent="compute", **WANTED)
    files = {name: node.read(name) for name in (SYSCTL, TMPFILES)}
    assert all("# intent: compute\n" in text for text in files.values())

    node.write("proc/sys/net/core/rmem_max", "100\n")
    refused = node.run(intent="storage", sysctl={"net.core.rmem_max": "200"})
    assert refused["changes"] == [] and not refused["changed"]
    assert f"/{SYSCTL} belongs to the intent 'compute'" in refused["refusal"]
    assert node.read("proc/sys/net/core/rmem_max") == "100\n"
    # the same values are used as they are, and what it does not ask for is no reason to refuse
    used = node.run(intent="storage", sysctl={"vm.swappiness": "10"})
    assert used["refusal"] == "" and not used["changed"]

    gone = node.run(intent="storage", state="absent")
    assert gone["changes"] == [] and gone["stays"] == [
        f"/{SYSCTL} of the intent 'compute'",
        f"/{TMPFILES} of the intent 'compute'",
    ]
    assert {name: node.read(name) for name in (SYSCTL, TMPFILES)} == files
    assert node.run(intent="compute", state="absent")["stays"] == [] and node.ours() == []


def test_the_files_of_a_renamed_intent_are_its_own_after_the_command_of_the_remedy(node: Node) -> None:
    node.run(intent="compute", **WANTED)
    other: Result = {"sysctl": {"net.core.rmem_max": "200"}}
    node.write("proc/sys/net/core/rmem_max", "100\n")
    assert node.run(intent="training", **other)["refusal"]
    files = " ".join(str(node.root / name) for name in (SYSCTL, TMPFILES, "etc/sysctl.d/none.conf"))
    subprocess.run(["/bin/sh", "-ec", make_rename_command(files, "training")], check=True)
    taken = node.run(intent="training", **other)
    assert taken["refusal"] == "" and taken["stays"] == [] and taken["changed"]
    assert "# intent: training\n" in node.read(SYSCTL) and not node.run(intent="training", **other)["changed"]
    assert node.run(intent="training", state="absent")["stays"] == [] and node.ours() == []


def test_a_file_of_an_earlier_release_gets_the_name_of_the_intent_that_needs_it(node: Node) -> None:
    node.write(SYSCTL, "# of linerate.rdma, rdma_cluster.tuning: changed and removed by it\nvm.swappiness = 60\n")
    made = node.run(intent="storage", sysctl={"vm.swappiness": "10"})
    assert made["refusal"] == "" and "# intent: storage\nvm.swappiness = 10\n" in node.read(SYSCTL)
    node.write(SYSCTL, "vm.swappiness = 60\n")
    assert node.run(intent="storage", state="absent")["changes"] == [f"removed /{SYSCTL}"] and node.ours() == []
