"""What a rater asks for, compared with what the rater's file was begun with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.judge.rating_file import RatingFile, rating_path, read_rating_file
from medtasks.judge.rating_records import RatingPlan

SAMPLE = 200
OVERLAP = 50
SEED = 0


@dataclass(frozen=True)
class RatingOptions:
    """The options of `medtasks rate`; None for those that are not given.

    ``folder`` is that of all ratings.
    """

    rubric: str
    rater: str
    folder: Path
    sample: int | None = None
    seed: int | None = None
    overlap: int | None = None
    hide_reference: bool | None = None

    @property
    def path(self) -> Path:
        """The rater's file."""
        return rating_path(self.folder, self.rubric, self.rater)

    def require_same(self, plan: RatingPlan, rubric_hash: str) -> None:
        """Refuse options that differ from those of the file; only the sample may be larger.

        Raises:
            UsageError: an option, the rater or the rubric differs, or the sample is smaller.
        """
        if plan.rater != self.rater:
            raise self._differs(
                f"--rater {self.rater}", f"--rater {plan.rater}", "restore the name of that file"
            )
        if plan.rubric_hash != rubric_hash:
            raise self._differs(
                f"rubric {self.rubric}", f"another version of it ({plan.rubric_hash})", "restore it"
            )
        if self.seed is not None and self.seed != plan.seed:
            expected = f"--seed {plan.seed}"
            raise self._differs(f"--seed {self.seed}", expected, f"give {expected}")
        if self.overlap is not None and self.overlap != plan.overlap:
            expected = f"--overlap {plan.overlap}"
            raise self._differs(f"--overlap {self.overlap}", expected, f"give {expected}")
        if self.hide_reference is not None and self.hide_reference != plan.hide_reference:
            names = {True: "--hide-reference", False: "--show-reference"}
            expected = names[plan.hide_reference]
            raise self._differs(names[self.hide_reference], expected, f"give {expected}")
        if self.sample is not None and self.sample < plan.samples[-1]:
            expected = f"--sample {plan.samples[-1]}"
            raise self._differs(
                f"--sample {self.sample}", expected, f"give {expected} or more, or stop earlier"
            )

    def _differs(self, option: str, begun_with: str, fix: str) -> UsageError:
        """The error that an option differs from that of the file."""
        return UsageError(
            f"{option}: {self.path} was begun with {begun_with}; {fix}, or give another folder "
            "with --ratings."
        )

    def require_joinable(self, plan: RatingPlan) -> None:
        """Refuse a new file that could not be joined with those of other raters in its folder.

        Raises:
            UsageError: another file has other options or was drawn from other answers.
        """
        for path in sorted(self.path.parent.glob("*.jsonl")):
            if path != self.path:
                self._require_joinable_with(read_rating_file(path), plan)

    def _require_joinable_with(self, file: RatingFile, plan: RatingPlan) -> None:
        """Refuse a new plan that does not go with the file of another rater."""
        end = "or give another folder with --ratings, whose ratings are not joined with these."
        for name in ("seed", "overlap"):
            value, expected = getattr(plan, name), getattr(file.plan, name)
            if value != expected:
                raise UsageError(
                    f"--{name} {value}: {file.path} was begun with --{name} {expected}; give that, "
                    f"{end}"
                )
        if file.plan.hide_reference != plan.hide_reference:
            option = "--hide-reference" if file.plan.hide_reference else "--show-reference"
            raise UsageError(f"{file.path} was begun with {option}; give that, {end}")
        if (file.plan.rubric_hash, file.plan.frame) != (plan.rubric_hash, plan.frame):
            raise UsageError(
                f"{file.path} was drawn from other answers, or before they or the rubric changed "
                f"or were judged; give the same results, {end}"
            )
