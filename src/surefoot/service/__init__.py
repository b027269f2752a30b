"""Safe decisions over HTTP: the service, its tokens, metrics and page."""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.service import demo_shop as demo_shop
    from surefoot.service import page as page
    from surefoot.service.app import create_app as create_app
    from surefoot.service.server import serve as serve
    from surefoot.service.settings import Limits as Limits
    from surefoot.service.settings import Settings as Settings
    from surefoot.service.settings import load as load
    from surefoot.service.tokens import TokenFile as TokenFile

__getattr__, __dir__ = lazy(
    __name__,
    {
        "": ("demo_shop", "page"),
        "app": ("create_app",),
        "server": ("serve",),
        "settings": ("Limits", "Settings", "load"),
        "tokens": ("TokenFile",),
    },
)

__all__ = ["Limits", "Settings", "TokenFile", "create_app", "demo_shop", "load", "page", "serve"]
