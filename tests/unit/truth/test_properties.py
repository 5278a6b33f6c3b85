# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds of any run: to know less, or to have a second fault, is never better; and fleets that are equal are judged
equally.

The runs are drawn, the same ones each time: healthy fleets with one fact broken, of which something else is then
broken, doubled, swapped or renamed.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import re
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.sources import (
    OfListedNodes,
    OfNodes,
    OfNodesThatHaveIt,
    Source,
)
from ansible_collections.linerate.rdma.plugins.module_utils._check.stages import TABLE
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import LoadError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.once import find_second, list_keys
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS

from .breaks import Break, cases, hint_of, kind_of
from .fleet import FEW, PAIR, ROCE, Fleet, Shape, healthy
from .judge import CLOSED, ORDER, SILENT, findings, stages_of, worst

SMALL = (PAIR, FEW, ROCE)
#: pairs of breaks of each fleet: in each run of the tests, and before a release
DRAWN, MANY = 60, 3000
Facts = typing.Mapping[Source, typing.Any]
#: what a stage says: each finding that is no pass, by its check, subject and status
Said = list[tuple[str, str, str]]


@functools.cache
def breaks_of(shape: Shape) -> tuple[Break, ...]:
    return tuple(cases(healthy(shape), "one"))


@functools.lru_cache(maxsize=4096)
def of_break(shape: Shape, number: int) -> str:
    broken = breaks_of(shape)[number]
    return verdict(healthy(shape), stages_of(broken.source), broken.facts)


def verdict(fleet: Fleet, stages: typing.Iterable[str], facts: Facts) -> str:
    """The worst that these stages say."""
    return worst(fleet, (findings(fleet, stage, facts) for stage in stages))


def both(one: Break, other: Break) -> Facts:
    """Both facts broken; they are of different sources."""
    facts = dict(one.facts)
    if other.source in other.facts:
        facts[other.source] = other.facts[other.source]
    else:
        facts.pop(other.source, None)
    return facts


def stages_of_both(one: Break, other: Break) -> list[str]:
    return [stage for stage in TABLE if stage in (*stages_of(one.source), *stages_of(other.source))]


def second_faults(shape: Shape, count: int) -> typing.Iterator[str]:
    """What gets better by a second fault."""
    fleet, found, chance = healthy(shape), breaks_of(shape), random.Random(f"{shape.name} {count}")
    for _turn in range(count):
        one, other = (chance.randrange(len(found)) for _number in range(2))
        if found[one].source == found[other].source:
            continue
        alone = max((of_break(shape, one), of_break(shape, other)), key=lambda item: -ORDER.index(item))
        together = verdict(fleet, stages_of_both(found[one], found[other]), both(found[one], found[other]))
        if ORDER.index(together) > ORDER.index(alone):
            yield (
                f"{found[one].words} and {found[other].words}: {together}, and alone {of_break(shape, one)} and"
                f" {of_break(shape, other)}"
            )


def test_a_second_fault_is_never_better() -> None:
    assert [text for shape in SMALL for text in second_faults(shape, DRAWN)] == []


@pytest.mark.thorough
def test_no_second_fault_of_many_is_better() -> None:
    assert [text for shape in SMALL for text in second_faults(shape, MANY)] == []


class Conflict(Exception):
    """Both changed one place."""


def merged(base: typing.Any, one: typing.Any, other: typing.Any) -> typing.Any:
    """What was changed in both.

    :raises Conflict: it is one place
    """
    if one == base or other == base:
        return one if other == base else other
    if type(one) is type(other) is type(base):
        if dataclasses.is_dataclass(base) and not isinstance(base, type):
            names = [field.name for field in dataclasses.fields(base)]
            return dataclasses.replace(
                base, **{name: merged(getattr(base, name), getattr(one, name), getattr(other, name)) for name in names}
            )
        if isinstance(base, dict) and set(one) == set(other) == set(base):
            return {key: merged(base[key], one[key], other[key]) for key in base}
        if isinstance(base, tuple) and len(one) == len(other) == len(base):
            return tuple(merged(*items) for items in zip(base, one, other))
    raise Conflict


#: a second fault of the same fact by which the first is about something that is not judged, and why: all of a kind, or
#: the facts that begin so
VOID: typing.Mapping[str, tuple[tuple[str, ...], str]] = {
    "firmware": (
        ("node.error", "node.hcas[].address", "node.hcas[].settings[].name"),
        "an HCA of another address, or a setting of another name, is not asked for; nor is a node without the tools",
    ),
    "nic_devices.nics": (
        ("devices[].node", "devices[].ports"),
        "a NicDevice of another node or port is not of the fleet",
    ),
    "bios": (
        ("node.settings[].key", "node.asserted"),
        "an attribute of another setting, which virtual functions prove; or the user's word, where nothing is compared",
    ),
    "operators.images": (
        ("rules[].source", "rules[].mirrors", "rules[].never"),
        "a rule of another source, or without mirrors, redirects nothing, and one that allows the source forbids less",
    ),
    "tuning": (("node.rows[cpu_model]", "node.rows[gpu_model]", "node.rows[hca_model]"), "a node of another kind"),
    "addresses": (
        ("pools", "taken(pods).kind", "taken(services).kind", "taken(node).kind"),
        "a pool of another name or kind is not that of the fabric, which is yet to be made; and an attachment, which a"
        " tenant may write, keeps no fabric from being made",
    ),
    "needed_operators.operators": (("controllers[].wanted",), "two pods are wanted, and two are ready"),
    "hcas": (("node.hcas(PF).pci.link",), "a card that can do no more, in all that it says"),
    "topologies": (("node[].errors",), "ibqueryerrors names the counters that are above 0, so that it may name none"),
    "rolls": (("[].machines",), "more machines of the pool, of which each has come"),
    "nccl_log.log": (
        ("communicators[].ranks[].routes(NET).transport",),
        "a channel by NVLink or the memory of the host uses no HCA, so that nothing is asked of one",
    ),
    "pings": (("node[].transmitted", "node[].received"), "more pings, of which each came back"),
}


def faults_of_one_fact(shape: Shape, count: int) -> typing.Iterator[str]:
    """What gets better by a second fault of the same fact, at another place."""
    fleet, found, chance = healthy(shape), breaks_of(shape), random.Random(f"{shape.name} one fact {count}")
    numbers: dict[Source, list[int]] = {}
    for number, broken in enumerate(found):
        if broken.source in broken.facts:
            numbers.setdefault(broken.source, []).append(number)
    for _turn in range(count):
        source = chance.choice(list(numbers))
        one, other = chance.choice(numbers[source]), chance.choice(numbers[source])
        void, _reason = VOID.get(kind_of(source), ((), ""))
        if any(found[number].case.fact.startswith(fact) for number in (one, other) for fact in void):
            continue
        try:
            value = merged(*(facts[source] for facts in (fleet.facts, found[one].facts, found[other].facts)))
            value = load(hint_of(source), to_data(value), "facts")
        except (Conflict, LoadError):
            # a stage that can't load a fact is closed
            continue
        alone = max((of_break(shape, one), of_break(shape, other)), key=lambda item: -ORDER.index(item))
        now = verdict(fleet, stages_of(source), with_value(source, fleet.facts, value))
        if ORDER.index(now) > ORDER.index(alone):
            yield f"{found[one].words} and {found[other].words}: {now}, and alone {alone}"


def test_a_second_fault_of_the_same_fact_is_never_better() -> None:
    assert [text for shape in SMALL for text in faults_of_one_fact(shape, DRAWN)] == []


@pytest.mark.thorough
def test_no_second_fault_of_the_same_fact_of_many_is_better() -> None:
    assert [text for shape in SMALL for text in faults_of_one_fact(shape, MANY)] == []


# what is sick, twice or elsewhere


def with_value(source: Source, facts: Facts, value: typing.Any) -> Facts:
    return {**facts, source: value}


def lists_of(value: typing.Any, path: tuple[typing.Any, ...] = ()) -> typing.Iterator[tuple[typing.Any, ...]]:
    """The way to each list below that has entries, by fields, keys and numbers."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from lists_of(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from lists_of(item, (*path, key))
    elif isinstance(value, tuple) and value:
        yield path
        for number, item in enumerate(value):
            yield from lists_of(item, (*path, number))


def at(value: typing.Any, path: typing.Sequence[typing.Any]) -> typing.Any:
    for step in path:
        value = getattr(value, step) if dataclasses.is_dataclass(value) else value[step]
    return value


def changed(value: typing.Any, path: typing.Sequence[typing.Any], new: typing.Any) -> typing.Any:
    """The same with another value at one place."""
    if not path:
        return new
    inner = changed(at(value, path[:1]), path[1:], new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{path[0]: inner})
    if isinstance(value, dict):
        return {**value, path[0]: inner}
    return (*value[: path[0]], inner, *value[path[0] + 1 :])


def doubled_entries(shape: Shape, count: int) -> typing.Iterator[str]:
    """What gets better where a list holds a sick entry and, before or behind it, the healthy one that it was: two
    entries about one thing."""
    fleet, found, chance = healthy(shape), breaks_of(shape), random.Random(f"{shape.name} twice {count}")
    lists = {source: list(lists_of(value)) for source, value in fleet.facts.items()}
    for number in chance.sample(range(len(found)), min(4 * count, len(found))):
        broken = found[number]
        sick, whole = broken.facts.get(broken.source), fleet.facts[broken.source]
        if kind_of(broken.source) == "firmware":
            # a node without the tools is none the worse, as the table says
            continue
        places = [(path, entry) for path in lists[broken.source] for entry in differing(sick, whole, path)]
        if not places or of_break(shape, number) == SILENT:
            continue
        path, entry = chance.choice(places)
        entries, was = at(sick, path), at(whole, path)[entry]
        for behind in (0, 1):
            twice = changed(sick, path, (*entries[: entry + behind], was, *entries[entry + behind :]))
            try:
                value = load(hint_of(broken.source), to_data(twice), "facts")
            except LoadError:
                # the stage is closed
                continue
            now = verdict(fleet, stages_of(broken.source), with_value(broken.source, fleet.facts, value))
            if ORDER.index(now) > ORDER.index(of_break(shape, number)):
                yield (
                    f"{broken.words}, and {'behind' if behind else 'before'} it what it was: {now}, and alone"
                    f" {of_break(shape, number)}"
                )


def differing(sick: typing.Any, whole: typing.Any, path: typing.Sequence[typing.Any]) -> typing.Iterator[int]:
    """The number of the one entry that was changed, in a list of as many, where it is still about the same thing."""
    try:
        one, other = at(sick, path), at(whole, path)
    except (KeyError, IndexError, AttributeError, TypeError):
        return
    if isinstance(one, tuple) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other)):
            if a != b and list_keys(type(b)) and find_second(list_keys(type(b)), (a, b)) is not None:
                yield number


def swapped(shape: Shape, count: int) -> typing.Iterator[str]:
    """What gets better where two nodes have each other's answer of one kind: it is sick still."""
    fleet, found, chance = healthy(shape), breaks_of(shape), random.Random(f"{shape.name} swapped {count}")
    numbers = [number for number, broken in enumerate(found) if isinstance(broken.source, (OfNodes, OfNodesThatHaveIt))]
    for number in chance.sample(numbers, min(count, len(numbers))):
        broken = found[number]
        nodes = broken.facts.get(broken.source)
        if not isinstance(nodes, dict) or len(nodes) < 2:
            continue
        names = list(nodes)
        sick = next((name for name in names if nodes[name] != fleet.facts[broken.source].get(name)), names[0])
        # nodes of two models are no equals: what is odd in one may be right in the other
        step = 2 if shape.mixed else 1
        other = names[(names.index(sick) + step) % (len(names) - len(names) % step)]
        if other == sick:
            continue
        value = {name: nodes[{sick: other, other: sick}.get(name, name)] for name in names}
        now = verdict(fleet, stages_of(broken.source), with_value(broken.source, broken.facts, value))
        if ORDER.index(now) > ORDER.index(of_break(shape, number)):
            yield f"{broken.words}, swapped with that of {other}: {now}, and alone {of_break(shape, number)}"


#: what differs between nodes, and yet not by the node that told it
_OF_NO_NODE: typing.Mapping[str, str] = {
    "topologies": "a fabric looks the same from each of its ports; GUIDs tell whose they are",
}


def rotated(shape: Shape) -> typing.Iterator[str]:
    """The facts of a healthy fleet that may be under the name of another node, kind by kind and all at once."""
    fleet = healthy(shape)
    names = fleet.shape.names
    # nodes of two models are no equals
    step = 2 if shape.mixed else 1
    equal = names[: len(names) - len(names) % step]
    other = {**{name: name for name in names}, **dict(zip(equal, (*equal[step:], *equal[:step])))}
    turned: dict[Source, typing.Any] = {}
    for source, value in fleet.facts.items():
        if isinstance(source, (OfNodes, OfNodesThatHaveIt, OfListedNodes)):
            now = {name: value[other[name]] for name in value}
            if now != value:
                turned[source] = now
    kinds = {kind_of(source): {source: now} for source, now in turned.items() if kind_of(source) not in _OF_NO_NODE}
    for words, changed_facts in (*kinds.items(), ("all", turned)):
        if verdict(fleet, TABLE, {**fleet.facts, **changed_facts}) != CLOSED:
            yield f"{shape.name}: {words}"


def test_what_a_node_told_is_bound_to_its_name() -> None:
    """A fact of each node under the name of the next one, as where addresses are swapped in an inventory."""
    assert [text for shape in SMALL for text in rotated(shape)] == []


def test_what_is_sick_stays_sick_beside_what_it_was() -> None:
    assert [text for shape in SMALL for text in doubled_entries(shape, DRAWN)] == []


def test_what_is_sick_stays_sick_at_another_node() -> None:
    assert [text for shape in SMALL for text in swapped(shape, DRAWN)] == []


@pytest.mark.thorough
def test_much_that_is_sick_stays_sick() -> None:
    assert [text for shape in SMALL for draw in (doubled_entries, swapped) for text in draw(shape, MANY)] == []


# fleets that are equal


def said(fleet: Fleet, stage: str, facts: Facts) -> Said:
    return sorted(
        (item.check, item.subject, item.status) for item in findings(fleet, stage, facts) if item.status != PASS
    )


def mapped(
    value: typing.Any, text: typing.Callable[[str], str], order: typing.Callable[[list[typing.Any]], list[typing.Any]]
) -> typing.Any:
    """The same with other texts, and its mappings in another order."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {
            text(key) if isinstance(key, str) else key: mapped(item, text, order)
            for key, item in order(list(value.items()))
        }
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(mapped(item, text, order) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value,
            **{field.name: mapped(getattr(value, field.name), text, order) for field in dataclasses.fields(value)},
        )
    return value


def runs(shape: Shape, count: int) -> typing.Iterator[tuple[str, tuple[str, ...], Facts]]:
    """Words, stages and facts of runs: the healthy one, and some with one fact broken."""
    yield "healthy", tuple(TABLE), healthy(shape).facts
    chance = random.Random(f"{shape.name} equal")
    for broken in chance.sample(breaks_of(shape), count):
        yield broken.words, stages_of(broken.source), broken.facts


def other_names(shape: Shape) -> tuple[typing.Callable[[str], str], typing.Callable[[str], str]]:
    """To other names of the nodes, which are in another order, and back."""
    names = {name: f"gpu-{chr(ord('z') - number)}{number}" for number, name in enumerate(shape.names)}
    back = {new: old for old, new in names.items()}
    there = re.compile("|".join(rf"(?<![\w.]){name}(?![\w])" for name in names))
    return lambda text: there.sub(lambda match: names[match.group()], text), lambda text: re.sub(
        "|".join(map(re.escape, back)), lambda match: back[match.group()], text
    )


def in_any_order(found: Said, name: typing.Callable[[str], str]) -> list[tuple[str, list[str], str]]:
    """What was said, with the words of each subject sorted: it names nodes in their order."""
    return sorted((check, sorted(re.findall(r"[^\s,]+", name(subject))), status) for check, subject, status in found)


def test_nodes_of_other_names_in_another_order_are_judged_equally() -> None:
    for shape in SMALL:
        fleet, (there, back) = healthy(shape), other_names(shape)
        for words, stages, facts in runs(shape, 12):
            renamed = {source: mapped(value, there, lambda items: items[::-1]) for source, value in facts.items()}
            for stage in stages:
                assert in_any_order(said(fleet, stage, renamed), back) == in_any_order(
                    said(fleet, stage, facts), str
                ), words


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns"])
def test_another_time_zone_of_the_controller_changes_nothing(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        (words, stage, facts, said(healthy(shape), stage, facts), shape)
        for shape in SMALL
        for words, stages, facts in runs(shape, 4)
        for stage in stages
    ]
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for words, stage, facts, before, shape in known:
            assert said(healthy(shape), stage, facts) == before, words
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_fleet_of_twice_as_many_nodes_is_judged_equally() -> None:
    """One sick node among four is told as among two: by the same checks, as bad."""
    fleet, large = healthy(PAIR), healthy(dataclasses.replace(PAIR, nodes=4))
    chance, wrong = random.Random("doubled"), []
    numbers = [
        number
        for number, broken in enumerate(breaks_of(PAIR))
        if isinstance(broken.source, OfNodes) and broken.facts.get(broken.source)
    ]
    for number in chance.sample(numbers, 2 * DRAWN):
        broken = breaks_of(PAIR)[number]
        sick = {
            name: value
            for name, value in broken.facts[broken.source].items()
            if value != fleet.facts[broken.source].get(name)
        }
        facts = with_value(broken.source, large.facts, {**large.facts[broken.source], **sick})
        now = verdict(large, stages_of(broken.source), facts)
        if ORDER.index(now) > ORDER.index(of_break(PAIR, number)):
            wrong.append(f"{broken.words}: {now}, and of two nodes {of_break(PAIR, number)}")
    assert not wrong, "\n".join(wrong)
