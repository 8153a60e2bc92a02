"""Two lines of one message family give the same text; lines of different meaning differ."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsdpclassify.templating import MAX_CHARACTERS, template

WATCHDOG = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, NumelOut=8192,"
    " Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
)

SAME = {
    "c10 prefix of 2.1 and of 2.7": (
        "[E ProcessGroupNCCL.cpp:474] [Rank 5] " + WATCHDOG.format(3, "ALLREDUCE", 4096),
        "[rank12]:[E417 23:58:01.104992871 ProcessGroupNCCL.cpp:632] [Rank 12] "
        + WATCHDOG.format(88412, "ALLREDUCE", 77),
    ),
    "group prefixes": (
        "[PG ID 2 PG GUID 9(mesh_fsdp) Rank 4]  failure detected by watchdog at work sequence id: 88412",
        "[rank1]:[E417 23:58:01.1070 ProcessGroupNCCL.cpp:2271] [PG ID 0 PG GUID 0(default_pg) Rank 1]"
        "  failure detected by watchdog at work sequence id: 7",
    ),
    "stacked launcher prefixes": (
        "node03: [default3]:[rank11]:Saving checkpoint at step 4000 to /mnt/a/ckpt/4000",
        "Saving checkpoint at step 12 to /lustre/me/out/step_12.pt",
    ),
    "ray": (
        "(WorkerDict pid=7731, ip=10.1.0.12) loading shard 3",
        "(ActorModelRayActor pid=9) loading shard 17 [repeated 6x across cluster]",
    ),
    "python logging": (
        "[2026-01-08 20:27:32,639] [WARNING] [runner.py:215:fetch_hostfile] Unable to find hostfile",
        "2026-01-09T01:02:03.004Z [2026-01-09 01:02:03,001] [INFO] [x.py:1:f] Unable to find hostfile",
    ),
    "transformers logging": (
        "[WARNING|logging.py:328] 2026-01-15 16:32:37,098 >> the loss is unrecognised",
        "[INFO|trainer.py:9] 2026-01-16 00:00:00,001 >> the loss is unrecognised",
    ),
    "nccl host prefix": (
        "ip-10-0-9-41:8134:8162 [0] NCCL INFO NET/IB : No device found.",
        "[2026-02-11 10:00:01] node07:4188:4301 [3] NCCL INFO NET/IB : No device found.",
    ),
    "kernel": (
        "Mar 05 04:01:02 node07 kernel: nvme nvme0: I/O 12 QID 3 timeout, aborting",
        "[81233.104412] nvme nvme0: I/O 999 QID 31 timeout, aborting",
    ),
    "lists of ranks": ("waiting for ranks [0, 1, 2, 3]", "waiting for ranks [7]"),
    "uuids and addresses": (
        "request 11111111-2222-4333-8444-555555555501 at 0x7f5a01d35d74 from 10.0.0.7<40412>",
        "request 0f111111-2222-4333-8444-5555555555ff at 0x1 from 192.168.2.11<5>",
    ),
    "bars": (
        "Map (num_proc=8):  48%|████▊     | 172368/361884 [10:11<12:56, 244.17 examples/s]",
        "Map (num_proc=64):  52%|█████▏    | 9/17 [00:01<00:01,  1.1 examples/s]",
    ),
    "zero of the ranks": ("rank 0 on GPU 0: step 0 begins", "rank 3 on GPU 7: step 12 begins"),
    "zero among the layers": ("layers.0.attn on cuda:0", "layers.11.attn on cuda:5"),
}

DIFFERENT = {
    "operation": (WATCHDOG.format(3, "ALLREDUCE", 9), WATCHDOG.format(3, "_ALLGATHER_BASE", 9)),
    "barrier": (WATCHDOG.format(3, "ALLREDUCE", 1), WATCHDOG.format(3, "ALLREDUCE", 9)),
    "exit code": ("failed (exitcode: -9) local_rank: 3", "failed (exitcode: 1) local_rank: 3"),
    "abort or segfault": ("exits with return code = -6", "exits with return code = -11"),
    "ib status": ("with status=12 opcode=0 len=0", "with status=5 opcode=0 len=0"),
    "xid": ("Xid (PCI:0000:9b:00): 79, pid=1", "Xid (PCI:0000:9b:00): 31, pid=1"),
    "nccl code": ("NCCL INFO init.cc:501 -> 2", "NCCL INFO init.cc:501 -> 6"),
    "never completed": ("last completed NCCL work: -1", "last completed NCCL work: 15"),
    "unit": ("took 12 ms", "took 12 s"),
    "progress": (
        "Tokenizing:  92%|█████████▏| 331418/361884 [29:58<12:06, 41.91 examples/s]",
        "Tokenizing:   1%|▏         | 24/1752 [01:08<1:22:01,  2.83s/it]",
    ),
    "nothing of it": ("swap used 0 B of 8.0 GiB", "swap used 31 B of 8.0 GiB"),
    "share of nothing": ("swap: 0.0%", "swap: 41.2 %"),
    "all of a list are nothing": ("errors=[0, 0, 0]", "errors=[0, 4, 0]"),
    "a switch": ("NCCL INFO NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE set by environment to 0."),
    "kind of interface": ("Bootstrap : Using docker0:172.17.0.1<0>", "Bootstrap : Using eth0:172.17.0.1<0>"),
    "error of a completion": ("from peer with error 12, opcode 129", "from peer with error 5, opcode 129"),
    "exit code of a container": ("      Exit Code:    137", "      Exit Code:    1"),
    "precision": ("casting to bf16", "casting to fp32"),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME.keys())
def test_one_family_is_one_text(pair: tuple[str, str]) -> None:
    assert template(pair[0]) == template(pair[1])


@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_different_meaning_is_different_text(pair: tuple[str, str]) -> None:
    assert template(pair[0]) != template(pair[1])


def test_a_bar_glued_to_an_error_keeps_both() -> None:
    text = template(
        "Running tokenizer:   9%|▉  | 271000/2871403 [29:55<4:48:06, 150.43 examples/s]"
        "[E ProcessGroupNCCL.cpp:475] [Rank 1] Some NCCL operations have failed"
    )
    assert text == "Running tokenizer: <pct> partly done Some NCCL operations have failed"


def test_a_traceback_keeps_the_module_of_a_library_and_hides_a_users_path() -> None:
    line = '  File "{}", line 66, in handler'
    library = template(line.format("/opt/env/lib/python3.11/site-packages/torch/utils/data/loader.py"))
    assert library == 'File "<path> torch utils data loader.py", line <num>, in handler'
    assert template(line.format("/home/somebody/train.py")) == 'File "<path>", line <num>, in handler'


def test_the_meaning_of_an_exit_code_is_spelled_out() -> None:
    assert template("worker exited with exit code 137") == "worker exited with exit code 137 killed"


def test_head_and_tail_of_a_long_line_are_kept() -> None:
    text = template("begin " + "word " * 5000 + "end")
    assert len(text) <= MAX_CHARACTERS
    assert text.startswith("begin")
    assert text.endswith("end")


LOGGISH = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [
                "[rank3]:",
                "[E417 23:58:01.104992871 a.cpp:1] ",
                "1: ",
                "node1:2:3 [0] NCCL INFO ",
                "exit code -9",
                "Xid (PCI:0000:9b:00): 79",
                "-> 2",
                "/a/b/c",
                "10%|",
                "█",
                "| 1/2 [0:01<0:02, 1s/it]",
                "<num>",
                "<",
                ">",
                "10.0.0.1<5>",
                "0xab",
                "deadbeef1",
                "2026-03-05 04:11:20",
                "[2026-03-05 04:11:20,1] ",
                "-1",
                ": -1",
                " ",
                "site-packages/torch/x.py",
                "/proc/sys/1",
                "Mar 05 04:11:09 node07 kernel: ",
                "(A pid=1) ",
                "\ue001",
                "1e5",
                "٣",
            ]
        ),
    ),
    max_size=14,
).map("".join)


@given(LOGGISH)
def test_templating_is_idempotent_and_short(text: str) -> None:
    once = template(text)
    assert template(once) == once
    assert len(once) <= MAX_CHARACTERS


@given(
    st.integers(1, 10**9),
    st.integers(1, 10**9),
    st.sampled_from(["step {} done", "loss={}", "rank {}: {}", "x{}y"]),
)
def test_numbers_never_tell_lines_apart(first: int, second: int, line: str) -> None:
    assert template("at " + line.replace("{}", str(first))) == template("at " + line.replace("{}", str(second)))


@pytest.mark.parametrize(
    "unit",
    [
        "[rank1]:",
        "1: ",
        "a/",
        "/a",
        "9",
        "9%|",
        "(",
        "[",
        "<",
        "exit code ",
        "0:",
        "aaaa:",
        "- ",
        "=",
        "ab1",
        "2026-",
        "=9,",
    ],
)
def test_hostile_repetition_takes_linear_time(unit: str) -> None:
    started = time.perf_counter()
    for size in range(10):
        template(unit * 20000 + str(size))
    assert time.perf_counter() - started < 2.0
