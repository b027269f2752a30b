"""Values: small objects that are made many times for each decision, and never changed."""

import msgspec


class Value(msgspec.Struct, frozen=True, eq=False):
    """A frozen dataclass in all but name, which takes an eighth of the time to make.

    Fields whose names begin with an underscore are not shown. Equal is who is the same, unless a class says `eq=True`.

    >>> class Point(Value, frozen=True):
    ...     x: float
    ...     _how: str = "measured"
    >>> Point(1.5)
    Point(x=1.5)
    """

    def __repr__(self) -> str:
        # msgspec's own repr would show private fields.
        shown = (name for name in self.__struct_fields__ if not name.startswith("_"))
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
