//! A typical change touches few files: those that know a kind of values, a setting, an operation, a column, the backoff.
use super::{find_sources, read_sources, root};
use penstock_model::mapping::KINDS;

/// Returns the source files that name a field, a function or a type.
fn find_named(sources: &[(String, String)], name: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    find_sources(sources, |text| text.split(|c| !is_word(c)).any(|word| word == name))
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
    let found = find_sources(&read_sources(), |text| {
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
    let sources = read_sources();
    for (field, user) in [
        ("connections_per_address", "src/cli/app/connections.rs"),
        ("heartbeat_interval", "src/export/heartbeat.rs"),
        ("hsts_max_age", "src/http/service.rs"),
    ] {
        let mut files = vec!["src/config/table.rs", user];
        files.sort_unstable();
        assert_eq!(find_named(&sources, field), files, "read the field of {field}");
    }
}

/// An operation of the REST API is described above its handler: path, role, parameters and answers.
#[test]
fn an_operation_is_described_in_one_file() {
    let sources = read_sources();
    let described = sources.iter().flat_map(|(_, text)| text.split(".describe(").skip(1));
    let mut ids: Vec<String> = described
        .filter_map(|after| {
            Some(after.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned())
        })
        .collect();
    // The other ids are words, such as "live", that have other uses.
    ids.retain(|id| id.contains(char::is_uppercase));
    assert!(ids.len() > 80, "{ids:?}");
    for id in ids {
        let quoted = format!("\"{id}\"");
        let files = find_sources(&sources, |text| text.contains(&quoted));
        assert_eq!(files.len(), 1, "name the operation {id} only where it is described: {files:?}");
    }
}

/// A column of a page is a part of its template, which reads the types of the REST API.
#[test]
fn a_column_is_known_to_its_template() {
    let templates = root().join("src/web/templates/admin");
    let reads_member = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let text = path.is_file().then(|| std::fs::read_to_string(&path).unwrap())?;
        text.contains("key.last_used")
            .then(|| path.file_name().unwrap().to_str().unwrap().to_owned())
    };
    let mut pages: Vec<String> =
        std::fs::read_dir(templates).unwrap().filter_map(reads_member).collect();
    pages.sort();
    assert_eq!(pages, ["key_revoke.html", "keys.html"]);
    let mut code = find_named(&read_sources(), "last_used");
    code.retain(|file| file.starts_with("src/web/"));
    assert_eq!(code, [""; 0], "let the template read the member");
}

/// The delays of all retries are computed by one function.
#[test]
fn exponential_backoff_is_in_one_file() {
    let doublings = ["1 <<", "<<= 1", "mul(2)", "*= 2", "pow("];
    let delays = ["delay", "DELAY", "Duration", "sleep", "backoff", "doublings"];
    let has_any = |line: &str, of: &[&str]| of.iter().any(|part| line.contains(part));
    let doubles =
        |text: &str| text.lines().any(|line| has_any(line, &doublings) && has_any(line, &delays));
    let found = find_sources(&read_sources(), doubles);
    assert_eq!(found, ["src/base/backoff.rs"], "call `exponential_delay`");
}
