"""Debian's Chromium, headless, driven by Playwright; what a page asked for and complained of is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser; without one the test is skipped, unless ``MEDTASKS_REQUIRE_BROWSER=1`` says that there must be."""
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        if os.environ.get("MEDTASKS_REQUIRE_BROWSER") == "1":
            pytest.fail("MEDTASKS_REQUIRE_BROWSER=1, but Chromium or Playwright is not installed")
        pytest.skip("Chromium or Playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """Opens pages of a site (a directory, or an address), and keeps every request and every message of the console."""

    def __init__(self, browser: Any, site: Path | str, width: int = 1280, dark: bool = False) -> None:
        scheme = "dark" if dark else "light"
        self._context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.site = site.rstrip("/") if isinstance(site, str) else site.absolute().as_uri()
        self.page = self._context.new_page()
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def open(self, name: str) -> Any:
        """The page ``name``, which may have a fragment, loaded anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.site}/{name}")
        return self.page

    def strangers(self) -> list[str]:
        """Requests that left the site."""
        return [url for url in self.requests if not url.startswith(self.site) and url != "about:blank"]

    def close(self) -> None:
        self._context.close()
