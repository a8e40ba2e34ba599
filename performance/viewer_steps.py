"""How long the viewer takes to zoom, move and window radiographs in headless Chromium without a
graphics card.

Five radiographs of 3,000 x 3,000 pixels are drawn here, and shown as the visits of a MI-CXR item in
each layout of the viewer. A step changes the view and waits for the next frame. Chromium's trace
tells how many frames it drew meanwhile: if there are as many as steps, no step was skipped. A busy
machine lengthens the steps, but hardly the CPU time that Chromium spends on each, in all its
processes and threads together.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
from PIL import Image
from yardstick import speed

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "leaderboard"))

from browser import chromium
from invented_runs import MODELS, write_run_of
from view_server import serving

TASK = "mi_cxr_tel_single"
LAYOUTS = {"one": "one", "pair": "side by side", "swipe": "swipe", "all": "all five"}
CHANGES = {
    "zoom": "viewer.zoom(number < steps / 2 ? 1.05 : 1 / 1.05)",
    "move": "viewer.move(number % 40 < 20 ? 15 : -15, number % 40 < 20 ? 9 : -9)",
    "window": "viewer.changeWindow(number % 40 < 20 ? -4 : 4, number % 40 < 20 ? 2 : -2)",
}
FRAMES = ["devtools.timeline", "disabled-by-default-devtools.timeline.frame"]
"""The parts of Chromium's trace that have the frames drawn."""
STEPS = """async (steps) => {
  const viewer = document.querySelector("media-zone");
  const frame = () => new Promise(requestAnimationFrame);
  viewer.change((picture) => picture.reset());
  if (!%(from_fit)s) viewer.zoom(3);
  for (let number = 0; number < 20; number += 1) await frame();
  const times = [performance.now()];
  for (let number = 0; number < steps; number += 1) {
    %(change)s;
    await frame();
    times.push(performance.now());
  }
  return times.slice(1).map((time, number) => time - times[number]);
}"""


@dataclass(frozen=True)
class Steps:
    """The milliseconds of each step of a kind in a layout, the CPU milliseconds of all steps, and
    the number of frames drawn.
    """

    layout: str
    kind: str
    milliseconds: np.ndarray
    cpu: float
    frames: int

    @property
    def row(self) -> str:
        """The row of the table."""
        mean, slow = np.mean(self.milliseconds), np.quantile(self.milliseconds, 0.95)
        steps = len(self.milliseconds)
        times = f"{mean:.0f} | {slow:.0f} | {self.cpu / steps:.0f}"
        return f"| {LAYOUTS[self.layout]} | {self.kind} | {times} | {self.frames} of {steps} |"


def radiograph(number: int, side: int) -> bytes:
    """A PNG file with as many details as a radiograph has: smooth shapes and grain."""
    generator = np.random.default_rng(number)
    down, across = np.mgrid[0:side, 0:side] / side
    shapes = 110 + 70 * np.sin(6 * across + number) * np.cos(5 * down)
    grain = generator.normal(0, 6, (side, side))
    grey = np.clip(shapes + grain, 0, 255).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(grey).convert("RGB").save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def open_viewer(page: Any, address: str, side: int) -> None:
    """Open the first item of the task, and enlarge its third picture."""
    files = [radiograph(number, side) for number in range(5)]

    def send_radiograph(route: Any) -> None:
        query = parse_qs(urlsplit(route.request.url).query)
        route.fulfill(body=files[int(query["n"][0])], content_type="image/png")

    page.goto(f"{address}samples.html?{urlencode({'task': TASK})}")
    page.route("**/media?*", send_radiograph)
    page.locator(".list tbody th a").first.click()
    page.locator("a[data-zoom]").nth(2).click()
    page.get_by_text("Image 3 of 5").wait_for()


def chromium_cpu() -> float:
    """CPU milliseconds of this process's descendants so far."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            ticks[process] = int(fields[11]) + int(fields[12])
    descendants = {os.getpid()}
    for process in sorted(parents):  # parents have lower numbers
        if parents[process] in descendants:
            descendants.add(process)
    descendants.remove(os.getpid())
    total = sum(ticks[process] for process in descendants)
    return 1000 * total / os.sysconf("SC_CLK_TCK")


def measured_steps(browser: Any, page: Any, layout: str, kind: str, steps: int) -> Steps:
    """Take the steps, and trace the frames that are drawn."""
    page.evaluate(f"document.querySelector('media-zone').layOut('{layout}')")
    page.wait_for_timeout(1500)
    browser.start_tracing(page=page, categories=FRAMES)
    script = STEPS % {"change": CHANGES[kind], "from_fit": "true" if kind == "zoom" else "false"}
    before = chromium_cpu()
    milliseconds = page.evaluate(script, steps)
    cpu = chromium_cpu() - before
    events = json.loads(browser.stop_tracing())["traceEvents"]
    frames = sum(event["name"] == "DrawFrame" for event in events)
    return Steps(layout, kind, np.array(milliseconds), cpu, min(frames, steps))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=3000, help="of the radiographs, in pixels")
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    print(speed(), end="\n\n")
    print("| layout | step | ms | 95 % | CPU ms | frames |\n|---|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        os.environ |= {"MEDTASKS_CACHE": f"{place}/cache", "MEDTASKS_DATA": "mini"}
        results = Path(place) / "results"
        write_run_of(results, MODELS[1], [TASK])
        with serving([results]) as server, chromium() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            open_viewer(page, server.address, arguments.side)
            for layout in LAYOUTS:
                for kind in CHANGES:
                    print(measured_steps(browser, page, layout, kind, arguments.steps).row)


if __name__ == "__main__":
    main()
