# SPDX-License-Identifier: GPL-3.0-or-later

"""Render the commands around the program that mpirun calls in place of ssh: install it in the pod of the first node,
take its requests, run a requested daemon in another pod, and answer the request.
"""

from __future__ import annotations

from ..._model.base.operand import require_operand
from ..._model.measurement.collectives import CollectiveRun
from ..cluster.names import object_name

Command = tuple[str, ...]

#: of the programs that mpirun starts in the place of ssh: one for each run, beside its requests
AGENT_FOLDER = "/tmp/nccl/agents"
#: seconds that such a program waits until its request is answered
AGENT_LIMIT = 120

AGENT_SCRIPT = f"""#!/bin/sh
host=$1
shift
ask=$0.$$
printf '%s\\n%s\\n' "$host" "$*" > "$ask.new" && mv "$ask.new" "$ask.ask" || exit 1
waited=0
while [ ! -s "$ask.done" ]; do
  [ "$waited" -lt {AGENT_LIMIT} ] || exit 1
  waited=$((waited + 1))
  sleep 1
done
exit "$(cat "$ask.done")"
"""
#: seconds after which a daemon that has not ended runs
_SETTLED = 3
_DAEMON_SCRIPT = (
    'timeout -k 5 "$2" sh -c "$1" < /dev/null > /dev/null 2>&1 & waited=0; while kill -0 "$!" 2> /dev/null; do '
    f'[ "$waited" -lt {_SETTLED} ] || exit 0; waited=$((waited + 1)); sleep 1; done; wait "$!"'
)


def agent_path(run: CollectiveRun) -> str:
    """Return the path of the program that mpirun calls in place of ssh in a run. Its request files are in the same
    folder.
    """
    return f"{AGENT_FOLDER}/{object_name(run.name)}"


def place_agent(run: CollectiveRun) -> Command:
    """Return the command that installs, in the pod of the first node, the program that mpirun calls in place of ssh."""
    script = 'mkdir -p "$1" && printf %b "$2" > "$3" && chmod 755 "$3"'
    return "sh", "-c", script, "agent", AGENT_FOLDER, escape_script(AGENT_SCRIPT), agent_path(run)


def escape_script(script: str) -> str:
    """Return a script on one line, escaped for ``printf %b``, because the shell of a pod reads one command a line."""
    return script.replace("\\", "\\\\").replace("\n", "\\n")


def take_requests(run: CollectiveRun) -> Command:
    """Return the command that prints each open request of mpirun and marks it as taken, so that it is printed only
    once. A request has three lines: ``ask NUMBER``, the host, and the command line to run on the host.
    """
    script = (
        'for ask in "$1".*.ask; do [ -e "$ask" ] || continue; rest=${ask%.ask}; echo "ask ${rest##*.}"; cat "$ask"; mv'
        ' "$ask" "$rest.taken"; done'
    )
    return "sh", "-c", script, "agent", agent_path(run)


def answer_request(run: CollectiveRun, number: int, code: int) -> Command:
    """Return the command that tells mpirun the result of a daemon that it asked to start on another node.

    :param number: number of the request of mpirun
    :param code: exit code of the daemon, which the program in place of ssh returns to mpirun
    """
    return "sh", "-c", 'echo "$1" > "$2"', "agent", str(code), f"{agent_path(run)}.{number}.done"


def start_daemon(words: str, seconds: int) -> Command:
    """Return the command that runs the command line of a request in a shell, as ssh would, and returns its exit code.

    A daemon of Open MPI 5 stays in the foreground for the whole run. After 3 seconds the command leaves it in the
    background and returns 0.

    :param words: command line of the request
    :param seconds: maximum duration of the run, in seconds
    """
    limit = str(seconds + AGENT_LIMIT)
    return "sh", "-c", _DAEMON_SCRIPT, "daemon", require_operand(words, "words of a daemon"), limit
