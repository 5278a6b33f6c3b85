# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/rbac: a file for each power and a table of them, made of what the code asks of the API server. ``python -m
dev.rbac`` writes it."""

from __future__ import annotations

import json
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import powers
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import LABEL as MEASURING_LABEL
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import NAMESPACE as MEASURING
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.measuring import (
    PREPARED as MEASURING_PREPARED,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import (
    DAEMON_SET,
    LABEL,
    PREPARED,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights import Right
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import (
    list_needed_rights,
    of_observers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.rights import build_attributes
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._render.cluster.admission import render_objects as admission

from .steps import ROOT

Object = dict[str, typing.Any]
FOLDER = ROOT / powers.FOLDER
#: what an admin replaces by their own; the namespace of the SR-IOV network operator is that of its chart
OPERATOR, JOBS, OBSERVERS = "sriov-network-operator", "training", "linerate-observers"
_GROUP = "rbac.authorization.k8s.io"
#: the groups of users, and what they may do
OPERATORS, VIEWERS = powers.GROUP, "linerate-rdma-viewers"
_SECURITY = {
    **{f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")},
    "security.openshift.io/scc.podSecurityLabelSync": "false",
}
_HEAD = """---
# Made by 'python -m dev.rbac' of plugins/module_utils/_model/kubernetes/rights_needed.py.
# Do not edit the rules; put your own subjects and namespaces in.
#
# What a run does with it: {what}.
# Needed by: {when}.
# Equals: {equals}. {why}
{before}"""
_TABLE = """# Rights

A file for each power that a run may need in the cluster, for an admin of the cluster to apply. `ansible-playbook
linerate.rdma.validate -v` names the files that an intent needs (`validate.powers`): apply these, and no others.
**"Equals" says what a file amounts to in the hands of an attacker who has the credentials of the run**;
[security](../security.md) says what that means for the controller that keeps them.

| file | a run | needed by | equals | why, or what it can do at worst |
|---|---|---|---|---|
{rows}

A run that publishes its report (`rdma_report_archive`, AWX) needs no right in the cluster for that: it has credentials
of its own.

## Put in

- Subjects: each file binds the group `linerate-rdma-operators`; `look.yml` binds the group `linerate-rdma-viewers` as
  well.
- `training`: the namespace of the jobs (`network.namespace` of each fabric), which must exist first; repeat the objects
  for each further one.
- `sriov-network-operator`: the namespace of that operator (`rdma_cluster.operator_namespace`), which must exist first
  as well.
- `linerate-observers`: another name is `rdma_observers_namespace`.
- `worker` in the names of MachineConfigs and KubeletConfigs: `rdma_cluster.host.machine_role`.

The head of each file names the namespaces that must be there before it is applied.

```console
kubectl apply -f docs/rbac/look.yml -f docs/rbac/change.yml -f docs/rbac/network-sriov.yml   # those that validate names
kubectl delete -f docs/rbac/operators-helm.yml   # as soon as it is not needed any more
```

## How narrow a rule is

A rule names its objects where the collection knows the name before it looks, and stands in a namespace where the object
has one. Without a name are: what is listed or watched; objects that are named after a fabric; pods; nodes and their
pods in a roll; what only the cluster knows (MachineConfigPools that take a MachineConfig, InstallPlans). `create` has a
name where the object is applied, since the API server knows it then.

`--check` makes dry runs, for which the API server wants the rights of what they would do; it needs all of the files but
`change.yml`.

A user with these files may make no namespace but that of the jobs. So `linerate-measure` and `linerate-observers` come
with their files and stay; a run of a cluster-admin makes them and takes them back.
"""


def everything() -> Intent:
    """An intent that uses each power, in each way."""
    given = variables()
    return parse_intent(given["fabrics"], None, given["cluster"])


def variables() -> Object:
    """As a user writes it."""

    def fabric(name: str, profile: str, **more: typing.Any) -> Object:
        ipam = {"type": "whereabouts", "range": "10.0.0.0/16"}
        network = {"name": name, "namespace": JOBS}
        select = {"hcas_per_node": 1}
        return {
            "name": name,
            "profile": profile,
            "select": select,
            "virtual_functions": 4,
            "resource_name": name,
            "network": network,
            "ipam": ipam,
            **more,
        }

    def pool(kind: str) -> Object:
        return {
            "type": "nv-ipam",
            "range": "10.0.0.0/16",
            "pool": {"name": "pool", "kind": kind, "namespace": OPERATOR},
        }

    fabrics = [
        fabric("a", "sriov_ethernet"),
        fabric("b", "sriov_infiniband", ipam=pool("IPPool")),
        fabric("c", "sriov_infiniband", ipam=pool("CIDRPool")),
        fabric("d", "macvlan"),
        fabric("e", "rdma_shared"),
        fabric("f", "ipoib"),
        fabric("g", "host_device"),
    ]
    host = {
        "memlock": {"by": "machine_config", "limit_gib": 64},
        "kernel_arguments": ["iommu=pt"],
        "kubelet": {"cpu_manager_policy": "static"},
        "gpudirect": "peermem",
    }
    cluster = {
        "operator_namespace": OPERATOR,
        "node_pool": {"max_unavailable": 1},
        "bios": {"iommu": True},
        "pause_health_checks": True,
        "disruption": "reboot",
        "tuning": {"set": True},
        "host": host,
    }
    return {"fabrics": fabrics, "cluster": cluster}


def rights() -> tuple[Right, ...]:
    """All rights of all files."""
    return (*list_needed_rights(everything(), OPERATOR, olm=True), *of_observers(OBSERVERS))


def files() -> dict[str, str]:
    """Texts by the names of the files."""
    made = {f"{power.name}.yml": _file(power) for power in powers.POWERS}
    return {**made, "README.md": _TABLE.format(rows="\n".join(map(_row, powers.POWERS)))}


def _row(power: powers.Power) -> str:
    equals = f"**{power.equals}**" if power.equals else "less"
    return f"| [{power.name}.yml]({power.name}.yml) | {power.what} | {power.when} | {equals} | {power.why} |"


def _file(power: powers.Power) -> str:
    equals = power.equals or "neither cluster-admin nor root on the nodes"
    missing = namespaces_before(power)
    before = (
        f"# Make first what is not there: {'; '.join(f'kubectl create namespace {name}' for name in missing)}.\n"
        if missing
        else ""
    )
    head = _HEAD.format(what=power.what, when=power.when, equals=equals, why=power.why, before=before).replace("`", "'")
    lines = [line if len(line) <= 150 else _wrapped(line) for line in head.rstrip("\n").splitlines()]
    items = "".join(f"  - {_yaml(item, 2)}" for item in objects(power))
    return "\n".join([*lines, "apiVersion: v1", "kind: List", "items:", items])


def namespaces_before(power: powers.Power) -> list[str]:
    """Return the namespaces that must exist before an admin applies the file: it has objects in them, and does not make
    them."""
    made = objects(power)
    own = {item["metadata"]["name"] for item in made if item["kind"] == "Namespace"}
    used = {str(item["metadata"].get("namespace", "")) for item in made}
    return sorted(used - own - {"", "default"})


def _wrapped(line: str) -> str:
    """A comment in lines of 150 characters."""
    done, now = [], "#"
    for word in line[1:].split():
        if len(now) + len(word) >= 150:
            done.append(now)
            now = "#  "
        now += f" {word}"
    return "\n".join([*done, now])


def objects(power: powers.Power) -> list[Object]:
    """The objects of a file."""
    before: dict[str, list[Object]] = {powers.OBSERVERS: _of_observers(), powers.MEASURING: [_of_measuring()]}
    if power.name == powers.ADMISSION:
        return [_of_measuring(), *map(_unmarked, admission([MEASURING]))]
    if power.name in (powers.HELM, powers.OLM_REMOVAL):
        return [_binding(f"linerate-rdma-{power.name}", "", "ClusterRole", power, role="cluster-admin")]
    mine = [right for right in rights() if right.power == power.name]
    made = before.get(power.name, [])
    for namespace in sorted({right.namespace for right in mine}):
        kind, name = "Role" if namespace else "ClusterRole", f"linerate-rdma-{power.name}"
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        made.append(
            {
                "apiVersion": f"{_GROUP}/v1",
                "kind": kind,
                "metadata": metadata,
                "rules": rules([right for right in mine if right.namespace == namespace]),
            }
        )
        made.append(_binding(name, namespace, kind, power))
    return made


def rules(mine: typing.Sequence[Right]) -> list[Object]:
    """Rules of rights in one namespace: what has the same names and verbs stands in one."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for right in mine:
        spec = build_attributes(right)
        resource = "/".join(filter(None, (spec["resource"], spec["subresource"])))
        found = verbs.setdefault((spec["group"], resource, spec["name"]), [])
        found += [spec["verb"]] if spec["verb"] not in found else []
    names: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (group, resource, name), found in verbs.items():
        names.setdefault((group, resource, tuple(found)), []).append(name)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, found_verbs), found in names.items():
        # an unnamed right holds for all names
        resources.setdefault((group, () if "" in found else tuple(found), found_verbs), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": found,
            **({"resourceNames": list(named)} if named else {}),
            "verbs": list(found_verbs),
        }
        for (group, named, found_verbs), found in resources.items()
    ]


def _binding(name: str, namespace: str, kind: str, power: powers.Power, role: str = "") -> Object:
    groups = [VIEWERS, OPERATORS] if power.name == powers.LOOK else [OPERATORS]
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role or name},
        "subjects": [{"apiGroup": _GROUP, "kind": "Group", "name": group} for group in groups],
    }


def _namespace(name: str, **labels: str) -> Object:
    """OpenShift would write its own labels there, and its default node selector would leave nodes out."""
    metadata = {"name": name, "labels": {**labels, **_SECURITY}, "annotations": {"openshift.io/node-selector": ""}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _of_measuring() -> Object:
    return _namespace(MEASURING, **{MEASURING_LABEL: MEASURING_PREPARED})


def _of_observers() -> list[Object]:
    """The namespace, and OpenShift's admission of the pods; other clusters know no such thing, and take it as it is."""
    name = f"{DAEMON_SET}-privileged"
    rule = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": ["privileged"],
        "verbs": ["use"],
    }
    metadata = {"name": name, "namespace": OBSERVERS}
    return [
        _namespace(OBSERVERS, **{LABEL: PREPARED}),
        {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{_GROUP}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": DAEMON_SET, "namespace": OBSERVERS}],
        },
    ]


def _unmarked(item: Object) -> Object:
    """Without the labels of what a run has made, and takes back."""
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "labels"}}


def _yaml(value: typing.Any, indent: int) -> str:
    """YAML in the style of the collection: short rows of texts stay in one line. ``indent`` is that of the mapping's
    keys, less two."""
    pad, lines = " " * (indent + 2), []
    for key, item in value.items():
        if (isinstance(item, dict) and item and len(_flow(item)) > 100 - indent) or key in ("metadata",):
            lines.append(f"{pad}{key}:\n{pad}  {_yaml(item, indent + 2).rstrip()}")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            rows = "\n".join(
                f"{pad}  - {_yaml(row, indent + 4).rstrip() if key == 'rules' else _flow(row)}" for row in item
            )
            lines.append(f"{pad}{key}:\n{rows}")
        elif isinstance(item, list) and len(_flow(item)) > 120:
            lines.append("\n".join([f"{pad}{key}:", *(f"{pad}  - {row}" for row in item)]))
        else:
            lines.append(f"{pad}{key}: {_flow(item)}")
    return "\n".join(lines).lstrip() + "\n"


def _flow(value: typing.Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and value and value not in ("true", "false", "*"):
        return value
    return json.dumps(value)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    made = files()
    for old in FOLDER.iterdir():
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
