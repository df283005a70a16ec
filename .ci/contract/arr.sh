# Our clients of Sonarr and Radarr against recorded answers and published descriptions.
arr() {
    local target requests
    target=${CARGO_TARGET_DIR:-target}
    mkdir -p "$target"
    requests=$(cd "$target" && pwd)/arr_requests.jsonl
    DIALARR_CONTRACT_OUT=$requests cargo test --quiet --test contract
    if python3 -c 'import jsonschema' 2>/dev/null; then
        python3 .ci/contract/arr_requests.py "$requests" "$DIALARR_SHARED/data/arr"
    else
        echo "skipped: requests against the published descriptions need the Python package jsonschema"
    fi
}
