"""The means of segments, shrunk.

An arm's mean in a segment, less its mean in all rounds, less what the segment's arms have in
common, is a difference r. It counts by the share that is not noise, n * variety / (n * variety +
noise), with n losses seen. Noise is the variance within segments and variety that between them, by
the analysis of variance with unequal counts.

Searle, S. R., Casella, G. and McCulloch, C. E. (1992). Variance Components. Wiley.
"""

from ...kernels.jit import compiled
from ...kernels.state import State
from ..ladder.state import START
from .state import R, S

LEVEL_PRIOR = 2.0  # so many losses of a segment count for its level as much as none at all


@compiled
def segment_level(state: State) -> float:
    """The mean difference between a segment's losses and all rounds' means; 0 if none was seen."""
    floats = state.floats
    sum_of_differences = 0.0
    count = 0.0
    for arm in range(floats.shape[1]):
        seen = floats[R.segment_counts, arm]
        sum_of_differences += seen * (floats[R.segment_means, arm] - floats[R.means, arm])
        count += seen
    return sum_of_differences / count if count > 0.0 else 0.0


@compiled
def note_segment(state: State) -> None:
    """Put the current differences of the segment at hand into the sums over all segments."""
    floats = state.floats
    scalars = state.scalars
    level = segment_level(state)
    squares = 0.0
    cells = 0.0
    count = 0.0
    counts_squared = 0.0
    for arm in range(floats.shape[1]):
        seen = floats[R.segment_counts, arm]
        if seen > 0.0:
            apart = floats[R.segment_means, arm] - floats[R.means, arm] - level
            squares += seen * apart * apart
            cells += 1.0
            count += seen
            counts_squared += seen * seen
    free = max(cells - 1.0, 0.0)
    size = count - counts_squared / count if count > 0.0 else 0.0
    scalars[S.between] += squares - scalars[S.segment_between]
    scalars[S.between_free] += free - scalars[S.segment_between_free]
    scalars[S.between_size] += size - scalars[S.segment_between_size]
    scalars[S.segment_between] = squares
    scalars[S.segment_between_free] = free
    scalars[S.segment_between_size] = size


@compiled
def fill_values(state: State) -> None:
    """Fill every arm's shrunk mean in the segment at hand, less the level of the segment."""
    floats = state.floats
    scalars = state.scalars
    noise = scalars[S.within] / scalars[S.within_free] if scalars[S.within_free] > 0.0 else 0.0
    variety = 0.0
    if scalars[S.between_size] > 0.0:
        excess = scalars[S.between] - scalars[S.between_free] * noise
        variety = max(excess / scalars[S.between_size], 0.0)
    level = segment_level(state)
    count = 0.0
    for arm in range(floats.shape[1]):
        value = floats[R.means, arm]
        if floats[R.counts, arm] == 0.0:  # nobody has seen it
            value = START + scalars[S.rise]
        seen = floats[R.segment_counts, arm]
        count += seen
        if seen > 0.0 and variety > 0.0:
            apart = floats[R.segment_means, arm] - value - level
            value += apart * seen * variety / (seen * variety + noise)
        floats[R.value, arm] = value
    scalars[S.noise] = noise
    scalars[S.variety] = variety
    scalars[S.segment_level] = level * count / (count + LEVEL_PRIOR)
