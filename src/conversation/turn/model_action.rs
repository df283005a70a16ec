//! Actions of the model in the conversation itself: reactions, posters and votes. Each kind of action is a variant here and a
//! tool in `tools/`.

use url::Url;

use crate::conversation::grammar::reaction;
use crate::conversation::transcript::{CallState, ToolArguments, ToolCall};
use crate::conversation::votes::VoteQuestion;

/// Name of the tool that reacts to a message.
pub const REACT: &str = "react";
/// Name of the tool that sends a poster.
pub const SEND_POSTER: &str = "send_poster";

/// Name of the tool that starts a vote.
pub const START_VOTE: &str = "start_vote";

/// Action of the model in the conversation. An action does not affect whether the model's text is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelAction {
    /// Reaction to the last message of the user.
    React(Emoji),
    SendPoster(Poster),
    /// Vote of the people in the room.
    StartVote(VoteQuestion),
}

/// Poster of a movie or series, hosted by TMDB or TheTVDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poster {
    /// Name such as `Dune (2021)`, which is sent with the picture.
    pub name: String,
    pub address: PosterUrl,
}

/// URL of a poster on one of the two catalog hosts. The content of the URL is sent to users, so no other host is
/// allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PosterUrl(String);

impl PosterUrl {
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok().filter(|url| url.scheme() == "https" && url.port().is_none())?;
        if !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        match url.host_str()? {
            // The original at TMDB may be larger than carriers accept.
            TMDB_HOST => Some(Self(url.as_str().replacen("/t/p/original/", "/t/p/w500/", 1))),
            THE_TVDB_HOST => Some(Self(url.into())),
            _ => None,
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const TMDB_HOST: &str = "image.tmdb.org";
const THE_TVDB_HOST: &str = "artworks.thetvdb.com";

/// A single emoji.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emoji(String);

impl Emoji {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (reaction::is_emoji(text) && text.chars().count() <= MAX_EMOJI_CHARS).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Maximum number of characters in an emoji: a family with skin tones has this many.
const MAX_EMOJI_CHARS: usize = 11;

/// Returns the emoji with which a completed call reacted, if it did.
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
    fn posters_are_on_two_hosts_and_small_enough_for_carriers() {
        let parse = |text| PosterUrl::parse(text).map(|address| address.0);
        let tmdb = "https://image.tmdb.org/t/p/original/abc.jpg";
        assert_eq!(parse(tmdb).as_deref(), Some("https://image.tmdb.org/t/p/w500/abc.jpg"));
        let the_tvdb = "https://artworks.thetvdb.com/banners/posters/292157-1.jpg";
        assert_eq!(parse(the_tvdb).as_deref(), Some(the_tvdb));
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
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn text_is_not_an_emoji() {
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
