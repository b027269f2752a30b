"""An audit from outside: every recorded decision checked from the raw events, by code that no decision ran through.

The audit shares nothing with `surefoot.policies`, `surefoot.safety` and `surefoot.linear` (a linter contract holds
that): it sums up what was played and learned by itself, solves again with plain NumPy, and has its own copy of every
formula. So it disagrees if either side is wrong.
"""

from surefoot.audit.auditor import Progress as Progress
from surefoot.audit.auditor import audit
from surefoot.audit.chain import ExpectedHead, JournalReport, audit_journal
from surefoot.audit.findings import Finding, Findings
from surefoot.audit.report import Report, SharedReport
from surefoot.audit.shards import audit_shards
from surefoot.audit.whole import WholeReport, audit_whole

__all__ = [
    "ExpectedHead",
    "Finding",
    "Findings",
    "JournalReport",
    "Report",
    "SharedReport",
    "WholeReport",
    "audit",
    "audit_journal",
    "audit_shards",
    "audit_whole",
]
