"""The page on the package index: README.md with links that work there, and the project's addresses.

README.md links to files of the repository, and an index cannot follow relative links. The release
workflow sets ``MEDTASKS_REPOSITORY`` (https://host/owner/name) and ``MEDTASKS_REVISION`` (a tag):
links then lead to these files at this revision. In other builds, links become plain text and
images are left out. Everything else is declared in pyproject.toml.
"""

import os
import re
from pathlib import Path

from setuptools import setup

RELATIVE_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)]+)\)")


def index_page(readme: str, repository: str, revision: str) -> str:
    """``readme`` with absolute links, or without relative ones if there is no ``repository``."""

    def absolute_link(link: re.Match[str]) -> str:
        image, text, path = link.group("image", "text", "path")
        if repository:
            view = "raw" if image else "blob"
            return f"{image}[{text}]({repository}/{view}/{revision}/{path})"
        return "" if image else text

    return RELATIVE_LINK.sub(absolute_link, readme)


def project_urls(repository: str, revision: str) -> dict[str, str]:
    """The addresses that an index shows beside the page."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/{revision}/docs/index.md",
        "Changelog": f"{repository}/blob/{revision}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


repository = os.environ.get("MEDTASKS_REPOSITORY", "")
revision = os.environ.get("MEDTASKS_REVISION", "main")
setup(
    long_description=index_page(Path("README.md").read_text("utf-8"), repository, revision),
    long_description_content_type="text/markdown",
    project_urls=project_urls(repository, revision),
)
