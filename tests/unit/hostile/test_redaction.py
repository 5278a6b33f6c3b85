# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials in the forms of their issuers, wherever a tool prints them, and text that only looks like one."""

from __future__ import annotations

import json
import pathlib
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.redact import (
    MOST_SUSPECT,
    REDACTED,
    is_free,
    is_suspect,
    redact,
    redact_text,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.facts import CLUSTER
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.unit.limit import bounded, measure_seconds

WORD = "hunter2hunter2hunter2"
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
#: output of real tools, logs and objects
REAL = sorted(path for path in FIXTURES.rglob("*") if path.suffix in (".txt", ".log", ".stderr", ".yaml"))
SECRETS: typing.Sequence[tuple[str, str]] = (
    ("https://x.blob.example/a?sv=1&sig=abc%2Fdef", "abc%2F"),
    ("kubeadm join 10.0.0.1:6443 with abcdef.0123456789abcdef failed", "0123456789abcdef"),
    ("tokens:\nabcdef.0123456789abcdef.", "0123456789abcdef"),
    (f'{{"credentials": "{WORD}"}}', WORD),
    (f"vault hvs.{WORD} was refused", WORD),
    ("xoxb" + f"-12345678901-{WORD}", WORD),
    (f"//packages.example/:x npm_{WORD}", WORD),
    (f"key=AIza{WORD}{WORD}", WORD),
    (f"sk-proj-{WORD}", WORD),
    (f"sk-{WORD}{WORD}", WORD),
    (f"root:$6$salt${WORD}:19000", WORD),
    (f"root:$y$j9T$salt${WORD}:19000", WORD),
    (f"x $2b$12${WORD}", WORD),
    (f'psk="{WORD} two"', WORD),
    (f"psk: {WORD}", WORD),
    (f"password: |\n  {WORD}\nnext: 1", WORD),
    (f"password: >-\n    first\n    {WORD}\n", WORD),
    (f"  adminPass: |2\n     {WORD}", WORD),
    (f"password:\n  {WORD}\nnext: 1", WORD),
    (f"passwords:\n  - {WORD}\n", WORD),
    (f"adminPass: {WORD}", WORD),
    (f"tool --adminPass {WORD}", WORD),
    (f"mysql -u root -p{WORD} db", WORD),
    (f"mysqldump -p'{WORD} two' db", WORD),
    (f"mysql --password={WORD} db", WORD),
    (f"redis-cli -h cache -a {WORD} ping", WORD),
    (f"ldapsearch -x -D cn=admin -w {WORD}", WORD),
    (f"ldapsearch -xw {WORD} -b dc=x", WORD),
    (f"smbclient //files/share -U user%{WORD}", WORD),
    (f"smbclient //files/share -U 'SITE/user%{WORD}'", WORD),
    (f"echo {WORD} | sudo -S ls", WORD),
    (f"echo '{WORD} two' |sudo -S ls", WORD),
    (f"sudo -S ls <<< {WORD}", WORD),
    (f"curl -u user:{WORD} https://bmc", WORD),
    (f"docker login -u user -p {WORD} registry.example", WORD),
    (f"podman login registry.example -u user -p '{WORD} two'", WORD),
    (f'["docker", "login", "-p", "{WORD}"]', WORD),
    (f"htpasswd -bc /etc/users user {WORD}", WORD),
    (f"htpasswd -nbB -C 10 user {WORD} > file", WORD),
    (f'["htpasswd", "-b", "file", "user", "{WORD}"]', WORD),
    (f"openssl rsa -in key.pem -passin pass:{WORD} -out x", WORD),
    (f"openssl enc -aes-256-cbc -pass pass:{WORD}", WORD),
    (f'{{"name":"PASSWORD","value":"{WORD}"}}', WORD),
    (f'{{"env": "[{{\\"name\\":\\"DB_PASSWORD\\",\\"value\\":\\"{WORD}\\"}}]"}}', WORD),
    (f'{{"name":"ADMIN_PASS","value":"{WORD}"}}', WORD),
    (f"sshpass -p {WORD} ssh node", WORD),
    ("token sha256~Zz0_9-aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abc in use", "Zz0_9"),
    (f"Authorization: Basic {WORD}==", WORD),
    (f"authorization: basic {WORD}", WORD),
    (f'{{"Authorization": "Basic {WORD}"}}', WORD),
    ("key AKIAIOSFODNN7EXAMPLE was refused", "IOSFODNN7"),
    ("ASIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUt"),
    ('"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"', "wJalrXUt"),
    ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abc"),
    ("gho_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abc"),
    ("github_pat_11ABCDEFG0123456789_abcdefghij", "11ABCDEFG"),
    ("glpat-0123456789abcdefghij", "0123456789abc"),
    (f"mstconfig --password {WORD} query", WORD),
    (f"helm --password={WORD} pull", WORD),
    (f"helm --registry-password '{WORD} two' pull", WORD),
    (f"oc login --token={WORD}", WORD),
    (f"oc login --token {WORD}", WORD),
    (f"oc --api-key {WORD}", WORD),
    (f"['helm', '--password', '{WORD}']", WORD),
    (f"https://me:{WORD}@registry.example/v2", WORD),
    (f"https://{WORD}@git.example/v2", WORD),
    (f"https://a.blob.core.windows.net/c?sv=2024&sig={WORD}%3D&se=1", WORD),
    (f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={WORD}==;EndpointSuffix=b", WORD),
    (f"netroot=iscsi:chap:{WORD}@192.0.2.1::3260::iqn.2026-01.example", WORD),
    (f"https://me:a@{WORD}@registry.example/v2", WORD),
    (f"Authorization: Bearer\t{WORD}", WORD),
    (f"authorization: bearer {WORD}", WORD),
    (f"key nvapi-{WORD}", WORD),
    (f"hf_{WORD}", WORD),
    (f"/chart?X-Amz-Signature={WORD}&b=1", WORD),
    (f"redis://:{WORD}@cache", WORD),
    (f'{{"Password": "{WORD}", "UserName": "root"}}', WORD),
    (f'{{"AdminPassword": "a\\"{WORD}"}}', WORD),
    (json.dumps(json.dumps({"password": f'a"{WORD} {WORD}'})), WORD),
    (json.dumps(json.dumps(json.dumps({"auths": {"r": {"auth": WORD}}}))), WORD),
    (f"password = {WORD}", WORD),
    (f"admin_password: '{WORD} {WORD}'", WORD),
    (f"passphrase={WORD}", WORD),
    (f"client_secret={WORD}&grant_type=password", WORD),
    (f"clientSecret: {WORD}", WORD),
    (f"AWS_SECRET={WORD}", WORD),
    (f'"secret": "{WORD}"', WORD),
    (f"Cookie: session={WORD}; theme=dark", WORD),
    (f"set-cookie: a=b; id={WORD}; Secure", WORD),
    (f"curl -H 'Cookie: a={WORD}' https://bmc", WORD),
    (f"{{'Set-Cookie': 'a={WORD}'}}", WORD),
    (f'{{"auths": {{"registry.example": {{"auth": "{WORD}"}}}}}}', WORD),
    (f"export NGC_API_KEY={WORD}", WORD),
    (f"WANDB_API_KEY={WORD}", WORD),
    (f"apiKey: {WORD}", WORD),
    (f'X-Auth-Token: "{WORD}"', WORD),
    (f".dockerconfigjson: {WORD}", WORD),
    ('.dockerconfigjson: \'{"auths":{"r":{"username":"me"}}}\'', "username"),
    (f"tls.key: {WORD}", WORD),
    (f"ssh-privatekey: {WORD}", WORD),
    (f"data LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{WORD}= end", WORD),
    (f"- name: BMC_PASSWORD\n  value: {WORD}", WORD),
    (f'{{"name": "BMC_PASSWORD", "value": "{WORD}"}}', WORD),
    (f"{{Name:HF_TOKEN Value:{WORD} ValueFrom:nil}}", WORD),
    (f"name: NGC_API_KEY,  value: {WORD}", WORD),
    (f"Bearer {WORD} was refused", WORD),
    ("PASSWORD=123456", "123456"),
    (f"export BMC_PASS={WORD} && next", WORD),
    ("IPMI_PASS=123456", "123456"),
    (f"ansible_become_pass: {WORD}", WORD),
    (f"become_pass={WORD}", WORD),
    (f"vars: {{ansible_ssh_pass: {WORD}, a: b}}", WORD),
    (f'{{"ansible_become_pass": "{WORD} two"}}', WORD),
    (f"sudo-pass: '{WORD} two'", WORD),
    (f"PASS={WORD}", WORD),
    (f"pwd={WORD}", WORD),
    (f"DB_PWD='{WORD}'", WORD),
    (f"Server=a;Uid=b;Pwd={WORD};", WORD),
    (f'{{"pwd": "{WORD}"}}', WORD),
    ("m_key 0xdeadbeefcafebabe", "deadbeef"),
    ("sm_key: 0xdeadbeef", "deadbeef"),
    ("sm_key 0x1", "0x1"),
    ("sa_key=12345678", "12345678"),
    ("Mkey:............................0x00000000deadbeef", "deadbeef"),
    (f"curl -sku admin:{WORD} -u admin:{WORD} https://bmc/redfish/v1", WORD),
    (f"curl --user 'admin:{WORD}' https://bmc", WORD),
    (f"['curl', '-u', 'admin:{WORD}', 'https://bmc']", WORD),
    (f"ipmitool -H bmc -U root -P {WORD} power status", WORD),
    (f"curl -uroot:{WORD} https://bmc", WORD),
    (f"curl -sk -u 'root:a {WORD}' https://bmc", WORD),
    (f"curl -u'root:a {WORD}' https://bmc", WORD),
    (f"['curl', '-skuroot:a {WORD}']", WORD),
    (f"ipmitool -H bmc -U root -P{WORD} power status", WORD),
    (f"ipmitool -H bmc -P 'a {WORD}' power status", WORD),
    (f"['ipmitool', '-Pa {WORD}']", WORD),
    (f"sshpass -p {WORD} ssh -p 22 worker-1", WORD),
    (f"/usr/bin/sshpass -p'a {WORD}' ssh worker-1", WORD),
    (f"['sshpass', '-p', 'a {WORD}', 'ssh', '-p', '22']", WORD),
    (f"racadm -r bmc -u root -p {WORD} get BIOS", WORD),
    (f"redfishtool -r bmc -u root -p {WORD} Systems", WORD),
    (f"tool --bmc-pass {WORD}", WORD),
    (f"tool --bmc-pass={WORD} --ipmi-pwd {WORD}", WORD),
    (f"- name: BMC_PASS\n  value: {WORD}", WORD),
    (f'{{"name": "BMC_PASS", "value": "{WORD} two"}}', WORD),
    (f"{{Name:DB_PWD Value:{WORD} ValueFrom:nil}}", WORD),
    (f"- name: adminPass\n  value: {WORD}", WORD),
    (f"adminPass: {WORD}", WORD),
    (f"adminPass={WORD}", WORD),
    (f'{{"adminPass": "{WORD} two"}}', WORD),
    (f'{{"dbPwd": "{WORD} two"}}', WORD),
    (f"dbPwd={WORD}", WORD),
    (f"SG.abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRST{WORD}", WORD),
    (f"ya29.a0AfH6SMB{WORD}", WORD),
    (f"GOCSPX-{WORD}", WORD),
    (f"token=1{WORD}", WORD),
)
#: names of fields whose value is a secret
KEYS = (
    *(
        "Password",
        "AdminPassword",
        "tokens",
        "passwords",
        "secret_key",
        "secretAccessKey",
        ".dockerconfigjson",
        "tls.key",
        "Cookie",
        "Set-Cookie",
        "auth",
    ),
    *("adminPass", "dbPwd", "ansible_become_pass", "BMC_PASS", "db-pwd", "pwd", "sm_key", "sa_key"),
    *("client_secret", "clientSecret", "passphrase", "NGC_API_KEY", "identitytoken", "X-Auth-Token"),
)
#: names that only look like it
OTHERS = (
    *(
        "image_pull_secrets",
        "imagePullSecrets",
        "secretName",
        "secretKeyRef",
        "tokens_seen",
        "passwordless",
        "key",
        "pkey",
        "author",
        "authentication",
        "pass",
        "bypass",
        "oldpwd",
    ),
    *("tokenExpirationSeconds", "automountServiceAccountTokens_", "keys", "cookies_seen", "monkey"),
)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_credential_goes(text: str, secret: str) -> None:
    assert secret not in redact_text(text) and REDACTED in redact_text(text)
    document = json.dumps({"said": [text]})
    assert not is_free(document) and secret not in json.dumps(redact(json.loads(document)))


def test_password_of_a_login_goes_from_a_list_of_arguments() -> None:
    assert redact(["/usr/bin/curl", "-k", "-u", f"admin:{WORD}", "https://bmc"]) == [
        "/usr/bin/curl",
        "-k",
        "-u",
        f"admin:{REDACTED}",
        "https://bmc",
    ]
    assert redact(["ipmitool", "-U", "root", "-P", WORD]) == ["ipmitool", "-U", "root", "-P", REDACTED]
    assert redact(["docker", "login", "-u", "me", "-p", WORD]) == ["docker", "login", "-u", "me", "-p", REDACTED]
    assert redact(["htpasswd", "-b", "f", "me", "a b"]) == ["htpasswd", "-b", "f", "me", REDACTED]
    assert redact(["openssl", "rsa", "-passin", "pass:a b"]) == ["openssl", "rsa", "-passin", f"pass:{REDACTED}"]
    for other in (["docker", "run", "-p", "80:80"], ["htpasswd", "-c", "f", "me"], ["openssl", "-passin", "env:X"]):
        assert redact(other) == other
    for other in (["podman", "run", "-u", "1000:1000"], ["curl", "-P", WORD], ["curl", "-u"]):
        assert redact(other) == other


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["ipmitool", "-P", "pa ss"], ["ipmitool", "-P", REDACTED]),
        (["ipmitool", "-P", "-pa'ss"], ["ipmitool", "-P", REDACTED]),
        (["ipmitool", "-P", f"{REDACTED}1"], ["ipmitool", "-P", REDACTED]),
        (["ipmitool", "-Psecret1", "power"], ["ipmitool", f"-P{REDACTED}", "power"]),
        (["sudo", "/usr/bin/ipmitool", "-vP", "a\nb"], ["sudo", "/usr/bin/ipmitool", "-vP", REDACTED]),
        (["curl", "-u", "me:it's"], ["curl", "-u", f"me:{REDACTED}"]),
        (["curl", "-u", "a me:pa ss:\nb"], ["curl", "-u", f"a me:{REDACTED}"]),
        (["curl", "-u", ":secret1"], ["curl", "-u", f":{REDACTED}"]),
        (["curl", "--user", f"me:{REDACTED}1"], ["curl", "--user", f"me:{REDACTED}"]),
        (["curl", "-sume:it's", "https://bmc"], ["curl", f"-sume:{REDACTED}", "https://bmc"]),
        (["sshpass", "-p", "pa ss", "ssh", "-p", "22"], ["sshpass", "-p", REDACTED, "ssh", "-p", "22"]),
        (["sshpass", "-ppa ss", "ssh", "-p", "22"], ["sshpass", f"-p{REDACTED}", "ssh", "-p", "22"]),
        (["racadm", "-u", "root", "-p", "pa ss", "get"], ["racadm", "-u", "root", "-p", REDACTED, "get"]),
        (["a tool", "--bmc-pass", "pa ss"], ["a tool", "--bmc-pass", REDACTED]),
        (["a tool", "--bmc-pass=pa ss"], ["a tool", f"--bmc-pass={REDACTED}"]),
        (["mysql", "-u", "root", "-ppa ss", "db"], ["mysql", "-u", "root", f"-p{REDACTED}", "db"]),
        (["redis-cli", "-a", "pa ss", "ping"], ["redis-cli", "-a", REDACTED, "ping"]),
        (["ldapsearch", "-xw", "pa ss"], ["ldapsearch", "-xw", REDACTED]),
        (["smbclient", "-U", "user%pa ss"], ["smbclient", "-U", f"user%{REDACTED}"]),
        (["helm", "--password=it's \n a"], ["helm", f"--password={REDACTED}"]),
    ],
)
def test_password_in_an_argument_of_its_own_goes_as_a_whole(arguments: list[str], kept: list[str]) -> None:
    assert redact(arguments) == kept
    assert redact(kept) == kept


def test_login_without_a_password_stays() -> None:
    for arguments in (["curl", "-u", "me", "-H", "a: b", "-ohttp:u", "-u", "me:"], ["ipmitool", "-I", "lanplus", "-P"]):
        assert redact(arguments) == arguments
    for arguments in (["mysql", "-p", "db", "-P", "3306"], ["smbclient", "-U", "user"], ["ldapsearch", "-x", "-W"]):
        assert redact(arguments) == arguments


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.relative_to(FIXTURES).as_posix())
def test_output_of_tools_stays(path: pathlib.Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        assert redact_text(line) == line


def test_the_value_of_an_option_goes_from_a_list_of_arguments() -> None:
    assert redact({"argv": ["helm", "--password", WORD, "pull", "--insecure"]}) == {
        "argv": ["helm", "--password", REDACTED, "pull", "--insecure"]
    }


@pytest.mark.parametrize(
    "text",
    [
        "image quay.io/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "https://docs.example/findings/a.html@x",
        "ssh://git@host/x",
        "Basic authentication is off",
        "--set driver.enabled=true --wait",
        "mlx5_0 -- mlx5_1",
        "0xb83fd20300e10000",
        "high_ghz",
        "hf_rate is 3",
        "node_guid: 0x506b4b0300000001, sys_image_guid = 506b:4b03:0000:0001",
        "Bearer authentication is what the registry wants",
        "the Bearer scheme, Bearer. Bearer",
        "passwordless: yes, sudo is passwordless = true",
        "key: value, nvidia.com/gpu.key: a, monkey = b",
        "automountServiceAccountToken: false",
        '{"automountServiceAccountToken":true,"a":1}',
        "cookie: it is none",
        "open /etc/kubernetes/pki/ca.key: permission denied",
        "open /root/.docker/.dockerconfigjson: no such file",
        "the secret: it is fast, pull secrets: none",
        "name: worker-1, value: 3",
        "- name: NCCL_DEBUG\n  value: INFO",
        "- name: BMC_PASSWORD\n  valueFrom: {secretKeyRef: {name: bmc, key: word}}",
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUQ=",
        "auth: none, author: me",
        "--max_tokens=4096 num_tokens: 12, tokens/s 41003",
        '{"max_tokens": 4096}',
        # environments, results of tests, IDs of users, keys of memory
        "PWD=/root",
        'OLDPWD="/root" PWD=~/x pwd=./build',
        "bash: pwd: command not found",
        '{"PWD": "/root", "OLDPWD": "/"}',
        "pass=12 fail=0, PASS: 3, PASS = ok",
        "first_pass: the compiler reads all files",
        "second_pass=3 memtest_pass: ok",
        '{"pass": 3, "fail": "none"}',
        "ansible_become_pass: {{ vault_pass }}",
        "BMC_PASS=$BMC",
        "curl -u admin https://bmc, curl -o a:b, curl -ohttp:u",
        "docker run -p 80:80 nginx; htpasswd -c /etc/users user; openssl rsa -passin env:WORD",
        "sshpass -e ssh -p 22 worker-1, sshpass -f /root/word ssh -p22 a",
        "racadm getsysinfo, redfishtool -r bmc Systems",
        "test_pass: 3, firstPass: the compiler reads all files, Passed: a",
        "--pass-through a --pass-credentials=false",
        "- name: FIRST_PASS\n  value: ok",
        "docker run -u root:root --user 1000:1000 image",
        "sudo -u postgres psql, ib_write_bw -u 14 -P 1",
        "mlx5_core 0000:3b:00.0: mkey 0x1ffbd, mkey=1234, lkey 0x1234, rkey: 0x5678",
        "m_key 0x0000000000000000, sm_key 0x0, m_key_lease_period 60, m_key_protection_level 2",
        "Mkey:............................0x0000000000000000",
        "guid_key 0x1234, pci_wr_ordering per_mkey",
        "SG.1 and SG.a.b, ya29.x, sg.example",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("key", KEYS)
def test_the_value_of_a_field_of_such_a_name_goes(key: str) -> None:
    for data in ({key: WORD}, {key: [WORD, WORD]}, {"env": [{"name": key, "value": WORD}]}):
        assert not is_free(json.dumps(data)) and WORD not in json.dumps(redact(data))
        assert redact(redact(data)) == redact(data)


@pytest.mark.parametrize("key", OTHERS)
def test_the_value_of_any_other_field_stays(key: str) -> None:
    assert redact({key: WORD, "list": [{"name": key, "value": WORD}]}) == {
        key: WORD,
        "list": [{"name": key, "value": WORD}],
    }


PIECES = [
    *(text for text, _secret in SECRETS),
    *KEYS,
    *(": ", "=", '"', "'", "\\", " ", "\n", ",", WORD, "Bearer ", "name: ", "value: ", "secret", "a="),
]


@hypothesis.given(some.lists(some.sampled_from(PIECES), max_size=6))
def test_what_was_taken_out_once_is_not_looked_at_again(pieces: list[str]) -> None:
    once = redact_text("".join(pieces))
    assert redact_text(once) == once


@hypothesis.given(
    some.lists(some.one_of(some.sampled_from([text for text, _secret in SECRETS]), some.text(max_size=10)), max_size=3)
)
def test_what_is_not_looked_through_has_nothing_to_take_out(texts: list[str]) -> None:
    assert not is_free(json.dumps(texts)) or redact(texts) == texts


@pytest.mark.parametrize(
    "part",
    [
        "://a:",
        "://",
        "--password ",
        '--password "',
        "--a-",
        "authorization: basic",
        "sha256~",
        "secret_key=",
        "gh",
        "nvapi-",
        "hf_",
        "X-Amz-Signature=",
        "ghp_",
        "AKIA",
        "-",
        "://a:@",
        "' --token '",
        'password":',
        'password: "',
        'password: \\"',
        "password=\\",
        "password ",
        "name: a",
        "name:",
        "name: password ",
        "name: password value: ",
        "Cookie: ",
        "cookie:a",
        '"auth": "',
        ".key: ",
        "Bearer a",
        "Bearer a1",
        "LS0tLS1CRUdJTi",
        "secret=",
        "a_pass=",
        "a_pass: ",
        "pwd=",
        "pass=",
        "pass=1",
        "m_key ",
        "m_key 0",
        "Mkey:.",
        "curl -u a:",
        "curl -u ",
        "ipmitool -P ",
        "ipmitool '-P",
        "sshpass -p",
        "sshpass -p '",
        'curl -u "a:',
        "aPass: ",
        "name: a_pass value: ",
        "SG.",
        "ya29.",
        "password:\n ",
        "password: |\n ",
        "password: |\n  a\n  ",
        "password:\n  a: ",
        "echo ",
        "echo '",
        "echo a |",
        "sudo ",
        "sudo <<<",
        "sudo a <<< '",
        "mysql -p",
        "smbclient -U a%",
        "smbclient -U ",
        "ldapsearch -x",
        "redis-cli -a '",
        "--aPass",
        "login ",
        "login -p ",
        "htpasswd -b ",
        "htpasswd ",
        "openssl -passin pass:",
    ],
)
def test_no_pattern_is_worse_than_linear(part: str) -> None:
    text = part * (300_000 // len(part))
    # a quadratic one takes minutes
    with bounded(4):
        redact_text(text)


@pytest.mark.parametrize(
    "word", ["token ", "secret:", "Bearer ", "token http://a:b@c ", "--", "-----BEGIN PRIVATE KEY-----"]
)
def test_the_answer_of_a_node_with_nothing_but_what_looks_like_secrets_costs_what_others_do(
    tmp_path: pathlib.Path, word: str
) -> None:
    answer, other = ([text * (60_000 // len(text))] * 40 for text in (word, "a word "))
    assert is_suspect(answer)
    folder = FactFolder(str(tmp_path), "20260102T030405Z-aaaaaa")

    def seconds(value: list[str]) -> float:
        return measure_seconds(lambda: folder.write("hcas", "worker-1", value))

    # without a limit 10 to 20 times
    assert seconds(other) * 4 > seconds(answer)
    fact = folder.read("hcas", "worker-1")
    assert (
        fact is not None
        and fact.value is None
        and fact.error
        == f"its response was not stored: texts in it that may contain secrets have more than {MOST_SUSPECT} characters"
    )


def test_what_the_collection_itself_makes_and_what_is_harmless_has_no_such_limit(tmp_path: pathlib.Path) -> None:
    folder = FactFolder(str(tmp_path), "20260102T030405Z-aaaaaa")
    # a fabric of 60,000 ports
    ports = [f"MF0;gh200-leaf-{number}:MQM9700/U1 HCA-1" for number in range(60_000)]
    folder.write("topologies", "worker-1", ports)
    fact = folder.read("topologies", "worker-1")
    assert not is_suspect(ports) and fact is not None and fact.value == ports
    objects = [f"password: {WORD} {number}" for number in range(50_000)]
    folder.write("objects", CLUSTER, objects)
    fact = folder.read("objects", CLUSTER)
    assert is_suspect(objects) and fact is not None and len(fact.value) == len(objects) and WORD not in fact.value[0]


@pytest.mark.parametrize("key", ["psk", "wifi-psk", "community", "keytab"])
def test_values_of_names_of_secrets_are_removed(key: str) -> None:
    data = {key: "public"}
    assert redact(data) == {key: REDACTED} and not is_free(json.dumps(data))


@pytest.mark.parametrize(
    "text",
    ["sk-rack1-gpu-node-0001-a", "disk-0123456789abcdef0123456789abcdef01", "costs $25 and $6", "worker.example-1"],
)
def test_names_that_begin_like_a_secret_are_kept(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "123456.1234567890123456",
        "worker.internaldomainab",
        "my-worker.17f3a2b4c5d6e7f8",
        "abcdef.0123456789abcdef0",
        "abcdef.0123456789abcde-1",
        "registry.example/abcdef.0123456789abcdef.example",
        "the signal sig=short of a process",
    ],
)
def test_what_is_like_a_short_token_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("key", ["credentials", "registry_credentials"])
def test_values_of_credentials_are_secret(key: str) -> None:
    assert redact({key: WORD}) == {key: REDACTED} and not is_free(json.dumps({key: WORD}))
    assert redact({"scm_credential": "the name of one"}) == {"scm_credential": "the name of one"}
