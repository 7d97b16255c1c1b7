"""An exploration slice in front of a recommender, on MovieLens 100K.

The front page recommends a film. A small slice of the visitors sees a film that the learner wants to explore
(`explore`), and their stars are the feedback. All other visitors see the film that the learner considers
best (`exploit`), and nobody asks for their stars. So only the slice pays for exploration, and its size is
known in advance.

    DECOUPLED_DATA=ml-100k python examples/movielens_slice.py

needs MovieLens 100K, which may not be redistributed; `--help` lists the places where it is searched. With
--stand-in it runs on generated ratings of the same shape.
"""

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass

import decoupled as dc
import decoupled_lab as lab
from decoupled_lab import movielens

STARS = (1.0, 5.0)


@dataclass(frozen=True)
class Evening:
    """The mean stars of the visitors served, of the slice, of the best film and of a random film."""

    served: float
    slice: float
    best: float
    any: float
    shown: Counter[str]  # how often each film was served in the last quarter


def recommend(films: lab.MovieLens, visits: int, share: float, seed: int = 0) -> Evening:
    """Show visitors the front page, in the order of their ratings."""
    chance = random.Random(seed)
    titles, oracle = films.titles(), films.oracle()
    stars = 1.0 + 4.0 * oracle.rewards[:, : films.arms]  # what each user would give each film
    place = {title: number for number, title in enumerate(titles)}
    learner = dc.Ladder().start(arms=titles, seed=seed, loss_range=STARS)
    served, slice_, shown = [], [], Counter[str]()
    users = [int(user) for user in oracle.sequence[:visits]]
    for visit, user in enumerate(users):
        if chance.random() < share:
            decision = learner.explore()
            seen = float(stars[user, place[str(decision.explore)]])
            learner.observe(decision, reward=seen)
            slice_.append(seen)
        else:
            film = str(learner.exploit().exploit)
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
        epilog="MovieLens 100K (u.data, and u.item for titles) is searched in the folder that DECOUPLED_DATA "
        "names, in ml-100k inside it, and in the cache of this package.",
    )
    parser.add_argument(
        "--films", type=int, default=32, help="how many films, the most rated first"
    )
    parser.add_argument("--visits", type=int, default=50_000)
    parser.add_argument(
        "--slice", type=float, default=0.05, help="share of the visits that explore"
    )
    parser.add_argument(
        "--stand-in", action="store_true", help="use generated ratings instead of MovieLens"
    )
    options = parser.parse_args()
    if not options.stand_in:
        try:
            movielens.find(fetch=False)
        except dc.DecoupledError as error:  # missing or damaged
            print(
                f"MovieLens 100K is not here; --stand-in runs without it: {error}", file=sys.stderr
            )
            sys.exit(2)
    data = "stand-in" if options.stand_in else "ml-100k"
    films = lab.MovieLens(arms=options.films, data=data)
    evening = recommend(films, options.visits, options.slice)
    print(
        f"{options.visits:,} visits, {options.slice:.0%} of them explore, {options.films} films ({data})"
    )
    print(f"  mean stars on the front page           {evening.served:.3f}")
    print(f"  mean stars in the slice                {evening.slice:.3f}")
    print(f"  mean stars of the best single film     {evening.best:.3f}")
    print(f"  mean stars of a random film            {evening.any:.3f}")
    print("served most often in the last quarter:")
    for film, times in evening.shown.most_common(3):
        print(f"  {times / evening.shown.total():4.0%}  {film}")


if __name__ == "__main__":
    main()
