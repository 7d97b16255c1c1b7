"""The policy of an entry: from a file, or from a call such as `Ladder(mean_rate=0.1)`."""

import ast
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from decoupled import baselines
from decoupled.errors import ContractError, DecoupledError, ParameterError, near_name
from decoupled.policies import Policy

MODULE = "decoupled_entry"  # the name of the file's module
VARIABLE = "policy"
Find = Callable[[str], "type[Policy] | None"]


class Source(NamedTuple):
    """Where the policy of an entry comes from: a file, or a call; `name` says which policy of the file."""

    given: str
    name: str | None = None

    @property
    def file(self) -> Path | None:
        """The file; None if a call is given."""
        return Path(self.given) if self.given.endswith(".py") else None

    @property
    def sha256(self) -> str | None:
        """The digest of the file."""
        return None if self.file is None else hashlib.sha256(self.file.read_bytes()).hexdigest()

    def load(self) -> Policy:
        """The policy. This runs the file."""
        if self.file is None:
            if self.name is not None:
                rule = "chooses among the policies of a file"
                raise ParameterError.of("--policy", self.name, rule, "leave it out")
            return _from_call("policy", self.given, None, _find)
        module = _imported(self.file)
        kinds = {name: each for name, each in vars(module).items() if isinstance(each, type)}
        own = {
            name: each
            for name, each in kinds.items()
            if issubclass(each, Policy) and each.__module__ == MODULE
        }
        if self.name is not None:
            return _named(self.file, module, own, self.name)
        if isinstance(held := getattr(module, VARIABLE, None), Policy):
            return held
        return _only(self.file, own)

    def described(self, policy: Policy) -> dict[str, Any]:
        """What an entry says of its policy."""
        label = repr(policy) if isinstance(policy, baselines.Baseline) else policy.label
        return {
            "name": label if "(" in label else f"{label}()",
            "kind": "python" if policy.in_python else "compiled",
            "file": None if self.file is None else self.file.name,
            "sha256": self.sha256,
        }


def _find(name: str) -> "type[Policy] | None":
    """The policy or baseline of that name."""
    return Policy.find(name) or baselines.Baseline.find(name)


def _imported(file: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(MODULE, file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[MODULE] = module  # where dataclasses look for the names of annotations
    try:
        specification.loader.exec_module(module)
    except SyntaxError as error:
        raise ContractError(
            f"line {error.lineno} is not Python ({error.msg}); correct it"
        ) from None
    except ModuleNotFoundError as error:
        remedy = "install it, or put what the policy needs into the one file"
        raise ContractError(f"imports {error.name}, which is not installed; {remedy}") from None
    return module


def _only(file: Path, own: dict[str, Any]) -> Policy:
    """The one policy that a file defines; a base class of another does not count."""
    kinds = [
        kind
        for kind in own.values()
        if not any(kind in other.__mro__[1:] for other in own.values())
    ]
    if not kinds:
        rule = f"defines no policy, neither a subclass of PythonPolicy nor an instance called {VARIABLE}"
        raise ParameterError.of("policy", file.name, rule, "see docs/custom-policy.md")
    if len(kinds) > 1:
        names = ", ".join(kind.__name__ for kind in kinds)
        rule = f"defines {len(kinds)} policies, {names}"
        raise ParameterError.of(
            "policy", file.name, rule, f"choose one: --policy {kinds[0].__name__}"
        )
    return _made(file, kinds[0], [], {})


def _named(file: Path, module: ModuleType, own: dict[str, Any], name: str) -> Policy:
    if isinstance(held := getattr(module, name, None), Policy):
        return held
    if name in own:
        return _made(file, own[name], [], {})
    if "(" in name:
        return _from_call("--policy", name, file, lambda wanted: own.get(wanted) or _find(wanted))
    raise ParameterError.of("--policy", name, f"is not in {file.name}", near_name(name, own))


def _from_call(argument: str, text: str, file: Path | None, find: Find) -> Policy:
    """The policy that a call makes. Nothing is evaluated: its arguments are plain values, and calls like it."""
    remedy = "for example my_policy.py, 'Ladder()' or 'Forgetting(Ladder(), period=1000)'"
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        call = None
    if not isinstance(call, ast.Call):
        rule = "is neither a Python file nor a call of a policy"
        raise ParameterError.of(argument, text, rule, remedy)

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.Call):
            return policy(node)
        try:
            return ast.literal_eval(node)
        except ValueError:
            rule = f"has {ast.unparse(node)!r} in it, which is no plain value"
            raise ParameterError.of(argument, text, rule, remedy) from None

    def policy(node: ast.Call) -> Policy:
        name = ast.unparse(node.func)
        kind = find(name)
        if kind is None:
            rule = f"calls {name}, which is no policy"
            raise ParameterError.of(argument, text, rule, near_name(name, Policy.known()))
        named = {}
        for each in node.keywords:
            if each.arg is None:
                rule = f"has {ast.unparse(each)!r} in it, which names no parameters"
                raise ParameterError.of(argument, text, rule, remedy)
            named[each.arg] = value(each.value)
        return _made(file or Path(text), kind, [value(each) for each in node.args], named)

    try:
        return policy(call)
    except ContractError:
        raise
    except DecoupledError as error:
        own = str(error).startswith((f"{argument} = ", "policy = "))
        raise error if own else error.within(f"{argument} = {text!r}") from None


def _made(place: Path, kind: type[Policy], given: list[Any], named: dict[str, Any]) -> Policy:
    try:  # not the call itself, in which the policy may raise a TypeError of its own
        inspect.signature(kind).bind(*given, **named)
    except TypeError:
        known: Any = kind
        names = (
            [field.name for field in fields(known)] if "__dataclass_fields__" in vars(kind) else []
        )
        rule = f"has other parameters than {kind.__name__}: {', '.join(names) or 'none'}"
        remedy = "give every parameter a default, or its value: --policy 'Name(value=...)'"
        if place.suffix != ".py":
            remedy = "see decoupled policies"
        raise ParameterError.of("policy", place.name, rule, remedy) from None
    return kind(*given, **named)


def told(error: BaseException, file: Path | None) -> str:
    """An exception in one line, with the last line of the policy's file that it came from."""
    text = f"raised {type(error).__name__}: {' '.join(str(error).split())}"
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename) == file
    ]
    if not frames:
        return text
    last = frames[-1]
    return f"{text} ({last.name}, line {last.lineno} of {Path(last.filename).name}: {last.line})"
