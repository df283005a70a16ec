fn main() {
    // Without this, a migration added later is silently not embedded.
    println!("cargo:rerun-if-changed=migrations");
}
