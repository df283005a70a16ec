//! Detection of thinking that the server did not split from the answer. Servers without a parser for their model send
//! thinking as a leading block of the answer, in any number of pieces.

use super::ResponseDelta;

/// Tags around a block, matched without regard to case.
struct ThinkingTags {
    open: &'static str,
    close: [&'static str; 1],
}

static TAGS: [ThinkingTags; 5] = [
    ThinkingTags { open: "<think>", close: ["</think>"] },
    ThinkingTags { open: "<thinking>", close: ["</thinking>"] },
    ThinkingTags { open: "<thought>", close: ["</thought>"] },
    ThinkingTags { open: "<reasoning>", close: ["</reasoning>"] },
    ThinkingTags { open: "[think]", close: ["[/think]"] },
];

// Control tokens of harmony, the format of gpt-oss: a header that names a channel, then its message.
const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const MESSAGE_ENDS: [&str; 5] = ["<|end|>", "<|return|>", "<|call|>", START, CHANNEL];
/// Maximum length of a message header in bytes. A longer text is not a header.
const MAX_HEADER: usize = 200;

/// Splitter of a text that arrives in pieces into thinking and answer. The parts do not depend on the piece boundaries.
#[derive(Debug, Default)]
pub(super) struct ThinkingSplitter {
    state: SplitterState,
    /// End of the text so far, if it may be the beginning of a tag.
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SplitterState {
    /// The text so far is only whitespace.
    #[default]
    Beginning,
    /// A block has ended, and another block or the answer follows.
    Between,
    /// Names of role and channel, before a message of harmony.
    Header,
    /// Content of a block, up to one of the end strings. Leading whitespace is dropped.
    Block { part: TextSection, ends: &'static [&'static str], is_blank: bool },
    /// Answer, up to the end of the text.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSection {
    Thinking,
    Answer,
}

/// Result of an attempt to split the held text.
enum SplitProgress {
    Advanced,
    /// More text is needed to decide.
    NeedsMore,
}

impl ThinkingSplitter {
    /// Adds a piece of text and returns the parts that are certain after this piece.
    pub fn push(&mut self, piece: &str) -> Vec<ResponseDelta> {
        self.held.push_str(piece);
        let mut parts = Vec::new();
        while let SplitProgress::Advanced = self.split_held(&mut parts) {}
        parts
    }

    /// Returns the rest at the end of the text. A header without a message is not part of an answer.
    pub fn finish(&mut self) -> Option<ResponseDelta> {
        let rest = std::mem::take(&mut self.held);
        let part = match std::mem::replace(&mut self.state, SplitterState::Answer) {
            SplitterState::Beginning | SplitterState::Between | SplitterState::Answer => TextSection::Answer,
            SplitterState::Header => TextSection::Thinking,
            SplitterState::Block { part, .. } => part,
        };
        part.to_delta(&rest)
    }

    fn split_held(&mut self, parts: &mut Vec<ResponseDelta>) -> SplitProgress {
        match self.state {
            SplitterState::Beginning | SplitterState::Between => self.open_block(),
            SplitterState::Header => self.read_header(),
            SplitterState::Block { part, ends, is_blank } => self.read_block(part, ends, is_blank, parts),
            SplitterState::Answer => {
                parts.extend(TextSection::Answer.to_delta(&std::mem::take(&mut self.held)));
                SplitProgress::NeedsMore
            }
        }
    }

    /// Decides whether a block begins at this position.
    fn open_block(&mut self) -> SplitProgress {
        let trimmed = self.held.trim_start();
        if self.state == SplitterState::Between {
            self.held = trimmed.to_owned();
        }
        let text = self.held.trim_start().to_ascii_lowercase();
        let tags = TAGS.iter().find(|tags| text.starts_with(tags.open));
        if let Some(ThinkingTags { open, close }) = tags {
            let blanks = self.held.len() - text.len();
            self.held.drain(..blanks + open.len());
            self.state = SplitterState::Block { part: TextSection::Thinking, ends: close, is_blank: true };
        } else if text.starts_with(START) || text.starts_with(CHANNEL) {
            self.state = SplitterState::Header;
        } else if opening_tags().any(|open| open.starts_with(&text)) {
            return SplitProgress::NeedsMore;
        } else {
            self.state = SplitterState::Answer;
        }
        SplitProgress::Advanced
    }

    /// Parses a header. Only the final channel is meant for the user. A message without a channel is an answer.
    fn read_header(&mut self) -> SplitProgress {
        let end = self.held.find(MESSAGE);
        let part = match end {
            Some(end) if end <= MAX_HEADER => match self.held[..end].rsplit_once(CHANNEL) {
                Some((_, channel)) if !channel.trim_start().starts_with("final") => TextSection::Thinking,
                Some(_) | None => TextSection::Answer,
            },
            None if self.held.len() < MAX_HEADER + MESSAGE.len() => return SplitProgress::NeedsMore,
            Some(_) | None => TextSection::Thinking,
        };
        if let Some(end) = end.filter(|end| *end <= MAX_HEADER) {
            self.held.drain(..end + MESSAGE.len());
            self.state = SplitterState::Block { part, ends: &MESSAGE_ENDS, is_blank: true };
        } else {
            self.state = SplitterState::Block { part, ends: &[], is_blank: true };
        }
        SplitProgress::Advanced
    }

    fn read_block(
        &mut self,
        part: TextSection,
        ends: &'static [&'static str],
        is_blank: bool,
        parts: &mut Vec<ResponseDelta>,
    ) -> SplitProgress {
        if is_blank {
            self.held = self.held.trim_start().to_owned();
        }
        let text = self.held.to_ascii_lowercase();
        let end = ends.iter().filter_map(|end| Some((text.find(end)?, *end))).min_by_key(|(at, _)| *at);
        let Some((at, end)) = end else {
            let certain = text.len() - partial_end_length(&text, ends);
            parts.extend(part.to_delta(&self.held[..certain]));
            self.state = SplitterState::Block { part, ends, is_blank: is_blank && certain == 0 };
            self.held.drain(..certain);
            return SplitProgress::NeedsMore;
        };
        parts.extend(part.to_delta(&self.held[..at]));
        // A token that begins another message is parsed as that message's header.
        let read = if end == START || end == CHANNEL { at } else { at + end.len() };
        self.held.drain(..read);
        self.state = SplitterState::Between;
        SplitProgress::Advanced
    }
}

impl TextSection {
    fn to_delta(self, text: &str) -> Option<ResponseDelta> {
        let delta = match self {
            Self::Thinking => ResponseDelta::Thinking,
            Self::Answer => ResponseDelta::Text,
        };
        (!text.is_empty()).then(|| delta(text.to_owned()))
    }
}

fn opening_tags() -> impl Iterator<Item = &'static str> {
    TAGS.iter().map(|tags| tags.open).chain([START, CHANNEL])
}

/// Returns the number of last bytes that may be the beginning of an end tag.
fn partial_end_length(text: &str, ends: &[&str]) -> usize {
    let longest = |end: &&str| (1..end.len()).rev().find(|length| text.ends_with(&end[..*length]));
    ends.iter().filter_map(longest).max().unwrap_or(0)
}

/// Splits a whole text that has the end tag of a block but no start tag into thinking and answer. Servers whose prompt
/// template begins the block do not repeat its start tag.
pub(super) fn split_unopened(text: &str) -> Option<(&str, &str)> {
    let lower = text.to_ascii_lowercase();
    let end = TAGS.iter().filter_map(|tags| Some((lower.find(tags.close[0])?, tags)));
    let (at, tags) = end.min_by_key(|(at, _)| *at)?;
    let is_unopened = !lower[..at].contains(tags.open);
    is_unopened.then(|| (text[..at].trim(), text[at + tags.close[0].len()..].trim_start()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, proptest};
    use proptest::sample::select;

    use super::*;

    /// Returns the thinking and the answer of a text that arrives in these pieces.
    fn split(pieces: &[String]) -> (String, String) {
        let mut splitter = ThinkingSplitter::default();
        let mut deltas: Vec<ResponseDelta> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
        deltas.extend(splitter.finish());
        let (mut thinking, mut answer) = (String::new(), String::new());
        for delta in deltas {
            match delta {
                ResponseDelta::Thinking(text) => thinking.push_str(&text),
                ResponseDelta::Text(text) => answer.push_str(&text),
                ResponseDelta::ToolCall { .. } => panic!("a text has no calls"),
            }
        }
        (thinking, answer)
    }

    #[track_caller]
    fn check(text: &str, thinking: &str, answer: &str) {
        let expected = (thinking.to_owned(), answer.to_owned());
        assert_eq!(split(&[text.to_owned()]), expected, "{text:?}");
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(split(&letters), expected, "{text:?} letter by letter");
    }

    #[test]
    fn leading_block_of_any_spelling_is_thinking() {
        check("<think>\nhm\n</think>\n\nHello.", "hm\n", "Hello.");
        check("\n <THINK>hm</Think>Hello.", "hm", "Hello.");
        check("<thinking>a <b> </think> c</thinking> Hello.", "a <b> </think> c", "Hello.");
        check("<reasoning>hm</reasoning>Hello.", "hm", "Hello.");
        check("<thought>hm</thought>Hello.", "hm", "Hello.");
        check("[THINK]hm[/THINK]Hello.", "hm", "Hello.");
        check("<think>\n\n</think>\n\nHello.", "", "Hello.");
        check("<think>a</think>\n<think>b</think>Hello.", "ab", "Hello.");
    }

    #[test]
    fn only_the_final_channel_of_harmony_is_the_reply() {
        let analysis = "<|channel|>analysis<|message|>hm<|end|>";
        check(&format!("{analysis}<|start|>assistant<|channel|>final<|message|>Hi."), "hm", "Hi.");
        check(&format!("<|start|>assistant{analysis}<|channel|>final<|message|>Hi.<|return|>"), "hm", "Hi.");
        let call = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>";
        check(&format!("{analysis}<|start|>assistant{call}"), "hm{}", "");
        check("<|start|>assistant<|message|>Hi.<|end|>", "", "Hi.");
        check("<|channel|>final <|constrain|>json<|message|>{}", "", "{}");
        check("<|channel|>analysis", "<|channel|>analysis", "");
        let endless = format!("<|channel|>{}", "x".repeat(500));
        check(&endless, &endless, "");
        let late = format!("{endless}<|message|>Hi.");
        check(&late, &late, "");
    }

    #[test]
    fn block_without_an_end_leaves_no_reply() {
        check("<think>I will text them", "I will text them", "");
        check("<think>I will</thi", "I will</thi", "");
        check("<|channel|>analysis<|message|>I will<|en", "I will<|en", "");
    }

    #[test]
    fn text_without_a_leading_block_is_unchanged() {
        for text in [
            "",
            " ",
            "Hi.",
            " <thin> air",
            "<",
            "<3",
            "[1] Dune",
            "I <think>so</think>",
            "<thinking about it",
        ] {
            check(text, "", text);
        }
    }

    #[test]
    fn end_tag_without_a_start_ends_a_block_of_the_template() {
        assert_eq!(split_unopened("hm\n</think>\n\nHi."), Some(("hm", "Hi.")));
        assert_eq!(split_unopened("I <think>so</think>"), None);
        assert_eq!(split_unopened("Hi."), None);
    }

    fn any_text() -> impl Strategy<Value = String> {
        let pieces = select(vec![
            "<think>",
            "</think>",
            "<thinking>",
            "</thinking>",
            "<Reasoning>",
            "</reasoning>",
            "<|start|>assistant",
            "<|channel|>",
            "analysis",
            "final",
            "<|message|>",
            "<|end|>",
            "<|return|>",
            "<",
            "</",
            "<|",
            "th",
            ">",
            " ",
            "\n",
            "Hi.",
            "\u{e9}\u{1f3ac}",
        ]);
        proptest::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn text_split_anywhere_gives_the_same_parts(text in any_text(), letters in 1..9_usize) {
            let all: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = all.chunks(letters).map(|piece| piece.iter().collect()).collect();
            assert_eq!(split(&pieces), split(&[text]));
        }

        #[test]
        fn thinking_in_a_leading_block_never_reaches_the_reply(
            blanks in "[ \n]{0,2}", thinking in "[a-z<>/|é\n ]{0,30}", answer in "[a-zé.]{0,30}", letters in 1..9_usize,
        ) {
            let text = format!("{blanks}<think>{thinking}</think>\n{answer}");
            let all: Vec<char> = text.chars().collect();
            let pieces: Vec<String> = all.chunks(letters).map(|piece| piece.iter().collect()).collect();
            assert_eq!(split(&pieces).1, answer);
            let open: Vec<String> = vec![format!("{blanks}<think>{thinking}")];
            assert_eq!(split(&open).1, "");
        }
    }
}
