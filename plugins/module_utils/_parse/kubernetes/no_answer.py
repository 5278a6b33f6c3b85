# SPDX-License-Identifier: GPL-3.0-or-later

"""Extract the reason why a request did not reach its server from the error messages of urllib3 and OpenSSL.

Sources: urllib3.exceptions of 1.26 and 2.x, errno(3), ssl.SSLError.
"""

from __future__ import annotations

import re

#: characters of a message that are looked at
_MOST = 4000
#: of a server that shows another certificate: in the words of Python's ssl, and in ours
UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "is not trusted")
#: the server that is meant; a proxy on the way has none of its own
_SERVER = re.compile(r"(HTTPS?)Connection(?:Pool)?\(host='([^']{1,253})', port=(\d{1,5})", re.ASCII)
_UNTRUSTED = re.compile(r"certificate verify failed(?:: ([^(\n]{1,200}))?")
_REFUSED_BY_PROXY = "Tunnel connection failed"
#: credentials of the kubeconfig that OpenSSL cannot load, in our words
UNREADABLE = "certificate or key in the kubeconfig cannot be read"
#: words of OpenSSL about them: PEM_R_*, X509_R_* and SSL_R_* of its headers
_PEM_ERRORS = (
    "PEM lib",
    "NO_START_LINE",
    "BAD_BASE64_DECODE",
    "BAD_END_LINE",
    "NO_CERTIFICATE_OR_CRL_FOUND",
    "KEY_VALUES_MISMATCH",
    "NOT_ENOUGH_DATA",
)
#: words of the library, and what they mean; ``{}`` is the server. The first that is found counts
_MEANINGS = (
    *((words, f"a {UNREADABLE}, so {{}} was not asked") for words in _PEM_ERRORS),
    ("Unable to connect to proxy", "{} cannot be reached through the proxy"),
    (_REFUSED_BY_PROXY, "the proxy refused the connection to {}"),
    ("Connection refused", "connection refused by {}"),
    ("Name or service not known", "the name of {} cannot be resolved"),
    ("Temporary failure in name resolution", "the name of {} cannot be resolved"),
    ("No address associated with hostname", "the name of {} cannot be resolved"),
    ("WRONG_VERSION_NUMBER", "{} does not support TLS"),
    ("record layer failure", "{} does not support TLS"),
    ("No route to host", "no route to {}"),
    ("Network is unreachable", "no route to {}"),
    ("reset by peer", "connection reset by {}"),
    ("Remote end closed connection", "connection closed by {}"),
    ("timed out", "{} did not respond in time"),
)


def cause_of(text: str) -> str:
    """Return a short reason from the text of an error of urllib3, such as ``connection refused by
    https://127.0.0.1:1``. Return an empty string if the text contains no server or no known reason.
    """
    server = _SERVER.search(text[:_MOST])
    if server is None:
        return ""
    address = f"{server[1].lower()}://{f'[{server[2]}]' if ':' in server[2] else server[2]}:{server[3]}"
    untrusted = _UNTRUSTED.search(text[:_MOST])
    # behind that stands what a proxy says, in words of its own
    if untrusted and _REFUSED_BY_PROXY not in text[: untrusted.start()]:
        return f"the certificate of {address} is not trusted{f': {untrusted[1].strip()}' if untrusted[1] else ''}"
    meant = [words for said, words in _MEANINGS if said in text[:_MOST]]
    return meant[0].format(address) if meant else ""
