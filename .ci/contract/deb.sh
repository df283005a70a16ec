# The Debian package: built, and then installed, upgraded over a database of 0.1.0, removed and purged in a root file system
# made from Debian packages. systemd itself does not run there, so the unit's command is run by hand as its user.
deb() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT

    [[ $(id -u) == 0 ]] || { echo "skipped: a root file system needs root"; return; }
    lacks_debian debootstrap debootstrap && return
    lacks_crate "$folder" cargo-deb@3.8.0 && return
    cargo install --quiet --locked --debug --root target/tools cargo-deb@3.8.0
    # The debug build of the kill tests: another release build would take seven minutes.
    export DIALARR_PROFILE=dev
    rm -f target/package/*.deb
    packaging/build.sh deb
    DEB_REVISION=2 packaging/build.sh deb
    root=$folder/root
    archive=$(debian_archive '$(REPO_URI)')
    # shellcheck source=/dev/null
    release=$(source /etc/os-release && echo "$VERSION_CODENAME")
    debootstrap --variant=minbase --include=adduser,ca-certificates,debconf,tzdata "$release" "$root" "$archive" \
        >"$folder/debootstrap.log" || { tail "$folder/debootstrap.log" >&2; exit 1; }
    cargo run --quiet --locked --example old_database -- "$folder/old.db"
    bash .ci/debian_root "$root" "$folder/old.db" target/package/*.deb
)
