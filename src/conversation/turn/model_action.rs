//! Actions of the model on the conversation itself. A kind of action is a variant here and a tool in `tools/`.

use url::Url;

use crate::conversation::grammar::reaction;
use crate::conversation::transcript::{CallState, ToolArguments, ToolCall};

/// Tool by which the model reacts.
pub const REACT: &str = "react";
/// Tool by which the model sends a picture.
pub const SEND_POSTER: &str = "send_poster";

/// Action of the model in the conversation. An action never decides whether the text of an answer is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelAction {
    /// Reaction to the last message of the user.
    React(Emoji),
    SendPoster(Poster),
}

/// Picture of a movie or series, at one of the two catalogs that have pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poster {
    /// Name such as `Dune (2021)`, which is sent along with the picture.
    pub name: String,
    pub address: PosterAddress,
}

/// Address of a poster, only on a host that has only such pictures: any content behind an address is sent to users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PosterAddress(String);

impl PosterAddress {
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|url| url.scheme() == "https" && url.port().is_none())?;
        if !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        match url.host_str()? {
            // The original at TMDB may be larger than carriers accept.
            TMDB => Some(Self(url.as_str().replacen("/t/p/original/", "/t/p/w500/", 1))),
            THE_TVDB => Some(Self(url.into())),
            _ => None,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const TMDB: &str = "image.tmdb.org";
const THE_TVDB: &str = "artworks.thetvdb.com";

/// A single emoji.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emoji(String);

impl Emoji {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (reaction::is_emoji(text) && text.chars().count() <= MAX_CHARACTERS).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Maximum number of characters, which a family with skin tones needs.
const MAX_CHARACTERS: usize = 11;

/// Returns the reaction that a call has made, if it made one.
pub fn reaction_from_call(call: &ToolCall) -> Option<Emoji> {
    let (ToolArguments::Object(arguments), CallState::Done(_)) = (&call.arguments, &call.state) else {
        return None;
    };
    let emoji = arguments.get("emoji").filter(|_| call.name == REACT)?;
    Emoji::parse(emoji.as_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posters_come_from_two_hosts_in_a_size_for_carriers() {
        let address = |text| PosterAddress::parse(text).map(|address| address.0);
        let tmdb = "https://image.tmdb.org/t/p/original/abc.jpg";
        assert_eq!(address(tmdb).as_deref(), Some("https://image.tmdb.org/t/p/w500/abc.jpg"));
        let the_tvdb = "https://artworks.thetvdb.com/banners/posters/292157-1.jpg";
        assert_eq!(address(the_tvdb).as_deref(), Some(the_tvdb));
        for text in [
            "http://image.tmdb.org/t/p/original/abc.jpg",
            "https://image.tmdb.org:8443/abc.jpg",
            "https://image.tmdb.org@evil.example/abc.jpg",
            "https://me:word@image.tmdb.org/abc.jpg",
            "https://image.tmdb.org.evil.example/abc.jpg",
            "https://evil.example/image.tmdb.org/abc.jpg",
            "/MediaCover/15/poster.jpg",
            "",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_not_emoji() {
        for text in [
            "\u{1f44d}",
            " \u{2764}\u{fe0f} ",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "1\u{fe0f}\u{20e3}",
        ] {
            assert!(Emoji::parse(text).is_some(), "{text:?}");
        }
        for text in ["", "ok", "thumbs up", "1", ":)", "\u{1f44d} great", "<3"] {
            assert_eq!(Emoji::parse(text), None, "{text:?}");
        }
    }
}
