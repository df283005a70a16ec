//! Names of people who act or direct.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::moods::parse_theme;
use super::providers::parse_provider;
use super::token::{Token, join_words};

/// Maximum number of words of a name.
const MAX_NAME_WORDS: usize = 4;

/// Words that are not in a name after "with", "by" and similar words.
const NO_ARTISTS: &str = " a an the this that these those it its they them their theyre he she his her him i me my mine we us our \
    you your who whom whose what which where when why how and or but so as not no nor never for from to of on in at into \
    about with without by than then over under above below between around only just also too very really more most less \
    least fewer few lots lot many much some any all both each every everything anything something nothing everyone \
    everybody someone somebody anyone nobody people friends friend kids children child family wife husband mom mum mama \
    dad daddy grandma grandpa granny parents girlfriend boyfriend son daughter brother sister baby toddler boys girls guys \
    is are was were be been being am do does did dont doesnt didnt has have had havent hasnt would can could should \
    got get gets see seen watch watched watching play played add delete remove tell let \
    subtitle subtitles subs sub captions caption cc dubbed dub dubs audio sound dolby atmos surround commentary language \
    english spanish french german italian japanese korean chinese hindi dutch portuguese russian \
    4k uhd hd hdr 1080p 720p 2160p bluray imax quality resolution \
    rating ratings rated score scores stars review reviews oscar oscars award awards year years date name genre size title \
    titles rating popularity default order minute minutes hour hours min mins length runtime \
    season seasons episode episodes part parts sequel sequels movie movies film films show shows series tv video videos \
    good great best better worst nice cool big huge high low new old happy sad female male lead ending \
    endings twist twists plot plots story stories scene scenes sex nudity gore blood violence action fight fights sword \
    swords gun guns chase chases explosion explosions stunt stunts magic music songs singing dancing love animal animals \
    dog dogs cat cats horse horses shark sharks dragon dragons dinosaur dinosaurs robot robots alien aliens monster \
    monsters ghost ghosts witch witches pirate pirates ninja ninjas car cars train trains plane planes time travel heart \
    plex jellyfin emby radarr sonarr library server disk phone popcorn tonight today tomorrow yesterday week weekend month \
    now please thanks again ";

/// Names that begin with an article.
const NAMES_WITH_ARTICLE: [&str; 2] = ["the rock", "the undertaker"];

/// Returns whether the words may be the name of somebody who acts or directs. One word in the plural is no name, unless it
/// is capitalized.
pub fn is_artist(words: &[Token]) -> bool {
    static LISTED: LazyLock<BTreeSet<&str>> = LazyLock::new(|| NO_ARTISTS.split_whitespace().collect());
    let is_name = |token: &Token| {
        let is_number = token.word.starts_with(|c: char| c.is_ascii_digit());
        token.is_quoted || !is_number && !LISTED.contains(token.word.as_str())
    };
    if NAMES_WITH_ARTICLE.contains(&join_words(words).as_str()) {
        return true;
    }
    let (Some((last, before)), true) = (words.split_last(), words.len() <= MAX_NAME_WORDS) else {
        return false;
    };
    let is_plural = before.is_empty() && last.raw.ends_with('s') && last.raw.starts_with(char::is_lowercase);
    let is_list = before.iter().any(|token| token.ends_item || token.ends_sentence);
    !is_plural
        && !is_list
        && words.iter().all(is_name)
        && parse_provider(words).is_none()
        && parse_theme(words).is_none()
}

#[cfg(test)]
mod tests {
    use super::super::token::tokenize;
    use super::*;

    #[test]
    fn nouns_after_with_are_no_artists() {
        for text in
            ["tilda swinton", "Cher", "Hanks", "zendaya", "philip seymour hoffman", "\"Cher\"", "the rock"]
        {
            assert!(is_artist(&tokenize(text)), "{text:?}");
        }
        for text in [
            "subtitles",
            "4k",
            "more than 8 rating",
            "my wife",
            "dragons",
            "zombies",
            "time travel",
            "tom hanks and meg ryan",
            "tom hanks, meg ryan",
            "netflix",
            "a happy ending",
        ] {
            assert!(!is_artist(&tokenize(text)), "{text:?}");
        }
    }
}
