"""docker/kubernetes: pools of Prefect and Jobs as docs/cluster.md makes them, held to the published schemas.

Prefect's own code fills the templates in. The schemas, of the oldest Kubernetes that has all fields, allow no others.
"""

import json
import os
import re
import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from prefect.utilities.templating import apply_values, find_placeholders

from tests.docker.conftest import CHECKOUT, pools_of_prefect

PAGE = (CHECKOUT / "docs" / "cluster.md").read_text()
SCHEMAS = json.loads((Path(__file__).parent / "kubernetes-1.29.json").read_text())
STRANGE = "--set a.b=x,y --set 'c.d={e: f|g&h #i}' "  # what YAML, sed and a shell take for their own
DIGEST = "0123456789abcdef" * 4


def run(script: str, stand_in: str, folder: Path, **variables: str) -> None:
    """Run bash in the checkout with a command whose input is kept in files of ``folder``; Jobs have ended."""
    (folder / stand_in).write_text(
        f'#!/bin/bash\necho "called: $@" >> {folder}/called\n[ -t 0 ] || cat > {folder}/$(wc -l < {folder}/called)\n'
        '[[ " $* " != *" get "* ]] || echo Complete\n'
    )
    (folder / stand_in).chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **variables}
    command = ["bash", "-euc", script]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, input="")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The base job templates that pools.sh gives to Prefect, by pool."""
    folder = tmp_path_factory.mktemp("pools")
    digests = {f"{image}_DIGEST": DIGEST for image in ("CPU", "RENDER", "GPU")}
    run("bash docker/kubernetes/pools.sh", "prefect", folder, REGISTRY="example.org/lab", **digests)
    called = (folder / "called").read_text().splitlines()
    assert all(line.endswith("--type kubernetes --overwrite --base-job-template /dev/stdin") for line in called)
    return {line.split()[3]: json.loads((folder / str(n)).read_text()) for n, line in enumerate(called, 1)}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The Jobs that the page's commands make, in their order."""
    [block] = [block for block in re.findall(r"(?:^    .*\n)+", PAGE, flags=re.M) if "job.sh" in block]
    folder = tmp_path_factory.mktemp("jobs")
    run(dedent(block).replace("--only", f"{STRANGE}--only"), "kubectl", folder)
    called = (folder / "called").read_text().splitlines()
    return [
        yaml.safe_load((folder / str(n)).read_text())
        for n, line in enumerate(called, 1)
        if line.startswith("called: apply")
    ]


def manifest(template: dict[str, Any]) -> dict[str, Any]:
    """A Job of a pool, as Prefect fills it in for a run without values of its own."""
    values = {name: variable["default"] for name, variable in template["variables"]["properties"].items()}
    job: dict[str, Any] = apply_values(template["job_configuration"]["job_manifest"], values)
    [container] = job["spec"]["template"]["spec"]["containers"]
    # What Prefect's worker makes of them, and two fields that it insists on and Kubernetes ignores.
    container["env"] = [{"name": name, "value": value} for name, value in container["env"].items()]
    container["args"] = container["args"].split()
    assert job["spec"]["template"]["spec"].pop("parallelism") == job["spec"]["template"]["spec"].pop("completions") == 1
    return job


def test_templates_hold_to_their_own_variables(pools: dict[str, Any]) -> None:
    assert pools.keys() == pools_of_prefect()
    for pool, template in pools.items():
        Draft202012Validator.check_schema(template["variables"])
        variables = template["variables"]["properties"]
        for schema in variables.values():
            Draft202012Validator(schema).validate(schema["default"])
        names = {placeholder.name for placeholder in find_placeholders(template["job_configuration"])}
        assert names == variables.keys(), pool


def test_pools_ask_for_what_their_stages_need(pools: dict[str, Any]) -> None:
    for pool, template in pools.items():
        spec = manifest(template)["spec"]["template"]["spec"]
        [container] = spec["containers"]
        image = {"main": "render"}.get(pool, pool)  # compose.yaml says why
        assert container["image"] == f"example.org/lab/twinset-{image}@sha256:{DIGEST}"
        assert container["resources"]["limits"].get("nvidia.com/gpu") == ("1" if pool == "gpu" else None)
        assert bool(spec["nodeSelector"]) == (pool == "gpu")
        assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]


def test_a_step_is_planned_made_in_parts_and_finished(jobs: list[dict[str, Any]], tmp_path: Path) -> None:
    containers = [job["spec"]["template"]["spec"]["containers"][0] for job in jobs]
    commands = [[*container["command"], *container["args"]] for container in containers]
    assert [job["spec"]["completions"] for job in jobs] == [1, 8, 1]
    for option, command in zip(("--plan-only", "--part", "--finish"), commands, strict=True):
        assert option in command[-1]
    (tmp_path / "twinset").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "twinset").chmod(0o755)
    environment = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "JOB_COMPLETION_INDEX": "3"}
    done = subprocess.run(commands[1], env=environment, capture_output=True, text=True)
    assert "--set a.b=x,y --set c.d={e: f|g&h #i} --only eq-ag" in done.stdout and "--part 3/8 " in done.stdout, done


def test_secrets_are_references_pods_are_no_root_and_data_is_mounted(jobs: list[Any], pools: dict[str, Any]) -> None:
    """Images hold neither media nor annotations."""
    _, claim = yaml.safe_load_all((CHECKOUT / "docker/kubernetes/data.yaml").read_text())
    assert "=/data/" in PAGE
    for job in [*jobs, *map(manifest, pools.values())]:
        spec = job["spec"]["template"]["spec"]
        [container] = spec["containers"]
        assert container["envFrom"] == [{"secretRef": {"name": "twinset-bucket"}}] and not container.get("env")
        assert spec["restartPolicy"] == "Never" and spec["securityContext"]["runAsNonRoot"]
        assert spec["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert container["volumeMounts"] == [{"name": "data", "mountPath": "/data", "readOnly": True}]
        assert re.fullmatch(r"[\w./]+/twinset-\w+@sha256:(DIGEST|[0-9a-f]{64})", container["image"])


def problems(manifest: dict[str, Any]) -> list[str]:
    (name,) = (name for name in SCHEMAS["$defs"] if name.endswith(f".{manifest['kind']}"))
    validator = Draft202012Validator({**SCHEMAS, "$ref": f"#/$defs/{name}"})
    return [error.message for error in validator.iter_errors(manifest)]


def test_manifests_hold_to_the_published_schemas(jobs: list[Any], pools: dict[str, Any]) -> None:
    volume, claim = yaml.safe_load_all((CHECKOUT / "docker/kubernetes/data.yaml").read_text())
    for job in [*jobs, *map(manifest, pools.values()), volume, claim]:
        assert problems(job) == []
        job["spec"]["accesModes"] = []
        assert problems(job) != []
