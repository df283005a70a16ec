//! Default preferences of a user where a call leaves a choice open: the profile and the instance of an addition.

use serde_json::{Value, json};

use super::World;
use super::answers::plain;
use super::approval::may_choose;
use super::library::{Instance, profile_named};
use crate::arr::Profile;
use crate::conversation::facts::{is_four_k, is_refusal};
use crate::conversation::transcript::{Arguments, MediaKind, Rights};

/// Profile that the user prefers, if they may have it and the preference matches a single profile.
pub fn profile_wished<'a>(profiles: &'a [Profile], kind: MediaKind, world: &World) -> Option<&'a Profile> {
    let profile = profile_for(profiles, world.facts.quality(kind)?)?;
    may_choose(profile, world.rights).is_ok().then_some(profile)
}

/// Profile that matches a quality. Returns `None` if the match is ambiguous.
fn profile_for<'a>(profiles: &'a [Profile], quality: &str) -> Option<&'a Profile> {
    if is_refusal(quality) {
        return None;
    }
    if let Ok(profile) = profile_named(profiles, quality) {
        return Some(profile);
    }
    if is_four_k(quality) {
        return profiles.iter().find(|profile| is_four_k(&profile.name));
    }
    // Prefers HD-1080p over HD-720p/1080p: the matching name with the fewest other words.
    let wanted = plain(quality);
    let fits = |profile: &&Profile| {
        let name = plain(&profile.name);
        wanted.split(' ').all(|word| name.split(' ').any(|other| other == word))
    };
    let length = |profile: &Profile| plain(&profile.name).split(' ').count();
    let best = profiles.iter().filter(fits).min_by_key(|profile| length(profile))?;
    let alike = profiles.iter().filter(fits).filter(|profile| length(profile) == length(best));
    (alike.count() == 1).then_some(best)
}

/// Arguments of an addition with the instance for a quality: the 4K instance if the user wants 4K and may have it, the
/// other instance for any other preference. Returns `None` if the call names an instance or a quality, or if there is
/// no choice.
pub fn in_its_place<Client>(
    arguments: &Arguments,
    quality: &str,
    rights: Rights,
    instances: &[Instance<Client>],
) -> Option<Arguments> {
    let Arguments::Object(map) = arguments else { return None };
    let names = |field: &str| match map.get(field) {
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(value) => !value.is_null(),
        None => false,
    };
    let four_k = is_four_k(quality) && !is_refusal(quality) && rights.may_four_k();
    if names("instance") || names("quality") || instances.len() < 2 {
        return None;
    }
    let instance = instances.iter().find(|instance| instance.four_k == four_k)?;
    let mut map = map.clone();
    map.insert("instance".to_owned(), json!(instance.name));
    Some(Arguments::Object(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_for_a_quality_is_the_one_that_says_so_and_little_more() {
        let names = ["Any", "SD", "HD-720p", "HD-1080p", "Ultra-HD", "HD - 720p/1080p"];
        let profiles: Vec<Profile> =
            (1..).zip(names).map(|(id, name)| Profile { id, name: name.to_owned(), four_k: false }).collect();
        let chosen = |quality| profile_for(&profiles, quality).map(|profile| profile.name.as_str());
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
        assert_eq!(profile_for(&profiles[..1], "4K"), None);
    }
}
