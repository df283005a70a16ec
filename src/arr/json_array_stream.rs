//! Streaming parser for a JSON array of objects. Memory use is bounded by the size limit of one record.

use serde::de::{DeserializeOwned, Error};

/// Size limit of a record, in bytes. Records of Sonarr and Radarr are smaller.
pub(super) const MAX_RECORD_BYTES: usize = 4 << 20;

/// Incremental reader of a JSON array.
#[derive(Debug, Default)]
pub(super) struct JsonArrayReader {
    position: ArrayPosition,
    /// Bytes of the current record from earlier chunks.
    partial_record: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ArrayPosition {
    #[default]
    BeforeArray,
    BetweenRecords,
    InRecord(RecordState),
    AfterArray,
}

/// Position in a record: the number of open brackets, and whether the next byte is part of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RecordState {
    depth: u32,
    string: StringState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringState {
    Outside,
    Inside,
    /// After a backslash in a string.
    Escaped,
}

impl JsonArrayReader {
    /// Reads the next chunk and passes each record that it completes to `visit`.
    pub(super) fn push_bytes<W: DeserializeOwned>(
        &mut self,
        chunk: &[u8],
        mut visit: impl FnMut(W),
    ) -> Result<(), serde_json::Error> {
        let mut rest = chunk;
        while !rest.is_empty() {
            if let ArrayPosition::InRecord(state) = self.position {
                rest = self.read_record(state, rest, &mut visit)?;
                continue;
            }
            let (first, tail) = (rest[0], &rest[1..]);
            self.position = match (self.position, first) {
                (position, b' ' | b'\t' | b'\r' | b'\n') => position,
                (ArrayPosition::BeforeArray, b'[') | (ArrayPosition::BetweenRecords, b',') => {
                    ArrayPosition::BetweenRecords
                }
                (ArrayPosition::BetweenRecords, b']') => ArrayPosition::AfterArray,
                (ArrayPosition::BetweenRecords, b'{') => {
                    // `read_record` consumes the bracket, which is part of the record.
                    self.position =
                        ArrayPosition::InRecord(RecordState { depth: 0, string: StringState::Outside });
                    continue;
                }
                _ => return Err(Error::custom("expected an array of objects")),
            };
            rest = tail;
        }
        Ok(())
    }

    /// Checks that the array was complete.
    pub(super) fn finish_reading(self) -> Result<(), serde_json::Error> {
        match self.position {
            ArrayPosition::AfterArray => Ok(()),
            ArrayPosition::BeforeArray | ArrayPosition::BetweenRecords | ArrayPosition::InRecord(_) => {
                Err(Error::custom("unexpected end of the array"))
            }
        }
    }

    /// Continues a record and returns the bytes after it, which are empty if the chunk ends first.
    fn read_record<'a, W: DeserializeOwned>(
        &mut self,
        state: RecordState,
        chunk: &'a [u8],
        visit: &mut impl FnMut(W),
    ) -> Result<&'a [u8], serde_json::Error> {
        match find_record_end(state, chunk) {
            RecordEnd::At(end) => {
                let (last, rest) = chunk.split_at(end);
                if self.partial_record.is_empty() {
                    visit(serde_json::from_slice(last)?);
                } else {
                    self.partial_record.extend_from_slice(last);
                    visit(serde_json::from_slice(&self.partial_record)?);
                    self.partial_record.clear();
                }
                self.position = ArrayPosition::BetweenRecords;
                Ok(rest)
            }
            RecordEnd::InLaterChunk(state) => {
                if self.partial_record.len() + chunk.len() > MAX_RECORD_BYTES {
                    return Err(Error::custom("record larger than 4 MiB"));
                }
                self.partial_record.extend_from_slice(chunk);
                self.position = ArrayPosition::InRecord(state);
                Ok(&[])
            }
        }
    }
}

enum RecordEnd {
    /// Index in the chunk just after the end of the record.
    At(usize),
    InLaterChunk(RecordState),
}

fn find_record_end(RecordState { mut depth, mut string }: RecordState, chunk: &[u8]) -> RecordEnd {
    for (index, byte) in chunk.iter().enumerate() {
        match (string, byte) {
            (StringState::Escaped, _) => string = StringState::Inside,
            (StringState::Inside, b'\\') => string = StringState::Escaped,
            (StringState::Inside, b'"') => string = StringState::Outside,
            (StringState::Outside, b'"') => string = StringState::Inside,
            (StringState::Outside, b'{' | b'[') => depth += 1,
            (StringState::Outside, b'}' | b']') => {
                depth -= 1;
                if depth == 0 {
                    return RecordEnd::At(index + 1);
                }
            }
            (StringState::Inside | StringState::Outside, _) => {}
        }
    }
    RecordEnd::InLaterChunk(RecordState { depth, string })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;
    use serde_json::{Value, json};

    use super::*;

    /// Parses an array that arrives in chunks of the given size.
    fn parse_in_chunks(array: &str, chunk_size: usize) -> Result<Vec<Value>, String> {
        let (mut reader, mut records) = (JsonArrayReader::default(), Vec::new());
        for chunk in array.as_bytes().chunks(chunk_size) {
            reader.push_bytes(chunk, |record| records.push(record)).map_err(|error| error.to_string())?;
        }
        reader.finish_reading().map_err(|error| error.to_string())?;
        Ok(records)
    }

    #[track_caller]
    fn check(array: &str, expected: &Result<Vec<Value>, &str>) {
        let expected = expected.clone().map_err(str::to_owned);
        for chunk_size in 1..=array.len().max(1) {
            assert_eq!(parse_in_chunks(array, chunk_size), expected, "in chunks of {chunk_size} bytes");
        }
    }

    #[test]
    fn records_are_parsed_across_chunk_boundaries() {
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
    fn truncated_array_is_an_error() {
        for array in ["", "[", r#"[{"id":1}"#, r#"[{"id":1},"#, r#"[{"id":1},{"id""#] {
            check(array, &Err("unexpected end of the array"));
        }
    }

    #[test]
    fn other_json_is_rejected() {
        for array in ["<!doctype html>", r#"{"message":"no"}"#, "[1]", "[] []"] {
            check(array, &Err("expected an array of objects"));
        }
        let error = parse_in_chunks(r#"[{"id":1},{"id" 2}]"#, 4).unwrap_err();
        assert_eq!(error, "expected `:` at line 1 column 7");
    }

    #[test]
    fn oversized_record_is_rejected() {
        let oversized = format!(r#"[{{"title":"{}"#, "x".repeat(MAX_RECORD_BYTES));
        assert_eq!(parse_in_chunks(&oversized, 1 << 16), Err("record larger than 4 MiB".to_owned()));
    }

    proptest! {
        #[test]
        fn any_records_are_parsed_with_any_chunk_size(entries: Vec<(String, String)>, chunk_size in 1..40_usize) {
            let records: Vec<Value> = entries.iter().map(|(name, value)| json!({ (name): [value, { "x": value }] })).collect();
            assert_eq!(parse_in_chunks(&Value::from(records.clone()).to_string(), chunk_size), Ok(records));
        }

        #[test]
        fn any_bytes_give_the_same_records_with_any_chunk_size(array in "[\\[\\]{}\",:\\\\ a1]{0,40}", chunk_size in 1..40_usize) {
            assert_eq!(
                parse_in_chunks(&array, chunk_size).ok(),
                parse_in_chunks(&array, array.len().max(1)).ok()
            );
        }
    }
}
