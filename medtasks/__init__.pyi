from medtasks.analysis.columns import Table as Table
from medtasks.analysis.results import Board as Board
from medtasks.analysis.results import Ranks as Ranks
from medtasks.analysis.results import board as board
from medtasks.analysis.results import compare as compare
from medtasks.analysis.results import plan as plan
from medtasks.analysis.results import plot as plot
from medtasks.analysis.results import rank as rank
from medtasks.analysis.runs import Run as Run
from medtasks.analysis.runs import Runs as Runs
from medtasks.analysis.runs import open as open
from medtasks.analysis.scoring import evaluate as evaluate
from medtasks.analysis.scoring import score as score

__version__: str
