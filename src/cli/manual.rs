//! Generates the packages' manual pages and shell completion from the commands and settings. The test compares them;
//! `UPDATE=1 cargo test -p penstock-cli manual` writes them.
use super::build_command;
use penstock_config::{SETTINGS, Setting};
use std::fmt::Write as _;
use std::path::Path;

#[test]
fn the_packaged_manuals_and_completion_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let mut made = vec![
        ("man/penstock.yaml.5".to_owned(), render_settings_page().into_bytes()),
        ("completion/penstock".to_owned(), render_completion()),
    ];
    made.extend(render_command_pages());
    let update = std::env::var_os("UPDATE").is_some();
    for (name, text) in &made {
        let path = folder.join(name);
        if update {
            std::fs::write(&path, text).unwrap();
        }
        assert!(
            std::fs::read(&path).unwrap_or_default() == *text,
            "packaging/{name} is out of date; write it with:\n  UPDATE=1 cargo test -p penstock-cli manual"
        );
    }
    let pages = std::fs::read_dir(folder.join("man")).unwrap().count();
    assert_eq!(pages, made.len() - 1, "packaging/man has a page of a command that does not exist");
}

/// Renders a manual page for each command.
fn render_command_pages() -> Vec<(String, Vec<u8>)> {
    let mut whole = build_command().disable_help_subcommand(true);
    whole.build();
    let subcommands: Vec<_> = whole.get_subcommands().cloned().collect();
    let main = whole.clone();
    let pages = std::iter::once(("penstock".to_owned(), main)).chain(subcommands.into_iter().map(
        |subcommand| {
            let name = format!("penstock-{}", subcommand.get_name());
            // A command's name must be 'static.
            let kept: &'static str = Box::leak(name.clone().into_boxed_str());
            (name, subcommand.name(kept).disable_help_subcommand(true))
        },
    ));
    let page = |(name, command): (String, clap::Command)| {
        let mut text = Vec::new();
        clap_mangen::Man::new(command)
            .date("")
            .manual("Penstock")
            .source(concat!("penstock ", env!("CARGO_PKG_VERSION")))
            .render(&mut text)
            .unwrap();
        (format!("man/{name}.1"), text)
    };
    pages.map(page).collect()
}

fn render_completion() -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(
        clap_complete::Shell::Bash,
        &mut build_command(),
        "penstock",
        &mut text,
    );
    text
}

/// Renders the manual page of the settings.
fn render_settings_page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH penstock.yaml 5 \"\" \"penstock {version}\" \"Penstock\"\n\
         .SH NAME\npenstock.yaml \\- the settings of penstock(1)\n\
         .SH SYNOPSIS\n.I /etc/penstock/application.yaml\n.br\n.I /etc/penstock/application.properties\n\
         .br\n.I /etc/penstock/credentials/\n\
         .SH DESCRIPTION\nEvery setting has one dotted name. It is looked for in these places, and the \
         later one wins: the default; the files above, in YAML or as properties; \
         .I application\\-PROFILE.yaml\nfor each profile of\n.BR profiles.active ;\n\
         environment variables, the name in capitals with _ for each dot; files in\n\
         .IR /etc/penstock/credentials ,\nwhose name is the setting's and whose content is the value; \
         and\n.BI \\-\\-name= value\non the command line.\n.PP\n\
         A value that is not valid stops the start with status 78 and a line that names the setting, \
         where it came from, and what is expected. A secret is never shown.\n.SH SETTINGS\n"
    );
    for setting in SETTINGS.iter() {
        render_setting(&mut page, setting);
    }
    page.push_str(".SH SEE ALSO\n.BR penstock (1)\n");
    page
}

fn render_setting(page: &mut String, setting: &Setting) {
    let _ =
        writeln!(page, ".TP\n.B {}\n{}", escape_roff(&setting.name), escape_roff(&setting.meaning));
    let _ = write!(page, "Value: {}.", escape_roff(&setting.kind.expected));
    if let Some(default) = setting.default {
        let _ = write!(page, " Default: {}.", escape_roff(default));
    }
    if setting.kind.is_secret {
        page.push_str(" Secret.");
    }
    page.push('\n');
}

/// Escapes text for roff; text in backticks becomes bold.
fn escape_roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let mut bold = false;
    let mut out = String::new();
    for part in escaped.split('`') {
        if bold {
            let _ = write!(out, "\\fB{part}\\fR");
        } else {
            out.push_str(part);
        }
        bold = !bold;
    }
    if out.starts_with(['.', '\'']) { format!("\\&{out}") } else { out }
}
