"""The functions with which the task files score replies, one for each set of metrics."""

from __future__ import annotations

from medtasks.api import scored_by

medico = scored_by()
medvqa_gi = scored_by()
medreason_mcq = scored_by()
medreason_open = scored_by()
