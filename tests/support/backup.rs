//! The machines of one gateway, and the place of its backup.
use crate::exports::prelude::{Server, files, new_name};
use crate::process::penstock;
use crate::{Client, CommandExt as _, JsonExt as _, OutputExt as _, TestProcess, lent, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The id of the gateway.
pub const GATEWAY: &str = "edge-1";
const WELLS: &str = "/api/v1/business-objects/Wells";

/// Where a backup is.
#[derive(Debug, Clone)]
pub enum Place {
    /// The bucket's directory.
    Directory(PathBuf),
    Bucket {
        server: Server,
        name: String,
    },
}

impl Place {
    /// Creates a bucket.
    pub fn create_at(server: Server) -> Self {
        let name = new_name();
        block_on(server.create_plain(&name));
        Self::Bucket { server, name }
    }

    /// Returns the settings of the target `backups`.
    fn settings(&self) -> Vec<String> {
        let set =
            |name: &str, value: &str| format!("--service.export.targets.backups.{name}={value}");
        match self {
            Self::Directory(root) => {
                let path = root.parent().unwrap().to_str().unwrap();
                vec![set("type", "directory"), set("path", path)]
            }
            Self::Bucket { server, name } => vec![
                set("type", "s3"),
                set("endpoint", &server.endpoint),
                set("region", &server.region),
                set("bucket", name),
                set("access-key-id", &server.key),
                set("secret-access-key", &server.secret),
            ],
        }
    }

    /// Returns the keys of the backup, sorted.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = match self {
            Self::Directory(root) => files(root),
            Self::Bucket { server, name } => block_on(server.objects(name)),
        };
        // A writer that was killed leaves a file with a temporary name.
        keys.retain(|key| !key.rsplit('/').next().unwrap().starts_with('.'));
        keys.sort();
        keys
    }

    /// Returns the keys with these words, such as `.segment`.
    pub fn keys_with(&self, words: &str) -> Vec<String> {
        let mut keys = self.keys();
        keys.retain(|key| key.contains(words));
        keys
    }

    pub fn read(&self, key: &str) -> Vec<u8> {
        match self {
            Self::Directory(root) => std::fs::read(root.join(key)).unwrap(),
            Self::Bucket { server, name } => block_on(server.object(name, key)).1,
        }
    }

    pub fn write(&self, key: &str, bytes: &[u8]) {
        match self {
            Self::Directory(root) => std::fs::write(root.join(key), bytes).unwrap(),
            Self::Bucket { server, name } => block_on(server.put(name, key, bytes, &[])),
        }
    }

    pub fn remove(&self, key: &str) {
        match self {
            Self::Directory(root) => std::fs::remove_file(root.join(key)).unwrap(),
            Self::Bucket { server, name } => block_on(server.delete(name, key)),
        }
    }

    /// Returns the bytes of each object.
    pub fn content(&self) -> BTreeMap<String, Vec<u8>> {
        self.keys().into_iter().map(|key| (key.clone(), self.read(&key))).collect()
    }

    /// Returns the head of the backup.
    pub fn head(&self) -> Value {
        serde_json::from_slice(&self.read(&head_key())).unwrap()
    }
}

/// Returns the key of the head.
pub fn head_key() -> String {
    format!("_backup/{GATEWAY}/head.json")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

/// An age key.
#[derive(Debug, Clone)]
pub struct BackupKey {
    /// `AGE-SECRET-KEY-1…`
    pub identity: String,
    /// `age1…`
    pub recipient: String,
}

impl BackupKey {
    /// Lets the binary create a key.
    pub fn new(dir: &Path) -> Self {
        let text = penstock(dir).args(["offsite-backup", "new-key"]).succeed().out();
        let find = |beginning: &str| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let found = words.find(|word| word.starts_with(beginning));
            found.unwrap_or_else(|| panic!("no {beginning} in {text}")).to_owned()
        };
        Self { identity: find("AGE-SECRET-KEY-1"), recipient: find("age1") }
    }
}

/// A folder with the data directories of one gateway's machines, and the folder `exports` of its target `exports`.
pub struct Site {
    dir: TempDir,
    pub place: Place,
    /// `service.backup.key`
    pub key: String,
    /// Settings of all machines.
    pub more: Vec<String>,
}

impl Site {
    pub fn new(place: Place) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = BackupKey::new(dir.path()).identity;
        Self { dir, place, key, more: Vec::new() }
    }

    /// Creates a site whose backup goes into a directory of it.
    pub fn with_directory() -> Self {
        let mut site = Self::new(Place::Directory(PathBuf::new()));
        site.place = Place::Directory(site.dir().join("buckets/backups"));
        site
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the data directory of a machine.
    pub fn data(&self, machine: &str) -> PathBuf {
        self.dir().join(machine)
    }

    /// Returns the settings of a machine.
    pub fn settings(&self, machine: &str) -> Vec<String> {
        let exports = self.dir().join("exported").display().to_string();
        let mut settings = vec![
            format!("--service.data-dir={machine}"),
            format!("--service.gateway-id={GATEWAY}"),
            "--service.export.targets.exports.type=directory".to_owned(),
            format!("--service.export.targets.exports.path={exports}"),
            "--service.backup.target=backups".to_owned(),
            "--service.backup.interval=1s".to_owned(),
            format!("--service.backup.key={}", self.key),
        ];
        settings.extend(self.place.settings());
        settings.extend(self.more.iter().cloned());
        settings
    }

    /// Starts a machine. Its client has the Admin's key that the first machine created.
    pub fn start(&self, machine: &str) -> TestProcess {
        TestProcess::start(self.dir(), &lent(&self.settings(machine)))
    }

    /// Returns a command of the binary with the settings of a machine.
    pub fn command(&self, machine: &str, arguments: &[&str]) -> Command {
        let mut command = penstock(self.dir());
        command.args(arguments).args(self.settings(machine));
        command
    }

    /// Restores the backup into an empty machine.
    pub fn restore(&self, machine: &str, more: &[&str]) -> Output {
        let arguments = [&["restore", "--from", "backups"][..], more].concat();
        self.command(machine, &arguments).output().unwrap()
    }

    /// Returns whether a machine has a store, which a restore that failed has not.
    pub fn has_store(&self, machine: &str) -> bool {
        self.data(machine).join("store/journal").exists()
    }

    /// Removes the data directory of a machine.
    pub fn lose(&self, machine: &str) {
        std::fs::remove_dir_all(self.data(machine)).unwrap();
    }

    /// Copies the disk of a machine that does not run.
    pub fn copy_disk(&self, from: &str, to: &str) {
        Command::new("cp").arg("-a").args([self.data(from), self.data(to)]).succeed();
    }
}

/// Defines the Business Object `Wells`, whose objects have a number as identifier, and which is exported to `exports`.
pub fn define_wells(client: Client) {
    let namespace = json!({"uriBase": "https://wells.example/", "generator": "counter"});
    client.put("/api/v1/namespaces/Wells", &namespace).expect(201);
    let config = "type: object\npath: 'Wells:.'\nfields:\n  uri: { type: id }\n  level: { type: integer, path: <https://wells.example/level> }\n";
    let definition =
        json!({ "name": "Wells", "config": config, "pushTargets": [{ "bucketName": "exports" }] });
    client.put("/api/v1/business-objects", &definition).expect(201);
}

/// Stores a well, and returns its URI.
pub fn add_well(client: Client, level: u64) -> String {
    let body = json!({ "data": [{ "level": level }] }).to_string();
    let answer = client.post(&format!("{WELLS}?mode=ADD"), body).expect(200).json();
    answer["objects"][0]["uri"].string()
}

/// Returns the level of each well.
pub fn wells(client: Client) -> BTreeMap<String, Value> {
    let objects = client.all(&format!("{WELLS}/objects?limit=500"));
    objects.iter().map(|well| (well["uri"].string(), well["level"].clone())).collect()
}

/// Waits until the status of the backup is as expected, and returns it.
#[track_caller]
pub fn until_backup(client: Client, what: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    let mut found = Value::Null;
    wait_for(what, || {
        found = client.read("/api/v1/status")["backup"].clone();
        is_met(&found)
    });
    found
}

/// Waits until the bucket has every commit so far, and can be restored. Returns the status of the backup.
#[track_caller]
pub fn until_shipped(client: Client) -> Value {
    let sequence = client.read("/api/v1/status")["store"]["sequence"].as_u64();
    until_backup(client, "the backup has every commit", |backup| {
        backup["state"] == "running"
            && backup["restorable"] == true
            && backup["lastSequence"].as_u64() >= sequence
    })
}

/// Waits until the gateway has found that another one continues its backup.
#[track_caller]
pub fn until_replaced(client: Client) -> Value {
    until_backup(client, "the gateway is replaced", |backup| backup["state"] == "replaced")
}
