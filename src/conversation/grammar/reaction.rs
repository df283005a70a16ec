//! Parser of reactions, which phones send as ordinary messages: `Liked “…”`. A reaction is never a yes or a no,
//! whatever text it quotes.

/// Reaction that a phone wrote out as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedReaction<'a> {
    /// Emoji of the reaction; `None` for a sticker.
    pub emoji: Option<&'a str>,
    pub quote: ReactionQuote<'a>,
    pub removal: bool,
}

/// Quoted target of a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionQuote<'a> {
    /// The quoted text; an ellipsis at its end means that the phone truncated it.
    Text(&'a str),
    /// A description such as "an image".
    Media(&'a str),
}

/// Parses the whole of `text` as a reaction, in one of the forms that iPhones and Google Messages write. Only
/// [`find_reaction_target`] distinguishes a reaction from the same words typed by a user.
pub fn parse_reaction(text: &str) -> Option<ParsedReaction<'_>> {
    // Hair spaces at the ends belong to Google's form, so only ASCII whitespace is trimmed.
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    parse_google_reaction(text).or_else(|| parse_apple_reaction(text))
}

/// Target of a reaction among the recent messages of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionTarget {
    /// The message at this index.
    Message(usize),
    /// A picture or other media, without further identification.
    Media,
    /// No recent message matches: the user typed these words.
    NotFound,
}

/// Finds the recent message, of either side, that is the target of the reaction.
pub fn find_reaction_target<'t>(
    reaction: &ParsedReaction<'_>,
    mut recent: impl Iterator<Item = &'t str>,
) -> ReactionTarget {
    match reaction.quote {
        ReactionQuote::Media(_) => ReactionTarget::Media,
        ReactionQuote::Text("") => ReactionTarget::NotFound,
        ReactionQuote::Text(target) => {
            let index = recent.position(|text| {
                let text = text.trim();
                let target = target.trim();
                match target.strip_suffix('\u{2026}').map(str::trim_end) {
                    Some(start) if !start.is_empty() => text == target || text.starts_with(start),
                    Some(_) | None => text == target,
                }
            });
            index.map_or(ReactionTarget::NotFound, ReactionTarget::Message)
        }
    }
}

/// Returns whether `text` looks like a reaction in the lenient form used while a prompt is open: any case, any
/// quotation marks, and quotes whose end was cut off.
pub fn looks_like_reaction(text: &str) -> bool {
    if parse_reaction(text).is_some() {
        return true;
    }
    let visible: String =
        text.chars().filter(|c| !matches!(c, '\u{200A}'..='\u{200F}' | '\u{2060}')).collect();
    let lower = visible.trim().to_lowercase();
    if let Some(head) = MEDIA_NOUNS.iter().find_map(|noun| lower.strip_suffix(&noun.to_lowercase())) {
        return is_reaction_phrase(head.trim_end());
    }
    let Some(open) = lower.find(QUOTES) else { return false };
    let quote = lower[open..].trim_start_matches(QUOTES);
    let ends_with_quote = quote.trim_end().ends_with(QUOTES) || !quote.contains(QUOTES);
    ends_with_quote && is_reaction_phrase(lower[..open].trim_end())
}

const HAIR_SPACE: char = '\u{200A}';

const QUOTES: [char; 7] = ['\u{201C}', '\u{201D}', '\u{201E}', '\u{201F}', '"', '«', '»'];

/// Opening and closing quotation marks: English, straight, German, French.
const QUOTE_PAIRS: [(char, char); 4] =
    [('\u{201C}', '\u{201D}'), ('"', '"'), ('\u{201E}', '\u{201C}'), ('«', '»')];

/// Words before the quote, in English, German, Spanish and French, and their emoji.
const VERBS: [(&str, &str); 27] = [
    ("Loved", "❤️"),
    ("Liked", "👍"),
    ("Disliked", "👎"),
    ("Laughed at", "😂"),
    ("Emphasized", "‼️"),
    ("Emphasised", "‼️"),
    ("Questioned", "❓"),
    ("Gefällt:", "👍"),
    ("Le encantó", "❤️"),
    ("Le gustó", "👍"),
    ("No le gustó", "👎"),
    ("Se rio de", "😂"),
    ("Se rió de", "😂"),
    ("Se rio con", "😂"),
    ("Enfatizó", "‼️"),
    ("Exclamó por", "‼️"),
    ("Cuestionó", "❓"),
    ("Preguntó por", "❓"),
    ("A adoré", "❤️"),
    ("A aimé", "👍"),
    ("N’a pas aimé", "👎"),
    ("N'a pas aimé", "👎"),
    ("A ri de", "😂"),
    ("A ri à", "😂"),
    ("A insisté sur", "‼️"),
    ("A mis l’accent sur", "‼️"),
    ("A posé une question sur", "❓"),
];

const REMOVED_NOUNS: [(&str, &str); 6] = [
    ("a heart", "❤️"),
    ("a like", "👍"),
    ("a dislike", "👎"),
    ("a laugh", "😂"),
    ("an exclamation", "‼️"),
    ("a question mark", "❓"),
];

const MEDIA_NOUNS: [&str; 9] = [
    "an image",
    "a photo",
    "a movie",
    "a video",
    "an audio message",
    "an attachment",
    "a sticker",
    "a link",
    "a GIF",
];

/// Parses the form of Google Messages, which marks its parts with invisible characters. The words between them are in
/// the language of the phone.
fn parse_google_reaction(text: &str) -> Option<ParsedReaction<'_>> {
    let text = text.strip_prefix(HAIR_SPACE).unwrap_or(text);
    let text = text.strip_suffix(HAIR_SPACE).unwrap_or(text);
    [('\u{200B}', false), ('\u{200C}', true)].into_iter().find_map(|(mark, removal)| {
        let (lead, rest) = text.split_once(mark)?;
        let (emoji, rest) = rest.split_once(mark)?;
        let (_, rest) = rest.split_once(HAIR_SPACE)?;
        let (target, _) = rest.rsplit_once(HAIR_SPACE)?;
        let is_reaction = is_emoji(emoji) && !lead.contains(HAIR_SPACE);
        is_reaction.then_some(ParsedReaction {
            emoji: Some(emoji),
            quote: ReactionQuote::Text(target),
            removal,
        })
    })
}

fn parse_apple_reaction(text: &str) -> Option<ParsedReaction<'_>> {
    if let Some((head, noun)) = MEDIA_NOUNS.iter().find_map(|noun| Some((text.strip_suffix(noun)?, *noun))) {
        let (emoji, removal) = parse_reaction_head(head.strip_suffix(' ')?)?;
        return Some(ParsedReaction { emoji, quote: ReactionQuote::Media(noun), removal });
    }
    let (text, german) = match text.strip_suffix(" reagiert") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (head, target) = split_quote(text)?;
    let head = head.strip_suffix(' ')?;
    let (emoji, removal) = if german {
        (Some(emoji_between(head, "Hat mit ", " auf")?), false)
    } else {
        // Google's form without its invisible characters, which some carriers drop, begins with the emoji.
        parse_reaction_head(head).or_else(|| Some((Some(emoji_between(head, "", " to")?), false)))?
    };
    Some(ParsedReaction { emoji, quote: ReactionQuote::Text(target), removal })
}

/// Splits the text into the part before the quote and the quote, which runs to the end of the text.
fn split_quote(text: &str) -> Option<(&str, &str)> {
    QUOTE_PAIRS.into_iter().find_map(|(open, close)| text.strip_suffix(close)?.split_once(open))
}

/// Parses the words before the quote: returns their emoji, and whether the reaction was removed.
fn parse_reaction_head(head: &str) -> Option<(Option<&str>, bool)> {
    if let Some((_, emoji)) = VERBS.iter().find(|(verb, _)| *verb == head) {
        return Some((Some(emoji), false));
    }
    if let Some(emoji) = emoji_between(head, "Reacted ", " to") {
        return Some((Some(emoji), false));
    }
    if head == "Reacted with a sticker to" {
        return Some((None, false));
    }
    let removed = head.strip_prefix("Removed ")?.strip_suffix(" from")?;
    match REMOVED_NOUNS.iter().find(|(noun, _)| *noun == removed) {
        Some((_, emoji)) => Some((Some(emoji), true)),
        None => is_emoji(removed).then_some((Some(removed), true)),
    }
}

fn emoji_between<'a>(head: &'a str, before: &str, after: &str) -> Option<&'a str> {
    head.strip_prefix(before)?.strip_suffix(after).filter(|emoji| is_emoji(emoji))
}

/// Returns whether `text` may be an emoji: characters from U+2000 up, digits, `#` and `*`. The rule is approximate, but
/// it excludes Latin words: "Removed milk from" and "Reacted badly to" are ordinary text, not reactions.
pub(in crate::conversation) fn is_emoji(text: &str) -> bool {
    let is_symbol = |c: char| !c.is_whitespace() && (c >= '\u{2000}' || matches!(c, '©' | '®'));
    text.chars().any(is_symbol)
        && text.chars().count() <= 16
        && text.chars().all(|c| is_symbol(c) || matches!(c, '0'..='9' | '#' | '*'))
}

/// Returns whether the lower-case words before a quote introduce a reaction, in the lenient form.
fn is_reaction_phrase(head: &str) -> bool {
    let has_short_middle = |start: &str, end: &str| {
        head.strip_prefix(start)
            .and_then(|rest| rest.strip_suffix(end))
            .is_some_and(|middle| (1..=16).contains(&middle.trim().chars().count()))
    };
    VERBS.iter().any(|(verb, _)| verb.to_lowercase() == head)
        || has_short_middle("reacted", " to")
        || has_short_middle("removed", " from")
        || emoji_between(head, "", " to").is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use serde_json::Value;

    use super::super::confirmation_reply::{self, ConfirmationReply};
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<ParsedReaction<'_>>) {
        assert_eq!(parse_reaction(text), expected, "{text:?}");
    }

    #[test]
    fn every_recorded_reaction_is_parsed_and_routed() {
        let file: Value = serde_json::from_str(include_str!("../../../tests/data/tapbacks.json")).unwrap();
        for vector in file["vectors"].as_array().unwrap() {
            let text = vector["text"].as_str().unwrap();
            let expected = vector["target"].as_str().map(|target| ParsedReaction {
                emoji: vector["emoji"].as_str(),
                quote: if MEDIA_NOUNS.contains(&target) {
                    ReactionQuote::Media(target)
                } else {
                    ReactionQuote::Text(target)
                },
                removal: vector["removal"].as_bool().unwrap(),
            });
            check(text, expected);
            let recent = vector["recent"].as_array().unwrap().iter().filter_map(Value::as_str);
            let skipped = parse_reaction(text)
                .is_some_and(|reaction| find_reaction_target(&reaction, recent) != ReactionTarget::NotFound);
            assert_eq!(skipped, vector["route"] == "skip", "{text:?}");
        }
    }

    #[test]
    fn sticker_is_a_reaction_without_an_emoji() {
        let target = ReactionQuote::Text("Added Dune (2021).");
        check(
            "Reacted with a sticker to “Added Dune (2021).”",
            Some(ParsedReaction { emoji: None, quote: target, removal: false }),
        );
    }

    #[test]
    fn reaction_to_media_can_be_removed() {
        let target = ReactionQuote::Media("an image");
        check(
            "Removed a heart from an image",
            Some(ParsedReaction { emoji: Some("❤️"), quote: target, removal: true }),
        );
    }

    #[test]
    fn quote_without_a_matching_message_is_not_a_reaction() {
        for text in ["Loved “Dune”", "Liked “\u{2001}…”"] {
            let reaction = parse_reaction(text).unwrap();
            assert_eq!(
                find_reaction_target(&reaction, ["Added Heat (1995)."].into_iter()),
                ReactionTarget::NotFound,
                "{text:?}"
            );
        }
    }

    #[test]
    fn truncated_quote_matches_by_prefix() {
        let blank_first = parse_reaction("Loved “\u{2001}Added Heat…”").unwrap();
        assert_eq!(
            find_reaction_target(&blank_first, ["\u{2001}Added Heat (1995)."].into_iter()),
            ReactionTarget::Message(0)
        );
    }

    #[test]
    fn looks_like_reaction_accepts_lenient_forms() {
        for text in [
            "liked “Delete Dune?”",
            "Liked“Delete Dune?”",
            "LOVED \"Delete Dune?\"",
            "Liked “Delete Dune (2021) and its fi",
            "👍 to «Delete Dune?»",
            "loved an Image",
            "Removed his heart from “Delete Dune?”",
        ] {
            assert!(looks_like_reaction(text), "{text:?}");
        }
        for text in [
            "yes",
            "👍",
            "liked",
            "he said “yes”",
            "Loved it, add the sequel",
            "Liked “Dune”, add the sequel",
            "I liked a movie",
        ] {
            assert!(!looks_like_reaction(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn reaction_target_is_parsed_as_written(target: String) {
            // Google's marks inside the quote turn the reaction into one of Google's form.
            if target.contains(['\u{200B}', '\u{200C}']) {
                return Ok(());
            }
            let target = target.as_str();
            let mut reactions = Vec::new();
            for (verb, emoji) in VERBS.into_iter().filter(|(verb, _)| !verb.ends_with(':')) {
                reactions.push((format!("{verb} \u{201C}{target}\u{201D}"), emoji, false));
            }
            for (noun, emoji) in REMOVED_NOUNS {
                reactions.push((format!("Removed {noun} from \u{201C}{target}\u{201D}"), emoji, true));
            }
            reactions.push((format!("Reacted 🎉 to \u{201C}{target}\u{201D}"), "🎉", false));
            reactions.push((format!("Removed 🎉 from \u{201C}{target}\u{201D}"), "🎉", true));
            for (text, emoji, removal) in reactions {
                check(&text, Some(ParsedReaction { emoji: Some(emoji), quote: ReactionQuote::Text(target), removal }));
                assert!(looks_like_reaction(&text), "{text:?}");
                assert!(!matches!(confirmation_reply::parse_confirmation_reply(&text, None, &[]), ConfirmationReply::Yes | ConfirmationReply::No), "{text:?} decides");
            }
            let sticker = format!("Reacted with a sticker to \u{201C}{target}\u{201D}");
            check(&sticker, Some(ParsedReaction { emoji: None, quote: ReactionQuote::Text(target), removal: false }));
        }

        #[test]
        fn quoted_message_is_found_by_its_full_or_truncated_text(text in ".{0,20}[a-z ]{0,9}", letters in 0..20_usize) {
            let start: String = text.chars().take(letters).collect();
            for target in [text.clone(), format!("{start}\u{2026}")] {
                let reaction = ParsedReaction { emoji: None, quote: ReactionQuote::Text(&target), removal: false };
                let has_match = !target.is_empty() && (target == text || !start.trim().is_empty());
                let expected = if has_match { ReactionTarget::Message(1) } else { ReactionTarget::NotFound };
                assert_eq!(find_reaction_target(&reaction, ["\u{1F6AA} Something else.", &text].into_iter()), expected, "{target:?}");
            }
        }

        #[test]
        fn parsed_quote_is_a_substring_of_the_message(text in "\\PC*|[\u{200A}\u{200B}👍a\u{201C}\u{201D} ]{0,30}") {
            if let Some(ParsedReaction { quote: ReactionQuote::Text(target) | ReactionQuote::Media(target), .. }) = parse_reaction(&text) {
                assert!(text.contains(target) && looks_like_reaction(&text));
            }
        }
    }
}
