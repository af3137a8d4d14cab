#!/usr/bin/env bash
# Makes what a fresh server lacks, and renews the rest: work pools, deployments, automations. May run again: schedules
# that were made by `prefect deployment schedule create` stay, those of prefect.yaml become what it says.
set -euo pipefail

for pool in main cpu render gpu; do
    prefect work-pool inspect "$pool" >/dev/null 2>&1 || prefect work-pool create "$pool" --type process
done
prefect --no-prompt deploy --all
for name in "Crash zombie runs of twinset" "Crash runs of twinset that do not start"; do
    prefect automation delete "$name" >/dev/null 2>&1 || true
done
prefect automation create --from-file flows/zombies.yaml
