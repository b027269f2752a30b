"""What is known of every action, in a table of its own."""

from pathlib import Path

import pytest

from surefoot.errors import LogError
from surefoot.replay.table_log import read_items
from tests.replay.test_cli import run
from tests.replay.test_fit import clicks


def written(folder: Path, text: str) -> Path:
    path = folder / "items.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,1,2\nb,3,4\n", {"a": (1.0, 2.0), "b": (3.0, 4.0)}),
        ("name,size,age\na,1,2\nb,3,4\n", {"a": (1.0, 2.0), "b": (3.0, 4.0)}),
        ("a,red\nb,blue\nc,red\n", {"a": (0.0, 1.0), "b": (1.0, 0.0), "c": (0.0, 1.0)}),
        (",item_id,price,kind\n0,7,0.5,x\n1,8,0.25,y\n", {"7": (0.5, 1.0, 0.0), "8": (0.25, 0.0, 1.0)}),
        ("size,arm\n1,a\n2,b\n", {"a": (1.0,), "b": (2.0,)}),
    ],
)
def test_numbers_stay_and_labels_are_told_apart(text: str, expected: dict[str, object], tmp_path: Path) -> None:
    assert read_items(written(tmp_path, text), "arm") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,1\nb\n", "line 2 is"),
        ("a,1\na,2\n", "'a' occurs twice"),
        ("a,1\nb,1.o\nc,2\n", "numbers or labels and not both, but line 2 has '1.o'"),
        ("size,a\nx,1\ny,inf\n", "numbers or labels and not both"),
        ("", "it is empty"),
        ("\n".join(f"a{i},k{i}" for i in range(70)), "at most 64 labels, but has 70"),
    ],
)
def test_mistakes_end_in_a_sentence(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=message):
        read_items(written(tmp_path, text))
    with pytest.raises(LogError, match="cannot be read"):
        read_items(tmp_path / "missing.csv")


def test_a_replay_multiplies_context_and_items(tmp_path: Path) -> None:
    items = written(tmp_path, "action,kind,size\nbanner,page,0.2\nmail,post,0.9\n")
    shown = run(
        "replay", str(clicks(tmp_path / "clicks.csv")), "--baseline", "banner", "--action-features", str(items),
        "--policy", "LUCB", "--json",
    )  # fmt: skip
    assert '"features of an action": 16' in shown  # (1, age, two plans) x (1, two kinds, size)
