"""Tables of the pages that are made of measurements: `<!-- list: regret -->` and others."""

import re
from collections.abc import Callable, Iterable, Sequence

import measurements

INSTANCES = {
    "alternating": "alternating, K = 8, gap 0.125",
    "easy": "stochastic, easy",
    "hard": "stochastic, hard",
    "punished-8": "an adversary that punishes the arm exploited last, K = 8",
    "punished-2": "the same, K = 2",
    "punished-32": "the same, K = 32",
    "punished-128": "the same, K = 128",
    "moving": "an adversary that moves the level of all losses",
    "movies-32": "MovieLens, 32 movies",
    "movies-256": "MovieLens, 256 movies",
}
COMPARED = {
    "ftpl": "`FTPL()`, the paper's",
    "centred": "centred `FTPL`",
    "recommended": "`Ladder()`",
    "leader": "follow the leader",
}
BOUND, LOGARITHMIC = "$O(\\sqrt{KT})$", "$O(\\sum_i \\log T / \\Delta_i)$"
# What choosing.md says of a policy: its name, its guarantee, and what you must know.
DECOUPLED = {
    "recommended": (
        "`Ladder()`",
        f"{BOUND} and constant in $T$, [for prompt feedback](ladder.md#theorem-t2-ladder-itself)",
        "nothing",
    ),
    "ftpl": ("`FTPL()`", f"{BOUND}; constant in $T$ if gaps persist", "nothing"),
    "tsallis": ("`TsallisINF()`", f"{BOUND}; constant in $T$ if gaps persist", "nothing"),
    "exp3": ("`Exp3()`", "none that we state at this rate", "nothing"),
    "avner": ("`AvnerExp3(horizon=T)`", "$\\sqrt{2 K T \\ln K}$", "the horizon"),
    "jin": (
        "`JinHybrid()`",
        "the published one is $O(\\sqrt{\\sum_i K / \\Delta_i^2})$ if gaps persist; none claimed for our constants",
        "nothing",
    ),
    "leader": (
        "`FollowTheLeader()`",
        "constant in $T$ for stochastic losses; **linear in $T$ against an adaptive adversary**",
        "that losses do not react to you",
    ),
    "top-two": ("`TopTwo()`", "for stochastic losses only", "that losses are stochastic"),
}
STANDARD = {
    "coupled-tsallis": (
        '<code>CoupledTsallisINF(<wbr>estimator="reduced-variance")</code>',
        f"{BOUND}; {LOGARITHMIC} if gaps persist",
        "nothing",
    ),
    "thompson": (
        "`ThompsonSampling()`",
        "for stochastic losses of 0 and 1",
        "that losses are stochastic",
    ),
    "coupled-ftpl": (
        '<code>CoupledFTPL(<wbr>resampling="conditional")</code>',
        f"{BOUND}; {LOGARITHMIC} if gaps persist",
        "nothing",
    ),
    "coupled-exp3": ("`CoupledExp3()`", "$2 \\sqrt{K T \\ln K}$", "nothing"),
    "ucb1": ("`UCB1()`", "for stochastic losses", "that losses are stochastic"),
}
POLICIES = {
    "ftpl": "`FTPL()`",
    "recommended": "`Ladder()`",
    "exp3": "`Exp3()`",
    "tsallis": "`TsallisINF()`",
}
TRAFFIC = {
    "direct": "direct",
    "delay": "`delay=100`",
    "geometric": '`delay=("geometric", 100)`',
    "missing": "`missing=0.5`",
    "slice": "`slice=0.05`",
    "noise": '`reported=("noise", 0.5)`',
    "flip": '`reported=("flip", 0.2)`',
}
LATE_ON = {
    "chased": "chased leader, K = 2, T = 16,000",
    "alternating": "alternating, K = 8, gap 0.125",
    "easy": "stochastic, easy",
}
LATE = {"0": "0", "40": "40", "200": "200", "geometric": "geometric, mean 40"}
LATE_POLICIES = {
    "recommended": "`Ladder()`",
    "ftpl": "`FTPL()`",
    "tsallis": "`TsallisINF()`",
}
RECORDED = {
    "recommended": "`Ladder()`",
    "centred": "centred `FTPL`",
    "ftpl": "`FTPL()`",
    "top-two": "`TopTwo()`",
    "leader": "`FollowTheLeader()`",
    "forgetting": "`Forgetting(Ladder(), period=1_000)`",
}
RECORDED_ON = ("digits", "phishing", "ridership", "flights", "ridership-late", "flights-late", "punished")


WHAT_EXTRAS_ADD = {
    "core": "no extra: policies, learners, saving and replay",
    "simulate": "simulations and labelled results",
    "plots": "figures and reports",
    "cli": "the command `decoupled`",
    "service": "the decision service and its clients, with `cli`",
    "jit": "Numba, for policies and adversaries of your own",
    "conic": "the conic solver SCS",
    "dask": "clusters, with `simulate`",
    "parquet": "Parquet files",
    "otel": "OpenTelemetry for the service: traces and metrics over OTLP",
    "postgres": "PostgreSQL as the store of the service",
    "sklearn": "learning a log with `fit` and `predict`, as in scikit-learn",
    "cuda": "simulations on NVIDIA GPUs, with `jit` and `simulate`",
    "litellm": "the plug-in for LiteLLM, and its proxy, with `service`",
    "all": "all of these except `cuda` and `litellm`",
}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(
        f"| {' | '.join(line)} |".replace("| --- |", "|---|").replace(" --- |", "---|") for line in lines
    )


def value(name: str) -> float:
    """The value of a record, to be compared with others."""
    found = KNOWN[name].value
    assert found is not None, f"{name} has no value"
    return found


def lowest(names: Sequence[str], cells: Sequence[str]) -> list[str]:
    """The cells of some records, with the lowest mean in bold, and those that look like it."""
    means, rest = zip(
        *(re.fullmatch(r"(.*?)( \(.*)?", cell).groups(default="") for cell in cells), strict=True
    )
    least = means[names.index(min(names, key=value))].split()[0]
    bold = (f"**{mean}**" if mean.split()[0] == least else mean for mean in means)
    return [mean + more for mean, more in zip(bold, rest, strict=True)]


def with_tail(name: str) -> str:
    """A mean, and the 99th percentile in brackets."""
    return f"{measurements.text_of(KNOWN[name], 'value')} ({measurements.text_of(KNOWN[f'{name}.p99'])})"


def half(name: str) -> str:
    """A mean and the half-width of its interval, to about three digits."""
    return measurements.text_of(KNOWN[name], "half", 1 if value(name) < 100 else 0)


def regret(instances: Iterable[str], policies: Iterable[str]) -> str:
    """Mean regret of the recommended policy beside others, and its ratio to the paper's."""
    *titles, last = (COMPARED[policy] for policy in policies)
    head = ("instance", *titles, "over the paper's, 95 % interval", last)
    rows = []
    for instance in instances:
        names = [f"regret.{instance}.{policy}" for policy in policies]
        *cells, last = lowest(names, [with_tail(name) for name in names])
        ratio = KNOWN[f"regret.{instance}.ratio"]
        over = "negative" if value(ratio.name) < 0 else measurements.text_of(ratio)
        rows.append((INSTANCES[instance], *cells, over, last))
    return markdown(head, rows)


def rivals() -> str:
    """Mean regret of the recommended policy beside the paper's other policies."""
    head = ("instance", "`Ladder()`", "`TsallisINF()`", "`Exp3()`", "EXP3, centred")
    rows = []
    for instance, title in INSTANCES.items():
        names = [
            f"regret.{instance}.{policy}" for policy in ("recommended", "tsallis", "exp3", "exp3-centred")
        ]
        rows.append((title, *lowest(names, [with_tail(name) for name in names])))
    return markdown(head, rows)


def chosen(policies: dict[str, tuple[str, str, str]]) -> str:
    """What there is to know for choosing a policy: first the numbers, which a phone must show too."""
    head = (
        *("policy", "alternating", "stochastic, easy", "punishing adversary"),
        *("µs of its own step, K = 8; 64", "guarantee", "you must know"),
    )
    columns = []
    for instance in ("alternating", "easy", "punished-8"):
        names = [f"regret.{instance}.{policy}" for policy in policies]
        columns.append(lowest(names, [half(name) for name in names]))
    steps = [
        "; ".join(measurements.text_of(KNOWN[f"steps.{each}.{arms}"]) for arms in (8, 64))
        for each in policies
    ]
    titles, *words = zip(*policies.values(), strict=True)
    rows = zip(titles, *columns, steps, *words, strict=True)
    return markdown(head, rows)


def paper() -> str:
    """The paper's first instance: mean regret with its interval, and quantiles."""
    names = {"ftpl": "FTPL", "tsallis": "Tsallis-INF", "exp3": "EXP3", "leader": "Follow the leader"}
    places = [f"regret.alternating.{policy}" for policy in names]
    means = lowest(places, [measurements.text_of(KNOWN[place], "value", 1) for place in places])
    rows = [
        (
            title,
            mean,
            measurements.text_of(KNOWN[place], "range", 1),
            *(measurements.text_of(KNOWN[f"{place}.{each}"], "value", 1) for each in ("median", "p99")),
        )
        for title, mean, place in zip(names.values(), means, places, strict=True)
    ]
    return markdown(
        ("policy", "mean regret", "95 % interval of the mean", "median", "99th percentile"), rows
    )


def traffic(instance: str, title: str) -> str:
    """Regret by the kind of traffic."""
    rows = []
    for kind, name in TRAFFIC.items():
        place = f"regret.{instance}" if kind == "direct" else f"traffic.{instance}.{kind}"
        rows.append(
            (name, *(measurements.text_of(KNOWN[f"{place}.{policy}"], "half") for policy in POLICIES))
        )
    return markdown((title, *POLICIES.values()), rows)


def late() -> str:
    """Regret with late feedback, of the ladder and of two others."""
    rows = []
    for world, title in LATE_ON.items():
        for kind, delay in LATE.items():
            names = [f"late.{world}.{kind}.{policy}" for policy in LATE_POLICIES]
            cells = lowest(names, [measurements.text_of(KNOWN[name], "half") for name in names])
            rows.append((title, delay, *cells))
            title = ""
    return markdown(("losses", "delay", *LATE_POLICIES.values()), rows)


def recorded() -> str:
    """Regret on recorded losses."""
    head = ("policy", *(name.replace("-", ", ") for name in RECORDED_ON[:-1]), "`PunishLast(8)`")
    sizes = ("16; 4,791; 855", "16; 1,150; 63", "13; 5,298; 950", "9; 5,840; 289")
    rows = [("K; T; guessing", *sizes, *sizes[2:], "8; 5,000")]
    columns = []
    for name in RECORDED_ON:
        names = [f"recorded.{name}.{policy}" for policy in RECORDED]
        columns.append(lowest(names, [_rough(each) for each in names]))
    return markdown(head, (*rows, *zip(RECORDED.values(), *columns, strict=True)))


def _rough(name: str) -> str:
    """A whole number, and a half-width with a decimal only if it is below 1."""
    mean, _, width = measurements.text_of(KNOWN[name], "half").partition(" ± ")
    return f"{mean} ± {measurements.written(float(width), 0 if float(width) >= 0.95 else 1)}"


def extras() -> str:
    """What each extra adds and takes."""
    rows = (
        (
            "" if name == "core" else f"`{name}`",
            what,
            f"{measurements.text_of(KNOWN[f'extras.{name}.size'])} MB",
            f"{measurements.text_of(KNOWN[f'extras.{name}.first-use'])} s",
        )
        for name, what in WHAT_EXTRAS_ADD.items()
    )
    return markdown(("extra", "what it adds", "installed", "first use"), rows)


KNOWN = measurements.records()
TABLES: dict[str, Callable[[str], str]] = {
    "regret": lambda page: regret(INSTANCES, COMPARED),
    "rivals": lambda page: rivals(),
    "decoupled_policies": lambda page: chosen(DECOUPLED),
    "standard_policies": lambda page: chosen(STANDARD),
    "paper": lambda page: paper(),
    "traffic_alternating": lambda page: traffic("alternating", "alternating, K = 8, gap 0.125"),
    "traffic_easy": lambda page: traffic("easy", "stochastic, easy"),
    "late": lambda page: late(),
    "recorded": lambda page: recorded(),
    "extras": lambda page: extras(),
}
