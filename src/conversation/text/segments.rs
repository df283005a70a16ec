//! Segment count of an SMS: the number of parts into which a carrier splits the message.

use unicode_normalization::UnicodeNormalization;

/// Maximum units of a message of one segment, and of each segment of a longer message.
const GSM7_SINGLE_UNITS: usize = 160;
const GSM7_SEGMENT_UNITS: usize = 153;
const UCS2_SINGLE_UNITS: usize = 70;
const UCS2_SEGMENT_UNITS: usize = 67;

const GSM7_BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// Characters that are sent as an escape and a second septet.
const GSM7_EXTENSION: &str = "\u{c}^{}\\[~]|€";

/// Encoding of an SMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEncoding {
    Gsm7,
    Ucs2,
}

/// Size of a message as the carrier counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentCount {
    pub encoding: TextEncoding,
    pub count: usize,
    /// Septets in GSM-7, or UTF-16 code units in UCS-2.
    pub units: usize,
}

impl SegmentCount {
    pub fn from_text(text: &str) -> Self {
        let septets: Option<Vec<usize>> = text.chars().map(septet_count).collect();
        let (encoding, widths, single_units, segment_units) = match septets {
            Some(septets) => (TextEncoding::Gsm7, septets, GSM7_SINGLE_UNITS, GSM7_SEGMENT_UNITS),
            None => {
                let widths = text.chars().map(char::len_utf16).collect();
                (TextEncoding::Ucs2, widths, UCS2_SINGLE_UNITS, UCS2_SEGMENT_UNITS)
            }
        };
        let units = widths.iter().sum();
        let count = if units <= single_units { 1 } else { count_segments(&widths, segment_units) };
        Self { encoding, count, units }
    }
}

/// Returns whether a text is sent in at most two segments.
pub fn fits_two_segments(text: &str) -> bool {
    SegmentCount::from_text(&spell_in_fewer_segments(text.to_owned())).count <= 2
}

/// Returns the text with plain letters in place of those outside GSM-7, such as `o` for `ō`, if that saves a segment.
pub fn spell_in_fewer_segments(text: String) -> String {
    let plain: String = text.chars().map(plain_letter).collect();
    match SegmentCount::from_text(&plain).count < SegmentCount::from_text(&text).count {
        true => plain,
        false => text,
    }
}

/// Returns the letter without its accent if only that letter is in GSM-7. Any other character is returned unchanged.
fn plain_letter(character: char) -> char {
    let plain = match character {
        'ł' => 'l',
        'Ł' => 'L',
        'đ' => 'd',
        'Đ' => 'D',
        'ı' => 'i',
        _ => std::iter::once(character).nfd().next().unwrap_or(character),
    };
    let is_cheaper = septet_count(character).is_none() && plain.is_ascii_alphabetic();
    if is_cheaper { plain } else { character }
}

fn septet_count(character: char) -> Option<usize> {
    if GSM7_BASIC.contains(character) {
        Some(1)
    } else if GSM7_EXTENSION.contains(character) {
        Some(2)
    } else {
        None
    }
}

/// Counts the segments. A character of two units is never split between two segments.
fn count_segments(widths: &[usize], capacity: usize) -> usize {
    let mut count = 1;
    let mut used = 0;
    for width in widths {
        if used + width > capacity {
            count += 1;
            used = 0;
        }
        used += width;
    }
    count
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::proptest;
    use serde_json::Value;

    use super::{GSM7_BASIC, GSM7_EXTENSION, SegmentCount, TextEncoding, spell_in_fewer_segments};

    const VECTORS: &str = include_str!("../../../tests/data/twilio/segment_vectors.json");

    fn assert_segment_count(row: &Value) {
        let encoding = match row["encoding"].as_str().unwrap() {
            "GSM-7" => TextEncoding::Gsm7,
            _ => TextEncoding::Ucs2,
        };
        let number = |name: &str| usize::try_from(row[name].as_u64().unwrap()).unwrap();
        let expected = SegmentCount { encoding, count: number("segments"), units: number("units") };
        assert_eq!(SegmentCount::from_text(row["text"].as_str().unwrap()), expected, "{}", row["id"]);
    }

    #[test]
    fn segment_counts_match_the_official_calculator() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        let rows = vectors["vectors"].as_array().unwrap();
        rows.iter().for_each(assert_segment_count);
        assert_eq!(rows.len(), 63);
    }

    #[test]
    fn letters_lose_their_accents_only_to_save_a_segment() {
        let spell = |text: &str| spell_in_fewer_segments(text.to_owned());
        let long = "Shōgun (2024) and Łódź are in the library. ".repeat(3);
        assert_eq!(spell(&long), "Shogun (2024) and Lodz are in the library. ".repeat(3));
        let words = "Amélie and 東京 are in the library, and so is Shōgun. ".repeat(3);
        for text in ["Shōgun (2024) is ready.", words.as_str()] {
            assert_eq!(spell(text), text);
        }
    }

    #[test]
    fn alphabets_match_the_official_calculator() {
        let vectors: Value = serde_json::from_str(VECTORS).unwrap();
        for (table, alphabet) in [("gsm7_basic", GSM7_BASIC), ("gsm7_extension", GSM7_EXTENSION)] {
            let rows = vectors["tables"][table].as_array().unwrap();
            let official: BTreeSet<&str> = rows.iter().map(|row| row["char"].as_str().unwrap()).collect();
            let ours: BTreeSet<String> = alphabet.chars().map(String::from).collect();
            assert_eq!(ours.iter().map(String::as_str).collect::<BTreeSet<_>>(), official, "{table}");
        }
    }

    proptest! {
        #[test]
        fn every_text_fits_its_segments(text: String) {
            let SegmentCount { encoding, count, units } = SegmentCount::from_text(&text);
            let (single_units, segment_units) = match encoding {
                TextEncoding::Gsm7 => (160, 153),
                TextEncoding::Ucs2 => (70, 67),
            };
            assert!(units <= if count == 1 { single_units } else { count * segment_units });
        }
    }
}
