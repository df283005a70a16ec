//! Format of a line of `.env`.

/// Formats `NAME=value` so that the parser of `.env` returns the value unchanged.
pub fn format_env_line(name: &str, value: &str) -> String {
    let is_plain = |mark: char| mark.is_ascii_alphanumeric() || "_-+.,:/@%=".contains(mark);
    if value.chars().all(is_plain) {
        return format!("{name}={value}");
    }
    if !value.contains('\'') {
        return format!("{name}='{value}'");
    }
    let mut quoted = String::new();
    for mark in value.chars() {
        if matches!(mark, '\\' | '"' | '$') {
            quoted.push('\\');
        }
        quoted.push(mark);
    }
    format!("{name}=\"{quoted}\"")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::super::env_file::parse;
    use super::format_env_line;

    proptest! {
        #[test]
        fn formatted_line_is_parsed_to_the_same_value(value in any::<String>()) {
            let line = format_env_line("A", &value);
            let parsed = parse(&line);
            assert_eq!(parsed[0].1.as_ref().unwrap().value, value, "{line}");
        }
    }
}
