# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: nodes
short_description: List the nodes of a cluster, reached through observer pods or by ssh
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Adds the nodes of a Kubernetes or OpenShift cluster to the group C(rdma_nodes), under their Kubernetes names. It
    needs only a kubeconfig.
  - Ansible reaches a node through its observer, a pod (see
    R(linerate.rdma.pod,ansible_collections.linerate.rdma.pod_connection)). The node needs neither ssh nor Python.
    Ansible reaches nodes that O(ssh) selects by ssh, at their internal IP address.
  - Sets the variable C(rdma_listed_by_cluster) to C(true) for each node. If the C(Node) is deleted afterwards, nothing
    is written on the host by ssh.
  - Texts of a node that are not valid are left out, with a warning that names the node. If that leaves a node of O(ssh)
    without an address, it has the connection P(linerate.rdma.refused#connection), so that its tasks are unreachable
    with the cause. Ansible never takes a text of a node for a template.
  - If the cluster gives no nodes, the plugin warns once, and leaves the group C(rdma_nodes) empty. The playbooks then
    end with the cause. It is an error of the inventory if C(unparsed_is_failed) or C(any_unparsed_is_failed) is set in
    the section C(inventory) of C(ansible.cfg).
  - The name of the file must end with C(linerate.rdma.yml) or C(linerate.rdma.yaml).
  - Finds the API server like the modules of the collection. It uses O(kubeconfig) and O(context), or the environment
    variables C(K8S_AUTH_*) and C(KUBECONFIG), or the same default as C(kubectl). C(-e rdma_kubeconfig=FILE) is used
    instead of O(kubeconfig), as by the playbooks.
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
    choices: [linerate.rdma.nodes]
  kubeconfig:
    description:
      - Path of a kubeconfig, or the configuration itself.
      - The plugin also sets the variable C(rdma_kubeconfig), so that the playbooks use the same cluster.
    type: raw
  context:
    description:
      - Context of the kubeconfig. The default is the current context.
      - The playbooks use the context in C(K8S_AUTH_CONTEXT), or the current one. They use none if C(K8S_AUTH_HOST) and
        the credentials for it are set. The plugin fails if this option names another one, because the nodes and the
        cluster that a run changes would differ.
    type: str
  selector:
    description: Label selector of the nodes. The default leaves out the control plane. An empty string selects all
      nodes.
    type: str
    default: "!node-role.kubernetes.io/control-plane"
  ssh:
    description: Label selector of the nodes that Ansible reaches by ssh. By default, there are none.
    type: str
  namespace:
    description: Namespace of the observers. If it is not the default, the plugin also sets the variable
      C(rdma_observers_namespace).
    type: str
    default: linerate-observers
  python:
    description: Path of Python in the image of the observers.
    type: str
    default: /usr/bin/python3
extends_documentation_fragment:
  - ansible.builtin.constructed
notes:
  - >-
    A node is also in groups for its operating system (C(os_...)), its model (C(model_...)), its MachineConfigPool
    (C(pool_...)), its zone (C(zone_...)) and its leaf (C(leaf_...)), if the cluster provides the value.
  - O(compose), O(groups) and O(keyed_groups) can use the variables C(labels), C(address) and C(node) of a node.
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
# linerate.rdma.yml: all nodes but the control plane, reached by pods
plugin: linerate.rdma.nodes

---
# GPU nodes alone; those with a label of your own are reached by ssh
plugin: linerate.rdma.nodes
kubeconfig: ~/.kube/gpu-cluster
selector: nvidia.com/gpu.present=true
ssh: example.com/reached-by=ssh
keyed_groups:
  - prefix: rack
    key: labels['example.com/rack']
"""

import os
import shlex
import typing

from ansible import constants
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Constructable

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    HAS_KUBERNETES,
    make_client,
    say_how_to_install,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import find_credentials
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import suggest_nearest
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.inventory import (
    LISTED,
    Inventory,
    InventoryNode,
    refuse_shared_addresses,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import NAMESPACE
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.inventory import (
    parse_inventory as inventory_of,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._access import context_of
from ansible_collections.linerate.rdma.plugins.plugin_utils._first_cause import FirstCause, note_cause
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import mark_outside
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import describe_error

GROUP = "rdma_nodes"
#: settings of Ansible by which a run ends where an inventory can't be read
_UNPARSED_FAILS = ("INVENTORY_UNPARSED_IS_FAILED", "INVENTORY_ANY_UNPARSED_IS_FAILED")
_ENDS = ("linerate.rdma.yml", "linerate.rdma.yaml")


class InventoryModule(BaseInventoryPlugin, Constructable):  # type: ignore[misc]
    """An inventory plugin that adds the nodes of a cluster. It runs in the process of ansible-playbook. The Kubernetes
    client is therefore loaded once instead of in each fork.

    :ivar NAME: full name of the plugin
    """

    NAME = "linerate.rdma.nodes"
    #: kind of the cause why there are no nodes, and what led to the API server
    _kind = ("", "")
    _where = ""

    def verify_file(self, path: str) -> bool:
        return bool(super().verify_file(path)) and path.endswith(_ENDS)

    def parse(self, inventory: typing.Any, loader: typing.Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        try:
            self._parse(path)
        except AnsibleParserError as error:
            note_cause(FirstCause(error.message, *self._kind))
            self._give_no_nodes(error)
        except AnsibleError:
            raise
        except Exception as error:
            said = f"{path}: {describe_error(error, self.NAME)}"
            note_cause(FirstCause(said))
            self._give_no_nodes(AnsibleParserError(said))

    def _give_no_nodes(self, error: AnsibleParserError) -> None:
        """Show the error as a warning, and add only the empty group of the nodes. If the error were raised instead,
        Ansible would try to read the file as YAML and as INI, show the errors of each attempt, and continue without
        nodes, too.

        :param error: the error that prevents reading the nodes
        :raises AnsibleParserError: Ansible is configured to end if an inventory cannot be read
        """
        if any(constants.config.get_config_value(name) for name in _UNPARSED_FAILS):
            raise error from None
        self.display.warning(error.message)
        # what then finds no nodes says why
        self.inventory.add_group(GROUP)

    def _parse(self, path: str) -> None:
        """Read the file and add the nodes of the cluster to the inventory. A node that is refused is left out with a
        warning.

        :raises AnsibleParserError: the file is invalid, the cluster cannot be read, or no node matches the selector
        """
        given = self._read_config_data(path)
        unknown = sorted(set(given) - set(self.get_options()))
        if unknown:
            raise AnsibleParserError(
                f"{path}: '{unknown[0]}' is not an option of"
                f" linerate.rdma.nodes{suggest_nearest(unknown[0], self.get_options())}"
            )
        try:
            found, by_ssh = self._read()
        except RdmaError as error:
            if not HAS_KUBERNETES:
                self._kind = ("library", "")
            elif isinstance(error, ApiError):
                self._kind = ("api_server", self._where)
            raise AnsibleParserError(f"{path}: {error}") from None
        for refused in found.refused:
            self.display.warning(f"{path}: {refused}. It is left out.")
        if not found.nodes:
            raise AnsibleParserError(f"{path}: {_explain_missing_nodes(self.get_option('selector'))}")
        self.inventory.add_group(GROUP)
        if self.get_option("kubeconfig"):
            self.inventory.set_variable("all", "rdma_kubeconfig", _complete(self.get_option("kubeconfig")))
        if self.get_option("namespace") != NAMESPACE:
            self.inventory.set_variable("all", "rdma_observers_namespace", self.get_option("namespace"))
        for node in found.nodes:
            if node.error:
                self.display.warning(f"{path}: {node.error}. These texts are left out.")
            self._add(node, node.name in by_ssh)

    def _read(self) -> tuple[Inventory, set[str]]:
        """Return two results: the nodes that the selector matches, and the names of all nodes that are reached by ssh
        instead of an observer pod.

        :raises RdmaError: the library kubernetes is missing, or the API server refuses the request or cannot be reached
        """
        if not HAS_KUBERNETES:
            raise RdmaError(
                "the Python that runs ansible-playbook lacks the library kubernetes",
                say_how_to_install(),
            )
        given = {"kubeconfig": self._kubeconfig(), "context": self.get_option("context")}
        options = {name: value for name, value in given.items() if value}
        self._refuse_another_context()
        credentials = find_credentials(options, os.environ)
        self._where = credentials.where
        cluster = Cluster(make_client(options, credentials).client)
        selector, ssh = self.get_option("selector") or "", self.get_option("ssh")
        found = inventory_of(cluster.pages("Node", selector=selector))
        if not ssh:
            return found, set()
        everyone = inventory_of(cluster.pages("Node")).nodes
        return refuse_shared_addresses(found, everyone), {
            node.name for node in inventory_of(cluster.pages("Node", selector=ssh)).nodes
        }

    def _kubeconfig(self) -> typing.Any:
        """Return the kubeconfig that the playbooks use: the extra variable ``rdma_kubeconfig`` if it is set and not a
        template, otherwise the option ``kubeconfig`` of the inventory file. Return None if neither is set.
        """
        typed = (self._vars or {}).get("rdma_kubeconfig")
        return self.get_option("kubeconfig") if not typed or "{{" in str(typed) else typed

    def _refuse_another_context(self) -> None:
        """Check that the inventory and the playbooks use the same context of the kubeconfig.

        :raises RdmaError: the contexts differ, so that the playbooks would change another cluster than that of the
            nodes
        """
        context, (used, before) = self.get_option("context"), context_of(self._kubeconfig())
        if context and before:
            raise RdmaError(
                f"context is {context!r}, but the playbooks use {before} and no kubeconfig",
                f"Remove context, or use the kubeconfig for both: unset {before}",
            )
        if context and context != used:
            raise RdmaError(
                f"context is '{context}', but the playbooks use {f'the context {used!r}' if used else 'none'}",
                f"Select it for both: export K8S_AUTH_CONTEXT={shlex.quote(context)}",
            )

    def _add(self, node: InventoryNode, by_ssh: bool) -> None:
        """Add a node to the inventory, with its connection variables and its groups. All texts from the node are marked
        as unsafe, because ansible-core before 2.19 would evaluate them as templates.

        :param by_ssh: whether the node is reached by ssh; otherwise by its observer pod
        """
        known: dict[str, typing.Any] = mark_outside({"node": node.name, "address": node.address, "labels": node.labels})
        name = self.inventory.add_host(known["node"], group=GROUP)
        self.inventory.set_variable(name, LISTED, True)
        for variable, value in self._way(name, known["address"], mark_outside(node.error), by_ssh).items():
            self.inventory.set_variable(name, variable, value)
        for kind, value in node.groups.items():
            self.inventory.add_host(
                name, group=self.inventory.add_group(self._sanitize_group_name(f"{kind}_{value}".lower()))
            )
        strict = self.get_option("strict")
        self._set_composite_vars(self.get_option("compose"), known, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), known, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), known, name, strict=strict)

    def _way(self, name: str, address: str, error: str, by_ssh: bool) -> dict[str, typing.Any]:
        """Return the variables that tell Ansible how to connect to a node: by ssh, through its observer pod, or not at
        all if the address for ssh is refused. Texts from the node are marked as unsafe. Options of the user are not
        marked, since the user may write templates.

        :param name: name of the node
        :param address: address of the node for ssh; empty to use its name
        :param error: reason why an address of the node is refused; empty if none is refused
        :param by_ssh: whether the node is reached by ssh; otherwise by its observer pod
        """
        if by_ssh and error and not address:
            return {"ansible_connection": "linerate.rdma.refused", "ansible_refused_cause": error}
        if by_ssh:
            return {"ansible_connection": "ansible.builtin.ssh", **({"ansible_host": address} if address else {})}
        return {
            "ansible_connection": "linerate.rdma.pod",
            "ansible_pod_node": name,
            "ansible_pod_namespace": self.get_option("namespace"),
            "ansible_pipelining": True,
            "ansible_python_interpreter": self.get_option("python"),
            # the root file system of an observer can't be written to
            "ansible_remote_tmp": "/tmp/.ansible",
        }


def _complete(kubeconfig: typing.Any) -> typing.Any:
    """Return the path of a kubeconfig as an absolute path, because modules run in another folder, that of the playbook.
    Return a kubeconfig that is not a path unchanged.
    """
    is_path = isinstance(kubeconfig, str) and "\n" not in kubeconfig
    return os.path.abspath(os.path.expanduser(kubeconfig)) if is_path else kubeconfig


def _explain_missing_nodes(selector: str) -> str:
    """Return the reason why the inventory has no nodes, and what to do, as text without the last full stop.

    :param selector: label selector of the nodes; empty if it selects all nodes
    """
    if not selector:
        return "the cluster has no nodes. Check that the kubeconfig leads to the right cluster: kubectl get nodes"
    return (
        f"no node of the cluster has the labels '{selector}'. Set selector in this file to labels of the nodes (kubectl"
        " get nodes --show-labels lists them), or to '' for all nodes, also those of the control plane"
    )
