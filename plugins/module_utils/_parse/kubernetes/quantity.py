# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse quantities as Kubernetes writes them: 500m, 2, 1Gi, 1e3. [k8s.io/apimachinery pkg/api/resource/quantity.go]"""

from __future__ import annotations

import decimal
import re
import typing

from .resource import ResourceError

_SUFFIXES = {
    "": 1,
    **{sign: 1000**power for power, sign in enumerate("kMGTPE", 1)},
    **{f"{sign}i": 1024**power for power, sign in enumerate("KMGTPE", 1)},
}
_PARTS = {sign: decimal.Decimal(10) ** -power for sign, power in (("n", 9), ("u", 6), ("m", 3))}
#: largest amount of a resource: Kubernetes stores amounts as integers of 64 bits
_MOST = 2**63 - 1
_FORM = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?", re.ASCII
)


def parse_quantity(value: typing.Any, what: str) -> decimal.Decimal:
    """Return the exact value of a quantity: ``500m`` is 0.5, and ``1Gi`` is 1073741824.

    :param what: name of the value in messages
    :raises ResourceError: the value is not a quantity
    """
    match = None if isinstance(value, bool) else _FORM.fullmatch(str(value))
    if match is None:
        raise ResourceError(f"{what}: '{str(value)[:100]}' is not a quantity such as 2, 500m or 1Gi")
    number, suffix, exponent = match.groups()
    if exponent:
        return decimal.Decimal(number) * decimal.Decimal(10) ** int(exponent)
    return decimal.Decimal(number) * (_PARTS[suffix] if suffix in _PARTS else _SUFFIXES[suffix or ""])


def parse_whole(value: typing.Any, what: str) -> int:
    """Return the value of a quantity that must be a whole number, such as a number of devices. ``1k`` and ``1e3`` are
    1000, and ``2000m`` is 2.

    :param what: name of the value in messages
    :raises ResourceError: the value is not a quantity, not a whole number, or not an integer of 64 bits
    """
    number = parse_quantity(value, what)
    if number != number.to_integral_value():
        raise ResourceError(f"{what}: '{str(value)[:100]}' is not a whole number")
    if abs(number) > _MOST:
        raise ResourceError(f"{what}: '{str(value)[:100]}' is more than {_MOST}")
    return int(number)
