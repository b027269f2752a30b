"""Decisions at the edge: a signed lease that an app evaluates by itself, and reports afterwards (docs/edge.md)."""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.edge.edge import Edge as Edge

__getattr__, __dir__ = lazy(__name__, {"edge": ("Edge",)})

__all__ = ["Edge"]
