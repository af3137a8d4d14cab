#!/usr/bin/env bash
# Sees to the system libraries that twinset's packages load: installs what is missing when it may, or names the command.
#   system_libraries.sh PYTHON            the libraries, and PYTHON itself
#   system_libraries.sh PYTHON browser    Chromium for the tests of the review page, which are skipped without it
set -euo pipefail
python=${1:-python3.11}

if [ "${2:-}" = browser ]; then
    command -v chromium >/dev/null && exit 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; then
        exit 0
    fi
    echo "Chromium is not installed: tests in a browser will be skipped. To run them, as root:" >&2
    echo "    apt-get update && apt-get install -y --no-install-recommends chromium" >&2
    exit 0
fi

# Debian package, and what proves that it is there.
libraries="
libgl1:libGL.so.1
libglib2.0-0:libglib-2.0.so.0
libgomp1:libgomp.so.1
libx11-6:libX11.so.6
libxrender1:libXrender.so.1
libxxf86vm1:libXxf86vm.so.1
libxfixes3:libXfixes.so.3
libxi6:libXi.so.6
libxkbcommon0:libxkbcommon.so.0
libsm6:libSM.so.6
libice6:libICE.so.6
"
present=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null || true)
missing=()
for entry in $libraries; do
    grep -q "${entry#*:}" <<<"$present" || missing+=("${entry%%:*}")
done
if ! command -v "$python" >/dev/null; then
    missing+=(python3.11 python3.11-venv)
elif ! "$python" -c 'import ensurepip' 2>/dev/null; then
    missing+=(python3.11-venv)
fi
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
else
    echo "twinset needs system packages that are not installed. Run, then repeat your command:" >&2
    echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
fi
