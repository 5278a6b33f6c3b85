# SPDX-License-Identifier: GPL-3.0-or-later

"""Container images, made from root file systems and from the binaries that were compiled; no registry and no container
engine.

An image is a docker archive, which ``ctr images import`` reads. The pod image is the lower layer of the node image, and
of that of observers and measuring pods, which has the way to the simulated fabrics besides.
"""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import shutil
import tarfile
import typing

from ..cache import cached
from ..fabric import guest as fabric
from ..run import run
from . import debian, gotools

HERE = pathlib.Path(__file__)
LAB = HERE.parent.parent
POD_IMAGE = "localhost/rdma-tools:1"
NODE_IMAGE = "localhost/sriov-node:1"
DISCOVERY_IMAGE = "localhost/node-feature-discovery:1"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
NODE_BINARIES = (
    "sriov-network-operator",
    "sriov-network-operator-config-cleanup",
    "sriov-network-config-daemon",
    "sriovdp",
)
DISCOVERY_BINARIES = ("nfd-master", "nfd-worker")
#: for the workers, the operator and whoever looks at a node through a pod
MSTCONFIG = LAB / "image/mstconfig"
#: as whom node feature discovery's own image runs; its chart refuses root
NOBODY = "65534:65534"


def images(umad2sim: pathlib.Path) -> pathlib.Path:
    """Folder with ``pause.tar``, ``pod.tar``, ``node.tar`` and ``discovery.tar``.

    :param umad2sim: libumad2sim.so, through which diagnostics in a pod reach the simulated fabrics
    """
    pod_root = debian.pod_root()
    binaries, discovery = ([gotools.binary(name) for name in names] for names in (NODE_BINARIES, DISCOVERY_BINARIES))
    operator = gotools.module_folder(gotools.CLUSTER, gotools.OPERATOR)
    inputs: list[typing.Union[str, pathlib.Path]] = [pod_root.parent.name, str(operator), LAB / "image", HERE]
    inputs += [umad2sim, pathlib.Path(fabric.__file__).parent, *map(str, (*binaries, *discovery))]

    def build(target: pathlib.Path) -> None:
        work = target / "work"
        work.mkdir()
        pause = work / "pause"
        pause.mkdir()
        run(["gcc", "-static", "-O2", "-o", pause / "pause", LAB / "image/pause.c"])
        pod = _layer(work / "pod.layer", pod_root)
        tools = _layer(work / "tools.layer", _tools_root(work / "tools", umad2sim))
        node = _layer(work / "node.layer", _node_root(work / "node", binaries, operator))
        _archive(target / "pause.tar", PAUSE_IMAGE, [_layer(work / "pause.layer", pause)], {"Entrypoint": ["/pause"]})
        _archive(target / "pod.tar", POD_IMAGE, [pod, tools], {"Cmd": ["/bin/bash"]}, {"LAB_UMAD2SIM": "/tmp/umad2sim"})
        _archive(target / "node.tar", NODE_IMAGE, [pod, node], {"Entrypoint": ["/entrypoint"]})
        _archive(
            target / "discovery.tar",
            DISCOVERY_IMAGE,
            [_layer(work / "discovery.layer", _programs(work / "discovery", discovery))],
            {"User": NOBODY},
        )
        shutil.rmtree(work)

    return cached("images", inputs, build)


def _tools_root(root: pathlib.Path, umad2sim: pathlib.Path) -> pathlib.Path:
    """What a site's image does not have: the way to the simulated HCAs of the worker, whose map and sysfs an observer
    finds below /host."""
    fabric.install(root, umad2sim)
    for link, target in ((fabric.HCAS, "/host/opt/lab/hcas"), ("run/lab", "/host/run/lab")):
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(target)
    (root / "usr/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(MSTCONFIG, root / "usr/bin")
    return root


def _node_root(root: pathlib.Path, binaries: typing.Iterable[pathlib.Path], operator: pathlib.Path) -> pathlib.Path:
    """What the operator's own images hold, as one: its manager, its config daemon, the device plugin, its bindata, and
    the CNI shim."""
    _programs(root, binaries)
    # the daemon's scripts expect the /bin/sh of Red Hat, which is bash
    (root / "usr/bin/sh").symlink_to("bash")
    shutil.copy2(LAB / "image/entrypoint", root / "entrypoint")
    (root / "opt").mkdir()
    shutil.copy2(LAB / "image/cni-shim", root / "opt/cni-shim")
    shutil.copy2(MSTCONFIG, root / "usr/bin")
    shutil.copytree(operator / "bindata", root / "bindata")
    run(["chmod", "-R", "u+w", root / "bindata"])
    for script in (root / "bindata/scripts").iterdir():
        script.chmod(0o755)
    return root


def _programs(root: pathlib.Path, binaries: typing.Iterable[pathlib.Path]) -> pathlib.Path:
    (root / "usr/bin").mkdir(parents=True)
    for binary in binaries:
        shutil.copy2(binary, root / "usr/bin" / binary.name)
    return root


def _layer(target: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    run(
        [
            "tar",
            "-C",
            root,
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--sort=name",
            "--exclude=./dev/*",
            "-cf",
            target,
            ".",
        ]
    )
    return target


def archive(
    target: pathlib.Path,
    name: str,
    layers: typing.Mapping[pathlib.Path, pathlib.Path],
    config: typing.Mapping[str, typing.Any],
) -> None:
    """Write the archive of an image.

    :param layers: by file of a layer the folder that it is made of, the lowest first
    """
    _archive(target, name, [_layer(path, root) for path, root in layers.items()], config)


def _archive(
    target: pathlib.Path,
    name: str,
    layers: typing.Sequence[pathlib.Path],
    config: typing.Mapping[str, typing.Any],
    environment: typing.Optional[typing.Mapping[str, str]] = None,
) -> None:
    variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **(environment or {})}
    digests = [_digest(layer) for layer in layers]
    settings = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": [f"{name}={value}" for name, value in variables.items()], "WorkingDir": "/", **config},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    document = json.dumps(settings).encode()
    document_name = hashlib.sha256(document).hexdigest() + ".json"
    manifest = [{"Config": document_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar" for digest in digests]}]
    with tarfile.open(target, "w") as archive:
        _add(archive, document_name, document)
        for digest, layer in zip(digests, layers):
            archive.add(layer, arcname=f"{digest}/layer.tar", recursive=False)
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _digest(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
