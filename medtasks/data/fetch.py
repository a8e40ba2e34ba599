"""What is fetched: pictures by URL, with retries and verified by decoding, and datasets of the Hugging Face hub."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medtasks.core.errors import DataError, MediaError
from medtasks.core.files import MAX_PICTURE_BYTES
from medtasks.data.media.images import decode_image

if TYPE_CHECKING:
    from httpx import Client

WORKERS = 8
"""Maximum number of requests in flight."""
ATTEMPTS = 5
"""Per picture, including the first."""
PAUSE = 0.5
"""The n-th pause is random, up to ``PAUSE * 2**n`` seconds, at most 30; ``Retry-After`` takes precedence."""
SILENCE, LONGEST = 30.0, 300.0
"""Seconds without a byte after which an attempt fails; the longest wait that a server may ask for."""
GIVE_UP = 8
"""Consecutive pictures without an answer after which the server is considered unreachable."""


def fetch_pictures(
    urls: Mapping[str, str],
    keep: Callable[[str, bytes], None],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, MediaError]:
    """Fetch the picture at each of ``urls``; return the errors of those that could not be fetched, by key.

    ``keep`` is called with a key and the bytes of its picture, by one thread at a time.

    Raises:
        DataError: a server requires a login, or cannot be reached; pictures already kept stay.
    """
    import httpx
    import tenacity

    stop, lock = threading.Event(), threading.Lock()
    silent = 0  # pictures in a row without an answer
    transient = (httpx.HTTPStatusError, httpx.TransportError)
    backoff = tenacity.wait_random_exponential(multiplier=2 * PAUSE, max=30)

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        after = error.response.headers.get("retry-after", "") if isinstance(error, httpx.HTTPStatusError) else ""
        is_seconds = after.isdecimal() and len(after) < 9  # it may be a date
        return min(float(after), LONGEST) if is_seconds else float(backoff(state))

    def settle(key: str) -> MediaError | None:
        nonlocal silent
        url = urls[key]
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(transient),
            stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_when_event_set(stop),
            wait=pause,
            sleep=tenacity.sleep_using_event(stop),
            reraise=True,
        )
        try:
            data = retrying(_download, client, url)
            decode_image(data, url)
        except transient as error:
            reason = str(error) or type(error).__name__
            with lock:
                silent += 1
                if silent >= GIVE_UP:
                    raise DataError(
                        f"{_host(url)}: {GIVE_UP} pictures in a row could not be fetched (the last: {reason}); "
                        "fetched pictures are kept: run the same command again when the server is reachable."
                    ) from error
            return MediaError(f"{url}: cannot be fetched ({reason}); run the same command again.")
        except MediaError as error:
            return error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return MediaError(f"{url}: cannot be fetched ({error}); check the address.")
        with lock:
            silent = 0
            keep(key, data)
        return None

    failed: dict[str, MediaError] = {}
    client = httpx.Client(
        # pictures are compressed already, and a compressed transfer could decompress without bound
        headers={"Accept-Encoding": "identity", "User-Agent": "medtasks"},
        limits=httpx.Limits(max_connections=WORKERS),
        timeout=SILENCE,
        follow_redirects=True,
    )
    with client, ThreadPoolExecutor(max_workers=WORKERS) as pool:
        try:
            for number, (key, error) in enumerate(zip(urls, pool.map(settle, urls), strict=True), start=1):
                if error is not None:
                    failed[key] = error
                if progress is not None:
                    progress(number, len(urls))
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    return failed


def _download(client: Client, url: str) -> bytes:
    """The content of ``url``; raises `httpx.HTTPStatusError` for statuses after which it is requested again."""
    import httpx
    from huggingface_hub import constants, get_token

    login = {}
    if urlsplit(url)[:2] == urlsplit(constants.ENDPOINT)[:2]:  # httpx strips the token from redirects to other hosts
        if constants.HF_HUB_OFFLINE:
            raise DataError(
                f"{_host(url)}: HF_HUB_OFFLINE is set, so {url} cannot be fetched; unset it, or "
                "give the directory of the pictures with --images."
            )
        if token := get_token():
            login = {"Authorization": f"Bearer {token}"}
    data = bytearray()
    with client.stream("GET", url, headers=login) as response:
        status = response.status_code
        if status in (408, 425, 429) or status >= 500:
            raise httpx.HTTPStatusError(f"status {status}", request=response.request, response=response)
        if status in (401, 403):
            raise DataError(
                f"{_host(url)}: refuses {url} (status {status}); accept the dataset's terms on its page and log in "
                "with `hf auth login` (or set HF_TOKEN), or give the directory of the pictures with --images."
            )
        if status != 200:
            raise MediaError(f"{url}: cannot be fetched (status {status}); check the address.")
        for part in response.iter_raw():
            data += part
            if len(data) > MAX_PICTURE_BYTES:
                limit = f"has more than {MAX_PICTURE_BYTES:,} bytes, the limit for a picture"
                raise MediaError(f"{url}: {limit}; check the address.")
    return bytes(data)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2] or url


def hub_tree(name: str, *patterns: str, revision: str | None = None) -> tuple[Path, str | None]:
    """A directory with the files of a hub dataset that match one of ``patterns``, and their commit; or ``name`` itself,
    if it is a local directory. Raises :class:`DataError` if the hub cannot be reached and there is no local copy."""
    if Path(name).is_dir():
        return Path(name), None
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=list(patterns)))
    except Exception as error:  # network, TLS, proxy, missing repository or file: the hub's client raises many types
        raise DataError(
            f"{name}: {', '.join(patterns)} cannot be fetched from the hub ({type(error).__name__}); to work without "
            "the hub, copy the dataset here and give it with --source."
        ) from error
    return folder, folder.name if re.fullmatch(r"[0-9a-f]{40}", folder.name) else None
