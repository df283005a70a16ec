# The fuzz targets are a workspace of their own, so nothing else would tell that one no longer compiles.
fuzz() {
    cargo clippy --locked --manifest-path fuzz/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" --all-targets -- -D warnings
}
