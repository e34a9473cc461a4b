//! Resolves the spellings of a setting's name.
//!
//! A name is a path of parts separated by dots. A part that contains dots is in brackets. Case, `-` and `_` are
//! ignored (`tenantId`, `tenant-id`), except in the part that replaces a `<...>` of the table.
use super::table::{SETTINGS, Setting};

/// A name that matches a setting of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownName<T> {
    pub(super) setting: &'static Setting,
    /// The part that replaces the `<...>` of the table.
    pub(super) id: Option<T>,
    /// The position in a list, from a name such as `server.cors.allowed-origins[1]`.
    pub(super) index: Option<usize>,
}

impl KnownName<String> {
    /// Returns the name in the spelling of the documentation.
    pub(super) fn canonical_name(&self) -> String {
        match (&self.id, split_placeholder(self.setting.name)) {
            (Some(id), Some((before, after))) => fill_placeholder(before, id, after),
            _ => self.setting.name.to_owned(),
        }
    }
}

/// Replaces the placeholder by `id`. `before` ends with a dot, and `after` begins with one.
fn fill_placeholder(before: &str, id: &str, after: &str) -> String {
    if id.contains('.') {
        format!("{}[{id}]{after}", before.trim_end_matches('.'))
    } else {
        format!("{before}{id}{after}")
    }
}

/// Splits a name at its `<...>` and returns the parts before and after it.
pub(super) fn split_placeholder(name: &str) -> Option<(&str, &str)> {
    let (before, rest) = name.split_once('<')?;
    let (_, after) = rest.split_once('>')?;
    Some((before, after))
}

/// Returns the name without case and punctuation.
fn normalize_name(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | '_' | '.')).map(|c| c.to_ascii_lowercase()).collect()
}

/// Splits a name into its parts. Text in brackets is one part.
fn split_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        if let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            parts.push(inside);
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).filter(|end| *end > 0).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(part);
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    parts
}

/// Replaces aliases: `spring.` by `framework.`, `framework.profiles.active` by `profiles.active`, and
/// `security.mode` by `security`. The last one exists because a YAML key has either a value or keys below it, and
/// `security.role` is below `security`.
fn replace_aliases(mut parts: Vec<&str>) -> Vec<&str> {
    if let Some(first) = parts.first_mut()
        && first.eq_ignore_ascii_case("spring")
    {
        *first = "framework";
    }
    if let [first, second, _] = parts.as_slice()
        && first.eq_ignore_ascii_case("framework")
        && second.eq_ignore_ascii_case("profiles")
    {
        parts.remove(0);
    }
    if let [first, second] = parts.as_slice()
        && first.eq_ignore_ascii_case("security")
        && second.eq_ignore_ascii_case("mode")
    {
        parts.pop();
    }
    parts
}

/// Finds the setting for a name in a file, a credential or an argument.
pub(super) fn resolve_name(name: &str) -> Option<KnownName<String>> {
    let parts = replace_aliases(split_parts(name));
    if let Some(known) = find_matching(&parts, None) {
        return Some(known);
    }
    let (last, front) = parts.split_last()?;
    let index = last.parse().ok().filter(|_| name.ends_with(']'))?;
    find_matching(front, Some(index))
}

fn find_matching(parts: &[&str], index: Option<usize>) -> Option<KnownName<String>> {
    SETTINGS.iter().find_map(|setting| {
        let id = match split_placeholder(setting.name) {
            None => {
                let same = setting
                    .name
                    .split('.')
                    .map(normalize_name)
                    .eq(parts.iter().map(|p| normalize_name(p)));
                return same.then_some(KnownName { setting, id: None, index });
            }
            Some((before, after)) => match_placeholder(parts, before, after)?,
        };
        Some(KnownName { setting, id: Some(id), index })
    })
}

/// Returns the parts that replace the `<...>`. The parts of an unbracketed name with dots are joined.
fn match_placeholder(parts: &[&str], before: &str, after: &str) -> Option<String> {
    let before: Vec<_> = before.split_terminator('.').map(normalize_name).collect();
    let after: Vec<_> = after.split('.').skip(1).map(normalize_name).collect();
    let middle = parts.get(before.len()..parts.len().checked_sub(after.len())?)?;
    let same = |expected: &[String], found: &[&str]| {
        expected.iter().eq(found.iter().map(|p| normalize_name(p)).collect::<Vec<_>>().iter())
    };
    let (front, back) = (parts.get(..before.len())?, parts.get(parts.len() - after.len()..)?);
    (!middle.is_empty() && same(&before, front) && same(&after, back)).then(|| middle.join("."))
}

/// Finds the setting for an environment variable. Its `<...>` part keeps the spelling of the variable;
/// [`id_of_variable`] finds the actual one.
pub(super) fn resolve_variable(variable: &str) -> Option<KnownName<String>> {
    if !variable.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let words: Vec<&str> = variable.split('_').collect();
    let words = replace_aliases(words);
    let whole = normalize_name(&words.concat());
    if let Some(setting) = SETTINGS
        .iter()
        .find(|s| split_placeholder(s.name).is_none() && normalize_name(s.name) == whole)
    {
        return Some(KnownName { setting, id: None, index: None });
    }
    SETTINGS
        .iter()
        .filter_map(|setting| {
            let (before, after) = split_placeholder(setting.name)?;
            let start = count_words(&words, &normalize_name(before), false)?;
            let end =
                words.len().checked_sub(count_words(&words, &normalize_name(after), true)?)?;
            let middle = words.get(start..end).filter(|m| m.iter().any(|w| !w.is_empty()))?;
            Some(KnownName { setting, id: Some(middle.join("_")), index: None })
        })
        // The longest ending wins: `..._SECRET_ACCESS_KEY` before an id that ends in `_SECRET`.
        .min_by_key(|known| known.id.as_ref().map_or(0, String::len))
}

/// Returns how many words, from the front or the back, form `expected`.
fn count_words(words: &[&str], expected: &str, from_back: bool) -> Option<usize> {
    (1..words.len()).find(|count| {
        let taken = if from_back { words.get(words.len() - count..) } else { words.get(..*count) };
        taken.is_some_and(|taken| normalize_name(&taken.concat()) == expected)
    })
}

/// Finds the name that an environment variable has in place of the `<...>`. A variable cannot contain `-` or `.`, so
/// this looks for a matching name in the other sources. If none matches, returns the lower-case form with `-` for `_`.
///
/// # Errors
/// Returns all matches if there are several.
pub(super) fn id_of_variable<'a>(
    spelled: &str,
    others: impl Iterator<Item = &'a str>,
) -> Result<String, Vec<String>> {
    let mut meant: Vec<String> = others
        .filter(|id| normalize_name(id) == normalize_name(spelled))
        .map(str::to_owned)
        .collect();
    meant.sort();
    meant.dedup();
    match meant.as_slice() {
        [] => Ok(spelled.to_ascii_lowercase().replace('_', "-")),
        [one] => Ok(one.clone()),
        _ => Err(meant),
    }
}

/// Returns the known name nearest to an unknown one, if any is near.
pub(super) fn find_nearest(name: &str) -> Option<String> {
    let parts = replace_aliases(split_parts(name));
    let known = SETTINGS.iter().map(|setting| match split_placeholder(setting.name) {
        Some((before, after)) => {
            let at = before.matches('.').count();
            fill_placeholder(before, parts.get(at).copied().unwrap_or("name"), after)
        }
        None => setting.name.to_owned(),
    });
    penstock_base::nearest::find_nearest(&parts.join("."), known)
}

/// Returns the environment variable of the known name nearest to an unknown one, if any is near.
pub(super) fn find_nearest_variable(variable: &str) -> Option<String> {
    let spelled =
        |name: &str| name.replace('.', "_").replace(['-', '<', '>'], "").to_ascii_uppercase();
    penstock_base::nearest::find_nearest(
        variable,
        SETTINGS.iter().map(|setting| spelled(setting.name)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved_name(text: &str) -> Option<String> {
        resolve_name(text).map(|known| known.canonical_name())
    }

    #[test]
    fn spellings_resolve_to_one_name() {
        for spelling in [
            "service.security.tenant-id",
            "service.security.tenantId",
            "SERVICE.security.tenant_id",
        ] {
            assert_eq!(
                resolved_name(spelling).as_deref(),
                Some("service.security.tenant-id"),
                "{spelling}"
            );
        }
        assert_eq!(
            resolved_name("service.security.default-service-account-role").as_deref(),
            Some("service.security.defaultServiceAccountRole")
        );
        assert_eq!(resolved_name("spring.profiles.active").as_deref(), Some("profiles.active"));
        assert_eq!(
            resolved_name("spring.security.oauth2.client.registration.azure.clientId").as_deref(),
            Some("framework.security.oauth2.client.registration.azure.client-id")
        );
        assert_eq!(resolved_name("security.mode").as_deref(), Some("security"));
        assert_eq!(resolved_name("service.security"), None);
        assert_eq!(resolved_name("service.export.targets..type"), None);
        assert_eq!(resolved_name(""), None);
        assert_eq!(resolved_name("["), None);
    }

    #[test]
    fn parts_with_dots_are_in_brackets() {
        let bracketed = "service.export.targets[my.bucket].type";
        for spelling in [
            bracketed,
            "service.export.targets.[my.bucket].type",
            "service.export.targets.my.bucket.type",
        ] {
            assert_eq!(resolved_name(spelling).as_deref(), Some(bracketed), "{spelling}");
        }
        let item = resolve_name("server.cors.allowed-origins[1]").unwrap();
        assert_eq!(
            (item.canonical_name().as_str(), item.index),
            ("server.cors.allowed-origins", Some(1))
        );
    }

    #[test]
    fn environment_variables_have_relaxed_names() {
        let variable = |text: &str| resolve_variable(text).map(|k| (k.setting.name, k.id));
        for spelling in
            ["SERVICE_SECURITY_TENANTID", "SERVICE_SECURITY_TENANT_ID", "service_security_tenantid"]
        {
            assert_eq!(
                variable(spelling),
                Some(("service.security.tenant-id", None)),
                "{spelling}"
            );
        }
        assert_eq!(variable("SPRING_PROFILES_ACTIVE"), Some(("profiles.active", None)));
        assert_eq!(
            variable("SERVICE_EXPORT_TARGETS_PLANT_EXPORTS_SECRET_ACCESS_KEY"),
            Some((
                "service.export.targets.<bucketName>.secret-access-key",
                Some("PLANT_EXPORTS".into())
            ))
        );
        assert_eq!(variable("SERVICE_EXPORT_TARGETS_TYPE"), None);
        assert_eq!(variable("PATH"), None);
        let known = ["plant.exports", "other"];
        assert_eq!(id_of_variable("PLANT_EXPORTS", known.into_iter()), Ok("plant.exports".into()));
        assert_eq!(id_of_variable("PLANT_2", known.into_iter()), Ok("plant-2".into()));
        assert!(id_of_variable("A_B", ["a-b", "a.b"].into_iter()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn known_names_resolve_to_themselves(id in "[a-z0-9.-]{1,12}", text in "[a-z.\\[\\]_<>-]{0,40}") {
            for setting in SETTINGS {
                let Some((before, after)) = split_placeholder(setting.name) else { continue };
                let known = resolve_name(&fill_placeholder(before, &id, after)).unwrap();
                proptest::prop_assert_eq!((known.setting.name, known.id), (setting.name, Some(id.clone())));
            }
            let (_, _) = (resolve_name(&text), find_nearest(&text));
            let (_, _) = (resolve_variable(&text), find_nearest_variable(&text));
        }
    }

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(find_nearest("service.data-dri").as_deref(), Some("service.data-dir"));
        assert_eq!(
            find_nearest("service.export.targets.plant.endpont").as_deref(),
            Some("service.export.targets.plant.endpoint")
        );
        assert_eq!(find_nearest("completely.different.thing"), None);
        assert_eq!(find_nearest_variable("SERVICE_DATADRI").as_deref(), Some("SERVICE_DATADIR"));
    }
}
