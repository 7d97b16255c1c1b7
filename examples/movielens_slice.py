"""An exploration slice in front of a recommender, on MovieLens 100K.

A film is recommended on the front page. A small slice of the visitors sees a film that the learner wants
to know about (`explore`), and their stars are the feedback. Everybody else sees the film that the learner
holds to be the best (`exploit`); their stars are not asked for. So the front page is not a laboratory,
and what the slice costs is known beforehand.

    DECOUPLED_DATA=ml-100k python examples/movielens_slice.py

needs MovieLens 100K, which may not be passed on: `--help` says where it is looked for. With --stand-in it
runs on generated ratings of the same shape.
"""

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass

import decoupled as dc
from decoupled.environments import movielens

STARS = (1.0, 5.0)


@dataclass(frozen=True)
class Evening:
    """What the visitors saw: mean stars of those served, of the slice, of the best film and of any film."""

    served: float
    slice: float
    best: float
    any: float
    shown: Counter[str]  # how often each film was served in the last quarter


def recommend(films: dc.environments.MovieLens, visits: int, share: float, seed: int = 0) -> Evening:
    """Send visitors, in the order in which they rated, past the front page."""
    chance = random.Random(seed)
    titles, oracle = films.titles(), films.oracle()
    stars = 1.0 + 4.0 * oracle.rewards[:, : films.arms]  # what each user would give each film
    place = {title: number for number, title in enumerate(titles)}
    learner = dc.FTPL.recommended().start(arms=titles, seed=seed, loss_range=STARS)
    served, slice_, shown = [], [], Counter[str]()
    users = [int(user) for user in oracle.sequence[:visits]]
    for visit, user in enumerate(users):
        if chance.random() < share:
            decision = learner.explore()
            seen = float(stars[user, place[str(decision.explore)]])
            learner.observe(decision, reward=seen)
            slice_.append(seen)
        else:
            film = str(learner.exploit())
            served.append(float(stars[user, place[film]]))
            shown[film] += visit >= 0.75 * visits
    everyone = stars[users].mean(axis=0)
    return Evening(
        served=sum(served) / len(served),
        slice=sum(slice_) / len(slice_),
        best=float(everyone.max()),
        any=float(everyone.mean()),
        shown=shown,
    )


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(
        description="An exploration slice in front of a recommender.",
        epilog="MovieLens 100K (u.data, and u.item for titles) is looked for in the folder that DECOUPLED_DATA "
        "names, or in ml-100k within it, then in the cache of this package.",
    )
    parser.add_argument("--films", type=int, default=32, help="the most rated so many films")
    parser.add_argument("--visits", type=int, default=50_000)
    parser.add_argument("--slice", type=float, default=0.05, help="share of the visits that explore")
    parser.add_argument(
        "--stand-in", action="store_true", help="generated ratings, for a look without data"
    )
    options = parser.parse_args()
    if not options.stand_in:
        try:
            movielens.find(fetch=False)
        except dc.DecoupledError as missing:  # not there, or not what it should be
            print(f"MovieLens 100K is not here, and --stand-in runs without it: {missing}", file=sys.stderr)
            sys.exit(2)
    data = "stand-in" if options.stand_in else "ml-100k"
    films = dc.environments.MovieLens(arms=options.films, data=data)
    evening = recommend(films, options.visits, options.slice)
    print(f"{options.visits:,} visits, {options.slice:.0%} of them explore, {options.films} films ({data})")
    print(f"  stars where the front page was served  {evening.served:.3f}")
    print(f"  stars in the slice                     {evening.slice:.3f}")
    print(f"  stars of the best single film          {evening.best:.3f}")
    print(f"  stars of a film at random              {evening.any:.3f}")
    print("served most in the last quarter:")
    for film, times in evening.shown.most_common(3):
        print(f"  {times / evening.shown.total():4.0%}  {film}")


if __name__ == "__main__":
    main()
