# SPDX-License-Identifier: GPL-3.0-or-later

"""What the modules that talk to the API server share: authentication as in kubernetes.core, a file for progress, and an end that cleans up."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import typing

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException

from ._ansible import INTENT_SPEC
from ._fact_modules import FACT_SPEC
from ._observe.kubernetes import ApiError, Cluster, api_error

try:
    import yaml
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


def cluster_spec(**options: typing.Any) -> typing.Dict[str, typing.Any]:
    """Argument spec with kubernetes.core's authentication options; the doc fragment is kubernetes.core.k8s_auth_options."""
    return {**copy.deepcopy(AUTH_ARG_SPEC), **options}


def facts_spec(**options: typing.Any) -> typing.Dict[str, typing.Any]:
    """The same of a module whose answer can become a fact; the doc fragment is linerate.rdma._options.cluster_facts besides."""
    return cluster_spec(**FACT_SPEC, **options)


def pods_spec(**options: typing.Any) -> typing.Dict[str, typing.Any]:
    """The same of a module that works for the intent in pods on the nodes; the doc fragments are linerate.rdma._options.intent and .pods besides."""
    nodes = {"type": "list", "elements": "str"}
    return facts_spec(**INTENT_SPEC, nodes=nodes, pod_seconds={"type": "int", "default": 300}, **options)


def connect(module: AnsibleModule) -> Cluster:
    """The API server that the module's options name.

    :raises ApiError: no configuration, or no answer
    """
    if not HAS_KUBERNETES:
        module.fail_json(msg=missing_required_lib("kubernetes"))
    options = {name: module.params[name] for name in AUTH_ARG_SPEC if module.params.get(name) is not None}
    path = options.get("kubeconfig") or os.environ.get("K8S_AUTH_KUBECONFIG") or os.environ.get("KUBECONFIG") or "~/.kube/config"
    where = f"kubeconfig {shown(path)}"
    if isinstance(path, str) and (options.get("kubeconfig") or not options.get("host")):
        _examine(path, where)
    try:
        return Cluster(get_api_client(**options).client)
    except (CoreException, ConfigException) as error:
        raise ApiError(0, "Configuration", str(error), where) from error
    except (HTTPError, OSError) as error:
        raise ApiError(0, "Unreachable", f"no answer from the API server: {error}", where) from error
    except ApiException as error:
        raise api_error(error, where) from error


def shown(path: typing.Any) -> str:
    """A path as name and folder: Ansible hides the option's own text, since it may also hold the whole configuration."""
    if not isinstance(path, str):
        return "given as a mapping"
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(path)))
    return f"{name} in {folder}"


def _examine(path: str, where: str) -> None:
    """What a kubeconfig must be before anybody uses it; kubectl takes several, of which one must be there.

    :raises ApiError: it is none. Its text is not quoted: it holds secrets
    """
    present = [part for part in map(os.path.expanduser, path.split(os.pathsep)) if part and os.path.exists(part)]
    if not present:
        # inside of a pod the service account's token does instead
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return
        raise ApiError(0, "Configuration", "there is no such file", where)
    for part in present:
        try:
            with open(part, encoding="utf-8") as file:
                config = yaml.safe_load(file)
        except yaml.MarkedYAMLError as error:
            line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
            raise ApiError(0, "Configuration", f"it is no YAML{line}: {error.problem}", where) from None
        except (yaml.YAMLError, UnicodeDecodeError):
            raise ApiError(0, "Configuration", "it is no text in UTF-8", where) from None
        except OSError as error:
            raise ApiError(0, "Configuration", f"it can't be read: {error.strerror}", where) from None
        if not isinstance(config, dict) or config.get("kind", "Config") != "Config":
            raise ApiError(0, "Configuration", f"it holds {'nothing' if config is None else 'something else'}, not a mapping of kind Config", where)


def end_by_interrupt() -> None:
    """A module that is told to end shall end as one that is interrupted does: it removes its pods on the way out."""

    def interrupt(number: int, frame: typing.Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


@contextlib.contextmanager
def progress(path: typing.Optional[str]) -> typing.Iterator[typing.Callable[[str], None]]:
    """A function that appends a line to the file at ``path``; the action plugin shows the lines while the module runs.

    Progress is a courtesy: without a path the lines go nowhere.
    """
    if not path:
        yield lambda line: None
        return
    with open(os.path.expanduser(path), "a", encoding="utf-8", buffering=1) as file:

        def say(line: str) -> None:
            file.write(f"{line}\n")

        yield say
