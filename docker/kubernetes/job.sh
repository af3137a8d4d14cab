#!/usr/bin/env bash
# Runs a step of a build as a Job from part.yaml, and waits for its end; fails if the Job does.
#   bash docker/kubernetes/job.sh NAME PARTS COMMAND
set -euo pipefail

name=$1 parts=$2 command=$3
job=$(<"$(dirname "$0")/part.yaml")
job=${job/NAME/"$name"}
job=${job/PARTS/"$parts"}
job=${job/COMMAND/"$command"}
kubectl apply -f - <<<"$job"
until ended=$(kubectl -n twinset get "job/$name" -o jsonpath='{.status.conditions[*].type}' |
    grep -owE 'Complete|Failed'); do
    sleep 10
done
[[ $ended == Complete ]]
