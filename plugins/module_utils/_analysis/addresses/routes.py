# SPDX-License-Identifier: GPL-3.0-or-later

"""Stage validate: check the routes that a fabric gives to its pods. Check id: ``validate.routes``."""

from __future__ import annotations

import typing

from ..._model.base.rules import run_rule
from ..._model.intent.networks import Ipam, Route
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from ..._parse.kubernetes.networks.addresses import Network, RangeError, parse_network, parse_range


def report_routes_alone(ipam: Ipam, path: str) -> typing.Iterator[Finding]:
    """Yield a failed finding for each route whose destination is not a valid network. The range is not used, since it
    may be invalid.

    :param path: path of the ipam mapping in the intent
    """
    for index, route in enumerate(ipam.routes):
        yield from run_rule(_report_route_alone, route, f"{path}.routes[{index}].dst")


def _report_route_alone(route: Route, place: str) -> typing.Iterator[Finding]:
    try:
        parse_network(route.dst)
    except RangeError as error:
        yield Finding("validate.routes", place, FAIL, f"'{route.dst}'", error.expected, error.why, error.remedy)


def check_routes(ipam: Ipam, network: Network, path: str) -> list[Finding]:
    """Return a finding on each route of an ipam mapping.

    :param network: network of the range
    :param path: path of the ipam mapping in the intent
    """
    findings: list[Finding] = []
    for index, route in enumerate(ipam.routes):
        subject = f"{path}.routes[{index}]"
        try:
            target = parse_network(route.dst)
        except RangeError as error:
            findings.append(
                Finding(
                    "validate.routes", f"{subject}.dst", FAIL, f"'{route.dst}'", error.expected, error.why, error.remedy
                )
            )
            continue
        if target.version != network.version:
            why = "A route to a network of a different IP version cannot use this network."
            findings.append(
                Finding(
                    "validate.routes",
                    f"{subject}.dst",
                    FAIL,
                    str(target),
                    f"a network of IPv{network.version}, as the range",
                    why,
                    f"Set {subject}.dst to a network of IPv{network.version}, or remove the route.",
                )
            )
        elif target.prefixlen == 0:
            why = (
                "This is a default route over the secondary network, and the pod already has a default route over the"
                " cluster network. Traffic to the API server, DNS and external destinations could leave over a network"
                " that cannot carry it."
            )
            remedy = (
                "Remove the route. To reach other networks of the fabric, add a route to each of them, for example"
                " 100.101.0.0/16."
            )
            findings.append(
                Finding("validate.routes", f"{subject}.dst", WARN, str(target), "no default route", why, remedy)
            )
        else:
            findings.append(_check_way(ipam, route.gw, network, subject, target))
    return findings


def _check_way(ipam: Ipam, way: typing.Optional[str], network: Network, subject: str, target: Network) -> Finding:
    """Check the gateway of a route. With nv-ipam it is that of the pool, otherwise it must be on the network of the
    pods.

    :param way: gateway of the route (``gw``); None for that of ``ipam``
    :param network: network of the pods
    :param subject: subject of the finding: path of the route in the intent
    :param target: destination of the route
    """
    if ipam.type == "nv-ipam":
        has_gateway = ipam.gateway is not None or (ipam.pool is not None and ipam.pool.gateway_index is not None)
        if way is not None or not has_gateway:
            why = "nv-ipam sends all routes through the gateway of its pool."
            expected = "no gw, and a value for gateway (IPPool) or pool.gateway_index (CIDRPool)"
            return Finding(
                "validate.routes",
                subject,
                FAIL,
                f"gw {way}" if way else "no gw, and no gateway of the pool",
                expected,
                why,
                "Remove gw, and set gateway (IPPool) or pool.gateway_index (CIDRPool).",
            )
        return build_pass("validate.routes", subject, str(target), "a route through the gateway of the pool")
    over = way if way is not None else ipam.gateway
    if over is None or not parse_range(ipam.range).on_network(over):
        why = "Without a gateway on its own network, a pod cannot reach the destination of the route."
        return Finding(
            "validate.routes",
            f"{subject}.gw",
            FAIL,
            f"'{over}'" if over else "none",
            f"an address in {network}",
            why,
            "Set gw of the route, or gateway of ipam.",
        )
    return build_pass("validate.routes", subject, f"{target} via {over}", f"a gateway in {network}")
