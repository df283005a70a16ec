//! Parser for `.env` files. Values are literal: variables are not expanded, and `$` is a plain character.

/// One `NAME=value` assignment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EnvAssignment<'a> {
    pub(super) name: &'a str,
    pub(super) value: String,
    /// Each `$` outside single quotes and without a backslash, in order.
    pub(super) dollars: Vec<DollarUse<'a>>,
}

/// A `$` that a shell or Docker Compose would expand together with the name after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DollarUse<'a> {
    /// Name after the `$`. Empty if no letter or digit follows.
    pub(super) name: &'a str,
    pub(super) form: DollarForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DollarForm {
    /// `$name`
    Plain,
    /// `${name}`
    Braced,
}

/// Line that cannot be parsed, with its variable name if there is one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedLine<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) reason: &'static str,
}

/// Parses the assignments of a file, with the numbers of their first lines, from 1.
pub(super) fn parse(text: &str) -> Vec<(usize, Result<EnvAssignment<'_>, MalformedLine<'_>>)> {
    let mut rest = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let (mut parsed, mut number) = (Vec::new(), 1);
    while !rest.is_empty() {
        let line = rest.lines().next().unwrap_or_default();
        let is_blank = line.trim_start().is_empty() || line.trim_start().starts_with('#');
        let assignment = if is_blank { Ok((None, rest)) } else { parse_assignment(rest) };
        let after = match assignment {
            Ok((assignment, after)) => {
                parsed.extend(assignment.map(|assignment| (number, Ok(assignment))));
                after
            }
            Err(malformed) => {
                parsed.push((number, Err(malformed)));
                rest
            }
        };
        // A value in quotes may end several lines below.
        let end = rest.len() - after.len();
        let next = rest[end..].find('\n').map_or(rest.len(), |index| end + index + 1);
        number += rest[..next].matches('\n').count();
        rest = &rest[next..];
    }
    parsed
}

type ParsedValue<'a, T> = Result<(T, &'a str), MalformedLine<'a>>;

/// Parses an assignment and returns the text after its value.
fn parse_assignment(text: &str) -> ParsedValue<'_, Option<EnvAssignment<'_>>> {
    let no_name = MalformedLine { name: None, reason: "not NAME=value" };
    let (mut name, mut rest) = split_name(text.trim_start());
    if name == "export" && !skip_whitespace(rest).starts_with('=') {
        (name, rest) = split_name(skip_whitespace(rest));
    }
    let Some(rest) = skip_whitespace(rest).strip_prefix('=').filter(|_| !name.is_empty()) else {
        return Err(no_name);
    };
    let malformed = |reason| MalformedLine { name: Some(name), reason };
    let (value, dollars, rest) = parse_value(skip_whitespace(rest)).map_err(malformed)?;
    Ok((Some(EnvAssignment { name, value, dollars }), rest))
}

fn split_name(text: &str) -> (&str, &str) {
    let is_name_character = |mark: char| mark.is_ascii_alphanumeric() || mark == '_' || mark == '.';
    if text.starts_with(|mark: char| mark.is_ascii_digit() || mark == '.') {
        return ("", text);
    }
    text.split_at(text.find(|mark| !is_name_character(mark)).unwrap_or(text.len()))
}

fn skip_whitespace(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\r'])
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QuoteStyle {
    None,
    Single,
    Double,
}

/// Parses a value. Returns the value, its dollar signs and the text after it. As in a shell, quotes may start and end
/// anywhere in a value.
fn parse_value(text: &str) -> Result<(String, Vec<DollarUse<'_>>, &str), &'static str> {
    let (mut value, mut dollars, mut quote) = (String::new(), Vec::new(), QuoteStyle::None);
    if text.starts_with('#') {
        return Ok((value, dollars, text));
    }
    let mut marks = text.char_indices();
    while let Some((index, mark)) = marks.next() {
        match (quote, mark) {
            (QuoteStyle::Single, '\'') | (QuoteStyle::Double, '"') => quote = QuoteStyle::None,
            (QuoteStyle::Single, _) => value.push(mark),
            (QuoteStyle::None | QuoteStyle::Double, '\\') => match marks.next() {
                Some((_, escaped @ ('\\' | '\'' | '"' | '$' | ' '))) => value.push(escaped),
                Some((_, 'n')) => value.push('\n'),
                Some(_) | None => {
                    return Err(
                        "outside single quotes, a backslash must be followed by \\, ', \", $, n or a space",
                    );
                }
            },
            (QuoteStyle::None, '\'') => quote = QuoteStyle::Single,
            (QuoteStyle::None, '"') => quote = QuoteStyle::Double,
            (QuoteStyle::None, ' ' | '\t' | '\r' | '\n') => {
                let tail = skip_whitespace(&text[index..]);
                let value_ends = tail.is_empty() || tail.starts_with(['#', '\n']);
                return if value_ends {
                    Ok((value, dollars, tail))
                } else {
                    Err("a value with spaces needs quotes")
                };
            }
            (QuoteStyle::None | QuoteStyle::Double, '$') => {
                dollars.push(parse_dollar_use(&text[index + 1..]));
                value.push(mark);
            }
            (QuoteStyle::None | QuoteStyle::Double, _) => value.push(mark),
        }
    }
    if quote == QuoteStyle::None { Ok((value, dollars, "")) } else { Err("a quote is not closed") }
}

/// Parses the text after a `$`.
fn parse_dollar_use(tail: &str) -> DollarUse<'_> {
    let braced = tail.strip_prefix('{').and_then(|inner| inner.split_once('}'));
    match braced {
        Some((name, _)) => DollarUse { name, form: DollarForm::Braced },
        None => {
            let end = tail.find(|mark: char| !mark.is_alphanumeric()).unwrap_or(tail.len());
            DollarUse { name: &tail[..end], form: DollarForm::Plain }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{DollarForm, parse};

    /// Returns `NAME=value` of each assignment, and the error of each other line.
    fn parse_to_lines(text: &str) -> Vec<String> {
        let parsed = parse(text).into_iter().map(|(line, parsed)| match parsed {
            Ok(assignment) => format!("{line} {}={}", assignment.name, assignment.value),
            Err(malformed) => format!("{line} {:?} {}", malformed.name, malformed.reason),
        });
        parsed.collect()
    }

    #[test]
    fn value_is_literal_in_any_quotes() {
        let hash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA";
        for quoted in [hash.to_owned(), format!("\"{hash}\""), format!("'{hash}'"), hash.replace('$', "\\$")]
        {
            assert_eq!(parse_to_lines(&format!("A={quoted}\n")), [format!("1 A={hash}")]);
        }
        assert_eq!(parse_to_lines("A=${HOME}/$B$"), ["1 A=${HOME}/$B$"]);
    }

    #[test]
    fn quotes_comments_export_and_blanks_follow_shell_rules() {
        let text = "\n# A=0\n A=1 # one\nB = '2 # $two' \nC=\"3 \\\"three\\\"\"#3\nexport D=4#four\nexport = 5\r\n\
                    F=\nG= # none\nH=s\\ ix\nI=se'v e'n\nJ.K=\"\"\n";
        let expected = [
            "3 A=1",
            "4 B=2 # $two",
            "5 C=3 \"three\"#3",
            "6 D=4#four",
            "7 export=5",
            "8 F=",
            "9 G=",
            "10 H=s ix",
            "11 I=sev en",
            "12 J.K=",
        ];
        assert_eq!(parse_to_lines(text), expected);
    }

    #[test]
    fn quoted_value_may_have_several_lines() {
        assert_eq!(parse_to_lines("A='1\n# 2\n3' # end\nB=4"), ["1 A=1\n# 2\n3", "4 B=4"]);
    }

    #[test]
    fn byte_order_mark_is_not_part_of_a_name() {
        assert_eq!(parse_to_lines("\u{FEFF}A=1"), ["1 A=1"]);
    }

    #[test]
    fn malformed_line_is_numbered_named_and_skipped() {
        let text = "hunter2 is it\nA=four words\nB='open\nC=a\\pp\n=x\n1D=y\nE=z\\";
        let escape = "outside single quotes, a backslash must be followed by \\, ', \", $, n or a space";
        let expected = [
            "1 None not NAME=value".to_owned(),
            "2 Some(\"A\") a value with spaces needs quotes".to_owned(),
            "3 Some(\"B\") a quote is not closed".to_owned(),
            format!("4 Some(\"C\") {escape}"),
            "5 None not NAME=value".to_owned(),
            "6 None not NAME=value".to_owned(),
            format!("7 Some(\"E\") {escape}"),
        ];
        assert_eq!(parse_to_lines(text), expected);
    }

    #[test]
    fn dollars_count_outside_single_quotes_and_unescaped() {
        let parsed = parse("A=$b_c\"${d-e}$\"'$f'\\$g$");
        let dollars = &parsed[0].1.as_ref().unwrap().dollars;
        let found: Vec<_> = dollars.iter().map(|dollar| (dollar.name, dollar.form)).collect();
        let plain = DollarForm::Plain;
        assert_eq!(found, [("b", plain), ("d-e", DollarForm::Braced), ("", plain), ("", plain)]);
    }

    proptest! {
        #[test]
        fn any_file_is_parsed_and_single_quoted_values_survive(text in any::<String>(), value in "[^']*") {
            for (line, _) in parse(&text) {
                assert!(line <= text.lines().count());
            }
            assert_eq!(parse_to_lines(&format!("A='{value}'")), [format!("1 A={value}")]);
        }
    }
}
