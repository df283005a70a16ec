#!/usr/bin/env bash
# The acknowledgement benchmark twice: on this disk as it is, and with syncs that take 2 ms longer (slow_sync.c).
# ack.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/.."

bench=$(benches/build_bench.sh ack)

shim=$(mktemp --suffix .so)
trap 'rm -f "$shim"' EXIT
gcc -O2 -Wall -shared -fPIC -o "$shim" benches/slow_sync.c -ldl

uptime
"$bench" "${1:-5}"
echo
SYNC_DELAY_US=2000 LD_PRELOAD=$shim "$bench" "${1:-5}"
uptime
