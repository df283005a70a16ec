#!/usr/bin/env bash
# What the program takes and how soon it is there: builds it as released, then measures it.
set -euo pipefail
cd "$(dirname "$0")/.."

nice cargo build --quiet --release --bin dialarr
uptime
python3 benches/footprint.py "${CARGO_TARGET_DIR:-target}/release/dialarr" "$@"
