//! Response of server-sent events, which pages and the API share.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::header::CACHE_CONTROL;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use super::stream_limit::StreamLease;

/// Delay before a client reconnects, instead of the browser's default.
const RETRY: Duration = Duration::from_secs(2);
/// Interval of heartbeat comments. They keep proxies from closing the stream, and reveal a client that has
/// disconnected.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Longest duration of a stream. The client then reconnects with its cursor, and its access is checked again.
const MAX_STREAM_TIME: Duration = Duration::from_secs(300);

/// Source of the events of one client.
pub(in crate::web) trait EventSource: Send + Sized + 'static {
    /// Name of the stream in the log.
    const NAME: &'static str;

    /// Waits for the next events. After an error the stream ends, and the client reconnects.
    fn next_events(&mut self) -> impl Future<Output = anyhow::Result<Vec<Event>>> + Send;
}

/// Returns a stream of server-sent events, with headers that prevent proxies from buffering it. The stream ends at once
/// when the listener stops, or when its owner loses access.
pub(in crate::web) fn event_stream_response(
    lease: StreamLease,
    stop: CancellationToken,
    source: impl EventSource,
) -> Response {
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    // The lease is held until the stream ends.
    let ended = async move {
        tokio::select! {
            () = tokio::time::sleep(MAX_STREAM_TIME) => {}
            () = lease.wait_ended() => {}
            () = stop.cancelled() => {}
        }
    };
    let events = into_event_stream(source).take_until(Box::pin(ended));
    let sse = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    ([(CACHE_CONTROL, "no-store"), (unbuffered, "no")], sse).into_response()
}

fn into_event_stream<S: EventSource>(
    source: S,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let queue = VecDeque::from([Event::default().retry(RETRY)]);
    unfold((source, queue), |(mut source, mut queue)| async move {
        loop {
            if let Some(event) = queue.pop_front() {
                return Some((Ok(event), (source, queue)));
            }
            match source.next_events().await {
                Ok(events) => queue.extend(events),
                Err(error) => {
                    tracing::warn!(
                        stream = S::NAME,
                        error = format!("{error:#}"),
                        "event stream ended early"
                    );
                    return None;
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use axum::body::to_bytes;

    use super::*;
    use crate::web::stream_limit::{StreamLimit, StreamOwner};

    struct Silence;

    impl EventSource for Silence {
        const NAME: &'static str = "silence";

        async fn next_events(&mut self) -> anyhow::Result<Vec<Event>> {
            pending().await
        }
    }

    async fn read_stream(stop: CancellationToken) -> String {
        let lease = StreamLimit::default()
            .acquire_lease(StreamOwner::Key(1))
            .into_lease()
            .unwrap_or_else(|_| panic!("lease was refused"));
        let response = event_stream_response(lease, stop, Silence);
        String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn stream_ends_after_its_time_limit() {
        let body = read_stream(CancellationToken::new()).await;
        assert!(body.starts_with("retry: 2000\n\n:\n\n"), "heartbeats, then the end: {body}");
    }

    #[tokio::test]
    async fn stream_ends_when_the_listener_stops() {
        let stop = CancellationToken::new();
        stop.cancel();
        read_stream(stop).await;
    }
}
