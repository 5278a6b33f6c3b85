# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for mstconfig, since no HCA is at hand: it keeps the settings of its HCAs in a file and prints what the
real tool prints (mstflint v4.26.0-1).

The file (variable STAND_IN_STATE): ``{address: {name: [default, current, next, read_only]}}``. It refuses what the real
tool refuses, in its words. ``broken`` in place of the settings of an HCA stands for one that can't be opened;
STAND_IN_VERSION is the version, and from 4.31 on there is -j.
"""

from __future__ import annotations

import json
import os
import sys
import typing

Settings = dict[str, list[typing.Any]]
STATE = os.environ.get("STAND_IN_STATE", "")
VERSION = os.environ.get("STAND_IN_VERSION", "4.21.0")


def end(text: str, code: int = 3) -> typing.NoReturn:
    print(text)
    sys.exit(code)


def row(name: str, values: list[typing.Any], columns: int = 3) -> str:
    default, current, following, read_only = values
    mark = "*" if following != current or (columns == 3 and following != default) else " "
    shown = (default, current, following)[3 - columns :]
    return f"{mark}{'RO' if read_only else '  '}     {name:<44}" + " ".join(f"{value:<20}" for value in shown)


def query(address: str, settings: Settings) -> None:
    print(f"\nDevice #1:\n----------\n\n{'Device type:':<20}{'ConnectX7':<20}\n{'Device:':<20}{address:<20}\n")
    print(f"{'Configurations:':<20}{'Default':>39}{'Current':>21}{'Next Boot':>23}")
    for name, values in settings.items():
        print(row(name, values))
    print("The '*' shows parameters with next value different from default/current value.")


def write_json(path: str, address: str, settings: Settings) -> None:
    def plain(value: str) -> typing.Union[str, int]:
        return int(value) if value.isdigit() else value

    rows = {
        name: {
            "default_value": plain(default),
            "current_value": plain(current),
            "next_value": plain(following),
            "read_only": only,
            "modified": True,
        }
        for name, (default, current, following, only) in settings.items()
    }
    device = {
        "device_type": "ConnectX7",
        "name": "N/A",
        "description": "N/A",
        "device": address,
        "tlv_configuration": rows,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"Device #1": device}, file)


def spelled(name: str, value: str, old: str) -> str:
    """As the tool shows what it was given: of a boolean or a choice the word with the number."""
    words = {"0": "False(0)", "1": "True(1)", "false": "False(0)", "true": "True(1)"}
    if old.startswith(("True", "False")):
        return words[value.lower()]
    choices = {
        "PCI_WR_ORDERING": {
            "per_mkey": "per_mkey(0)",
            "0": "per_mkey(0)",
            "force_relax": "force_relax(1)",
            "1": "force_relax(1)",
        },
        "LINK_TYPE_P1": {"ib": "IB(1)", "1": "IB(1)", "eth": "ETH(2)", "2": "ETH(2)"},
    }
    return choices.get(name, {}).get(value.lower(), value)


def change(address: str, state: dict[str, Settings], wishes: list[str]) -> None:
    settings = state[address]
    for wish in wishes:
        name, _equals, value = wish.partition("=")
        if name not in settings:
            end(f"-E- The Device doesn't support {name} parameter")
        settings[name][2] = spelled(name, value, settings[name][2])
    print(f"\nDevice #1:\n----------\n\n{'Configurations:':<20}{'Next Boot':>41}       New")
    for wish in wishes:
        name = wish.partition("=")[0]
        print(row(name, settings[name], 1))
    print(
        "\n Apply new Configuration? (y/n) [n] : y\nApplying... Done!\n-I- Please reboot machine to load new"
        " configurations."
    )
    with open(STATE, "w", encoding="utf-8") as file:
        json.dump(state, file)


def main(arguments: list[str]) -> None:
    if arguments == ["-v"]:
        print(f"mstconfig, mstflint {VERSION}, Git SHA Hash: N/A")
        return
    path, address, rest = "", "", list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-d":
            address = rest.pop(0)
        elif option == "-j" and VERSION >= "4.31":
            path = rest.pop(0)
        elif option not in ("-e", "-y"):
            end(f"-E- invalid argument: {option}")
    with open(STATE, encoding="utf-8") as file:
        state = json.load(file)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write("{}\n")
    if not isinstance(state.get(address), dict):
        end("-E- Failed to open the device")
    if rest[0] == "set":
        change(address, state, rest[1:])
    elif path:
        write_json(path, address, state[address])
    else:
        query(address, state[address])


if __name__ == "__main__":
    main(sys.argv[1:])
