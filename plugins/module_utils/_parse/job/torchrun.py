# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the options of torchrun in the command of a container. Options on the command line take precedence over the
variables ``PET_*`` of the operator. [src pytorch torch/distributed/run.py get_args_parser, argparse_util.py env]
"""

from __future__ import annotations

import itertools
import re

from ..._model.job.job import TorchRun
from .expansion import Known, expand_word

_LAUNCHER = re.compile(r"(?:^|[\s/;&|(\"'])(?:torchrun|torch\.distributed\.(?:run|launch))(?=[\s\"']|$)")
#: the end of a command of a shell. A backslash before a line break continues the command
_END = re.compile(r"(?<!\\)\n|[;&|]")
_WORD = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+")
#: options without a value; each other option takes one
_FLAGS = ("--standalone", "-m", "--module", "--no-python", "--run-path", "--use-env")
#: calls of torchrun in a container, and characters of each, that are read at most
_MOST_CALLS, _MOST = 16, 10_000


def parse_torchrun(words: str, known: Known, place: str) -> tuple[TorchRun, ...]:
    """Return the first ``_MOST_CALLS`` calls of torchrun in a command.

    :param words: command and arguments of a container
    :param known: variables that the container or its command sets
    :param place: path of the command in the job, for messages
    """
    found = []
    for match in itertools.islice(_LAUNCHER.finditer(words), _MOST_CALLS):
        rest = words[match.end() : match.end() + _MOST]
        end = _END.search(rest)
        options = _parse_options(rest[: end.start()] if end else rest, known)
        found.append(
            TorchRun(
                place,
                "--standalone" in options,
                options.get("--nnodes"),
                options.get("--nproc-per-node"),
                options.get("--rdzv-endpoint") or options.get("--master-addr"),
            )
        )
    return tuple(found)


def _parse_options(text: str, known: Known) -> dict[str, str]:
    """Return the options before the training script by name, with hyphens instead of underscores. A value that only a
    shell can compute keeps its text.
    """
    options: dict[str, str] = {}
    words = iter(_WORD.findall(text.replace("\\\n", " ")))
    for word in words:
        if not word.startswith("-"):
            break
        name, equals, value = word.partition("=")
        name = name.replace("_", "-")
        if name in _FLAGS:
            options[name] = ""
            continue
        raw = value if equals else next(words, "")
        expanded = expand_word(raw, known)
        options[name] = raw.strip("\"'") if expanded is None else expanded
    return options
