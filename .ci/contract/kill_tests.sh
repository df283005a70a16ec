# The program, killed at failpoints and at random moments; a release must not contain the failpoints.
kill_tests() {
    local names name
    cargo test --quiet --features failpoints --test kill
    cargo build --quiet --release
    names=$(grep -rhoE 'failpoint::reached\("[a-z._]+"' src | cut -d'"' -f2 | sort -u)
    [[ -n $names ]]
    for name in $names FAILPOINT; do
        if grep -qaF "$name" "${CARGO_TARGET_DIR:-target}/release/dialarr"; then
            echo "the release holds the name of a place to die at: $name" >&2
            return 1
        fi
    done
}
