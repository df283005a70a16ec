# Licenses, sources and duplicate versions of the dependencies, by deny.toml; and known vulnerabilities, if their list
# can be fetched.
deny() (
    version=0.20.2 home=${CARGO_TARGET_DIR:-target}/deny
    tool=$home/bin/cargo-deny
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    if [[ $("$tool" --version 2> /dev/null) != "cargo-deny $version" ]]; then
        lacks_crate "$folder" "cargo-deny@$version" && return
        # Unoptimised, it is built in a fraction of the time and checks as fast.
        cargo install --quiet --locked --debug --config profile.dev.debug=0 --root "$home" \
            --target-dir "$home/build" "cargo-deny@$version"
        rm -rf "$home/build"
    fi
    "$tool" --log-level warn check bans licenses sources
    if ! "$tool" fetch db > "$folder/log" 2>&1; then
        refuse_or_leave_out "the list of known holes" "$folder/log" \
            env GIT_TERMINAL_PROMPT=0 git ls-remote --exit-code https://github.com/RustSec/advisory-db HEAD
        return
    fi
    "$tool" --log-level warn check advisories
)
