import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fsdpclassify.records import InputStatus
from fsdpclassify.sources import Source, collect, from_text, read


def labels(sources: list[Source]) -> list[str]:
    return [source.path for source in sources]


def messages(*paths: Path | str) -> list[tuple[str, InputStatus, str | None]]:
    rows = read(collect(list(paths))).inputs
    return [(row.path, row.status, row.message) for row in rows]


def test_a_file_is_labelled_as_given(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    assert labels(collect([str(tmp_path / "a.log")])) == [str(tmp_path / "a.log")]
    assert labels(collect([tmp_path / "a.log"])) == [str(tmp_path / "a.log")]


def test_a_folder_is_walked_in_sorted_order_with_relative_labels(tmp_path: Path) -> None:
    for name in ("b.log", "a/z.log", "a/y/x.log", ".hidden", ".git/config", "incident.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    assert labels(collect([tmp_path])) == ["a/y/x.log", "a/z.log", "b.log"]


def test_link_loops_and_second_links_are_passed_by(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.log").write_text("x\n")
    (tmp_path / "a/loop").symlink_to(tmp_path)
    (tmp_path / "latest").symlink_to(tmp_path / "a")
    (tmp_path / "x-again.log").symlink_to(tmp_path / "a/x.log")
    (tmp_path / "0-first-by-name").symlink_to(tmp_path / "a")
    assert labels(collect([tmp_path])) == ["a/x.log"]


def test_a_broken_link_gets_a_row(tmp_path: Path) -> None:
    (tmp_path / "x.log").symlink_to(tmp_path / "gone")
    assert messages(tmp_path) == [("x.log", InputStatus.UNREADABLE, "not found")]


def test_fifos_and_sockets_are_named_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert messages(tmp_path) == [("pipe", InputStatus.UNREADABLE, "it is a FIFO")]
    assert messages("/dev/null") == [("/dev/null", InputStatus.UNREADABLE, "it is a device")]


def test_a_missing_file_gets_a_row_and_sinks_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    assert messages(tmp_path / "gone.log", tmp_path / "a.log") == [
        (str(tmp_path / "gone.log"), InputStatus.UNREADABLE, "not found"),
        (str(tmp_path / "a.log"), InputStatus.OK, None),
    ]


@pytest.mark.parametrize("path", ["", "a\x00b", "\ud800", "x" * 5000])
def test_names_that_no_file_can_have(path: str) -> None:
    ((label, status, message),) = messages(path)
    assert status is InputStatus.UNREADABLE
    assert message
    label.encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    (tmp_path / "a.log").chmod(0)
    assert messages(tmp_path) == [("a.log", InputStatus.UNREADABLE, "permission denied")]


def test_permission_denied_when_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.log").write_text("x\n")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert messages(tmp_path) == [("a.log", InputStatus.UNREADABLE, "permission denied")]


def test_a_file_that_vanishes_between_collect_and_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    sources = collect([tmp_path])
    (tmp_path / "a.log").unlink()
    (row,) = read(sources).inputs
    assert (row.status, row.message) == (InputStatus.UNREADABLE, "not found")


def test_a_file_that_becomes_a_fifo_between_collect_and_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    sources = collect([tmp_path])
    (tmp_path / "a.log").unlink()
    os.mkfifo(tmp_path / "a.log")
    (row,) = read(sources).inputs
    assert (row.status, row.message) == (InputStatus.UNREADABLE, "it is no longer a regular file")


def test_a_pattern_is_expanded_in_sorted_order(tmp_path: Path) -> None:
    for name in ("rank1.log", "rank0.log", "x.txt"):
        (tmp_path / name).write_text("x\n")
    assert labels(collect([f"{tmp_path}/*.log"])) == [f"{tmp_path}/rank0.log", f"{tmp_path}/rank1.log"]
    assert messages(f"{tmp_path}/*.err")[0][2] == "not found: nothing matches the pattern"


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].log").write_text("x\n")
    assert messages(tmp_path / "a[1].log") == [(str(tmp_path / "a[1].log"), InputStatus.OK, None)]


def test_standard_input() -> None:
    sources = collect(["-"], stdin=io.BytesIO(b"a\nb\n"))
    reading = read(sources)
    assert [row.path for row in reading.inputs] == ["-"]
    assert [line.text for line in reading.lines] == ["a", "b"]
    assert messages("-") == [("-", InputStatus.UNREADABLE, "there is no standard input")]


def test_a_pipe_that_the_shell_names(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a\nb\n")
    os.close(writer)
    reading = read(collect([f"/dev/fd/{reader}"]))
    os.close(reader)
    assert [line.text for line in reading.lines] == ["a", "b"]


def test_the_description_of_an_incident_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "incident.json").write_text('{"label": "desync"}')
    ((_, status, message),) = messages(tmp_path / "incident.json")
    assert status is InputStatus.UNREADABLE
    assert message is not None
    assert "never read as a log" in message


def test_an_empty_folder_and_an_empty_file_get_rows(tmp_path: Path) -> None:
    assert messages(tmp_path) == [(str(tmp_path), InputStatus.EMPTY, "the folder holds no files to read")]
    (tmp_path / "a.log").touch()
    assert messages(tmp_path) == [("a.log", InputStatus.EMPTY, "it is empty")]


def test_text_in_memory() -> None:
    reading = read(from_text(["a\nb", b"\xef\xbb\xbfc\n", "\ufeffd"]))
    assert [row.path for row in reading.inputs] == ["<text>", "<text 2>", "<text 3>"]
    assert [(line.source, line.number, line.text) for line in reading.lines] == [
        (0, 1, "a"),
        (0, 2, "b"),
        (1, 1, "c"),
        (2, 1, "d"),
    ]


def test_hints_come_from_labels(tmp_path: Path) -> None:
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1/rank3.log").write_text("x\n")
    (line,) = read(collect([tmp_path])).lines
    assert (line.hint_rank, line.hint_node) == (3, "node1")


def test_importing_loads_no_heavy_module() -> None:
    code = (
        "import sys, fsdpclassify.sources;"
        "heavy = ('numpy', 'onnxruntime', 'hyperscan', 'isal', 'zstandard', 'tarfile', 'lzma');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "inside-not"
    for folder in (inside / "a", outside / "b"):
        folder.mkdir(parents=True)
        (folder / "x.log").write_text("x\n")
    (inside / "file.log").symlink_to(outside / "b/x.log")
    (inside / "folder").symlink_to(outside)
    (inside / "up").symlink_to("..")
    (inside / "z").symlink_to("a")
    rows = read(collect([inside])).inputs
    assert {row.path: row.status.value for row in rows} == {
        "a/x.log": "ok",
        "file.log": "unreadable",
        "folder": "unreadable",
        "up": "unreadable",
    }
    assert "out of the folder" in (rows[1].message or "")


def test_a_link_given_as_an_argument_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x.log").write_text("x\n")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "file.log").symlink_to("real/x.log")
    rows = read(collect([tmp_path / "folder", tmp_path / "file.log"])).inputs
    assert [row.status.value for row in rows] == ["ok", "ok"]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no such file system here")
@pytest.mark.parametrize("path", ["/proc/self/maps", "/proc/self/task", "/proc/self/root/proc/self/maps"])
def test_files_of_the_kernel_are_refused(path: str) -> None:
    rows = read(collect([path])).inputs
    assert rows
    assert {row.status.value for row in rows} == {"unreadable"}
    assert any(row.message == "it is a file of the kernel, no log" for row in rows)
