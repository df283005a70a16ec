#!/usr/bin/env bash
# Builds the release files into target/package: a Debian package, a tarball, a software bill of materials, and their
# checksums. Needs two tools, which `packaging/build.sh tools` installs into target/tools.
#
# packaging/build.sh [tools|deb|tarball|sbom|all]
#
# DIALARR_PROFILE=dev or release packages an unstripped build without link-time optimization, and compresses it less,
# which takes less time.
# DEB_REVISION sets the revision of the Debian package, 1 by default.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${DIALARR_PROFILE:-dist}
out=target/package
export PATH="$PWD/target/tools/bin:$PATH"

tools() {
    cargo install --quiet --locked --debug --root target/tools cargo-deb@3.8.0 cargo-cyclonedx@0.5.9
}

version() {
    cargo metadata --no-deps --format-version 1 | sed 's/.*"name":"dialarr","version":"\([^"]*\)".*/\1/'
}

program() {
    mkdir -p "$out"
    cargo build --quiet --locked --profile "$profile" --bin dialarr
    # Manual pages and completions do not depend on the profile.
    cargo run --quiet --locked --example package_files -- "$out"
}

deb() {
    local speed=()
    program
    [[ $profile == dist ]] || speed=(--fast)
    cargo deb --quiet --locked --no-build --no-strip "${speed[@]}" --profile "$profile" \
        --deb-revision "${DEB_REVISION:-1}" --output "$out"
}

tarball() {
    local name folder
    program
    name=dialarr-$(version)-$(rustc -vV | sed -n 's/^host: //p')
    folder=$out/$name
    rm -rf "$folder"
    mkdir -p "$folder/packaging"
    # The same places as in the repository, so that links and commands of the documents work.
    cp "target/$profile/dialarr" .env.example README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT "$folder"
    cp packaging/dialarr.service packaging/README.md "$folder/packaging"
    cp -r docs "$out/man" "$out/completions" "$folder"
    # The same files give the same archive.
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        --directory "$out" "$name" | gzip --no-name >"$folder.tar.gz"
    rm -rf "$folder"
}

sbom() {
    mkdir -p "$out"
    cargo cyclonedx --quiet --format json --override-filename sbom --target "$(rustc -vV | sed -n 's/^host: //p')"
    mv sbom.json "$out/dialarr-$(version).cdx.json"
}

checksums() {
    (cd "$out" && rm -f SHA256SUMS && sha256sum -- *.deb *.tar.gz *.cdx.json >SHA256SUMS)
}

case ${1:-all} in
    tools | deb | tarball | sbom) "$1" ;;
    all) rm -rf "$out" && deb && tarball && sbom && checksums ;;
    *)
        sed -n 's/^# //p' "$0" >&2
        exit 2
        ;;
esac
