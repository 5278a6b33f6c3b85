# SPDX-License-Identifier: GPL-3.0-or-later

"""Shared code of the modules that use the API server: authentication as in kubernetes.core, a file with progress
messages, and cleanup after an interrupt.
"""

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

from .._app.same_cluster import refuse_switched_server
from .._model.base import escape
from .._model.base.text import cut_text
from .._observe.kubernetes.client import Cluster
from .._observe.kubernetes.errors import CONFIGURATION, ApiError, api_error
from .._observe.kubernetes.identity import read_cluster_uid
from .._observe.kubernetes.outcome import Outcome
from .._parse.kubernetes.no_answer import cause_of
from .contexts import refuse_missing_context
from .credentials import Credentials, find_credentials
from .fact_modules import FACT_SPEC, find_folder
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
        """Stands in for ApiException of the kubernetes client if that is not installed. It is never raised."""

    class ConfigException(Exception):  # type: ignore[no-redef]
        """Stands in for ConfigException of the kubernetes client if that is not installed. It is never raised."""

    class HTTPError(Exception):  # type: ignore[no-redef]
        """Stands in for HTTPError of urllib3 if that is not installed. It is never raised."""


def say_how_to_install() -> str:
    """Return the command that installs the library kubernetes. It names the running Python, because the ``pip`` in PATH
    may belong to another one.
    """
    return f"Install the library for this Python: {shlex.quote(sys.executable)} -m pip install 'kubernetes>=24.2.0'"


def make_cluster_spec(**options: typing.Any) -> dict[str, typing.Any]:
    """Return an argument spec with the authentication options of kubernetes.core and the given options. The
    documentation of the module must also use the doc fragment linerate.rdma._authentication.options.

    :param options: further options of the module, as entries of an argument spec
    """
    return {**copy.deepcopy(AUTH_ARG_SPEC), **options}


def make_facts_spec(**options: typing.Any) -> dict[str, typing.Any]:
    """Return an argument spec with three kinds of options: for authentication at the API server, for storing the result
    of the module as a fact, and the given ones. The documentation of the module must also use the doc fragments
    linerate.rdma._authentication.options and linerate.rdma._options.cluster_facts.

    :param options: further options of the module, as entries of an argument spec
    """
    return make_cluster_spec(**FACT_SPEC, **options)


def make_pods_spec(**options: typing.Any) -> dict[str, typing.Any]:
    """Return an argument spec for a module that runs pods on the nodes of the intent: options for authentication, for
    storing the result as a fact, for the intent, the nodes and the wait for pods, and the given ones. The documentation
    of the module must also use the doc fragments linerate.rdma._authentication.options and
    linerate.rdma._options.cluster_facts, .intent and .pods.

    :param options: further options of the module, as entries of an argument spec
    """
    nodes = {"type": "list", "elements": "str"}
    return make_facts_spec(
        **INTENT_SPEC, nodes=nodes, excluded=nodes, pod_seconds={"type": "int", "default": 300}, **options
    )


def connect(module: AnsibleModule) -> Cluster:
    """Return a client of the API server that the module options and the environment select, by the rules of
    kubernetes.core. Fail the module if the library kubernetes is not installed.

    :raises ApiError: the configuration is missing or invalid, or the API server does not answer
    :raises OtherClusterError: the run to which the module belongs began with another cluster
    """
    if not HAS_KUBERNETES:
        module.fail_json(msg=missing_required_lib("kubernetes"))
    options = select_options(module)
    found = find_credentials(options, os.environ)
    # Ansible hides what options hold; what the environment holds is as secret
    module.no_log_values.update(found.secrets)
    made = make_client(options, found)
    cluster, folder = Cluster(made.client), find_folder(module)
    if folder is not None:
        server = f"API server {escape.escape_line(found.redact_server(made.configuration.host))}"
        refuse_switched_server(folder, server, lambda: read_cluster_uid(cluster))
    return cluster


def select_options(module: AnsibleModule) -> dict[str, typing.Any]:
    """Return the authentication options of kubernetes.core that are set for this module, by name."""
    return {name: module.params[name] for name in AUTH_ARG_SPEC if module.params.get(name) is not None}


def get_library_version() -> str:
    """Return the version of the installed Python library kubernetes. Return an empty string if it is not installed."""
    return str(kubernetes.__version__) if HAS_KUBERNETES else ""


def make_client(options: typing.Mapping[str, typing.Any], found: Credentials) -> typing.Any:
    """Return a client from kubernetes.core. Error messages contain no secrets.

    :param options: authentication options that are set
    :param found: credentials that kubernetes.core uses with these options
    :raises ApiError: the configuration is missing or invalid, or the API server does not answer
    """
    found.examine()
    refuse_missing_context(found, os.environ)
    try:
        return wait_for_answer(FIRST_ANSWER, lambda: get_api_client(**options), found.where)
    except ApiError:
        raise
    except ApiException as problem:
        refused = api_error(problem, found.where)
        error = ApiError(refused.status, refused.reason, found.redact_credentials(refused.text), found.where)
    except (HTTPError, OSError) as problem:
        words = found.redact_credentials(cause_of(str(problem)) or str(problem))
        unreadable = isinstance(problem, OSError) and getattr(problem, "filename", None)
        error = ApiError(
            0,
            CONFIGURATION if unreadable else "Unreachable",
            words if unreadable else f"the API server did not respond: {words}",
            found.where,
        )
    except (CoreException, ConfigException, ValueError, TypeError, LookupError, AttributeError) as problem:
        # the client reads a kubeconfig as if it had the right form
        error = ApiError(
            0, CONFIGURATION, found.redact_credentials(str(problem) or type(problem).__name__), found.where
        )
    # not from the problem: its text may hold the token
    raise error from None


def wait_for_answer(limit: float, ask: typing.Callable[[], _Answer], where: str) -> _Answer:
    """Call a function in a thread, and return its result or raise its error. If the time limit is exceeded, the thread
    is abandoned.

    :param limit: time limit in seconds
    :param ask: function without arguments that is called in the thread
    :param where: source of the credentials, for the error message
    :raises ApiError: there is no result within the limit
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
        raise ApiError(0, "Unreachable", f"the API server did not respond within {limit:g} s", where)
    return answers[0]


def end_by_interrupt() -> None:
    """Install a handler that raises KeyboardInterrupt on SIGTERM. A terminated module then removes its pods before it
    ends, as a module that the user interrupts does.
    """

    def interrupt(number: int, frame: typing.Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


@contextlib.contextmanager
def open_progress(path: typing.Optional[str]) -> typing.Iterator[typing.Callable[[str], None]]:
    """Provide a context with a function that appends a line to the file at ``path``. The action plugin displays these
    lines while the module runs.

    Without a path the lines are discarded. A line is cut to MOST_LINE characters.

    :param path: path of the file; None or empty for no file
    """
    if not path:
        yield lambda line: None
        return
    with open(os.path.expanduser(path), "a", encoding="utf-8", buffering=1) as file:

        def say(line: str) -> None:
            # a line end in it would be a line of another's; a node may write texts into an object and change them again
            # and again, and each line stays in the log
            file.write(f"{escape.escape_line(cut_text(line, MOST_LINE))}\n")

        yield say


def format_difference(outcomes: typing.Iterable[Outcome]) -> list[dict[str, str]]:
    """Return each changed object before and after the change as YAML, in the format that Ansible displays with --diff.
    In check mode these are the objects that would change. The text of an object that does not exist is empty.

    :param outcomes: outcome of each object that was applied. Unchanged objects are left out
    """

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
