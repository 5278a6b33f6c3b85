# SPDX-License-Identifier: GPL-3.0-or-later

"""Put the names of the node and of the operator's namespace into the remedies of stage virtual_functions."""

from __future__ import annotations

import dataclasses
import re

from ..._model.run.findings import PASS, Finding

#: the placeholder of a remedy for the namespace of the SR-IOV operator, as an option of kubectl
_NAMESPACE = "-n NAMESPACE"
#: the placeholder of a remedy for the name of the node
_NODE = re.compile(r"\bNODE\b")


def fill_names(finding: Finding, node: str, namespace: str) -> Finding:
    """Return a finding with names in place of the placeholders ``NODE`` and ``-n NAMESPACE`` of its remedy.

    :param node: name of the node
    :param namespace: namespace of the SR-IOV operator; empty if it was not read
    """
    if finding.status == PASS:
        return finding
    remedy = _NODE.sub(lambda _found: node, finding.remedy)
    if namespace:
        remedy = remedy.replace(_NAMESPACE, f"-n {namespace}")
    return finding if remedy == finding.remedy else dataclasses.replace(finding, remedy=remedy)
