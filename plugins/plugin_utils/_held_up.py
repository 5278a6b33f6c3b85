# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Stores the nodes that did not finish a task of this ansible-playbook before its timeout, so that later tasks do not
query them again.

A run has about a dozen tasks for each node that it reads by ssh, and all nodes wait for the slowest one. Each task runs
in its own process. The nodes are therefore stored in the temporary folder of this ansible-playbook, which is removed
when it ends.
"""

from __future__ import annotations

import contextlib
import json
import time
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import read_json, write_text
from ansible_collections.linerate.rdma.plugins.plugin_utils._own_files import path_of

#: seconds that a task gave its node at least: a shorter limit, as tasks of users may have, says nothing of the others
LEAST_SECONDS = 300
#: seconds that all tasks of a run may take on a node whose time is no more than that of reading: a node that ends each
#: of them just in time would delay the others for hours. A run has a dozen, of some seconds each
MOST_SECONDS, READING_SECONDS = 1800, 900
#: characters of the name of a task
_MOST_NAME = 200
#: what ansible-core raises in the middle of a task whose ``timeout`` is over [executor/task_executor.py; from 2.19 on
#: _internal/_errors/_task_timeout.py]
_TIMED_OUT = "TaskTimeoutError"


def explain_why_not_asked(node: str) -> str:
    """Return the reason why a node is not queried any more in this run. Return an empty text if the node may be
    queried.
    """
    kept = read_json(path_of("held-up", node))
    return str(kept["why"]) if isinstance(kept, dict) else ""


@contextlib.contextmanager
def watch_node(node: str, task: typing.Any) -> typing.Iterator[None]:
    """Provide a context for a task on a node. If the task exceeds its timeout, store the node, so that it is not
    queried any more, and raise the error of the timeout again. Tasks with a timeout below LEAST_SECONDS are ignored.

    The duration of a task with a timeout of at most READING_SECONDS is added to the time of all such tasks of this run
    on the node, which is limited as well.

    :param task: Ansible's task, which may have a ``timeout`` in seconds
    """
    seconds = getattr(task, "timeout", None)
    start = time.monotonic()
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == _TIMED_OUT and isinstance(seconds, int) and seconds >= LEAST_SECONDS:
            name = escape.escape_line(
                cut_text(str(getattr(task, "name", "") or getattr(task, "action", "")), _MOST_NAME)
            )
            _give_up(node, f"it did not complete the task '{name}' within {seconds} s")
        raise
    finally:
        if isinstance(seconds, int) and LEAST_SECONDS <= seconds <= READING_SECONDS:
            _count(node, time.monotonic() - start)


def _count(node: str, seconds: float) -> None:
    """Add the duration of a task to the time that the tasks of this run took on a node. If the total exceeds
    MOST_SECONDS, the node is not queried any more in this run.

    :param seconds: duration of the task, in seconds
    """
    kept = read_json(path_of("spent", node))
    spent = (kept["seconds"] if isinstance(kept, dict) else 0.0) + seconds
    write_text(path_of("spent", node), json.dumps({"seconds": spent}))
    if spent > MOST_SECONDS and not explain_why_not_asked(node):
        _give_up(node, f"its tasks took {spent:.0f} s, and the limit for a run is {MOST_SECONDS} s")


def _give_up(node: str, cause: str) -> None:
    why = f"it is not queried any more in this run, because {cause}"
    remedy = "Check its load, its disks and its login shell over ssh, then rerun"
    write_text(path_of("held-up", node), json.dumps({"why": f"{why}. {remedy}"}))
