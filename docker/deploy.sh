#!/usr/bin/env bash
# Makes what a fresh server lacks (work pools, automations) and renews the deployments. May run again: schedules that were
# made by `prefect deployment schedule create` stay, those of prefect.yaml become what it says.
set -euo pipefail

for pool in main cpu render gpu; do
    prefect work-pool inspect "$pool" >/dev/null 2>&1 || prefect work-pool create "$pool" --type process
done
prefect --no-prompt deploy --all
# New automations know nothing of the runs that those there have heard of. Delete them first to have others made.
prefect automation inspect "Crash zombie runs of twinset" >/dev/null 2>&1 ||
    prefect automation create --from-file flows/zombies.yaml
