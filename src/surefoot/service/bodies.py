"""A body as its struct, or the problem that it is malformed."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from litestar import Request

from surefoot.service.problems import Fault, ProblemError

T = TypeVar("T")
_decoders: dict[type[Any], Callable[[bytes], Any]] = {}


def read_body(decode: Callable[[bytes], T], body: bytes) -> T:
    """A body as its struct, or the problem that it is malformed."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        raise _malformed(error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProblemError("malformed", f"The body must be JSON: {error}.") from None
    except RecursionError:
        raise too_deep() from None


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """The decoder of a kind of body, which is made once."""
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind).decode
    decode: Callable[[bytes], T] = _decoders[kind]
    return decode


async def body_of(request: Request[Any, Any, Any], kind: type[T]) -> T:
    """The body of a request as its struct."""
    return read_body(decoder(kind), await request.body())


def too_deep() -> ProblemError:
    """The answer to a body whose nesting would exhaust the stack."""
    rule = "JSON must be nested less deeply"
    return ProblemError("invalid", f"{rule}.", [Fault("body", rule)])


def _malformed(error: msgspec.ValidationError) -> ProblemError:
    rule, _, place = str(error).partition(" - at `")
    field = place.rstrip("`").removeprefix("$").removeprefix(".") or "body"
    return ProblemError("malformed", f"`{field}`: {rule}.", [Fault(field, rule)])
