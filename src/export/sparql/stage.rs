//! Staging: writes the lines of an export into its staging graphs, and drops them.
use super::chunks::{self, Chunk, ChunkError, ChunkLimits};
use super::update::ExportGraphs;
use super::{StoreTarget, UpdateDelivery};
use crate::blocking::run_io;
use crate::cause::{DeliveryFailure, unreadable_file_failure};
use crate::delivery::{DAMAGED_FILE, ObjectContent};
use crate::uplink::Uplink;
use crate::uploads::{DROPPED, UploadFolder, UploadRecord};
use penstock_config::SparqlProtocol;
use penstock_resources::export::{Export, ExportKind};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The maximum number of lines in a request to a store that has refused a longer one. Virtuoso compiles updates to SQL of
/// at most 10,000 lines, and a triple takes several.
const MAX_LINES_OF_LIMITED_STORE: usize = 400;
/// The `upload` in the record of an export whose staging graphs are being dropped because it was parked.
const DROPPING: &str = "dropping";

/// The `upload` in the record of an export that was delivered, whose staging graphs were dropped since.
const DELIVERED: &str = "delivered";
/// How long the cleanup drops the staging graphs of an export that was delivered after an attempt that failed. A request
/// of that attempt that arrives late can restore a part of them in a store without conflict detection.
const LATE_REQUEST_TIME: Duration = Duration::from_hours(6);

/// Returns the name of the staging graphs of an export. Each attempt after parking has graphs of its own, so that a
/// request which drops earlier ones late does no harm.
fn staging_name(export_id: &str, attempt: u64) -> String {
    if attempt == 0 { export_id.to_owned() } else { format!("{export_id}:{attempt}") }
}

impl StoreTarget {
    /// Records that the export has staging graphs, for the cleanup. Returns their name, and whether this is the first attempt.
    pub(super) async fn record_staging(
        &self,
        entry: &Export,
        uploads: &UploadFolder,
    ) -> Result<(String, bool), DeliveryFailure> {
        let (uploads, id) = (uploads.clone(), entry.id.clone());
        let new = UploadRecord {
            target: self.target.clone(),
            place: self.client.endpoint().to_owned(),
            key: entry.key.clone(),
            upload: String::new(),
            part_size: 0,
            length: entry.bytes,
            sha256: entry.sha256.clone(),
        };
        let recorded = run_io::<_, io::Error>(move || {
            let earlier = uploads.read_upload(&id).map(|(earlier, _)| earlier);
            let attempt = earlier.as_ref().map_or(0, |earlier| earlier.part_size);
            let record = UploadRecord { part_size: attempt, ..new };
            if earlier.as_ref() != Some(&record) {
                uploads.record_upload(&id, &record)?;
            }
            Ok((staging_name(&id, attempt), earlier.is_none()))
        });
        recorded.await.map_err(|error| {
            DeliveryFailure::of_gateway(format!("recording the delivery failed: {error}"))
        })
    }

    /// Drops the staging graphs of an export that was parked, and records that the next attempt has others.
    pub(crate) async fn drop_parked_staging(
        &self,
        export_id: &str,
        record: &UploadRecord,
        uploads: &UploadFolder,
    ) -> Result<(), DeliveryFailure> {
        let attempt = match record.upload.as_str() {
            DROPPED => return Ok(()),
            DROPPING => record.part_size.saturating_sub(1),
            _ => record.part_size,
        };
        let next = |upload: &str| UploadRecord {
            upload: upload.to_owned(),
            part_size: attempt + 1,
            ..record.clone()
        };
        let replace = |from: &UploadRecord, to: &UploadRecord| {
            uploads.replace_record(export_id, from, to).map_err(|error| {
                DeliveryFailure::of_gateway(format!("recording the cleanup failed: {error}"))
            })
        };
        let (dropping, dropped) = (next(DROPPING), next(DROPPED));
        // A retry that has begun meanwhile has a record of its own.
        if replace(record, &dropping)? {
            self.drop_graphs(export_id, attempt, record).await?;
            replace(&dropping, &dropped)?;
        }
        Ok(())
    }

    /// Drops the staging graphs of an export that was delivered.
    pub(crate) async fn drop_delivered_staging(
        &self,
        export_id: &str,
        record: &UploadRecord,
    ) -> Result<(), DeliveryFailure> {
        self.drop_graphs(export_id, record.part_size, record).await
    }

    /// Drops the staging graphs of an export that was delivered after an attempt that failed. Returns whether no request of
    /// that attempt can restore them any more.
    pub(crate) async fn drop_retried_staging(
        &self,
        export_id: &str,
        record: &UploadRecord,
        uploads: &UploadFolder,
    ) -> Result<bool, DeliveryFailure> {
        self.drop_delivered_staging(export_id, record).await?;
        if record.upload == DELIVERED {
            return Ok(uploads.is_record_older_than(export_id, LATE_REQUEST_TIME));
        }
        let delivered = UploadRecord { upload: DELIVERED.to_owned(), ..record.clone() };
        uploads.record_upload(export_id, &delivered).map_err(|error| {
            DeliveryFailure::of_gateway(format!("recording the cleanup failed: {error}"))
        })?;
        Ok(false)
    }

    async fn drop_graphs(
        &self,
        export_id: &str,
        attempt: u64,
        record: &UploadRecord,
    ) -> Result<(), DeliveryFailure> {
        let graph = record.key.trim_start_matches('<').trim_end_matches('>');
        if record.place != self.client.endpoint() || self.protocol != SparqlProtocol::Update {
            return Ok(());
        }
        let graphs = ExportGraphs::new(graph, &staging_name(export_id, attempt), 0);
        let uplink = Arc::new(Uplink::new(None, None));
        self.send_update(graphs.drop_staging(), &uplink, Duration::ZERO).await
    }

    /// Writes the lines of the export into the staging graphs, from this position of its file. Returns the end.
    pub(super) async fn stage(
        &self,
        update: &UpdateDelivery<'_>,
        content: &ObjectContent,
        begin: u64,
        from: u64,
    ) -> Result<u64, DeliveryFailure> {
        let mut at = from;
        let mut prepare = Some(update.graphs.prepare(begin));
        loop {
            if !update.uplink.is_open() {
                return Err(DeliveryFailure::interrupt("the delivery window closed"));
            }
            let limits = ChunkLimits {
                lines: self.max_lines.load(Ordering::Relaxed),
                is_full: update.entry.kind == ExportKind::Full,
            };
            let chunk = self.read_chunk(content, at, limits, &update.graphs).await?;
            let mut text = prepare.clone().unwrap_or_default();
            let (mut lines, mut end) = (0, at);
            if let Some(chunk) = chunk {
                text.reserve(chunk.triples.len() + chunk.state.len() + 4096);
                text.push_str(if text.is_empty() { "" } else { " ;\n" });
                update.graphs.append_stage(at, &chunk, &mut text);
                (lines, end) = (chunk.lines, chunk.end);
            }
            if text.is_empty() {
                return Ok(at);
            }
            let extra = self.extra_timeout(update.entry, text.len() as u64);
            let answer = self.client.update(text, update.uplink, extra).await;
            let answer = answer.map_err(|lost| self.lost(&lost))?;
            match answer.status {
                200..=299 => self.check_answer_is_of_store(&answer)?,
                400 | 413 | 500 if lines > MAX_LINES_OF_LIMITED_STORE => {
                    self.max_lines.store(MAX_LINES_OF_LIMITED_STORE, Ordering::Relaxed);
                    continue;
                }
                _ => return Err(self.refused(&answer)),
            }
            prepare = None;
            at = end;
        }
    }

    async fn read_chunk(
        &self,
        content: &ObjectContent,
        at: u64,
        limits: ChunkLimits,
        graphs: &ExportGraphs,
    ) -> Result<Option<Chunk>, DeliveryFailure> {
        let (file, staging) = (Arc::clone(&content.file), graphs.staging().to_owned());
        let read = run_io(move || chunks::read_chunk(&file, at, limits, &staging)).await;
        read.map_err(|error| match error {
            ChunkError::Damaged => DeliveryFailure::of_gateway(DAMAGED_FILE),
            ChunkError::TooLong(subject) => DeliveryFailure::of_gateway(format!(
                "a value of {subject} does not fit into an update of 1 MiB; set the target's `protocol` to \
                 `graph-store` and park the export, or shorten the value"
            )),
            ChunkError::Io(error) => unreadable_file_failure(&error),
        })
    }
}
