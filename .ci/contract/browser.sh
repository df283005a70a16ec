# The console in headless Chromium: signing in, an answer as it comes, a deletion approved, each page inspected for
# accessibility. Its pictures are kept in target/browser.
browser() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    lacks_npm "$folder" playwright-core@1.65.1 axe-core@4.14.1 && return
    lacks_debian chromium chromium && return
    DIALARR_NODE_MODULES="$folder/node_modules" CHROMIUM=$(command -v chromium) \
        cargo test --quiet --test browser
)
