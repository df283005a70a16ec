#!/usr/bin/env bash
# Builds a benchmark, and prints the path of its executable.
# build_bench.sh NAME
set -euo pipefail
cd "$(dirname "$0")/.."

nice cargo build --quiet --profile bench --bench "$1"
cargo build --quiet --profile bench --bench "$1" --message-format json |
    python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == sys.argv[1]:
        print(message["executable"])' "$1"
