"""Whether OpenTelemetry is asked for, and whether its variables ask for what there is. Needs no extra."""

from collections.abc import Mapping

from decoupled.errors import ParameterError

EXPORTERS = {each: f"OTEL_{each.upper()}_EXPORTER" for each in ("traces", "metrics", "logs")}
_OTLP = ("OTEL_EXPORTER_OTLP_", *(f"OTEL_EXPORTER_OTLP_{each.upper()}_" for each in EXPORTERS))


def is_wanted(option: bool | None, variables: Mapping[str, str]) -> bool:
    """Whether to use OpenTelemetry: as --otel or --no-otel says, or if a variable names an endpoint.

    >>> is_wanted(None, {}), is_wanted(None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})
    (False, True)
    """
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(variables.get(f"{each}ENDPOINT") for each in _OTLP) if option is None else option


def exports(signal: str, variables: Mapping[str, str]) -> bool:
    """Whether to export "traces", "metrics" or "logs".

    >>> exports("traces", {}), exports("metrics", {"OTEL_METRICS_EXPORTER": "none"})
    (True, False)
    """
    name = EXPORTERS[signal]
    wanted = variables.get(name, "otlp").strip().lower()
    if wanted not in ("otlp", "none"):
        raise ParameterError.of(name, wanted, "must be otlp or none", "leave it out for otlp")
    return wanted == "otlp"


def check_protocol(variables: Mapping[str, str]) -> None:
    """Refuse any protocol but OTLP over HTTP, which is the only one that the extra brings."""
    for name in (f"{each}PROTOCOL" for each in _OTLP):
        wanted = variables.get(name, "http/protobuf")
        if wanted != "http/protobuf":
            remedy = "leave it out, and give the collector's HTTP endpoint, such as http://collector:4318"
            raise ParameterError.of(name, wanted, "must be http/protobuf", remedy)
