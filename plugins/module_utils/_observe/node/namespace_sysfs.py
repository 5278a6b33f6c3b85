# SPDX-License-Identifier: GPL-3.0-or-later

"""Mount a sysfs for each network namespace of this machine.

The ``/sys`` of a container is not safe to read. A process in it may have mounted another folder there, or changed its
root directory, and would decide which files root opens. A new sysfs mount shows the network namespace of the thread
that mounts it. This thread has a private mount namespace, so the mount is visible to no other process, and it ends with
the thread.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import typing

#: [include/uapi/linux/sched.h], [include/uapi/linux/mount.h], [include/linux/fs.h]
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_NOSUID, _NODEV, _NOEXEC, _REC, _PRIVATE, _DETACH = 0x2, 0x4, 0x8, 0x4000, 0x40000, 0x2
#: which each machine has. The mount on it is seen by one thread
_PLACE = "/sys"

#: takes the path of a namespace (``/proc/4711/ns/net``) and a folder with its sysfs, which is there until it returns
ReadNamespace = typing.Callable[[str, str], None]


def read_namespaces(namespaces: typing.Sequence[str], read_namespace: ReadNamespace) -> list[str]:
    """Call a function with the path and the sysfs root of each network namespace, one after the other, in a temporary
    thread. A namespace that ends before it is entered is left out.

    :param namespaces: paths such as ``/proc/4711/ns/net``
    :param read_namespace: function that gets the path of a namespace and its sysfs root, and reads the namespace before
        it returns
    :returns: errors of namespaces that could not be read; empty if all could be read
    """
    if not namespaces:
        return []
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_read_namespaces, namespaces, read_namespace).result()


def _read_namespaces(namespaces: typing.Sequence[str], read_namespace: ReadNamespace) -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _require_success("unshare", libc.unshare(_CLONE_NEWNS))
        # what is mounted from here on goes nowhere else
        _require_success("mount", libc.mount(b"none", b"/", None, ctypes.c_ulong(_REC | _PRIVATE), None))
    except OSError as error:
        return [
            (
                f"{len(namespaces)} network namespaces, such as {namespaces[0]}, could not be read:"
                f" {_explain_mount_refusal(error)}"
            )
        ]
    errors: list[str] = []
    for path in namespaces:
        try:
            entered = _enter_namespace(libc, path)
        except OSError as error:
            errors.append(f"{path}: {_explain_mount_refusal(error)}")
            continue
        if entered:
            try:
                read_namespace(path, _PLACE)
            finally:
                _require_success("umount2", libc.umount2(_PLACE.encode(), _DETACH))
    return errors


def _enter_namespace(libc: ctypes.CDLL, path: str) -> bool:
    """Move this thread into a network namespace, and mount the sysfs of the namespace at /sys. Return False if the
    namespace has ended.

    :param libc: the C library
    :param path: path of the namespace, such as ``/proc/4711/ns/net``
    :raises OSError: the kernel refuses to enter the namespace or to mount its sysfs
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, ProcessLookupError):
        return False
    try:
        _require_success("setns", libc.setns(handle, _CLONE_NEWNET))
    finally:
        os.close(handle)
    # not read-only: all mounts of a namespace share one superblock, and a container that starts now would have it
    # read-only as well
    _require_success(
        "mount", libc.mount(b"sysfs", _PLACE.encode(), b"sysfs", ctypes.c_ulong(_NOSUID | _NODEV | _NOEXEC), None)
    )
    return True


def _require_success(name: str, answer: int) -> None:
    """Raise an error if a function of the C library failed.

    :param name: name of the function, for the message
    :param answer: return value of the function; 0 means success
    :raises OSError: the function failed
    """
    if answer:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _explain_mount_refusal(error: OSError) -> str:
    """Return a message with the reason why the sysfs of a namespace could not be mounted, and the privileges that
    mounting requires.

    :param error: error of the mount
    """
    return (
        f"its sysfs could not be mounted, so the functions of the node in it are unknown: {error.strerror or error}."
        " Mounting requires root with CAP_SYS_ADMIN: use an observer, or ssh with sudo"
    )
