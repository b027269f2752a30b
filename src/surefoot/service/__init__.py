"""Safe decisions over HTTP: the service, its tokens, metrics and page."""

from surefoot.service.settings import Limits, Settings, load

__all__ = ["Limits", "Settings", "load"]
