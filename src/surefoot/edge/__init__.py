"""Decisions at the edge: a signed lease that an app evaluates by itself, and reports afterwards (docs/edge.md)."""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.edge.edge import Edge as Edge
    from surefoot.edge.guard_edge import GuardEdge as GuardEdge

__getattr__, __dir__ = lazy(__name__, {"edge": ("Edge",), "guard_edge": ("GuardEdge",)})

__all__ = ["Edge", "GuardEdge"]
