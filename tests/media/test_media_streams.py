"""Videos as cameras and editors write them: covers, sound, several streams, mirrored frames, oblong
pixels.
"""

from __future__ import annotations

from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from encoded_pictures import saved
from encoded_videos import FOUR, Clip, Film, quarters, with_display_matrix, write_film
from PIL.Image import Image, fromarray
from time_coded import shown

from medtasks.core.errors import MediaError
from medtasks.data.media import frame_geometry
from medtasks.data.media.frame_store import FrameStore
from medtasks.data.media.images import VideoFacts
from medtasks.data.media.video_check import scan_video
from medtasks.data.media.video_index import read_index
from medtasks.data.media.video_reader import VideoReader

TIMES = list(range(0, 4000, 100))
STILL = Clip(
    [0],
    codec="mjpeg",
    pixel_format="yuvj420p",
    picture=np.full((120, 160, 3), 200, np.uint8),
    size=(160, 120),
)


def frames(path: Path) -> list[Image]:
    """All frames of the video."""
    index = read_index(path)
    with closing(VideoReader(path, index.keyframes, index.stream)) as reader:
        return [picture for _, picture in reader.read(index.pts)]


def first_frame(path: Path) -> Image:
    return frames(path)[0]


def times(path: Path) -> list[Fraction]:
    return read_index(path).times


COVERS = {
    "an attached cover.mp4": Film([Clip(TIMES)], cover=True, sound=2),
    "a picture track first.mkv": Film([STILL, Clip(TIMES)]),
    "a picture track first that is the default.mkv": Film(
        [Clip([0], "mjpeg", "yuvj420p", default=True), Clip(TIMES)]
    ),
    "a small preview first.mkv": Film(
        [Clip(TIMES[:30], picture=FOUR[::2, ::2], size=(48, 32)), Clip(TIMES)]
    ),
    "a large extra that is not the default.mkv": Film(
        [
            Clip(TIMES[:30], picture=np.tile(FOUR, (2, 2, 1)), size=(192, 128)),
            Clip(TIMES, default=True),
        ]
    ),
}


@pytest.mark.parametrize("name", COVERS)
def test_the_video_is_taken_and_not_what_is_beside_it(name: str, tmp_path: Path) -> None:
    path = write_film(tmp_path / name, COVERS[name])
    assert [shown(frame) for frame in frames(path)] == TIMES
    assert [float(time) * 1000 for time in times(path)] == TIMES


def test_the_stream_is_remembered_with_the_prepared_data(tmp_path: Path) -> None:
    path = write_film(tmp_path / "v.mkv", Film([STILL, Clip(TIMES)]))
    index = read_index(path)
    entry = scan_video(path, "v.mkv", index, index.pts[:3]).entry
    assert entry.video is not None
    kept = VideoFacts.model_validate_json(entry.video.model_dump_json(exclude_none=True))
    assert kept.stream == 1
    assert [shown(picture) for picture in FrameStore().load(path, kept, index.pts[5:7])] == TIMES[
        5:7
    ]
    plain = write_film(tmp_path / "plain.mkv", Film([Clip(TIMES)]))
    assert "stream" not in read_index(plain).facts.model_dump(exclude_none=True)


@pytest.mark.parametrize(
    ("film", "held"),
    [(Film(cover=True, sound=1), "has sound and a cover picture"), (Film(sound=1), "has sound")],
)
def test_sound_is_said_to_be_sound(film: Film, held: str, tmp_path: Path) -> None:
    path = write_film(tmp_path / "sound.mp4", film)
    with pytest.raises(MediaError, match=rf"sound\.mp4: {held}, but no video stream"):
        read_index(path)


LATE = [time + 500 for time in TIMES]


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_time_0_is_where_sound_begins_that_starts_before_the_pictures(
    suffix: str, tmp_path: Path
) -> None:
    path = write_film(tmp_path / f"v.{suffix}", Film([Clip(LATE)], sound=4))
    assert [float(time) * 1000 for time in times(path)] == LATE
    assert [shown(frame) for frame in frames(path)] == LATE


def test_time_0_of_a_transport_stream_is_where_its_first_stream_begins(tmp_path: Path) -> None:
    silent = write_film(tmp_path / "silent.ts", Film([Clip(LATE)], options={"mpegts_copyts": "1"}))
    assert [float(time) * 1000 for time in times(silent)] == TIMES
    with_sound = write_film(tmp_path / "sound.ts", Film([Clip(LATE)], sound=4))
    # the encoder of sound shifts all streams by its priming samples, of which players play what is
    # there
    assert float(times(with_sound)[0]) == pytest.approx(0.5, abs=0.03)


def test_time_0_is_the_first_frame_where_sound_begins_later_or_only_primes_the_decoder(
    tmp_path: Path,
) -> None:
    early = write_film(tmp_path / "v.mkv", Film([Clip(TIMES)], sound=4))  # sound from -23 ms on
    assert times(early)[0] == 0


def test_frames_in_avi_begin_at_0_because_it_has_no_times(tmp_path: Path) -> None:
    path = write_film(
        tmp_path / "v.avi", Film([Clip(TIMES)], sound=2)
    )  # FFmpeg dates the first frame one frame late
    assert times(path)[0] == 0


def test_h264_with_b_frames_in_avi_is_refused_by_name(tmp_path: Path) -> None:
    path = write_film(tmp_path / "v.avi", Film([Clip(TIMES, b_frames=2)]))
    with pytest.raises(
        MediaError,
        match=r"v\.avi: its frames have no timestamps of their own \(h264 with B-frames in",
    ):
        read_index(path)
    same = write_film(tmp_path / "v.mp4", Film([Clip(TIMES, b_frames=2)]))
    assert [shown(frame) for frame in frames(same)] == TIMES


@pytest.mark.parametrize(("codec", "b_frames"), [("libx264", 0), ("mpeg4", 0), ("mpeg4", 2)])
def test_frames_in_avi_whose_order_is_known_show_their_own_time(
    codec: str, b_frames: int, tmp_path: Path
) -> None:
    path = write_film(tmp_path / "v.avi", Film([Clip(TIMES, codec=codec, b_frames=b_frames)]))
    assert [shown(frame) for frame in frames(path)] == TIMES
    assert [float(time) * 1000 for time in times(path)] == TIMES


MATRICES = {
    "as it is": ((1, 0, 0, 1), "rgkb"),
    "mirrored": ((-1, 0, 0, 1), "grbk"),
    "upside down and mirrored": ((1, 0, 0, -1), "kbrg"),
    "turned by 180 degrees": ((-1, 0, 0, -1), "bkgr"),
    "turned clockwise": ((0, 1, -1, 0), "krbg"),
    "turned counter-clockwise": ((0, -1, 1, 0), "gbrk"),
    "mirrored and turned": ((0, 1, 1, 0), "rkgb"),
    "mirrored and turned the other way": ((0, -1, -1, 0), "bgkr"),
    "scaled": ((2, 0, 0, 2), "rgkb"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_frames_are_turned_and_mirrored_as_the_container_says(name: str, tmp_path: Path) -> None:
    matrix, right = MATRICES[name]
    path = write_film(tmp_path / "v.mp4", Film([Clip(TIMES[:3], picture=FOUR)]))
    found = first_frame(with_display_matrix(path, matrix, tmp_path / "turned.mp4"))
    assert quarters(found) == right
    assert found.size == ((64, 96) if matrix[0] == 0 else (96, 64))


def test_a_frame_turned_by_45_degrees_is_refused(tmp_path: Path) -> None:
    path = write_film(tmp_path / "v.mp4", Film([Clip(TIMES[:3], picture=FOUR)]))
    with pytest.raises(MediaError, match="by an angle that is no multiple of 90 degrees"):
        first_frame(with_display_matrix(path, (0.7, 0.7, -0.7, 0.7), tmp_path / "turned.mp4"))


@pytest.mark.parametrize(
    ("suffix", "aspect", "size"),
    [
        ("mp4", Fraction(2), (192, 64)),
        ("mkv", Fraction(1, 2), (96, 128)),
        ("mkv", Fraction(16, 15), (102, 64)),
    ],
)
def test_oblong_pixels_become_square(
    suffix: str, aspect: Fraction, size: tuple[int, int], tmp_path: Path
) -> None:
    path = write_film(
        tmp_path / f"v.{suffix}", Film([Clip(TIMES[:3], picture=FOUR, aspect=aspect)])
    )
    index = read_index(path)
    entry = scan_video(path, "v", index, index.pts).entry
    assert first_frame(path).size == (entry.width, entry.height) == size
    assert quarters(first_frame(path)) == "rgkb"


def test_an_absurd_aspect_ratio_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_film(tmp_path / "v.mkv", Film([Clip(TIMES[:3], aspect=Fraction(9))]))
    monkeypatch.setattr(frame_geometry, "MAX_PIXELS", 50_000)
    with pytest.raises(
        MediaError,
        match=r"an aspect ratio of 9, which makes frames of 864 × 64 pixels, more than the",
    ):
        first_frame(path)


def test_transparent_parts_of_frames_are_white(tmp_path: Path) -> None:
    clear = np.dstack([FOUR, np.full(FOUR.shape[:2], 255, np.uint8)])
    clear[32:, :48, 3] = 0
    path = write_film(tmp_path / "v.mov", Film([Clip(TIMES[:3], "qtrle", "argb", picture=clear)]))
    assert quarters(first_frame(path)) == "rgwb"


def test_frames_of_16_bits_are_refused_and_of_10_bits_are_scaled(tmp_path: Path) -> None:
    deep = write_film(
        tmp_path / "deep.mkv", Film([Clip(TIMES[:3], "ffv1", "gray16le", picture=FOUR)])
    )
    with pytest.raises(
        MediaError,
        match=r"deep\.mkv: its values have 16 bits, and nothing says which of them are black",
    ):
        read_index(deep)
    ten = write_film(
        tmp_path / "ten.mkv", Film([Clip(TIMES[:3], pixel_format="yuv420p10le", picture=FOUR)])
    )
    assert quarters(first_frame(ten)) == "rgkb"


@pytest.mark.parametrize(
    ("container", "codec", "gap"),
    [("h264", "libx264", 100), ("m4v", "mpeg4", 100), ("mpeg2video", "mpeg2video", 40)],
)
def test_raw_streams_are_not_supported(
    container: str, codec: str, gap: int, tmp_path: Path
) -> None:
    write_film(tmp_path / "v.mp4", Film([Clip(range(0, 5 * gap, gap), codec)], container=container))
    with pytest.raises(
        MediaError,
        match=r"v\.mp4: is a raw video stream without timestamps, which is not supported",
    ):
        read_index(tmp_path / "v.mp4")


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "JPEG"])
def test_animated_and_other_pictures_are_not_supported_as_videos(kind: str, tmp_path: Path) -> None:
    several = {"save_all": True, "append_images": [fromarray(FOUR[::-1])]} if kind != "JPEG" else {}
    (tmp_path / "v.mp4").write_bytes(saved(FOUR, kind, **several))
    with pytest.raises(
        MediaError, match=r"v\.mp4: is a picture or an animation, which is not supported as a video"
    ):
        read_index(tmp_path / "v.mp4")


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"#EXTM3U\nother.ts\n", "a playlist"),
        (bytes(128) + b"DICM", "a DICOM file"),
        (b"<!DOCTYPE html>", "a web page"),
    ],
)
def test_other_files_are_named(head: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / "v.mp4").write_bytes(head)
    with pytest.raises(MediaError, match=rf"v\.mp4: is {name}, which is not supported as a video"):
        read_index(tmp_path / "v.mp4")
