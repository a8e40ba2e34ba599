"""Miniature data: procedural pictures and rows in the release formats, made on demand, prepared as real ones are."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from medtasks.cache import cache_root
from medtasks.data.mini.kvasir import write_kvasir_source
from medtasks.data.mini.mi_cxr import write_mi_cxr_source
from medtasks.errors import UsageError

__all__ = ["MINI_VERSION", "prepare_mini", "write_kvasir_source", "write_mi_cxr_source"]

MINI_VERSION = "1"
"""Changes whenever a picture or a row does."""


def prepare_mini(benchmark: str) -> Path:
    """Folder of the prepared miniature data of ``benchmark``, generated and prepared now where absent.

    Safe when several processes come at once: each works in a folder of its own, and the first one to finish wins.

    Raises:
        UsageError: there is no miniature of that name.
    """
    from medtasks.data.prepare import prepare_kvasir, prepare_mi_cxr

    if benchmark not in ("kvasir_vqa_x1", "mi_cxr"):
        raise UsageError(f"there are no miniature data of {benchmark!r}; choose kvasir_vqa_x1 or mi_cxr.")
    # the process-wide key keeps a folder made by another version of the generators from being taken for this one
    target = cache_root() / f"mini-{MINI_VERSION}" / benchmark
    prepared = target / "prepared"
    if (prepared / "manifest.json").is_file():
        return prepared
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{benchmark}."))
    try:
        source = work / "source"
        if benchmark == "kvasir_vqa_x1":
            write_kvasir_source(source)
            prepare_kvasir(str(source), work / "prepared", images=source / "images", relative=True, mini=True)
        else:
            write_mi_cxr_source(source)
            rows = [source / "micxr_test.jsonl", source / "micxr_icr_variant.jsonl"]
            prepare_mi_cxr(rows, source, work / "prepared", relative=True, mini=True)
        work.chmod(0o755)
        os.rename(work, target)  # noqa: PTH104 - fails on a folder that is not empty, where Path.replace may not
    except OSError:
        if not (prepared / "manifest.json").is_file():
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return prepared
