# SPDX-License-Identifier: GPL-3.0-or-later

"""Removal of credentials from text, by the published formats of their issuers. Each pattern runs in linear time: an
unbounded repetition is never followed by text that the repetition itself could match.

Sources: OpenShift, "Managing user-owned OAuth access tokens" (``sha256~``); RFC 7617 (Basic); AWS IAM, "IAM
identifiers" (AKIA, ASIA, ...); GitHub, "About authentication to GitHub", token formats; GitLab, "Token overview"
(glpat-); RFC 3986 section 3.2.1 (userinfo); Azure Storage, "Create a service SAS" (sig) and "Configure connection
strings" (AccountKey); dracut.cmdline(7), netroot (iscsi); Vault, "Tokens" (hvs., hvb.,
hvr.); Slack, "Tokens" (xoxb-); npm, "About access tokens"; Google Cloud, "API keys" (AIza); crypt(5) ($6$);
Kubernetes, "Authenticating with Bootstrap Tokens"; Twilio SendGrid, "API keys" (SG.); Google Cloud, "OAuth 2.0" (ya29.,
GOCSPX-); opensm.conf (m_key, sm_key, sa_key) and smpquery (Mkey).
"""

from __future__ import annotations

import re
import typing

from .logins import PROGRAMS, REDACTED, remove_logins_of_text

__all__ = [
    "REDACTED",
    "asks_secret",
    "is_suspect_document",
    "may_hold_credentials",
    "remove_credentials",
    "remove_value",
]

_FLAG = r"--(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|passphrase|pass|pwd|token|secret|api-key|secret-key|access-key"
_FLAG += r"|(?-i:[a-z0-9]{1,20}Pass(?:word)?))"
_KEEPS = rf"\g<1>{REDACTED}"
#: a bootstrap token of kubeadm; what is before the point is no secret. Names and numbers have no digit or no letter, or
#: are parts of longer ones. It begins with the point, which a search finds fast
_BOOTSTRAP = re.compile(
    r"\.(?<=(?<![\w.-])[a-z0-9]{6}\.)(?=[a-z]{0,15}[0-9])(?=[0-9]{0,15}[a-z])[a-z0-9]{16}(?![\w-]|\.\w)"
)
# pattern, and what comes into the place of a match
_FORMS: tuple[tuple[typing.Pattern[str], str], ...] = (
    (re.compile(r"sha256~[A-Za-z0-9_-]{10,}"), REDACTED),
    (
        re.compile(
            r"(?i)(authorization[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?:basic|bearer|digest|negotiate|token|apikey)["
            r" \t]{1,3})[^\s\"',]{2,}"
        ),
        _KEEPS,
    ),
    (re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"), REDACTED),
    (re.compile(r"(?i)(secret_?(?:access_?)?key[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?)[A-Za-z0-9/+=]{16,}"), _KEEPS),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{16,}"), REDACTED),
    (re.compile(r"\bgithub_pat_[A-Za-z0-9_]{16,}"), REDACTED),
    (re.compile(r"\bnvapi-[A-Za-z0-9_-]{16,}"), REDACTED),
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}"), REDACTED),
    (re.compile(r"(X-Amz-Signature=)[0-9A-Za-z%+/=]{8,}"), _KEEPS),
    (re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}"), REDACTED),
    (
        re.compile(rf"(?i)({_FLAG}(?:=|[\"']?,?[ \t]{{1,3}}))(?!-|\[redacted\])(?:\"[^\"]*\"|'[^']*'|[^\s\"',]+)"),
        _KEEPS,
    ),
    # up to the last @ before the path: a password may have one
    (re.compile(r"(?<=://)[^\s/@:]*:[^\s/]+(?=@)"), REDACTED),
    # a token in the place of the user; the name of a user is shorter or has no digit
    (re.compile(r"(?<=://)(?=[a-z_.-]{0,128}[A-Z0-9])[^\s/@:]{20,255}(?=@)"), REDACTED),
    (re.compile(r"(?<=\biscsi:)[^\s:@]{1,128}(?::[^\s:@]{1,128}){1,3}(?=@)"), REDACTED),
    # of any length in the query of an address
    (re.compile(r"(?<=[?&;]sig=)[A-Za-z0-9%+/=_-]+"), REDACTED),
    (re.compile(r"(?<=\bsig=)[A-Za-z0-9%+/=_-]{16,}"), REDACTED),
    (_BOOTSTRAP, f".{REDACTED}"),
    (re.compile(r"\bhv[sbr]\.[A-Za-z0-9_-]{16,}"), REDACTED),
    (re.compile(r"\bxox[a-z]-[A-Za-z0-9-]{10,}"), REDACTED),
    (re.compile(r"\bnpm_[A-Za-z0-9]{16,}"), REDACTED),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{30,}"), REDACTED),
    # a name may begin with sk- too
    (re.compile(r"\bsk-(?:(?:proj|ant|svcacct|admin)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{32,})"), REDACTED),
    (re.compile(r"\$(?:1|2[abxy]|5|6|7|g?y|argon2(?:id?|d))\$[A-Za-z0-9./$,=+-]{8,}"), REDACTED),
    (re.compile(r"(?i)(\bpsk[\"']?[ \t]{0,3}[:=][ \t]{0,3})(?:\"[^\"\n]{1,128}|'[^'\n]{1,128}|[^\s\"',]{8,})"), _KEEPS),
    (re.compile(r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"), REDACTED),
    (re.compile(r"\b(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{20,}"), REDACTED),
    # of the subnet manager; 0 is none. The key of a memory region has no line between the words
    (
        re.compile(
            r"(?i)((?<![a-z0-9])(?:m|sm|sa)_key[\"']?[ \t]{0,8}[:=]?[ \t]{0,8}[\"']?)(?!0x?0{0,20}(?![0-9a-fx]))"
            r"[0-9][0-9a-z_-]*"
        ),
        _KEEPS,
    ),
    (re.compile(r"(\bM_?[Kk]ey:\.{2,64})(?!0x?0{0,20}(?![0-9a-fx]))0x[0-9A-Za-z_-]+"), _KEEPS),
    # a password on the standard input of sudo
    (
        re.compile(
            r"(\b(?:echo|printf)[ \t]{1,3}(?:-[neE]{1,3}[ \t]{1,3})?)(?!\[redacted\])"
            r"(?:\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s|\"']{1,256})(?=[ \t]{0,3}\|[ \t]{0,3}(?:/usr/bin/)?sudo\b)"
        ),
        _KEEPS,
    ),
    (
        re.compile(
            r"(\bsudo[ \t][^\n|<]{0,64}<<<[ \t]{0,3})(?!\[redacted\])"
            r"(?:\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s\"']{1,256})"
        ),
        _KEEPS,
    ),
    (re.compile(r"(AccountKey[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?)[A-Za-z0-9+/=]{16,}"), _KEEPS),
)
#: a bootstrap token in a document, where an escape may be before it
_LIKE_BOOTSTRAP = re.compile(r"\.(?<=[a-z0-9]{6}\.)[a-z0-9]{16}")
#: beginnings of the hashes of passwords
_HASHES = ("$1$", "$2", "$5$", "$6$", "$7$", "$y$", "$gy$", "$argon2")
# one of them is in each text that has any; a search for all forms costs ten times as much
_GITHUB = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")
_HINTS = (
    *(
        "sha256~",
        "uthoriz",
        "UTHORIZ",
        "AKIA",
        "ASIA",
        "ABIA",
        "ACCA",
        *_GITHUB,
        "nvapi-",
        "hf_",
        "X-Amz-S",
        "glpat-",
        "sig=",
        "AccountKey",
    ),
    *("hvs.", "hvb.", "hvr.", "xox", "npm_", "AIza", "sk-", "psk", "PSK", "Psk", *_HASHES),
    *("--", "://", "iscsi:", "ecret", "ECRET", "sudo"),
    *("SG.", "ya29.", "GOCSPX-", "m_key", "M_Key", "M_KEY", "sa_key", "SA_Key", "SA_KEY", "ey:..", *PROGRAMS),
)
#: the same in lower case, for a document
_SUSPECTS = (
    *("sha256~", "akia", "asia", "abia", "acca", *_GITHUB, "nvapi-", "hf_", "x-amz-signature", "glpat-"),
    *("://", "--", "iscsi:", "sig=", "accountkey", "sudo"),
    *("hvs.", "hvb.", "hvr.", "xox", "npm_", "aiza", "sk-", "psk", *_HASHES),
    *("sg.", "ya29.", "gocspx-", "m_key", "sa_key", "ey:..", *PROGRAMS),
)
_WHOLE_FLAG = re.compile(rf"(?i){_FLAG}")
_FLAG_WITH_VALUE = re.compile(rf"(?is)\A({_FLAG}=).+")


def may_hold_credentials(text: str) -> bool:
    """Return whether ``text`` contains a marker of a credential format. Without a marker there is no credential; with
    one there may or may not be one.
    """
    return any(hint in text for hint in _HINTS) or _BOOTSTRAP.search(text) is not None


def is_suspect_document(lower: str) -> bool:
    """Return whether a JSON document in ASCII and in lower case may contain a credential of a known format."""
    return any(suspect in lower for suspect in _SUSPECTS) or _LIKE_BOOTSTRAP.search(lower) is not None


def remove_credentials(text: str) -> str:
    """Return ``text`` with the credentials of all known formats replaced by ``REDACTED``."""
    if not may_hold_credentials(text):
        return text
    for form, instead in _FORMS:
        text = form.sub(instead, text)
    return remove_logins_of_text(text)


def asks_secret(argument: typing.Any) -> bool:
    """Return whether a command-line argument is an option such as ``--password`` whose value, a secret, is the next
    argument.
    """
    return isinstance(argument, str) and argument.startswith("--") and _WHOLE_FLAG.fullmatch(argument) is not None


def remove_value(argument: str) -> str:
    """Return a command-line argument such as ``--password=word`` without its value, which may contain any character.
    Return each other argument unchanged.
    """
    return _FLAG_WITH_VALUE.sub(_KEEPS, argument)
