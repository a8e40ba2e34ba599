"""A server on this machine that speaks the protocol of the Hugging Face hub for datasets."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + 34 * "0"
"""The newest commit of every dataset; any other one that is asked for has the same files."""

_API = re.compile(r"/api/datasets/(?P<name>[^/]+/[^/]+)(?P<what>/tree|/revision)?(?:/(?P<rev>.*))?")
_FILE = re.compile(r"/datasets/(?P<name>[^/]+/[^/]+)/resolve/(?P<rev>[^/]+)/(?P<file>.+)")


class StubHub:
    """Serves datasets, files by their names; a context manager.

    A file in ``stalled`` stops after so many bytes, until ``go_on`` is set. ``fetched`` counts the
    bytes that were sent of each file, ``begun`` the requests for it. Files are redirected to
    ``storage``, if it is set; the ``tokens`` that came with requests for files are kept.
    """

    def __init__(self, datasets: Mapping[str, Mapping[str, bytes]]) -> None:
        self.datasets = datasets
        self.stalled: dict[str, int] = {}
        self.go_on = threading.Event()
        self.asked: list[str] = []
        self.begun: Counter[str] = Counter()
        self.fetched: Counter[str] = Counter()
        self.tokens: list[str | None] = []
        self.storage: StubHub | None = None
        self.file_status: int | None = None
        self.has_ranges = True
        self.states_sizes = True
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub._answer(self)

            do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StubHub:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, file: str, count: int) -> None:
        """Wait until so many bytes of a file have been sent."""
        deadline = time.monotonic() + 600
        while self.fetched[file] < count:
            assert time.monotonic() < deadline, f"{file} was not fetched"
            time.sleep(0.02)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path)
        self.asked.append(f"{request.command} {path}")
        about, file = _API.fullmatch(path), _FILE.fullmatch(path)
        if about is not None and about["name"] in self.datasets:
            entries = self._entries(about["name"], about["rev"] or COMMIT, about["what"])
            _send(request, 200, json.dumps(entries).encode(), {"Content-Type": "application/json"})
        elif file is not None and file["file"] in self.datasets.get(file["name"], {}):
            self._send_file(request, file["file"], file["rev"], self.datasets[file["name"]])
        else:
            _send(request, 404, b"", {"X-Error-Code": "RepoNotFound"})

    def _entries(self, name: str, commit: str, what: str | None) -> Any:
        """What the hub tells of a dataset: its facts, or the tree of its files."""
        files = self.datasets[name]
        if what == "/tree":
            return [
                {
                    "type": "file",
                    "path": file,
                    "size": len(content),
                    "oid": _sha1(content),
                    "lfs": {"oid": _sha256(content), "size": len(content), "pointerSize": 1},
                }
                for file, content in files.items()
            ]
        siblings = [
            {
                "rfilename": file,
                "size": len(content) if self.states_sizes else None,
                "blobId": _sha1(content),
                "lfs": {"sha256": _sha256(content), "size": len(content), "pointerSize": 1},
            }
            for file, content in files.items()
        ]
        sha = commit if re.fullmatch("[0-9a-f]{40}", commit) else COMMIT
        return {"id": name, "sha": sha, "private": False, "tags": [], "siblings": siblings}

    def _send_file(
        self, request: BaseHTTPRequestHandler, file: str, commit: str, files: Mapping[str, bytes]
    ) -> None:
        self.tokens.append(request.headers.get("Authorization"))
        if self.file_status is not None:
            _send(request, self.file_status, b"", {})
            return
        if self.storage is not None:
            _send(request, 302, b"", {"Location": self.storage.url + request.path})
            return
        content = files[file]
        headers = {
            "ETag": f'"{_sha256(content)}"',
            "X-Repo-Commit": commit if len(commit) == 40 else COMMIT,
            "Accept-Ranges": "bytes",
        }
        begin = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        if not self.has_ranges:
            begin = None
        start = int(begin[1]) if begin else 0
        if begin:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        _send(request, 206 if begin else 200, None, headers, len(content) - start)
        if request.command == "HEAD":
            return
        self.begun[file] += 1
        for place in range(start, len(content), 4096):
            if place >= self.stalled.get(file, len(content)):
                self.go_on.wait()
            part = content[place : min(place + 4096, len(content))]
            try:
                request.wfile.write(part)
                request.wfile.flush()
            except OSError:  # the client was killed
                return
            self.fetched[file] += len(part)


def _send(
    request: BaseHTTPRequestHandler,
    status: int,
    body: bytes | None,
    headers: Mapping[str, str],
    length: int | None = None,
) -> None:
    request.send_response(status)
    for key, value in headers.items():
        request.send_header(key, value)
    request.send_header("Content-Length", str(len(body or b"") if length is None else length))
    request.end_headers()
    if body and request.command != "HEAD":
        request.wfile.write(body)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
