# SPDX-License-Identifier: GPL-3.0-or-later

"""What ansible-playbook was asked for, and whether that can be a run. Pure."""

from __future__ import annotations

import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import nearest
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.tags import runs
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES

#: tags of plays in site.yml, and those of Ansible that cover them
KNOWN = (*STAGES, "report", "all", "tagged")
#: options of ansible-playbook by which nothing runs. With --list-tags Ansible itself sets a tag of its own
ONLY_LISTS = ("listtags", "listtasks", "listhosts", "syntax")


def explain_refusal(
    tags: typing.Iterable[str], skip_tags: typing.Iterable[str], start_at_task: typing.Optional[str]
) -> str:
    """Return why this invocation of site.yml would run less than it seems to; empty when it can be run.

    An unknown tag runs nothing, and Ansible ends with 0. To leave out what is not there is harmless: molecule leaves
    out tags of its own.
    """
    tags, skip_tags = list(dict.fromkeys(map(str, tags))), list(dict.fromkeys(map(str, skip_tags)))
    stages = f"the stages are {', '.join(STAGES)}, and then comes report"
    if start_at_task:
        return (
            f"--start-at-task '{start_at_task}' was given. A stage that is entered in its middle proves nothing, and"
            " Ansible ends with 0 when no task has that name. Go on at a stage with -e rdma_from=<stage>, or run some"
            f" with --tags; {stages}"
        )
    unknown = [tag for tag in tags if tag not in KNOWN]
    if unknown:
        return f"--tags names {', '.join(unknown)}, which is no stage{nearest(unknown[0], KNOWN)}; {stages}"
    left = [name for name in (*STAGES, "report") if runs(name, tags, skip_tags)]
    return (
        ""
        if left
        else f"--tags {','.join(tags) or 'all'} and --skip-tags {','.join(skip_tags)} leave no stage to run; {stages}"
    )


def explain_limit(subset: typing.Optional[str], cause: str) -> str:
    """Return why a run with ``--limit`` would judge nothing: the inventory gives no nodes, and localhost, which would
    say so, is left out. Empty when localhost takes part, or the inventory was read.

    :param subset: value of ``--limit``
    :param cause: why the inventory gave no nodes
    """
    # the implicit localhost matches neither "all" nor a pattern
    if not cause or not subset or "localhost" in re.split(r"[,:]", subset):
        return ""
    return (
        f"the inventory gives no nodes: {cause}. No stage would run, since --limit '{subset}' leaves out localhost."
        f" Correct the cause, and name localhost as well: --limit 'localhost,{subset}'"
    )
