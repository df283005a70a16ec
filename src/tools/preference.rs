//! Stored preferences of the user for choices that a call leaves open: the quality profile and the instance of an
//! addition.

use serde_json::{Value, json};

use super::ToolContext;
use super::approval::check_profile_right;
use super::arguments::parsing::bad_argument;
use super::formatting::normalize_name;
use super::library::Instance;
use crate::arr::QualityProfile;
use crate::conversation::people::facts::{is_exclusion_or_bound, is_four_k};
use crate::conversation::transcript::{CallFailure, MediaKind, ToolArguments, UserRights};

/// Returns the profile that the user prefers, if they may use it and the preference matches one profile.
pub fn preferred_profile<'a>(
    profiles: &'a [QualityProfile],
    kind: MediaKind,
    context: &ToolContext,
) -> Option<&'a QualityProfile> {
    let profile = match_profile(profiles, context.facts.preferred_quality(kind)?)?;
    check_profile_right(profile, context.rights).is_ok().then_some(profile)
}

/// Returns the profile that a call names, such as `HD-1080p`, `1080p` or `4K`.
pub fn find_profile<'a>(
    profiles: &'a [QualityProfile],
    quality: &str,
) -> Result<&'a QualityProfile, CallFailure> {
    match_profile(profiles, quality).ok_or_else(|| {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        bad_argument("quality", &format!("one of {}", names.join(", ")), "if it is not clear, ask the user")
    })
}

/// Returns the profile that matches a quality: by its name, by a part that only its name has, or by its words. Returns
/// `None` if the match is ambiguous.
fn match_profile<'a>(profiles: &'a [QualityProfile], quality: &str) -> Option<&'a QualityProfile> {
    if is_exclusion_or_bound(quality) {
        return None;
    }
    let quality_words = normalize_name(quality);
    let has_name = |profile: &&QualityProfile| normalize_name(&profile.name) == quality_words;
    let contains_name = |profile: &&QualityProfile| normalize_name(&profile.name).contains(&quality_words);
    let mut containing = profiles.iter().filter(contains_name);
    let only_containing = containing.next().filter(|_| containing.next().is_none());
    if let Some(profile) = profiles.iter().find(has_name).or(only_containing) {
        return Some(profile);
    }
    if is_four_k(quality) {
        return profiles.iter().find(|profile| is_four_k(&profile.name));
    }
    // HD-1080p is preferred over HD-720p/1080p, because the matching name with the fewest other words wins.
    let has_all_words = |profile: &&QualityProfile| {
        let name = normalize_name(&profile.name);
        quality_words.split(' ').all(|word| name.split(' ').any(|other| other == word))
    };
    let word_count = |profile: &QualityProfile| normalize_name(&profile.name).split(' ').count();
    let best = profiles.iter().filter(has_all_words).min_by_key(|profile| word_count(profile))?;
    let ties =
        profiles.iter().filter(has_all_words).filter(|profile| word_count(profile) == word_count(best));
    (ties.count() == 1).then_some(best)
}

/// Returns the instance for a preferred quality: the 4K instance if the user prefers 4K and may use it, else the other
/// one. Returns `None` if there is only one instance.
pub fn preferred_instance<Client>(
    instances: &[Instance<Client>],
    quality: &str,
    rights: UserRights,
) -> Option<&'static str> {
    let four_k = is_four_k(quality) && !is_exclusion_or_bound(quality) && rights.may_use_four_k();
    let instance = instances.iter().find(|instance| instance.four_k == four_k)?;
    (instances.len() > 1).then_some(instance.name)
}

/// Returns the arguments with `instance` added. Returns `None` if the call names an instance or a quality.
pub fn with_preferred_instance(arguments: &ToolArguments, instance: &str) -> Option<ToolArguments> {
    let ToolArguments::Object(map) = arguments else { return None };
    let is_set = |field: &str| match map.get(field) {
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(value) => !value.is_null(),
        None => false,
    };
    if is_set("instance") || is_set("quality") {
        return None;
    }
    let mut map = map.clone();
    map.insert("instance".to_owned(), json!(instance));
    Some(ToolArguments::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_is_matched_by_quality_name() {
        let names = ["Any", "SD", "HD-720p", "HD-1080p", "Ultra-HD", "HD - 720p/1080p"];
        let profiles: Vec<QualityProfile> = (1..)
            .zip(names)
            .map(|(id, name)| QualityProfile { id, name: name.to_owned(), four_k: false })
            .collect();
        let chosen = |quality| match_profile(&profiles, quality).map(|profile| profile.name.as_str());
        for (quality, profile) in [
            ("4K", Some("Ultra-HD")),
            ("UHD", Some("Ultra-HD")),
            ("ultra hd", Some("Ultra-HD")),
            ("1080p", Some("HD-1080p")),
            ("any", Some("Any")),
            ("HD", None),
            ("8K", None),
            ("no 4K", None),
            ("anything but 4K", None),
            ("up to 4K", None),
        ] {
            assert_eq!(chosen(quality), profile, "{quality}");
        }
        assert_eq!(match_profile(&profiles[..1], "4K"), None);
    }
}
