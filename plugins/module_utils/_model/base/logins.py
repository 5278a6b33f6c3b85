# SPDX-License-Identifier: GPL-3.0-or-later

"""Removal of passwords from the command lines of programs whose options are too short to name a password, such as
``curl -u me:word``. Each pattern runs in linear time.

Sources: curl(1) (-u, -U), ipmitool(1) (-P), sshpass(1) (-p), redfishtool (-p), Dell, "RACADM CLI Guide" (-p),
mysql(1) (-p, only attached), redis-cli --help (-a), ldapsearch(1) (-w), smbclient(1) (-U user%password),
openssl-passphrase-options(1) (-passin pass:word), docker-login(1) (-p), htpasswd(1) (-b).
"""

from __future__ import annotations

import re
import typing

#: what is left in the place of a credential
REDACTED = "[redacted]"
#: arguments among which the program is, behind sudo and the like
_FIRST = 16
#: between two arguments, also as they are in the text of a list
_NEXT = r"[\"']?,?[ \t]{1,3}"
#: a password behind an optional quote, which is group 2
_HIDDEN = r"(?!\[redacted\]|[\s\"'])(?(2)(?:(?!\2)[^\n])+|[^\s\"']+)"


class _Login(typing.NamedTuple):
    """A command-line option by which a program gets a password.

    :ivar program: name of the program
    :ivar option: pattern of the option, whose value is the next argument
    :ivar attached: pattern of the option with the value in the same argument. Options without a value may be before it;
        empty if the program does not support this form
    :ivar user: pattern of the part of the value that is not secret
    :ivar is_first: whether only the first such option counts, because the program starts another program and the later
        arguments belong to that one
    :ivar is_near: whether the option counts in a text only behind the program in one command, because other programs
        have it too
    """

    program: str
    option: str
    attached: str = ""
    user: str = ""
    is_first: bool = False
    is_near: bool = False


#: never an option with its value in the next argument
_NEVER = "(?!)"
_LOGINS = (
    # elsewhere, -u may be the IDs of a user and a group
    _Login(
        "curl",
        "(?:-[A-Za-z]{0,8}[uU]|--user|--proxy-user)",
        "(?:-[0-46aBfgGiIjJklLMnNOpqRsSvZ#]{0,8}[uU]|--user=|--proxy-user=)",
        "[^:]{0,64}:",
    ),
    _Login("ipmitool", "-[cv]{0,8}P", "-[cv]{0,8}P"),
    _Login("sshpass", "-v?p", "-v?p", is_first=True),
    _Login("racadm", "-p"),
    _Login("redfishtool", "(?:-p|--password)"),
    # a word after -p is the name of a database
    *(_Login(name, _NEVER, "-p") for name in ("mysql", "mysqldump", "mysqladmin", "mariadb")),
    _Login("redis-cli", "-a"),
    *(_Login(name, "-[xZv]{0,8}w", "-[xZv]{0,8}w") for name in ("ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami")),
    _Login("smbclient", "(?:-U|--user)", "(?:-U|--user=)", "[^%]{0,64}%"),
    _Login("openssl", "-pass(?:in|out)?", user="pass:"),
    # of docker, podman and the like, whose other commands have ports behind -p
    _Login("login", "-p", "-p=", is_near=True),
)
#: htpasswd -b has the password as its last argument
_HTPASSWD, _BATCH = "htpasswd", re.compile(r"-[A-Za-z0-9]{0,8}b[A-Za-z0-9]{0,8}")
_HTPASSWD_TEXT = re.compile(
    r"(\bhtpasswd[\"']?,?(?:[ \t]{1,3}[^\s|;&]{1,128}){0,3}?[ \t]{1,3}[\"']?-[A-Za-z0-9]{0,8}b[A-Za-z0-9]{0,8}[\"']?,?"
    r"(?:[ \t]{1,3}[^\s|;&>\]]{1,128}){1,5}[ \t]{1,3}[\"']?)(?!\[redacted\])[^\s|;&>\"'\])]{1,128}"
    r"(?=[\"')]{0,2}\]|[\"')]{0,3}[ \t]{0,3}(?:$|[\r\n|;&>]))"
)


def _make_forms(login: _Login) -> tuple[typing.Pattern[str], ...]:
    """Return the patterns that find the password of a login in a text. The part before the password is group 1."""
    user = login.user.replace("[^:]{0,64}", r"[^\s:\"'/]{1,64}").replace("[^%]{0,64}", r"[^\s%\"']{1,64}")
    # the options of a program that starts another one are right behind its name
    begin = rf"(?<![^\s\"'/]){login.program}{_NEXT}[\"']?" if login.is_first else r"(?<![^\s\"'])"
    if login.is_near:
        begin = rf"(?<![^\s\"'/]){login.program}{_NEXT}(?:[^\n|;&]{{0,200}}?[\s\"'])?[\"']?"
    forms = [rf"({begin}{login.option}{_NEXT}([\"'])?{user}){_HIDDEN}"]
    if login.attached:
        forms += [rf"({begin}{login.attached}([\"'])?{user}){_HIDDEN}"]
        # a quote before the whole argument
        forms[1:1] = [] if login.is_first or login.is_near else [rf"(([\"']){login.attached}{user}){_HIDDEN}"]
    return tuple(re.compile(form) for form in forms)


_FORMS = tuple((login.program, _make_forms(login)) for login in _LOGINS)
_ARGUMENTS = tuple(
    (
        login,
        re.compile(login.option),
        re.compile(rf"\A({login.user}).+", re.DOTALL),
        re.compile(rf"\A({login.attached}{login.user}).+", re.DOTALL) if login.attached else None,
    )
    for login in _LOGINS
)
#: one of them is in each text with such a password
PROGRAMS = (*(login.program for login in _LOGINS), _HTPASSWD)


def remove_logins_of_text(text: str) -> str:
    """Return ``text`` without the passwords in the command lines of the known programs."""
    for program, forms in _FORMS:
        if program in text:
            for form in forms:
                text = form.sub(rf"\g<1>{REDACTED}", text)
    return _HTPASSWD_TEXT.sub(rf"\g<1>{REDACTED}", text) if _HTPASSWD in text else text


def remove_logins(arguments: typing.Sequence[typing.Any]) -> list[typing.Any]:
    """Return the arguments of a command with the passwords of the known programs replaced by ``REDACTED``. A password
    is in the argument of its option (``-pword``) or in the next argument (``-p word``), and may contain any character.
    """
    kept = list(arguments)
    for login, option, value, attached in _ARGUMENTS:
        names = [item.rpartition("/")[2] if isinstance(item, str) else "" for item in arguments[:_FIRST]]
        start = names.index(login.program) + 1 if login.program in names else len(kept)
        for place in range(start, len(kept)):
            item, before = arguments[place], arguments[place - 1]
            if not isinstance(item, str):
                continue
            is_value = isinstance(before, str) and option.fullmatch(before) is not None
            found = value.fullmatch(item) if is_value else attached.fullmatch(item) if attached else None
            if found is not None:
                kept[place] = f"{found[1]}{REDACTED}"
            if login.is_first and (is_value or found is not None):
                break
    texts = [item if isinstance(item, str) else "" for item in arguments]
    programs = [text.rpartition("/")[2] for text in texts[:_FIRST]]
    if _HTPASSWD in programs and len(texts) > 3 and any(map(_BATCH.fullmatch, texts[programs.index(_HTPASSWD) :])):
        kept[-1] = REDACTED
    return kept
