//! Reads values from the configuration sources.
use super::error::ConfigError;
use super::kind::RawValue;
use super::section::Report;
use super::setting::SourceKind;
use super::{properties, yaml};
use nix::unistd::geteuid;
use penstock_base::files::remedy_of_unreadable;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder in the second directory from which systemd loads the credentials of the service.
const CREDENTIALS_FOLDER: &str = "credentials";

/// The sources of the configuration. The caller provides them, so that loading does not depend on the state of the
/// process.
#[derive(Clone, Default)]
pub struct Sources {
    /// The first directory with `application*` files.
    pub working_dir: PathBuf,
    /// The second directory. Its files override those of the first.
    pub system_dir: PathBuf,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
    /// The names of environment variables whose values are not UTF-8.
    pub unreadable_variables: Vec<String>,
    /// `$CREDENTIALS_DIRECTORY` (systemd.exec(5), "Credentials"). For root without that variable, the folder that
    /// systemd loads them from.
    pub credentials_dir: Option<PathBuf>,
    /// Arguments of the form `--name=value`.
    pub arguments: Vec<String>,
    /// Whether the process runs as root. The working directory of root may belong to another user, so root reads
    /// files there only if they and the folder belong to root and only root can write them.
    pub is_root: bool,
}

impl Sources {
    /// Returns the sources of this process, with these arguments.
    pub fn of_process(arguments: Vec<String>) -> Self {
        let (mut environment, mut unreadable_variables) = (BTreeMap::new(), Vec::new());
        for (name, value) in std::env::vars_os() {
            // No setting has a name that is not UTF-8.
            let Ok(name) = name.into_string() else { continue };
            match value.into_string() {
                Ok(value) => drop(environment.insert(name, value)),
                Err(_) => unreadable_variables.push(name),
            }
        }
        let system_dir = PathBuf::from("/etc/penstock");
        // A command that root runs reads the credentials where systemd reads them for the service. Otherwise the
        // configuration would be incomplete.
        let credentials_dir = environment
            .get("CREDENTIALS_DIRECTORY")
            .map(PathBuf::from)
            .or_else(|| geteuid().is_root().then(|| system_dir.join(CREDENTIALS_FOLDER)));
        Self {
            working_dir: PathBuf::from("."),
            system_dir,
            credentials_dir,
            environment,
            unreadable_variables,
            arguments,
            is_root: geteuid().is_root(),
        }
    }
}

impl std::fmt::Debug for Sources {
    /// Omits values, because they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources")
            .field("working_dir", &self.working_dir)
            .field("system_dir", &self.system_dir)
            .field("credentials_dir", &self.credentials_dir)
            .finish_non_exhaustive()
    }
}

/// A name and its value from a source.
#[derive(Clone)]
pub(super) struct FoundValue {
    pub(super) name: String,
    pub(super) value: RawValue,
    /// The origin, for display.
    pub(super) origin: String,
    /// The kind of the source.
    pub(super) source: SourceKind,
}

/// Reads `application.*`, or with a profile `application-<profile>.*`, from both directories. In one directory,
/// `.properties` overrides `.yml`, which overrides `.yaml`.
pub(super) fn read_files(
    sources: &Sources,
    profile: Option<&str>,
    report: &mut Report,
) -> Vec<FoundValue> {
    let stem = profile.map_or("application".to_owned(), |p| format!("application-{p}"));
    let mut found = Vec::new();
    for (dir, only_of_root) in
        [(&sources.working_dir, sources.is_root), (&sources.system_dir, false)]
    {
        for extension in ["yaml", "yml", "properties"] {
            let path = dir.join(format!("{stem}.{extension}"));
            let read = if only_of_root {
                read_root_file(dir, &path)
            } else {
                read_optional_file(&path).map_err(ReadError::from)
            };
            match read {
                Ok(Some(text)) => found.extend(parse_file(&path, &text, &mut report.errors)),
                Ok(None) => {}
                Err(ReadError::Untrusted(why)) => report.warnings.push(format!(
                    "{} was ignored: run by root, Penstock reads configuration in the working directory only if \
                     no other user can change it, but {why}; move the file to {}, or give file and folder to root \
                     (chown root, chmod go-w)",
                    std::path::absolute(&path).unwrap_or(path).display(),
                    sources.system_dir.display(),
                )),
                Err(ReadError::Failed(why)) => {
                    report.errors.push(ConfigError::of_source(display_path(&path), why));
                }
            }
        }
    }
    found
}

/// Parses the text of one file into names and values.
pub(super) fn parse_file(
    path: &Path,
    text: &str,
    errors: &mut Vec<ConfigError>,
) -> Vec<FoundValue> {
    let origin = display_path(path);
    let source = SourceKind::File(path.to_owned());
    if path.extension().is_some_and(|e| e == "properties") {
        let properties =
            properties::parse(text).unwrap_or_else(|lines| {
                errors.extend(lines.into_iter().map(|(line, why)| {
                    ConfigError::of_source(format!("{origin}, line {line}"), why)
                }));
                Vec::new()
            });
        let found = properties.into_iter().map(|property| FoundValue {
            name: property.name,
            value: property.value,
            origin: format!("{origin}, line {}", property.line),
            source: source.clone(),
        });
        return found.collect();
    }
    let pairs = yaml::parse(text).unwrap_or_else(|why| {
        errors.push(ConfigError::of_source(origin.clone(), why));
        Vec::new()
    });
    let lines = if pairs.is_empty() { HashMap::new() } else { yaml::find_lines(text) };
    let found = pairs.into_iter().map(|(name, value)| FoundValue {
        origin: match yaml::line_of_name(&lines, &name) {
            Some(line) => format!("{origin}, line {line}"),
            None => origin.clone(),
        },
        name,
        value,
        source: source.clone(),
    });
    found.collect()
}

/// Reads the files in the credentials directory. A file's name is the name of the setting, with or without the
/// prefix `penstock_`. A byte order mark and a trailing line end are not part of the value.
pub(super) fn read_credentials(
    sources: &Sources,
    errors: &mut Vec<ConfigError>,
) -> Vec<FoundValue> {
    let Some(dir) = &sources.credentials_dir else { return Vec::new() };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            errors.push(ConfigError::of_source(display_path(dir), error.to_string()));
            return Vec::new();
        }
    };
    let mut names: Vec<String> =
        entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let mut found = Vec::new();
    for file in names {
        // `LoadCredential=penstock:FOLDER` adds this prefix to the names of the folder's files.
        let name = file.strip_prefix("penstock_").unwrap_or(&file).to_owned();
        // Other files, such as keys of other programs, may be binary or unreadable.
        if super::name::resolve_name(&name).is_none() && !looks_like_setting(&name) {
            continue;
        }
        let origin = format!("credential {}", display_path(&dir.join(&file)));
        match read_optional_file(&dir.join(&file)) {
            Ok(Some(text)) => found.push(FoundValue {
                value: RawValue::Text(trim_value(&text).to_owned()),
                name,
                origin,
                source: SourceKind::Credential,
            }),
            Ok(None) => {}
            Err(error) => errors.push(ConfigError::of_source(origin, describe_read_error(&error))),
        }
    }
    found
}

/// Returns a warning if values are missing that may be in the folder of credentials, which this process does not read.
pub(super) fn describe_unread_credentials(
    sources: &Sources,
    errors: &[ConfigError],
) -> Option<String> {
    let folder = sources.system_dir.join(CREDENTIALS_FOLDER);
    let is_unread = sources.credentials_dir.is_none() && folder.is_dir();
    let is_missing = |error: &ConfigError| error.name.is_some() && error.value.is_none();
    (is_unread && errors.iter().any(is_missing)).then(|| {
        format!(
            "the secrets in {} were not read, because only root and the service can read them; run the command as root",
            folder.display()
        )
    })
}

/// Reads all environment variables. Those of other programs may have any bytes.
pub(super) fn read_environment(
    sources: &Sources,
    errors: &mut Vec<ConfigError>,
) -> Vec<FoundValue> {
    let unreadable = sources.unreadable_variables.iter();
    errors.extend(unreadable.filter(|name| super::name::resolve_variable(name).is_some()).map(
        |name| {
            let origin = format!("environment variable {name}");
            ConfigError::of_source(origin, "its value is not UTF-8".to_owned())
        },
    ));
    let found = sources.environment.iter().map(|(name, value)| FoundValue {
        name: name.clone(),
        value: RawValue::Text(value.clone()),
        origin: format!("environment variable {name}"),
        source: SourceKind::Environment,
    });
    found.collect()
}

/// Reads arguments of the form `--name=value`.
pub(super) fn read_arguments(sources: &Sources, errors: &mut Vec<ConfigError>) -> Vec<FoundValue> {
    let mut found = Vec::new();
    for argument in &sources.arguments {
        match argument.strip_prefix("--").and_then(|a| a.split_once('=')) {
            Some((name, value)) => found.push(FoundValue {
                name: name.to_owned(),
                value: RawValue::Text(value.to_owned()),
                origin: format!("--{name}"),
                source: SourceKind::Argument,
            }),
            None => errors
                .push(ConfigError::of_source(argument.clone(), "expected --name=value".into())),
        }
    }
    found
}

/// Whether a name looks like a setting of Penstock.
pub(super) fn looks_like_setting(name: &str) -> bool {
    let first = name.split(['.', '[']).next().unwrap_or_default();
    ["service", "framework", "spring", "server"].iter().any(|own| first.eq_ignore_ascii_case(own))
        && first.len() < name.len()
}

fn trim_value(text: &str) -> &str {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Why the text of an existing file is not available.
enum ReadError {
    /// Another user than root could have written it.
    Untrusted(String),
    /// It cannot be read.
    Failed(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Failed(describe_read_error(&error))
    }
}

fn read_optional_file(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file in this folder if only root can change both.
fn read_root_file(folder: &Path, path: &Path) -> Result<Option<String>, ReadError> {
    if !path.is_symlink() && !path.try_exists()? {
        return Ok(None);
    }
    // Check the folder first: opening a file of another user could block forever (a named pipe).
    check_root_owned(&std::fs::metadata(folder)?, "its folder")?;
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    check_root_owned(&file.metadata()?, "it")?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Some(text))
}

fn check_root_owned(metadata: &Metadata, what: &str) -> Result<(), ReadError> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner != 0 {
        return Err(ReadError::Untrusted(format!("{what} belongs to user {owner}")));
    }
    if mode & 0o022 != 0 {
        return Err(ReadError::Untrusted(format!("others can write {what} (mode {mode:o})")));
    }
    Ok(())
}

fn describe_read_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => format!("it cannot be read: {error}{}", remedy_of_unreadable(error)),
    }
}

fn display_path(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}
