//! Caps on the age ratings of the titles that a person may have. [`super::people::age_ratings`] has the scales.

/// Age in years from which a title is suitable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MinimumAge(pub u8);

/// Highest ages of the titles that a person may have, by kind; `None` without a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RatingCaps {
    pub movies: Option<MinimumAge>,
    pub shows: Option<MinimumAge>,
}

impl MinimumAge {
    /// Highest age of any scale.
    pub const MAX: Self = Self(18);

    /// Parses an age from 0 to 18.
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok().map(Self).filter(|age| *age <= Self::MAX)
    }
}

impl RatingCaps {
    pub const UNLIMITED: Self = Self { movies: None, shows: None };

    pub fn is_unlimited(self) -> bool {
        self == Self::UNLIMITED
    }

    /// Returns the lower cap of each kind.
    pub fn strictest(self, other: Self) -> Self {
        let lower = |one: Option<MinimumAge>, other: Option<MinimumAge>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { movies: lower(self.movies, other.movies), shows: lower(self.shows, other.shows) }
    }
}
