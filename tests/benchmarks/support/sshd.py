# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes that are reached by ssh: OpenSSH's own server on a port of this machine, with keys, settings and a client's
options that are made for it alone."""

from __future__ import annotations

import contextlib
import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import typing

#: where distributions put it, which is not in the PATH of every user
FOLDERS = "/usr/sbin:/usr/local/sbin"
#: that Debian's sshd wants when root starts it; else its unit makes the folder
SEPARATION = pathlib.Path("/run/sshd")
#: Ansible's own default, whatever ansible.cfg says
ARGUMENTS = "-C -o ControlMaster=auto -o ControlPersist=60s"


class NotServed(Exception):
    """Why no node is reached by ssh here, in a few words."""


def program(name: str) -> str:
    """Path of one of OpenSSH's programs.

    :raises NotServed: it is not installed
    """
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), FOLDERS)))
    if not found:
        raise NotServed(f"{name} is not installed")
    return found


@contextlib.contextmanager
def served(folder: pathlib.Path, latency: float) -> typing.Iterator[dict[str, typing.Any]]:
    """Variables with which Ansible reaches nodes of any name, as long as they are needed. Each name gets a connection
    of its own.

    :param folder: for keys and sockets; its path must be short
    :param latency: seconds before the process of a command starts, as with an exec; that a connection is made costs
        none
    :raises NotServed: OpenSSH is not installed, or does not let the user in who runs this
    """
    server = program("sshd")
    for key in ("host", "user"):
        subprocess.run([program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    (folder / "known").write_text(f"node {(folder / 'host.pub').read_text()}")
    port = _settings(folder, latency)
    if os.geteuid() == 0:
        SEPARATION.mkdir(exist_ok=True)
    log = folder / "sshd.log"
    options = (
        f"-F none -o HostName=127.0.0.1 -o HostKeyAlias=node -o UserKnownHostsFile={folder / 'known'} -o"
        " IdentitiesOnly=yes -o IdentityAgent=none"
    )
    with subprocess.Popen([server, "-D", "-f", str(folder / "settings"), "-E", str(log)]) as process:
        try:
            # it is asked once a second until it listens
            login = [program("ssh"), *options.split(" "), "-o", "BatchMode=yes", "-o", "ConnectionAttempts=20"]
            done = subprocess.run(
                [*login, "-p", str(port), "-i", folder / "user", "node", "true"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise NotServed(f"ssh to this machine: {' '.join((done.stderr + log.read_text()).split())[-200:]}")
            yield {
                "ansible_connection": "ansible.builtin.ssh",
                "ansible_port": port,
                "ansible_user": getpass.getuser(),
                "ansible_ssh_private_key_file": str(folder / "user"),
                "ansible_ssh_args": ARGUMENTS,
                "ansible_ssh_common_args": options,
                "ansible_control_path_dir": str(folder / "cp"),
            }
        finally:
            process.terminate()


def _settings(folder: pathlib.Path, latency: float) -> int:
    """Write those of the server; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = typing.cast(int, free.getsockname()[1])
    lines = (
        "ListenAddress 127.0.0.1",
        f"Port {port}",
        f"HostKey {folder / 'host'}",
        f"AuthorizedKeysFile {folder / 'user.pub'}",
        "AuthenticationMethods publickey",
        "PidFile none",
        # of the folders above that of the keys, of which /tmp is everybody's
        "StrictModes no",
        # each node has a server of its own; this one is of all of them
        "MaxStartups 1000",
        f'ForceCommand sleep {latency:g}; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"',
    )
    (folder / "settings").write_text("".join(f"{line}\n" for line in lines))
    return port
