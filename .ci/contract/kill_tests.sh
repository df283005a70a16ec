# The program, killed at failpoints and at random moments; a build without their feature must not contain the failpoints.
kill_tests() {
    local names name
    cargo test --quiet --features failpoints --test kill
    cargo build --quiet
    names=$(grep -rhoE 'failpoint::reached\("[a-z._]+"' src | cut -d'"' -f2 | sort -u)
    [[ -n $names ]]
    for name in $names FAILPOINT; do
        if grep -qaF "$name" "${CARGO_TARGET_DIR:-target}/debug/dialarr"; then
            echo "the program holds the name of a place to die at: $name" >&2
            return 1
        fi
    done
}
