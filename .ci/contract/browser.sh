# The console in headless Chromium: the setup assistant from an empty folder, sign-in, a streamed reply, an approved
# deletion, and the accessibility of each page. Screenshots are in target/browser and target/browser-setup.
browser() (
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    lacks_npm "$folder" playwright-core@1.65.1 axe-core@4.14.1 && return
    lacks_debian chromium chromium && return
    DIALARR_NODE_MODULES="$folder/node_modules" CHROMIUM=$(command -v chromium) \
        cargo test --quiet --test browser
)
