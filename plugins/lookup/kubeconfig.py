# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: kubeconfig
short_description: Gives Helm the credentials that the modules have
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - The modules take kubernetes.core's options and the variables C(K8S_AUTH_*) of the environment. Helm knows a part of them.
  - Where a kubeconfig is all there is, it is returned as it was given. Otherwise the credentials become a kubeconfig of their own, below Ansible's folder of
    temporary files, which only its owner may read, and which goes when C(ansible-playbook) ends.
options:
  _terms:
    description: The variable C(rdma_kubeconfig), a path or the configuration itself, or an empty text.
    type: list
    elements: raw
    required: true
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Look for the Helm release of the operator
  kubernetes.core.helm_info:
    kubeconfig: "{{ lookup('linerate.rdma.kubeconfig', rdma_kubeconfig | default('')) | default(omit, true) }}"
    release_name: sriov-network-operator
    release_namespace: sriov-network-operator
"""

RETURN = r"""
_raw:
  description: A path, or the configuration as it was given; empty where Helm finds by itself what the modules find.
  type: list
  elements: raw
"""

import json
import os
import tempfile
import typing

from ansible import constants
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import HAS_KUBERNETES, client_of
from ansible_collections.linerate.rdma.plugins.module_utils._credentials import as_kubeconfig, credentials
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError


class LookupModule(LookupBase):
    """The environment is that of ansible-playbook, which modules on localhost have as well."""

    def run(self, terms: typing.List[typing.Any], variables: typing.Any = None, **kwargs: typing.Any) -> typing.List[typing.Any]:
        try:
            return [self._one(term) for term in terms]
        except RdmaError as error:
            raise AnsibleLookupError(f"linerate.rdma.kubeconfig: {error}") from None

    @staticmethod
    def _one(kubeconfig: typing.Any) -> typing.Any:
        if not HAS_KUBERNETES:
            raise AnsibleLookupError("The Python that runs ansible-playbook lacks the library kubernetes. Install it there: pip install kubernetes")
        options = {"kubeconfig": kubeconfig} if kubeconfig else {}
        found = credentials(options, os.environ)
        if found.bare:
            return found.given.get("kubeconfig", "")
        client = client_of(options, found)
        made = as_kubeconfig(client.configuration, client.client.client.default_headers, str(found.given.get("context") or "linerate.rdma"))
        handle, path = tempfile.mkstemp(prefix="linerate-kubeconfig-", dir=constants.DEFAULT_LOCAL_TMP)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(made, file)
        return path
