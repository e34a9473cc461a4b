//! Resolves the spellings of a setting's name.
//!
//! A name is a path of parts separated by dots. A part that contains dots is in brackets. Case, `-` and `_` are
//! ignored (`tenantId`, `tenant-id`), except in the parts that replace a `<...>` of the table.
use super::name_parts::{INDEX, fill_name, is_placeholder, split_parts};
use super::setting::Setting;
use super::table::SETTINGS;

/// A name that matches a setting of the table.
#[derive(Clone)]
pub(super) struct KnownName {
    pub(super) setting: &'static Setting,
    /// What replaces each `<...>` of the table.
    pub(super) given: Vec<String>,
    /// The position in a list, from a name such as `server.cors.allowed-origins[1]`.
    pub(super) index: Option<usize>,
}

impl KnownName {
    /// Returns the name in the spelling of the documentation.
    pub(super) fn canonical_name(&self) -> String {
        fill_name(&self.setting.name, &self.given)
    }
}

/// The placeholders of a source and of a webhook, whose names have no dot.
const SOURCE: &str = "<source>";
const WEBHOOK: &str = "<webhook>";

/// Returns the name without case and punctuation.
fn normalize_name(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | '_' | '.')).map(|c| c.to_ascii_lowercase()).collect()
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
pub(super) fn resolve_name(name: &str) -> Option<KnownName> {
    let parts = replace_aliases(split_parts(name));
    if let Some(known) = find_matching(&parts, None) {
        return Some(known);
    }
    let (last, front) = parts.split_last()?;
    let index = last.parse().ok().filter(|_| name.ends_with(']'))?;
    find_matching(front, Some(index))
}

fn find_matching(parts: &[&str], index: Option<usize>) -> Option<KnownName> {
    SETTINGS.iter().find_map(|setting| {
        let mut given = Vec::new();
        match_parts(&split_parts(&setting.name), parts, ".", &mut given).then_some(KnownName {
            setting,
            given,
            index,
        })
    })
}

/// Returns whether the parts of a name match those of the table. Adds what replaces each `<...>` to `found`. The parts of
/// an unbracketed name with dots are joined, and so are the words of a variable, with the separator `_`.
fn match_parts<T: AsRef<str>>(
    expected: &[T],
    parts: &[&str],
    separator: &str,
    found: &mut Vec<String>,
) -> bool {
    let Some((first, later)) = expected.split_first() else { return parts.is_empty() };
    let first = first.as_ref();
    let is_one_part = match first {
        INDEX => true,
        SOURCE | WEBHOOK => separator == ".",
        _ => separator == "." && !is_placeholder(first),
    };
    let max_parts = if is_one_part { 1.min(parts.len()) } else { parts.len() };
    for count in 1..=max_parts {
        let (taken, rest) = parts.split_at(count);
        let text = taken.join(separator);
        let given = found.len();
        if is_placeholder(first) {
            let is_blank = separator == "_" && taken.iter().all(|word| word.is_empty());
            let Some(id) = read_placeholder(first, &text).filter(|_| !is_blank) else { continue };
            found.push(id);
        } else if normalize_name(&text) != normalize_name(first) {
            continue;
        }
        if match_parts(later, rest, separator, found) {
            return true;
        }
        found.truncate(given);
    }
    false
}

/// Returns what replaces a placeholder, or `None` if this text cannot.
fn read_placeholder(placeholder: &str, text: &str) -> Option<String> {
    match placeholder {
        INDEX => text.parse::<u16>().ok().map(|index| index.to_string()),
        _ => (!text.is_empty()).then(|| text.to_owned()),
    }
}

/// Finds the setting for an environment variable. Its `<...>` part keeps the spelling of the variable;
/// [`id_of_variable`] finds the actual one.
pub(super) fn resolve_variable(variable: &str) -> Option<KnownName> {
    if !variable.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let words: Vec<&str> = variable.split('_').collect();
    let words = replace_aliases(words);
    let whole = normalize_name(&words.concat());
    if let Some(setting) =
        SETTINGS.iter().find(|s| !s.name.contains('<') && normalize_name(&s.name) == whole)
    {
        return Some(KnownName { setting, given: Vec::new(), index: None });
    }
    SETTINGS
        .iter()
        .filter_map(|setting| {
            let mut given = Vec::new();
            match_parts(&list_segments(&setting.name), &words, "_", &mut given)
                .then_some(KnownName { setting, given, index: None })
        })
        // The longest ending wins: `..._SECRET_ACCESS_KEY` before an id that ends in `_SECRET`.
        .min_by_key(|known| known.given.first().map_or(0, String::len))
}

/// Returns the parts of a setting's name, with neighbouring parts between placeholders joined.
fn list_segments(name: &str) -> Vec<String> {
    let mut segments: Vec<String> = Vec::new();
    for part in split_parts(name) {
        match segments.last_mut() {
            Some(last) if !is_placeholder(part) && !is_placeholder(last) => {
                last.push_str(&normalize_name(part));
            }
            _ if is_placeholder(part) => segments.push(part.to_owned()),
            _ => segments.push(normalize_name(part)),
        }
    }
    segments
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
    let known = SETTINGS.iter().map(|setting| {
        let given = |(at, part): (usize, &str)| {
            is_placeholder(part).then(|| parts.get(at).copied().unwrap_or("name").to_owned())
        };
        let given: Vec<_> =
            split_parts(&setting.name).into_iter().enumerate().filter_map(given).collect();
        fill_name(&setting.name, &given)
    });
    penstock_base::nearest::find_nearest(&parts.join("."), known)
}

/// Returns the environment variable of the known name nearest to an unknown one, if any is near.
pub(super) fn find_nearest_variable(variable: &str) -> Option<String> {
    let spelled = |name: &str| {
        name.replace(['.', '['], "_").replace(['-', '<', '>', ']'], "").to_ascii_uppercase()
    };
    penstock_base::nearest::find_nearest(
        variable,
        SETTINGS.iter().map(|setting| spelled(&setting.name)),
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
        for name in [
            "service.sources.plant.subscriptions[0].topic",
            "service.sources.plant.subscriptions[3].fields.siteCode",
            "service.sources.plant.subscriptions[3].fields[position.unit]",
        ] {
            assert_eq!(resolved_name(name).as_deref(), Some(name));
        }
        for unknown in ["service.sources.a.b.url", "service.sources.a.subscriptions[x].topic"] {
            assert_eq!(resolved_name(unknown), None, "{unknown}");
        }
        let item = resolve_name("server.cors.allowed-origins[1]").unwrap();
        assert_eq!(
            (item.canonical_name().as_str(), item.index),
            ("server.cors.allowed-origins", Some(1))
        );
    }

    #[test]
    fn environment_variables_have_relaxed_names() {
        let variable = |text: &str| {
            let known = resolve_variable(text)?;
            Some((known.setting.name.as_str(), known.given.into_iter().next()))
        };
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
        for (spelling, name) in [
            ("SERVICE_SOURCES_PLANT_2_CLIENT_ID", "service.sources.PLANT_2.client-id"),
            (
                "SERVICE_SOURCES_PLANT_SUBSCRIPTIONS_0_BUSINESS_OBJECT",
                "service.sources.PLANT.subscriptions[0].business-object",
            ),
            (
                "SERVICE_SOURCES_A_SUBSCRIPTIONS_12_FIELDS_CLIENT_ID",
                "service.sources.A.subscriptions[12].fields.CLIENT_ID",
            ),
        ] {
            let known = resolve_variable(spelling).map(|known| known.canonical_name());
            assert_eq!(known.as_deref(), Some(name), "{spelling}");
        }
        assert_eq!(variable("PATH"), None);
        let known = ["plant.exports", "other"];
        assert_eq!(id_of_variable("PLANT_EXPORTS", known.into_iter()), Ok("plant.exports".into()));
        assert_eq!(id_of_variable("PLANT_2", known.into_iter()), Ok("plant-2".into()));
        assert!(id_of_variable("A_B", ["a-b", "a.b"].into_iter()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn known_names_resolve_to_themselves(id in "[a-z0-9.-]{1,12}", text in "[a-z.\\[\\]_<>-]{0,40}") {
            for setting in SETTINGS.iter() {
                let placeholders = setting.name.matches('<').count();
                let found = ["a", "3", &id].map(str::to_owned);
                let found = if placeholders == 1 { vec![id.clone()] } else { found.into_iter().take(placeholders).collect() };
                let known = resolve_name(&fill_name(&setting.name, &found)).unwrap();
                proptest::prop_assert_eq!(&known.setting.name, &setting.name);
                proptest::prop_assert_eq!(known.given, found);
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
