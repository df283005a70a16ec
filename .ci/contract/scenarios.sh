# Every scenario file of the shared folder, checked by its effects.
scenarios() (
    # The binary of the tests: `cargo run` would compile the program again without the features of the tests.
    cargo test --quiet --no-run --test contract
    has_scenarios='import json, sys; sys.exit("scenarios" not in json.load(open(sys.argv[1])))'
    for file in "$DIALARR_SHARED"/data/*.json; do
        if python3 -c "$has_scenarios" "$file"; then
            "${CARGO_TARGET_DIR:-target}/debug/dialarr" eval "$file"
        fi
    done
)
