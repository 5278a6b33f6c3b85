# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the nodes whose host keys are not checked when Ansible connects to them by ssh."""

from __future__ import annotations

import re
import shlex
import time
import typing

from ansible import constants
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.loader import connection_loader

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ToolMissing
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.operand import OperandError, require_operand
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command

Variables = typing.Mapping[str, typing.Any]

#: connection plugins by ssh, each with the plugin that has its options
_PLUGINS = {
    **dict.fromkeys(("ssh", "smart", "ansible.builtin.ssh"), "ssh"),
    **dict.fromkeys(("paramiko", "paramiko_ssh", "ansible.builtin.paramiko_ssh"), "paramiko_ssh"),
    **dict.fromkeys(("libssh", "ansible.netcommon.libssh"), "ansible.netcommon.libssh"),
}
#: variables of a host, the first of them that is set counts [ansible, lib/ansible/plugins/connection]
_VARIABLES = {
    "ssh": ("ansible_ssh_host_key_checking", "ansible_host_key_checking"),
    "paramiko_ssh": (
        "ansible_paramiko_host_key_checking",
        "ansible_ssh_host_key_checking",
        "ansible_host_key_checking",
    ),
    "ansible.netcommon.libssh": (
        "ansible_libssh_host_key_checking",
        "ansible_ssh_host_key_checking",
        "ansible_host_key_checking",
    ),
}
#: options of the connection that hold arguments of ssh, in their order, of which ssh takes the first
_FIRST, _LATER = "ssh_args", ("ssh_common_args", "ssh_extra_args")
_OFF = re.compile(r"StrictHostKeyChecking[\s='\"]+(no|off|false)\b", re.IGNORECASE)
_NEW = re.compile(r"StrictHostKeyChecking[\s='\"]+accept-new\b", re.IGNORECASE)
_FORGETS = re.compile(r"UserKnownHostsFile[\s='\"]+(/dev/null|none)\b", re.IGNORECASE)
#: an argument that differs for each node and decides nothing
_ALIAS = re.compile(r"(HostKeyAlias[\s=]+)[^\s'\"]+", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{[{%]")
#: most different arguments for which ssh is asked, seconds for its answer, and seconds for all answers together
_MOST, _SECONDS, _ALL_SECONDS = 32, 10, 20.0
#: a value that is not known before a task evaluates it
_UNKNOWN = object()


def count_unchecked_hosts(
    of_nodes: typing.Mapping[str, Variables], hostvars: typing.Optional[typing.Mapping[str, Variables]] = None
) -> int:
    """Return the number of nodes that Ansible reaches by ssh without a check of their host keys. A node whose setting
    is not known counts as well.

    :param of_nodes: variables of each node as they are written, with templates, by node
    :param hostvars: variables of each node by node, whose templates are evaluated when a variable is read; None if they
        are not available
    """
    options, ssh = _Options(), _Ssh()
    return sum(_is_unchecked(_Node(node, of_node, hostvars or {}), options, ssh) for node, of_node in of_nodes.items())


class _Node:
    """The connection variables of one node. Only variables that are templates are evaluated, because the evaluation
    takes long for a thousand nodes.

    :param name: name of the node
    :param written: variables of the node as they are written, with templates
    :param hostvars: variables of all nodes, which evaluate templates when they are read
    """

    def __init__(self, name: str, written: Variables, hostvars: typing.Mapping[str, Variables]) -> None:
        self._name, self._written, self._hostvars = name, written, hostvars

    def read(self, names: typing.Iterable[str], otherwise: typing.Any) -> typing.Any:
        """Return the value of the first variable that is set, or ``otherwise`` if none is set. Return ``_UNKNOWN`` for
        a template that cannot be evaluated.

        :param names: names of variables, in order of precedence
        """
        name = next((name for name in names if self._written.get(name) is not None), "")
        value = self._written[name] if name else otherwise
        if not isinstance(value, str) or not _TEMPLATE.search(value):
            return value
        try:
            value = self._hostvars[self._name][name]
        except Exception:
            # an undefined variable, an error of a lookup: the task that connects reports it
            return _UNKNOWN
        known = isinstance(value, (bool, int)) or (isinstance(value, str) and not _TEMPLATE.search(value))
        return value if known else _UNKNOWN

    @property
    def address(self) -> str:
        """Return the address to which ssh connects: a variable of the node, or else its name."""
        return str(self.read(("ansible_ssh_host", "ansible_host"), self._name))


class _Options:
    """The options of connection plugins from the environment and ``ansible.cfg``, each read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], typing.Any] = {}

    def read(self, plugin: str, name: str, otherwise: typing.Any = None) -> typing.Any:
        """Return the value of an option of a connection plugin. Return ``otherwise`` if the plugin is not installed, or
        does not have the option.

        :param plugin: name of the connection plugin
        :param name: name of the option
        """
        key = (plugin, name)
        if key not in self._read:
            try:
                # the loader reads the options of the plugin
                connection_loader.get(plugin, class_only=True)
                value = constants.config.get_config_value(name, plugin_type="connection", plugin_name=plugin)
            except (AnsibleError, KeyError):
                value = otherwise
            self._read[key] = value
        return self._read[key]


class _Ssh:
    """The program ssh, which reports the settings that it uses with given arguments, including those of its
    configuration files. The program is run once for each different list of arguments, so a setting that applies to one
    of several hosts with the same arguments may not be noticed. All runs together have a limit of ``_ALL_SECONDS``,
    since a command in a Match block of the configuration may take long.
    """

    def __init__(self) -> None:
        self._known: dict[str, typing.Optional[bool]] = {}
        self._left = _ALL_SECONDS

    def is_off(self, arguments: str, host: str) -> typing.Optional[bool]:
        """Return whether ssh accepts any host key. Return None if ssh does not report this, or if the limits for the
        number and the duration of its runs are exceeded.

        :param arguments: arguments of ssh, as one line
        :param host: host to which ssh would connect
        """
        arguments = _ALIAS.sub(r"\g<1>host", arguments)
        if arguments not in self._known and len(self._known) < _MOST and self._left > 0:
            start = time.monotonic()
            self._known[arguments] = self._ask(arguments, host)
            self._left -= time.monotonic() - start
        return self._known.get(arguments)

    def _ask(self, arguments: str, host: str) -> typing.Optional[bool]:
        try:
            program = command.require_tool("ssh", "openssh-client")
            argv = [program, "-G", *shlex.split(arguments), "--", require_operand(host, "the address of a node")]
            done = command.run(argv, min(_SECONDS, self._left))
        except (ToolMissing, OperandError, ValueError, OSError):
            return None
        if done.rc != 0:
            return None
        settings = dict(line.lower().partition(" ")[::2] for line in done.stdout.splitlines())
        files = settings.get("userknownhostsfile", "").split()
        forgets = bool(files) and all(file in ("/dev/null", "none") for file in files)
        strict = settings.get("stricthostkeychecking")
        return strict in ("no", "off", "false") or (strict == "accept-new" and forgets)


def _is_unchecked(node: _Node, options: _Options, ssh: _Ssh) -> bool:
    connection = node.read(("ansible_connection",), getattr(constants, "DEFAULT_TRANSPORT", "ssh"))
    if connection is _UNKNOWN:
        return True
    plugin = _PLUGINS.get(str(connection))
    if plugin is None:
        return False
    default = getattr(constants, "HOST_KEY_CHECKING", True)
    asked = node.read(_VARIABLES[plugin], options.read(plugin, "host_key_checking", default))
    if asked is _UNKNOWN:
        return True
    checked = boolean(asked, strict=False)
    if plugin != "ssh":
        return not checked or boolean(options.read(plugin, "host_key_auto_add") or False, strict=False)
    return _accepts_any_key(node, options, ssh, checked)


def _accepts_any_key(node: _Node, options: _Options, ssh: _Ssh, checked: bool) -> bool:
    """Return whether ssh accepts any host key with the arguments that Ansible passes to it. Return True as well if
    these arguments are not known. If ssh does not report its settings, the text of the arguments decides.

    :param checked: value of Ansible's option host_key_checking
    """
    words = {name: node.read((f"ansible_{name}",), options.read("ssh", name)) for name in (_FIRST, *_LATER)}
    if any(value is _UNKNOWN for value in words.values()):
        return True
    # in the order of Ansible
    parts = (words[_FIRST], "" if checked else "-o StrictHostKeyChecking=no", *(words[name] for name in _LATER))
    arguments = " ".join(str(part) for part in parts if part)
    found = ssh.is_off(arguments, node.address)
    if found is not None:
        return found
    return bool(_OFF.search(arguments) or (_NEW.search(arguments) and _FORGETS.search(arguments)))
