import pytest

from fsdpclassify.parsing.gluing import unglue
from fsdpclassify.parsing.peeling import prefixes_end

C10 = "[rank5]:[E602 04:11:09.1 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught"


@pytest.mark.parametrize(
    "parts",
    [
        ["…24/1752 [01:08<1:22:01,  2.83s/it]", C10],
        ["loss 2.31", C10],
        [" 54%|█████▎    | 161/300 [09:54<08:33, 3.69s/param]", f"5: {C10}"],
        [" 54%|█████▎    | 161/300 [09:54<08:33, 3.69s/param]", f"[default5]:{C10}"],
        [" 54%|█████▎    | 161/300 [09:54<08:33, 3.69s/param]", f"(WorkerDict pid=7731, ip=10.1.0.12) {C10}"],
        [" 54%|█████▎    | 161/300 [09:54<08:33, 3.69s/param]", f"[1,5]<stderr>:{C10}"],
        [" 54%|█████▎    | 161/300 [09:54<08:33, 3.69s/param]", "Traceback (most recent call last):"],
        ["terminate called after throwing an ", "[rank1]: Traceback (most recent call last):"],
        [C10, C10.replace("5", "6")],
        ["[default0]:0%|  | 0/9 [00:00<?, ?it/s]", "[E ProcessGroupNCCL.cpp:474] [Rank 5] x"],
    ],
)
def test_messages_glued_in_one_line_come_apart(parts: list[str]) -> None:
    found = unglue("".join(parts), prefixes_end)
    assert [piece.strip() for piece in found] == [part.strip() for part in parts]


@pytest.mark.parametrize(
    "text",
    [
        C10,
        f"[default5]:{C10}",
        f"(WorkerDict pid=7731, ip=10.1.0.12) {C10}",
        f"2026-03-05T04:11:20.123456789Z stderr F 5: {C10}",
        f"  what():  {C10.split(':', 1)[1]}",
        f"{C10} Process group watchdog thread terminated with exception: [rank5]:[E x.cpp:1] [Rank 5] x",
        "an ordinary line",
        "",
    ],
)
def test_one_message_stays_whole(text: str) -> None:
    assert unglue(text, prefixes_end) == [text]
