"""What programs may still take, on a machine and in a container."""

from pathlib import Path

from surefoot.simulation import available_memory as memory


def test_what_a_container_may_take_counts(tmp_path: Path) -> None:
    assert memory._left_in_container(tmp_path) == []
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._left_in_container(tmp_path) == []
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory._left_in_container(tmp_path) == [700]
    (tmp_path / "memory.stat").write_text("anon 100\nfile 200\ninactive_file 150\nactive_file 50\n")
    assert memory._left_in_container(tmp_path) == [850]  # the cache of files makes room
    assert 0 < memory.available_memory() < 2**50
