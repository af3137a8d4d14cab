#!/usr/bin/env bash
# Makes Prefect's work pools of the type `kubernetes` from pool.json, or changes them. Edit the table below first.
set -euo pipefail

pool() { # NAME IMAGE CPU MEMORY NODES GPUS
    sed -e "s|POOL|$1|; s|IMAGE|$2|; s|CPU|$3|; s|MEMORY|$4|; s|NODES|$5|" \
        -e "$([ "$6" = 0 ] && echo /GPUS/d || echo "s|GPUS|$6|")" "$(dirname "$0")/pool.json" |
        prefect work-pool create "$1" --type kubernetes --overwrite --base-job-template /dev/stdin
}
registry=${REGISTRY:?set it to where the images are, such as ghcr.io/lab}
#    NAME   IMAGE: `docker buildx imagetools inspect` prints its digest  CPU MEMORY NODES                              GPUS
pool main   "$registry/twinset-render@sha256:${RENDER_DIGEST:?}"         2   8Gi    ''                                 0
pool cpu    "$registry/twinset-cpu@sha256:${CPU_DIGEST:?}"               4   8Gi    ''                                 0
pool render "$registry/twinset-render@sha256:$RENDER_DIGEST"             8   16Gi   ''                                 0
pool gpu    "$registry/twinset-gpu@sha256:${GPU_DIGEST:?}"               8   32Gi   '"nvidia.com/gpu.present": "true"' 1
