//! Parser of opt-out keywords and commands, which are whole messages. The module also checks whether the messages of a
//! turn ask for a deletion.

use super::confirmation_reply::ReplyLanguage;
use super::title_reference;
use crate::conversation::invitation;
use crate::conversation::linking;
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
const NOTIFICATION_COMMANDS_TEXT: &str = "Notifications: NOTIFY OFF or ON, QUIET 22-7. LINK phone.";

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
/// Reply to a yes or an approval that a program wrote.
pub const ONLY_IN_PERSON_REPLY: &str =
    "Only a person can confirm this, in their own chat or in the console. Nothing was done.";
/// Reply to the press of a button of an earlier message.
pub const STALE_BUTTON_REPLY: &str = "That button belongs to an earlier message, so nothing was done.";
/// Reply to a command that may not have been written by its sender: the carrier's record does not verify it, or it was
/// forwarded.
pub const UNVERIFIED_REPLY: &str = "I could not be sure that these are your own words, so nothing was done. Please type and send them again.";

/// Beginning of the reply of the keyword responder to a message that it cannot parse.
pub const NOT_UNDERSTOOD: &str = "I did not understand that.";

/// Sentence before that reply, if the responder replaces a model that does not respond.
pub const MODEL_OFF_PREFIX: &str = "The assistant is off right now. ";

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
    /// Use of an invitation, as [`invitation::parse_invitation`] parses it.
    Invitation,
    /// Link another phone or account, as [`linking::parse_link_command`] parses it.
    Link,
    /// Choose the address of notifications, as [`linking::parse_preferred_address`] parses it.
    PreferAddress,
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
            .or_else(|| parse_number(core).map(TextCommand::Number))
            .or_else(|| linking::parse_link_command(core).map(|_| TextCommand::Link))
            .or_else(|| invitation::parse_invitation(core).map(|_| TextCommand::Invitation))
            .or_else(|| linking::parse_preferred_address(core).map(|_| TextCommand::PreferAddress)),
    }
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
pub fn strip_courtesy(text: &str) -> &str {
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

    #[test]
    fn fixed_texts_fit_one_segment_without_opt_out_keywords() {
        // The complete list fits one page.
        assert!(format_commands(UserRole::Admin).len() <= 320);
        for text in [
            COMMANDS_TEXT,
            MEMORY_COMMANDS_TEXT,
            NOTIFICATION_COMMANDS_TEXT,
            ADMIN_COMMANDS_TEXT,
            MEDIA_ONLY_REPLY,
            STALE_BUTTON_REPLY,
            ONLY_IN_PERSON_REPLY,
            UNVERIFIED_REPLY,
        ] {
            assert!(text.is_ascii() && text.len() <= 160, "{text}");
            for word in ["cancel", "stop", "end", "quit"] {
                assert!(!contains_phrase(text, word), "{text}");
            }
        }
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
}
