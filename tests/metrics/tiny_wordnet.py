"""A dictionary folder of a few synsets in WordNet's own file format."""

from __future__ import annotations

from pathlib import Path

SYNSETS = {
    "noun": [["polyp", "growth"], ["image", "picture"]],
    "verb": [["see", "observe"]],
    "adj": [["red", "crimson"]],
    "adv": [["here"]],
}
LEXNAMES = "".join(f"{number:02d}\tany\t1\n" for number in range(45))
"""NLTK's table of the lexicographer files, with other names than theirs."""
CODES = {"noun": ("n", 3), "verb": ("v", 39), "adj": ("a", 0), "adv": ("r", 2)}


def write_tiny_wordnet(folder: Path, version: str = "3.0") -> Path:
    """Write every file NLTK wants but ``lexnames``; returns the folder."""
    folder.mkdir(parents=True)
    for part, synsets in SYNSETS.items():
        code, category = CODES[part]
        data, index = f"  1 WordNet {version} Copyright 2006 by nobody.  \n", "  1 a comment\n"
        for words in synsets:
            offset = len(data)
            members = "".join(f" {word} 0" for word in words)
            frames = " 00" if part == "verb" else ""
            data += f"{offset:08d} {category:02d} {code} {len(words):02x}{members} 000{frames} | a gloss  \n"
            index += "".join(f"{word} {code} 1 0 1 0 {offset:08d}  \n" for word in words)
        (folder / f"data.{part}").write_text(data)
        (folder / f"index.{part}").write_text(index)
        (folder / f"{part}.exc").write_text("saw see\n" if part == "verb" else "")
    return folder
