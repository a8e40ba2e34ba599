"""NLTK, imported without SciPy's statistics and scikit-learn.

They are three quarters of its import time and 140 MB, for association measures and classifiers. NLTK does without them
where they are not installed; whoever needs those parts imports NLTK first.
"""

from __future__ import annotations

import sys

_LEFT_OUT = [name for name in ("scipy", "scipy.stats", "sklearn") if name not in sys.modules]

sys.modules.update(dict.fromkeys(_LEFT_OUT))  # type: ignore[arg-type]  # None: cannot be imported
try:
    import nltk as nltk
finally:
    for name in _LEFT_OUT:
        del sys.modules[name]
