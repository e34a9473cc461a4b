//! Generates docs/configuration.md from the table of settings; a test compares the two.
use super::kind::{Kind, TEXT};
use super::table::SETTINGS;
use std::fmt::Write;

const HEAD: &str = "# Configuration

Every setting has one dotted name. Set it in a file, in the environment, in a credentials file or on the command
line. `penstock check FILE` checks a configuration file.

This page is generated from `src/config/table.rs`: `UPDATE=1 cargo test -p penstock-config document` updates it.

## Where a value comes from

The gateway reads these sources in order. A later source overrides an earlier one.

1. The default.
2. `application.yaml`, `application.yml`, `application.properties`: first in the working directory, then in
   `/etc/penstock`.
3. `application-<profile>.yaml`, `.yml`, `.properties` in the same two directories, for each profile of
   `profiles.active` in order.
4. Environment variables: the name in capitals, with `_` for each dot. A `-` is left out or written as `_`:
   `SERVICE_DATADIR` or `SERVICE_DATA_DIR`.
5. Files in `$CREDENTIALS_DIRECTORY` (systemd's `LoadCredential=`). The file's name is the setting's name. A command
   that root runs without this variable reads `/etc/penstock/credentials`, which the unit loads them from.
6. `--name=value` on the command line.

If root runs Penstock, it reads files of the working directory only if they and the directory belong to root and no
one else can write them. It warns about files that it ignores.

## When a change takes effect

At the next start of the service. SIGHUP (`systemctl reload penstock`) reads only `service.log.level`, the certificate
of `server.ssl.*` with its key, and the files of `service.definitions.dir` again.

## How a value is written

- `framework.` may be written `spring.`, and `tenantId` means `tenant-id`.
- Put a bucketName that contains dots in brackets: `service.export.targets[my.bucket].type`.
- In an environment variable, a bucketName matches a configured one regardless of case, `-` and `.`. If none
  matches, it is the lower-case form with `-` for `_`. Registration identifiers work the same way.
- `subscriptions` is a YAML list; in an environment variable its position is a number:
  `SERVICE_SOURCES_PLANT_SUBSCRIPTIONS_0_TOPIC`, `SERVICE_SOURCES_PLANT_SUBSCRIPTIONS_0_FIELDS_SITE`.
- A list is a YAML list, or text with commas.
- A time span is a whole number followed by `ms`, `s`, `m`, `h` or `d`.
- A size is a number of bytes, or a number followed by `KiB`, `MiB`, `GiB` or `TiB`. `MB` means `MiB`.
- An empty value counts as not set.
- A YAML key has a value or keys below it, never both. Beside `security.role`, write `security.mode` for `security`:
  `security: {mode: oauth2, role: {admin: ADMIN}}`. Dotted keys may be beside each other.

## Mistakes

- An unknown name causes a warning that suggests the nearest known one. Below `service.sources` it is an error.
  An unknown environment variable causes a warning only if its name is near a known one.
- Every invalid value is reported with its source, and `serve` exits with status 78.
- Secrets are never shown.

";

const AZUREAD: &str = "## The profile `azuread`

`profiles.active=azuread` sets `security=oauth2` and the defaults below. Every other source overrides them.
`<tenant>` is `service.security.tenant-id`; `<client-id>` is the registration's `client-id`. See
[sign-in/entra-id.md](sign-in/entra-id.md).

| Name | Value |
|---|---|
";

/// Renders the documentation of all settings as Markdown.
fn render_markdown() -> String {
    let mut text = HEAD.to_owned();
    render_settings(&mut text);
    text.push_str("\nIf no target is configured, each bucketName is a directory under `<data-dir>/buckets`.\n\n");
    text.push_str(AZUREAD);
    let placeholders = |name: &str| match name {
        "service.security.tenant-id" => Some("<tenant>".to_owned()),
        name if name.ends_with(".client-id") => Some("<client-id>".to_owned()),
        _ => None,
    };
    for (name, value) in super::security::list_presets(placeholders) {
        let _ = writeln!(text, "| `{name}` | `{value}` |");
    }
    text
}

fn render_settings(text: &mut String) {
    text.push_str("## Settings\n\n| Name | Default | Value | Meaning |\n|---|---|---|---|\n");
    for setting in SETTINGS.iter() {
        let default = setting.default.map_or(String::new(), |default| format!("`{default}`"));
        let secret = if setting.kind.is_secret { " Secret." } else { "" };
        let _ = writeln!(
            text,
            "| `{}` | {default} | {} | {}{secret} |",
            setting.name,
            describe_values(&setting.kind),
            setting.meaning
        );
    }
}

fn describe_values(kind: &Kind<()>) -> String {
    match kind.words.as_slice() {
        [] if kind.expected == TEXT => "text".to_owned(),
        [] => kind.expected.replace('*', "\\*"),
        words => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_matches_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let expected = super::render_markdown();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == expected,
            "docs/configuration.md differs from src/config/table.rs; generate it with:\n  UPDATE=1 cargo test -p penstock-config document"
        );
    }
}
