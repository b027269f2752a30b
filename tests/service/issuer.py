"""A small issuer of JSON Web Tokens on loopback: keys that change, go away or are nonsense, and any token signed."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

NAME, AUDIENCE = "https://id.example", "surefoot"
KINDS: dict[str, tuple[Any, Any]] = {
    "RS256": (lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
    "PS256": (lambda: rsa.generate_private_key(65537, 2048), RSAAlgorithm),
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
}


class Issuer:
    """Answers at `jwks` with the public parts of its keys, or with `answer`; where it `drips`, without an end."""

    def __init__(self) -> None:
        self.private: dict[str, tuple[str, Any]] = {}
        self.public: list[dict[str, Any]] = []
        self.answer: tuple[int, bytes, dict[str, str]] | None = None
        self.fetches, self.jwks, self.drips = 0, "", False

    def add_key(self, name: str, algorithm: str = "ES256") -> None:
        make, kind = KINDS[algorithm]
        self.private[name] = algorithm, make()
        public = json.loads(kind.to_jwk(self.private[name][1].public_key()))
        self.public.append({**public, "kid": name, "alg": algorithm, "use": "sig"})

    def sign(self, key: str = "first", *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token; a claim of None is left out."""
        algorithm, private = self.private[key]
        told = {**self.claims(), **claims}
        head = {"kid": key, **(header or {})}
        return jwt.encode({k: v for k, v in told.items() if v is not None}, private, algorithm, headers=head)

    def claims(self) -> dict[str, Any]:
        now = int(time.time())
        return {
            "iss": NAME,
            "aud": AUDIENCE,
            "sub": "u-17",
            "email": "ada@example.org",
            "iat": now,
            "exp": now + 300,
            "roles": ["surefoot:read", "of another app"],
        }


@contextmanager
def issuing() -> Iterator[Issuer]:
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.fetches, drips = issuer.fetches + 1, issuer.drips
            keys = (200, json.dumps({"keys": issuer.public}).encode(), dict[str, str]())
            status, body, headers = issuer.answer or keys
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            with suppress(OSError):  # until the other side has had enough
                while drips:
                    self.wfile.write(b" ")
                    time.sleep(0.1)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.jwks = f"http://127.0.0.1:{server.server_port}/jwks"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
