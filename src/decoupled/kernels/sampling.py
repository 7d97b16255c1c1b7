"""Where version 0.1.0 had these functions; new code imports them from `decoupled.extend`."""

from .random.sampling import categorical as categorical
from .random.sampling import draw_both as draw_both
from .random.sampling import draw_one as draw_one
from .random.sampling import failures as failures
from .random.sampling import frechet_leader as frechet_leader
from .random.sampling import inverse_root_excess as inverse_root_excess
from .random.sampling import log_of_rest as log_of_rest
from .random.sampling import pareto_excess as pareto_excess
from .random.sampling import pareto_leader as pareto_leader
from .random.sampling import total as total
