"""What a server needs before it can start, each tried once: journals, key, tokens, port. Nothing is changed."""

import os
import socket
from pathlib import Path

from surefoot.audit.chain import newest_heads, read_expected
from surefoot.errors import ConfigError, JournalNotFoundError
from surefoot.journal import Journal, open_journal
from surefoot.journal.address import file_of, without_password
from surefoot.journal.journal_chain import given_up, lost_heads
from surefoot.journal.signatures import SigningKey
from surefoot.service.jwt_issuer import JwtIssuer
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile


def check_server(settings: Settings) -> list[str]:
    """What was found, line by line; the first thing that would keep a server from starting is raised."""
    found = [_check_journal(settings)]
    if settings.hub is not None:
        found.append(_check_hub(settings.hub))
    if settings.signing_key is not None:
        SigningKey(settings.signing_key)
        found.append(f"The key {settings.signing_key} can sign.")
    if settings.tokens is not None:
        found.append(_check_tokens(settings.tokens))
    if settings.oidc is not None:
        count = len(JwtIssuer(settings.oidc).read_keys())
        found.append(f"The log-in's issuer has {count} key{'s' * (count != 1)}.")
    if settings.port:
        listen(settings.host, settings.port).close()
        found.append(f"Port {settings.port} of {settings.host} is free.")
    return found


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address, or the reason why there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        try:
            # A port that a server has just left may be taken at once.
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
        except OSError:
            found.close()
            raise
    except OSError as error:
        reason = str(error.strerror or error)
        raise ConfigError(
            f"The server must be able to listen at {host}:{port}, but {reason[:1].lower()}{reason[1:]}. "
            "Another server may have the port: choose one with `port`."
        ) from None
    return found


def check_heads(journal: Journal, path: str | None) -> None:
    """Refuse a journal that lacks what this server has given out: an older copy, which would forget in silence."""
    _check_place_of_heads(path)
    if path is None or not Path(path).exists() or not Path(path).stat().st_size:
        return
    lost = lost_heads(journal, newest_heads(read_expected(Path(path)), given_up=given_up(journal)))
    if lost:
        told = ", ".join(f"event {head.number} of {name!r}" for name, head in lost.items())
        raise ConfigError(
            f"The journal must hold every head of {path}, but lacks {told}: it is an older copy, or was rewritten. "
            "Put the right one in its place, or say "
            f"`surefoot restore JOURNAL --expect {path} --accept-loss --by WHO --reason WHY`, which notes what is lost."
        )


def _check_place_of_heads(path: str | None) -> None:
    if path is not None and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
        raise ConfigError(f"`heads` must be a file in a folder that exists, but got {path}: no head would be kept.")


def _check_journal(settings: Settings) -> str:
    database, shown = settings.database, without_password(settings.database)
    try:
        with open_journal(settings.database, read_only=True) as journal:
            check_heads(journal, settings.heads)
            count = len(journal.names())
            return f"The journal {shown} can be read, and has {count} experiment{'s' * (count != 1)}."
    except JournalNotFoundError:
        if (file := file_of(database)) is not None:
            _check_folder(file.absolute().parent)
        _check_place_of_heads(settings.heads)
        return f"The journal {shown} is not there yet: the server will make it."


def _check_hub(hub: str) -> str:
    shown = without_password(hub)
    try:
        with open_journal(hub, read_only=True):
            return f"The hub {shown} can be read."
    except JournalNotFoundError:
        return f"The hub {shown} is not there yet: the server will make it."


def _check_folder(folder: Path) -> None:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"`database` must lie in a folder that the server may write to, but {folder} is none. "
            "Make it, or name another file."
        )


def _check_tokens(path: str) -> str:
    if not Path(path).is_file():
        raise ConfigError(
            f"`tokens` must be a file of `surefoot token`, but there is none at {path}: nobody could ask for anything. "
            "Make one with `surefoot token create`."
        )
    count = len(TokenFile(path).all())
    return f"The token file {path} has {count} token{'s' * (count != 1)}."
