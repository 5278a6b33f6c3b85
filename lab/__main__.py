# SPDX-License-Identifier: GPL-3.0-or-later

"""Command line of the lab."""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import signal
import sys
import typing

from dev.steps import guarded, say, step

from . import definitions, description, hca_guest, job_operators, machine_config, nvidia_operator, olm
from .build import ibsim
from .collectives import image
from .fault import Target
from .faults import FAULTS
from .planes import Lab


@dataclasses.dataclass(frozen=True)
class Extra:
    """What is built and runs on demand only."""

    what: str
    build: typing.Callable[[], object]
    start: typing.Callable[[Lab], None]
    stop: typing.Callable[[Lab], None]


EXTRAS: typing.Mapping[str, Extra] = {
    "operators": Extra(
        "the operators of training jobs",
        job_operators.build,
        lambda lab: job_operators.start(lab.authority, lab.folder, lab.processes),
        lambda lab: job_operators.stop(lab.authority, lab.folder, lab.processes),
    ),
    "nvidia": Extra(
        "NVIDIA's network operator",
        nvidia_operator.build,
        lambda lab: nvidia_operator.start(lab.authority, lab.processes),
        lambda lab: nvidia_operator.stop(lab.authority, lab.processes),
    ),
    "machines": Extra(
        "OpenShift's machine config controller",
        machine_config.build,
        lambda lab: machine_config.start(lab.description, lab.authority, lab.processes),
        lambda lab: machine_config.stop(lab.authority, lab.processes),
    ),
    "olm": Extra(
        "the Operator Lifecycle Manager with a catalog of the lab's own",
        olm.build,
        lambda lab: olm.start(lab.description, lab.authority, lab.folder, lab.processes),
        lambda lab: olm.stop(lab.description, lab.authority, lab.folder, lab.processes),
    ),
    "collectives": Extra(
        "the image of stage collectives, with a stand-in for nccl-tests",
        image.build,
        lambda lab: image.start(lab.description, lab.folder, lab.processes),
        lambda lab: image.stop(lab.description, lab.processes),
    ),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lab",
        description="The lab of linerate.rdma: a real cluster with real VFs and simulated InfiniBand fabrics.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="build what is not cached, start what does not run")
    up.add_argument("--nodes", type=int, default=0, metavar="N", help="also N simulated nodes (kwok), for scale")
    only = commands.add_parser("build", help="only build")
    for name, extra in EXTRAS.items():
        only.add_argument(f"--{name}", action="store_true", help=f"also {extra.what}")
    commands.add_parser("down", help="end everything; the logs stay")
    commands.add_parser("status", help="what runs, and what it uses")
    fault = commands.add_parser(
        "fault",
        help="inject a fault, or take it back",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_fault_table(),
    )
    fault.add_argument("name", choices=sorted(FAULTS), metavar="NAME")
    fault.add_argument("direction", choices=("on", "off"))
    for field in dataclasses.fields(Target):
        fault.add_argument(
            f"--{field.name}", default=field.default, type=type(field.default), help="default: %(default)s"
        )
    kinds = commands.add_parser(
        "definitions", help="serve the kinds of operators that do not run here, or take them back"
    )
    kinds.add_argument("direction", choices=("on", "off"))
    for name, extra in EXTRAS.items():
        commands.add_parser(name, help=f"run {extra.what}, or take it back with all that came of it").add_argument(
            "direction", choices=("on", "off")
        )
    hca = commands.add_parser(
        "hca", help="boot one guest that has emulated InfiniBand HCAs, with a shell on this terminal; needs no lab"
    )
    hca.add_argument(
        "--script",
        type=pathlib.Path,
        metavar="FILE",
        help="run a script of bash in it instead, and end with its exit code",
    )
    hca.add_argument(
        "--limit", type=float, default=900, metavar="SECONDS", help="for the script; default: %(default).0f"
    )
    hca.add_argument("--build", action="store_true", help="only build the module, and print its path")
    hca.add_argument(
        "parameters", nargs="*", metavar="NAME=VALUE", help=f"of the module; default: {' '.join(hca_guest.PARAMETERS)}"
    )
    reset = commands.add_parser("reset", help="reset a worker, as its BMC does")
    reset.add_argument("worker")
    reset.add_argument("kind", help="of Redfish: ForceRestart, ForceOff...")
    boot = commands.add_parser("boot", help="start a worker, and wait until it is whole")
    boot.add_argument("worker")
    inside = commands.add_parser("exec", help="run a command in the lab's network namespace")
    inside.add_argument("argv", nargs=argparse.REMAINDER)
    on = commands.add_parser("on", help="run a command on a worker, as root, by its guest agent")
    on.add_argument("worker")
    on.add_argument("argv", nargs=argparse.REMAINDER)
    return parser


def _fault_table() -> str:
    rows = [
        f"  {fault.name:20} {fault.what} {' '.join(f'--{name}' for name in fault.uses)}" for fault in FAULTS.values()
    ]
    return "faults:\n" + "\n".join(sorted(rows))


def _fault(lab: Lab, options: argparse.Namespace) -> None:
    # its programs may have to be fetched, and inside of the lab's network namespace there is no way to the mirror
    ibsim.programs()
    lab.enter()
    fault = FAULTS[options.name]
    target = Target(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Target)})
    with step(f"fault {fault.name} {options.direction}"):
        say((fault.on if options.direction == "on" else fault.off)(lab, target))


def _definitions(lab: Lab, options: argparse.Namespace) -> None:
    paths = definitions.files()
    lab.enter()
    act = definitions.serve if options.direction == "on" else definitions.withdraw
    for name in act(lab.authority, paths):
        say(name)


def _extra(lab: Lab, extra: Extra, direction: str) -> None:
    extra.build()
    lab.enter()
    (extra.start if direction == "on" else extra.stop)(lab)


def main(arguments: typing.Optional[typing.Sequence[str]] = None) -> int:
    """Run one command; 0 when it did what it says."""
    options = _parser().parse_args(arguments)
    # a terminated start ends as an interrupted one does: what runs is on record, the next start goes on
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if options.command == "hca":
        return hca_guest.main(options.script, options.parameters, options.limit, options.build)
    lab = Lab(description.read())
    if options.command == "up":
        lab.up(options.nodes)
    elif options.command == "build":
        lab.build()
        for name, extra in EXTRAS.items():
            if getattr(options, name):
                extra.build()
    elif options.command == "down":
        lab.down()
    elif options.command == "status":
        return 0 if lab.status() else 3
    elif options.command == "fault":
        _fault(lab, options)
    elif options.command == "definitions":
        _definitions(lab, options)
    elif options.command in EXTRAS:
        _extra(lab, EXTRAS[options.command], options.direction)
    elif options.command == "reset":
        lab.enter()
        lab.reset(options.worker, options.kind)
    elif options.command == "boot":
        lab.enter()
        lab.boot(options.worker)
    elif options.command == "exec":
        lab.enter()
        os.execvp(options.argv[0], options.argv)
    elif options.command == "on":
        # a script of the shell, as ssh would take it
        done = lab.agent(options.worker).run(["/bin/sh", "-c", " ".join(options.argv)], limit=600)
        sys.stdout.buffer.write(done.output)
        sys.stderr.buffer.write(done.errors)
        return done.code
    return 0


if __name__ == "__main__":
    guarded(main)
