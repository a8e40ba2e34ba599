"""Reading videos: exact frames at any rate and in any container; what is damaged is said."""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import av
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from time_coded import shown, write_video

from medtasks.core.errors import MediaError
from medtasks.data.media.frame_store import FrameStore
from medtasks.data.media.video_check import scan_video
from medtasks.data.media.video_index import read_index
from medtasks.data.media.video_reader import VideoReader

CONSTANT = [number * 125 for number in range(80)]
VARIABLE = [
    0,
    40,
    80,
    500,
    1500,
    1540,
    4000,
    4001,
    4100,
    9000,
    9040,
    9080,
    9120,
    9990,
    *range(10_000, 14_000, 200),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("videos")


@pytest.mark.parametrize(
    ("name", "times"),
    [
        *((f"a.{suffix}", CONSTANT) for suffix in ("mp4", "mkv", "avi")),
        ("v.mp4", VARIABLE),
        ("v.mkv", VARIABLE),
    ],
)
def test_every_frame_is_the_one_of_its_time_at_any_rate(
    folder: Path, name: str, times: list[int]
) -> None:
    path = write_video(folder / name, times, codec="mpeg4" if name.endswith("avi") else None)
    index = read_index(path)

    assert [int(time * 1000) for time in index.times] == times
    with closing(VideoReader(path, index.keyframes)) as reader:
        assert [shown(picture) for _, picture in reader.read(index.pts)] == times
    assert not index.cut


@pytest.mark.parametrize("name", ["r.mp4", "r.mkv", "r.avi"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(order=st.lists(st.integers(0, len(CONSTANT) - 1), min_size=1, max_size=12))
def test_frames_are_exact_in_any_order_of_asking(folder: Path, name: str, order: list[int]) -> None:
    path = folder / name
    if not path.exists():
        write_video(path, CONSTANT, codec="mpeg4" if name.endswith("avi") else None)
    index = read_index(path)
    with closing(VideoReader(path, index.keyframes)) as reader:
        found = [
            shown(picture) for number in order for _, picture in reader.read([index.pts[number]])
        ]

    assert found == [CONSTANT[number] for number in order]


def test_a_jump_decodes_from_the_keyframe_and_not_from_the_start(folder: Path) -> None:
    path = write_video(folder / "jump.mp4", CONSTANT)
    index = read_index(path)
    with closing(VideoReader(path, index.keyframes)) as reader:
        next(reader.read([index.pts[-1]]))
        assert reader.decoded <= 12  # one group of pictures
        before = reader.decoded
        next(reader.read([index.pts[2]]))
        assert reader.decoded - before == 3


def test_ffmpeg_threads_never_wait_for_python(folder: Path) -> None:
    """They would if they logged while PyAV passes messages on, as torchvision may ask it to: a
    deadlock.
    """
    path = write_video(folder / "l.mp4", CONSTANT)
    av.logging.set_level(av.logging.ERROR)
    read_index(path)
    assert av.logging.get_level() is None


def test_the_store_decodes_a_shared_frame_once(folder: Path) -> None:
    path = write_video(folder / "store.mp4", CONSTANT)
    index = read_index(path)
    rounds = [index.pts[0:20:4], index.pts[0:40:4], index.pts[0:80:4]]
    union = sorted({pts for one in rounds for pts in one})
    store = FrameStore()
    for wanted in reversed(
        rounds
    ):  # the longest first: what the others want is kept as it comes by
        pictures = store.load(path, index.facts, wanted, also=union)
        assert [shown(picture) for picture in pictures] == [
            CONSTANT[index.pts.index(pts)] for pts in wanted
        ]

    assert store.decoded <= index.pts.index(union[-1]) + 1


def test_the_store_stays_within_its_bound(folder: Path) -> None:
    path = write_video(folder / "bound.mp4", CONSTANT)
    index = read_index(path)
    frame = 96 * 64 * 4
    store = FrameStore(max_bytes=5 * frame)
    for start in range(0, 60, 7):
        pictures = store.load(path, index.facts, index.pts[start : start + 9])
        assert [shown(picture) for picture in pictures] == CONSTANT[start : start + 9]
        assert store.held.nbytes <= 5 * frame
    store.clear()
    assert store.held.nbytes == 0


def test_two_videos_in_turn_stay_exact(folder: Path) -> None:
    one, two = write_video(folder / "one.mp4", CONSTANT), write_video(folder / "two.mp4", VARIABLE)
    store = FrameStore(max_bytes=1)
    for number in range(6):
        for path, times in ((one, CONSTANT), (two, VARIABLE)):
            index = read_index(path)
            (picture,) = store.load(path, index.facts, [index.pts[number * 3]])
            assert shown(picture) == times[number * 3]


def test_what_is_no_video_or_cut_off_is_refused_or_noticed(folder: Path) -> None:
    def truncated(whole: Path) -> Path:
        data, cut = whole.read_bytes(), whole.with_stem("cut")
        cut.write_bytes(data[: int(len(data) * 0.6)])
        return cut

    (folder / "text.mp4").write_text("not a video")
    with pytest.raises(MediaError, match=r"text\.mp4: not a complete video"):
        read_index(folder / "text.mp4")
    with pytest.raises(MediaError, match=r"gone\.mp4"):
        read_index(folder / "gone.mp4")
    with pytest.raises(MediaError, match="not a complete video"):
        read_index(truncated(write_video(folder / "whole.mp4", CONSTANT)))
    index = read_index(truncated(write_video(folder / "whole.mkv", CONSTANT)))
    assert index.cut
    assert len(index.pts) < len(CONSTANT)


def test_damage_in_the_middle_costs_the_frames_there_alone(folder: Path) -> None:
    whole = write_video(folder / "fine.mp4", CONSTANT)
    data = bytearray(whole.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 400] = b"\x00" * 400
    path = folder / "damaged.mp4"
    path.write_bytes(bytes(data))
    index = read_index(path)
    found = scan_video(path, "damaged.mp4", index, index.pts)

    assert 0 < len(found.bad) < len(CONSTANT) / 2
    good = [pts for pts in index.pts if pts not in found.bad]
    with closing(VideoReader(path, index.keyframes)) as reader:
        assert [shown(picture) for _, picture in reader.read(good)] == [
            int((pts - index.pts[0]) * index.time_base * 1000) for pts in good
        ]


def test_a_scan_is_remembered_until_the_file_or_the_frames_change(folder: Path) -> None:
    path = write_video(folder / "known.mp4", CONSTANT)
    index = read_index(path)
    first = scan_video(path, "known.mp4", index, index.pts[:10])

    assert scan_video(path, "known.mp4", index, index.pts[:10], first) is first
    assert scan_video(path, "known.mp4", index, index.pts[:11], first) is not first
    write_video(path, CONSTANT[:-1])
    again = scan_video(path, "known.mp4", read_index(path), index.pts[:10], first)
    assert again.entry.sha256 != first.entry.sha256
    assert (first.entry.width, first.entry.height) == (96, 64)


def test_times_start_at_the_first_frame(folder: Path) -> None:
    path = write_video(folder / "late.mkv", [700, 800, 900])
    assert read_index(path).times == [Fraction(0), Fraction(1, 10), Fraction(1, 5)]
