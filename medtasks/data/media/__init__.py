"""Pictures and videos: strict decoding, bounded caches, and an index that verifies every file once."""

from __future__ import annotations

from medtasks.data.media.frames import FrameStore, default_frames
from medtasks.data.media.images import (
    ImageCache,
    KnownMedia,
    MediaEntry,
    VideoFacts,
    decode_image,
    decoding_threads,
    default_cache,
    index_media,
    load_image,
    read_picture,
)
from medtasks.data.media.scan import KnownVideo, scan_video
from medtasks.data.media.video import VideoIndex, VideoReader, read_index

__all__ = [
    "FrameStore",
    "ImageCache",
    "KnownMedia",
    "KnownVideo",
    "MediaEntry",
    "VideoFacts",
    "VideoIndex",
    "VideoReader",
    "decode_image",
    "decoding_threads",
    "default_cache",
    "default_frames",
    "index_media",
    "load_image",
    "read_index",
    "read_picture",
    "scan_video",
]
