# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets kernel arguments for the next boot of a node, and removes only arguments that it has set itself. Never reboots.

Two tools are supported: a drop-in with ``update-grub`` (Debian, Ubuntu), and ``grubby`` (RHEL and its derivatives). A
file lists the arguments that the collection has set. It is written before the boot loader is changed, so that the next
run completes one that was killed in between. Another file lists the arguments of each intent: several intents may
select the node, and a run removes only arguments that no other intent has.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import typing

from ..._analysis.fleet.argument_order import find_missing_arguments
from ..._model.base.errors import RdmaError
from ..._model.base.marks import DEFAULT_INTENT
from ..._model.node.kernel_arguments import DROP_IN, INTENTS, RECORD
from ..._observe.node.left_arguments import read_left_arguments
from ..._observe.process import command
from ..._parse.node import kernel_arguments as parse
from ..._render.node.kernel_arguments import grub_drop_in
from ..._store.files import remove_file, write_text
from ..._store.flush import flush_folders

Arguments = tuple[str, ...]

_GRUB, _OSTREE = "boot/grub/grub.cfg", "run/ostree-booted"
#: folders of the files that are written here, and by update-grub and grubby
_WRITTEN = (
    "boot/grub",
    "boot/grub2",
    "boot/loader/entries",
    "etc/default",
    *sorted({os.path.dirname(name) for name in (DROP_IN, RECORD, INTENTS)}),
)
#: what passes through a shell, and through sed in grubby, as it is
_ARGUMENT = re.compile(r"\A[A-Za-z0-9_][A-Za-z0-9_.,:=@/+%~-]{0,255}\Z", re.ASCII)
_NAME = re.compile(r"\A[a-z0-9-]{1,80}\Z", re.ASCII)
#: update-grub asks each disk for other systems
_SECONDS = 300.0


@dataclasses.dataclass(frozen=True)
class ArgumentsOutcome:
    """The result of setting kernel arguments on a node.

    :ivar before: arguments of the collection for the next boot, before the change
    :ivar after: arguments of the collection for the next boot, after the change
    :ivar changed: whether anything was written, or would be in a dry run
    :ivar missing: desired arguments that the running kernel does not have
    :ivar refusal: reason why the arguments of the next boot cannot be set, with the remedy; nothing was written then.
        Empty otherwise
    :ivar boot: id of the current boot; empty if unknown
    :ivar loader: name of the tool that sets the arguments; empty if there is none
    :ivar others: arguments that only other intents have set
    """

    before: Arguments = ()
    after: Arguments = ()
    changed: bool = False
    missing: Arguments = ()
    refusal: str = ""
    boot: str = ""
    loader: str = ""
    others: Arguments = ()


class _Loader(typing.Protocol):
    """The interface of a tool that sets the kernel arguments of a boot loader.

    :ivar name: name of the tool, for messages
    """

    name: str

    def own(self) -> typing.Optional[Arguments]:
        """Return the kernel arguments that the collection has set for the next boot. Return None if the collection has
        no record on the node.
        """

    def entries(self) -> tuple[Arguments, ...]:
        """Return the kernel arguments of each boot entry."""

    def unfinished(self) -> bool:
        """Return whether the boot loader may lack arguments that the collection has recorded, because a run was killed
        between the two writes.
        """

    def conflict(self, added: Arguments) -> str:
        """Return the reason why arguments cannot be added without changing arguments that the collection did not set.
        Return an empty text if they can be added.

        :param added: arguments to add
        """

    def write(self, before: Arguments, after: Arguments) -> None:
        """Replace the kernel arguments that the collection has set, in all boot entries and in its record.

        :param before: arguments that the collection has set so far; those that are not in ``after`` are removed
        :param after: arguments to set; empty to remove the record too
        """


def set_kernel_arguments(
    wanted: typing.Sequence[str], root: str, dry: bool, intent: str = DEFAULT_INTENT
) -> ArgumentsOutcome:
    """Set the kernel arguments of the next boot, and remove the other arguments of the collection that no other intent
    has. Return the arguments of the next boot before and after the change, and those that the running kernel lacks. An
    argument that all boot entries already have by other means is not added.

    :param wanted: desired kernel arguments, such as ``iommu=pt``; empty to remove those of the intent
    :param root: folder with the node's files
    :param dry: whether nothing is written
    :param intent: name of the intent
    :raises RdmaError: an argument is invalid, a file cannot be read or written, the tool failed, or the boot entries
        lack an argument afterwards
    """
    wrong = [argument for argument in wanted if not _ARGUMENT.match(argument)]
    if wrong:
        raise RdmaError(
            f"not a valid kernel argument: {', '.join(map(repr, wrong))}",
            "List each argument as a separate item, without spaces and quotes",
        )
    running = parse.parse_command_line(_read_text(os.path.join(root, "proc/cmdline")))
    boot = _read_text(os.path.join(root, "proc/sys/kernel/random/boot_id")).strip()
    missing = find_missing_arguments(tuple(wanted), running)
    loader, refusal = _find_boot_loader(root)
    if loader is None:
        noted = read_left_arguments(root)
        return ArgumentsOutcome(
            noted, noted, missing=missing, refusal=refusal if missing or (noted and not wanted) else "", boot=boot
        )
    own = loader.own()
    if own is None and not wanted:
        noted = read_left_arguments(root)
        return ArgumentsOutcome(noted, noted, boot=boot, loader=loader.name)
    entries, before = loader.entries(), own or ()
    record = _read_intents(root)
    theirs = {name: arguments for name, arguments in record.items() if name != intent}
    others = tuple(argument for arguments in theirs.values() for argument in arguments if argument not in wanted)
    contrary = _explain_contrary(wanted, theirs, intent)
    if contrary:
        return ArgumentsOutcome(before, before, False, missing, contrary, boot, loader.name, others)
    # in the order of the record, so that the runs of several intents do not reorder them
    union = dict.fromkeys(
        argument for arguments in {**record, intent: tuple(wanted)}.values() for argument in arguments
    )
    after = tuple(argument for argument in union if argument in before or _is_argument_missing(entries, argument))
    mine = tuple(argument for argument in wanted if argument in after)
    noted_after = {**record, intent: mine} if mine else theirs
    due = (
        noted_after != record
        or after != before
        or (own is not None and (not after or loader.unfinished()))
        or any(_is_argument_missing(entries, argument) for argument in after)
    )
    added = tuple(argument for argument in after if argument not in before)
    conflict = _explain_order(wanted, entries, before, after) or (loader.conflict(added) if due else "")
    if conflict:
        return ArgumentsOutcome(before, before, False, missing, conflict, boot, loader.name, others)
    if due and not dry:
        _write_intents(root, noted_after)
        loader.write(before, after)
        # a roll may reset the machine by its BMC, which loses what is only in memory
        flush_folders(os.path.join(root, folder) for folder in _WRITTEN)
        entries = loader.entries()
        late = [argument for argument in after if _is_argument_missing(entries, argument)]
        late += [one for entry in entries for one in find_missing_arguments(tuple(wanted), entry)]
        if late:
            raise RdmaError(
                f"{loader.name} succeeded, but the boot entries lack {', '.join(dict.fromkeys(late))}, or have them in"
                " another order",
                "Check the configuration of the boot loader on the node",
            )
    return ArgumentsOutcome(before, after, due, missing, "", boot, loader.name, others)


def _explain_order(
    wanted: typing.Sequence[str], entries: typing.Iterable[Arguments], before: Arguments, after: Arguments
) -> str:
    """Return the reason why arguments whose meaning depends on their place cannot be set: one of them is listed twice,
    or a boot entry has others of them. Return an empty text if they can be set.

    :param wanted: desired arguments, in their order
    :param entries: arguments of each boot entry
    :param before: arguments that the collection has set so far
    :param after: arguments that the collection would set, each once, behind the others
    """
    for entry in entries:
        others = tuple(argument for argument in entry if argument not in before)
        lost = find_missing_arguments(tuple(wanted), (*others, *after))
        if lost:
            return (
                f"{', '.join(lost)} would get another meaning by their place on the kernel command line, which has each"
                f" argument of this collection once, behind '{' '.join(others)}'. Set all arguments of these names"
                " (hugepagesz, hugepages, console) in the boot configuration of the node, in their order, and remove"
                " them from rdma_cluster.host.kernel_arguments."
            )
    return ""


def _explain_contrary(wanted: typing.Iterable[str], theirs: typing.Mapping[str, Arguments], intent: str) -> str:
    """Return the reason why arguments contradict those of another intent: both set the same key to different values.
    Return an empty text if there is no contradiction.

    :param wanted: desired arguments of this intent
    :param theirs: arguments of the other intents, by intent
    :param intent: name of this intent
    """
    for name, arguments in theirs.items():
        keys = {argument.partition("=")[0] for argument in arguments}
        wrong = [item for item in wanted if item.partition("=")[0] in keys and item not in arguments]
        if wrong:
            return (
                f"intent {name} has set another value of {', '.join(wrong)} on the node: {', '.join(arguments)}. Set"
                " one value in both intents, or run the teardown of the intent that no longer needs the node."
                f"{_describe_rename(name, intent)}"
            )
    return ""


def _describe_rename(name: str, intent: str) -> str:
    """Return what the user can do if the other intent is this intent under an earlier name, as text with a command.
    Return an empty text if the recorded name does not have the form of intent names, so that no command contains it.

    :param name: name of the other intent, from the file on the node
    :param intent: name of this intent
    """
    if not _NAME.match(name):
        return ""
    return (
        " If it is the earlier name of this intent, such as after a change of intent_name or node_selector, run on each"
        f" node, as root: sed -i 's/^{name} /{intent} /' /{INTENTS}"
    )


def _read_intents(root: str) -> dict[str, Arguments]:
    """Return the kernel arguments that each intent has set, by name of the intent. Return an empty dict if the file
    does not exist, as after an earlier release, which did not record intents.

    :param root: folder with the node's files
    """
    path = os.path.join(root, INTENTS)
    lines = _read_text(path).splitlines() if os.path.lexists(path) else []
    return {words[0]: tuple(words[1:]) for words in map(str.split, lines) if words}


def _write_intents(root: str, record: typing.Mapping[str, Arguments]) -> None:
    path = os.path.join(root, INTENTS)
    if record:
        write_text(path, "".join(f"{' '.join((name, *arguments))}\n" for name, arguments in record.items()))
    else:
        remove_file(path)


def _is_argument_missing(entries: typing.Iterable[Arguments], argument: str) -> bool:
    return any(argument not in entry for entry in entries)


def _find_boot_loader(root: str) -> tuple[typing.Optional[_Loader], str]:
    """Return two values: the tool of the boot loader (None if there is no supported tool), and the reason why there is
    none (empty if there is one).

    :param root: folder with the node's files
    """
    if os.path.lexists(os.path.join(root, _OSTREE)):
        return None, (
            "the operating system of the node is an image (ostree). Set the arguments with a MachineConfig or with"
            " rpm-ostree kargs."
        )
    path = command.search_path()
    grubby, update = shutil.which("grubby", path=path), shutil.which("update-grub", path=path)
    if grubby is not None:
        return _Grubby(grubby, root), ""
    if update is not None and os.path.exists(os.path.join(root, _GRUB)):
        return _Grub(update, root), ""
    return (
        None,
        (
            "the node has neither grubby nor update-grub with /boot/grub/grub.cfg. Set the arguments in the boot"
            " configuration of its kernel."
        ),
    )


class _Grub:
    """The boot loader GRUB of Debian and Ubuntu. The arguments of the collection are in a drop-in file, from which
    ``update-grub`` makes the boot entries.
    """

    name = "update-grub"

    def __init__(self, tool: str, root: str) -> None:
        self._tool, self._file, self._made = tool, os.path.join(root, DROP_IN), os.path.join(root, _GRUB)

    def own(self) -> typing.Optional[Arguments]:
        return parse.drop_in(_read_text(self._file)) if os.path.lexists(self._file) else None

    def entries(self) -> tuple[Arguments, ...]:
        return parse.parse_grub_entries(_read_text(self._made))

    def unfinished(self) -> bool:
        return os.stat(self._file).st_mtime_ns > os.stat(self._made).st_mtime_ns

    def conflict(self, added: Arguments) -> str:
        # it comes after what others have set, and takes nothing away
        return ""

    def write(self, before: Arguments, after: Arguments) -> None:
        # an empty one stays until GRUB is without it, so that a run that was killed is taken up
        write_text(self._file, grub_drop_in(after))
        _run_tool([self._tool])
        if not after:
            remove_file(self._file)


class _Grubby:
    """A boot loader with entries of the Boot Loader Specification, which ``grubby`` changes. A file of the collection
    records its arguments, one on each line.
    """

    name = "grubby"

    def __init__(self, tool: str, root: str) -> None:
        self._tool, self._file = tool, os.path.join(root, RECORD)

    def own(self) -> typing.Optional[Arguments]:
        return tuple(_read_text(self._file).split()) if os.path.lexists(self._file) else None

    def entries(self) -> tuple[Arguments, ...]:
        return parse.parse_grubby_entries(_run_tool([self._tool, "--info=ALL"]).stdout)

    def unfinished(self) -> bool:
        # what is noted and not to be there any more makes a difference by itself
        return False

    def conflict(self, added: Arguments) -> str:
        names = [argument.partition("=")[0] for argument in added]
        keys = set(names)
        twice = [argument for argument, key in zip(added, names) if names.count(key) > 1]
        if twice:
            return (
                f"grubby keeps one value of each name, and {', '.join(twice)} have the same name. Set them in the boot"
                " configuration of the node, and remove them from rdma_cluster.host.kernel_arguments."
            )
        # write() removes an earlier value of the collection itself
        known = (*added, *(self.own() or ()))
        others = {
            one for entry in self.entries() for one in entry if one.partition("=")[0] in keys and one not in known
        }
        # grubby keeps one value of each name
        return (
            f"the boot entries of the node already have {', '.join(sorted(others))}, which this collection did not"
            " set. Remove the argument from the boot entries or from the intent."
            if others
            else ""
        )

    def write(self, before: Arguments, after: Arguments) -> None:
        write_text(self._file, "".join(f"{argument}\n" for argument in dict.fromkeys((*before, *after))))
        gone = [argument for argument in before if argument not in after]
        if gone:
            _run_tool([self._tool, "--update-kernel=ALL", f"--remove-args={' '.join(gone)}"])
        if after:
            _run_tool([self._tool, "--update-kernel=ALL", f"--args={' '.join(after)}"])
        if after:
            write_text(self._file, "".join(f"{argument}\n" for argument in after))
        else:
            remove_file(self._file)


def _run_tool(argv: typing.Sequence[str]) -> command.Finished:
    finished = command.run(argv, _SECONDS)
    if finished.rc != 0:
        raise RdmaError(
            finished.failure, "Run this command on the node as root, correct the error that it reports, then rerun"
        )
    return finished


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read()
    except OSError as error:
        raise RdmaError(
            f"{path} could not be read: {error.strerror}", "Check that the file exists, and rerun as root"
        ) from error
