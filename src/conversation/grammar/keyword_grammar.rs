//! Parser of messages that need no model: opt-out keywords, commands, and the grammar of the keyword responder. The
//! module also checks whether the messages of a turn ask for a deletion.

use super::confirmation_reply::ReplyLanguage;
use super::title_reference::{self, TitleReference};
use crate::conversation::notifications::quiet_hours::{self, NotificationPreference};
use crate::conversation::text::normalization::{contains_phrase, normalize_title};
use crate::conversation::transcript::{OptKeyword, UserRole};

/// Reply to `commands` or `?`.
const COMMANDS_TEXT: &str = "You can text: ADD, SEARCH, HAVE or REMOVE title, STATUS, UPCOMING, TELL ME, MORE, RESET. \
    A number picks from a list.";

/// Part of the list: commands for the facts that are stored about the user.
const MEMORY_COMMANDS_TEXT: &str = "What I know: WHAT DO YOU KNOW, FORGET number or ALL.";

/// Part of the list: additional commands of an admin.
const ADMIN_COMMANDS_TEXT: &str =
    "Admins: USERS, APPROVE, DENY or BLOCK code, QUOTA name +5, TELL EVERYONE text, PAUSE, RESUME.";

/// Part of the list: commands for notifications.
const NOTIFICATION_COMMANDS_TEXT: &str = "Notifications: NOTIFY OFF or ON, QUIET 22-7.";

/// Returns the list of commands for a user of this role.
pub fn format_commands(role: UserRole) -> String {
    match role {
        UserRole::Member => format!("{COMMANDS_TEXT}\n{MEMORY_COMMANDS_TEXT}\n{NOTIFICATION_COMMANDS_TEXT}"),
        UserRole::Admin => {
            format!(
                "{COMMANDS_TEXT}\n{MEMORY_COMMANDS_TEXT}\n{NOTIFICATION_COMMANDS_TEXT}\n{ADMIN_COMMANDS_TEXT}"
            )
        }
    }
}

/// Reply to a picture or a recording without text.
pub const MEDIA_ONLY_REPLY: &str = "I can only read text. What would you like to watch?";
/// Reply to a command that the carrier's record does not verify.
pub const UNVERIFIED_REPLY: &str = "I could not check with the phone network that this text came from you, so nothing was done. Please send it again.";

/// Reply of the keyword responder to a message that it cannot parse, if there is no other responder.
pub const KEYWORDS_TEXT: &str =
    "You can text: ADD title, SEARCH title, HAVE title, REMOVE title, STATUS, UPCOMING.";

/// Reply of the keyword responder to such a message, if it replaces a model that does not respond.
pub const MODEL_OFF_TEXT: &str = "The assistant is off right now. You can text: ADD title, SEARCH title, HAVE title, \
    REMOVE title, STATUS, UPCOMING.";

/// Parses the whole of `text` as an opt-out or opt-in keyword.
pub fn parse_opt_keyword(text: &str) -> Option<OptKeyword> {
    let word = text.trim().to_lowercase();
    // The carrier blocks us only on the exact keyword. "Stop!" means the same to the user, so we honor it too.
    match word.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!')) {
        "stop" | "stopall" | "unsubscribe" | "cancel" | "end" | "quit" | "revoke" | "optout" | "opt out"
        | "opt-out" => return Some(OptKeyword::Out),
        _ => {}
    }
    // Only the exact keywords lift a block at the carrier, so a looser form must not clear our flag.
    match word.as_str() {
        "start" | "unstop" => Some(OptKeyword::In),
        "yes" => Some(OptKeyword::Yes),
        "help" | "info" => Some(OptKeyword::Help),
        _ => None,
    }
}

/// Command that code answers, even if a model is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCommand {
    ClearConversation,
    /// Erase the messages and the facts of the user.
    ForgetAll,
    /// List the facts that are stored about the user.
    ListFacts,
    /// Forget the fact with this number.
    ForgetFact(u8),
    Commands,
    More,
    Status,
    Upcoming,
    /// Set whether and when the user gets notifications.
    SetNotifications(NotificationPreference),
    /// Pick an entry from the last list, if code wrote one.
    Number(u8),
}

/// Parses the whole of `text` as a command.
pub fn parse_command(text: &str) -> Option<TextCommand> {
    if text.trim() == "?" {
        return Some(TextCommand::Commands);
    }
    let core = strip_courtesy(text);
    match core.to_lowercase().as_str() {
        "/clear" | "/reset" | "reset" | "dialarr clear" => Some(TextCommand::ClearConversation),
        "forget all" | "forget everything" => Some(TextCommand::ForgetAll),
        "commands" => Some(TextCommand::Commands),
        "more" => Some(TextCommand::More),
        "status" => Some(TextCommand::Status),
        "upcoming" => Some(TextCommand::Upcoming),
        "what do you know"
        | "what do you know about me"
        | "what do you know of me"
        | "what do you remember"
        | "what do you remember about me"
        | "what do you remember of me" => Some(TextCommand::ListFacts),
        _ => quiet_hours::parse_preference(core)
            .map(TextCommand::SetNotifications)
            .or_else(|| {
                strip_prefix_ignore_case(core, "forget ").and_then(parse_number).map(TextCommand::ForgetFact)
            })
            .or_else(|| parse_number(core).map(TextCommand::Number)),
    }
}

/// Request in the grammar of the keyword responder. Titles are as the user typed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordRequest<'a> {
    Add(&'a str),
    Search(&'a str),
    Have(&'a str),
    Remove(&'a str),
    /// A verb with a phrase that refers to a title: "delete it".
    Reference(KeywordVerb, TitleReference),
    Status,
    Upcoming,
    /// Notify the user when the last mentioned title is ready.
    FollowTitle,
    Number(u8),
}

/// Requested operation on a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordVerb {
    Add,
    Search,
    Have,
    Remove,
}

/// Parses `text` in the keyword grammar: a verb, followed by a title.
pub fn parse_keyword_request(text: &str) -> Option<KeywordRequest<'_>> {
    let core = strip_courtesy(text);
    if FOLLOW_PHRASES.contains(&normalize_title(core).as_str()) {
        return Some(KeywordRequest::FollowTitle);
    }
    let Some((verb, rest)) = core.split_once(char::is_whitespace) else {
        return match core.to_lowercase().as_str() {
            "status" | "queue" => Some(KeywordRequest::Status),
            "upcoming" => Some(KeywordRequest::Upcoming),
            _ => parse_number(core).map(KeywordRequest::Number),
        };
    };
    let rest = rest.trim();
    let (verb, object) = match verb.to_lowercase().as_str() {
        "get" => match strip_prefix_ignore_case(rest, "rid of ") {
            Some(object) => (KeywordVerb::Remove, object),
            None => (KeywordVerb::Add, rest),
        },
        "add" => (KeywordVerb::Add, rest),
        "search" | "find" => (KeywordVerb::Search, strip_prefix_ignore_case(rest, "for ").unwrap_or(rest)),
        "have" => (KeywordVerb::Have, rest),
        "remove" | "delete" => (KeywordVerb::Remove, rest),
        _ => return None,
    };
    parse_object(verb, object)
}

/// Parses the object of a verb. A pronoun is a title in quotes or after "the movie", and otherwise a reference.
fn parse_object(verb: KeywordVerb, object: &str) -> Option<KeywordRequest<'_>> {
    let title = object.trim_matches(QUOTES).trim();
    if title.is_empty() {
        return None;
    }
    if !object.starts_with(QUOTES)
        && let Some(reference) = TitleReference::parse(title)
    {
        return Some(KeywordRequest::Reference(verb, reference));
    }
    // Seasons cannot be resolved for a title that is not named.
    let with_seasons = split_seasons(title).filter(|_| verb == KeywordVerb::Add);
    if with_seasons.is_some_and(|(title, _)| TitleReference::parse(title).is_some()) {
        return Some(KeywordRequest::Reference(verb, TitleReference::Several));
    }
    let title = title_reference::title_after_noun(title).unwrap_or(title);
    Some(match verb {
        KeywordVerb::Add => KeywordRequest::Add(title),
        KeywordVerb::Search => KeywordRequest::Search(title),
        KeywordVerb::Have => KeywordRequest::Have(title),
        KeywordVerb::Remove => KeywordRequest::Remove(title),
    })
}

/// Requested seasons of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedSeasons {
    All,
    First,
    Latest,
    Listed(Vec<u16>),
}

/// Splits "The Office seasons 1-3" or "The Office all" into the title and the seasons; `None` if no seasons are named.
pub fn split_seasons(text: &str) -> Option<(&str, RequestedSeasons)> {
    let words = words_with_offsets(text);
    let is_season = |word: &str| matches!(word.to_lowercase().as_str(), "season" | "seasons");
    let (split, seasons) = match words.as_slice() {
        [.., (start, ordinal), (_, noun)] if is_season(noun) && parse_ordinal(ordinal).is_some() => {
            (*start, parse_ordinal(ordinal)?)
        }
        [.., (start, ordinal)] if parse_ordinal(ordinal).is_some() => (*start, parse_ordinal(ordinal)?),
        _ => {
            let noun_index = words.iter().rposition(|(_, word)| is_season(word))?;
            let numbers = words[noun_index + 1..].iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
            (words[noun_index].0, RequestedSeasons::Listed(parse_season_numbers(&numbers)?))
        }
    };
    let title = text[..split].trim_end_matches(|c: char| c.is_whitespace() || c == ',');
    (!title.is_empty()).then_some((title, seasons))
}

/// Returns whether the user can have asked for a deletion: the messages of this turn contain a word for deletion, or
/// the last three messages name every title. A prompt injection in the description of a title passes neither check.
pub fn is_deletion_requested(
    turn_texts: &[&str],
    last_three_texts: &[&str],
    titles: &[&str],
    languages: &[ReplyLanguage],
) -> bool {
    // A number answers "which one?", so the messages before it contain the request.
    let picks_from_list =
        !turn_texts.is_empty() && turn_texts.iter().all(|text| parse_number(strip_courtesy(text)).is_some());
    let request_texts = if picks_from_list { last_three_texts } else { turn_texts };
    let mut word_lists =
        std::iter::once(DELETION_WORDS).chain(languages.iter().map(|language| deletion_words_in(*language)));
    let has_deletion_word = word_lists.any(|list| {
        list.split(", ").any(|phrase| request_texts.iter().any(|text| contains_phrase(text, phrase)))
    });
    let is_named =
        |title: &&str| last_three_texts.iter().any(|text| title_reference::names_title(text, title));
    has_deletion_word || (!titles.is_empty() && titles.iter().all(is_named))
}

/// Returns whether the messages of this turn complain about a copy or a download, or ask for another one.
pub fn is_replacement_requested(turn_texts: &[&str]) -> bool {
    REPLACEMENT_WORDS.split(", ").any(|phrase| turn_texts.iter().any(|text| contains_phrase(text, phrase)))
}

/// Normalized phrases that ask for a notification when a title is ready.
const FOLLOW_PHRASES: [&str; 12] = [
    "me too",
    "tell me",
    "tell me too",
    "tell me when its ready",
    "tell me when it is ready",
    "tell me when ready",
    "tell me when its there",
    "let me know",
    "let me know when its ready",
    "let me know when it is ready",
    "text me when its ready",
    "text me when it is ready",
];

const QUOTES: [char; 5] = ['"', '\u{201C}', '\u{201D}', '\u{201E}', '\''];

/// Maximum season number; a larger number is a typo.
const MAX_SEASON: u16 = 100;

/// English words for deletion, in the form of [`normalize_title`].
const DELETION_WORDS: &str = "delete, deletes, deleted, deleting, deletion, del, remove, removes, removed, removing, \
    removal, get rid, getting rid, trash, trashing, erase, erasing, drop, dropping, bin, binning, nuke, nuking, \
    wipe, wiping, purge, purging, ditch, dump, scrap, toss, zap, clear out, throw out, throw away, kick out, take off, \
    lose, can go, done with, finished with, dont need, do not need, no longer need, watched it already, already watched, \
    seen it already, already seen";

/// Words for a defective copy or for another one, in the same form.
const REPLACEMENT_WORDS: &str = "replace, replaces, replacing, replacement, another, different, better, bad, broken, corrupt, \
    corrupted, damaged, wrong, faulty, stuck, stalled, cancel, abort, kill, fetch again, get again, download again, \
    redownload, re download, grab again, out of sync, no sound, no audio, no subtitles, unwatchable, does not play, \
    doesnt play, wont play, will not play, blocklist, blacklist";

/// Words for deletion in another language, without accents.
fn deletion_words_in(language: ReplyLanguage) -> &'static str {
    match language {
        ReplyLanguage::Spanish => "borra, borrar, borre, elimina, eliminar, elimine, quita, quitar, suprime",
        ReplyLanguage::French => {
            "supprime, supprimer, supprimez, efface, effacer, effacez, enleve, enlever, enlevez, retire, retirer, \
                vire, virer"
        }
        ReplyLanguage::German => {
            "losche, losch, loschen, loesche, loeschen, entferne, entfernen, weg, wegwerfen"
        }
        ReplyLanguage::Portuguese => {
            "apaga, apagar, apague, exclui, excluir, exclua, remova, remover, deleta, deletar, elimina, eliminar, \
                tira, tirar"
        }
        ReplyLanguage::Italian => {
            "elimina, eliminare, cancella, cancellare, rimuovi, rimuovere, togli, togliere"
        }
        ReplyLanguage::Dutch => "verwijder, verwijderen, wis, wissen, weg, weghalen, weggooien",
    }
}

/// Removes a leading or trailing "please", trailing thanks, and trailing punctuation.
fn strip_courtesy(text: &str) -> &str {
    let mut core = text.trim();
    for courtesy in ["please ", "please, ", "pls ", "plz "] {
        core = strip_prefix_ignore_case(core, courtesy).map_or(core, str::trim_start);
    }
    for courtesy in [" please", " pls", " plz", " thanks", " thank you", " thx", " ty"] {
        core = trim_end_punctuation(core);
        if let Some(start) = core.len().checked_sub(courtesy.len())
            && core.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(courtesy))
        {
            core = &core[..start];
        }
    }
    trim_end_punctuation(core)
}

fn trim_end_punctuation(text: &str) -> &str {
    text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!' | '?' | ',' | ';'))
}

/// Returns the text after `prefix`, which is compared without case; `None` if that text is empty.
fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    let rest = text[prefix.len()..].trim_start();
    (start.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
}

/// Parses "2", "2.", "2)" or "#2", from 1 to 99.
fn parse_number(text: &str) -> Option<u8> {
    let digits = text.strip_prefix('#').unwrap_or(text).trim_end_matches([')', '.']);
    let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok().filter(|&number| number > 0) } else { None }
}

fn words_with_offsets(text: &str) -> Vec<(usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word)).collect()
}

fn parse_ordinal(word: &str) -> Option<RequestedSeasons> {
    match word.to_lowercase().as_str() {
        "all" => Some(RequestedSeasons::All),
        "first" => Some(RequestedSeasons::First),
        "latest" => Some(RequestedSeasons::Latest),
        _ => None,
    }
}

/// Parses "2", "1-3", "1 2", "1, 2 and 4"; returns `None` for anything else.
fn parse_season_numbers(text: &str) -> Option<Vec<u16>> {
    let mut seasons = Vec::new();
    let separated = text.replace([',', '&', '+'], " ").replace(" and ", " ");
    for part in separated.split_whitespace() {
        let (first, last) = part.split_once(['-', '\u{2013}']).unwrap_or((part, part));
        // If any part is not a number, the text is not a list of seasons.
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > MAX_SEASON {
            return None;
        }
        seasons.extend(first..=last);
    }
    seasons.sort_unstable();
    seasons.dedup();
    (!seasons.is_empty()).then_some(seasons)
}

/// Returns whether the whole of `text` retracts the last request.
pub fn is_retraction(text: &str) -> bool {
    let normalized = normalize_title(text);
    matches!(
        normalized.as_str(),
        "never mind"
            | "nevermind"
            | "nvm"
            | "forget it"
            | "cancel"
            | "cancel that"
            | "cancel it"
            | "stop"
            | "stop that"
            | "stop it"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::conversation::transcript::MediaKind;

    #[track_caller]
    fn check(text: &str, expected: Option<KeywordRequest<'_>>) {
        assert_eq!(parse_keyword_request(text), expected, "{text:?}");
    }

    #[test]
    fn opt_keywords_match_those_of_the_carrier() {
        let file: Value =
            serde_json::from_str(include_str!("../../../tests/data/optout_keywords.json")).unwrap();
        for vector in file["vectors"].as_array().unwrap() {
            let body = vector["body"].as_str().unwrap();
            let expected = match (vector["twilio"].as_str().unwrap(), body) {
                ("opt_out" | "unverified", _) => Some(OptKeyword::Out),
                ("opt_in", "yes") => Some(OptKeyword::Yes),
                ("opt_in", _) => Some(OptKeyword::In),
                ("help", _) => Some(OptKeyword::Help),
                _ => None,
            };
            assert_eq!(parse_opt_keyword(body), expected, "{body:?}");
        }
        for (list, expected) in [("opt_out", OptKeyword::Out), ("help", OptKeyword::Help)] {
            for body in file[list].as_array().unwrap().iter().filter_map(Value::as_str) {
                assert_eq!(parse_opt_keyword(body), Some(expected), "{body:?}");
            }
        }
    }

    #[test]
    fn punctuated_stop_opts_out_but_punctuated_start_does_not_opt_in() {
        for text in ["Stop.", "STOP!!", "quit ...", "Opt out!"] {
            assert_eq!(parse_opt_keyword(text), Some(OptKeyword::Out), "{text:?}");
        }
        for text in ["start!", "cancel it", "please stop", "the end", "stop?"] {
            assert_eq!(parse_opt_keyword(text), None, "{text:?}");
        }
    }

    #[test]
    fn command_is_a_whole_message() {
        for (text, expected) in [
            ("/clear", Some(TextCommand::ClearConversation)),
            ("/RESET", Some(TextCommand::ClearConversation)),
            ("Reset.", Some(TextCommand::ClearConversation)),
            ("dialarr clear", Some(TextCommand::ClearConversation)),
            (" ? ", Some(TextCommand::Commands)),
            ("Commands", Some(TextCommand::Commands)),
            ("more please", Some(TextCommand::More)),
            ("Status?", Some(TextCommand::Status)),
            ("upcoming", Some(TextCommand::Upcoming)),
            ("2", Some(TextCommand::Number(2))),
            ("2.", Some(TextCommand::Number(2))),
            ("#2", Some(TextCommand::Number(2))),
            ("2)", Some(TextCommand::Number(2))),
            ("99", Some(TextCommand::Number(99))),
            ("0", None),
            ("100", None),
            ("-2", None),
            ("2 and 3", None),
            ("What do you know about me?", Some(TextCommand::ListFacts)),
            ("what do you remember", Some(TextCommand::ListFacts)),
            ("what do you know about dune?", None),
            ("Forget 3", Some(TextCommand::ForgetFact(3))),
            ("please forget #12.", Some(TextCommand::ForgetFact(12))),
            ("forget 12 monkeys", None),
            ("forget it", None),
            ("forget everything", Some(TextCommand::ForgetAll)),
            ("reset my password", None),
            ("what is the status", None),
            ("??", None),
            ("", None),
        ] {
            assert_eq!(parse_command(text), expected, "{text:?}");
        }
    }

    #[test]
    fn each_verb_and_synonym_takes_a_title_as_typed() {
        check("ADD Dune", Some(KeywordRequest::Add("Dune")));
        check("get The Matrix (1999)", Some(KeywordRequest::Add("The Matrix (1999)")));
        check("search blade runner", Some(KeywordRequest::Search("blade runner")));
        check("find dune", Some(KeywordRequest::Search("dune")));
        check("search for dune", Some(KeywordRequest::Search("dune")));
        check("have heat?", Some(KeywordRequest::Have("heat")));
        check("remove Heat", Some(KeywordRequest::Remove("Heat")));
        check("Delete heat", Some(KeywordRequest::Remove("heat")));
        check("queue", Some(KeywordRequest::Status));
        check("Upcoming!", Some(KeywordRequest::Upcoming));
        check("#3", Some(KeywordRequest::Number(3)));
    }

    #[test]
    fn courtesy_and_punctuation_are_ignored() {
        check("pls add dune", Some(KeywordRequest::Add("dune")));
        check("Please, add dune please!", Some(KeywordRequest::Add("dune")));
        check("add “Dune”. Thanks!", Some(KeywordRequest::Add("Dune")));
        check("add dune, thank you", Some(KeywordRequest::Add("dune")));
        check("add please like me", Some(KeywordRequest::Add("please like me")));
        check("status pls", Some(KeywordRequest::Status));
    }

    #[test]
    fn get_rid_of_a_title_means_remove() {
        check("get rid of Dune", Some(KeywordRequest::Remove("Dune")));
    }

    #[test]
    fn pronoun_alone_is_a_reference_and_never_a_title() {
        use KeywordVerb::{Add, Have, Remove, Search};
        let (one, several) = (TitleReference::One, TitleReference::Several);
        check("delete it", Some(KeywordRequest::Reference(Remove, one)));
        check("Get rid of her, please", Some(KeywordRequest::Reference(Remove, one)));
        check("remove them", Some(KeywordRequest::Reference(Remove, several)));
        check("delete all", Some(KeywordRequest::Reference(Remove, several)));
        check("remove everything!", Some(KeywordRequest::Reference(Remove, several)));
        check(
            "delete the movie",
            Some(KeywordRequest::Reference(Remove, TitleReference::OneOf(MediaKind::Movie))),
        );
        check("add it", Some(KeywordRequest::Reference(Add, one)));
        check("search for that one", Some(KeywordRequest::Reference(Search, one)));
        check("have it?", Some(KeywordRequest::Reference(Have, one)));
        check("add it season 2", Some(KeywordRequest::Reference(Add, several)));
        check("delete the movie it", Some(KeywordRequest::Remove("it")));
        check("delete It (2017)", Some(KeywordRequest::Remove("It (2017)")));
        check("delete \u{201C}It\u{201D}", Some(KeywordRequest::Remove("It")));
        check("delete up", Some(KeywordRequest::Remove("up")));
        check("get rid of the movie her", Some(KeywordRequest::Remove("her")));
        check(
            "add all quiet on the western front",
            Some(KeywordRequest::Add("all quiet on the western front")),
        );
    }

    #[test]
    fn sentences_and_verbs_without_a_title_are_not_parsed() {
        for text in ["add", "add !", "can you add dune", "what's downloading?", "adding dune", "thanks", ""] {
            check(text, None);
        }
    }

    #[test]
    fn seasons_follow_the_title() {
        for (text, expected) in [
            ("the office season 2", Some(("the office", RequestedSeasons::Listed(vec![2])))),
            ("The Office seasons 1-3", Some(("The Office", RequestedSeasons::Listed(vec![1, 2, 3])))),
            ("the office, seasons 1, 2 and 4", Some(("the office", RequestedSeasons::Listed(vec![1, 2, 4])))),
            ("the office all", Some(("the office", RequestedSeasons::All))),
            ("the office all seasons", Some(("the office", RequestedSeasons::All))),
            ("the office first", Some(("the office", RequestedSeasons::First))),
            ("the office latest season", Some(("the office", RequestedSeasons::Latest))),
            ("open season", None),
            ("season of the witch", None),
            ("the office seasons 3-1", None),
            ("the office seasons 1-9999", None),
            ("all", None),
        ] {
            assert_eq!(split_seasons(text), expected, "{text:?}");
        }
    }

    #[test]
    fn deletion_word_in_this_turn_is_a_request() {
        for text in [
            "Delete it!",
            "get rid of the old ones",
            "NUKE dune",
            "can you throw out Heat",
            "it can go",
            "lose it",
            "we are done with dune",
            "I don't need that one",
            "watched it already",
        ] {
            assert!(is_deletion_requested(&[text], &[], &["Dune"], &[]), "{text:?}");
        }
        for text in ["what is dune about", "binge something", "undeleted scenes"] {
            assert!(!is_deletion_requested(&[text], &[text], &["Heat"], &[]), "{text:?}");
        }
    }

    #[test]
    fn number_takes_its_request_from_the_messages_before_it() {
        let titles = ["Dune: Part Two"];
        assert!(is_deletion_requested(&["2"], &["hi", "remove dune", "2"], &titles, &[]));
        assert!(!is_deletion_requested(&["2"], &["hi", "add dune", "2"], &titles, &[]));
        assert!(!is_deletion_requested(&["the second"], &["remove dune", "the second"], &titles, &[]));
    }

    #[test]
    fn recent_messages_that_name_every_title_are_a_request() {
        let last_three = ["is schindlers list any good", "the old Office?", "hm"];
        let is_requested = |titles: &[&str]| is_deletion_requested(&["hm"], &last_three, titles, &[]);
        assert!(is_requested(&["Schindler's List", "The Office"]));
        assert!(!is_requested(&["Schindler's List", "Heat"]));
        assert!(!is_requested(&[]));
    }

    #[test]
    fn pronoun_does_not_name_a_title_of_the_same_spelling() {
        assert!(!is_deletion_requested(&["is it any good?"], &["is it any good?"], &["It"], &[]));
        assert!(is_deletion_requested(&["hm"], &["is the movie it any good?", "hm"], &["It"], &[]));
    }

    #[test]
    fn deletion_words_count_in_enabled_languages() {
        let texts = ["Lösche Dune", "supprime-le"];
        assert!(is_deletion_requested(&texts[..1], &[], &["Heat"], &[ReplyLanguage::German]));
        assert!(is_deletion_requested(&texts[1..], &[], &["Heat"], &[ReplyLanguage::French]));
        assert!(!is_deletion_requested(&texts, &[], &["Heat"], &[]));
    }

    #[test]
    fn complaint_about_a_copy_requests_a_replacement() {
        for text in ["the sound is out of sync", "That copy won't play", "get a different one", "it is stuck"]
        {
            assert!(is_replacement_requested(&[text]), "{text:?}");
        }
        for text in ["how is it going?", "badly dubbed films", "what about dune"] {
            assert!(!is_replacement_requested(&[text]), "{text:?}");
        }
    }

    #[test]
    fn fixed_texts_fit_one_segment_without_opt_out_keywords() {
        // The complete list fits one page.
        assert!(format_commands(UserRole::Admin).len() <= 320);
        for text in [
            COMMANDS_TEXT,
            MEMORY_COMMANDS_TEXT,
            NOTIFICATION_COMMANDS_TEXT,
            ADMIN_COMMANDS_TEXT,
            KEYWORDS_TEXT,
            MODEL_OFF_TEXT,
        ] {
            assert!(text.is_ascii() && text.len() <= 160, "{text}");
            for word in ["cancel", "stop", "end", "quit"] {
                assert!(!contains_phrase(text, word), "{text}");
            }
        }
    }
}
