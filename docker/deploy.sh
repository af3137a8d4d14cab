#!/usr/bin/env bash
# Makes what a fresh server lacks: work pools, deployments, automation. May run again.
set -euo pipefail

for pool in main cpu render gpu; do
    prefect work-pool inspect "$pool" >/dev/null 2>&1 || prefect work-pool create "$pool" --type process
done
prefect --no-prompt deploy --all
prefect automation inspect "Crash zombie flow runs" >/dev/null 2>&1 \
    || prefect automation create --from-file flows/zombies.yaml
