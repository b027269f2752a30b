"""Values as text: no digit is lost, and what no file can hold is refused in one sentence."""

import decimal
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from surefoot.errors import InputError
from surefoot.linear.encoding import Encoder, HashedColumn, text_of
from surefoot.replay.columns import Columns
from surefoot.replay.table_log import read_log

LONG = 12345678901234567890123456789012345678


@pytest.mark.parametrize("digits", [3, 28, 60])
def test_a_decimal_keeps_its_digits_in_every_decimal_context(digits: int) -> None:
    with decimal.localcontext() as context:
        context.prec = digits
        assert text_of(Decimal(LONG)) == str(LONG)
        assert [text_of(Decimal(text)) for text in ("2.50", "100", "1E+2", "-1.250", "0.0010", "1E-3")] == [
            "2.5",
            "100",
            "100",
            "-1.25",
            "0.001",
            "0.001",
        ]


def test_long_ids_of_a_table_stay_apart() -> None:
    ids = pl.Series([Decimal(LONG), Decimal(LONG + 1)] * 2, dtype=pl.Decimal(38, 0))
    table = pl.DataFrame({"x": ids, "action": list("abab"), "reward": [1.0] * 4})
    log = read_log(table, baseline="a", columns=Columns(context=("x",), categorical=("x",)))
    assert log.encoder.names == [f"x={LONG}", f"x={LONG + 1}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("zero", ["-0", " -0.00 ", -0.0, Decimal("-0"), Decimal("-0.0"), Decimal("0E-7"), 0])
def test_there_is_one_zero(zero: Any) -> None:
    assert text_of(zero) == "0"


@pytest.mark.parametrize("value", [10**5000, -(10**5000), Decimal("1E+999999"), Decimal("1E-999999")], ids=range(4))
def test_a_number_of_thousands_of_digits_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"A label must have at most 4,300 digits .* Send it as text\."):
        text_of(value)


@pytest.mark.parametrize("value", ["\ud800", "pro\udcff", b"\xff", b"pro\xed\xa0\x80"])
def test_what_is_no_unicode_text_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"A label must be text that UTF-8 can hold, but got "):
        Encoder((HashedColumn("x", 8),)).encode_one({"x": value})


def test_bytes_of_a_table_are_refused_as_live(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [b"\xff", b"a"], "action": ["a", "b"], "reward": [1.0, 1.0]})
    table.write_parquet(tmp_path / "log.parquet")
    for log in (table, tmp_path / "log.parquet"):
        with pytest.raises(InputError, match=r"A label must be text that UTF-8 can hold, but got b'\\xff'"):
            read_log(log, baseline="a", columns=Columns(context=("x",), hashed={"x": 8}))
