//! Age ratings of movies and shows on the scales of eight countries, and the caps of people.
//!
//! Each scale names the age from which its rating body considers a title suitable: the MPA and the TV Parental Guidelines
//! (US), the BBFC (GB), the FSK (DE), the CNC and the Arcom (FR), the NICAM (NL), the ICAA (ES), the Classification Board
//! (AU), and the CHVRS and the CBSC (CA). A rating that only advises parents has the age that its body, or that of a
//! neighboring rating, names: PG is 8 at the BBFC, and so here for every country but the US, whose PG is 10.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::conversation::rating_caps::{MinimumAge, RatingCaps};
use crate::conversation::transcript::MediaKind;

/// Country whose ratings a server shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RatingCountry {
    #[default]
    UnitedStates,
    UnitedKingdom,
    Germany,
    France,
    Netherlands,
    Spain,
    Australia,
    Canada,
}

/// Ratings of a scale in the spelling of `normalize`, each with its age.
type Scale = &'static [(&'static str, u8)];

const US_MOVIES: Scale = &[("G", 0), ("PG", 10), ("PG-13", 13), ("R", 17), ("NC-17", 18)];
const US_SHOWS: Scale =
    &[("TV-Y", 0), ("TV-G", 0), ("TV-Y7", 7), ("TV-Y7-FV", 7), ("TV-PG", 10), ("TV-14", 14), ("TV-MA", 17)];
const BRITISH: Scale = &[("U", 0), ("PG", 8), ("12", 12), ("12A", 12), ("15", 15), ("18", 18), ("R18", 18)];
const GERMAN: Scale = &[("0", 0), ("6", 6), ("12", 12), ("16", 16), ("18", 18)];
const FRENCH: Scale = &[("U", 0), ("TP", 0), ("10", 10), ("12", 12), ("16", 16), ("18", 18)];
const DUTCH: Scale = &[("AL", 0), ("6", 6), ("9", 9), ("12", 12), ("14", 14), ("16", 16), ("18", 18)];
const SPANISH: Scale = &[
    ("A", 0),
    ("AI", 0),
    ("A/I", 0),
    ("APTA", 0),
    ("TP", 0),
    ("ERI", 0),
    ("I", 0),
    ("7", 7),
    ("7I", 7),
    ("7/I", 7),
    ("10", 10),
    ("12", 12),
    ("13", 13),
    ("16", 16),
    ("18", 18),
    ("X", 18),
];
const AUSTRALIAN: Scale = &[
    ("P", 0),
    ("C", 0),
    ("E", 0),
    ("G", 0),
    ("PG", 8),
    ("M", 15),
    ("MA15+", 15),
    ("MA 15+", 15),
    ("AV15+", 15),
    ("R18+", 18),
    ("R 18+", 18),
    ("X18+", 18),
    ("X 18+", 18),
];
const CANADIAN_MOVIES: Scale = &[("G", 0), ("PG", 8), ("14A", 14), ("18A", 18), ("R", 18), ("A", 18)];
const CANADIAN_SHOWS: Scale = &[("C", 0), ("G", 0), ("C8", 8), ("PG", 8), ("14+", 14), ("18+", 18)];

impl RatingCountry {
    pub const ALL: [Self; 8] = [
        Self::UnitedStates,
        Self::UnitedKingdom,
        Self::Germany,
        Self::France,
        Self::Netherlands,
        Self::Spain,
        Self::Australia,
        Self::Canada,
    ];

    /// Returns the code of the country in ISO 3166, such as `US`.
    pub fn code(self) -> &'static str {
        match self {
            Self::UnitedStates => "US",
            Self::UnitedKingdom => "GB",
            Self::Germany => "DE",
            Self::France => "FR",
            Self::Netherlands => "NL",
            Self::Spain => "ES",
            Self::Australia => "AU",
            Self::Canada => "CA",
        }
    }

    /// Finds a country by its code, in any case.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|country| country.code().eq_ignore_ascii_case(code.trim()))
    }

    fn scale(self, kind: MediaKind) -> Scale {
        match (self, kind) {
            (Self::UnitedStates, MediaKind::Movie) => US_MOVIES,
            (Self::UnitedStates, MediaKind::Series) => US_SHOWS,
            (Self::UnitedKingdom, _) => BRITISH,
            (Self::Germany, _) => GERMAN,
            (Self::France, _) => FRENCH,
            (Self::Netherlands, _) => DUTCH,
            (Self::Spain, _) => SPANISH,
            (Self::Australia, _) => AUSTRALIAN,
            (Self::Canada, MediaKind::Movie) => CANADIAN_MOVIES,
            (Self::Canada, MediaKind::Series) => CANADIAN_SHOWS,
        }
    }

    /// Returns the age of a rating; `None` for a title without one, and for a rating of another scale.
    pub fn minimum_age(self, kind: MediaKind, certification: &str) -> Option<MinimumAge> {
        let wanted = normalize(certification);
        self.scale(kind).iter().find(|(rating, _)| *rating == wanted).map(|(_, age)| MinimumAge(*age))
    }
}

/// Returns a rating in capitals, without the name of its body, and without the hyphen of the French ones.
fn normalize(certification: &str) -> String {
    let capitals = certification.trim().to_uppercase();
    capitals.strip_prefix("FSK").unwrap_or(&capitals).trim_start_matches([' ', '-', ':']).to_owned()
}

impl RatingCaps {
    /// Returns whether a person may have a title. A title whose age is unknown is over every cap.
    pub fn allows(self, kind: MediaKind, age: Option<MinimumAge>) -> bool {
        let cap = match kind {
            MediaKind::Movie => self.movies,
            MediaKind::Series => self.shows,
        };
        cap.is_none_or(|cap| age.is_some_and(|age| age <= cap))
    }
}

/// Titles that may be shown to a person: those within the caps, and those that a parent approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgeLimit {
    pub caps: RatingCaps,
    /// Approved titles, by kind and TMDB or TheTVDB id.
    pub approved: Arc<BTreeSet<(MediaKind, i64)>>,
}

impl AgeLimit {
    pub fn is_unlimited(&self) -> bool {
        self.caps.is_unlimited()
    }

    /// Returns whether a title may be shown. `country` is that of its rating; `None` if it is not known.
    pub fn allows(
        &self,
        (kind, catalog_id): (MediaKind, i64),
        country: Option<RatingCountry>,
        certification: &str,
    ) -> bool {
        let age = || country.and_then(|country| country.minimum_age(kind, certification));
        self.caps.allows(kind, None)
            || self.approved.contains(&(kind, catalog_id))
            || self.caps.allows(kind, age())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(country: &str, kind: MediaKind, certification: &str) -> Option<u8> {
        let country = RatingCountry::from_code(country).unwrap();
        country.minimum_age(kind, certification).map(|age| age.0)
    }

    #[test]
    fn ratings_of_each_country_have_their_ages() {
        use MediaKind::{Movie, Series};
        for (country, kind, rising) in [
            ("US", Movie, &["G", "PG", "PG-13", "R", "NC-17"][..]),
            ("US", Series, &["TV-G", "TV-Y7", "TV-PG", "TV-14", "TV-MA"]),
            ("GB", Movie, &["U", "PG", "12A", "15", "18"]),
            ("DE", Movie, &["0", "6", "12", "16", "18"]),
            ("FR", Series, &["TP", "-10", "-12", "-16", "-18"]),
            ("NL", Movie, &["AL", "6", "9", "12", "14", "16", "18"]),
            ("ES", Movie, &["A", "7", "12", "16", "18"]),
            ("AU", Movie, &["G", "PG", "M", "R18+"]),
            ("CA", Movie, &["G", "PG", "14A", "18A"]),
            ("CA", Series, &["C", "C8", "14+", "18+"]),
        ] {
            let ages: Vec<u8> = rising
                .iter()
                .map(|rating| age(country, kind, rating).unwrap_or_else(|| panic!("{rating}")))
                .collect();
            assert!(ages.is_sorted_by(|a, b| a < b), "{country}: {ages:?}");
        }
    }

    #[test]
    fn spelling_of_a_rating_does_not_matter() {
        assert_eq!(age("DE", MediaKind::Movie, "FSK 12"), Some(12));
        assert_eq!(age("de", MediaKind::Movie, " fsk-16 "), Some(16));
        assert_eq!(age("US", MediaKind::Series, "tv-ma"), Some(17));
        assert_eq!(age("FR", MediaKind::Movie, "-16"), Some(16));
    }

    #[test]
    fn title_without_a_known_rating_is_over_every_cap() {
        let caps = RatingCaps { movies: Some(MinimumAge(18)), shows: None };
        for unknown in ["", "NR", "Not Rated", "Unrated", "FSK", "12+", "TV-14", "NC16"] {
            assert_eq!(age("US", MediaKind::Movie, unknown), None, "{unknown}");
        }
        assert!(!caps.allows(MediaKind::Movie, None));
        assert!(caps.allows(MediaKind::Series, None));
        assert!(RatingCaps::default().allows(MediaKind::Movie, None));
    }

    #[test]
    fn approved_title_is_within_the_limit_and_unknown_country_is_not() {
        let caps = RatingCaps { movies: Some(MinimumAge(13)), shows: None };
        let limit = AgeLimit { caps, approved: Arc::new(BTreeSet::from([(MediaKind::Movie, 949)])) };
        let us = Some(RatingCountry::UnitedStates);
        assert!(limit.allows((MediaKind::Movie, 949), us, "R"));
        assert!(!limit.allows((MediaKind::Movie, 950), us, "R"));
        assert!(limit.allows((MediaKind::Movie, 950), us, "PG"));
        assert!(!limit.allows((MediaKind::Movie, 950), None, "PG"));
        assert!(limit.allows((MediaKind::Series, 949), None, ""));
    }

    #[test]
    fn strictest_caps_of_several_people_hold() {
        let caps = |movies, shows| RatingCaps {
            movies: Option::map(movies, MinimumAge),
            shows: Option::map(shows, MinimumAge),
        };
        assert_eq!(caps(Some(13), None).strictest(caps(Some(7), Some(12))), caps(Some(7), Some(12)));
        assert_eq!(caps(None, None).strictest(caps(None, Some(0))), caps(None, Some(0)));
    }

    #[test]
    fn cap_includes_titles_of_its_own_age() {
        let caps = RatingCaps { movies: Some(MinimumAge(13)), shows: Some(MinimumAge(7)) };
        assert!(caps.allows(MediaKind::Movie, Some(MinimumAge(13))));
        assert!(!caps.allows(MediaKind::Movie, Some(MinimumAge(17))));
        assert!(!caps.allows(MediaKind::Series, Some(MinimumAge(10))));
    }
}
