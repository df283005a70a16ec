//! Peer with the fuzzer's responses, and a runtime whose clock never advances by itself.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dialarr::http::HttpClient;
use futures_util::FutureExt;
use http::{Request, Response, Uri};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Requested addresses.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Vec<Uri>>>);

impl Asked {
    pub fn take(&self) -> Vec<Uri> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with the lock"))
    }
}

/// Connection to a peer that answers each request with the next of these bodies, and then repeats the last one.
pub fn answering(status: u16, bodies: Vec<Bytes>) -> (HttpClient, Asked) {
    let asked = Asked::default();
    let noted = asked.clone();
    let next = AtomicUsize::new(0);
    let http = HttpClient::in_process(Arc::new(move |request: Request<Bytes>| {
        noted.0.lock().expect("nobody panics with the lock").push(request.uri().clone());
        let at = next.fetch_add(1, Ordering::Relaxed).min(bodies.len().saturating_sub(1));
        let body = bodies.get(at).cloned().unwrap_or_default();
        let answer = Response::builder().status(status).header("content-type", "application/json").body(body);
        async move { answer.expect("a status and a header that exist") }.boxed()
    }));
    (http, asked)
}
