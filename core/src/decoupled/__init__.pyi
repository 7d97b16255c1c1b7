# What the package exports, for type checkers and at run time: see base/lazy.py.
from . import environments as environments
from . import inference as inference
from . import testing as testing
from .base.vectors import hash_text as hash_text
from .base.vectors import project as project
from .client import Client as Client  # needs httpx
from .decision import Decision as Decision
from .decision import Served as Served
from .errors import ArmError as ArmError
from .errors import ContractError as ContractError
from .errors import DecoupledError as DecoupledError
from .errors import FeedbackError as FeedbackError
from .errors import LossError as LossError
from .errors import MissingExtraError as MissingExtraError
from .errors import ParameterError as ParameterError
from .errors import ReentryError as ReentryError
from .errors import StateError as StateError
from .errors import StorageError as StorageError
from .errors import UnseenArmWarning as UnseenArmWarning
from .errors import UnsupportedError as UnsupportedError
from .inference import Evaluation as Evaluation
from .inference import evaluate as evaluate
from .learner.budget import Budget as Budget
from .learner.budget import Meter as Meter
from .learner.guardrails import Guardrails as Guardrails
from .learner.labels import Labels as Labels
from .learner.learner import Learner as Learner
from .learner.losses import preference_loss as preference_loss
from .policies import *  # noqa: F403
from .policies.python import PythonPolicy as PythonPolicy
from .simulation import Results as Results
from .simulation import baselines as baselines
from .simulation import simulate as simulate
from .simulation.traffic import Traffic as Traffic

__version__: str
