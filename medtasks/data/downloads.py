"""Pictures that a release names by URL, fetched by a few threads with retries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from medtasks.core.errors import DataError, MediaError
from medtasks.core.files import MAX_PICTURE_BYTES
from medtasks.data.hub import offline_switch
from medtasks.data.media.pictures import decode_image
from medtasks.data.progress import Progress

if TYPE_CHECKING:
    import tenacity
    from httpx import Client, Response

WORKERS = 8
"""Maximum number of requests in flight."""
ATTEMPTS = 5
"""Attempts per picture, including the first."""
PAUSE = 0.5
"""The n-th pause is random, up to PAUSE * 2**n seconds, at most 30; Retry-After has precedence."""
SILENCE = 30.0
"""Seconds without a byte after which an attempt fails."""
LONGEST = 300.0
"""The longest wait, in seconds, that a server may ask for."""
GIVE_UP = 8
"""Consecutive pictures without an answer after which the server is considered unreachable."""

_TRY_AGAIN = (408, 425, 429)
"""Statuses below 500 after which a request is repeated."""


def fetch_pictures(
    urls: Mapping[str, str],
    keep: Callable[[str, bytes], None],
    *,
    progress: Progress | None = None,
) -> dict[str, MediaError]:
    """Fetch the picture at each URL; return the errors of those that could not be fetched, by key.

    ``keep`` is called with the key and the bytes of each picture, by one thread at a time.

    Raises:
        DataError: the server is unreachable, refuses access, or may not be asked offline.
    """
    client = _new_client()
    failed: dict[str, MediaError] = {}
    fetcher = _PictureFetcher(client, urls, keep)
    with client, ThreadPoolExecutor(max_workers=WORKERS) as pool:
        try:
            errors = pool.map(fetcher.fetch, urls)
            for number, (key, error) in enumerate(zip(urls, errors, strict=True), start=1):
                if error is not None:
                    failed[key] = error
                if progress is not None:
                    progress(number, len(urls))
        finally:
            fetcher.stop.set()
            pool.shutdown(cancel_futures=True)
    return failed


def _new_client() -> Client:
    """A client with as many connections as there are threads."""
    import httpx

    return httpx.Client(
        # pictures are compressed already, and a compressed transfer could decompress without bound
        headers={"Accept-Encoding": "identity", "User-Agent": "medtasks"},
        limits=httpx.Limits(max_connections=WORKERS),
        timeout=SILENCE,
        follow_redirects=True,
    )


class _PictureFetcher:
    """Fetches pictures in several threads until ``stop`` is set, and counts failures in a row."""

    def __init__(
        self, client: Client, urls: Mapping[str, str], keep: Callable[[str, bytes], None]
    ) -> None:
        """Fetch with ``client`` the pictures at ``urls``, as :func:`fetch_pictures` describes."""
        import httpx
        import tenacity

        self.client = client
        self.urls = urls
        self.keep = keep
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._failures_in_a_row = 0
        self._transient = (httpx.HTTPStatusError, httpx.TransportError)
        self._backoff = tenacity.wait_random_exponential(multiplier=2 * PAUSE, max=30)

    def fetch(self, key: str) -> MediaError | None:
        """Fetch one picture and keep it; return the error if that is not possible."""
        import httpx

        url = self.urls[key]
        try:
            picture = self._download_with_retries(url)
            decode_image(picture, url)
        except self._transient as error:
            reason = str(error) or type(error).__name__
            self._count_failure(url, reason, error)
            return MediaError(f"{url}: cannot be fetched ({reason}); run the same command again.")
        except MediaError as error:
            return error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return MediaError(f"{url}: cannot be fetched ({error}); check the address.")
        with self._lock:
            self._failures_in_a_row = 0
            self.keep(key, picture)
        return None

    def _download_with_retries(self, url: str) -> bytes:
        """The content of ``url``, after at most `ATTEMPTS` attempts."""
        import tenacity

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(self._transient),
            stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_when_event_set(self.stop),
            wait=self._seconds_to_wait,
            sleep=tenacity.sleep_using_event(self.stop),
            reraise=True,
        )
        return retrying(_download, self.client, url)

    def _seconds_to_wait(self, state: tenacity.RetryCallState) -> float:
        """The pause before the next attempt: what the server asks for, or a random backoff."""
        import httpx

        retry_after = ""
        if state.outcome is not None:
            error = state.outcome.exception()
            if isinstance(error, httpx.HTTPStatusError):
                retry_after = error.response.headers.get("retry-after", "")
        # the header may also be a date
        if retry_after.isdecimal() and len(retry_after) < 9:
            return min(float(retry_after), LONGEST)
        return float(self._backoff(state))

    def _count_failure(self, url: str, reason: str, error: Exception) -> None:
        """Count a picture without an answer; too many in a row end the preparation."""
        with self._lock:
            self._failures_in_a_row += 1
            if self._failures_in_a_row >= GIVE_UP:
                raise DataError(
                    f"{host_of(url)}: {GIVE_UP} pictures in a row could not be fetched "
                    f"(the last: {reason}); fetched pictures are kept: "
                    "run the same command again when the server is reachable."
                ) from error


def _download(client: Client, url: str) -> bytes:
    """The content of ``url``.

    Raises:
        httpx.HTTPStatusError: the server answers with a status after which a request is repeated.
        DataError: the server refuses access, or is the hub and offline mode is set.
        MediaError: any other status but 200, or more bytes than a picture may have.
    """
    content = bytearray()
    with client.stream("GET", url, headers=_login_headers(url)) as response:
        _check_status(response, url)
        for part in response.iter_raw():
            content += part
            if len(content) > MAX_PICTURE_BYTES:
                raise MediaError(
                    f"{url}: has more than {MAX_PICTURE_BYTES:,} bytes, the limit for a picture; "
                    "check the address."
                )
    return bytes(content)


def _login_headers(url: str) -> dict[str, str]:
    """The user's token if ``url`` is on the hub; httpx strips it from redirects to other hosts."""
    from huggingface_hub import constants, get_token

    is_on_hub = urlsplit(url)[:2] == urlsplit(constants.ENDPOINT)[:2]
    if not is_on_hub:
        return {}
    switch = offline_switch()
    if switch is not None:
        raise DataError(
            f"{host_of(url)}: {switch} is set, so {url} cannot be fetched; unset it, or "
            "give the directory of the pictures with --images."
        )
    token = get_token()
    if not token:
        return {}
    return {"Authorization": f"Bearer {token}"}


def _check_status(response: Response, url: str) -> None:
    """Raise the error for a status that is not 200, as :func:`_download` states."""
    import httpx

    status = response.status_code
    if status in _TRY_AGAIN or status >= 500:
        raise httpx.HTTPStatusError(f"status {status}", request=response.request, response=response)
    if status in (401, 403):
        raise DataError(
            f"{host_of(url)}: refuses {url} (status {status}); accept the dataset's terms on its "
            "page and log in with `hf auth login` (or set HF_TOKEN), or give the directory of the "
            "pictures with --images."
        )
    if status != 200:
        raise MediaError(f"{url}: cannot be fetched (status {status}); check the address.")


def host_of(url: str) -> str:
    """The host of ``url``, without a login."""
    return urlsplit(url).netloc.rpartition("@")[2] or url
