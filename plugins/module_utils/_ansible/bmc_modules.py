# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the address and the credentials of BMCs from the options of modules that query many BMCs at once, and from
inventory variables of nodes. Secrets are only used in requests to a BMC.
"""

from __future__ import annotations

import os
import typing

from ansible.module_utils.basic import AnsibleModule, env_fallback

from .._analysis.fleet.bios import Wanted, find_wanted
from .._model.base.errors import RdmaError
from .._model.intent.awx import BMC_ENVIRONMENT as ENVIRONMENT
from .._model.node.identity import Claims, make_identity
from .._observe.redfish.bmc import Bmc, address_of, fingerprint_of
from .._observe.redfish.trust import Trust
from .._run.node_changes.bios.read_bios import PARALLEL

Options = typing.Mapping[str, typing.Any]

#: what a node's inventory may say of its BMC: variables that start with rdma_bmc_
OF_NODE = ("address", "port", "user", "password", "token", "fingerprint", "system", "identity")
#: the only value of the last one
ASSERTED = "asserted"


def _read_secret(name: str) -> dict[str, typing.Any]:
    return {"type": "str", "no_log": True, "fallback": (env_fallback, [ENVIRONMENT[name]])}


def make_bmc_spec(seconds: float, **more: typing.Any) -> dict[str, typing.Any]:
    """Return the argument spec of a module that queries BMCs: nodes with their BMCs, TLS options and time limit. The
    doc fragment linerate.rdma._options.bmcs documents these options.

    :param seconds: default time limit for all requests to one BMC, in seconds
    :param more: further options of the module, as entries of an argument spec
    """
    of_one: dict[str, typing.Any] = {
        "node": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "port": {"type": "int", "default": 443},
        "user": {"type": "str"},
        "password": {"type": "str", "no_log": True},
        "token": {"type": "str", "no_log": True},
        "fingerprint": {"type": "str"},
        "system": {"type": "str"},
        "uuid": {"type": "str"},
        "serial": {"type": "str"},
        "identity": {"type": "str", "choices": [ASSERTED]},
        "wanted": {"type": "dict", "default": {}},
    }
    return {
        "bmcs": {"type": "list", "elements": "dict", "required": True, "options": of_one},
        "user": {"type": "str", "fallback": (env_fallback, [ENVIRONMENT["user"]])},
        "password": _read_secret("password"),
        "token": _read_secret("token"),
        "validate_certs": {"type": "bool", "default": True},
        "ca_path": {"type": "path"},
        "seconds": {"type": "float", "default": seconds},
        "parallel": {"type": "int", "default": PARALLEL},
        **more,
    }


def list_bmcs(module: AnsibleModule) -> list[Bmc]:
    """Return the BMCs of the module option ``bmcs``.

    :raises RdmaError: a node occurs twice, or the options of a BMC are incomplete or invalid
    """
    options = module.params
    bmcs = [read_bmc(one, options) for one in options["bmcs"]]
    if len({bmc.node for bmc in bmcs}) < len(bmcs):
        raise RdmaError("bmcs: a node is listed more than once", "List each node only once")
    return bmcs


def read_claims(module: AnsibleModule, bmcs: typing.Iterable[Bmc]) -> Claims:
    """Return the identities by which a BMC is recognized as that of its node: UUID and serial number from the module
    options, and the address of each BMC.
    """
    told = {one["node"]: make_identity(one["uuid"], [one["serial"]]) for one in module.params["bmcs"]}
    return Claims(looked=told, places={bmc.node: bmc.place for bmc in bmcs})


def collect_wanted_by_node(module: AnsibleModule) -> dict[str, Wanted]:
    """Return the desired BIOS settings of each node, by node name: the settings for all nodes, overridden by the
    settings of that node.

    :raises RdmaError: a key or a value is invalid
    """
    return {one["node"]: find_wanted({**module.params["wanted"], **one["wanted"]}) for one in module.params["bmcs"]}


def read_trust(options: Options) -> Trust:
    """Return the settings by which the certificates of BMCs are verified.

    :param options: options of the module: ``validate_certs`` and ``ca_path``
    :raises RdmaError: ``ca_path`` contains no certificate authorities
    """
    return Trust(options["validate_certs"], options["ca_path"] or "")


def read_bmc(one: Options, options: Options) -> Bmc:
    """Return a BMC with its address and credentials, after their validation.

    :param one: options of this BMC
    :param options: options that apply to all BMCs. Their credentials are used if the BMC has none
    :raises RdmaError: the credentials are incomplete, or an option is invalid
    """
    node, own = one["node"], one.get("token") or one.get("user")
    token = one.get("token") if own else options["token"]
    user, password = one.get("user") or options["user"], one.get("password") or options["password"]
    if not token and not (user and password):
        raise RdmaError(
            f"bmcs: {node} has neither user and password nor a token",
            "Set user and password, or token, for this BMC or for all BMCs, or set the environment variables"
            " RDMA_BMC_USER and RDMA_BMC_PASSWORD",
        )
    try:
        pin = fingerprint_of(one["fingerprint"]) if one.get("fingerprint") else ""
        asserted = one.get("identity") == ASSERTED
        return Bmc(
            node,
            address_of(one["address"]),
            one["port"],
            user or "",
            password or "",
            token or "",
            pin,
            one.get("system") or "",
            asserted,
        )
    except RdmaError as error:
        raise RdmaError(f"bmcs: {node}: {error.seen}", error.remedy) from None


def read_bmc_of_node(node: str, variables: Options) -> Bmc:
    """Return the BMC of a node from its inventory variables. Credentials that the inventory lacks come from environment
    variables.

    :param variables: variables by name without the prefix rdma_bmc_. Empty values count as not set
    :raises RdmaError: the credentials are incomplete, or a variable is invalid
    """
    told = {name: str(value).strip() for name, value in variables.items() if value is not None}
    port = told.get("port") or "443"
    if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        raise RdmaError(f"{node}: rdma_bmc_port is not a valid port", "Set a number from 1 to 65535")
    if told.get("identity") not in (None, "", ASSERTED):
        raise RdmaError(
            f"{node}: rdma_bmc_identity is not '{ASSERTED}'",
            f"Set rdma_bmc_identity to '{ASSERTED}', or remove it: this collection then compares the BMC with the node",
        )
    of_all = {name: os.environ.get(variable, "") for name, variable in ENVIRONMENT.items()}
    return read_bmc({**told, "node": node, "port": int(port)}, of_all)
