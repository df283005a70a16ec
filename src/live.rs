//! Value that is replaced as a whole while the program runs.

use std::sync::Arc;

use tokio::sync::watch;

/// Value that is replaced as a whole while the program runs. Clones share it.
#[derive(Debug)]
pub struct Live<T>(watch::Sender<Arc<T>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Live<T> {
    pub fn new(value: T) -> Self {
        Self(watch::Sender::new(Arc::new(value)))
    }

    /// Returns the newest value. The returned one does not change when the value is replaced.
    pub fn current(&self) -> Arc<T> {
        self.0.borrow().clone()
    }

    pub fn replace(&self, value: T) {
        self.0.send_replace(Arc::new(value));
    }

    /// Returns a receiver that is notified of each later replacement.
    pub fn subscribe(&self) -> watch::Receiver<Arc<T>> {
        self.0.subscribe()
    }
}
