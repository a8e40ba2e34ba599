"""S3: decoding for the k rounds of a streaming item, against the harness's own loader once per
round, in one run.

A round sees the video from the query to its own time, one frame every two seconds and the last. The
peer opens the video for every round and decodes it with
`lmms_eval.models.model_utils.load_video.record_video_length_stream`, asked for exactly the frames
of the window (the harness's `read_video` could not be asked for a window at all: it spreads frames
over the whole file). Ours is what our tasks do: the frame store, one round after the other. Both
make RGB pictures of the frames they keep; that these are the same pictures is checked.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

RATE = 25
SECONDS = 120
QUERY = 30


class Counted:
    """A PyAV container that counts the frames which leave its decoder."""

    def __init__(self, container: Any) -> None:
        self._container = container
        self.decoded = 0

    def decode(self, **streams: Any) -> Iterator[Any]:
        for frame in self._container.decode(**streams):
            self.decoded += 1
            yield frame


def write_video(path: Path, width: int, height: int) -> None:
    """Two minutes of moving noise, H.264, a keyframe every ten seconds, as encoders do by
    default.
    """
    import av

    generator = np.random.default_rng(0)
    scene = generator.integers(0, 255, (height, width + 512, 3), dtype=np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(
            "libx264", rate=RATE, options={"g": "250", "preset": "veryfast", "crf": "28"}
        )
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number in range(RATE * SECONDS):
            left = number % 512
            picture = np.ascontiguousarray(scene[:, left : left + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))


def peer(path: Path, rounds: list[list[int]]) -> tuple[list[list[np.ndarray]], int, float]:
    """Pictures of each round by the harness's loader, frames decoded, seconds."""
    import av
    from lmms_eval.models.model_utils.load_video import record_video_length_stream

    arrays, decoded, started = [], 0, time.perf_counter()
    for positions in rounds:
        with av.open(str(path)) as container:
            container.streams.video[0].thread_type = "AUTO"
            counted = Counted(container)
            frames = record_video_length_stream(counted, np.array(positions))
            arrays.append([frame.to_ndarray(format="rgb24") for frame in frames])
            decoded += counted.decoded
    return arrays, decoded, time.perf_counter() - started


def ours(path: Path, rounds: list[list[int]]) -> tuple[list[list[np.ndarray]], int, float]:
    """The same by the frame store; reading the index, which preparing does once, is not counted."""
    from medtasks.data.media.frame_store import FrameStore
    from medtasks.data.media.video_index import read_index

    index = read_index(path)
    every_position = sorted(set().union(*rounds))
    every_timestamp = [index.pts[position] for position in every_position]
    store, started = FrameStore(), time.perf_counter()
    frames = []
    for positions in rounds:
        timestamps = [index.pts[position] for position in positions]
        pictures = store.load(path, index.facts, timestamps, every_timestamp)
        frames.append([np.asarray(picture) for picture in pictures])
    return frames, store.decoded, time.perf_counter() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=854)
    parser.add_argument("--height", type=int, default=480)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    asked = parser.parse_args()
    from medtasks.data.media.video_index import read_index
    from medtasks.data.media.windows import frames_shown

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "video.mp4"
        write_video(path, asked.width, asked.height)
        times = read_index(path).times
        print(
            f"{platform.machine()}, Python {platform.python_version()}, "
            f"{asked.width}x{asked.height}, {RATE} fps\n"
        )
        print(
            "| rounds | frames decoded, harness | medtasks | ratio | s, harness | medtasks | ratio "
            "|"
        )
        print("|---:|---:|---:|---:|---:|---:|---:|")
        for k in asked.rounds:
            ends = [
                Fraction(QUERY) + Fraction((SECONDS - QUERY - 1) * (turn + 1), k)
                for turn in range(k)
            ]
            rounds = [frames_shown(times, Fraction(QUERY), end) for end in ends]
            theirs, their_frames, their_time = peer(path, rounds)
            mine, my_frames, my_time = ours(path, rounds)
            for their_round, our_round in zip(theirs, mine, strict=True):
                for their_frame, our_frame in zip(their_round, our_round, strict=True):
                    assert np.array_equal(their_frame, our_frame), "the pictures differ"
            print(
                f"| {k} | {their_frames:,} | {my_frames:,} | {their_frames / my_frames:.1f} | "
                f"{their_time:.2f} | {my_time:.2f} | {their_time / my_time:.1f} |"
            )


if __name__ == "__main__":
    main()
