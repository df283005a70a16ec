//! Parser of messages that need no model: opt-out words, commands, and the keyword grammar. The module also checks
//! whether the messages of a turn ask for a deletion at all.

use super::confirmation_reply::ReplyLanguage;
use super::title_reference::{self, TitleReference};
use crate::conversation::notifications::quiet_hours::{self, NotificationPreference};
use crate::conversation::text::normalization::{contains_phrase, normalize_title};
use crate::conversation::transcript::{OptWord, UserRole};

/// Reply to `commands` or `?`.
const COMMANDS_TEXT: &str = "You can text: ADD, SEARCH, HAVE or REMOVE title, STATUS, UPCOMING, TELL ME, MORE, RESET. \
    A number picks from a list.";

/// Commands for the facts that are stored about the user.
const MEMORY_TEXT: &str = "What I know: WHAT DO YOU KNOW, FORGET number or ALL.";

/// Additional commands of an admin.
const ADMIN_COMMANDS_TEXT: &str =
    "Admins: USERS, APPROVE, DENY or BLOCK code, QUOTA name +5, TELL EVERYONE words, PAUSE, RESUME.";

/// Commands for notifications.
const NOTIFICATIONS_TEXT: &str = "Notifications: NOTIFY OFF or ON, QUIET 22-7.";

/// Returns the list of commands for a user of this role.
pub fn format_commands(role: UserRole) -> String {
    match role {
        UserRole::Member => format!("{COMMANDS_TEXT}\n{MEMORY_TEXT}\n{NOTIFICATIONS_TEXT}"),
        UserRole::Admin => {
            format!("{COMMANDS_TEXT}\n{MEMORY_TEXT}\n{NOTIFICATIONS_TEXT}\n{ADMIN_COMMANDS_TEXT}")
        }
    }
}

/// Reply to a picture or a recording without text.
pub const MEDIA_ONLY_REPLY: &str = "I can only read text. What would you like to watch?";
/// Reply to a command whose fields the carrier's record does not confirm.
pub const UNVERIFIED_REPLY: &str = "I could not check with the phone network that this text came from you, so nothing was done. Please send it again.";

/// Reply of the keyword responder to a message that it cannot parse, if there is no other responder.
pub const KEYWORDS_TEXT: &str =
    "You can text: ADD title, SEARCH title, HAVE title, REMOVE title, STATUS, UPCOMING.";

/// Reply of the keyword responder to the same message, if a model would have read it.
pub const MODEL_OFF_TEXT: &str = "The assistant is off right now. You can text: ADD title, SEARCH title, HAVE title, \
    REMOVE title, STATUS, UPCOMING.";

/// Parses `text` as a whole as an opt-out or opt-in word.
pub fn opt_word(text: &str) -> Option<OptWord> {
    let word = text.trim().to_lowercase();
    // The carrier blocks us only on the exact word. "Stop!" means the same to the user, so it is honored too.
    match word.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!')) {
        "stop" | "stopall" | "unsubscribe" | "cancel" | "end" | "quit" | "revoke" | "optout" | "opt out"
        | "opt-out" => return Some(OptWord::Out),
        _ => {}
    }
    // Only the exact words lift a block at the carrier, so no looser form may clear our flag.
    match word.as_str() {
        "start" | "unstop" => Some(OptWord::In),
        "yes" => Some(OptWord::Yes),
        "help" | "info" => Some(OptWord::Help),
        _ => None,
    }
}

/// Command that is answered without a model even if there is one.
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

/// Parses `text` as a whole as a command.
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

/// Request in the grammar of the keyword responder. Titles are as typed.
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
    /// Notify the user when the title that was last mentioned is ready.
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

/// Parses `text` in the keyword grammar: a verb, then a title to the end.
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

/// Parses an object: a pronoun in quotes or after "the movie" is a title, and a pronoun alone is not.
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
    let seasons_of = split_seasons(title).filter(|_| verb == KeywordVerb::Add);
    if seasons_of.is_some_and(|(title, _)| TitleReference::parse(title).is_some()) {
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
        [.., (start, which), (_, noun)] if is_season(noun) && parse_ordinal(which).is_some() => {
            (*start, parse_ordinal(which)?)
        }
        [.., (start, which)] if parse_ordinal(which).is_some() => (*start, parse_ordinal(which)?),
        _ => {
            let at = words.iter().rposition(|(_, word)| is_season(word))?;
            let numbers = words[at + 1..].iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
            (words[at].0, RequestedSeasons::Listed(parse_season_numbers(&numbers)?))
        }
    };
    let title = text[..split].trim_end_matches(|c: char| c.is_whitespace() || c == ',');
    (!title.is_empty()).then_some((title, seasons))
}

/// Returns whether the user can have meant a deletion: a word for deletion in the messages of this turn, or every title
/// named in the last three messages. A title description that talks the model into a deletion passes neither check.
pub fn asked_to_delete(
    turn: &[&str],
    last_three: &[&str],
    titles: &[&str],
    languages: &[ReplyLanguage],
) -> bool {
    // A number answers "which one?", so the messages before it state the request.
    let picks = !turn.is_empty() && turn.iter().all(|text| parse_number(strip_courtesy(text)).is_some());
    let orders = if picks { last_three } else { turn };
    let mut lists = std::iter::once(DELETION_WORDS).chain(languages.iter().map(|l| deleting_words(*l)));
    let says_delete = lists
        .any(|list| list.split(", ").any(|phrase| orders.iter().any(|text| contains_phrase(text, phrase))));
    let names = |title: &&str| last_three.iter().any(|text| title_reference::names_title(text, title));
    says_delete || (!titles.is_empty() && titles.iter().all(names))
}

/// Returns whether the user complains about a copy or a download, or asks for another one.
pub fn asked_for_replacement(turn: &[&str]) -> bool {
    FAULT_WORDS.split(", ").any(|phrase| turn.iter().any(|text| contains_phrase(text, phrase)))
}

/// Phrases in the form of [`normalize_title`].
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

/// Highest season number; a larger number is a typo.
const MAX_SEASON: u16 = 100;

/// Words for deletion, in the form of [`normalize_title`].
const DELETION_WORDS: &str = "delete, deletes, deleted, deleting, deletion, del, remove, removes, removed, removing, \
    removal, get rid, getting rid, trash, trashing, erase, erasing, drop, dropping, bin, binning, nuke, nuking, \
    wipe, wiping, purge, purging, ditch, dump, scrap, toss, zap, clear out, throw out, throw away, kick out, take off";

/// Words for a defective copy, in the same form.
const FAULT_WORDS: &str = "replace, replaces, replacing, replacement, another, different, better, bad, broken, corrupt, \
    corrupted, damaged, wrong, faulty, stuck, stalled, cancel, abort, kill, fetch again, get again, download again, \
    redownload, re download, grab again, out of sync, no sound, no audio, no subtitles, unwatchable, does not play, \
    doesnt play, wont play, will not play, blocklist, blacklist";

/// Words for deletion in another language, without accents.
fn deleting_words(language: ReplyLanguage) -> &'static str {
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

/// Returns the text without "please" around it, thanks after it, and punctuation at its end.
fn strip_courtesy(text: &str) -> &str {
    let mut core = text.trim();
    for courtesy in ["please ", "please, ", "pls ", "plz "] {
        core = strip_prefix_ignore_case(core, courtesy).map_or(core, str::trim_start);
    }
    for courtesy in [" please", " pls", " plz", " thanks", " thank you", " thx", " ty"] {
        core = trim_end_punctuation(core);
        if let Some(at) = core.len().checked_sub(courtesy.len())
            && core.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(courtesy))
        {
            core = &core[..at];
        }
    }
    trim_end_punctuation(core)
}

fn trim_end_punctuation(text: &str) -> &str {
    text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!' | '?' | ',' | ';'))
}

/// Returns the rest after `prefix`, in any case; `None` if the rest is empty.
fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    let rest = text[prefix.len()..].trim_start();
    (start.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
}

/// Parses "2", "2.", "2)" or "#2", from 1 to 99.
fn parse_number(text: &str) -> Option<u8> {
    let digits = text.strip_prefix('#').unwrap_or(text).trim_end_matches([')', '.']);
    let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that overflow the type are not a number of a list either.
    if plain { digits.parse().ok().filter(|&number| number > 0) } else { None }
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
    let listed = text.replace([',', '&', '+'], " ").replace(" and ", " ");
    for part in listed.split_whitespace() {
        let (first, last) = part.split_once(['-', '\u{2013}']).unwrap_or((part, part));
        // The text is not a list of seasons if any part is not a number.
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
    let plain = normalize_title(text);
    matches!(
        plain.as_str(),
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
    fn opt_out_words_match_those_of_the_carrier() {
        let file: Value =
            serde_json::from_str(include_str!("../../../tests/data/optout_keywords.json")).unwrap();
        for vector in file["vectors"].as_array().unwrap() {
            let body = vector["body"].as_str().unwrap();
            let expected = match (vector["twilio"].as_str().unwrap(), body) {
                ("opt_out" | "unverified", _) => Some(OptWord::Out),
                ("opt_in", "yes") => Some(OptWord::Yes),
                ("opt_in", _) => Some(OptWord::In),
                ("help", _) => Some(OptWord::Help),
                _ => None,
            };
            assert_eq!(opt_word(body), expected, "{body:?}");
        }
        for (list, expected) in [("opt_out", OptWord::Out), ("help", OptWord::Help)] {
            for body in file[list].as_array().unwrap().iter().filter_map(Value::as_str) {
                assert_eq!(opt_word(body), Some(expected), "{body:?}");
            }
        }
    }

    #[test]
    fn emphasized_stop_opts_out_and_emphasized_start_is_no_command() {
        for text in ["Stop.", "STOP!!", "quit ...", "Opt out!"] {
            assert_eq!(opt_word(text), Some(OptWord::Out), "{text:?}");
        }
        for text in ["start!", "cancel it", "please stop", "the end", "stop?"] {
            assert_eq!(opt_word(text), None, "{text:?}");
        }
    }

    #[test]
    fn commands_are_whole_messages() {
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
        for text in ["Delete it!", "get rid of the old ones", "NUKE dune", "can you throw out Heat"] {
            assert!(asked_to_delete(&[text], &[], &["Dune"], &[]), "{text:?}");
        }
        for text in ["what is dune about", "binge something", "undeleted scenes"] {
            assert!(!asked_to_delete(&[text], &[text], &["Heat"], &[]), "{text:?}");
        }
    }

    #[test]
    fn number_selected_from_a_list_repeats_its_request() {
        let titles = ["Dune: Part Two"];
        assert!(asked_to_delete(&["2"], &["hi", "remove dune", "2"], &titles, &[]));
        assert!(!asked_to_delete(&["2"], &["hi", "add dune", "2"], &titles, &[]));
        assert!(!asked_to_delete(&["the second"], &["remove dune", "the second"], &titles, &[]));
    }

    #[test]
    fn naming_every_title_recently_is_a_request() {
        let last_three = ["is schindlers list any good", "the old Office?", "hm"];
        let asked = |titles: &[&str]| asked_to_delete(&["hm"], &last_three, titles, &[]);
        assert!(asked(&["Schindler's List", "The Office"]));
        assert!(!asked(&["Schindler's List", "Heat"]));
        assert!(!asked(&[]));
    }

    #[test]
    fn pronoun_does_not_name_a_title_of_the_same_spelling() {
        assert!(!asked_to_delete(&["is it any good?"], &["is it any good?"], &["It"], &[]));
        assert!(asked_to_delete(&["hm"], &["is the movie it any good?", "hm"], &["It"], &[]));
    }

    #[test]
    fn deletion_words_count_in_enabled_languages() {
        let text = ["Lösche Dune", "supprime-le"];
        assert!(asked_to_delete(&text[..1], &[], &["Heat"], &[ReplyLanguage::German]));
        assert!(asked_to_delete(&text[1..], &[], &["Heat"], &[ReplyLanguage::French]));
        assert!(!asked_to_delete(&text, &[], &["Heat"], &[]));
    }

    #[test]
    fn complaint_about_a_copy_requests_a_replacement() {
        for text in ["the sound is out of sync", "That copy won't play", "get a different one", "it is stuck"]
        {
            assert!(asked_for_replacement(&[text]), "{text:?}");
        }
        for text in ["how is it going?", "badly dubbed films", "what about dune"] {
            assert!(!asked_for_replacement(&[text]), "{text:?}");
        }
    }

    #[test]
    fn fixed_texts_fit_one_segment_without_opt_out_words() {
        // The complete list fits one page.
        assert!(format_commands(UserRole::Admin).len() <= 320);
        for text in [
            COMMANDS_TEXT,
            MEMORY_TEXT,
            NOTIFICATIONS_TEXT,
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
