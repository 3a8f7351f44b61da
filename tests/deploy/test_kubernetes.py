"""The manifests against the schemas of Kubernetes, and what every container of them must have."""

from collections.abc import Iterator
from typing import Any

import kubernetes_validate
import pytest

from otel_eval.config import Config
from tests.deploy.files import DEPLOY, documents

VERSIONS = ("1.29", "1.33")
CUSTOM = "monitoring.coreos.com/v1"
FILES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
BUILT_IN = [
    pytest.param(each, id=f"{path.stem}-{each['kind']}-{each['metadata']['name']}")
    for path in FILES
    for each in documents(path)
    if each["apiVersion"] != CUSTOM
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", BUILT_IN)
def test_a_manifest_fits_the_schema(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def manifests(kind: str) -> list[dict[str, Any]]:
    return [each for path in FILES for each in documents(path) if each["kind"] == kind]


def containers() -> Iterator[Any]:
    for deployment in manifests("Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        for each in (*pod.get("initContainers", ()), *pod["containers"]):
            yield pytest.param(pod, each, id=f"{deployment['metadata']['name']}-{each['name']}")


@pytest.mark.parametrize(("pod", "container"), list(containers()))
def test_a_container_is_locked_and_sized(pod: dict[str, Any], container: dict[str, Any]) -> None:
    security = container["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["cpu"]


def test_the_sidecar_is_a_native_one() -> None:
    pod = next(
        each["spec"]["template"]["spec"]
        for each in manifests("Deployment")
        if "initContainers" in each["spec"]["template"]["spec"]
    )

    (sidecar,) = pod["initContainers"]

    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["startupProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize(
    "manifest", manifests("ConfigMap"), ids=lambda each: each["metadata"]["name"]
)
def test_an_embedded_configuration_loads(manifest: dict[str, Any]) -> None:
    config = Config.parse(manifest["data"]["otel-eval.yaml"])

    assert config.admin.endpoint == "0.0.0.0:9464"


def test_the_memory_limits_hold_what_the_configurations_allow() -> None:
    limits = {"otel-eval": 1024, "weather-agent-otel-eval": 384}
    for manifest in manifests("ConfigMap"):
        config = Config.parse(manifest["data"]["otel-eval.yaml"])
        queue = config.forward.queue_mib if config.forward else 0

        needed = 1.5 * (config.grouping.max_buffer_mib + queue) + 150

        assert needed <= limits[manifest["metadata"]["name"]]


def test_monitors_select_ports_that_exist() -> None:
    (service_monitor,), (pod_monitor,) = manifests("ServiceMonitor"), manifests("PodMonitor")
    wanted = service_monitor["spec"]["selector"]["matchLabels"].items()
    services = [
        each for each in manifests("Service") if wanted <= each["metadata"]["labels"].items()
    ]
    ports = {port["name"] for service in services for port in service["spec"]["ports"]}
    (pod_port,) = (each["port"] for each in pod_monitor["spec"]["podMetricsEndpoints"])
    sidecars = [
        each["spec"]["template"]
        for each in manifests("Deployment")
        if each["spec"]["template"]["metadata"]["labels"].get("otel-eval") == "sidecar"
    ]

    assert {each["port"] for each in service_monitor["spec"]["endpoints"]} <= ports
    assert all(
        pod_port in {port["name"] for port in each["spec"]["initContainers"][0]["ports"]}
        for each in sidecars
    )
    assert sidecars
