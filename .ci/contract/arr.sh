# Clients of Sonarr and Radarr against recorded responses and published descriptions.
arr() (
    target=${CARGO_TARGET_DIR:-target}
    mkdir -p "$target"
    requests=$(cd "$target" && pwd)/arr_requests.jsonl
    DIALARR_CONTRACT_OUT=$requests cargo test --quiet --test contract arr
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    lacks_pypi "$folder" 'jsonschema>=4,<5' && return
    "$folder/venv/bin/python" .ci/contract/arr_requests.py "$requests" "$DIALARR_SHARED/data/arr"
)
