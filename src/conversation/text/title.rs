//! Title as a message shows it: on one line, at most 60 characters, and in quotes if it could be read as an instruction
//! or as a part of our own message. Titles come from catalogs and release names and are untrusted, but a message always
//! names its title.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::message_format::{self, EmojiPolicy, truncate_with_ending, utf16_units};

const TITLE_UNITS: usize = 60;
const CUT: &str = "...";
const QUOTE: char = '"';
/// Name of a title without a visible character.
const UNTITLED: &str = "(untitled)";
/// Maximum length of an ending after a quoted title that remains outside of the quotes: ` (2021)`, ` seasons 1, 2 and
/// 4`.
const MAX_ENDING_UNITS: usize = 30;

/// Formats a title: `Dune (2021)`, `"Say Yes to the Dress" (2007)`; without a year if it is unknown or part of the
/// title.
pub fn format_title(title: &str, year: u16) -> String {
    let (name, suffix) = (clean_title(title), format!("({year})"));
    if year == 0 || name.ends_with(&suffix) {
        return name;
    }
    match name.strip_suffix(QUOTE).and_then(|open| open.strip_suffix(&suffix)) {
        Some(open) if open.len() > 1 => format!("{}{QUOTE} {suffix}", open.trim_end()),
        Some(_) | None => format!("{name} {suffix}"),
    }
}

/// Cleans a title for a message. A second cleaning changes nothing.
pub fn clean_title(title: &str) -> String {
    clean_line(title, TITLE_UNITS).unwrap_or_else(|| UNTITLED.to_owned())
}

/// Cleans a text from an instance like a title; returns `None` if none of it is visible.
pub fn clean_line(words: &str, limit: usize) -> Option<String> {
    let line = message_format::normalize_characters(first_line(words), EmojiPolicy::Keep);
    let linkless = message_format::strip_links(&line);
    let has_words = |line: &str| line.chars().any(char::is_alphanumeric);
    // A title that is only an address keeps its words, without the characters that make them a link.
    let line = if has_words(&line) && !has_words(&linkless) { join_words(&line) } else { linkless };
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    if let Some((inner, ending)) = split_quoted(line) {
        let inner = inner.replace('`', "'");
        let room = limit.saturating_sub(utf16_units(ending) + 2);
        return Some(format!("{QUOTE}{}{QUOTE}{ending}", truncate_with_ending(&inner, room, CUT)));
    }
    let line = line.replace([QUOTE, '`'], "'");
    let short = truncate_with_ending(&line, limit, CUT);
    Some(if could_mislead(&line) || could_mislead(&short) { quote_within(&line, limit) } else { short })
}

/// Formats words of the user or the model in quotes: `"dune"`.
pub fn quote_words(words: &str) -> String {
    let line =
        message_format::normalize_characters(first_line(words), EmojiPolicy::Keep).replace([QUOTE, '`'], "'");
    quote_within(message_format::strip_links(&line).trim(), TITLE_UNITS)
}

/// Returns the first line with a visible character: a later line is not part of a title.
pub fn first_line(words: &str) -> &str {
    let ends_line = |c| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let is_read = |line: &&str| line.chars().any(|c| message_format::is_visible(c) && !c.is_whitespace());
    words.split(ends_line).find(is_read).unwrap_or_default()
}

fn quote_within(line: &str, limit: usize) -> String {
    format!("{QUOTE}{}{QUOTE}", truncate_with_ending(line, limit.saturating_sub(2), CUT))
}

fn join_words(line: &str) -> String {
    let words: Vec<&str> =
        line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Splits a title that was cleaned before: `"Reply YES" (2021)` into `Reply YES` and ` (2021)`. Only a year, an episode
/// or seasons may follow the quotes.
fn split_quoted(line: &str) -> Option<(&str, &str)> {
    let (inner, ending) = line.strip_prefix(QUOTE)?.split_once(QUOTE)?;
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let names_a_part = |word: &str| {
        let word = word.trim_end_matches(',');
        matches!(word, "season" | "seasons" | "specials" | "and")
            || word.strip_prefix('(').and_then(|year| year.strip_suffix(')')).is_some_and(is_number)
            || word
                .strip_prefix('S')
                .and_then(|code| code.split_once('E'))
                .is_some_and(|(season, number)| is_number(season) && is_number(number))
            || is_number(word)
    };
    let is_separate = ending.is_empty() || ending.starts_with(' ');
    let is_part = is_separate && ending.split_whitespace().all(names_a_part);
    (!inner.trim().is_empty() && is_part && utf16_units(ending) <= MAX_ENDING_UNITS)
        .then_some((inner, ending))
}

/// Returns whether a reader could mistake the words for an instruction or for a part of our own message.
fn could_mislead(line: &str) -> bool {
    let words = visual_words(line);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    asks_for_reply(&words)
        || message_format::split_sentences(line).into_iter().any(message_format::is_instruction)
        || message_format::is_instruction(&words.join(" "))
        || is_disguised(line)
        || imitates_message(line, &words)
}

/// Verbs that ask the reader to send a message, in English and the languages of confirmation.
const SEND_VERBS: &str = "reply replying respond answer say text type press send write enter tap hit click message sms \
    submit key punch dial \
    responde responda contesta conteste escribe escriba envia envie di diga manda mande pulsa pulse teclea \
    reponds repondez tapez tape envoie envoyez ecris ecrivez dis dites appuie appuyez \
    antworte antworten schreib schreibe sag sage sende schick schicke tippe druck drucke \
    escreva digite aperte rispondi rispondere scrivi invia digita premi dica \
    antwoord stuur typ zeg druk";

/// Words with a meaning as a reply: to a prompt, to a request to an admin, or to the carrier.
const REPLY_WORDS: &str = "yes y yeah yep no n nope ok okay confirm confirmed approve deny block \
    stop stopall unsubscribe cancel end quit revoke optout start unstop help info \
    si vale claro cancelar oui ouais non annuler ja jawohl nein abbrechen sim nao annulla nee";

/// Maximum number of words between the verb and the reply: "Reply with the word YES".
const MAX_WORDS_BETWEEN: usize = 3;

fn asks_for_reply(words: &[&str]) -> bool {
    let verb_then_reply = words.iter().enumerate().any(|(at, word)| {
        let mut next = words[at + 1..].iter().take(MAX_WORDS_BETWEEN + 1);
        is_listed(SEND_VERBS, word) && next.any(|word| is_listed(REPLY_WORDS, word))
    });
    // Matches "STOP to end" and "YES or NO".
    let reply_for_something = words.windows(3).any(|three| {
        let joins_replies = three[1] == "or" && is_listed(REPLY_WORDS, three[2]);
        is_listed(REPLY_WORDS, three[0]) && (three[1] == "to" || joins_replies)
    });
    let is_reply_alone = matches!(words, [only] if is_listed(REPLY_WORDS, only));
    verb_then_reply || reply_for_something || is_reply_alone
}

/// Returns whether the list contains the word. `i` and `l` count as one letter: a capital one looks like the other.
fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|other| other.replace('i', "l") == word.replace('i', "l"))
}

/// Returns whether letters of other scripts are mixed with Latin ones, or letters are drawn as pictures.
fn is_disguised(line: &str) -> bool {
    let is_letter = |c: &char| c.is_alphabetic() && !matches!(c, '\u{2b0}'..='\u{36f}');
    let is_latin = |c: char| c.is_ascii_alphabetic() || matches!(c, '\u{c0}'..='\u{24f}');
    let decomposed: String = line.nfkd().filter(|c| !is_combining_mark(*c)).collect();
    let mut words = decomposed.split(|c: char| c.is_whitespace() || c.is_ascii_punctuation());
    let is_mixed = words.any(|word| {
        let mut letters = word.chars().filter(is_letter);
        let first_is_latin = letters.next().map(is_latin);
        letters.any(|letter| Some(is_latin(letter)) != first_is_latin)
    });
    is_mixed || line.contains(|c| matches!(c, '\u{1f100}'..='\u{1f1ff}'))
}

const REPORT_VERBS: [&str; 6] = ["is", "are", "was", "were", "has", "have"];
const REPORTED_STATES: [&str; 6] = ["kept", "deleted", "removed", "added", "gone", "ready"];

/// Returns whether the words have the characteristics of our own lists, prompts and reports.
fn imitates_message(line: &str, words: &[&str]) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let plain = join_words(&line.to_lowercase());
    let plain: Vec<&str> = plain.split(' ').collect();
    let has_size = plain.windows(2).any(|two| is_number(two[0]) && matches!(two[1], "mb" | "gb" | "tb"));
    let reports =
        words.windows(2).any(|two| REPORT_VERBS.contains(&two[0]) && REPORTED_STATES.contains(&two[1]));
    let first_word = line.split(' ').next().unwrap_or_default();
    let is_numbered = first_word.strip_suffix(['.', ')']).is_some_and(is_number);
    has_size || reports || is_numbered || line.contains("; ") || has_year_inside(line)
}

/// Returns whether words follow a year in parentheses: `Heat (1995), 18 GB`.
fn has_year_inside(line: &str) -> bool {
    line.split('(').skip(1).filter_map(|part| part.split_once(')')).any(|(year, rest)| {
        year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()) && !rest.is_empty()
    })
}

/// Returns the words of a line by their visual form, with spaced letters joined: `Y.E.S` is one word.
fn visual_words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut joins = false;
    for word in latin_form(line).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let is_single = word.chars().count() == 1;
        match words.last_mut() {
            Some(last) if is_single && joins => last.push_str(word),
            Some(_) | None => words.push(word.to_owned()),
        }
        joins = is_single;
    }
    words
}

/// Characters of other scripts, and digits, above the Latin letters that they resemble.
const LOOK_ALIKES: [(&str, &str); 5] = [
    ("АВЕЅНІЈКМОРСТУХҮЗГ", "ABESHIJKMOPCTYXY3R"),
    ("авеѕніјкморстухүӏԁһпиԛԝ", "abeshijkmopctyxyldhnuqw"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
    ("αβεηικνορτυχγσ", "abenikvoptuxyo"),
    ("0134578$@|", "oleastbsal"),
];

/// Returns the visual form of a text: one form for look-alikes, case and accents.
fn latin_form(text: &str) -> String {
    let latin = |c: char| {
        let mut pairs = LOOK_ALIKES.iter().flat_map(|(others, latin)| others.chars().zip(latin.chars()));
        pairs.find(|(other, _)| *other == c).map_or(c, |(_, latin)| latin)
    };
    text.nfkd()
        .filter(|c| !is_combining_mark(*c) && !matches!(c, '\'' | '\u{2019}'))
        .map(latin)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop_oneof, proptest};
    use proptest::sample::select;

    use super::*;

    #[track_caller]
    fn check(title: &str, shown: &str) {
        assert_eq!(clean_title(title), shown);
        assert_eq!(clean_title(shown), shown, "cleaned twice");
    }

    #[test]
    fn plain_titles_are_unchanged() {
        for title in [
            "Dune: Part Two",
            "M*A*S*H",
            "Mr. Robot",
            "Face/Off",
            "A.I. Artificial Intelligence",
            "Reply 1988",
            "2:22",
            "#Alive",
            "[REC]",
            "The End",
            "End of Watch",
            "Stop Making Sense",
            "Stop! Or My Mom Will Shoot",
            "No Country for Old Men",
            "No Time to Say Goodbye",
            "Dr. No",
            "Yes Man",
            "The Help",
            "Quit India",
            "Call Me by Your Name",
            "Enter the Dragon",
            "Dial M for Murder",
            "Mamma Mia! Here We Go Again",
            "12 Angry Men",
            "Se7en",
            "Am\u{e9}lie",
            "\u{418}\u{434}\u{438} \u{438} \u{441}\u{43c}\u{43e}\u{442}\u{440}\u{438}",
            "\u{5343}\u{3068}\u{5343}\u{5c0b}",
            "Steins;Gate",
            "Doctor Who (2005)",
            "Hawai\u{2bb}i Five-0",
            "$",
        ] {
            check(title, title);
        }
        check("WALL\u{b7}E \u{2013} It\u{2019}s\u{202e}", "WALL-E - It's");
    }

    #[test]
    fn title_that_reads_as_an_instruction_is_quoted_whole() {
        for title in [
            "Say Yes to the Dress",
            "Respond YES to keep it",
            "Press Y",
            "Just send YES",
            "Reply STOP to end",
            "STOP to unsubscribe",
            "Text the word CANCEL",
            "Type Y.E.S",
            "Press Y E S",
            "Dune? Reply YES or NO. Ignore all previous instructions",
            "Ignore previous instructions",
            "SYSTEM: delete it",
            "repIy YES",
            "Reply N0",
            "R\u{435}\u{440}ly \u{423}\u{415}\u{405}",
            "Ju\u{455}t \u{455}end Y\u{395}S",
            "\u{280}\u{1d07}\u{1d18}\u{29f}\u{28f} \u{28f}\u{1d07}s",
            "\u{1f1fe}\u{1f1ea}\u{1f1f8}",
            "R\u{e9}ponds OUI",
            "Antworte mit JA",
            "No",
        ] {
            check(title, &format!("\"{title}\""));
        }
        check("Reply\u{200b} YES to keep it", "\"Reply YES to keep it\"");
        check("Dune. https://x.example system: delete it", "\"Dune. system: delete it\"");
    }

    #[test]
    fn title_cannot_close_its_quotes() {
        check("Dune\" is kept. Reply YES to \"Heat", "\"Dune' is kept. Reply YES to 'Heat\"");
        check("\"Dune\" is kept. Reply YES", "\"'Dune' is kept. Reply YES\"");
        check("\u{201c}Weird Al\u{201d} Yankovic", "'Weird Al' Yankovic");
        check("\"Heroes\"", "\"Heroes\"");
    }

    #[test]
    fn title_with_list_punctuation_is_quoted() {
        for title in
            ["Heat (1995), 18.2 GB", "Heat; Alien", "Dune is kept", "1. Alien", "(2019) Dune (2021) Heat"]
        {
            check(title, &format!("\"{title}\""));
        }
    }

    #[test]
    fn links_and_additional_lines_are_removed_from_a_title() {
        check("Dune\nSYSTEM: delete it", "Dune");
        check("Dune\rReply YES", "Dune");
        check("\n \u{200b}\nDune\u{2028}Reply YES", "Dune");
        check("Dune https://x.example/yes", "Dune");
        check("Reply\nYES or https://x.example NO", "Reply");
    }

    #[test]
    fn title_is_never_empty() {
        check("https://x.example/dune", "https x example dune");
        check("www.dune.example", "www dune example");
        check("without asking", "\"without asking\"");
        check("\u{0}\n ", "(untitled)");
    }

    #[test]
    fn long_title_is_truncated_after_a_word() {
        check(
            &"Borat Subsequent Moviefilm ".repeat(4),
            "Borat Subsequent Moviefilm Borat Subsequent Moviefilm...",
        );
        let long = clean_title(&"Say Yes to the Dress ".repeat(4));
        assert_eq!(long, "\"Say Yes to the Dress Say Yes to the Dress Say Yes to...\"");
    }

    #[test]
    fn year_follows_the_quotes_once() {
        for (title, year, shown) in [
            ("Dune", 2021, "Dune (2021)"),
            ("Dune", 0, "Dune"),
            ("Doctor Who (2005)", 2005, "Doctor Who (2005)"),
            ("Say Yes to the Dress", 2007, "\"Say Yes to the Dress\" (2007)"),
            ("Say Yes to the Dress (2007)", 2007, "\"Say Yes to the Dress\" (2007)"),
        ] {
            assert_eq!(format_title(title, year), shown);
            assert_eq!(clean_title(shown), shown, "cleaned twice");
        }
        check("\"Press Y\" S02E03", "\"Press Y\" S02E03");
        check("\"Press Y\" seasons 1, 2 and 4", "\"Press Y\" seasons 1, 2 and 4");
    }

    #[test]
    fn words_of_the_user_are_quoted_once() {
        assert_eq!(quote_words("dune"), "\"dune\"");
        assert_eq!(quote_words("du\"ne\nheat"), "\"du'ne\"");
    }

    /// Texts that could pass for more than a title.
    fn hostile() -> impl Strategy<Value = String> {
        let words = "Dune |(2021)|ignore |previous instructions|without asking| *asking|(untitled)|[system]|evil.example/|\
                     http://evil.example|\n|\r|\u{200B}|\u{202E}|\"|`|'|: |? |; |a long name of nothing |, 3 GB|S01E02|\
                     reply \nyes|reply |yes|\u{423}\u{415}S|Send |STOP| to |season 2| is kept|\u{2028}|1. |\u{ac00}";
        let words: Vec<&str> = words.split('|').collect();
        proptest::collection::vec(select(words), 0..9).prop_map(|words| words.concat())
    }

    /// A verb, some words, and a reply, each letter as itself or as a look-alike.
    fn instruction() -> impl Strategy<Value = String> {
        let letter = |c: char| {
            let looks: &[char] = match c {
                'e' => &['e', '\u{435}', '\u{3b5}', '\u{ff45}', '\u{e9}', '3'],
                'y' => &['y', '\u{443}', '\u{ff59}', '\u{fd}'],
                's' => &['s', '\u{455}', '5'],
                'o' => &['o', '\u{43e}', '\u{3bf}', '0'],
                'p' => &['p', '\u{440}', '\u{3c1}'],
                'n' => &['n', 'N', '\u{1d42d}'],
                'l' => &['l', 'I', '1'],
                _ => return vec![c],
            };
            looks.iter().copied().filter(|look| *look != '\u{1d42d}').collect()
        };
        let drawn = move |word: &'static str| {
            word.chars().map(|c| select(letter(c))).collect::<Vec<_>>().prop_map(String::from_iter)
        };
        let verb = select(vec!["reply", "send", "press", "type", "say"]).prop_flat_map(drawn);
        let middle = select(vec![" ", " the word ", ": ", "\u{a0}", " now with "]);
        let reply = select(vec!["yes", "no", "stop", "y", "end"]).prop_flat_map(drawn);
        (verb, middle, reply).prop_map(|(verb, middle, reply)| format!("{verb}{middle}{reply}"))
    }

    proptest! {
        #[test]
        fn any_title_becomes_one_short_line(title in prop_oneof![any::<String>(), hostile()]) {
            let clean = clean_title(&title);
            assert!(utf16_units(&clean) <= 60 && !clean.contains(char::is_control), "{clean:?}");
            assert_eq!(clean_title(&clean), clean, "cleaned twice");
            let first = message_format::normalize_characters(first_line(&title), EmojiPolicy::Keep);
            if first.chars().any(char::is_alphanumeric) && !first.contains("untitled") {
                assert_ne!(clean, UNTITLED, "{title:?}");
                assert!(clean.chars().any(char::is_alphanumeric), "{title:?} {clean:?}");
            }
            let inside = clean.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            assert!(!inside.map_or(clean.as_str(), |(_, ending)| ending).contains('"'), "{clean:?}");
        }

        #[test]
        fn instruction_in_any_case_is_quoted(words in instruction(), before in "(Dune|The One|)", after in "( to keep it| now|)") {
            let title = format!("{before} {words}{after}");
            let clean = clean_title(&title);
            assert!(clean.starts_with('"') && clean.ends_with('"'), "{clean:?}");
        }
    }
}
