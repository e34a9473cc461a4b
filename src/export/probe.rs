//! A test of a target: whether it would take files, as far as that can be told without writing one.
use super::Exporter;
use super::cause::{Class, Failure};
use super::target::{self, Target};
use penstock_base::fault::{Fault, Kind};
use serde::Serialize;
use std::time::Instant;

/// What a test of a target found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The bucketName.
    pub target: String,
    /// `directory` or `s3`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether nothing was found that is in the way of a delivery.
    pub ok: bool,
    /// Whether it was reached; null when that was not tried.
    pub reachable: Option<bool>,
    /// What is in the way, or what could not be told, in words.
    pub cause: Option<String>,
    /// What kind of cause that is; null when nothing is in the way.
    pub caused_by: Option<Class>,
    /// How long the answer took.
    pub milliseconds: u64,
}

impl Exporter {
    /// Asks a target, with the credentials it is configured with, whether it would take files. Nothing is
    /// written, and the queue goes on as it does.
    ///
    /// # Errors
    /// `Kind::NotFound` when the bucketName leads nowhere.
    pub async fn probe(&self, bucket_name: &str) -> Result<Probe, Fault> {
        let options = &self.inner.options;
        target::check(options, bucket_name).map_err(|why| Fault::new(Kind::NotFound, why))?;
        let begun = Instant::now();
        let found = match Target::open(options, bucket_name) {
            Ok(target) => target.probe(&target::prefix(&options.targets, bucket_name)).await,
            Err(failure) => Err(failure),
        };
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let kind = target::type_name(options, bucket_name).to_owned();
        let target = bucket_name.to_owned();
        Ok(match found {
            Ok(remark) => {
                let (ok, cause, caused_by) = (true, remark.map(str::to_owned), None);
                Probe { target, kind, ok, reachable: Some(true), cause, caused_by, milliseconds }
            }
            Err(Failure { class, cause, .. }) => {
                let (reachable, cause, caused_by) = (class.reached(), Some(cause), Some(class));
                Probe { target, kind, ok: false, reachable, cause, caused_by, milliseconds }
            }
        })
    }
}
