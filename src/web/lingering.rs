//! Stream that, before it is closed, reads the data that its client still sends. Closing a socket with unread bytes in
//! it makes the system reset the connection, and the client may lose the response that was sent before.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Most bytes that are read and dropped after the response.
const MAX_DROPPED_BYTES: usize = 256 << 10;
/// Longest time for which data is read and dropped.
const MAX_LINGER: Duration = Duration::from_secs(2);
const PIECE_BYTES: usize = 8 << 10;

/// Flag that is set if the last request got its response before its body was read; clones share it.
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
    ending: CloseState,
}

enum CloseState {
    Open,
    Draining { left: usize, until: Pin<Box<Sleep>> },
}

impl<S> LingeringStream<S> {
    pub(super) fn new(stream: S, unread: UnreadBody) -> Self {
        Self { stream, unread, ending: CloseState::Open }
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

    /// Ends our side of the stream, so that the client knows that its response is complete, and then drops data that
    /// still arrives.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.ending, CloseState::Open) {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            if !this.unread.is_set() {
                return Poll::Ready(Ok(()));
            }
            this.ending =
                CloseState::Draining { left: MAX_DROPPED_BYTES, until: Box::pin(sleep(MAX_LINGER)) };
        }
        let CloseState::Draining { left, until } = &mut this.ending else { return Poll::Ready(Ok(())) };
        let mut piece = [0; PIECE_BYTES];
        while *left > 0 && until.as_mut().poll(cx).is_pending() {
            let mut piece = ReadBuf::new(&mut piece);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => *left = left.saturating_sub(piece.filled().len()),
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
