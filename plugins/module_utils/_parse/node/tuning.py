# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the procfs and sysfs files that show how a node is tuned. Forms: Linux 6.12 Documentation/admin-guide,
mm/huge_memory.c, fs/proc/, lib/bitmap-str.c.

Each function takes the contents of one file without the last newline. Parsers raise ParseError if the text has an
unknown form.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.errors import ParseError
from ..limits import decode_json
from .sysfs import parse_number

#: more CPUs than any kernel is built for (NR_CPUS); a longer list is none of CPUs
_MOST_CPUS = 1 << 16
_RANGE = re.compile(r"\A([0-9]{1,6})(?:-([0-9]{1,6}))?\Z")
_CHOSEN = re.compile(r"\A(?:[a-z][a-z_+-]* )*\[([a-z][a-z_+-]*)\](?: [a-z][a-z_+-]*)*\Z")
_WORD = re.compile(r"\A[A-Za-z0-9][A-Za-z0-9_.+:-]{0,63}\Z")
_SWAP = re.compile(r"\A(\S+)\s+(partition|file)\s+([0-9]{1,18})\s+([0-9]{1,18})\s+(-?[0-9]{1,9})\Z")
_MEMLOCK = re.compile(r"^Max locked memory +(unlimited|[0-9]{1,20}) +(unlimited|[0-9]{1,20}) +bytes *$", re.MULTILINE)
#: effective user; ids in the namespaces of processes, the outermost first: that of the procfs [src Linux
#: fs/proc/array.c task_state]
_EFFECTIVE_ROOT = re.compile(r"^Uid:\t[0-9]{1,10}\t0\t", re.MULTILINE)
_ONE_NAMESPACE = re.compile(r"^NSpid:\t[0-9]{1,10}$", re.MULTILINE)
_POLICY = re.compile(r'"policyName"\s*:\s*"([A-Za-z-]{0,40})"')
#: the value may be empty, null or ~, and a comment may follow
_SETTING = re.compile(
    r"^ {0,2}[\"']?([A-Za-z]+)[\"']?: {0,40}(?:[\"']([A-Za-z0-9,-]*)[\"']|([A-Za-z0-9,~-]*)),?(?: {0,40}| {1,40}#.*)$",
    re.MULTILINE,
)
_UNSET = ("null", "Null", "NULL", "~")
_TRAFFIC_CLASS = re.compile(r"\AGlobal tclass=([0-9]{1,3})$", re.MULTILINE)
#: of the kubelet's configuration what decides where a pod runs; nothing else of it leaves the node
_OF_KUBELET = (
    "topologyManagerPolicy",
    "topologyManagerScope",
    "cpuManagerPolicy",
    "memoryManagerPolicy",
    "reservedSystemCPUs",
)
#: flags of the kubelet's command line, by the key of its configuration that they override [kubernetes
#: cmd/kubelet/app/options/options.go AddKubeletConfigFlags]
_FLAGS = {
    "topology-manager-policy": "topologyManagerPolicy",
    "topology-manager-scope": "topologyManagerScope",
    "cpu-manager-policy": "cpuManagerPolicy",
    "memory-manager-policy": "memoryManagerPolicy",
    "reserved-cpus": "reservedSystemCPUs",
}
_FLAG_VALUE = re.compile(r"\A[A-Za-z0-9,-]{0,4096}\Z")
_ON = {"1": True, "0": False, "Y": True, "N": False}

_IDLE = re.compile(r"\A(?:intel_idle|processor)\.max_cstate=[0-9]{1,2}\Z")


def parse_word(text: str) -> str:
    """Return the contents of a file after checking that they are one word, such as ``performance`` or ``intel_pstate``.

    :raises ParseError: the text is not one word
    """
    if not _WORD.match(text):
        raise ParseError("sysfs", text, "one word")
    return text


def parse_chosen(text: str) -> str:
    """Return the word in brackets, which is the active choice: ``madvise`` for ``always [madvise] never``.

    :raises ParseError: there is not exactly one word in brackets
    """
    match = _CHOSEN.match(text)
    if not match:
        raise ParseError("sysfs", text, "words, one of them in brackets")
    return match.group(1)


def on_off(text: str) -> str:
    """Return ``on`` for ``1`` or ``Y``, and ``off`` for ``0`` or ``N``.

    :raises ParseError: the text is none of them
    """
    if text not in _ON:
        raise ParseError("sysfs", text, "0 or 1, N or Y")
    return "on" if _ON[text] else "off"


def parse_cpu_list(text: str) -> frozenset[int]:
    """Return the CPU numbers of a list such as ``0-3,8``. Return an empty set for an empty text, and for ``(null)``,
    which some kernels print for an empty mask.

    :raises ParseError: the text is not such a list
    """
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() not in ("", "(null)") else ():
        match = _RANGE.match(part)
        low, high = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (1, 0)
        if not low <= high < _MOST_CPUS:
            raise ParseError("sysfs", text, "a list of CPUs such as 0-3,8")
        found.update(range(low, high + 1))
    return frozenset(found)


def parse_swap_kib(text: str) -> int:
    """Return the total size in KiB of the swap areas in /proc/swaps. Return 0 if there are none.

    :raises ParseError: the heading is missing, or a line has an unexpected form
    """
    heading, _newline, rest = text.partition("\n")
    if not heading.startswith("Filename") or "Priority" not in heading:
        raise ParseError("/proc/swaps", text, "a heading of Filename to Priority")
    total = 0
    for line in rest.splitlines():
        match = _SWAP.match(line.strip())
        if not match:
            raise ParseError("/proc/swaps", line, "a name, partition or file, size, used and priority")
        total += int(match.group(3))
    return total


def parse_memlock(text: str) -> str:
    """Return the soft limit of locked memory in /proc/<pid>/limits as text: a number of bytes, or ``unlimited``.

    :raises ParseError: the text has no line with this limit
    """
    match = _MEMLOCK.search(text)
    if not match:
        raise ParseError("/proc/<pid>/limits", text, "a line Max locked memory")
    return match.group(1)


def is_of_node(text: str) -> bool:
    """Return whether a process runs as root and outside of containers, in the process namespace of the node, from the
    contents of /proc/<pid>/status.

    Every user may read this file. The kernel escapes line ends in the name of a process, so that a process cannot forge
    the lines that are read here.
    """
    return bool(_EFFECTIVE_ROOT.search(text) and _ONE_NAMESPACE.search(text))


def manager_policy(text: str) -> str:
    """Return the ``policyName`` in the state file of the kubelet's CPU manager or memory manager, in lower case
    [kubernetes pkg/kubelet/cm/cpumanager/state/checkpoint.go].

    :raises ParseError: the text does not contain exactly one policy name
    """
    found = _POLICY.findall(text)
    if len(found) != 1 or not found[0]:
        raise ParseError("state of a manager of the kubelet", text, 'one "policyName"')
    return str(found[0]).lower()


def parse_kubelet_settings(text: str) -> dict[str, str]:
    """Return the settings of a KubeletConfiguration in YAML or JSON that decide on which CPUs and NUMA nodes pods run,
    by key. These are top-level keys with plain values. In YAML they are found line by line, because a node has no YAML
    parser.

    A missing key is left out. The value is empty if the text sets the key to null or to an empty text, which is the
    kubelet's default.

    :raises ParseError: the text is not a KubeletConfiguration
    """
    if "KubeletConfiguration" not in text:
        raise ParseError("configuration of the kubelet", text, "a KubeletConfiguration")
    if text.lstrip().startswith("{"):
        data = decode_json(text, "configuration of the kubelet")
        values = {name: data[name] or "" for name in _OF_KUBELET if name in data}
        wrong = [value for value in values.values() if not isinstance(value, str) or not _FLAG_VALUE.match(value)]
        if wrong:
            raise ParseError("configuration of the kubelet", str(wrong[0]), "the name of a policy or a list of CPUs")
        return values
    return {
        name: "" if plain in _UNSET else quoted or plain
        for name, quoted, plain in _SETTING.findall(text)
        if name in _OF_KUBELET
    }


class KubeletArguments(typing.NamedTuple):
    """The arguments of the kubelet's command line that decide on which CPUs and NUMA nodes pods run.

    :ivar config: path of the configuration file; empty for none
    :ivar config_dir: path of the folder with drop-ins, which override the configuration file; empty for none
    :ivar settings: settings that flags set, by key of the configuration. They override all files
    """

    config: str
    config_dir: str
    settings: dict[str, str]


def parse_kubelet_arguments(text: str) -> KubeletArguments:
    """Return the arguments of the kubelet that decide on which CPUs and NUMA nodes pods run, from the contents of
    /proc/<pid>/cmdline. A flag that occurs several times has the last value, and ``_`` in its name is ``-``
    [kubernetes cmd/kubelet/app/server.go kubeletConfigFlagPrecedence, component-base cli/flag WordSepNormalizeFunc].

    :param text: the program and its arguments, each with a NUL at its end
    :raises ParseError: the text is empty, or one of these flags has no value or one of another form
    """
    arguments = text.split("\0")
    if not arguments[0]:
        raise ParseError("command line of the kubelet", text, "the program and its arguments")
    found: dict[str, str] = {}
    for place, argument in enumerate(arguments):
        if argument == "--":
            break
        name, equals, value = argument.partition("=")
        flag = name[2:].replace("_", "-")
        if not name.startswith("--") or flag not in ("config", "config-dir", *_FLAGS):
            continue
        if not equals and place + 1 == len(arguments):
            raise ParseError("command line of the kubelet", argument, "a flag with its value")
        found[flag] = value if equals else arguments[place + 1]
    settings = {key: found[flag] for flag, key in _FLAGS.items() if flag in found}
    wrong = [value for value in settings.values() if not _FLAG_VALUE.match(value)]
    if wrong:
        raise ParseError("command line of the kubelet", wrong[0], "the name of a policy or a list of CPUs")
    return KubeletArguments(found.get("config", ""), found.get("config-dir", ""), settings)


def idle_arguments(text: str) -> str:
    """Return the arguments for idle states (``max_cstate``) in the kernel's command line, sorted and joined by blanks.
    Return ``none`` if there are none.
    """
    return " ".join(sorted(argument for argument in text.split() if _IDLE.match(argument))) or "none"


def pci_realloc(text: str) -> str:
    """Return the value of ``realloc`` in the arguments ``pci=`` of the kernel's command line: ``on`` or ``off``. Return
    ``unset`` if no argument sets it. If several do, the last value is returned.
    """
    said = "unset"
    for argument in text.split():
        key, _equals, values = argument.partition("=")
        for value in values.split(",") if key == "pci" else ():
            said = {"realloc": "on", "realloc=on": "on", "realloc=off": "off"}.get(value, said)
    return said


def traffic_class(text: str) -> str:
    """Return the RoCE traffic class of an HCA as text, from the line ``Global tclass=106`` that NVIDIA's driver
    packages print. Return ``unset`` if the text is empty or its first line is another setting.

    :raises ParseError: the text has another form
    """
    match = _TRAFFIC_CLASS.match(text)
    if not match and text and not text.startswith("tclass="):
        raise ParseError("sysfs", text, "Global tclass=106, or nothing")
    return match.group(1) if match else "unset"


def at_least_zero(text: str) -> str:
    """Return a text after checking that it is a whole number of 0 or more.

    :raises ParseError: the text is not such a number
    """
    value = parse_number(text)
    if value < 0:
        raise ParseError("sysfs", text, "a number of at least 0")
    return str(value)
