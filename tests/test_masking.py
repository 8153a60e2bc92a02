from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsdpclassify.masking import MASK, Masker, mask_report, mask_text, mask_values
from fsdpclassify.records import (
    Diagnosis,
    Evidence,
    FatalError,
    InputRow,
    InputStatus,
    LedgerRow,
    ModelInfo,
    Remedy,
    Report,
)
from fsdpclassify.report import render_report, report_as_dict, to_json

#: (a line as a log might print it, the part that must not be shown). All values are made up.
SECRETS = [
    ("export DB_PASSWORD=correcthorse99", "correcthorse99"),
    ('{"password": "two words here", "user": 1}', "two words here"),
    ("{\\\"token\\\": \\\"escapedjson77\\\"}", "escapedjson77"),
    ("Namespace(api_key='namespacekey1', lr=3)", "namespacekey1"),
    ("cmd: train.py --hf-token flagvalue123 --lr 3", "flagvalue123"),
    ("['--password', 'listvalue55']", "listvalue55"),
    ("<password>xmlsecret8</password>", "xmlsecret8"),
    ("the password is spokensecret4", "spokensecret4"),
    ("Authorization: Bearer headertoken.abc", "headertoken.abc"),
    ("authorization: basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA"),
    ("Proxy-Authorization: Digest username=bob, response=dig3st", "dig3st"),
    ("sent Bearer abcdefgh12345678 upstream", "abcdefgh12345678"),
    ("Set-Cookie: sid=cookievalue1; Path=/", "cookievalue1"),
    ("curl -u alice:curlpass77 http://x", "curlpass77"),
    ("postgres://svc:p@ssw0rd@db:5432/x", "p@ssw0rd"),
    ("redis://:slash/pass9@cache:6379", "slash/pass9"),
    ("git clone https://oauth2abc123@git.example.com/x.git", "oauth2abc123"),
    ("GET /o?X-Amz-Signature=0a1b2c3d4e5f&x=1", "0a1b2c3d4e5f"),
    ("https://a.blob/x?sv=1&sig=sasSig%2Fvalue", "sasSig%2Fvalue"),
    ("machine api.example.com login user password netrcpass5", "netrcpass5"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("secret wJalrXUtnFEMI7K7MDENG5bPxRfiCYEXAMPLEKEY now", "wJalrXUtnFEMI7K7MDENG5bPxRfiCYEXAMPLEKEY"),
    ("hf_abcdefghijklmnopqrstuvwxyzABCDEF", "hf_abcdefghijklmnopqrstuvwxyzABCDEF"),
    ("remote: ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghij"),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv", "11ABCDEFG0abcdefghijkl"),
    ("glpat-abcdefghij1234567890", "abcdefghij1234567890"),
    ("wandb: login with 0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123456789"),
    ("WANDB_API_KEY=89abcdef0123456789abcdef0123456789abcdef", "89abcdef0123456789abcdef"),
    ("sk-proj-abcdefghijklmnop1234567890", "abcdefghijklmnop1234567890"),
    ("xoxb-123456789012-abcdefghijkl", "123456789012-abcdefghijkl"),
    ("https://hooks.slack.com/services/T000/B000/hookhookhook", "T000/B000/hookhookhook"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSyA1234567890abcdefghijklmnopqrstuv"),
    ("ya29.a0AfH6SMBabcdefghijklmnop_qrst", "a0AfH6SMBabcdefghijklmnop"),
    ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl", "eyJzdWIiOiIxMjM0NTY3ODkwIn0"),
    ("AccountName=x;AccountKey=YWJjZGVmZ2hpamtsbW5vcA==;", "YWJjZGVmZ2hpamtsbW5vcA"),
    ("nvapi-abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"),
    ("123456789:AAabcdefghijklmnopqrstuvwxyzABCDEFG", "AAabcdefghijklmnopqrstuvwxyzABCDEFG"),
    ("SG.abcdefghijklmnopqrstuv.wxyzabcdefghijklmnopqrstuvwxyz012345", "abcdefghijklmnopqrstuv"),
    ("pypi-AgEIcHlwaS5vcmcCJDU4abcdefgh", "AgEIcHlwaS5vcmcCJDU4abcdefgh"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA"),
    ("[rank0]: -----BEGIN PRIVATE KEY----- MIIEvQIBADANBgkq", "MIIEvQIBADANBgkq"),
    ("b64 MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn7ygWyF8PbnGy0AHB7MhgwMbRvI0MBZhpI x", "MIIEpAIBAAKCAQEA0Z3VS5"),
    ("mail jane.doe@corp.example.com about it", "jane.doe@corp.example.com"),
    ("callback?access_token%3Durlencoded5&x", "urlencoded5"),
    ("env[SMTP_PASS]=bracketpass3", "bracketpass3"),
    ("SLURM_JWT=eyJabc.def.ghi", "eyJabc.def.ghi"),
]  # fmt: skip

IDENTITIES = [
    ("/home/mallory/run.py line 3", "mallory"),
    ("/Users/wendy/x", "wendy"),
    ("trent@gpu-node-14:~/run$", "trent"),
    ("trent@gpu-node-14:~/run$", "gpu-node-14"),
    ("host: a17-dgx.cluster.local", "a17-dgx"),
    ("kaiser:812:813 [3] NCCL INFO Bootstrap", "kaiser"),
    ("tcp://trainer-3.jobs.svc:29500", "trainer-3"),
    ("connect to [headnode-2]:29500", "headnode-2"),
    ("Mar  3 19:54:01 zeppelin kernel: Out of memory", "zeppelin"),
    ("srun: error: quokka: task 3: Killed", "quokka"),
    ("Using eth0:10.17.3.4<0>", "10.17.3.4"),
    ("peer fe80::7433:60ff:fef9:e102", "7433:60ff"),
    ("mac aa:bb:cc:0d:ee:ff", "aa:bb:cc:0d:ee:ff"),
    ("uid=1001(oscar) gid=1(x)", "oscar"),
    ("USER=peggy", "peggy"),
]

HARMLESS = [
    "eos_token='</s>', pad_token_id=0, max_new_tokens=512, tokens per second: 1234.5",
    "tokenizer=meta/llama token_acc=0.31 first_token=12",
    "forward_pass: 2.13s backward_pass=4.4",
    "PWD=/workspace/run HOME=/root",
    "password=None token=null secret=''",
    "[rank3]:[E303 19:54:01.074837389 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 3]",
    "commit fedcba9876543210fedcba9876543210fedcba98",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "https://pytorch.org/docs/stable/distributed.html",
    "KeyError: 'input_ids' key: value store key: 0 monkey=1",
    "pip install x@1.2 torch==2.13.0 NCCL version 2.28.9+cuda12.9",
    "dp.rank: 3 local-rank=1 basic setup bearer of news",
]


@pytest.mark.parametrize(("line", "secret"), SECRETS)
def test_secrets_are_hidden(line: str, secret: str) -> None:
    masked = mask_text(line)
    assert secret not in masked
    assert MASK in masked


@pytest.mark.parametrize(("line", "name"), IDENTITIES)
def test_identities_are_hidden_only_at_their_level(line: str, name: str) -> None:
    assert name not in mask_text(line, "identities")
    assert name in mask_text(line, "secrets")


@pytest.mark.parametrize("line", HARMLESS)
def test_training_vocabulary_is_left_alone(line: str) -> None:
    assert mask_text(line) == line


def test_none_hides_nothing() -> None:
    assert mask_text("password=x", "none") == "password=x"


def test_loopback_and_times_stay_at_the_level_of_identities() -> None:
    line = "[E303 19:54:01.074 c10d::Store] tcp://localhost:29500 127.0.0.1 0.0.0.0 ::1 std::string /root/x"
    assert mask_text(line, "identities") == line


def test_one_host_stays_one_host_across_texts() -> None:
    masker = Masker("identities")
    masker.learn("host: zeus-17")
    assert masker.mask("ERROR on zeus-17: down") == "ERROR on HOST_1: down"
    assert masker.mask("hera-2:1:2 [0] NCCL and zeus-17") == "HOST_2:1:2 [0] NCCL and HOST_1"


def test_a_qualified_host_and_its_short_name_are_one() -> None:
    masker = Masker("identities")
    masker.learn_host("zeus-17.corp.local")
    assert masker.mask("zeus-17 and zeus-17.corp.local") == "HOST_1 and HOST_1"


_PIECES = [part for line, _ in SECRETS + IDENTITIES for part in (line, *line.split())] + HARMLESS
_TEXTS = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from([*_PIECES, " ", "=", ":", '"', "'", "\\", "\n", "@", "/", "-", ",", ")"]), max_size=6).map(
        "".join
    ),
)


@pytest.mark.parametrize("level", ["secrets", "identities"])
@given(text=_TEXTS)
@settings(max_examples=400, deadline=None)
def test_masking_twice_is_masking_once(level: str, text: str) -> None:
    once = mask_text(text, level)
    assert mask_text(once, level) == once


@given(st.sampled_from(SECRETS), st.text(alphabet=" \t,;|", max_size=4), st.sampled_from(HARMLESS))
def test_surroundings_do_not_uncover_a_secret(planted: tuple[str, str], gap: str, other: str) -> None:
    line, secret = planted
    assert secret not in mask_text(f"{other} {gap}{line}")


@pytest.mark.parametrize(
    "unit",
    [
        "a@",
        "x:",
        "://a:",
        "password=",
        '"',
        "\\",
        "key:",
        "a.",
        "a1-",
        "fe80::",
        "1.",
        "/home/a",
        "eyJ",
        'token="',
    ],
)
def test_time_is_linear_in_the_text(unit: str) -> None:
    def seconds(size: int) -> float:
        started = time.perf_counter()
        mask_text(unit * (size // len(unit)), "identities")
        return time.perf_counter() - started

    seconds(1000)
    # 16 times the text: about 16 times the time if linear, 256 times if quadratic.
    assert seconds(64_000) < 80 * max(seconds(4_000), 0.001)


def _planted(lines: list[str]) -> Report:
    evidence = tuple(
        Evidence(path=f"{n}.log", line=n, rank=0, text=line, supports="desync", weight=0.1, why=line)
        for n, line in enumerate(lines, 1)
    )
    ledger = tuple(LedgerRow(rank=n, first_error=line) for n, line in enumerate(lines))
    found = Diagnosis(
        verdict="desync", cause=None, probability=1.0, probabilities={"desync": 1.0}, model_label="desync",
        abstained_because=None, collective=None, world_size=None, initiating_ranks=(), initiating_nodes=(),
        waiting_ranks=(), failed_ranks=(), evidence=evidence, alternatives=(),
        remedy=Remedy(summary=lines[0], steps=tuple(lines), ops_request=lines[1]), collect_next=tuple(lines),
        ledger=ledger,
    )  # fmt: skip
    inputs = tuple(
        InputRow(path="x", kind=None, bytes=0, lines=0, status=InputStatus.UNREADABLE, message=line) for line in lines
    )
    return Report(
        tool_version="0", model=ModelInfo(name="m", version="1", sha256="0" * 64), inputs=inputs,
        incidents=(found,), first_fatal_error=FatalError(path="x", line=1, rank=None, text=lines[-1]),
        elapsed_ms=0, extra={"note": "\n".join(lines)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("level", "planted"), [("secrets", SECRETS), ("identities", SECRETS), ("identities", IDENTITIES)]
)
def test_canaries_never_reach_an_output(level: str, planted: list[tuple[str, str]]) -> None:
    assert len(SECRETS) >= 30
    report = mask_report(_planted([line for line, _ in planted]), level)
    outputs = [to_json(report_as_dict(report)), render_report(report, width=1000), repr(report)]
    outputs.append(render_report(mask_report(_planted(["x", "y", planted[0][0]]), level), width=1000))
    for _, canary in planted:
        assert not [canary for text in outputs if canary in text]


def test_labels_and_causes_are_never_masked() -> None:
    report = _planted(["a", "b"])
    assert mask_report(report, "identities").incidents[0].verdict == "desync"


def test_values_of_any_nest_are_masked_and_keys_stay() -> None:
    value = {"password": ["token=abcdefgh1", ("x", {"node": "password=qwertyuio"})], "n": 3}
    assert mask_values(value) == {"password": [f"token={MASK}", ("x", {"node": f"password={MASK}"})], "n": 3}


def test_nodes_of_a_report_are_hosts_everywhere() -> None:
    value = {"node": "quux-9", "text": "lost quux-9 today"}
    assert mask_values(value, "identities") == {"node": "HOST_1", "text": "lost HOST_1 today"}


HEX = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"$ wandb login {HEX}", "$ wandb login [masked]"),
        (f"wandb login --relogin {HEX.upper()}", "wandb login --relogin [masked]"),
        ("SharedAccessSignature=sv=2020-08-04&ss=b&sig=abc", "SharedAccessSignature=[masked]"),
        ("a hf_abcdefgh\u200bijklmnopqrstuvwxyz b", "a [masked] b"),
        ("a hf_\u200babcdefghijklmnopqrst\u200buvwxyz b", "a [masked] b"),
        ("a hf_abcdefghijklmnopqrst\u200buvwxyz\u2060123 b", "a [masked] b"),
        ("pass\u200bword=hunter22", "password=[masked]"),
        ("na\u200bive", "na\u200bive"),
        ("FSDPCLASSIFY_MODEL=/etc/passwd", "FSDPCLASSIFY_MODEL=/etc/passwd"),
        ("SECRETS_MODEL=/data/bundle", "SECRETS_MODEL=/data/bundle"),
        ("SECRETS_MODEL=hunter22", "SECRETS_MODEL=[masked]"),
        ("/etc/passwd: the bundle is not a folder", "/etc/passwd: the bundle is not a folder"),
        ("passwd: hunter22", "passwd: [masked]"),
    ],
)
def test_tokens_of_the_command_line_and_unseen_characters(text: str, shown: str) -> None:
    assert mask_text(text) == shown
    assert mask_text(shown) == shown
