# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the registry of a BIOS: the display names of its attributes, their allowed values, and the conditions under
which they are read-only. DMTF AttributeRegistry v1.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.errors import ParseError
from ..._model.node.bios import KEYS, BiosValue
from .keys import is_display, is_name
from .resource import MOST_LETTERS, Data, get_inner, get_last_part, get_mapping, get_rows, is_path, text_at

_PREFIX = "biosattributeregistry"
#: attributes that belong to a key, where a real BIOS has some 30, rules of one of them, and conditions of a rule, where
#: it has a few
_MOST_WANTED, _MOST_RULES, _MOST_CONDITIONS = 300, 64, 64
#: allowed values of all these attributes, each counted once for each key that its attribute belongs to. A real BIOS has
#: some hundred: the settings of a node repeat them for each key
_MOST_VALUES = 8192
_READ_ONLY = ("ReadOnly", "GrayOut")


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition on the current value of a BIOS attribute.

    :ivar attribute: name of the attribute
    :ivar equal: True if the attribute must have the value, False if it must not
    :ivar value: value with which that of the attribute is compared
    """

    attribute: str
    equal: bool
    value: str


@dataclasses.dataclass(frozen=True)
class Dependency:
    """A rule of the registry: if conditions on other attributes hold, a property of an attribute is set.

    :ivar property: the property that is set: ``Hidden``, ``ReadOnly`` or ``GrayOut``
    :ivar conditions: conditions on other attributes
    :ivar every: True if all conditions must hold; False if a single condition is enough
    """

    property: str
    conditions: tuple[Condition, ...]
    every: bool


@dataclasses.dataclass(frozen=True)
class Entry:
    """One attribute in the registry.

    :ivar name: name of the attribute
    :ivar display_name: name that the BIOS shows
    :ivar values: name and display name of each allowed value
    :ivar hidden: whether the BIOS does not show the attribute
    :ivar read_only: whether the attribute cannot be written now
    :ivar immutable: whether the attribute can never be changed
    :ivar reset_required: whether a new value takes effect only after a reset; None if not known
    :ivar dependencies: rules that make the attribute hidden or read-only
    """

    name: str
    display_name: str
    values: tuple[tuple[str, str], ...]
    hidden: bool
    read_only: bool
    immutable: bool
    reset_required: typing.Optional[bool]
    dependencies: tuple[Dependency, ...]

    def allowed(self, current: typing.Any) -> tuple[BiosValue, ...]:
        """Return the allowed values in the form in which the BMC reports the current value: by display name, which
        Supermicro uses, if the current value is only a display name, and otherwise by name. The result is empty if the
        registry lists no values.

        :param current: value that the BMC reports now
        """
        names, labels = {name for name, _label in self.values}, {label for _name, label in self.values}
        by_label = current in labels and current not in names
        return tuple(BiosValue(label, name) if by_label else BiosValue(name, label) for name, label in self.values)

    def is_hidden(self, attributes: typing.Mapping[str, typing.Any]) -> bool:
        """Return whether the BIOS hides the attribute. Dependencies count if there are any, otherwise the registry
        does.

        :param attributes: current values, by name of the attribute
        """
        ruled = [one for one in self.dependencies if one.property == "Hidden"]
        return any(_is_dependency_active(one, attributes) for one in ruled) if ruled else self.hidden

    def why_read_only(self, attributes: typing.Mapping[str, typing.Any]) -> str:
        """Return the reason why this attribute cannot be written now. Return an empty string if it can be written.

        :param attributes: current values of all attributes of the BIOS, by name
        """
        ruled = [one for one in self.dependencies if one.property in _READ_ONLY]
        for one in ruled:
            if _is_dependency_active(one, attributes):
                others = ", ".join(
                    sorted(
                        {
                            f"{condition.attribute} is {attributes.get(condition.attribute)}"
                            for condition in one.conditions
                        }
                    )
                )
                return f"dependency: the attribute cannot be written while {others}"
        if self.immutable or (self.read_only and not ruled):
            return "the attribute registry of the BIOS reports it as read-only"
        return ""


@dataclasses.dataclass(frozen=True)
class Registry:
    """The registry of a BIOS, reduced to the attributes that belong to a setting of the collection. All nodes of one
    model and BIOS version have the same registry.

    :ivar path: path of the registry on the BMC
    :ivar entries: attributes that belong to a setting of the collection, with their values and rules
    """

    path: str
    entries: tuple[Entry, ...]


def find_candidates(paths: typing.Iterable[str], name: str) -> tuple[str, ...]:
    """Return the paths of the registries of a BMC that may describe its BIOS. If there are several, the caller must
    choose by the systems that they support. The result is empty if the BMC has no registry of BIOS attributes.

    :param paths: paths of the members of /redfish/v1/Registries
    :param name: name of the registry in the Bios resource. With some vendors no member has this name
    """
    found = [path for path in paths if get_last_part(path).lower().startswith(_PREFIX)]
    exact = [path for path in found if get_last_part(path).lower() == name.lower()]
    same = [path for path in found if get_last_part(path).lower().partition(".")[0] == name.lower().partition(".")[0]]
    return tuple(exact[:1] or same or found)


def find_location(data: Data) -> str:
    """Return the path of the content of a registry on the BMC. If there are several languages, return the path of the
    English one. PublicationUri is not used, because it is an address in the internet.

    :param data: JSON data of the registry's file resource
    :raises ParseError: the registry has no such path
    """
    found = get_mapping(data, "a registry").get("Location")
    places = sorted(get_rows(found), key=lambda place: not text_at(place, "Language").lower().startswith("en"))
    paths = [place["Uri"] for place in places if is_path(place.get("Uri"))]
    if not paths:
        raise ParseError("the location of a registry", str(found), "a list with the path of its content on this BMC")
    return str(paths[0])


def is_system_supported(data: Data, model: str, serial: str) -> bool:
    """Return whether a registry lists the system with this model or serial number as supported. An empty model or
    serial number matches nothing.

    :raises ParseError: the data is not a registry
    """
    named = {
        text_at(row, name)
        for row in get_rows(get_mapping(data, "a registry").get("SupportedSystems"))
        for name in ("ProductName", "SystemId")
    }
    return bool(named & {model, serial} - {""})


def parse(data: Data, path: str) -> Registry:
    """Return the attributes of a BIOS attribute registry that belong to a setting of the collection.

    :param data: JSON data of the registry
    :param path: path of the registry on the BMC, for messages
    :raises ParseError: the data is not an attribute registry, or it has too many attributes, values, rules or
        conditions
    """
    entries = get_inner(get_mapping(data, "a registry"), "RegistryEntries")
    found = [row for row in get_rows(entries.get("Attributes")) if isinstance(row.get("AttributeName"), str)]
    if not found:
        raise ParseError(f"registry {path}", str(entries.get("Attributes")), "a list of attributes with names")
    # a BMC that has a job for its BIOS, or is locked down, calls all of them read-only: that is its state, not the
    # registry's
    locked = all(row.get("ReadOnly") is True for row in found)
    rules = _parse_dependencies(entries.get("Dependencies"))
    # each by its name: one that is there twice would be looked at with all of its rules each time
    wanted = {row["AttributeName"]: row for row in reversed(found) if _count_keys(row)}
    ruled = [rules.get(name, []) for name in wanted]
    most_rules = max(map(len, ruled), default=0)
    most_conditions = max((len(rule.conditions) for its in ruled for rule in its), default=0)
    if len(wanted) > _MOST_WANTED or most_rules > _MOST_RULES or most_conditions > _MOST_CONDITIONS:
        told = (
            f"{len(wanted)} attributes, with up to {most_rules} rules each and up to {most_conditions} conditions for"
            " a rule"
        )
        bound = (
            f"at most {_MOST_WANTED} attributes of the queried kind, with at most {_MOST_RULES} rules each and at"
            f" most {_MOST_CONDITIONS} conditions for a rule"
        )
        raise ParseError(f"registry {path}", told, bound)
    values = sum(len(get_rows(row.get("Value"))) * _count_keys(row) for row in wanted.values())
    if values > _MOST_VALUES:
        raise ParseError(f"registry {path}", f"{values} attribute values", f"at most {_MOST_VALUES}")
    return Registry(
        path,
        tuple(
            _parse_registry_entry(row, locked, tuple(rules.get(name, ()))) for name, row in reversed([*wanted.items()])
        ),
    )


def _count_keys(row: Data) -> int:
    """Return the number of settings of the collection, such as sriov, to which an attribute of the registry belongs.
    Return 0 for a password, and for an attribute whose names are missing or too long.

    :param row: the attribute in the registry
    """
    name, display = row["AttributeName"], row.get("DisplayName")
    if not isinstance(display, str) or max(len(name), len(display)) > MOST_LETTERS or row.get("Type") == "Password":
        return 0
    return sum(is_display(key, name, display) or is_name(key, name) for key in KEYS)


def _parse_registry_entry(row: Data, locked: bool, dependencies: tuple[Dependency, ...]) -> Entry:
    """Return an attribute of the BIOS from its entry in the registry. A value with a text that is too long is left out.

    :param locked: whether all entries are read-only, which is the state of the BMC and not of the attribute
    :param dependencies: rules that change the entry by the values of other attributes
    """
    pairs = [(value.get("ValueName"), value.get("ValueDisplayName")) for value in get_rows(row.get("Value"))]
    named = [(str(name), str(name if label is None else label)) for name, label in pairs if name is not None]
    reset = row.get("ResetRequired")
    return Entry(
        name=row["AttributeName"],
        display_name=row["DisplayName"],
        # as for the current value: the screen of a BIOS shows no longer text
        values=tuple((name, label) for name, label in named if max(len(name), len(label)) <= MOST_LETTERS),
        hidden=row.get("Hidden") is True,
        read_only=row.get("ReadOnly") is True and not locked,
        immutable=row.get("Immutable") is True,
        reset_required=reset if isinstance(reset, bool) else None,
        dependencies=dependencies,
    )


def _parse_dependencies(data: typing.Any) -> dict[str, list[Dependency]]:
    """Return the dependencies that make an attribute hidden or read-only, by the name of the attribute. A dependency of
    an unknown form is left out.

    :param data: value of ``Dependencies`` in the registry
    """
    found: dict[str, list[Dependency]] = {}
    for rule in (get_inner(item, "Dependency") for item in get_rows(data)):
        if str(rule.get("MapToValue")).lower() != "true" or rule.get("MapToProperty") not in ("Hidden", *_READ_ONLY):
            continue
        terms = get_rows(rule.get("MapFrom"))
        known = all(
            term.get("MapFromProperty") == "CurrentValue" and term.get("MapFromCondition") in ("EQU", "NEQ")
            for term in terms
        )
        if terms and known:
            conditions = tuple(
                Condition(
                    str(term.get("MapFromAttribute")), term["MapFromCondition"] == "EQU", str(term.get("MapFromValue"))
                )
                for term in terms
            )
            # without a word between them Dell means 'or': one attribute is compared with several values
            every = any(term.get("MapTerms") == "AND" for term in terms)
            found.setdefault(str(rule.get("MapToAttribute")), []).append(
                Dependency(rule["MapToProperty"], conditions, every)
            )
    return found


def _is_dependency_active(dependency: Dependency, attributes: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether a dependency applies while the BIOS has the given attribute values. A condition on an attribute
    that the BIOS does not report counts as not fulfilled.

    :param attributes: current values of the attributes, by name
    """
    answers = [
        attributes.get(condition.attribute) is not None
        and (str(attributes[condition.attribute]) == condition.value) == condition.equal
        for condition in dependency.conditions
    ]
    return all(answers) if dependency.every else any(answers)
