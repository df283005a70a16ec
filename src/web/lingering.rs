//! Stream with a lingering close: it drains unread input before it closes. Closing a socket with unread bytes resets
//! the connection, and the client may lose the response that was sent before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Maximum number of bytes that are drained after the response.
const MAX_DRAINED_BYTES: usize = 256 << 10;
/// Time limit for draining.
const MAX_LINGER: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 8 << 10;

/// Flag for a response that was sent before the request body was read; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct UnreadBody(Arc<AtomicBool>);

impl UnreadBody {
    pub(super) fn set_unread(&self, is_unread: bool) {
        self.0.store(is_unread, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) struct LingeringStream<S> {
    stream: S,
    unread: UnreadBody,
    close_state: CloseState,
}

enum CloseState {
    Open,
    Draining { remaining_bytes: usize, deadline: Pin<Box<Sleep>> },
}

impl<S> LingeringStream<S> {
    pub(super) fn new(stream: S, unread: UnreadBody) -> Self {
        Self { stream, unread, close_state: CloseState::Open }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LingeringStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Shuts down the write side, so that the client knows that its response is complete, and then drains input.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.close_state, CloseState::Open) {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            if !this.unread.is_set() {
                return Poll::Ready(Ok(()));
            }
            this.close_state = CloseState::Draining {
                remaining_bytes: MAX_DRAINED_BYTES,
                deadline: Box::pin(sleep(MAX_LINGER)),
            };
        }
        let CloseState::Draining { remaining_bytes, deadline } = &mut this.close_state else {
            return Poll::Ready(Ok(()));
        };
        let mut chunk = [0; CHUNK_BYTES];
        while *remaining_bytes > 0 && deadline.as_mut().poll(cx).is_pending() {
            let mut chunk = ReadBuf::new(&mut chunk);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut chunk)) {
                Ok(()) if !chunk.filled().is_empty() => {
                    *remaining_bytes = remaining_bytes.saturating_sub(chunk.filled().len())
                }
                // The client has finished or disconnected.
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
