"""The files of the machine that programs need: what a container on the machine's files sees of them, and no more.

It is a list of what is shown, not of what is hidden: whatever else the machine holds, now or later, is not there.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from shoal.cluster.node.process.runtime.links import followed

_PROGRAMS = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt"),
    *("/nix/store", "/gnu/store"),
)
_ETC = (
    *("alternatives", "bash.bashrc", "bashrc", "profile", "profile.d", "inputrc", "shells", "skel", "terminfo"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "locale.conf", "localtime", "timezone"),
    *("passwd", "group", "login.defs", "nsswitch.conf", "host.conf", "gai.conf"),
    *("hosts", "networks", "protocols", "services", "rpc", "ethertypes", "netconfig"),
    *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf"),
    *("ssh/moduli", "ssh/ssh_config", "ssh/ssh_config.d"),
    *("os-release", "lsb-release", "debian_version", "redhat-release", "system-release", "alpine-release", "issue"),
    *("mime.types", "mailcap", "magic", "magic.mime", "fonts", "papersize", "xattr.conf", "sensors3.conf"),
    *("perl", "python*", "java*", "julia", "ghostscript", "ImageMagick-*", "openmpi", "mpich", "libibverbs.d"),
    *("OpenCL", "vulkan", "glvnd", "egl", "nccl.conf", "static"),
)
"""In /etc; with globs. Nothing that holds a key or a password."""


def usual_files(etc: Iterable[str]) -> list[str]:
    """What every container on the machine's files sees, given the names of what is in /etc."""
    names = list(etc)
    found: list[str] = []
    for pattern in _ETC:
        first, _, rest = pattern.partition("/")
        found += [f"/etc/{name}{rest and '/'}{rest}" for name in fnmatch.filter(names, first)]
    return [*_PROGRAMS, *found]


def with_links(path: str) -> list[str]:
    """The links that lead from a path to what it stands for, wherever on the way they are, and that itself."""
    try:
        real, links = followed(path)
    except OSError:
        return []  # links in a circle lead to nothing
    return [*links, real]


def without_parts(paths: Iterable[str]) -> list[str]:
    """Paths in an order in which a folder comes before what is in it, without those that another one holds."""
    kept: list[str] = []
    for path in sorted(set(paths), key=lambda one: (one.count("/"), one)):
        if not any(path.startswith(f"{one}/") for one in kept):
            kept.append(path)
    return kept
