"""``medtasks fetch`` through NLTK's downloader, from a local server in place of NLTK's."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nltk
import pytest
from local_server import LocalServer
from typer.testing import CliRunner

from medtasks.cli.app import app
from medtasks.core.errors import MedtasksError

FILES = {
    "wordnet": ("corpora", "wordnet/data.noun"),
    "punkt_tab": ("tokenizers", "punkt_tab/english/sent_starters.txt"),
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """NLTK's only data directory; the local server's address would be refused as an internal
    one.
    """
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path / "data")])
    monkeypatch.setattr(nltk.pathsec, "ENFORCE", False)
    return tmp_path / "data"


@pytest.fixture
def index() -> Iterator[str]:
    """The address of an index with the two packages."""
    served: dict[str, bytes] = {}
    with LocalServer(lambda path, _: (200, {}, served[path])) as server:
        entries = []
        for name, (folder, member) in FILES.items():
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                archive.writestr(member, "invented")
            content = served[f"/{name}.zip"] = stream.getvalue()
            sha256, md5 = hashlib.sha256(content).hexdigest(), hashlib.md5(content).hexdigest()
            entries.append(
                f'<package id="{name}" name="{name}" subdir="{folder}" url="{server.url}/{name}.zip" unzip="1" '
                f'size="{len(content)}" unzipped_size="8" sha256_checksum="{sha256}" checksum="{md5}"/>'
            )
        packages = f"<packages>{''.join(entries)}</packages>"
        served["/index.xml"] = f"<nltk_data>{packages}<collections/></nltk_data>".encode()
        yield f"{server.url}/index.xml"


@pytest.mark.filterwarnings("ignore:Security Violation:RuntimeWarning")
def test_one_package_or_both_are_fetched(data: Path, index: str) -> None:
    CliRunner().invoke(app, ["fetch", "punkt", "--index", index], catch_exceptions=False)
    assert (data / "tokenizers").is_dir()
    assert not (data / "corpora").exists()
    done = CliRunner().invoke(app, ["fetch", "--index", index], catch_exceptions=False)
    assert done.stdout.splitlines() == [f"wordnet: in {data}", f"punkt: in {data}"]
    for folder, member in FILES.values():
        assert (data / folder / member).read_text() == "invented"


@pytest.mark.filterwarnings("ignore:Security Violation:RuntimeWarning")
def test_without_a_server_it_fails_with_one_sentence(
    data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        MedtasksError, match=r"wordnet: cannot be fetched .*; check the network, or name a mirror"
    ):
        CliRunner().invoke(
            app,
            ["fetch", "wordnet", "--index", "http://127.0.0.1:9/index.xml"],
            catch_exceptions=False,
        )
    assert not list(data.iterdir())
    assert capfd.readouterr().err == ""  # NLTK would print the same error on several lines
