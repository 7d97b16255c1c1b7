# Every policy of the package, one line each. Its export, its page of the documentation and its
# tests follow from that line.
# Type checkers read this file, and so does the package at run time: see base/lazy.py.
from .avner import AvnerExp3 as AvnerExp3
from .base import Policy as Policy
from .centred.policy import CentredFTPL as CentredFTPL
from .contextual.policy import ContextualLadder as ContextualLadder
from .coupled_exp3 import CoupledExp3 as CoupledExp3
from .coupled_ftpl import CoupledFTPL as CoupledFTPL
from .coupled_tsallis import CoupledTsallisINF as CoupledTsallisINF
from .exp3 import Exp3 as Exp3
from .forgetting import Forgetting as Forgetting
from .ftpl import FTPL as FTPL
from .jin import JinHybrid as JinHybrid
from .ladder.policy import Ladder as Ladder
from .means import UCB1 as UCB1
from .means import FollowTheLeader as FollowTheLeader
from .means import ThompsonSampling as ThompsonSampling
from .top_two import TopTwo as TopTwo
from .tsallis import TsallisINF as TsallisINF
