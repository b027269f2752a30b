"""An object store that speaks as much S3 as results need: whole objects by PUT, GET and HEAD, and listings."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"  # the only one
NO_BUCKET = b"<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>"
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class _Handler(BaseHTTPRequestHandler):
    server: "S3Server"
    protocol_version = "HTTP/1.1"

    def target(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        return unquote(parts.path).lstrip("/"), {name: found[0] for name, found in parse_qs(parts.query).items()}

    def reply(self, status: int, body: bytes = b"", kind: str = "application/xml", size: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.send_header("Content-Type", kind)
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        key, _ = self.target()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if key.split("/")[0] != BUCKET:
            self.reply(404, NO_BUCKET)
            return
        with self.server.lock:
            self.server.objects[key] = body
        self.reply(200)

    def do_HEAD(self) -> None:
        key, _ = self.target()
        found = self.server.objects.get(key)
        self.reply(200 if found is not None else 404, size=len(found or b""))

    def do_GET(self) -> None:
        key, asked = self.target()
        if key.split("/")[0] != BUCKET:
            self.reply(404, NO_BUCKET)
        elif "list-type" in asked:
            self.reply(200, self.listing(key.rstrip("/"), asked.get("prefix", ""), asked.get("delimiter", "")))
        elif key in self.server.objects:
            self.reply(200, self.server.objects[key], "application/octet-stream")
        else:
            self.reply(404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")

    def listing(self, bucket: str, prefix: str, delimiter: str) -> bytes:
        files, folders = [], set()
        with self.server.lock:
            sizes = {key: len(body) for key, body in self.server.objects.items()}
        for key, size in sorted(sizes.items()):
            name = key.removeprefix(f"{bucket}/")
            if not key.startswith(f"{bucket}/{prefix}"):
                continue
            rest = name.removeprefix(prefix)
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.split(delimiter)[0] + delimiter)
            else:
                when = "<LastModified>2026-11-02T10:00:00.000Z</LastModified>"
                files.append(f'<Contents><Key>{escape(name)}</Key>{when}<ETag>"0"</ETag><Size>{size}</Size></Contents>')
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in sorted(folders)
        )
        counted = f"<KeyCount>{len(files) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>"
        head = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>{counted}"
        return f"<ListBucketResult {NAMESPACE}>{head}{''.join(files)}{common}</ListBucketResult>".encode()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class S3Server(ThreadingHTTPServer):
    """Objects by "bucket/key"."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.lock = threading.Lock()

    @property
    def environment(self) -> dict[str, str]:
        """What s3fs must find in its environment to come here."""
        return {
            "FSSPEC_S3_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "FSSPEC_S3_KEY": "key",
            "FSSPEC_S3_SECRET": "secret",
            "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def serving() -> Iterator[S3Server]:
    """A server at a free port of this machine."""
    server = S3Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
