"""The image, compose.yaml, the Kubernetes manifests, the gates and the systemd unit: valid, and consistent with the service."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jsonschema_rs
import pytest
import typer
import yaml

from decoupled.cli.main import app
from decoupled_serve.options.definitions import CONFIG, SERVE
from support.http_service import openapi_document
from support.pages import ROOT
from support.sandbox import USER

SCHEMAS = Path(__file__).parent / "schemas"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
KUBERNETES = ROOT / "deploy" / "kubernetes"
MANIFESTS = sorted(path for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml")
VARIABLES = {option.variable for option in (CONFIG, *SERVE)}
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
DRAIN = next(option.default for option in SERVE if option.name == "drain")


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found


def manifest(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def violations(content: Any) -> list[str]:
    known = schema("kubernetes")
    kind = known["kinds"][f"{content['apiVersion']} {content['kind']}"]
    whole = {"$ref": f"#/definitions/{kind}", "definitions": known["definitions"]}
    return [error.message for error in jsonschema_rs.Draft7Validator(whole).iter_errors(content)]


# The image, which a step of the workflow builds and runs


def test_the_image_has_the_versions_that_are_tested_no_privileges_and_no_secret() -> None:
    def versions(name: str) -> dict[str, str]:
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        return dict(re.findall(r"^([\w.-]+(?:\[\w+\])?)==(\S+)", text, re.MULTILINE))

    tested = versions("dev")
    for name in ("image", "wheel"):
        for package, version in versions(name).items():
            assert tested[package] == version, package
    assert not {"numba", "matplotlib", "scipy", "pandas"} & versions("image").keys()
    assert f"\nUSER {USER}:{USER}\n" in DOCKERFILE
    assert set(re.findall(r"DECOUPLED_\w+", DOCKERFILE)) <= VARIABLES
    assert not re.search(r"dk_|password|postgresql://|secret|token", DOCKERFILE, re.IGNORECASE)


def test_the_compose_file_is_one_by_the_specification() -> None:
    known = schema("compose")
    for name in ("$schema", "id", "source"):
        known.pop(name, None)
    validator = jsonschema_rs.Draft7Validator(known)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    broken = json.loads(json.dumps(COMPOSE))
    broken["services"]["postgres"]["imagee"] = broken["services"]["postgres"].pop("image")
    assert list(validator.iter_errors(broken)), "the schema refuses unknown keys"


def test_the_compose_file_runs_two_replicas_after_a_migration_with_secrets_from_files() -> None:
    services = COMPOSE["services"]
    assert services["decoupled"]["deploy"]["replicas"] == 2
    first, last = re.findall(r":(\d+)-(\d+):8000$", services["decoupled"]["ports"][0])[0]
    assert int(last) - int(first) + 1 == 2, "a port for each"
    assert (
        services["decoupled"]["depends_on"]["migrate"]["condition"]
        == "service_completed_successfully"
    )
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    for name in ("migrate", "decoupled"):
        assert services[name]["command"][0] in COMMANDS
        assert services[name]["read_only"] is True
        assert services[name]["init"] is True, "the service reaps no orphans"
        assert services[name]["cap_drop"] == ["ALL"]
        assert set(services[name]["environment"]) <= VARIABLES
    assert services["decoupled"]["healthcheck"]["test"][1:3] == ["decoupled", "health"]
    grace = int(services["decoupled"]["stop_grace_period"].removesuffix("s"))
    assert grace > int(services["decoupled"]["environment"]["DECOUPLED_DRAIN"])
    secrets = {f"/run/secrets/{name}": each["file"] for name, each in COMPOSE["secrets"].items()}
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert all(file.startswith("deploy/secrets/") for file in secrets.values())
    for service in COMPOSE["services"].values():
        named = {value for name, value in service["environment"].items() if name.endswith("_FILE")}
        assert named == {f"/run/secrets/{name}" for name in service["secrets"]}
        assert named <= secrets.keys()
        assert not [
            name for name in service["environment"] if re.search("(PASSWORD|KEY|STORE)$", name)
        ]
    assert re.fullmatch(r"postgres:\d+\.\d+-\w+", COMPOSE["services"]["postgres"]["image"]), (
        "pinned"
    )


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_every_manifest_is_one_by_the_schemas_of_kubernetes(path: Path) -> None:
    content = manifest(path)
    if content["kind"] == "ServiceMonitor":
        # A resource of the Prometheus operator, whose schema is not here.
        assert content["apiVersion"] == "monitoring.coreos.com/v1"
        assert {"port", "path"} <= content["spec"]["endpoints"][0].keys()
        return
    assert violations(content) == []


def test_the_schemas_refuse_a_misspelt_key() -> None:
    content = manifest(KUBERNETES / "base" / "deployment.yaml")
    content["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    assert violations(content)


def pods() -> list[tuple[str, Any]]:
    found = {path.stem: manifest(path) for path in MANIFESTS}
    kinds = ("Deployment", "Job")
    return [
        (name, one["spec"]["template"]["spec"])
        for name, one in found.items()
        if one["kind"] in kinds
    ]


@pytest.mark.parametrize(
    ("name", "pod"), pods(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_pod_is_as_restricted_as_the_image_allows(name: str, pod: Any) -> None:
    assert pod["enableServiceLinks"] is False, "DECOUPLED_PORT=tcp://... otherwise"
    assert pod["automountServiceAccountToken"] is False
    around = pod["securityContext"]
    assert (around["runAsNonRoot"], around["runAsUser"], around["runAsGroup"]) == (True, USER, USER)
    assert around["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    inside = container["securityContext"]
    assert inside["readOnlyRootFilesystem"] is True
    assert inside["allowPrivilegeEscalation"] is False
    assert inside["capabilities"] == {"drop": ["ALL"]}
    assert container["args"][0] in COMMANDS
    assert {"requests", "limits"} <= container["resources"].keys()
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert variables.keys() <= VARIABLES
    mounts = [each["mountPath"] for each in container["volumeMounts"]]
    assert {each["name"] for each in container["volumeMounts"]} == {
        each["name"] for each in pod["volumes"]
    }
    for variable, value in variables.items():
        assert not variable.endswith("_FILE") or any(
            value.startswith(f"{mount}/") for mount in mounts
        )


def test_the_deployment_is_probed_and_drained() -> None:
    deployment = manifest(KUBERNETES / "base" / "deployment.yaml")["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert deployment["replicas"] == 2
    probes = {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert {name: container[f"{name}Probe"]["httpGet"]["path"] for name in probes} == probes
    [port] = container["ports"]
    assert f"\nEXPOSE {port['containerPort']}\n" in DOCKERFILE
    assert all(container[f"{name}Probe"]["httpGet"]["port"] == port["name"] for name in probes)
    drain = next(
        int(each["value"]) for each in container["env"] if each["name"] == "DECOUPLED_DRAIN"
    )
    assert drain == DRAIN
    sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > drain + sleep
    service = manifest(KUBERNETES / "base" / "service.yaml")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert service["ports"][0]["targetPort"] == port["name"]
    budget = manifest(KUBERNETES / "base" / "poddisruptionbudget.yaml")["spec"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    job = manifest(KUBERNETES / "migrate" / "job.yaml")["spec"]["template"]["metadata"]["labels"]
    assert not service["selector"].items() <= job.items(), "no traffic to the migration"


@pytest.mark.parametrize("folder", sorted(each.name for each in KUBERNETES.iterdir()))
def test_every_kustomization_names_its_files(folder: str) -> None:
    named = manifest(KUBERNETES / folder / "kustomization.yaml")["resources"]
    assert sorted(named) == sorted(
        path.name
        for path in (KUBERNETES / folder).glob("*.yaml")
        if path.name != "kustomization.yaml"
    )
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed here: what it makes of the manifests was NOT checked")
    done = subprocess.run(
        ["kubectl", "kustomize", str(KUBERNETES / folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    for content in yaml.safe_load_all(done.stdout):
        if content["kind"] != "ServiceMonitor":
            assert violations(content) == []


CHART = ROOT / "deploy" / "helm" / "decoupled"


def valued(text: str, values: Any) -> str:
    """A template of ours with its values: only the forms that the templates have, so an unknown one stays and fails."""
    text = re.sub(
        r" *\{\{- range .*?\{\{- end \}\}\n|\{\{- (?:if .*?|end) \}\}\n", "", text, flags=re.DOTALL
    )  # off by default

    def value(path: str) -> Any:
        found = values
        for name in path.split("."):
            found = found[name]
        return found

    text = text.replace("{{ .Release.Name }}", "decoupled")
    text = re.sub(
        r"\{\{ add \.Values\.(\S+) (\d+) \}\}",
        lambda term: str(value(term[1]) + int(term[2])),
        text,
    )
    text = re.sub(
        r"\{\{ \.Values\.(\S+) \| quote \}\}", lambda term: json.dumps(str(value(term[1]))), text
    )
    text = re.sub(
        r"\{\{ toJson \.Values\.(\S+) \}\}", lambda term: json.dumps(value(term[1])), text
    )
    text = re.sub(r"\{\{ \.Values\.(\S+) \}\}", lambda term: str(value(term[1])), text)
    assert "{{" not in text
    return text


def expected() -> dict[str, Any]:
    """The manifests with the image that their kustomizations name, and the migration as a hook of Helm."""
    found = {path.stem: manifest(path) for path in MANIFESTS}
    image = manifest(KUBERNETES / "base" / "kustomization.yaml")["images"][0]
    for kind in ("deployment", "job"):
        found[kind]["spec"]["template"]["spec"]["containers"][0]["image"] = (
            f"{image['newName']}:{image['newTag']}"
        )
    hook = {"helm.sh/hook": "pre-install,pre-upgrade"}
    found["job"]["metadata"]["annotations"] = hook | {
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"
    }
    return found


def test_the_chart_with_its_default_values_is_the_manifests() -> None:
    values = manifest(CHART / "values.yaml")
    templates = {
        path.stem: valued(path.read_text(), values) for path in (CHART / "templates").iterdir()
    }
    assert {name: yaml.safe_load(text) for name, text in templates.items()} == expected()


def test_helm_accepts_the_chart_and_renders_the_manifests() -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed here: what it makes of the chart was NOT checked")
    subprocess.run(["helm", "lint", "--strict", str(CHART)], check=True)
    options = ["--set", "serviceMonitor=true"]
    done = subprocess.run(
        ["helm", "template", "decoupled", str(CHART), *options],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {each["kind"].lower(): each for each in yaml.safe_load_all(done.stdout)} == expected()
    options = ["--set-json", 'settings={"ACCESS_LOG": "true"}']
    done = subprocess.run(
        ["helm", "template", "x", str(CHART), *options], capture_output=True, text=True, check=True
    )
    assert {"name": "DECOUPLED_ACCESS_LOG", "value": "true"} in next(
        each for each in yaml.safe_load_all(done.stdout) if each["kind"] == "Deployment"
    )["spec"]["template"]["spec"]["containers"][0]["env"]


def test_the_unit_runs_the_service_and_lets_it_drain() -> None:
    unit = (ROOT / "deploy" / "systemd" / "decoupled.service").read_text()
    settings = re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE)
    command = dict(settings)["ExecStart"].split()
    assert command[1] in COMMANDS
    assert command[2] == CONFIG.flag
    variables = {
        word.partition("=")[0]
        for name, value in settings
        if name == "Environment"
        for word in value.split()
    }
    assert {each for each in variables if each.startswith("DECOUPLED_")} <= VARIABLES
    assert int(dict(settings)["TimeoutStopSec"]) > DRAIN


def closed(known: Any) -> Any:
    """A schema that refuses unknown fields, as `kubectl apply` does; that of a CRD drops them."""
    if isinstance(known, list):
        return [closed(each) for each in known]
    if not isinstance(known, dict):
        return known
    found = {name: closed(each) for name, each in known.items()}
    if isinstance(known.get("properties"), dict) and known.get("type") == "object":
        found.setdefault("additionalProperties", False)
    return found


@pytest.mark.parametrize("name", ["analysistemplate", "canary"])
def test_gates_are_by_the_schemas_of_who_asks_them(name: str) -> None:
    content = manifest(ROOT / "deploy" / "gates" / f"{name}.yaml")
    known = closed(schema("gateways")["kinds"][f"{content['apiVersion']} {content['kind']}"])
    known["properties"]["metadata"] = {"type": "object"}
    validator = jsonschema_rs.Draft7Validator(known)
    assert [error.message for error in validator.iter_errors(content)] == []
    content["spec"]["analysiss"] = {}
    assert list(validator.iter_errors(content)), "the schema refuses unknown fields"


def urls_of(content: Any) -> list[str]:
    if isinstance(content, dict):
        here = [content["url"]] if "url" in content else []
        return here + [url for each in content.values() for url in urls_of(each)]
    return [url for each in content for url in urls_of(each)] if isinstance(content, list) else []


def test_the_addresses_of_gates_are_those_of_the_service() -> None:
    operations = openapi_document()["paths"]["/v1/experiments/{name}/gate"]
    for name, method, count in (("analysistemplate", "get", 1), ("canary", "post", 2)):
        urls = urls_of(manifest(ROOT / "deploy" / "gates" / f"{name}.yaml"))
        assert len(urls) == count
        taken = {each["name"]: each for each in operations[method]["parameters"]}
        for url in urls:
            parts = urlsplit(url)
            assert re.fullmatch(r"/v1/experiments/[^/]+/gate", parts.path)
            for field, value in parse_qsl(parts.query, strict_parsing=True):
                allowed = taken[field]["schema"].get("enum")
                assert allowed is None or value in allowed
    [web] = manifest(ROOT / "deploy" / "gates" / "analysistemplate.yaml")["spec"]["metrics"]
    states = openapi_document()["components"]["schemas"]["GateOut"]["properties"]["state"]["enum"]
    named = [*re.findall(r'"(\w+)"', web["successCondition"] + web["failureCondition"])]
    assert named == states[:2]
    assert web["provider"]["web"]["jsonPath"] == "{$.state}"
