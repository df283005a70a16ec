# Licences, sources and second copies of what is built in, by deny.toml; and known holes, where their list can be fetched.
deny() {
    local version=0.20.2 home=${CARGO_TARGET_DIR:-target}/deny tool
    tool=$home/bin/cargo-deny
    if [[ $("$tool" --version 2> /dev/null) != "cargo-deny $version" ]]; then
        if ! cargo info --quiet "cargo-deny@$version" > /dev/null 2>&1; then
            echo "skipped: the check of dependencies needs crates.io"
            return
        fi
        # Unoptimised, it is built in a fraction of the time and checks as fast.
        cargo install --quiet --locked --debug --config profile.dev.debug=0 --root "$home" \
            --target-dir "$home/build" "cargo-deny@$version"
        rm -rf "$home/build"
    fi
    "$tool" --log-level warn check bans licenses sources
    if "$tool" --log-level off fetch db > /dev/null 2>&1; then
        "$tool" --log-level warn check advisories
    else
        echo "skipped: known holes, since their list at github.com/RustSec cannot be fetched"
    fi
}
