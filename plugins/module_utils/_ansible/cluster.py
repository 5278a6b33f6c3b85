# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules that talk to the API server share: authentication as in kubernetes.core, a file for progress, and an
end that cleans up."""

from __future__ import annotations

import contextlib
import copy
import os
import shlex
import signal
import sys
import threading
import typing

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.yaml import yaml_dump

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException

from .._model.base import escape
from .._model.base.text import cut
from .._observe.kubernetes.client import Cluster
from .._observe.kubernetes.errors import CONFIGURATION, ApiError, api_error
from .._observe.kubernetes.outcome import Outcome
from .._parse.kubernetes.no_answer import cause_of
from .credentials import Credentials, find_credentials
from .fact_modules import FACT_SPEC
from .module import INTENT_SPEC

#: characters of a line of progress
MOST_LINE = 2000
#: seconds for the first answer of the API server. The client itself waits without end for a server that takes the
#: connection and says nothing, and tries an address that swallows everything for minutes
FIRST_ANSWER = 30.0
_Answer = typing.TypeVar("_Answer")

try:
    import kubernetes
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    HAS_KUBERNETES = True
except ImportError:
    HAS_KUBERNETES = False

    class ApiException(Exception):  # type: ignore[no-redef]
        """Stands for that of the client."""

    class ConfigException(Exception):  # type: ignore[no-redef]
        """Stands for that of the client."""

    class HTTPError(Exception):  # type: ignore[no-redef]
        """Stands for that of urllib3."""


def say_how_to_install() -> str:
    """Return what to type where the library kubernetes is missing: a ``pip`` of the path may be that of another
    Python."""
    return f"Install it there: {shlex.quote(sys.executable)} -m pip install 'kubernetes>=24.2.0'"


def make_cluster_spec(**options: typing.Any) -> dict[str, typing.Any]:
    """Argument spec with kubernetes.core's authentication options; the doc fragment is _authentication.options."""
    return {**copy.deepcopy(AUTH_ARG_SPEC), **options}


def make_facts_spec(**options: typing.Any) -> dict[str, typing.Any]:
    """Return the same of a module whose answer can become a fact; the doc fragment is
    linerate.rdma._options.cluster_facts besides."""
    return make_cluster_spec(**FACT_SPEC, **options)


def make_pods_spec(**options: typing.Any) -> dict[str, typing.Any]:
    """Return the same of a module that works for the intent in pods on the nodes; the doc fragments are
    linerate.rdma._options.intent and .pods besides."""
    nodes = {"type": "list", "elements": "str"}
    return make_facts_spec(**INTENT_SPEC, nodes=nodes, pod_seconds={"type": "int", "default": 300}, **options)


def connect(module: AnsibleModule) -> Cluster:
    """Return the API server that the module's options and the environment name, by the rules of kubernetes.core.

    :raises ApiError: no configuration, or no answer
    """
    if not HAS_KUBERNETES:
        module.fail_json(msg=missing_required_lib("kubernetes"))
    options = select_options(module)
    found = find_credentials(options, os.environ)
    # Ansible hides what options hold; what the environment holds is as secret
    module.no_log_values.update(found.secrets)
    return Cluster(make_client(options, found).client)


def select_options(module: AnsibleModule) -> dict[str, typing.Any]:
    """Return those of kubernetes.core's options that the module was given."""
    return {name: module.params[name] for name in AUTH_ARG_SPEC if module.params.get(name) is not None}


def library() -> str:
    """Version of the Python library kubernetes; empty where it is not there."""
    return str(kubernetes.__version__) if HAS_KUBERNETES else ""


def make_client(options: typing.Mapping[str, typing.Any], found: Credentials) -> typing.Any:
    """Return the client of kubernetes.core; no message holds a secret.

    :raises ApiError: no configuration, or no answer
    """
    found.examine()
    try:
        return wait_for_answer(FIRST_ANSWER, lambda: get_api_client(**options), found.where)
    except ApiError:
        raise
    except ApiException as problem:
        refused = api_error(problem, found.where)
        error = ApiError(refused.status, refused.reason, found.masked(refused.text), found.where)
    except (HTTPError, OSError) as problem:
        words = found.masked(cause_of(str(problem)) or str(problem))
        unreadable = isinstance(problem, OSError) and getattr(problem, "filename", None)
        error = ApiError(
            0,
            CONFIGURATION if unreadable else "Unreachable",
            words if unreadable else f"no answer from the API server: {words}",
            found.where,
        )
    except (CoreException, ConfigException, ValueError, TypeError, LookupError, AttributeError) as problem:
        # the client reads a kubeconfig as if it had the right form
        error = ApiError(0, CONFIGURATION, found.masked(str(problem) or type(problem).__name__), found.where)
    # not from the problem: its text may hold the token
    raise error from None


def wait_for_answer(limit: float, ask: typing.Callable[[], _Answer], where: str) -> _Answer:
    """Return the answer, if it comes in time.

    :param limit: seconds
    :param where: what leads to the API server
    :raises ApiError: it does not
    """
    answers: list[_Answer] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(ask())
        # it is raised again where somebody waits for it
        except BaseException as error:
            errors.append(error)

    # a daemon: what still waits for an answer must not keep the process alive
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit)
    if errors:
        raise errors[0]
    if not answers:
        raise ApiError(0, "Unreachable", f"no answer from the API server within {limit:g} s", where)
    return answers[0]


def end_by_interrupt() -> None:
    """A module that is told to end shall end as one that is interrupted does: it removes its pods on the way out."""

    def interrupt(number: int, frame: typing.Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


@contextlib.contextmanager
def progress(path: typing.Optional[str]) -> typing.Iterator[typing.Callable[[str], None]]:
    """Yield a function that appends a line to the file at ``path``; the action plugin shows the lines while the module
    runs.

    Progress is a courtesy: without a path the lines go nowhere, and of a long line its first MOST_LINE characters do.
    """
    if not path:
        yield lambda line: None
        return
    with open(os.path.expanduser(path), "a", encoding="utf-8", buffering=1) as file:

        def say(line: str) -> None:
            # a line end in it would be a line of another's; a node may write texts into an object and change them again
            # and again, and each line stays in the log
            file.write(f"{escape.line(cut(line, MOST_LINE))}\n")

        yield say


def difference(outcomes: typing.Iterable[Outcome]) -> list[dict[str, str]]:
    """Each object that was written, or would be, before and after, as Ansible shows it with --diff."""

    def text(resource: typing.Any) -> str:
        return yaml_dump(resource, sort_keys=True) if resource is not None else ""

    return [
        {
            "before_header": f"{outcome.applied.kind} {outcome.applied.name}",
            "after_header": f"{outcome.applied.kind} {outcome.applied.name}",
            "before": text(outcome.before),
            "after": text(outcome.after),
        }
        for outcome in outcomes
        if outcome.changed
    ]
