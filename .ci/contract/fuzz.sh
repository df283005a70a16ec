# Compiles the fuzz targets, which are a separate workspace. Nothing is linked, so the fuzzer itself is not built and no
# file needs to exist at its path.
fuzz() {
    CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a cargo clippy --locked --manifest-path fuzz/Cargo.toml \
        --target-dir "${CARGO_TARGET_DIR:-target}" --all-targets -- -D warnings
}
