//! Reads the files of a folder. Only root and the user of the service may be able to write them, because they can change
//! every definition.
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_model::source_text;
use penstock_resources::definitions::DefinitionFile;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::Path;

/// The endings of the names of files that are read. Other files are ignored.
const EXTENSIONS: [&str; 5] = ["yaml", "yml", "json", "ttl", "shex"];
/// The maximum number of files.
const MAX_FILES: usize = 10_000;
/// The maximum length of a file, in bytes.
const MAX_FILE_BYTES: u64 = source_text::MAX_BYTES as u64;
/// The maximum length of all files together, in bytes.
const MAX_TOTAL_BYTES: usize = 16 << 20;

/// Reads the files with definitions in a folder, ordered by name. Sub-folders and names that begin with a full stop are
/// ignored. Blocking.
///
/// Folder and files must belong to root, to `owner` (the user of the service) or to the user of this process. No other user
/// may be able to write them.
///
/// # Errors
/// `ErrorClass::Invalid` with a finding for each file that cannot be used.
pub fn read_folder(folder: &Path, owner: u32) -> Result<Vec<DefinitionFile>, GatewayError> {
    let unusable = |why: String| {
        let detail = format!("the folder {} cannot be used: {why}", folder.display());
        GatewayError::new(ErrorClass::Invalid, detail)
    };
    let metadata = std::fs::metadata(folder).map_err(|error| unusable(error.to_string()))?;
    if !metadata.is_dir() {
        return Err(unusable("it is not a folder".to_owned()));
    }
    check_owner(&metadata, owner).map_err(unusable)?;
    let mut names = list_names(folder).map_err(|error| unusable(error.to_string()))?;
    names.sort();
    if names.len() > MAX_FILES {
        return Err(unusable(format!(
            "it has {} files; at most {MAX_FILES} are read",
            names.len()
        )));
    }
    let (mut files, mut findings, mut total) = (Vec::new(), Vec::new(), 0);
    for name in names {
        match read_file(&folder.join(&name), owner) {
            Ok(text) => {
                total += text.len();
                files.push(DefinitionFile { name, text });
            }
            Err(why) => findings.push(Finding::whole(format!("{name}: {why}"))),
        }
        if total > MAX_TOTAL_BYTES {
            return Err(unusable(format!(
                "its files have more than {MAX_TOTAL_BYTES} bytes; divide it into several folders"
            )));
        }
    }
    if findings.is_empty() {
        return Ok(files);
    }
    Err(GatewayError::with_findings(
        ErrorClass::Invalid,
        "nothing was applied, because files cannot be used",
        findings,
    ))
}

/// Lists the names of the files that may have definitions.
fn list_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        // A name that is not UTF-8 has no known ending either.
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let extension = Path::new(&name).extension().and_then(|extension| extension.to_str());
        let is_known = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
        if is_known && !name.starts_with('.') {
            names.push(name);
        }
    }
    Ok(names)
}

fn read_file(path: &Path, owner: u32) -> Result<String, String> {
    // Without O_NONBLOCK a named pipe would block until somebody writes to it.
    let opened = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = opened.map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file; give it another name".to_owned());
    }
    check_owner(&metadata, owner)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it has more than {MAX_FILE_BYTES} bytes; divide it into several"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    // Some editors write a byte order mark. It is no part of the text, and Turtle and ShEx do not allow it.
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    if text.is_empty() {
        // Otherwise a power cut while the file is written would release its definitions.
        return Err("it is empty; remove it, or write a comment into it".to_owned());
    }
    Ok(text)
}

fn check_owner(metadata: &Metadata, owner: u32) -> Result<(), String> {
    let trusted = [0, owner, geteuid().as_raw()];
    check_permissions(metadata.uid(), metadata.mode() & 0o7777, &trusted)
}

/// Checks that only trusted users can write a file of the user `uid` with this mode.
fn check_permissions(uid: u32, mode: u32, trusted: &[u32]) -> Result<(), String> {
    if !trusted.contains(&uid) {
        return Err(format!(
            "it belongs to user {uid}, and must belong to root or to the user of the service (chown root)"
        ));
    }
    if mode & 0o022 != 0 {
        return Err(format!("other users can write it (mode {mode:o}); run chmod go-w"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    fn set_mode(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn read(folder: &Path) -> Result<Vec<String>, String> {
        let read = read_folder(folder, geteuid().as_raw());
        read.map(|files| files.into_iter().map(|file| file.name).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn known_files_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        set_mode(folder, 0o755);
        for name in ["b.yaml", "a.json", "c.ttl", "README.md", ".d.yaml", "e.yaml~"] {
            write(folder.join(name), "# nothing\n").unwrap();
            set_mode(&folder.join(name), 0o644);
        }
        create_dir(folder.join("sub")).unwrap();
        assert_eq!(read(folder).unwrap(), ["a.json", "b.yaml", "c.ttl"]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), 0o755);
        let path = dir.path().join("a.ttl");
        let write_marked = |text: &str| {
            write(&path, format!("\u{feff}{text}")).unwrap();
            set_mode(&path, 0o644);
        };
        write_marked("# nothing\n");
        let files = read_folder(dir.path(), geteuid().as_raw()).unwrap();
        assert_eq!(files[0].text, "# nothing\n");
        write_marked("");
        assert!(read(dir.path()).unwrap_err().contains("a.ttl: it is empty"));
    }

    #[test]
    fn what_others_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("definitions");
        assert!(read(&folder).unwrap_err().contains("No such file"));
        create_dir(&folder).unwrap();
        set_mode(&folder, 0o755);
        for (name, mode) in [("a.yaml", 0o664), ("b.yaml", 0o646), ("c.yaml", 0o640)] {
            write(folder.join(name), "# nothing\n").unwrap();
            set_mode(&folder.join(name), mode);
        }
        let error = read(&folder).unwrap_err();
        assert!(error.contains("a.yaml: other users can write it (mode 664)"), "{error}");
        assert!(error.contains("b.yaml") && !error.contains("c.yaml"), "{error}");
        set_mode(&folder, 0o777);
        assert!(read(&folder).unwrap_err().contains("mode 777"));
    }

    #[test]
    fn a_file_belongs_to_root_or_to_the_user_of_the_service() {
        let trusted = [0, 990];
        for (uid, mode) in [(0, 0o644), (990, 0o600), (990, 0o4755)] {
            assert_eq!(check_permissions(uid, mode, &trusted), Ok(()), "{uid} {mode:o}");
        }
        let error = check_permissions(1000, 0o600, &trusted).unwrap_err();
        assert!(error.contains("it belongs to user 1000"), "{error}");
        for mode in [0o620, 0o602, 0o1622] {
            let error = check_permissions(0, mode, &trusted).unwrap_err();
            assert!(error.contains(&format!("mode {mode:o}")), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_no_text_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), 0o755);
        write(dir.path().join("a.yaml"), [0xff, 0xfe]).unwrap();
        create_dir(dir.path().join("b.yaml")).unwrap();
        write(dir.path().join("c.yaml"), vec![b'#'; (1 << 20) + 1]).unwrap();
        write(dir.path().join("d.yaml"), "").unwrap();
        // Without a writer, opening it would block.
        let made = std::process::Command::new("mkfifo").arg(dir.path().join("e.yaml")).status();
        assert!(made.unwrap().success());
        for name in ["a.yaml", "c.yaml", "d.yaml"] {
            set_mode(&dir.path().join(name), 0o644);
        }
        let error = read(dir.path()).unwrap_err();
        assert!(error.contains("a.yaml: it is not UTF-8"), "{error}");
        assert!(error.contains("b.yaml: it is not a file"), "{error}");
        assert!(error.contains("c.yaml: it has more than 1048576 bytes"), "{error}");
        assert!(error.contains("d.yaml: it is empty"), "{error}");
        assert!(error.contains("e.yaml: it is not a file"), "{error}");
    }
}
