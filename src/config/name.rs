//! Resolves the spellings of a setting's name.
//!
//! A name is a path of parts separated by dots. A part that contains dots is in brackets. Case, `-` and `_` are
//! ignored (`tenantId`, `tenant-id`), except in the part that replaces a `<...>` of the table.
use super::table::{Setting, TABLE};

/// A name that matches a setting of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<T> {
    pub(super) setting: &'static Setting,
    /// The part that replaces the `<...>` of the table.
    pub(super) id: Option<T>,
    /// The position in a list, from a name such as `server.cors.allowed-origins[1]`.
    pub(super) index: Option<usize>,
}

impl Known<String> {
    /// Returns the name in the spelling of the documentation.
    pub(super) fn name(&self) -> String {
        match (&self.id, placeholder(self.setting.name)) {
            (Some(id), Some((before, after))) => concrete(before, id, after),
            _ => self.setting.name.to_owned(),
        }
    }
}

/// Replaces the placeholder by `id`. `before` ends with a dot, and `after` begins with one.
fn concrete(before: &str, id: &str, after: &str) -> String {
    if id.contains('.') {
        format!("{}[{id}]{after}", before.trim_end_matches('.'))
    } else {
        format!("{before}{id}{after}")
    }
}

/// Splits a name at its `<...>` and returns the parts before and after it.
pub(super) fn placeholder(name: &str) -> Option<(&str, &str)> {
    let (before, rest) = name.split_once('<')?;
    let (_, after) = rest.split_once('>')?;
    Some((before, after))
}

/// Returns the name without case and punctuation.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | '_' | '.')).map(|c| c.to_ascii_lowercase()).collect()
}

/// Splits a name into its parts. Text in brackets is one part.
fn parts(name: &str) -> Vec<&str> {
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
fn canonical(mut parts: Vec<&str>) -> Vec<&str> {
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
pub(super) fn resolve(name: &str) -> Option<Known<String>> {
    let parts = canonical(parts(name));
    if let Some(known) = matching(&parts, None) {
        return Some(known);
    }
    let (last, front) = parts.split_last()?;
    let index = last.parse().ok().filter(|_| name.ends_with(']'))?;
    matching(front, Some(index))
}

fn matching(parts: &[&str], index: Option<usize>) -> Option<Known<String>> {
    TABLE.iter().find_map(|setting| {
        let id = match placeholder(setting.name) {
            None => {
                let same = setting.name.split('.').map(plain).eq(parts.iter().map(|p| plain(p)));
                return same.then_some(Known { setting, id: None, index });
            }
            Some((before, after)) => between(parts, before, after)?,
        };
        Some(Known { setting, id: Some(id), index })
    })
}

/// Returns the parts that replace the `<...>`. The parts of an unbracketed name with dots are joined.
fn between(parts: &[&str], before: &str, after: &str) -> Option<String> {
    let before: Vec<_> = before.split_terminator('.').map(plain).collect();
    let after: Vec<_> = after.split('.').skip(1).map(plain).collect();
    let middle = parts.get(before.len()..parts.len().checked_sub(after.len())?)?;
    let same = |expected: &[String], found: &[&str]| {
        expected.iter().eq(found.iter().map(|p| plain(p)).collect::<Vec<_>>().iter())
    };
    let (front, back) = (parts.get(..before.len())?, parts.get(parts.len() - after.len()..)?);
    (!middle.is_empty() && same(&before, front) && same(&after, back)).then(|| middle.join("."))
}

/// Finds the setting for an environment variable. Its `<...>` part keeps the spelling of the variable;
/// [`id_of_variable`] finds the actual one.
pub(super) fn resolve_variable(variable: &str) -> Option<Known<String>> {
    if !variable.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let words: Vec<&str> = variable.split('_').collect();
    let words = canonical(words);
    let whole = plain(&words.concat());
    if let Some(setting) =
        TABLE.iter().find(|s| placeholder(s.name).is_none() && plain(s.name) == whole)
    {
        return Some(Known { setting, id: None, index: None });
    }
    TABLE
        .iter()
        .filter_map(|setting| {
            let (before, after) = placeholder(setting.name)?;
            let start = boundary(&words, &plain(before), false)?;
            let end = words.len().checked_sub(boundary(&words, &plain(after), true)?)?;
            let middle = words.get(start..end).filter(|m| m.iter().any(|w| !w.is_empty()))?;
            Some(Known { setting, id: Some(middle.join("_")), index: None })
        })
        // The longest ending wins: `..._SECRET_ACCESS_KEY` before an id that ends in `_SECRET`.
        .min_by_key(|known| known.id.as_ref().map_or(0, String::len))
}

/// Returns how many words, from the front or the back, form `expected`.
fn boundary(words: &[&str], expected: &str, from_back: bool) -> Option<usize> {
    (1..words.len()).find(|count| {
        let taken = if from_back { words.get(words.len() - count..) } else { words.get(..*count) };
        taken.is_some_and(|taken| plain(&taken.concat()) == expected)
    })
}

/// Finds the `<...>` that an environment variable means. A variable cannot contain `-` or `.`, so the match is one
/// of the names in other sources. If none matches, the result is lower case with `-` for `_`.
///
/// # Errors
/// Returns all matches if there are several.
pub(super) fn id_of_variable<'a>(
    spelled: &str,
    others: impl Iterator<Item = &'a str>,
) -> Result<String, Vec<String>> {
    let mut meant: Vec<String> =
        others.filter(|id| plain(id) == plain(spelled)).map(str::to_owned).collect();
    meant.sort();
    meant.dedup();
    match meant.as_slice() {
        [] => Ok(spelled.to_ascii_lowercase().replace('_', "-")),
        [one] => Ok(one.clone()),
        _ => Err(meant),
    }
}

/// Returns the known name nearest to an unknown one, if any is near.
pub(super) fn nearest(name: &str) -> Option<String> {
    let parts = canonical(parts(name));
    let known = TABLE.iter().map(|setting| match placeholder(setting.name) {
        Some((before, after)) => {
            let at = before.matches('.').count();
            concrete(before, parts.get(at).copied().unwrap_or("name"), after)
        }
        None => setting.name.to_owned(),
    });
    penstock_base::nearest::nearest(&parts.join("."), known)
}

/// Returns the environment variable of the known name nearest to an unknown one, if any is near.
pub(super) fn nearest_variable(variable: &str) -> Option<String> {
    let spelled =
        |name: &str| name.replace('.', "_").replace(['-', '<', '>'], "").to_ascii_uppercase();
    penstock_base::nearest::nearest(variable, TABLE.iter().map(|setting| spelled(setting.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved_name(text: &str) -> Option<String> {
        resolve(text).map(|known| known.name())
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
        let item = resolve("server.cors.allowed-origins[1]").unwrap();
        assert_eq!((item.name().as_str(), item.index), ("server.cors.allowed-origins", Some(1)));
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
            for setting in TABLE {
                let Some((before, after)) = placeholder(setting.name) else { continue };
                let known = resolve(&concrete(before, &id, after)).unwrap();
                proptest::prop_assert_eq!((known.setting.name, known.id), (setting.name, Some(id.clone())));
            }
            let (_, _) = (resolve(&text), nearest(&text));
            let (_, _) = (resolve_variable(&text), nearest_variable(&text));
        }
    }

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(nearest("service.data-dri").as_deref(), Some("service.data-dir"));
        assert_eq!(
            nearest("service.export.targets.plant.endpont").as_deref(),
            Some("service.export.targets.plant.endpoint")
        );
        assert_eq!(nearest("completely.different.thing"), None);
        assert_eq!(nearest_variable("SERVICE_DATADRI").as_deref(), Some("SERVICE_DATADIR"));
    }
}
