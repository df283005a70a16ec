//! Separation of thinking from the answer in one text. Servers without a parser for their model's format send thinking
//! as a leading block of the answer, in any number of chunks.

use super::ResponseDelta;

/// Tags around a block, matched ignoring case.
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

// Control tokens of Harmony, the response format of gpt-oss: a header that names a channel, then a message.
const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const MESSAGE_ENDS: [&str; 5] = ["<|end|>", "<|return|>", "<|call|>", START, CHANNEL];
/// Maximum length of a message header. Longer text is not a header.
const MAX_HEADER_BYTES: usize = 200;

/// Incremental splitter of a text into thinking and answer. The result does not depend on the chunk boundaries.
#[derive(Debug, Default)]
pub(super) struct ThinkingSplitter {
    state: SplitterState,
    /// Undecided end of the text so far, which may be the beginning of a tag.
    pending: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum SplitterState {
    /// The text so far is only whitespace.
    #[default]
    Beginning,
    /// A block has ended, and another block or the answer follows.
    Between,
    /// Role and channel names before a Harmony message.
    Header,
    /// Content of a block, up to one of the end strings. Leading whitespace is dropped.
    Block { section: TextSection, ends: &'static [&'static str], is_blank: bool },
    /// Answer, up to the end of the text.
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSection {
    Thinking,
    Answer,
}

/// Result of one step on the pending text.
enum SplitProgress {
    Advanced,
    /// More text is needed to decide.
    NeedsMore,
}

impl ThinkingSplitter {
    /// Adds a chunk of text and returns the deltas that are decided by now.
    pub fn push(&mut self, chunk: &str) -> Vec<ResponseDelta> {
        self.pending.push_str(chunk);
        let mut deltas = Vec::new();
        while let SplitProgress::Advanced = self.split_pending(&mut deltas) {}
        deltas
    }

    /// Returns the rest at the end of the text. A header without a message counts as thinking.
    pub fn finish(&mut self) -> Option<ResponseDelta> {
        let rest = std::mem::take(&mut self.pending);
        let section = match std::mem::replace(&mut self.state, SplitterState::Answer) {
            SplitterState::Beginning | SplitterState::Between | SplitterState::Answer => TextSection::Answer,
            SplitterState::Header => TextSection::Thinking,
            SplitterState::Block { section, .. } => section,
        };
        section.to_delta(&rest)
    }

    fn split_pending(&mut self, deltas: &mut Vec<ResponseDelta>) -> SplitProgress {
        match self.state {
            SplitterState::Beginning | SplitterState::Between => self.open_block(),
            SplitterState::Header => self.parse_header(),
            SplitterState::Block { section, ends, is_blank } => {
                self.split_block(section, ends, is_blank, deltas)
            }
            SplitterState::Answer => {
                deltas.extend(TextSection::Answer.to_delta(&std::mem::take(&mut self.pending)));
                SplitProgress::NeedsMore
            }
        }
    }

    /// Decides whether a block begins at this position.
    fn open_block(&mut self) -> SplitProgress {
        let trimmed = self.pending.trim_start();
        if self.state == SplitterState::Between {
            self.pending = trimmed.to_owned();
        }
        let text = self.pending.trim_start().to_ascii_lowercase();
        let tags = TAGS.iter().find(|tags| text.starts_with(tags.open));
        if let Some(ThinkingTags { open, close }) = tags {
            let whitespace = self.pending.len() - text.len();
            self.pending.drain(..whitespace + open.len());
            self.state = SplitterState::Block { section: TextSection::Thinking, ends: close, is_blank: true };
        } else if text.starts_with(START) || text.starts_with(CHANNEL) {
            self.state = SplitterState::Header;
        } else if opening_tags().any(|open| open.starts_with(&text)) {
            return SplitProgress::NeedsMore;
        } else {
            self.state = SplitterState::Answer;
        }
        SplitProgress::Advanced
    }

    /// Parses a header. Only the final channel is for the user. A message without a channel is an answer.
    fn parse_header(&mut self) -> SplitProgress {
        let end = self.pending.find(MESSAGE);
        let section = match end {
            Some(end) if end <= MAX_HEADER_BYTES => match self.pending[..end].rsplit_once(CHANNEL) {
                Some((_, channel)) if !channel.trim_start().starts_with("final") => TextSection::Thinking,
                Some(_) | None => TextSection::Answer,
            },
            None if self.pending.len() < MAX_HEADER_BYTES + MESSAGE.len() => return SplitProgress::NeedsMore,
            Some(_) | None => TextSection::Thinking,
        };
        if let Some(end) = end.filter(|end| *end <= MAX_HEADER_BYTES) {
            self.pending.drain(..end + MESSAGE.len());
            self.state = SplitterState::Block { section, ends: &MESSAGE_ENDS, is_blank: true };
        } else {
            self.state = SplitterState::Block { section, ends: &[], is_blank: true };
        }
        SplitProgress::Advanced
    }

    fn split_block(
        &mut self,
        section: TextSection,
        ends: &'static [&'static str],
        is_blank: bool,
        deltas: &mut Vec<ResponseDelta>,
    ) -> SplitProgress {
        if is_blank {
            self.pending = self.pending.trim_start().to_owned();
        }
        let text = self.pending.to_ascii_lowercase();
        let end = ends.iter().filter_map(|end| Some((text.find(end)?, *end))).min_by_key(|(start, _)| *start);
        let Some((start, end)) = end else {
            let decided = text.len() - partial_end_length(&text, ends);
            deltas.extend(section.to_delta(&self.pending[..decided]));
            self.state = SplitterState::Block { section, ends, is_blank: is_blank && decided == 0 };
            self.pending.drain(..decided);
            return SplitProgress::NeedsMore;
        };
        deltas.extend(section.to_delta(&self.pending[..start]));
        // A token that begins another message stays, as part of that message's header.
        let consumed = if end == START || end == CHANNEL { start } else { start + end.len() };
        self.pending.drain(..consumed);
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

/// Returns the length of the longest suffix that may be the beginning of an end tag.
fn partial_end_length(text: &str, ends: &[&str]) -> usize {
    let longest = |end: &&str| (1..end.len()).rev().find(|length| text.ends_with(&end[..*length]));
    ends.iter().filter_map(longest).max().unwrap_or(0)
}

/// Splits a complete text that has the end tag of a block but no start tag. Some prompt templates contain the start
/// tag, so the response does not.
pub(super) fn split_unopened_block(text: &str) -> Option<(&str, &str)> {
    let lower = text.to_ascii_lowercase();
    let ends = TAGS.iter().filter_map(|tags| Some((lower.find(tags.close[0])?, tags)));
    let (end, tags) = ends.min_by_key(|(end, _)| *end)?;
    let is_unopened = !lower[..end].contains(tags.open);
    is_unopened.then(|| (text[..end].trim(), text[end + tags.close[0].len()..].trim_start()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, proptest};
    use proptest::sample::select;

    use super::*;

    /// Returns the thinking and the answer of a text that arrives in these chunks.
    fn split(chunks: &[String]) -> (String, String) {
        let mut splitter = ThinkingSplitter::default();
        let mut deltas: Vec<ResponseDelta> = chunks.iter().flat_map(|chunk| splitter.push(chunk)).collect();
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
        let characters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(split(&characters), expected, "{text:?} by character");
    }

    #[test]
    fn leading_block_with_any_tag_is_thinking() {
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
    fn only_the_final_channel_of_harmony_is_the_answer() {
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
    fn unclosed_block_leaves_no_answer() {
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
    fn text_before_an_unopened_end_tag_is_thinking() {
        assert_eq!(split_unopened_block("hm\n</think>\n\nHi."), Some(("hm", "Hi.")));
        assert_eq!(split_unopened_block("I <think>so</think>"), None);
        assert_eq!(split_unopened_block("Hi."), None);
    }

    fn any_text() -> impl Strategy<Value = String> {
        let fragments = select(vec![
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
        proptest::collection::vec(fragments, 0..12).prop_map(|fragments| fragments.concat())
    }

    proptest! {
        #[test]
        fn result_is_independent_of_chunk_boundaries(text in any_text(), chunk_length in 1..9_usize) {
            let characters: Vec<char> = text.chars().collect();
            let chunks: Vec<String> = characters.chunks(chunk_length).map(|chunk| chunk.iter().collect()).collect();
            assert_eq!(split(&chunks), split(&[text]));
        }

        #[test]
        fn thinking_in_a_leading_block_never_reaches_the_answer(
            whitespace in "[ \n]{0,2}", thinking in "[a-z<>/|é\n ]{0,30}", answer in "[a-zé.]{0,30}", chunk_length in 1..9_usize,
        ) {
            let text = format!("{whitespace}<think>{thinking}</think>\n{answer}");
            let characters: Vec<char> = text.chars().collect();
            let chunks: Vec<String> = characters.chunks(chunk_length).map(|chunk| chunk.iter().collect()).collect();
            assert_eq!(split(&chunks).1, answer);
            let open: Vec<String> = vec![format!("{whitespace}<think>{thinking}")];
            assert_eq!(split(&open).1, "");
        }
    }
}
