# SPDX-License-Identifier: GPL-3.0-or-later

"""Every way to break one fact of a fleet: found by walking the dataclasses of the facts, so that a new field is broken
as soon as it is there."""

from __future__ import annotations

import dataclasses
import functools
import random
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import (
    SOURCES,
    Joined,
    OfCluster,
    OfNodes,
    OfRun,
    Source,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.observed import Observed
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import (
    FabricNode,
    Link,
    SubnetManager,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclRoute
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.addresses import UsedNetwork
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import FirmwareIntent, FirmwareSetting
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import Hca
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import PciEvidence

from .fleet import Fleet

#: how a fact is broken; of numbers and of what has several values it matters which way
HOWS = ("broken", "more", "less", "another's", "unread", "left out")
How = typing.Literal["broken", "more", "less", "another's", "unread", "left out"]

#: what a field can say that is bad, where any other text would be no answer of its observer
SAYS: typing.Mapping[str, tuple[str, ...]] = {
    "Port.state": ("DOWN", "INIT", "ARMED"),
    "Port.physical_state": ("Polling", "Disabled", "LinkErrorRecovery"),
    "Port.link_layer": ("Ethernet", "InfiniBand"),
    "Port.speed": ("HDR", "XDR"),
    "Port.pkeys": ("0x7fff",),
    "PciFunction.driver": ("vfio-pci",),
    "PciEvidence.driver": ("vfio-pci",),
    "Netdev.state": ("down",),
    "SubnetManager.state": ("MASTER", "STANDBY", "DISCOVER", "NOTACT"),
    "Link.speed": ("HDR", "XDR"),
    "NodeState.sync_status": ("Failed", "InProgress"),
    "AppliedObject.action": ("refused", "unjudged", "absent"),
    "VfAdministration.link_policy": ("Up", "Follow", "Down"),
    "ClusterPolicies.state": ("notReady",),
    "Observed[str].value": ("65536",),
    "UsedNetwork.network": ("100.64.0.0/14",),
    "SharedPool.network": ("100.64.0.0/20",),
    "NodePlatform.kernel": ("4.18.0",),
    "GpuDriver.version": ("470.1",),
    "MachinePool.conditions": ("True",),
    "NcclRoute.via": ("Socket",),
    "RegistrySources.blocked": ("nvcr.io",),
    "BiosAttribute.current": ("Disabled", "Auto"),
}


class Case(typing.NamedTuple):
    """A fact, and how it is broken: a row of the table names some of them.

    :ivar kind: of fact, with its key where it has several
    :ivar fact: fields on the way to it, with what it is of in brackets: ``hcas(PF).ports[].state``; empty for the whole
    :ivar roce: in a RoCE fleet, else in one of InfiniBand
    """

    kind: str
    fact: str
    how: How
    roce: bool


@dataclasses.dataclass(frozen=True)
class Break:
    """One fact, broken.

    :ivar facts: all facts of the fleet, with this one broken
    :ivar words: where it is and what it says now
    """

    case: Case
    source: Source
    facts: typing.Mapping[Source, typing.Any]
    words: str


#: settings of a firmware that only an intent asks for, and no fabric needs
_MAY_BE_WISHED = {field.name.upper() for field in dataclasses.fields(FirmwareIntent)} - {"NUM_OF_VFS"}

#: a field, an index or a key
_Step = tuple[str, typing.Any]
_Path = tuple[_Step, ...]


@dataclasses.dataclass(frozen=True)
class _Leaf:
    """A place in the facts. says: key of SAYS; hint: its type; entry: whether it can be left out."""

    path: _Path
    fact: str
    says: str
    hint: typing.Any
    value: typing.Any
    entry: bool = False


def kind_of(source: Source) -> str:
    if isinstance(source, OfCluster):
        return source.kind if source.kind == source.key else f"{source.kind}.{source.key}"
    if isinstance(source, Joined):
        return f"{source.kinds[0]}.{source.key}"
    return f"run.{source.field}" if isinstance(source, OfRun) else str(getattr(source, "kind", source))


def cases(
    fleet: Fleet, places: str = "some", hints: typing.Optional[typing.Mapping[Source, typing.Any]] = None
) -> typing.Iterator[Break]:
    """Each fact that the stages are judged by, broken in each way.

    :param places: of what there is much of alike: ``some``, the first, one in the middle and the last, or ``one``,
        taken at random, the same each time
    :param hints: the facts that are broken, with their types; None: all that stages are judged by
    """
    chance, roce = random.Random(fleet.shape.name), not fleet.shape.infiniband
    for source, hint in (types_of_facts() if hints is None else hints).items():
        if source not in fleet.facts:
            continue
        value, kind = fleet.facts[source], kind_of(source)
        if isinstance(source, (OfCluster, Joined)):
            rest = {other: seen for other, seen in fleet.facts.items() if other != source}
            yield Break(Case(kind, "", "left out", roce), source, rest, f"{kind} left out")
        leaves = list(_walk(value, hint, (), "", kind, places, chance))
        others: dict[str, list[typing.Any]] = {}
        for leaf in leaves:
            if not leaf.entry and isinstance(leaf.value, (str, int, float)) and not isinstance(leaf.value, bool):
                seen = others.setdefault(leaf.fact, [])
                if leaf.value not in seen:
                    seen.append(leaf.value)
        for leaf in leaves:
            for how, new in _ways(leaf, others.get(leaf.fact, ())):
                words = (
                    f"{kind} {_said(leaf.path)}: {_short(leaf.value)} ->"
                    f" {'left out' if how == 'left out' else _short(new)}"
                )
                # whoever reads the folder makes an entry for each node
                if how == "left out" and isinstance(source, OfNodes) and len(leaf.path) == 1:
                    continue
                yield Break(
                    Case(kind, leaf.fact, how, roce),
                    source,
                    {**fleet.facts, source: _changed(value, leaf.path, new, how == "left out")},
                    words,
                )


def uniform_cases(fleet: Fleet) -> typing.Iterator[Break]:
    """Each fact that the stages are judged by, broken in the same way at each of its places, of which there are two or
    more. A value of another place, and one that is left out, is no fault that all have."""
    chance, roce = random.Random(fleet.shape.name), not fleet.shape.infiniband
    for source, hint in types_of_facts().items():
        if source not in fleet.facts:
            continue
        value, kind = fleet.facts[source], kind_of(source)
        found: dict[tuple[str, How], dict[_Path, typing.Any]] = {}
        for leaf in _walk(value, hint, (), "", kind, "each", chance):
            for how, new in _ways(leaf, ()):
                if how != "left out":
                    found.setdefault((leaf.fact, how), {}).setdefault(leaf.path, new)
        for (fact, how), places in found.items():
            if len(places) < 2 or _has_nested(places):
                continue
            changed = value
            for path, new in places.items():
                changed = _changed(changed, path, new, False)
            words = f"{kind} {fact} at {len(places)} places -> {_short(next(iter(places.values())))}"
            yield Break(Case(kind, fact, how, roce), source, {**fleet.facts, source: changed}, words)


@functools.cache
def types_of_facts() -> typing.Mapping[Source, typing.Any]:
    """Type of the field of the stages' ``Facts``, by where it comes from."""
    found: dict[Source, typing.Any] = {}
    for stage, (facts, _check) in TABLE.items():
        hints = typing.get_type_hints(facts)
        for field, source in SOURCES[stage].items():
            found.setdefault(source, hints[field])
    return found


def hint_of(source: Source) -> typing.Any:
    """Type of a fact."""
    return types_of_facts()[source]


def _asked(value: typing.Any) -> str:
    """What a node is to a fact: most are not asked for the topology."""
    return "unasked node" if getattr(value, "value", None) == () else "node"


def _role(value: typing.Any) -> str:
    """What tells entries of one class apart: a PF is no VF."""
    if isinstance(value, Hca) and value.is_virtual:
        return "VF" if value.netdevs else "VF in a pod"
    if isinstance(value, (Hca, PciEvidence)):
        return "VF" if value.physical_function else "PF"
    if isinstance(value, FabricNode):
        return {"Switch": value.description.partition("-")[0]}.get(
            value.kind, "manager" if value.description.startswith("sm-") else "HCA"
        )
    if isinstance(value, Link):
        return "uplink" if value.b.kind == "Switch" else "manager" if value.b.guid.startswith("0x08") else "HCA"
    if isinstance(value, FirmwareSetting):
        return value.name if value.name in _MAY_BE_WISHED else ""
    if isinstance(value, SubnetManager):
        return value.state.lower()
    if isinstance(value, (AppliedObject, UsedNetwork)):
        return value.kind
    return value.transport if isinstance(value, NcclRoute) else ""


def _walk(
    value: typing.Any, hint: typing.Any, path: _Path, fact: str, says: str, places: str, chance: random.Random
) -> typing.Iterator[_Leaf]:
    """All places below, first those that are whole."""
    yield _Leaf(path, fact, says, hint, value, bool(path) and path[-1][0] in ("item", "key"))
    inner = _inner(hint)
    if value is None:
        return
    if dataclasses.is_dataclass(value):
        # what an observer answered of a node is the fact itself
        skipped = isinstance(value, Observed)
        of = f"Observed[{typing.get_args(inner)[0].__name__}]" if skipped else type(value).__name__
        hints = {
            name: kind[typing.get_args(inner)[0]] if name == "value" and skipped else kind
            for name, kind in typing.get_type_hints(type(value)).items()
        }
        for field in dataclasses.fields(value):
            name = fact if skipped and field.name == "value" else f"{fact}.{field.name}".lstrip(".")
            at = (*path, ("field", field.name))
            yield from _walk(
                getattr(value, field.name),
                hints[field.name],
                at,
                name,
                f"{of}.{field.name}",
                places,
                chance,
            )
    elif isinstance(value, dict):
        for key in _chosen(list(value), lambda key: _asked(value[key]) if path == () else str(key), places, chance):
            name = _asked(value[key]) if path == () else f"{fact}[{key.rpartition('/')[2]}]"
            yield from _walk(value[key], typing.get_args(inner)[1], (*path, ("key", key)), name, says, places, chance)
    elif isinstance(value, tuple):
        for index in _chosen(list(range(len(value))), lambda index: _role(value[index]), places, chance):
            role = _role(value[index])
            name = f"{fact}({role})" if role else f"{fact}[]"
            yield from _walk(
                value[index], typing.get_args(inner)[0], (*path, ("item", index)), name, says, places, chance
            )


def _chosen(
    keys: typing.Sequence[typing.Any], role: typing.Callable[[typing.Any], str], places: str, chance: random.Random
) -> typing.Iterator[typing.Any]:
    """Of each role the first, one in the middle and the last, or any one; or each."""
    if places == "each":
        yield from keys
        return
    groups: dict[str, list[typing.Any]] = {}
    for key in keys:
        groups.setdefault(role(key), []).append(key)
    for group in groups.values():
        yield from (
            dict.fromkeys((group[0], group[len(group) // 3], group[-1]))
            if places == "some"
            else (chance.choice(group),)
        )


def _inner(hint: typing.Any) -> typing.Any:
    """The type without its Optional."""
    arguments = [item for item in typing.get_args(hint) if item is not type(None)]
    return arguments[0] if typing.get_origin(hint) is typing.Union else hint


def _optional(hint: typing.Any) -> bool:
    return typing.get_origin(hint) is typing.Union and type(None) in typing.get_args(hint)


def _ways(leaf: _Leaf, others: typing.Sequence[typing.Any]) -> typing.Iterator[tuple[How, typing.Any]]:
    """What a fact can say instead."""
    value, inner = leaf.value, _inner(leaf.hint)
    if leaf.entry:
        yield "left out", None
    if value is None:
        invented = _invented(inner, 0)
        if invented is not None:
            yield "broken", invented
        return
    if _optional(leaf.hint):
        yield "unread", None
    elif (
        value
        and not leaf.entry
        and isinstance(value, (str, tuple, dict))
        and typing.get_origin(inner) is not typing.Literal
    ):
        yield "unread", type(value)()
    if isinstance(value, bool):
        yield "broken", not value
    elif isinstance(value, (int, float)):
        yield "more", value * 2 if value else value + 1
        if value:
            yield "less", value / 2 if isinstance(value, float) else value // 2
    elif isinstance(value, str):
        known = SAYS.get(leaf.says) or (
            typing.get_args(inner) if typing.get_origin(inner) is typing.Literal else (f"{value}x",)
        )
        yield from (("broken", item) for item in known if item != value)
    elif isinstance(value, (tuple, dict)) and not value and typing.get_args(inner):
        item = _invented(typing.get_args(inner)[-1 if isinstance(value, dict) else 0], 0)
        if item not in (None, ()):
            yield "broken", (item,) if isinstance(value, tuple) else {"x": item}
    other = next((item for item in others if item != value), None)
    if (
        not leaf.entry
        and other is not None
        and not isinstance(value, bool)
        and isinstance(value, (str, int))
        and leaf.says not in SAYS
    ):
        yield "another's", other


def _invented(hint: typing.Any, depth: int) -> typing.Any:
    """Something where there is nothing; None where that would be too much."""
    inner = _inner(hint)
    plain = {str: "x", int: 1, float: 1.0, bool: True}
    if inner in plain:
        return plain[inner]
    if typing.get_origin(inner) is typing.Literal:
        return typing.get_args(inner)[0]
    if typing.get_origin(inner) is tuple:
        return ()
    if typing.get_origin(inner) is dict:
        return {}
    if dataclasses.is_dataclass(inner) and isinstance(inner, type) and depth < 3:
        hints = typing.get_type_hints(inner)
        needed = [
            field.name
            for field in dataclasses.fields(inner)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        return inner(**{name: _invented(hints[name], depth + 1) for name in needed})
    return None


def _changed(value: typing.Any, path: _Path, new: typing.Any, gone: bool) -> typing.Any:
    """The same with another value at one place, or without it."""
    if not path:
        return new
    (step, name), rest = path[0], path[1:]
    if step == "field":
        return dataclasses.replace(
            value, **{name: new if not rest else _changed(getattr(value, name), rest, new, gone)}
        )
    if isinstance(value, dict):
        if gone and not rest:
            return {key: item for key, item in value.items() if key != name}
        return {**value, name: new if not rest else _changed(value[name], rest, new, gone)}
    middle = () if gone and not rest else (new if not rest else _changed(value[name], rest, new, gone),)
    return (*value[:name], *middle, *value[name + 1 :])


def _has_nested(paths: typing.Iterable[_Path]) -> bool:
    """Whether one of the places is within another one."""
    ordered = sorted(paths, key=repr)
    return any(first == second[: len(first)] for first, second in zip(ordered, ordered[1:]))


def _said(path: _Path) -> str:
    return "".join(f".{name}" if step == "field" else f"[{name}]" for step, name in path)


def _short(value: typing.Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{type(value).__name__}"
