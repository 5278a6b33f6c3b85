# SPDX-License-Identifier: GPL-3.0-or-later

"""The user's changes to the installation of operators: charts, packages of OLM, and operators that no run installs."""

from __future__ import annotations

import dataclasses
import typing

from .._model.base.errors import RdmaError
from .._model.base.load import load
from .._model.operators.operators import TABLE


@dataclasses.dataclass(frozen=True)
class ChartWish:
    """The user's changes to a Helm chart. A field that is None or empty keeps the default.

    :ivar chart: name of the chart, path of a folder or archive, or OCI address
    :ivar repository: address of the chart repository
    :ivar release: name of the Helm release
    :ivar values: values that replace those that follow from the intent
    """

    chart: typing.Optional[str] = None
    repository: typing.Optional[str] = None
    version: typing.Optional[str] = None
    namespace: typing.Optional[str] = None
    release: typing.Optional[str] = None
    values: typing.Optional[dict[str, typing.Any]] = None


@dataclasses.dataclass(frozen=True)
class PackageWish:
    """The user's changes to an OLM package. A field that is None keeps the default. The catalog chooses ``channel`` and
    ``version`` if they are None.

    :ivar source: name of the CatalogSource
    :ivar source_namespace: namespace of the CatalogSource
    """

    package: typing.Optional[str] = None
    namespace: typing.Optional[str] = None
    channel: typing.Optional[str] = None
    version: typing.Optional[str] = None
    source: typing.Optional[str] = None
    source_namespace: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class OperatorRequests:
    """The user's changes to the installation of operators.

    :ivar charts: changes to charts, by operator
    :ivar packages: changes to packages, by operator
    :ivar leave: operators that the run must not install
    """

    charts: dict[str, ChartWish] = dataclasses.field(default_factory=dict)
    packages: dict[str, PackageWish] = dataclasses.field(default_factory=dict)
    leave: tuple[str, ...] = ()

    def unknown(self) -> tuple[str, ...]:
        """Return the names in the requests that are not the name of a supported operator."""
        return tuple(sorted({*self.charts, *self.packages, *self.leave} - {operator.name for operator in TABLE}))

    def name_packages(self) -> dict[str, str]:
        """Return the package that the user requests for each operator, by the name of the operator. Operators for which
        the user requests no other package are left out.
        """
        return {name: wish.package for name, wish in self.packages.items() if wish.package}


def collect_requests(charts: typing.Any, packages: typing.Any, leave: typing.Any) -> OperatorRequests:
    """Return the user's changes to the installation of operators, from the options of a module.

    :param charts: changes to charts, by operator
    :param packages: changes to OLM packages, by operator
    :param leave: names of operators that the run must not install
    :raises RdmaError: a name is not the name of an operator, or a key is invalid
    """
    found: OperatorRequests = load(
        OperatorRequests, {"charts": charts, "packages": packages, "leave": leave}, "operators"
    )
    if found.unknown():
        raise RdmaError(
            f"this collection does not support the operator {', '.join(found.unknown())}",
            f"Use one of: {', '.join(operator.name for operator in TABLE)}",
        )
    return found
