"""Ed25519 signatures: that a server gave something out can be shown to anybody who has its key.

Of a head the text of five lines is signed: the words `surefoot-head/1`, the experiment's name, the number, the hash,
and the time as a hexadecimal float. Leases begin with other words (`surefoot.edge.bundle`), so that a signature of one
thing never stands for another. Keys are PEM files as OpenSSL writes them: `openssl genpkey -algorithm ed25519 -out
head.key`, `openssl pkey -in head.key -pubout -out head.pub`. A key has a name, so that a signature says which one to
check it with: `openssl pkey -pubin -in head.pub -outform DER | sha256sum | cut -c1-16`.
"""

import hashlib
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.journal.events import Head

FORMAT = "surefoot-head/1"


def head_message(name: str, head: Head, time: float) -> bytes:
    """What is signed of a head."""
    return "\n".join((FORMAT, name, str(head.number), head.hash, time.hex())).encode()


class SigningKey:
    """A private key, read from a file."""

    def __init__(self, path: Path | str) -> None:
        serialization, ed25519 = _cryptography()
        self._key = _read(path, lambda data: serialization.load_pem_private_key(data, None), "private")
        if not isinstance(self._key, ed25519.Ed25519PrivateKey):
            raise ConfigError(f"A signing key must be an Ed25519 key, but {path} holds another kind.")
        if Path(path).stat().st_mode & 0o007:
            raise ConfigError(f"A signing key must be its owner's alone, but anybody may read it: chmod 600 {path}")
        self.name = _name(self._key.public_key())

    def sign(self, message: bytes) -> str:
        """The signature, in hexadecimal digits."""
        signature: bytes = self._key.sign(message)
        return signature.hex()

    def has_signed(self, signature: str, message: bytes) -> bool:
        """Whether the signature is this key's own."""
        return _is_valid(self._key.public_key(), signature, message)


class PublicKey:
    """The key that signatures are checked with, read from a file."""

    def __init__(self, path: Path | str) -> None:
        serialization, ed25519 = _cryptography()
        self._key = _read(path, serialization.load_pem_public_key, "public")
        if not isinstance(self._key, ed25519.Ed25519PublicKey):
            raise ConfigError(f"The key of signatures must be an Ed25519 key, but {path} holds another kind.")
        self.name = _name(self._key)

    def has_signed(self, signature: str, message: bytes) -> bool:
        """Whether the signature is this key's, of this message."""
        return _is_valid(self._key, signature, message)


def _name(key: Any) -> str:
    """By which a public key is known: the beginning of the SHA-256 of its DER form."""
    serialization, _ = _cryptography()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()[:16]


def _is_valid(key: Any, signature: str, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        raise ConfigError("Signatures need one more package: pip install 'surefoot[signing]'.") from None
    return serialization, ed25519


def _read(path: Path | str, load: Any, kind: str) -> Any:
    try:
        return load(Path(path).read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"There must be an Ed25519 {kind} key in PEM form at {path}, but: {error}. "
            "`openssl genpkey -algorithm ed25519` makes one, without a password."
        ) from None
