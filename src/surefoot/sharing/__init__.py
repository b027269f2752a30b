"""One promise over many writers: leases out of one pot, merged in one order (docs/mathematics.md, "Leases")."""

from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.leased import LeasedGuard, LeasedLUCB

__all__ = ["Coordinator", "LeasedGuard", "LeasedLUCB"]
