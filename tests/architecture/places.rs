//! Where a usual change is made: the files that know a kind of values, a setting, an endpoint, a column, the retry rule.
use super::find_sources;
use penstock_model::mapping::KINDS;

/// Returns the source files that name a field, a function or a type.
fn find_named(name: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    find_sources(|text| text.split(|c| !is_word(c)).any(|word| word == name))
}

/// What the gateway knows of a kind of values is in its table, so that a new kind needs no change elsewhere.
#[test]
fn only_the_table_knows_the_kinds_of_values() {
    let literals = KINDS.iter().filter_map(|value| {
        let shown = format!("{value:?}");
        let name = shown.strip_prefix("Literal(")?.split(['(', ')']).next()?;
        Some(name.to_owned())
    });
    let mut names: Vec<String> = literals.chain(["Typed".into(), "Language".into()]).collect();
    assert_eq!(names.len(), 11, "{names:?}");
    names = names
        .iter()
        .flat_map(|name| ["Literal", "Kind"].map(|of| format!("{of}::{name}")))
        .collect();
    // A name in a mapping that is no other word.
    names.push("\"dateTime\"".to_owned());
    let found = find_sources(|text| {
        names.iter().any(|name| {
            let mut places = text.match_indices(name.as_str());
            places.any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
        })
    });
    let known = [
        "src/model/derive/value.rs",
        "src/model/mapping/kind/table.rs",
        "src/model/mapping/value.rs",
    ];
    assert_eq!(found, known, "say in `Kind` what these files know of a kind");
}

/// A setting is declared in the table, and read as a field by what uses it. Its page in the documentation is generated.
#[test]
fn a_setting_is_known_to_the_table_and_its_user() {
    for (field, user) in [
        ("connections_per_address", "src/cli/app/connections.rs"),
        ("heartbeat_interval", "src/export/heartbeat.rs"),
        ("hsts_max_age", "src/http/service.rs"),
    ] {
        let mut files = vec!["src/config/table.rs", user];
        files.sort_unstable();
        assert_eq!(find_named(field), files);
    }
}

/// An endpoint is one entry of its file: path, role, parameters, answers, and its handler below.
#[test]
fn an_endpoint_is_known_to_one_file() {
    let mut texts = Vec::new();
    find_sources(|text| {
        texts.push(text.to_owned());
        false
    });
    let described = texts.iter().flat_map(|text| text.split(".describe(").skip(1));
    let mut ids: Vec<String> = described
        .filter_map(|after| {
            Some(after.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned())
        })
        .collect();
    assert!(ids.len() > 80, "{ids:?}");
    // The other ids are words, such as "live", that have other uses.
    ids.retain(|id| id.contains(char::is_uppercase));
    for id in ids {
        let quoted = format!("\"{id}\"");
        assert_eq!(texts.iter().filter(|text| text.contains(&quoted)).count(), 1, "{id}");
    }
}

/// A column is a part of its template, which reads the types of the REST API.
#[test]
fn a_column_is_known_to_its_template() {
    let template = super::root().join("src/web/templates/admin/keys.html");
    let template = std::fs::read_to_string(template).unwrap();
    assert!(template.contains("data-label=\"Last used (UTC)\""));
    assert!(template.contains("row.key.last_used"));
    assert_eq!(find_sources(|text| text.contains("Last used (UTC)")), [""; 0]);
    let pages = find_named("last_used").into_iter().filter(|file| file.starts_with("src/web/"));
    assert_eq!(pages.collect::<Vec<_>>(), [""; 0]);
}

/// Delays that double are computed in one place.
#[test]
fn the_retry_rule_is_known_to_one_file() {
    let doubles = |text: &str| {
        ["saturating_mul(1 <<", "from_secs(1 <<", "from_millis(1 <<"]
            .iter()
            .any(|doubling| text.contains(doubling))
    };
    assert_eq!(find_sources(doubles), ["src/base/backoff.rs"]);
}
