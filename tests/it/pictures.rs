//! Pictures from users: recorded, and never fetched, neither by the program nor by the console pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use dialarr::http::HttpClient;
use http::{Request, Uri};
use tokio::time::timeout;

use crate::harness::TestApp;
use crate::harness::served::{ServedPeers, serve};

/// Time limit of the tests. Nothing here takes this long unless it hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const ADMIN: &str = "+15550100002";
const LONG_AGO: &str = "https://media.example/walrus.jpg";

#[tokio::test(flavor = "multi_thread")]
async fn picture_from_a_user_is_never_fetched() {
    let fetched = Arc::new(AtomicUsize::new(0));
    let counting = fetched.clone();
    let picture = serve(Router::new().fallback(move || async move {
        counting.fetch_add(1, Ordering::SeqCst);
        "a picture"
    }));
    let picture = picture.await;
    let mut peers = ServedPeers::open().await;
    for (variable, value) in [("HOST", "127.0.0.1"), ("PORT", "0"), ("COALESCE_MS", "0")] {
        peers.set(variable, value);
    }
    let program = peers.program();
    let http = HttpClient::network().unwrap();
    let mut sent = peers.twilio.subscribe();

    for body in ["what is downloading?", ""] {
        let text =
            peers.twilio.inbound_form(ADMIN, body).with_media(&format!("{picture}/1.jpg"), "image/jpeg");
        let mut request = text.into_signed_request().unwrap();
        let path = request.uri().path().to_owned();
        *request.uri_mut() = Uri::try_from(format!("http://{}{path}", program.address)).unwrap();
        assert_eq!(http.send(request, TEST_TIMEOUT).await.unwrap().status(), 200);
        let answer = timeout(TEST_TIMEOUT, sent.recv()).await.unwrap().unwrap();
        assert!(answer.to.as_str().ends_with(ADMIN), "{answer:?}");
    }
    drop(program);

    assert_eq!(fetched.load(Ordering::SeqCst), 0);
    let ask = Request::get(&picture).body(bytes::Bytes::new()).unwrap();
    assert_eq!(http.send(ask, TEST_TIMEOUT).await.unwrap().status(), 200);
    assert_eq!(fetched.load(Ordering::SeqCst), 1, "nobody would have been counted");
}

#[tokio::test]
async fn console_pages_embed_no_picture_from_a_user() {
    let app = TestApp::start_without_model().await;
    app.pass(1);
    let text = app.text(ADMIN, "status").with_media(LONG_AGO, "image/jpeg");
    assert_eq!(app.post(text).await, 200);
    app.settle().await;
    let mut browser = app.browser().await;
    assert!(browser.get("/conversations/1").await.text().contains("Attachment (image/jpeg), not loaded"));
    for path in ["/", "/conversations", "/conversations/1", "/conversations?q=status"] {
        assert!(!browser.get(path).await.html.contains("media.example"), "{path}");
    }
}
