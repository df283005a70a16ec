//! The pages of the console, as an operator sees them.

use crate::harness::TestApp;

#[tokio::test]
async fn the_home_page_says_where_one_is() {
    let app = TestApp::start_without_model().await;

    let page = app.browser().await.get("/").await;

    assert_eq!((page.status, page.says().starts_with("Home ")), (200, true));
}
