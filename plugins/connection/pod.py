# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: pod
short_description: Run tasks in a container of a pod, through the API server
version_added: "1.0.0"
author: The linerate.rdma authors (@linerate)
description:
  - For nodes that Ansible cannot reach by ssh, or that have no Python. A privileged pod on each node has Python, and is
    reached through the API server.
  - The controller needs neither C(kubectl) nor another program. No token appears on a command line.
  - A task succeeds only if the container itself confirms how the command ended and that all of its input arrived. The
    answer of the API server does not count, because it also reports success for a stream that a proxy cut off. The host
    is then unreachable, with the number of bytes that arrived.
  - The plugin starts a command again only if it certainly had not begun, because the API server refused or was
    overloaded.
notes:
  - Enable O(pipelining) and set C(ansible_python_interpreter), so that a task needs only one connection. Without
    pipelining, and for file transfers, the container needs a writable folder. Set it in C(ansible_remote_tmp), for
    example C(/tmp/.ansible).
  - More than 16 MiB of output of one command is an error, and so are more than 64 MiB of the module
    M(linerate.rdma.fabric_info).
  - A file passes through the memory of the controller as a whole. More than 256 MiB of a file is an error.
  - Each worker of Ansible loads the library C(kubernetes) again. This needs half a second of CPU time per host and
    task. If the parent process has already loaded the library, as the inventory plugin does, the workers inherit it.
  - C(become) works if it asks for no password.
  - The user needs the rights C(get) and C(create) on C(pods/exec) in the namespace.
requirements:
  - kubernetes >= 24.2.0 (on the controller)
  - sh, head and cat (in the container)
options:
  pod:
    description: Name of the pod. The default is the name of the host in the inventory.
    type: str
    vars:
      - name: inventory_hostname
      - name: ansible_host
      - name: ansible_pod_name
  node:
    description:
      - Name of a node. The connection then uses the pod of M(linerate.rdma.observers) on this node, and ignores O(pod).
      - M(linerate.rdma.observers) must have started it in O(namespace).
    type: str
    vars:
      - name: ansible_pod_node
  namespace:
    description: Namespace of the pod.
    type: str
    default: default
    vars:
      - name: rdma_observers_namespace
      - name: ansible_pod_namespace
  container:
    description: Name of the container. Not needed if the pod has only one container.
    type: str
    default: ""
    vars:
      - name: ansible_pod_container
  connect_timeout:
    description: Maximum time in seconds for each step of the connection, and again until the container answers.
    type: float
    default: 30
    vars:
      - name: ansible_pod_connect_timeout
  exec_timeout:
    description: Maximum time in seconds for a command. After that, the command may continue to run in the container.
    type: float
    default: 3600
    vars:
      - name: ansible_pod_exec_timeout
  kubeconfig:
    description: Path of a kubeconfig, or the configuration itself.
    type: raw
    env:
      - name: K8S_AUTH_KUBECONFIG
    vars:
      - name: rdma_kubeconfig
      - name: ansible_pod_kubeconfig
  context:
    description: Name of a context in the kubeconfig.
    type: str
    env:
      - name: K8S_AUTH_CONTEXT
    vars:
      - name: ansible_pod_context
  host:
    description: URL of the API server.
    type: str
    env:
      - name: K8S_AUTH_HOST
    vars:
      - name: ansible_pod_api
  api_key:
    description: Token for the API server.
    type: str
    env:
      - name: K8S_AUTH_API_KEY
    vars:
      - name: ansible_pod_api_key
  username:
    description: User, where the API server takes passwords.
    type: str
    env:
      - name: K8S_AUTH_USERNAME
    vars:
      - name: ansible_pod_username
  password:
    description: Password of O(username).
    type: str
    env:
      - name: K8S_AUTH_PASSWORD
    vars:
      - name: ansible_pod_password
  client_cert:
    description: Path of the user's certificate.
    type: path
    env:
      - name: K8S_AUTH_CERT_FILE
      - name: K8S_AUTH_CLIENT_CERT
    vars:
      - name: ansible_pod_client_cert
  client_key:
    description: Path of the key of O(client_cert).
    type: path
    env:
      - name: K8S_AUTH_KEY_FILE
      - name: K8S_AUTH_CLIENT_KEY
    vars:
      - name: ansible_pod_client_key
  ca_cert:
    description: Path of the certificate authority of the API server.
    type: path
    env:
      - name: K8S_AUTH_SSL_CA_CERT
      - name: K8S_AUTH_CA_CERT
    vars:
      - name: ansible_pod_ca_cert
  validate_certs:
    description: Whether to verify the certificate of the API server.
    type: bool
    env:
      - name: K8S_AUTH_VERIFY_SSL
      - name: K8S_AUTH_VALIDATE_CERTS
    vars:
      - name: ansible_pod_validate_certs
  proxy:
    description: URL of an HTTP proxy.
    type: str
    env:
      - name: K8S_AUTH_PROXY
    vars:
      - name: ansible_pod_proxy
  no_proxy:
    description: Hosts for which the proxy is not used, separated by commas.
    type: str
    env:
      - name: K8S_AUTH_NO_PROXY
    vars:
      - name: ansible_pod_no_proxy
  proxy_headers:
    description: Headers for the proxy, as the modules of C(kubernetes.core) take them. The variables
      C(K8S_AUTH_PROXY_HEADERS_*) count as well.
    type: dict
    vars:
      - name: ansible_pod_proxy_headers
  impersonate_user:
    description: User to act as.
    type: str
    env:
      - name: K8S_AUTH_IMPERSONATE_USER
    vars:
      - name: ansible_pod_impersonate_user
  impersonate_groups:
    description: Groups to act as a member of.
    type: list
    elements: str
    env:
      - name: K8S_AUTH_IMPERSONATE_GROUPS
    vars:
      - name: ansible_pod_impersonate_groups
extends_documentation_fragment:
  - connection_pipelining
"""

EXAMPLES = r"""
# Nodes of a cluster, each reached by its observer; the inventory plugin linerate.rdma.nodes sets all this by itself
rdma_nodes:
  hosts:
    worker-1:
      ansible_pod_node: worker-1
    worker-2:
      ansible_pod_node: worker-2
  vars:
    ansible_connection: linerate.rdma.pod
    ansible_pod_namespace: linerate-observers
    ansible_pipelining: true
    ansible_python_interpreter: /usr/bin/python3
    ansible_remote_tmp: /tmp/.ansible
    # or the variables K8S_AUTH_* of the environment, or what kubectl finds
    ansible_pod_kubeconfig: ~/.kube/config
"""

import os
import typing

from ansible.errors import AnsibleError, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    HAS_KUBERNETES,
    make_client,
    make_cluster_spec,
    say_how_to_install,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import Credentials, find_credentials
from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.objects import Answer, Container
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.pod_exec import Limits, run
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB, MOST_ANSWER
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.observer_view import container_on
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import Unreachable
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import describe_error

display = Display()

#: that kubernetes.core leaves to its environment
_NOT_HERE = frozenset({"persist_config"})
#: bytes of a file that is fetched
MOST_FILE = 256 * MIB


class Connection(ConnectionBase):
    """A connection that runs commands in a container of a pod. Each command opens its own stream to the API server, and
    no stream stays open between two commands.
    """

    transport = "linerate.rdma.pod"
    has_pipelining = True
    has_tty = False
    #: bytes that a command may print; an action plugin may set what its module needs
    most_output = MOST_ANSWER

    _cluster: typing.Optional[Cluster] = None
    _credentials: typing.Optional[Credentials] = None
    _found: typing.Optional[Container] = None

    def _connect(self) -> Connection:
        """Create the client of the API server from the configured credentials. No request is sent before the first
        command.

        :returns: this object
        :raises Unreachable: the library kubernetes is missing, or the credentials cannot be used
        """
        if self._connected:
            return self
        if not HAS_KUBERNETES:
            raise Unreachable(f"The Python that runs Ansible lacks the library kubernetes. {say_how_to_install()}")
        wanted = {name: self.get_option(name) for name in make_cluster_spec() if name not in _NOT_HERE}
        options = {name: value for name, value in wanted.items() if value is not None}
        try:
            self._credentials = find_credentials(options, os.environ)
            self._cluster = Cluster(make_client(options, self._credentials).client)
        except RdmaError as error:
            # not from the error: what it came from may hold the token
            raise Unreachable(str(error)) from None
        except Exception as error:
            raise Unreachable(describe_error(error, self.transport)) from None
        self._connected = True
        return self

    @property
    def _container(self) -> Container:
        """Return the container in which commands run. Until it is found, this is the container that the options name.
        With the option ``node``, it is the container of the observer pod on that node.
        """
        node = self.get_option("node")
        named = Container(
            self.get_option("namespace"),
            f"of node {node}" if node else self.get_option("pod"),
            self.get_option("container"),
        )
        return self._found or named

    def _run(self, command: typing.Sequence[str], stdin: bytes = b"", most: int = MOST_ANSWER) -> Answer:
        self._connect()
        if self._cluster is None or self._credentials is None:
            raise Unreachable("The connection was closed while it was being established")
        limits = Limits(self.get_option("connect_timeout"), self.get_option("exec_timeout"), most)
        try:
            if self.get_option("node") and self._found is None:
                self._found = container_on(self._cluster, self.get_option("namespace"), self.get_option("node"))
            return run(self._cluster, self._container, command, stdin, limits)
        except RdmaError as error:
            raise Unreachable(self._credentials.redact_credentials(str(error))) from None
        except Exception as error:
            raise Unreachable(describe_error(error, self.transport)) from None

    def exec_command(
        self, cmd: str, in_data: typing.Optional[bytes] = None, sudoable: bool = True
    ) -> tuple[int, bytes, bytes]:
        """Run a command line in the shell of the container, and return its exit code, stdout and stderr.

        :param cmd: command line for ``/bin/sh -c``
        :param in_data: bytes for stdin; None for no input
        :param sudoable: whether ``become`` applies to the command
        :raises Unreachable: the container cannot be reached, or the output is too large
        :raises AnsibleError: become requires a password, which cannot be entered
        """
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        if sudoable and self.become and self.become.expect_prompt():
            raise AnsibleError(
                "become requires a password, which cannot be entered in a container. Run as root there, or configure"
                " sudo without a password (NOPASSWD)"
            )
        display.vvv(f"EXEC {escape.escape_line(cmd)}", host=str(self._container))
        answer = self._run(("/bin/sh", "-c", cmd), in_data or b"", self.most_output)
        return answer.rc, answer.stdout, answer.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from the controller into the container.

        :param in_path: path on the controller
        :param out_path: path in the container, which is replaced
        :raises AnsibleError: the file cannot be read or written
        :raises Unreachable: the container cannot be reached
        """
        super().put_file(in_path, out_path)
        # the container names the folder for the file
        display.vvv(escape.escape_line(f"PUT {in_path} TO {out_path}"), host=str(self._container))
        try:
            with open(in_path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise AnsibleFileNotFound(f"{in_path} does not exist on the controller") from None
        except OSError as error:
            raise AnsibleError(f"{in_path} could not be read on the controller: {error.strerror}") from error
        answer = self._run(("/bin/sh", "-c", 'cat > "$1"', "sh", out_path), data)
        if answer.rc:
            remedy = "Set ansible_remote_tmp to a folder that is writable in the container, such as /tmp/.ansible"
            raise AnsibleError(
                f"{_format_container_text(out_path)} could not be written in {self._container}:"
                f" {_describe_failure(answer)}. {remedy}"
            )

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from the container to the controller. A file that was not received completely is not written.

        :param in_path: path in the container
        :param out_path: path on the controller, which is replaced
        :raises AnsibleError: the file cannot be read or written
        :raises Unreachable: the container cannot be reached, or the file is too large
        """
        super().fetch_file(in_path, out_path)
        display.vvv(escape.escape_line(f"FETCH {in_path} TO {out_path}"), host=str(self._container))
        answer = self._run(("/bin/sh", "-c", 'cat < "$1"', "sh", in_path), most=MOST_FILE)
        if answer.rc:
            raise AnsibleError(
                f"{_format_container_text(in_path)} could not be read in {self._container}: {_describe_failure(answer)}"
            )
        try:
            with open(out_path, "wb") as file:
                file.write(answer.stdout)
        except OSError as error:
            raise AnsibleError(f"{out_path} could not be written on the controller: {error.strerror}") from error

    def reset(self) -> None:
        """Discard the credentials and the container that was found. The next command reads them again."""
        self.close()

    def close(self) -> None:
        self._cluster = self._credentials = self._found = None
        self._connected = False


def _describe_failure(answer: Answer) -> str:
    return _format_container_text(answer.stderr.decode(errors="replace").strip()) or f"exit code {answer.rc}"


def _format_container_text(text: str) -> str:
    """Return a text from the container as one line for a terminal, shortened to 2000 characters."""
    return escape.escape_line(cut_text(text, 2000))
