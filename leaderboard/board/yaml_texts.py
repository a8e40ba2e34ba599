"""YAML files of names and figures: scalars stay text, duplicate keys are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from medtasks.core.errors import DataError


class _Loader(yaml.SafeLoader):
    """``0.530`` keeps its digits and ``no`` is not a boolean; only ``null`` is special."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if repeated := sorted(str(key) for key in keys if keys.count(key) > 1):
            mark = node.start_mark
            raise yaml.constructor.ConstructorError(None, None, f"key {repeated[0]!r} is duplicated", mark)
        return super().construct_mapping(node, deep)


def load_texts(path: Path) -> Any:
    """The content of the YAML file ``path``.

    Raises:
        DataError: it cannot be read, or a key is duplicated.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError, TypeError) as error:
        found = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not a readable YAML file ({found}); fix or restore it.") from error
