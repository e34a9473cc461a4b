//! The settings' documentation, made from the table; its test keeps the page true.
use super::kind::Kind;
use super::table::TABLE;
use std::fmt::Write;

const HEAD: &str = "# Configuration

This page is made from the table of settings in `src/config/table.rs`; `UPDATE=1 cargo test --lib
config::document` makes it anew.

Every setting has one dotted name. It is looked for in these places, and the later one wins:

1. the default;
2. `application.yaml`, `application.yml`, `application.properties` in the working directory, then in
   `/etc/penstock`;
3. `application-<profile>.yaml`, `.yml`, `.properties` in the same two directories, for each profile of
   `profiles.active` in turn;
4. environment variables: the name in capitals, `_` for each dot, `-` left out or written as `_`
   (`SERVICE_DATADIR`, `SERVICE_DATA_DIR`). A bucketName is matched without regard to case, `-` and `.`
   among those that the other places name; if there is none, it is the lower case with `-` for `_`. So
   it is with registration identifiers;
5. files in `$CREDENTIALS_DIRECTORY` (systemd's `LoadCredential=`): the file's name is the setting's. A command of
   root's without it reads `/etc/penstock/credentials`, which the unit loads them from;
6. `--name=value` on the command line.

- `framework.` may be written `spring.`; `tenantId` is `tenant-id`. A bucketName with dots stands in
  brackets: `service.export.targets[my.bucket].type`.
- A list is a YAML list, or text with commas.
- A time span is a whole number with `s`, `m`, `h` or `d`. Sizes are bytes, or a number with `KiB`, `MiB`, `GiB` or `TiB`; `MB` is the same as `MiB`.
- Run by root, Penstock reads files of the working directory only if they and the directory belong to root and
  nobody else can write them; it warns about those that it ignores.
- A YAML key has a value or keys below it, never both. So beside `security.role` write `security.mode` for
  `security`: `security: {mode: oauth2, role: {admin: ADMIN}}`. Dotted keys may stand beside each other.
- An empty value counts as not given.
- An unknown name is a warning that names the nearest known one. Every value that is not valid is
  reported with its origin, and `serve` ends with status 78. A secret is never shown.

";

const AZUREAD: &str = "## The profile `azuread`

`profiles.active=azuread` implies `security=oauth2` and stands in for these defaults; every other place wins
over it. `<tenant>` is `service.security.tenant-id`, `<client-id>` the registration's `client-id`. See
[docs/sign-in/entra-id.md](docs/sign-in/entra-id.md).

| Name | Value |
|---|---|
";

/// The documentation of every setting, in Markdown.
fn markdown() -> String {
    let mut text = HEAD.to_owned();
    settings(&mut text);
    text.push_str("\nWith no target configured at all, a bucketName is a directory under `<data-dir>/buckets`.\n\n");
    text.push_str(AZUREAD);
    let placeholders = |name: &str| match name {
        "service.security.tenant-id" => Some("<tenant>".to_owned()),
        name if name.ends_with(".client-id") => Some("<client-id>".to_owned()),
        _ => None,
    };
    for (name, value) in super::security::presets(placeholders) {
        let _ = writeln!(text, "| `{name}` | `{value}` |");
    }
    text
}

fn settings(text: &mut String) {
    text.push_str("## Settings\n\n| Name | Default | Value | Meaning |\n|---|---|---|---|\n");
    for setting in TABLE {
        let default = setting.default.map_or(String::new(), |default| format!("`{default}`"));
        let secret = if setting.secret { " Secret." } else { "" };
        let _ = writeln!(
            text,
            "| `{}` | {default} | {} | {}{secret} |",
            setting.name,
            value(setting.kind),
            setting.meaning
        );
    }
}

fn value(kind: Kind) -> String {
    match kind {
        Kind::Text => "text".to_owned(),
        Kind::Choice(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        kind => kind.to_string().replace('*', "\\*"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/CONFIGURATION.md");
        let made = super::markdown();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == made,
            "CONFIGURATION.md is not what src/config/table.rs says; make it anew with:\n  UPDATE=1 cargo test --lib config::document"
        );
    }
}
