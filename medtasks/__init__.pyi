from medtasks.python_api.audits import Audit as Audit
from medtasks.python_api.audits import audit as audit
from medtasks.python_api.boards import ExportableBoard as ExportableBoard
from medtasks.python_api.boards import board as board
from medtasks.python_api.columns import Table as Table
from medtasks.python_api.comparisons import compare as compare
from medtasks.python_api.comparisons import plan as plan
from medtasks.python_api.figures import plot as plot
from medtasks.python_api.ranks import Ranks as Ranks
from medtasks.python_api.ranks import rank as rank
from medtasks.python_api.reward import Reward as Reward
from medtasks.python_api.reward import reward as reward
from medtasks.python_api.runs import Run as Run
from medtasks.python_api.runs import Runs as Runs
from medtasks.python_api.runs import open as open
from medtasks.python_api.scoring import evaluate as evaluate
from medtasks.python_api.scoring import score as score
from medtasks.python_api.trackers import log as log

__version__: str
