//! Detection of misspelled variable names.

use std::fmt;

use super::variables;

/// Minimum length of the variable names that are compared. Shorter names have too many neighbors, such as `HOST` and
/// `POST`.
const MIN_NAME_LENGTH: usize = 9;
/// Minimum length of the names that may have two typos.
const TWO_TYPOS_LENGTH: usize = 14;
/// Prefixes of programs that run beside Sonarr and Radarr and have similar names.
const OTHER_PREFIXES: [&str; 3] = ["BAZARR_", "LIDARR_", "READARR_"];

/// Name that has no effect. Its value is not stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MisspelledName {
    pub name: String,
    /// Name of the similar variable.
    pub suggestion: &'static str,
}

impl fmt::Display for MisspelledName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: unknown setting; did you mean {}?", self.name, self.suggestion)
    }
}

/// Returns the misspelled names, each once, in alphabetical order.
pub(super) fn find_misspelled<'a>(names: impl Iterator<Item = &'a String>) -> Vec<MisspelledName> {
    let mut found: Vec<MisspelledName> = names
        .filter_map(|name| Some(MisspelledName { name: name.clone(), suggestion: closest_variable(name)? }))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the most similar variable. A swap of two adjacent characters counts as one typo.
pub(super) fn closest_variable(name: &str) -> Option<&'static str> {
    let known = variables::VARIABLES.iter().map(|variable| variable.name);
    let upper = name.to_ascii_uppercase();
    if known.clone().any(|known| known == name)
        || OTHER_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
    {
        return None;
    }
    let near = known.filter(|known| known.len() >= MIN_NAME_LENGTH).filter_map(|known| {
        let typos = strsim::osa_distance(&upper, known);
        let max_typos = if known.len() < TWO_TYPOS_LENGTH { 1 } else { 2 };
        (typos <= max_typos).then_some((typos, known))
    });
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::closest_variable;
    use super::variables;

    #[track_caller]
    fn check(names: &[&str], expected: Option<&str>) {
        for name in names {
            assert_eq!(closest_variable(name), expected, "{name}");
        }
    }

    #[test]
    fn misspelled_name_suggests_the_similar_variable() {
        check(&["LLM_MODLE", "LLM_MODEL_", "LM_MODEL", "LLMMODEL", "llm_model"], Some("LLM_MODEL"));
        check(&["SONARR_APIKEY", "SONAR_API_KEY", "SONAR_APIKEY"], Some("SONARR_API_KEY"));
        check(&["RADARR4K_URL", "RADARR_4K_ULR"], Some("RADARR_4K_URL"));
        check(&["TWILIO_ACCOUNT_ID", "TWILLIO_ACOUNT_SID"], Some("TWILIO_ACCOUNT_SID"));
        check(&["CONSOLE_HOST"], Some("CONSOLE_HOSTS"));
        check(&["EMBEDDING_MODEL"], Some("EMBEDDINGS_MODEL"));
    }

    #[test]
    fn known_variable_has_no_suggestion() {
        check(&variables::VARIABLES.iter().map(|variable| variable.name).collect::<Vec<_>>(), None);
    }

    #[test]
    fn variables_of_other_programs_have_no_suggestion() {
        check(
            &["HOSTS", "HOSTNAME", "POST", "PORTS", "TZ_", "tz", "port", "RUSTC_LOG", "RUST_LOG_STYLE"],
            None,
        );
        check(&["BAZARR_API_KEY", "LIDARR_API_KEY", "READARR_URL", "PROWLARR_URL", "SONARR_PORT"], None);
        check(&["OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "LLM_API_BASE", "LLM_TIMEOUT"], None);
        check(&["DATABASE_SSL", "DATABASE_USER", "LOG_LEVEL", "LOG_FILE", "PUID", "PGID", "UMASK"], None);
        check(&["TWILIO_API_KEY", "TWILIO_API_SECRET", "TWILIO_NUMBER", "CONSOLE_PORT"], None);
    }
}
