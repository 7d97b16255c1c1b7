"""A Dockerfile, taken apart: the subset of its language that this project uses."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

KNOWN = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip


@dataclass
class Stage:
    """One stage: its base image, its name, and its instructions in order."""

    image: str
    name: str | None
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """The arguments of every such instruction."""
        return [text for name, text in self.steps if name == instruction]

    def only(self, instruction: str) -> str:
        """The arguments of the one such instruction."""
        [text] = self.all(instruction)
        return text

    def environment(self) -> dict[str, str]:
        """The variables that it sets."""
        return dict(pair.split("=", 1) for text in self.all("ENV") for pair in shlex.split(text))


def instructions(path: Path) -> Iterator[tuple[str, str]]:
    """Every instruction and its arguments, with continued lines joined."""
    kept = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(kept)).splitlines():
        if line.strip():
            name, _, text = line.partition(" ")
            assert name in KNOWN, line
            yield name, text.strip()


def stages(path: Path) -> list[Stage]:
    """The stages of a Dockerfile, with the defaults of its arguments filled into the names of images."""
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for name, text in instructions(path):
        if name == "ARG" and not found:
            key, _, value = text.partition("=")
            arguments[key] = value
        elif name == "FROM":
            image, _, alias = text.partition(" AS ")
            for key, value in arguments.items():
                image = image.replace(f"${{{key}}}", value)
            found.append(Stage(image, alias or None))
        else:
            found[-1].steps.append((name, text))
    return found


def copied(text: str) -> tuple[str | None, list[str], str]:
    """The stage, the sources and the target of a COPY."""
    words = shlex.split(text)
    stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
    return stage, words[:-1], words[-1]


def listed(text: str) -> list[str]:
    """The words of a command that is written as a JSON list."""
    found: list[str] = json.loads(text)
    return found
