"""Chunks and results at addresses: an object store that workers share, and what each folder refuses."""

import multiprocessing
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import fsspec
import fsspec.config
import numpy as np
import pytest
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from surefoot.simulation import PaperWorld, Part, Spec, Sweep, default_checkpoints, run_sweep
from surefoot.simulation.result_folder import ResultFolder, folder_at, npy
from tests.simulation.s3_server import S3Server, serving

SPAWNS = multiprocessing.get_context("spawn")


def small(runs: int = 50, seed: int = 0) -> Sweep:
    specs = [Spec("LUCB"), Spec("CLUCB", alpha=0.1)]
    return Sweep([Part("paper", PaperWorld(), specs, runs=runs, horizon=100, seed=seed)])


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with serving() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        # fsspec looks into the environment once, when it is imported.
        conf: dict[str, dict[str, str]] = {}
        fsspec.config.set_conf_env(conf)
        monkeypatch.setitem(fsspec.config.conf, "s3", conf["s3"])
        yield server


# "local" is a disk behind fsspec: as with SFTP or HDFS, a file there needs a folder that exists.
@pytest.fixture(params=["path", "file", "local", "memory", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        request.getfixturevalue("store")
    unique = uuid.uuid4().hex
    return {
        "path": str(tmp_path / "out"),
        "file": f"file://{tmp_path}/out",
        "local": f"local://{tmp_path}/out",
        "memory": f"memory://{unique}/out",
        "s3": f"s3://bucket/{unique}/out",
    }[request.param]


def chunks(folder: ResultFolder) -> list[str]:
    """Names of all chunks that are whole."""
    shapes = [(2, runs, default_checkpoints(100).size, 7) for runs in (20, 10)]
    names = {f"cells/{name}" for name in folder_at(f"{folder}/cells").names()}
    return sorted(name for shape in shapes for name in folder.whole(dict.fromkeys(names, shape)))


def test_every_kind_of_folder_gives_the_same_results_and_continues(address: str, tmp_path: Path) -> None:
    here = run_sweep(small(), tmp_path / "here")
    assert run_sweep(small(), address).equals(here)
    folder = folder_at(address)
    for name in ("results.csv", "results.parquet", "settings.json"):
        assert folder.read(name) == (tmp_path / "here" / name).read_bytes()
    first, second, third = chunks(folder)
    content = folder.read(first)
    assert content is not None
    folder.write(first, content[:-8])  # as a lost connection might leave it
    folder.write(second, b"")
    assert chunks(folder) == [third]
    seen: list[int] = []
    assert run_sweep(small(), address, progress=lambda done, total: seen.append(done)).equals(here)
    assert seen == [10 * 100 * 2, 30 * 100 * 2, 50 * 100 * 2]
    assert folder.read(first) == content


def test_every_kind_of_folder_refuses_what_is_not_its_own(address: str) -> None:
    run_sweep(small(), address)
    before = folder_at(address).read("settings.json")
    with pytest.raises(ConfigError, match=r"it holds a result of other settings. Nothing was changed"):
        run_sweep(small(seed=1), address)
    assert folder_at(address).read("settings.json") == before
    other = folder_at(f"{address}/thesis")
    other.write("chapter1.txt", b"years of work")
    with pytest.raises(ConfigError, match=r"it holds other files. Nothing was changed"):
        run_sweep(small(), str(other))
    assert other.names() == ["chapter1.txt"]


def test_settings_that_break_off_are_written_again(address: str) -> None:
    run_sweep(small(), f"{address}/whole")
    settings = folder_at(f"{address}/whole").read("settings.json")
    assert settings is not None
    for name in ("begun", "used"):
        folder_at(f"{address}/{name}").write("settings.json", settings[:100])
    run_sweep(small(), f"{address}/begun")
    assert folder_at(f"{address}/begun").read("settings.json") == settings
    folder_at(f"{address}/used").write("thesis.txt", b"years of work")
    with pytest.raises(ConfigError, match=r"it holds a result of other settings. Nothing was changed"):
        run_sweep(small(), f"{address}/used")


def test_workers_write_to_a_store_themselves(store: S3Server, tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=SPAWNS) as pool:
        there = run_sweep(small(), "s3://bucket/there", on=pool)
    assert there.equals(run_sweep(small(), tmp_path / "here"))
    assert sum(key.startswith("bucket/there/cells/") for key in store.objects) == 3


def test_a_folder_that_workers_do_not_share_is_refused_after_one_chunk(tmp_path: Path) -> None:
    done: list[int] = []
    with (
        ProcessPoolExecutor(1, mp_context=SPAWNS) as pool,
        pytest.raises(ConfigError, match=r"`memory://.*` must be a folder that workers share with this program"),
    ):
        run_sweep(small(), f"memory://{uuid.uuid4().hex}", on=pool, progress=lambda some, all_: done.append(some))
    assert done == [0]


def test_a_bucket_is_not_made_by_a_mistyped_name(store: S3Server) -> None:
    with pytest.raises(ConfigError, match=r"`s3://buckte/out` must lie in a bucket that exists, but there is no"):
        run_sweep(small(), "s3://buckte/out")
    assert store.objects == {}


@pytest.mark.parametrize("place", ["nowhere://bucket", "s3x://bucket/folder"])
def test_an_address_that_nobody_knows_is_refused(place: str) -> None:
    with pytest.raises(ConfigError, match=f"A folder must be a path or an address that fsspec can open, but '{place}'"):
        run_sweep(small(), place)


def test_an_array_is_there_only_in_its_shape(address: str) -> None:
    folder = folder_at(address)
    folder.write("one.npy", *npy([np.ones(50)] * 3))
    assert folder.whole({"one.npy": (3, 50), "two.npy": (3, 50)}) == {"one.npy"}
    assert folder.whole({"one.npy": (3, 49)}) == set()
    with folder.arrays(["one.npy"]) as (found,):
        assert np.array_equal(found, np.ones((3, 50)))


def test_the_command_writes_all_its_files_to_an_address(tmp_path: Path) -> None:
    policies = 'policies = [{policy = "LUCB"}, {policy = "CLUCB", alpha = 0.1}]'
    text = f'runs = 3\nhorizon = 20\nworlds.w = {{kind = "paper"}}\n{policies}\n'
    (tmp_path / "tiny.toml").write_text(text)
    address = f"memory://{uuid.uuid4().hex}"
    done = CliRunner().invoke(app, ["simulate", str(tmp_path / "tiny.toml"), "--out", address, "--on", "local:1"])
    assert done.exit_code == 0, done.output
    assert address in done.output.replace("\n", "")
    assert {"figure1.png", "figure1.pdf", "report.html", "results.csv"} <= set(folder_at(address).names())
