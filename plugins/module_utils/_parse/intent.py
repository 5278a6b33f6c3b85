# SPDX-License-Identifier: GPL-3.0-or-later

"""Load the user variables ``rdma_fabrics``, ``rdma_waivers`` and ``rdma_cluster`` into an Intent.

Only the form of the variables is checked here: types, unknown keys and missing keys. _check/validate/check.py checks
rules that concern several fields.
"""

from __future__ import annotations

import dataclasses
import typing

from .._model.base.errors import RdmaError
from .._model.base.load import load
from .._model.base.load_error import LoadError
from .._model.base.load_exactly import load_all, make_partial
from .._model.base.text import kind_of
from .._model.intent.intent import ClusterIntent, Fabric, Intent
from .._model.intent.mirror import EVERYTHING, Mirror, on_mirror
from .._model.intent.proposal import PLACEHOLDER
from .._model.run.findings import MOST_WAIVERS, Waiver

#: fabrics of an intent. A server has some ten HCAs; each fabric is compared with each other one, and the intent may be
#: that of a stranger's folder
MOST_FABRICS = 100


class IntentError(RdmaError):
    """The error for user variables that do not form a valid intent.

    :ivar problems: one error for each invalid part, with its path as the user wrote it. Placeholders that are not
        filled in come last
    :ivar partial: the intent with the variables that could be read. Access to any other field raises ``Unread``
    """

    def __init__(self, problems: typing.Sequence[LoadError], partial_intent: Intent) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
        self.partial = partial_intent


def parse_intent(fabrics: typing.Any, waivers: typing.Any = None, cluster: typing.Any = None) -> Intent:
    """Load the three variables of the user into an intent.

    :param fabrics: value of ``rdma_fabrics``, a list of mappings
    :param waivers: value of ``rdma_waivers``; None if the user has no waivers
    :param cluster: value of ``rdma_cluster``; None for the defaults
    :returns: the intent. If ``rdma_cluster.mirror`` is set, its images have their names on the mirror
    :raises IntentError: a variable is invalid. The error lists the problems of all three
    """
    problems: list[LoadError] = []
    values = {
        "fabrics": _load_list(Fabric, _normalize_subnet_managers(fabrics), "rdma_fabrics", problems),
        "waivers": _load_list(Waiver, [] if waivers is None else waivers, "rdma_waivers", problems),
        "cluster": _load_one(ClusterIntent, {} if cluster is None else _add_mirror(cluster), "rdma_cluster", problems),
    }
    blanks = [
        *_list_placeholder_errors(fabrics, "rdma_fabrics"),
        *_list_placeholder_errors(waivers, "rdma_waivers"),
        *_list_placeholder_errors(cluster, "rdma_cluster"),
    ]
    places = {blank.path for blank in blanks}
    # a blank may have a wrong type as well: that it is to be filled in says all
    problems = [*(problem for problem in problems if problem.path not in places), *blanks]
    read = {name: value for name, value in values.items() if value is not None}
    if problems:
        raise IntentError(problems, make_partial(Intent, read, values.keys() - read.keys()))
    return _on_mirror(Intent(**read))


def mirror_of(data: typing.Any) -> Mirror:
    """Load the value of ``rdma_cluster.mirror`` as a mapping from an original registry to its mirror. A text is the
    mirror of all images. Return an empty mapping if the value is None or empty.

    :raises LoadError: the value is neither a text nor a mapping of texts
    """
    found: Mirror = load(dict[str, str], _normalize_mirror(data), "rdma_cluster.mirror")
    return found


def _normalize_mirror(data: typing.Any) -> typing.Any:
    """Return a mirror as a mapping from an original registry to its mirror. A text becomes the mirror of all images.
    None and an empty text become an empty mapping. Any other value is returned unchanged, and is validated later.
    """
    return {} if data is None or data == "" else {EVERYTHING: data} if isinstance(data, str) else data


def _add_mirror(cluster: typing.Any) -> typing.Any:
    """Return ``rdma_cluster`` with the mirror in its long form. A value of another type, or without a mirror, is
    returned unchanged.
    """
    return (
        {**cluster, "mirror": _normalize_mirror(cluster["mirror"])}
        if isinstance(cluster, dict) and "mirror" in cluster
        else cluster
    )


def _on_mirror(intent: Intent) -> Intent:
    """Return the intent with the name of each container image replaced by its name on the mirror. Renderers and checks
    see only these names. Without a mirror the intent is returned unchanged.
    """
    cluster, mirror = intent.cluster, intent.cluster.mirror
    if not mirror:
        return intent
    operator = dataclasses.replace(
        cluster.network_operator, repository=on_mirror(cluster.network_operator.repository, mirror)
    )
    fabrics = tuple(
        dataclasses.replace(item, pods=dataclasses.replace(item.pods, image=on_mirror(item.pods.image, mirror)))
        for item in intent.fabrics
    )
    wanted = cluster.collectives
    collectives = dataclasses.replace(wanted, image=on_mirror(wanted.image, mirror)) if wanted is not None else None
    return dataclasses.replace(
        intent,
        fabrics=fabrics,
        cluster=dataclasses.replace(cluster, network_operator=operator, collectives=collectives),
    )


def _list_placeholder_errors(data: typing.Any, path: str) -> typing.Iterator[LoadError]:
    """Yield an error for each text in a value, at any depth, that is still the placeholder of a generated proposal,
    which the user must replace.

    :param data: value of a user variable, or a part of it
    :param path: path of the value in the user variables, for messages
    """
    if isinstance(data, dict):
        for key, item in data.items():
            yield from _list_placeholder_errors(item, f"{path}.{key}")
    elif isinstance(data, (list, tuple)):
        for index, item in enumerate(data):
            yield from _list_placeholder_errors(item, f"{path}[{index}]")
    elif isinstance(data, str) and data.startswith(PLACEHOLDER):
        hint = data[len(PLACEHOLDER) :].strip(" :")
        yield LoadError(path, "not filled in yet", hint or f"a value instead of {PLACEHOLDER}")


def _normalize_subnet_managers(fabrics: typing.Any) -> typing.Any:
    """Return the fabrics with each ``select.subnet_manager`` that is a text replaced by a list of this one text, and
    each null by an empty list. Most users write only ``any``. An invalid value is returned unchanged.

    :param fabrics: value of ``rdma_fabrics`` as the user wrote it
    """
    return [_add_managers(item) for item in fabrics] if isinstance(fabrics, (list, tuple)) else fabrics


def _add_managers(fabric: typing.Any) -> typing.Any:
    """Return a fabric with ``select.subnet_manager`` as a list. A single GUID becomes a list of one, and a null an
    empty list. A value of another form is returned unchanged.
    """
    select = fabric.get("select") if isinstance(fabric, dict) else None
    if not isinstance(select, dict) or not isinstance(select.get("subnet_manager", []), (str, type(None))):
        return fabric
    manager = select.get("subnet_manager")
    return {**fabric, "select": {**select, "subnet_manager": [] if manager is None else [manager]}}


def _load_list(
    cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]
) -> typing.Optional[tuple[typing.Any, ...]]:
    """Load a list of fabrics or waivers, and return the items, of which invalid ones may be incomplete. Return None if
    the value is not a list, has too many items, or is an empty list of fabrics.

    :param cls: dataclass of an item
    :param data: value of the variable as the user wrote it
    :param path: name of the variable, for messages
    :param problems: list to which all errors are appended
    """
    if not isinstance(data, (list, tuple)):
        problems.append(LoadError(path, "missing" if data is None else kind_of(data), "a list of mappings"))
        return None
    what, most = ("fabrics", MOST_FABRICS) if cls is Fabric else ("waivers", MOST_WAIVERS)
    if len(data) > most:
        problems.append(LoadError(path, f"{len(data)} {what}", f"at most {most}"))
        return None
    if not data and cls is Fabric:
        problems.append(LoadError(path, "an empty list", "at least one fabric"))
        return None
    return tuple([_load_one(cls, item, f"{path}[{index}]", problems) for index, item in enumerate(data)])


def _load_one(cls: typing.Any, data: typing.Any, path: str, problems: list[LoadError]) -> typing.Any:
    value, found = load_all(cls, data, path)
    problems += found
    return value
