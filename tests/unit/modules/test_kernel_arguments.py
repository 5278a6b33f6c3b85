# SPDX-License-Identifier: GPL-3.0-or-later

"""kernel_arguments as Ansible runs it, on a node in a temporary root: GRUB of Debian and grubby as stand-ins that do
what the real ones do."""

from __future__ import annotations

import io
import json
import os
import pathlib
import subprocess
import typing

import jinja2
import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from ansible_collections.linerate.rdma.plugins.filter.host import make_containerd_drop_in
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.kernel_arguments import DROP_IN, INTENTS, RECORD
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.plugins.modules import kernel_arguments

ROOT = pathlib.Path(__file__).resolve().parents[3]
Result = dict[str, typing.Any]
WANTED = ["intel_iommu=on", "iommu=pt"]
#: sources what a user has set, then the drop-ins, and writes the entries
UPDATE_GRUB = """cd "$NODE"; GRUB_CMDLINE_LINUX=; . ./etc/default/grub
for file in etc/default/grub.d/*.cfg; do [ -e "$file" ] && . "./$file"; done
printf 'linux /vmlinuz root=/dev/a ro %s\\nlinux /memtest\\n' "$GRUB_CMDLINE_LINUX" > boot/grub/grub.cfg
echo told >> told"""
GRUBBY = """cd "$NODE"; touch args; args=" $(cat args) "
for option; do case $option in
--info=ALL) printf 'index=0\\nkernel="/vmlinuz"\\nargs="ro%s"\\nindex=1\\nargs="ro%s"\\n' "$args" "$args"; exit;;
--remove-args=*) for one in ${option#*=}; do args=$(echo "$args" | sed "s, $one , ,"); done;;
--args=*) for one in ${option#*=}; do
    key=${one%%=*}; args=$(echo "$args" | sed -E "s, $key(=[^ ]*)? , ,"); args="$args $one "; done;;
esac; done
echo "$args" > args; echo told >> told"""


class Node:
    """A node's files and tools."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._monkeypatch = root / "node", monkeypatch
        self.tools = root / "bin"
        self.tools.mkdir()
        for name in ("cat", "sed", "touch"):
            (self.tools / name).symlink_to(f"/usr/bin/{name}")
        monkeypatch.setattr(command, "search_path", lambda: str(self.tools))
        monkeypatch.setattr(kernel_arguments, "ROOT", str(self.root))
        monkeypatch.setenv("NODE", str(self.root))
        self.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/a ro\n")
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def grub(self, others: str = "quiet") -> None:
        self.write("etc/default/grub", f'GRUB_CMDLINE_LINUX="{others}"\n')
        self.write("boot/grub/grub.cfg", f"linux /vmlinuz root=/dev/a ro {others}\nlinux /memtest\n")
        os.utime(self.root / "boot/grub/grub.cfg", (1, 1))
        self.tool("update-grub", UPDATE_GRUB)

    def grubby(self, others: str = "quiet") -> None:
        self.write("args", f" {others} ")
        self.tool("grubby", GRUBBY)

    def next(self) -> list[str]:
        """What the next boot gets."""
        return (
            self.read("args")
            if (self.root / "args").exists()
            else self.read("boot/grub/grub.cfg").splitlines()[0].partition(" ro ")[2]
        ).split()

    def boot(self) -> None:
        self.write("proc/cmdline", " ".join(["root=/dev/a", "ro", *self.next()]))

    def told(self) -> int:
        """How often the boot loader was changed."""
        return self.read("told").count("told") if (self.root / "told").exists() else 0

    def ours(self) -> bool:
        return any((self.root / name).exists() for name in (DROP_IN, RECORD))

    def run(self, check: bool = False, **options: typing.Any) -> Result:
        output = io.StringIO()
        arguments = {**options, "_ansible_check_mode": check, "_ansible_diff": True}
        with self._monkeypatch.context() as patch, patch_module_args(arguments), pytest.raises(SystemExit):
            patch.setattr("sys.stdout", output)
            kernel_arguments.main()
        answer: Result = json.loads(output.getvalue().strip().splitlines()[-1])
        return answer


@pytest.fixture(name="node", params=["grub", "grubby"])
def fixture_node(request: pytest.FixtureRequest, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node(tmp_path, monkeypatch)
    getattr(node, request.param)()
    return node


@pytest.fixture(name="bare")
def fixture_bare(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_check_then_run_then_again_then_a_change_then_back(node: Node) -> None:
    checked = node.run(check=True, arguments=WANTED)
    assert node.told() == 0 and not node.ours() and node.next() == ["quiet"]
    made = node.run(arguments=WANTED)
    for answer in (checked, made):
        assert (
            answer["changed"]
            and answer["arguments"] == answer["missing"] == WANTED
            and answer["refusal"] == ""
            and answer["boot"] == "boot-1"
        )
        assert answer["diff"] == {"before": "", "after": "intel_iommu=on\niommu=pt\n"}
    assert node.next() == ["quiet", *WANTED]
    again = node.run(arguments=WANTED)
    # the boot is still due
    assert not again["changed"] and again["missing"] == WANTED and node.told() == 1
    node.boot()
    assert node.run(arguments=WANTED)["missing"] == [] and node.told() == 1
    less = node.run(arguments=["iommu=pt", "pci=realloc"])
    assert (
        less["changed"]
        and less["missing"] == ["pci=realloc"]
        and sorted(node.next()) == ["iommu=pt", "pci=realloc", "quiet"]
    )
    would = node.run(check=True, state="absent")
    assert would["changed"] and "iommu=pt" in node.next()
    gone = node.run(state="absent")
    assert gone["changed"] and gone["arguments"] == [] and node.next() == ["quiet"] and not node.ours()
    told = node.told()
    assert not node.run(state="absent")["changed"] and node.told() == told


def test_boot_files_are_on_the_disk_before_a_machine_can_be_reset(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.readlink(f"/proc/self/fd/{handle}")))
    for name in ("boot/loader/entries/a.conf", "boot/grub2/grubenv"):
        node.write(name, "x\n")
    (node.root / "boot/grub2/gone").symlink_to("nothing")
    os.mkfifo(node.root / "boot/grub2/fifo")
    node.run(check=True, arguments=WANTED)
    assert flushed == []
    node.run(arguments=WANTED)
    written = {path.removeprefix(f"{node.root}/") for path in flushed}
    assert {"boot/loader/entries", "boot/loader/entries/a.conf", "boot/grub2/grubenv", INTENTS} <= written
    assert {"boot/grub/grub.cfg", DROP_IN} <= written or RECORD in written
    flushed.clear()
    node.run(arguments=WANTED)
    assert flushed == [], "nothing was written"


def test_boot_files_that_the_disk_refuses_are_an_error(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    answer = node.run(arguments=WANTED)
    assert answer["failed"] and "could not be written to the disk: Input/output error" in answer["msg"]


def test_what_others_have_set_stays_theirs(node: Node) -> None:
    assert not node.run(arguments=["quiet"])["changed"] and not node.ours()
    node.run(arguments=["quiet", "iommu=pt"])
    node.run(state="absent")
    assert node.next() == ["quiet"]


def test_killed_before_the_boot_loader_was_told(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = next(path for path in node.tools.iterdir() if "grub" in path.name)
    script = tool.read_text(encoding="utf-8")

    def broken() -> None:
        # what it shows it shows; it changes nothing
        node.tool(
            tool.name, script if tool.name == "update-grub" else f"case $1 in --info=ALL) ;; *) exit 3;; esac\n{script}"
        )
        if tool.name == "update-grub":
            node.tool(tool.name, "exit 3")

    broken()
    failed = node.run(arguments=WANTED)
    assert failed["failed"] and "ended with exit code 3" in failed["msg"] and node.next() == ["quiet"]
    node.tool(tool.name, script)
    assert node.run(arguments=WANTED)["changed"] and node.next() == ["quiet", *WANTED]
    broken()
    assert node.run(state="absent")["failed"] and node.ours()
    node.tool(tool.name, script)
    assert node.run(state="absent")["changed"] and node.next() == ["quiet"] and not node.ours()


def test_a_tool_that_does_nothing_is_no_success(node: Node) -> None:
    tool = next(path for path in node.tools.iterdir() if "grub" in path.name)
    node.tool(tool.name, 'case $1 in --info=ALL) echo args=\\"ro quiet\\";; esac')
    failed = node.run(arguments=WANTED)
    assert failed["failed"] and "but the boot entries lack intel_iommu=on" in failed["msg"]


@pytest.mark.parametrize(
    "argument", ["a b", 'x="y"', "$(reboot)", "`reboot`", "-x", "", "a;b", "a\nb", "a'b", "a\\b", "ä"]
)
def test_what_is_no_argument_is_never_written(node: Node, argument: str) -> None:
    failed = node.run(arguments=[argument])
    assert failed["failed"] and "not a valid kernel argument:" in failed["msg"] and node.told() == 0 and not node.ours()


def test_another_value_of_others_is_refused_by_grubby_which_would_replace_it(bare: Node) -> None:
    bare.grubby("quiet iommu=off")
    refused = bare.run(arguments=WANTED)
    assert (
        not refused["changed"]
        and "iommu=off" in refused["refusal"]
        and refused["missing"] == WANTED
        and bare.told() == 0
        and not bare.ours()
    )


def test_no_boot_loader_is_a_refusal_where_something_is_missing(bare: Node) -> None:
    refused = bare.run(arguments=WANTED)
    assert (
        not refused["changed"]
        and "neither grubby nor update-grub" in refused["refusal"]
        and refused["missing"] == WANTED
    )
    bare.write("proc/cmdline", "root=/dev/a intel_iommu=on iommu=pt")
    assert bare.run(arguments=WANTED)["refusal"] == "" and not bare.run(state="absent")["changed"]


def test_what_we_have_set_is_told_also_where_the_tool_is_gone(bare: Node) -> None:
    """A teardown takes nothing back there, and must not say that nothing is left."""
    bare.write(RECORD, "iommu=pt\n")
    left = bare.run(state="absent")
    assert (left["changed"], left["arguments"]) == (False, ["iommu=pt"]) and "neither grubby nor update-grub" in left[
        "refusal"
    ]
    # set by another tool than the one that is there now
    bare.grubby("quiet")
    bare.write(DROP_IN, 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX intel_iommu=on"\n')
    (bare.root / RECORD).unlink()
    assert bare.run(state="absent")["arguments"] == ["intel_iommu=on"]


def test_an_image_based_system_is_left_to_its_own(bare: Node) -> None:
    bare.grubby()
    bare.write("run/ostree-booted", "")
    refused = bare.run(arguments=WANTED)
    assert "MachineConfig" in refused["refusal"] and bare.next() == ["quiet"] and not bare.ours()


def test_what_cannot_be_read_is_not_guessed(bare: Node) -> None:
    bare.grub()
    bare.write("boot/grub/grub.cfg", "")
    assert bare.run(arguments=WANTED)["failed"]
    bare.grub()
    bare.write(DROP_IN, "GRUB_TIMEOUT=0\n")
    assert "drop-in" in bare.run(arguments=WANTED)["msg"] and bare.read(DROP_IN) == "GRUB_TIMEOUT=0\n"


def test_intents_keep_the_arguments_of_each_other(node: Node) -> None:
    node.run(arguments=["iommu=pt"], intent="a")
    other = node.run(arguments=["pci=realloc"], intent="b")
    assert other["arguments"] == ["pci=realloc"] and {"iommu=pt", "pci=realloc"} < set(node.next())
    node.boot()
    again = node.run(arguments=["iommu=pt"], intent="a")
    assert (again["changed"], again["missing"]) == (False, [])
    gone = node.run(state="absent", intent="a")
    assert gone["arguments"] == [] and node.next() == ["quiet", "pci=realloc"]
    node.run(state="absent", intent="b")
    assert node.next() == ["quiet"] and not node.ours() and not (node.root / INTENTS).exists()


def test_argument_of_two_intents_goes_with_the_second(node: Node) -> None:
    for intent in ("a", "b"):
        assert node.run(arguments=["iommu=pt"], intent=intent)["changed"]
    node.run(state="absent", intent="a")
    assert "iommu=pt" in node.next()
    node.run(state="absent", intent="b")
    assert node.next() == ["quiet"]


def test_other_value_of_another_intent_is_refused_by_name(node: Node) -> None:
    node.run(arguments=["iommu=pt"], intent="a")
    refused = node.run(arguments=["iommu=on"], intent="b")
    assert not refused["changed"] and "intent a has set another value of iommu=on" in refused["refusal"]
    assert "iommu=pt" in node.next() and "iommu=on" not in node.next()


def test_arguments_of_a_renamed_intent_are_its_own_after_the_command_of_the_refusal(node: Node) -> None:
    node.run(arguments=["iommu=pt", "pci=realloc"], intent="a")
    refusal = node.run(arguments=["iommu=on"], intent="b")["refusal"]
    sed = refusal.partition("as root: ")[2]
    assert sed == f"sed -i 's/^a /b /' /{INTENTS}"
    subprocess.run(["/bin/sh", "-ec", sed.replace(f"/{INTENTS}", str(node.root / INTENTS))], check=True)
    assert node.run(arguments=["iommu=on"], intent="b")["refusal"] == ""
    assert node.next() == ["quiet", "iommu=on"]
    assert not node.run(arguments=["iommu=on"], intent="b")["changed"]
    node.run(state="absent", intent="b")
    assert node.next() == ["quiet"] and not (node.root / INTENTS).exists()


def test_a_name_that_is_no_name_of_an_intent_is_in_no_command(node: Node) -> None:
    node.run(arguments=["iommu=pt"], intent="a")
    path = node.root / INTENTS
    path.write_text(path.read_text(encoding="utf-8").replace("a ", "a';reboot;' "), encoding="utf-8")
    refusal = node.run(arguments=["iommu=on"], intent="b")["refusal"]
    assert "has set another value" in refusal and "sed" not in refusal


def name_in_role(role: str, cluster: dict[str, typing.Any]) -> str:
    """The name that a role gives the module for an intent."""
    tasks = yaml.safe_load((ROOT / "roles" / role).read_text(encoding="utf-8"))
    blocks = [task for block in tasks for task in block.get("block", ())]
    (options,) = [
        task["linerate.rdma.on_node"]["options"]
        for task in blocks
        if task.get("linerate.rdma.on_node", {}).get("module") == "linerate.rdma.kernel_arguments"
    ]
    environment = jinja2.Environment(autoescape=False)  # noqa: S701
    environment.filters["linerate.rdma.containerd_drop_in"] = make_containerd_drop_in
    return environment.from_string(options["intent"]).render(rdma_cluster=cluster)


@pytest.mark.parametrize("named", [{}, {"intent_name": "default"}])
def test_intents_with_the_default_name_keep_the_arguments_of_each_other(node: Node, named: dict[str, str]) -> None:
    a, b = ({**named, "node_selector": {"team": team}} for team in ("a", "b"))
    sets, takes_back = "platform/tasks/kernel.yml", "teardown/tasks/nodes.yml"
    node.run(arguments=["iommu=pt"], intent=name_in_role(sets, a))
    node.run(arguments=["pci=realloc"], intent=name_in_role(sets, b))
    assert {"iommu=pt", "pci=realloc"} < set(node.next())
    node.run(state="absent", intent=name_in_role(takes_back, a))
    assert node.next() == ["quiet", "pci=realloc"]


def test_a_named_intent_has_its_own_name() -> None:
    assert name_in_role("platform/tasks/kernel.yml", {"intent_name": "a"}) == "a"
