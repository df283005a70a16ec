# The fuzz targets are a workspace of their own, so nothing else would tell that one no longer compiles. Nothing is linked,
# so the fuzzer itself is not built: no file needs to be at its path.
fuzz() {
    CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a cargo clippy --locked --manifest-path fuzz/Cargo.toml \
        --target-dir "${CARGO_TARGET_DIR:-target}" --all-targets -- -D warnings
}
