# SPDX-License-Identifier: GPL-3.0-or-later

"""What leads to BMCs: options of the modules that ask many of them at once, and variables of nodes. A secret is in
nothing but what is sent to a BMC."""

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
from .._run.node_changes.read_bios import PARALLEL

Options = typing.Mapping[str, typing.Any]

#: what a node's inventory may say of its BMC: variables that start with rdma_bmc_
OF_NODE = ("address", "port", "user", "password", "token", "fingerprint", "system", "identity")
#: the only value of the last one
ASSERTED = "asserted"


def _read_secret(name: str) -> dict[str, typing.Any]:
    return {"type": "str", "no_log": True, "fallback": (env_fallback, [ENVIRONMENT[name]])}


def make_bmc_spec(seconds: float, **more: typing.Any) -> dict[str, typing.Any]:
    """Options of such a module; their documentation is the fragment linerate.rdma._options.bmcs.

    :param seconds: that one BMC has in all
    :param more: options of this module alone
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
    """Return the BMCs that a module is asked for.

    :raises RdmaError: one of them can't be asked so
    """
    options = module.params
    bmcs = [read_bmc(one, options) for one in options["bmcs"]]
    if len({bmc.node for bmc in bmcs}) < len(bmcs):
        raise RdmaError("bmcs: a node is named twice", "Name each node once")
    return bmcs


def read_claims(module: AnsibleModule, bmcs: typing.Iterable[Bmc]) -> Claims:
    """Return the identities of the nodes, as the module got them."""
    told = {one["node"]: make_identity(one["uuid"], [one["serial"]]) for one in module.params["bmcs"]}
    return Claims(looked=told, places={bmc.node: bmc.place for bmc in bmcs})


def collect_wanted_by_node(module: AnsibleModule) -> dict[str, Wanted]:
    """Return the desired settings of each node: those of all, and its own.

    :raises RdmaError: no such key, or no such value
    """
    return {one["node"]: find_wanted({**module.params["wanted"], **one["wanted"]}) for one in module.params["bmcs"]}


def read_trust(options: Options) -> Trust:
    """Whom to believe that it is a BMC.

    :raises RdmaError: no authorities in ``ca_path``
    """
    return Trust(options["validate_certs"], options["ca_path"] or "")


def read_bmc(one: Options, options: Options) -> Bmc:
    """Return a BMC, and who asks it.

    :param one: what is said of this one
    :param options: what is said of all
    :raises RdmaError: it can't be asked so
    """
    node, own = one["node"], one.get("token") or one.get("user")
    token = one.get("token") if own else options["token"]
    user, password = one.get("user") or options["user"], one.get("password") or options["password"]
    if not token and not (user and password):
        raise RdmaError(
            f"bmcs: {node} has no user and password, and no token",
            "Set them there, for all BMCs, or in RDMA_BMC_USER and RDMA_BMC_PASSWORD",
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
    """Return the BMC of a node, as its inventory says.

    :param variables: without their prefix; empty ones are as good as none
    :raises RdmaError: it can't be asked so
    """
    told = {name: str(value).strip() for name, value in variables.items() if value is not None}
    port = told.get("port") or "443"
    if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        raise RdmaError(f"{node}: rdma_bmc_port is no port", "Give a number from 1 to 65535")
    if told.get("identity") not in (None, "", ASSERTED):
        raise RdmaError(
            f"{node}: rdma_bmc_identity is no '{ASSERTED}'",
            f"Set it to '{ASSERTED}', or leave it out: the BMC is then compared with the node",
        )
    of_all = {name: os.environ.get(variable, "") for name, variable in ENVIRONMENT.items()}
    return read_bmc({**told, "node": node, "port": int(port)}, of_all)
