//! An exporter with a small plant, without HTTP.
mod link;
mod s3;
mod sparql;

use crate::{until, until_some};
use oxrdf::{Literal, NamedNode, Quad};
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_config::{ExportFormat, KeyTemplate, Target, TargetKind, Targets};
use penstock_export::{ExportOptions, ExportRequester, Exporter};
use penstock_model::catalogue::Catalogue;
use penstock_model::mapping::{self, Field, FieldKind, Mapping, Property, Shape};
use penstock_model::resource::Compiled;
use penstock_model::testing::{catalogue_settings, compile_object, put_namespace};
use penstock_resources::business_object::PushTarget;
use penstock_resources::export::{self, Export, ExportStatus};
use penstock_resources::namespace::Generator;
use penstock_store::Store;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What most tests of exports use.
pub mod prelude {
    pub use super::link::{Fault, Link};
    pub use super::s3::{Server, admin, blocked, ceph, new_name, quick, said, swift};
    pub use super::sparql::{SparqlServer, sparql, updated};
    pub use super::{
        BASE, Plant, Running, directory, embedded, files, find_target, memory, open_store, options,
        park, plant_a, pump, push_one, push_pump, reset_peak, run, run_until_delivered, status_of,
        trust, until_delivered, until_entry, until_status,
    };
    pub use crate::prelude::*;
    pub use penstock_config::{
        Compression, ExportFormat, KeyTemplate, Target, TargetKind, Targets,
    };
    pub use penstock_export::{
        DeliveryTimings, ExportExt as _, ExportOptions, ExportRequester, Exporter,
    };
    pub use penstock_resources::export::{Cause, Export, ExportStatus};
}

pub const BASE: &str = "https://plant.example/id/Pump/";

/// A data directory with a store.
pub struct Plant {
    pub dir: tempfile::TempDir,
    pub store: Store,
}

/// A running exporter.
pub struct Running {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Plant {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(dir.path());
        put_namespace(&store, "Pump", BASE, Generator::Uuid);
        Self { dir, store }
    }

    /// Creates a plant with these pumps (see [`Self::pumps`]).
    pub fn with_pumps(numbers: std::ops::Range<u32>, length: usize) -> Self {
        let plant = Self::new();
        plant.pumps(numbers, length);
        plant
    }

    /// Closes and reopens the store. Every exporter must have been dropped.
    pub fn restart(self) -> Self {
        let Self { dir, store } = self;
        drop(store);
        let store = open_store(dir.path());
        Self { dir, store }
    }

    /// Stores the pumps with these numbers, each with a name of more than `length` characters.
    pub fn pumps(&self, numbers: std::ops::Range<u32>, length: usize) {
        self.named(numbers, |number| format!("pump {number} {}", "x".repeat(length)));
    }

    /// Stores the pumps with these numbers. `name` returns the name of each.
    pub fn named(&self, numbers: std::ops::Range<u32>, name: impl Fn(u32) -> String) {
        let graph = NamedNode::new(BASE).unwrap();
        self.store
            .transact::<_, GatewayError>(|t| {
                for number in numbers {
                    let pump = NamedNode::new(format!("{BASE}{number:06}")).unwrap();
                    let name = Literal::new_simple_literal(name(number));
                    t.insert(Quad::new(pump, name_property(), name, graph.clone()).as_ref())?;
                }
                Ok(())
            })
            .unwrap();
    }

    /// Copies the closed store to `backup` and reopens it. Every exporter must have been dropped.
    pub fn copy_store_to(self, backup: &Path) -> Self {
        let Self { dir, store } = self;
        drop(store);
        copy(&dir.path().join("store"), &backup.join("store"));
        let store = open_store(dir.path());
        Self { dir, store }
    }

    /// Replaces the store by the copy. Every exporter must have been dropped.
    pub fn restore_store_from(self, backup: &Path) -> Self {
        let Self { dir, store } = self;
        drop(store);
        std::fs::remove_dir_all(dir.path().join("store")).unwrap();
        copy(&backup.join("store"), &dir.path().join("store"));
        let store = open_store(dir.path());
        Self { dir, store }
    }

    /// Removes every pump.
    pub fn clear(&self) {
        use penstock_store::{Pattern, Read as _};
        self.store
            .transact::<_, GatewayError>(|t| {
                let mut quads = Vec::new();
                t.for_each(&Pattern::default(), &mut |quad| {
                    quads.push(quad);
                    std::ops::ControlFlow::Continue(())
                })?;
                for quad in &quads {
                    t.remove(quad.as_ref())?;
                }
                Ok(())
            })
            .unwrap();
    }

    pub fn options(&self, targets: Targets) -> ExportOptions {
        options(&self.store, self.dir.path(), targets)
    }

    pub fn catalogue(&self) -> Catalogue {
        catalogue(&self.store)
    }

    pub fn open(&self, targets: Targets) -> Exporter {
        Exporter::open(self.store.clone(), self.options(targets)).unwrap()
    }

    pub fn bucket(&self, name: &str) -> PathBuf {
        self.dir.path().join("buckets").join(name)
    }

    /// Returns the names of the spool's files, sorted.
    pub fn spooled(&self) -> Vec<String> {
        files(&self.dir.path().join("spool"))
    }
}

/// Returns the options of an exporter of this data directory.
pub fn options(store: &Store, data_dir: &Path, targets: Targets) -> ExportOptions {
    ExportOptions {
        targets,
        gateway_id: "gateway-1".to_owned(),
        data_dir: data_dir.to_owned(),
        history: 1000,
        timings: penstock_export::DeliveryTimings::default(),
        events: penstock_base::events::EventBus::default(),
        spool: 64 << 20,
        disk: penstock_base::disk::Disk::new(data_dir.to_owned(), 0),
        catalogue: catalogue(store),
    }
}

fn catalogue(store: &Store) -> Catalogue {
    Catalogue::open(store.clone(), catalogue_settings()).unwrap()
}

/// Returns the value of a line of `/proc/self/status` in bytes.
pub fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let value = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':')).unwrap();
    value.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() << 10
}

/// Resets the peak memory `VmHWM` (proc(5)).
pub fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

pub fn open_store(data_dir: &Path) -> Store {
    loop {
        match Store::open(&data_dir.join("store"), penstock_store::Options::default(), &mut |_| ())
        {
            // The tasks of the previous exporter release the store with a delay. A real restart ends their process.
            Err(penstock_store::Error::InUse { .. }) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in files(from) {
        let target = to.join(&name);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(from.join(&name), target).unwrap();
    }
}

/// Returns the keys of all files under a directory, sorted.
pub fn files(root: &Path) -> Vec<String> {
    fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

fn name_property() -> NamedNode {
    NamedNode::new("https://plant.example/name").unwrap()
}

/// Returns a Business Object of all pumps.
pub fn pump(name: &str, targets: &[&str]) -> Compiled {
    let value = mapping::Value::Literal(mapping::Literal::String);
    let fields = vec![
        Field::new("uri", FieldKind::Id),
        Field::new("name", FieldKind::Property(Property::new(name_property(), value))),
    ];
    let root = Shape::new("Pump".to_owned(), fields);
    let mut compiled = compile_object(&format!("id-of-{name}"), name, Mapping::new(root));
    compiled.object.definition.push_targets =
        targets.iter().map(|target| PushTarget { bucket_name: (*target).to_owned() }).collect();
    compiled
}

/// Returns targets with 64 MiB of history and no configured target: every bucketName is a directory in the data
/// directory.
pub fn embedded() -> Targets {
    Targets { history_bytes: 64 << 20, ..Targets::default() }
}

pub fn directory(path: &Path) -> Target {
    Target {
        kind: TargetKind::Directory { path: Some(path.to_owned()) },
        prefix: String::new(),
        key: KeyTemplate::default(),
        format: ExportFormat::Json,
    }
}

/// Sets the file of the authorities that S3 targets trust.
pub fn trust(targets: &mut Targets, authority: &Path) {
    for target in targets.named.values_mut() {
        if let TargetKind::S3 { ca_file, .. } = &mut target.kind {
            *ca_file = Some(authority.to_owned());
        }
    }
}

/// Returns targets of which only `plant-a` is configured.
pub fn plant_a(target: Target) -> Targets {
    let mut targets = embedded();
    targets.named.insert("plant-a".to_owned(), target);
    targets
}

/// Starts the exporter.
pub fn run(exporter: &Exporter) -> Running {
    let (stop, stopped) = watch::channel(false);
    let exporter = exporter.clone();
    Running { stop, task: tokio::spawn(async move { exporter.run(stopped).await }) }
}

impl Running {
    pub async fn stop(self) {
        self.stop.send(true).unwrap();
        self.task.await.unwrap();
    }
}

/// Waits until `condition` returns true for an entry.
pub async fn until_entry(
    exporter: &Exporter,
    id: &str,
    condition: impl Fn(&Export) -> bool,
) -> Export {
    until_some("an export has the expected state", async || {
        Some(exporter.get(id).unwrap().unwrap()).filter(&condition)
    })
    .await
}

/// Waits until an export is delivered.
pub async fn until_delivered(exporter: &Exporter, entry: &Export) -> Export {
    until_status(exporter, &entry.id, ExportStatus::Delivered).await
}

/// Runs the exporter until an export is delivered.
pub async fn run_until_delivered(exporter: &Exporter, entry: &Export) -> Export {
    let running = run(exporter);
    let delivered = until_delivered(exporter, entry).await;
    running.stop().await;
    delivered
}

/// Parks an export as soon as it is not being delivered.
pub async fn park(exporter: &Exporter, entry: &Export) {
    until("the export is parked", async || exporter.park(&NoClient, &entry.id).is_ok()).await;
}

/// Returns the status of an export.
pub fn status_of(exporter: &Exporter, entry: &Export) -> ExportStatus {
    exporter.get(&entry.id).unwrap().unwrap().status
}

pub async fn until_status(exporter: &Exporter, id: &str, status: ExportStatus) -> Export {
    until_entry(exporter, id, |entry| entry.status == status).await
}

/// Returns the state of a target.
pub fn find_target(exporter: &Exporter, name: &str) -> export::Target {
    let targets = exporter.list_targets().unwrap();
    targets.into_iter().find(|target| target.name == name).unwrap()
}

/// Pushes the pumps to `plant-a`.
pub fn push_pump(exporter: &Exporter) -> Export {
    push_one(exporter, &pump("Pump", &["plant-a"]))
}

/// Pushes and expects one export.
pub fn push_one(exporter: &Exporter, business_object: &Compiled) -> Export {
    let push = exporter.push(business_object, ExportRequester::gateway()).unwrap();
    assert_eq!(push.reason, None);
    assert_eq!(push.exports.len(), 1);
    push.exports.into_iter().next().unwrap()
}
