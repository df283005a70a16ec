//! Posters of a fake server.

use bytes::Bytes;

/// Response to a request for any poster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakePoster {
    pub status: u16,
    pub content_type: &'static str,
    /// Target of a redirect.
    pub location: Option<&'static str>,
    pub body: Bytes,
}

impl FakePoster {
    pub fn image(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status: 200, content_type, location: None, body: body.into() }
    }
}

impl Default for FakePoster {
    fn default() -> Self {
        Self::image("image/png", include_bytes!("poster.png").as_slice())
    }
}
