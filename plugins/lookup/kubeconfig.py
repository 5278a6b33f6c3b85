# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: kubeconfig
short_description: Return a kubeconfig for Helm with the credentials of the modules
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - The modules support all authentication options of C(kubernetes.core) and the environment variables C(K8S_AUTH_*).
    Helm supports only some of them.
  - If the credentials are only a kubeconfig with its current context, the lookup returns its path.
  - Otherwise, it writes the credentials to a temporary kubeconfig that only its owner can read. Ansible deletes the
    file when C(ansible-playbook) ends.
options:
  _terms:
    description: The variable C(rdma_kubeconfig). A path, the content of a kubeconfig, or an empty string.
    type: list
    elements: raw
    required: true
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Find the Helm release of the operator
  kubernetes.core.helm_info:
    kubeconfig: "{{ lookup('linerate.rdma.kubeconfig', rdma_kubeconfig | default('')) }}"
    # kubernetes.core would take them from K8S_AUTH_HOST and K8S_AUTH_API_KEY, which are in the kubeconfig
    host: ""
    api_key: ""
    release_name: sriov-network-operator
    release_namespace: sriov-network-operator
"""

RETURN = r"""
_raw:
  description: A path. Its current context is the one that the modules use, so that Helm needs nothing else.
  type: list
  elements: str
"""

import json
import os
import tempfile
import typing

from ansible import constants
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    HAS_KUBERNETES,
    make_client,
    say_how_to_install,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import (
    find_credentials,
    make_kubeconfig,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_lookup


class LookupModule(LookupBase):
    """A lookup plugin that returns the path of a kubeconfig with the credentials of the run. It reads the environment
    of ansible-playbook, which modules on localhost use as well.
    """

    @guard_lookup
    def run(self, terms: list[typing.Any], variables: typing.Any = None, **kwargs: typing.Any) -> list[typing.Any]:
        return [self._one(term) for term in terms]

    @staticmethod
    def _one(kubeconfig: typing.Any) -> typing.Any:
        if not HAS_KUBERNETES:
            raise AnsibleLookupError(
                f"The Python that runs ansible-playbook lacks the library kubernetes. {say_how_to_install()}"
            )
        options = {"kubeconfig": kubeconfig} if kubeconfig else {}
        found = find_credentials(options, os.environ)
        if found.bare:
            alone = found.kubeconfig
            return _write_kubeconfig(alone) if isinstance(alone, dict) else os.path.abspath(os.path.expanduser(alone))
        client = make_client(options, found)
        made = make_kubeconfig(
            client.configuration,
            client.client.client.default_headers,
            str(found.given.get("context") or "linerate.rdma"),
        )
        return _write_kubeconfig(made)


def _write_kubeconfig(kubeconfig: typing.Mapping[str, typing.Any]) -> str:
    """Write a kubeconfig to a temporary file that only its owner can read, and return the path."""
    handle, path = tempfile.mkstemp(prefix="linerate-kubeconfig-", dir=constants.DEFAULT_LOCAL_TMP)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(kubeconfig, file)
    return path
