# SPDX-License-Identifier: GPL-3.0-or-later

"""Count the nodes whose host keys ssh does not check."""

from __future__ import annotations

import re
import typing

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.loader import connection_loader

#: connections of Ansible that call ssh
_BY_SSH = ("ssh", "smart", "ansible.builtin.ssh")
#: variables of a host, the first of them that is set counts [ansible, lib/ansible/plugins/connection/ssh.py]
_VARIABLES = ("ansible_ssh_host_key_checking", "ansible_host_key_checking")
#: options of the connection that hold arguments of ssh
_ARGUMENTS = ("ssh_args", "ssh_common_args", "ssh_extra_args")
_OFF = re.compile(r"StrictHostKeyChecking[\s='\"]+(no|off)\b", re.IGNORECASE)


def count_unchecked_hosts(of_nodes: typing.Mapping[str, typing.Mapping[str, typing.Any]]) -> int:
    """Return the number of nodes that Ansible reaches by ssh without a check of their host keys.

    :param of_nodes: variables of each node, as they are written
    """
    checked, arguments = _read_option("host_key_checking"), {name: _read_option(name) for name in _ARGUMENTS}
    found = 0
    for of_node in of_nodes.values():
        if str(of_node.get("ansible_connection", getattr(constants, "DEFAULT_TRANSPORT", "ssh"))) not in _BY_SSH:
            continue
        asked = next((of_node[name] for name in _VARIABLES if name in of_node), checked)
        words = " ".join(str(of_node.get(f"ansible_{name}", value) or "") for name, value in arguments.items())
        # a template is none of the words for false
        found += (not boolean(asked, strict=False) and str(asked).strip()[:1] != "{") or bool(_OFF.search(words))
    return found


def _read_option(name: str) -> typing.Any:
    """Return the value of an option of Ansible's ssh connection, from the environment or ``ansible.cfg``."""
    # the loader reads the options of the plugin
    connection_loader.get("ssh", class_only=True)
    return constants.config.get_config_value(name, plugin_type="connection", plugin_name="ssh")
