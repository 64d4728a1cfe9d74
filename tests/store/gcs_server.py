"""A local server that answers as Google Cloud Storage's XML API does for the objects of a bucket.

No emulator that can be installed here speaks that API, which obstore uses. Faithful where a store
depends on it (cloud.google.com/storage/docs/xml-api): each write gives an object a new generation,
``x-goog-if-generation-match`` writes onto one generation alone (0: only where nothing stands) or
ends in 412, lists come in pages and name no generation, a missing object or bucket is a 404.
"""

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import format_datetime
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

#: Keys on one page of a list; the real server's limit is 1,000.
PAGE = 5


@dataclass
class Stored:
    data: bytes
    generation: int
    modified: datetime

    @property
    def etag(self) -> str:
        return '"' + hashlib.md5(self.data, usedforsecurity=False).hexdigest() + '"'


@dataclass
class Bucket:
    """One bucket, and the methods of the requests that it saw."""

    name: str = "bucket"
    url: str = ""
    objects: dict[str, Stored] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    generation: int = 1_700_000_000_000_000

    @property
    def credentials(self) -> str:
        """The text of GOOGLE_SERVICE_ACCOUNT_KEY that leads obstore here."""
        account = {"gcs_base_url": self.url, "disable_oauth": True}
        return json.dumps({**account, "client_email": "", "private_key": "", "private_key_id": ""})


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, *words: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        bucket, key = self._where()
        if key is None:
            return
        if not key:
            self._answer(200, self._list(bucket), {"Content-Type": "application/xml"})
            return
        found = bucket.objects.get(key)
        if found is None:
            self._answer(404, _error("NoSuchKey"))
        else:
            headers = {**_state(found), "Last-Modified": format_datetime(found.modified, True)}
            self._answer(200, found.data, headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket, key = self._where()
        if not key:
            return
        expected = self.headers.get("x-goog-if-generation-match")
        with bucket.lock:
            found = bucket.objects.get(key)
            stands = 0 if found is None else found.generation
            if expected is not None and int(expected) != stands:
                self._answer(412, _error("PreconditionFailed"))
                return
            bucket.generation += 1
            now = datetime.now(timezone.utc).replace(microsecond=0)
            stored = bucket.objects[key] = Stored(data, bucket.generation, now)
        self._answer(200, b"", _state(stored))

    def do_DELETE(self) -> None:
        bucket, key = self._where()
        if not key:
            return
        with bucket.lock:
            found = bucket.objects.pop(key, None)
        self._answer(404 if found is None else 204, _error("NoSuchKey") if found is None else b"")

    def _where(self) -> tuple[Bucket, str | None]:
        """Return the bucket and the key; None after an answer that there is no such bucket."""
        bucket = self.server.bucket
        name, _, key = unquote(urlsplit(self.path).path).lstrip("/").partition("/")
        bucket.requests.append(self.command)
        if name == bucket.name:
            return bucket, key
        self._answer(404, _error("NoSuchBucket"))
        return bucket, None

    def _list(self, bucket: Bucket) -> bytes:
        words = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        after = words.get("continuation-token", "")
        keys = [key for key in sorted(bucket.objects) if key.startswith(words.get("prefix", ""))]
        keys = [key for key in keys if key > after]
        page, rest = keys[:PAGE], keys[PAGE:]
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(bucket.objects[key].data)}</Size>"
            f"<LastModified>{bucket.objects[key].modified:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
            f"<ETag>{escape(bucket.objects[key].etag)}</ETag></Contents>"
            for key in page
        )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        return (
            "<?xml version='1.0' encoding='UTF-8'?>"
            f"<ListBucketResult><IsTruncated>{'true' if rest else 'false'}</IsTruncated>"
            f"{more}{rows}</ListBucketResult>"
        ).encode()

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _state(stored: Stored) -> dict[str, str]:
    return {"ETag": stored.etag, "x-goog-generation": str(stored.generation)}


def _error(code: str) -> bytes:
    return f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code></Error>".encode()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, bucket: Bucket) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bucket = bucket
        bucket.url = f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def running(bucket: Bucket) -> Iterator[Bucket]:
    """Serve a bucket while the block runs."""
    with Server(bucket) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield bucket
        finally:
            server.shutdown()
            thread.join()
