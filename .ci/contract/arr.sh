# Our clients of Sonarr and Radarr against recorded answers and published descriptions.
arr() (
    target=${CARGO_TARGET_DIR:-target}
    mkdir -p "$target"
    requests=$(cd "$target" && pwd)/arr_requests.jsonl
    DIALARR_CONTRACT_OUT=$requests cargo test --quiet --test contract arr
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if { python3 -m venv "$folder/python" && "$folder/python/bin/pip" install --quiet 'jsonschema>=4,<5'; } \
        >/dev/null 2>&1; then
        "$folder/python/bin/python" .ci/contract/arr_requests.py "$requests" "$DIALARR_SHARED/data/arr"
    else
        echo "skipped: requests against the published descriptions, because pip cannot install jsonschema"
    fi
)
