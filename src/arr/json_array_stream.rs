//! Reader for the records of a JSON list, one by one from its bytes as they arrive, so that a list of any length needs
//! the memory of its longest record.

use serde::de::{DeserializeOwned, Error};

/// Size limit in bytes above that of any record that Sonarr and Radarr write. Anything larger is not a list of records.
pub(super) const MAX_RECORD_BYTES: usize = 4 << 20;

/// Progress of the reader through the bytes of a list.
#[derive(Debug, Default)]
pub(super) struct JsonArrayReader {
    place: ArrayPosition,
    /// Bytes from earlier pieces of the record that is not complete yet.
    begun: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ArrayPosition {
    #[default]
    BeforeList,
    BetweenRecords,
    Within(RecordDepth),
    AfterList,
}

/// Position in a record: the number of open brackets, and whether the byte is part of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordDepth {
    open: u32,
    text: StringState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringState {
    Outside,
    Inside,
    /// Byte that follows a backslash.
    Escaped,
}

impl JsonArrayReader {
    /// Reads the next piece and passes each record that it completes to `visit`.
    pub(super) fn push_bytes<W: DeserializeOwned>(
        &mut self,
        piece: &[u8],
        mut visit: impl FnMut(W),
    ) -> Result<(), serde_json::Error> {
        let mut rest = piece;
        while !rest.is_empty() {
            if let ArrayPosition::Within(depth) = self.place {
                rest = self.read_record(depth, rest, &mut visit)?;
                continue;
            }
            let (first, behind) = (rest[0], &rest[1..]);
            self.place = match (self.place, first) {
                (place, b' ' | b'\t' | b'\r' | b'\n') => place,
                (ArrayPosition::BeforeList, b'[') | (ArrayPosition::BetweenRecords, b',') => {
                    ArrayPosition::BetweenRecords
                }
                (ArrayPosition::BetweenRecords, b']') => ArrayPosition::AfterList,
                (ArrayPosition::BetweenRecords, b'{') => {
                    // The bracket is part of the record, which begins with it.
                    self.place = ArrayPosition::Within(RecordDepth { open: 0, text: StringState::Outside });
                    continue;
                }
                _ => return Err(Error::custom("expected a list of records")),
            };
            rest = behind;
        }
        Ok(())
    }

    /// Checks that the list was complete.
    pub(super) fn finish_reading(self) -> Result<(), serde_json::Error> {
        match self.place {
            ArrayPosition::AfterList => Ok(()),
            ArrayPosition::BeforeList | ArrayPosition::BetweenRecords | ArrayPosition::Within(_) => {
                Err(Error::custom("the list ends in the middle"))
            }
        }
    }

    /// Continues a record and returns the rest of the piece after it, or nothing if the piece ends first.
    fn read_record<'a, W: DeserializeOwned>(
        &mut self,
        depth: RecordDepth,
        piece: &'a [u8],
        visit: &mut impl FnMut(W),
    ) -> Result<&'a [u8], serde_json::Error> {
        match find_record_end(depth, piece) {
            RecordEnd::At(end) => {
                let (last, rest) = piece.split_at(end);
                if self.begun.is_empty() {
                    visit(serde_json::from_slice(last)?);
                } else {
                    self.begun.extend_from_slice(last);
                    visit(serde_json::from_slice(&self.begun)?);
                    self.begun.clear();
                }
                self.place = ArrayPosition::BetweenRecords;
                Ok(rest)
            }
            RecordEnd::Later(depth) => {
                if self.begun.len() + piece.len() > MAX_RECORD_BYTES {
                    return Err(Error::custom("a record is larger than 4 MiB"));
                }
                self.begun.extend_from_slice(piece);
                self.place = ArrayPosition::Within(depth);
                Ok(&[])
            }
        }
    }
}

enum RecordEnd {
    /// End of the record just before this position of the piece.
    At(usize),
    Later(RecordDepth),
}

fn find_record_end(RecordDepth { mut open, mut text }: RecordDepth, piece: &[u8]) -> RecordEnd {
    for (place, byte) in piece.iter().enumerate() {
        match (text, byte) {
            (StringState::Escaped, _) => text = StringState::Inside,
            (StringState::Inside, b'\\') => text = StringState::Escaped,
            (StringState::Inside, b'"') => text = StringState::Outside,
            (StringState::Outside, b'"') => text = StringState::Inside,
            (StringState::Outside, b'{' | b'[') => open += 1,
            (StringState::Outside, b'}' | b']') => {
                open -= 1;
                if open == 0 {
                    return RecordEnd::At(place + 1);
                }
            }
            (StringState::Inside | StringState::Outside, _) => {}
        }
    }
    RecordEnd::Later(RecordDepth { open, text })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use serde_json::{Value, json};

    use super::*;

    /// Reads the records of a list that arrives in pieces of this many bytes.
    fn read(list: &str, piece: usize) -> Result<Vec<Value>, String> {
        let (mut elements, mut records) = (JsonArrayReader::default(), Vec::new());
        for piece in list.as_bytes().chunks(piece) {
            elements.push_bytes(piece, |record| records.push(record)).map_err(|error| error.to_string())?;
        }
        elements.finish_reading().map_err(|error| error.to_string())?;
        Ok(records)
    }

    #[track_caller]
    fn check(list: &str, expected: &Result<Vec<Value>, &str>) {
        let expected = expected.clone().map_err(str::to_owned);
        for piece in 1..=list.len().max(1) {
            assert_eq!(read(list, piece), expected, "in pieces of {piece} bytes");
        }
    }

    #[test]
    fn records_are_parsed_across_chunk_borders() {
        let records = vec![
            json!({ "title": "a \"quoted\" {brace} \\", "year": 1999 }),
            json!({ "seasons": [{ "n": [1, 2] }, {}], "title": "Am\u{e9}lie \u{1f37f} ] } , {" }),
            json!({}),
        ];
        check(&Value::from(records.clone()).to_string(), &Ok(records.clone()));
        let indented = format!("\n {} \r\n", serde_json::to_string_pretty(&records).unwrap());
        check(&indented, &Ok(records));
        check("[]", &Ok(Vec::new()));
    }

    #[test]
    fn truncated_list_is_an_error() {
        for list in ["", "[", r#"[{"id":1}"#, r#"[{"id":1},"#, r#"[{"id":1},{"id""#] {
            check(list, &Err("the list ends in the middle"));
        }
    }

    #[test]
    fn list_of_other_values_is_refused() {
        for list in ["<!doctype html>", r#"{"message":"no"}"#, "[1]", "[] []"] {
            check(list, &Err("expected a list of records"));
        }
        let error = read(r#"[{"id":1},{"id" 2}]"#, 4).unwrap_err();
        assert_eq!(error, "expected `:` at line 1 column 7");
    }

    #[test]
    fn unterminated_record_is_refused() {
        let endless = format!(r#"[{{"title":"{}"#, "x".repeat(MAX_RECORD_BYTES));
        assert_eq!(read(&endless, 1 << 16), Err("a record is larger than 4 MiB".to_owned()));
    }

    proptest! {
        #[test]
        fn any_records_are_parsed_with_any_chunk_size(words: Vec<(String, String)>, piece in 1..40_usize) {
            let records: Vec<Value> = words.iter().map(|(name, word)| json!({ (name): [word, { "x": word }] })).collect();
            assert_eq!(read(&Value::from(records.clone()).to_string(), piece), Ok(records));
        }

        #[test]
        fn any_bytes_parse_alike_with_any_chunk_size(list in "[\\[\\]{}\",:\\\\ a1]{0,40}", piece in 1..40_usize) {
            assert_eq!(read(&list, piece).ok(), read(&list, list.len().max(1)).ok());
        }
    }
}
