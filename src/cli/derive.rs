//! `penstock derive FILE... --name NAME`: derives the definition of a Business Object from samples.
use super::output;
use clap::{ArgMatches, Command};
use penstock_base::error::GatewayError;
use penstock_base::json::MAX_NESTING;
use penstock_model::derive::{DerivationNote, MappingNames, read_samples};
use penstock_model::resource::CompiledDefinition;
use penstock_service::business_objects::{Derivation, derive_from_samples};
use serde_json::json;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The prefix of the IRI of every property, unless another one is given.
const DEFAULT_VOCABULARY: &str = "urn:penstock:vocabulary:";
/// The path that means standard input.
const STDIN: &str = "-";

pub(super) fn build_command() -> Command {
    Command::new("derive")
        .about("Derive the definition of a Business Object from samples, without a service")
        .override_usage("penstock derive FILE... --name NAME [--vocabulary IRI]")
        .arg(output::files_argument("Samples in JSON, NDJSON or CSV; - is standard input"))
        .arg(
            output::value_argument("name", "NAME", "The name of the Business Object, such as Pumps")
                .required(true),
        )
        .arg(
            output::value_argument("vocabulary", "IRI", "The prefix of the IRI of every property")
                .default_value(DEFAULT_VOCABULARY),
        )
        .after_help(
            "Prints the definition as PUT /api/v1/business-objects takes it: config has the mapping as YAML. Review it \
             first. Notes go to standard error; those with ! say what does not fit the mapping.\n\n\
             Exit status: 0 success, 1 the samples or the name are not valid.\n\nExamples:\n  \
             penstock derive pumps.json --name Pumps --vocabulary https://plant.example/vocabulary/ > definition.json\n  \
             penstock derive monday.csv tuesday.csv --name Readings",
        )
}

pub(super) fn run(given: &ArgMatches) -> ExitCode {
    let text = |name: &str| given.get_one::<String>(name).map_or("", String::as_str);
    let names = MappingNames { business_object: text("name"), vocabulary: text("vocabulary") };
    match derive(names, &output::list_files(given)) {
        Ok((definition, notes)) => {
            for note in notes {
                output::print_error_line(&format_note(&note));
            }
            output::print_result(&definition).err().unwrap_or(ExitCode::SUCCESS)
        }
        Err(why) => output::print_failure(&why),
    }
}

/// Returns the definition and the notes.
fn derive(
    names: MappingNames<'_>,
    paths: &[PathBuf],
) -> Result<(String, Vec<DerivationNote>), String> {
    let samples = paths.iter().map(|path| read_sample(path)).collect::<Result<Vec<_>, _>>()?;
    let derived = derive_from_samples(names, &samples, MAX_NESTING);
    let Derivation { mapping, .. } = derived.map_err(|error| {
        let mut read = paths.iter().zip(&samples);
        match read.find(|(_, text)| read_samples(text, MAX_NESTING).is_err()) {
            Some((path, _)) => format!("{}: {}", format_path(path), error.detail),
            None => describe(&error),
        }
    })?;
    let definition =
        json!({ "name": names.business_object, "enabled": true, "config": mapping.config });
    let text = format!("{definition:#}");
    CompiledDefinition::from_json(text.as_bytes()).map_err(|error| describe(&error))?;
    Ok((text, mapping.notes))
}

fn read_sample(path: &Path) -> Result<String, String> {
    let bytes = if path == Path::new(STDIN) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| format!("{} cannot be read: {error}", format_path(path)))?;
    String::from_utf8(bytes).map_err(|error| {
        let (bytes, at) = (error.as_bytes(), error.utf8_error().valid_up_to());
        let charset = match bytes {
            [0x1F, 0x8B, ..] => return format!("{} is gzip; decompress it first", format_path(path)),
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16",
            _ => "WINDOWS-1252",
        };
        let line = bytes.get(..at).unwrap_or_default().split(|byte| *byte == b'\n').count();
        let byte = bytes.get(at).copied().unwrap_or_default();
        format!(
            "{} is not UTF-8: line {line} has the byte 0x{byte:02X}; convert it, such as with `iconv -f {charset} -t UTF-8`",
            format_path(path)
        )
    })
}

fn format_path(path: &Path) -> String {
    if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() }
}

fn describe(error: &GatewayError) -> String {
    error.detail.clone()
}

fn format_note(DerivationNote { field, message, misfit }: &DerivationNote) -> String {
    let mark = if *misfit { "! " } else { "" };
    if field.is_empty() { format!("{mark}{message}") } else { format!("{mark}{field}: {message}") }
}
