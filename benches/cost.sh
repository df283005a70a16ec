#!/usr/bin/env bash
# What a text costs: syncs, bytes of the write-ahead log, instructions, allocations and context switches. Needs strace and
# valgrind, and takes about five minutes.
# cost.sh [TEXTS]
set -euo pipefail
cd "$(dirname "$0")/.."

nice cargo build --quiet --profile bench --bench figures
bench=$(cargo build --quiet --profile bench --bench figures --message-format json |
    python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == "figures":
        print(message["executable"])')

uptime
python3 benches/cost.py "$bench" "${CARGO_TARGET_DIR:-target}/release/dialarr" "${1:-100}"
uptime
