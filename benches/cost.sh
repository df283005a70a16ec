#!/usr/bin/env bash
# Cost of a message: syncs, bytes of the write-ahead log, instructions, allocations and context switches. Needs strace and
# valgrind, and takes about a minute once built.
# cost.sh [MESSAGES]
set -euo pipefail
cd "$(dirname "$0")/.."

bench=$(benches/build_bench.sh figures)

uptime
python3 benches/cost.py "$bench" "${CARGO_TARGET_DIR:-target}/release/dialarr" "${1:-100}"
uptime
