"""Writes the numbers of the package `ppi-python` with which the tests compare corrected scores.

``ppi-python`` needs numba, pandas, scikit-learn and statsmodels, so it is in no environment of
ours. To repeat the file:

    python -m venv ppi && ppi/bin/pip install ppi-python==0.2.3
    ppi/bin/python training/prediction_powered_golden.py tests/stats/golden/prediction_powered.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from ppi_py.ppi import _calc_lam_glm

LABELLED, UNLABELLED, GRADES = 60, 400, 5


def digits(grades: np.ndarray) -> str:
    """Whole numbers from 0 to 9 as a text."""
    return "".join(map(str, grades.tolist()))


def case(name: str, labels: np.ndarray, judged: np.ndarray) -> dict[str, object]:
    """The inputs and what the package makes of them: λ, the mean and its 95 % interval."""
    human, verdicts = labels[:LABELLED] / GRADES, judged / GRADES
    labelled, unlabelled = verdicts[:LABELLED], verdicts[LABELLED:]
    mean = unlabelled.mean() + (human - labelled).mean()
    tuning = _calc_lam_glm(
        human - mean, labelled - mean, unlabelled - mean, np.eye(1), coord=None, clip=True
    )
    low, high = ppi_mean_ci(human, labelled, unlabelled, alpha=0.05)
    estimate = ppi_mean_pointestimate(human, labelled, unlabelled)
    return {
        "name": name,
        "human": digits(labels[:LABELLED]),
        "judged": digits(judged),
        "tuning": float(tuning),
        "estimate": float(np.squeeze(estimate)),
        "interval": [float(np.squeeze(low)), float(np.squeeze(high))],
    }


def cases() -> list[dict[str, object]]:
    draw = np.random.default_rng(7)
    size = LABELLED + UNLABELLED
    labels = draw.integers(0, GRADES + 1, size)
    steps = draw.integers(-1, 2, size)
    binary = GRADES * (draw.random(size) < 0.7).astype(np.int64)
    flipped = np.where(draw.random(size) < 0.25, GRADES - binary, binary)
    return [
        case("a good judge of grades", labels, np.clip(labels + steps, 0, GRADES)),
        case("a lenient judge of grades", labels, np.clip(labels + steps + 1, 0, GRADES)),
        case("a judge of right and wrong", binary, flipped),
        case("a useless judge", labels, draw.integers(0, GRADES + 1, size)),
        case("a contrary judge", labels, GRADES - labels),
    ]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(cases(), indent=1) + "\n", encoding="utf-8")
