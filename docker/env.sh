#!/usr/bin/env bash
# Writes docker/.env from .env.example with generated passwords, for its owner's eyes. One that is there stays.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")"
umask 077
set -o noclobber
text=$(
    while IFS= read -r line; do
        case $line in
            PREFECT_AUTH_STRING=) line+=twinset:$(openssl rand -hex 24) ;;
            [A-Z]*=) line+=$(openssl rand -hex 24) ;;
        esac
        printf '%s\n' "$line"
    done <.env.example
)
printf '%s\n' "$text" >.env
