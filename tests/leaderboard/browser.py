"""Debian's Chromium, headless, driven by Playwright; what a page asked for and complained of is
kept.
"""

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
    """The browser; without one the test is skipped, unless ``MEDTASKS_REQUIRE_BROWSER=1`` says that
    there must be.
    """
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
    """Opens pages of a site (a directory, or an address). In the end, no request must have left the
    site, and nothing be in the console but messages with the text ``expected``.
    """

    def __init__(
        self, browser: Any, site: Path | str, dark: bool = False, expected: str | None = None
    ) -> None:
        scheme = "dark" if dark else "light"
        self._context = browser.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme=scheme
        )
        self._expected = expected
        self.site = site.rstrip("/") if isinstance(site, str) else site.absolute().as_uri()
        self.page = self._context.new_page()
        self.requests: list[str] = []
        self.messages: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "console", lambda message: self.messages.append(f"{message.type}: {message.text}")
        )
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on(
            "dialog",
            lambda dialog: (self.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()),
        )

    def open(self, name: str) -> Any:
        """The page ``name``, which may have a fragment, loaded anew."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.site}/{name}")
        return self.page

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        self._context.close()
        if failed is None:
            assert [
                url
                for url in self.requests
                if not url.startswith(self.site) and url != "about:blank"
            ] == []
            assert [
                one for one in self.messages if self._expected is None or self._expected not in one
            ] == []


AXE = """async (rules) => {
  const options = { resultTypes: ["violations"], preload: false };
  const found = await axe.run(document, rules ? { ...options, runOnly: rules } : options);
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => [id, nodes.slice(0, 3).map(({ target, failureSummary }) => [target, failureSummary])]);
}"""
COLOUR = ["color-contrast", "link-in-text-block"]
LAYOUT = ["scrollable-region-focusable", "target-size"]
LOOKS = [
    (1280, "light", None),
    (1280, "dark", COLOUR),
    (390, "dark", COLOUR + LAYOUT),
    (390, "light", LAYOUT),
]
"""Widths, colour schemes, and the rules whose findings can be others than at the look before; None
is all rules.
"""


def check_accessibility(page: Any) -> None:
    """Axe finds nothing serious on the page with everything unfolded, light and dark, on a screen
    and on a phone.
    """
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.evaluate(
        "document.querySelectorAll('details:not(.menu)').forEach(each => { each.open = true; })"
    )
    page.evaluate(axe.axe_script)
    for width, scheme, rules in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(AXE, rules) == [], (page.url, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def check_responses_on_screen(page: Any) -> None:
    """Each row of the list of samples has its extracted answer on the screen, with its label, and
    is still a row for screen readers.
    """
    cells = page.locator(".list tbody tr td[data-of='Extracted']")
    cells.first.wait_for()
    width = page.viewport_size["width"]
    for cell in cells.all():
        box = cell.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
    region = page.get_by_role("region", name="Samples")
    assert region.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert "Extracted" in cells.first.evaluate("cell => getComputedStyle(cell, '::before').content")
    rows = region.get_by_role("row").filter(has=page.get_by_role("rowheader"))
    assert rows.count() == cells.count()
