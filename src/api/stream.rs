//! Ingestion of a stream: NDJSON or CSV. A stream of any length takes bounded memory. Each chunk has one line in the
//! response.

mod chunker;
mod decoder;

use crate::ingest::job::Job;
use bytes::Bytes;
use chunker::{CHUNK_END_BYTES, Chunk, Chunker};
use decoder::TextDecoder;
use futures_util::stream;
use http_body_util::BodyExt;
use penstock_http::body::{self, BodyPermit};
use penstock_http::problem::Problem;
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::run_ingestion;
use penstock_model::csv::{CsvFormat, CsvHeader};
use penstock_model::ingest::Body;
use penstock_resources::ingestion::ChunkPlace;
use penstock_resources::problem;
use penstock_service::blocking::task_ended_error;
use salvo::http::{ReqBody, ResBody};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

const MEDIA_TYPE: &str = "application/x-ndjson";
/// The size up to which a response line is small: that of a chunk without rejected objects, warnings and results of single
/// objects. The number of small lines is not limited, so that a client may send the whole stream before it reads.
const MAX_SMALL_LINE_BYTES: usize = 512;
/// The maximum bytes of larger response lines that the client has not read yet. One line may exceed it.
const MAX_PENDING_BYTES: u32 = 1 << 20;

/// The form of a stream.
#[derive(Debug, Clone)]
pub(super) enum StreamForm {
    /// One JSON object per line.
    Lines,
    /// CSV in this charset.
    Csv {
        /// The format of the records.
        format: CsvFormat,
        /// The label of the charset; `None` for UTF-8.
        charset: Option<String>,
    },
}

/// Ingests the stream. The result of the first chunk determines the status, so the response begins after it.
pub(super) async fn ingest_stream(body: ReqBody, job: Job, form: StreamForm) -> ReplyResult {
    let mut chunks = Chunks::new(body, job, form)?;
    // In a task of its own: a chunk that is being ingested keeps its permit even if the client disconnects.
    let begun = tokio::spawn(async move { (chunks.ingest_next().await, chunks) });
    let (first, mut chunks) =
        begun.await.map_err(|error| Problem::from(task_ended_error(&error)))?;
    let Some(first) = first else {
        return Ok(Reply::bytes(MEDIA_TYPE, ""));
    };
    let first = match first {
        Ok(line) => line,
        Err(failed) => {
            body::discard_body(chunks.body);
            return Err(failed.problem);
        }
    };
    let (lines, answer) = LineSender::new();
    tokio::spawn(async move {
        let mut line = first;
        loop {
            // The client no longer reads the response, so it would not learn the result of further chunks.
            if !lines.send(line).await {
                return;
            }
            line = match chunks.ingest_next().await {
                Some(Ok(line)) => line,
                Some(Err(failed)) => {
                    lines.send(failed.into_line()).await;
                    body::discard_body(chunks.body);
                    return;
                }
                None => return,
            };
        }
    });
    let answer = stream::unfold(answer, |mut answer| async move {
        answer.recv().await.map(|line| (Ok::<_, Infallible>(line.bytes), answer))
    });
    Ok(Reply::stream(MEDIA_TYPE, ResBody::stream(answer)))
}

/// A line of the response that waits for the client.
struct PendingLine {
    bytes: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Sends lines of the response. Waits while too many bytes are unread.
struct LineSender {
    lines: mpsc::UnboundedSender<PendingLine>,
    /// One permit for each byte.
    capacity: Arc<Semaphore>,
}

impl LineSender {
    fn new() -> (Self, mpsc::UnboundedReceiver<PendingLine>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let capacity = Arc::new(Semaphore::new(MAX_PENDING_BYTES as usize));
        (Self { lines, capacity }, receiver)
    }

    /// Sends a line. Returns false if the client no longer reads the response.
    async fn send(&self, bytes: Bytes) -> bool {
        let permit = if bytes.len() <= MAX_SMALL_LINE_BYTES {
            None
        } else {
            let weight = u32::try_from(bytes.len()).unwrap_or(u32::MAX).min(MAX_PENDING_BYTES);
            tokio::select! {
                permit = self.capacity.clone().acquire_many_owned(weight) => permit.ok(),
                () = self.lines.closed() => return false,
            }
        };
        self.lines.send(PendingLine { bytes, _permit: permit }).is_ok()
    }
}

/// A chunk that failed, and its place in the stream.
struct FailedChunk {
    problem: Problem,
    place: ChunkPlace,
}

impl FailedChunk {
    fn into_line(self) -> Bytes {
        #[derive(Serialize)]
        struct FailedLine {
            #[serde(flatten)]
            problem: problem::Problem,
            #[serde(flatten)]
            place: ChunkPlace,
        }
        let problem = self.problem.with_prefix("Ingestion failed: ").into();
        json_line(&FailedLine { problem, place: self.place })
    }
}

fn json_line(value: &impl Serialize) -> Bytes {
    // An answer is plain data, which always has a JSON form.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

/// The chunks of a stream.
struct Chunks {
    body: ReqBody,
    job: Job,
    chunker: Chunker,
    decoder: TextDecoder,
    /// The header of CSV, after it was read.
    header: Option<Arc<CsvHeader>>,
    permit: BodyPermit,
    /// The index of the chunk's first object: the number of objects in the chunks before it.
    first: usize,
    ended: bool,
}

impl Chunks {
    fn new(body: ReqBody, job: Job, form: StreamForm) -> Result<Self, Problem> {
        let create = || {
            let permit = job.state.body_quotas.data.try_acquire(CHUNK_END_BYTES as u64)?;
            let (chunker, decoder) = match form {
                StreamForm::Lines => (Chunker::of_lines(), TextDecoder::default()),
                StreamForm::Csv { format, charset } => {
                    (Chunker::of_records(format), TextDecoder::new(charset.as_deref())?)
                }
            };
            Ok((permit, chunker, decoder))
        };
        let created = create().inspect_err(|problem| job.log_refusal(problem));
        let (permit, chunker, decoder) = created?;
        Ok(Self { body, job, chunker, decoder, header: None, permit, first: 0, ended: false })
    }

    /// Ingests the next chunk and returns its line of the response.
    async fn ingest_next(&mut self) -> Option<Result<Bytes, FailedChunk>> {
        let chunk = match self.read_chunk().await {
            Ok(chunk) => chunk?,
            Err(problem) => {
                self.job.log_refusal(&problem);
                let place = self.place_of(self.chunker.object_count() + 1);
                return Some(Err(FailedChunk { problem, place }));
            }
        };
        let (place, job) = (self.place_of(chunk.line_numbers.len()), self.job.clone());
        let header = self.header.clone();
        let done = run_ingestion(move || {
            // Chunks depend only on the bytes. So if the same stream is sent again with its `Idempotency-Key`, it
            // has the same chunks.
            let Chunk { text, line_numbers } = &chunk;
            let first = place.first_index;
            let begun = job.ingest_body(match &header {
                Some(header) => Body::Records { text, header, first, line_numbers },
                None => Body::Lines { text, first, line_numbers },
            })?;
            let (lists_objects, on_error) = (job.request.lists_objects, job.request.on_error);
            let line = begun.map(|answer| {
                json_line(&answer.into_ingestion(lists_objects, on_error).with_place(place))
            });
            Ok(async { Ok(line.synced().await?) })
        });
        match done.await {
            Ok(line) => {
                self.first = place.last_index + 1;
                Some(Ok(line))
            }
            Err(problem) => Some(Err(FailedChunk { problem, place })),
        }
    }

    /// Returns the place of a chunk of this many objects that comes next.
    fn place_of(&self, objects: usize) -> ChunkPlace {
        ChunkPlace { first_index: self.first, last_index: self.first + objects.saturating_sub(1) }
    }

    /// Reads until a chunk is complete. `None` at the end of the stream.
    async fn read_chunk(&mut self) -> Result<Option<Chunk>, Problem> {
        let limit = self.job.state.settings().limits.body_bytes;
        loop {
            if self.job.state.is_stopping() {
                return Err(Problem::unavailable(
                    5,
                    "the gateway is stopping; send the rest again later",
                ));
            }
            if self.chunker.needs_header() {
                if let Some((text, line)) = self.chunker.take_header(self.ended)? {
                    let header = CsvHeader::read(&text, self.chunker.format(), line)?;
                    self.job.check_header(&header)?;
                    self.chunker.begin_records(header.text.len(), header.column_count());
                    self.header = Some(Arc::new(header));
                    continue;
                }
            } else if let Some(chunk) = self.chunker.next_chunk(self.ended)? {
                return Ok(Some(chunk));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await {
                None => {
                    self.decoder.finish(&mut self.chunker.text)?;
                    self.ended = true;
                }
                Some(Err(error)) => return Err(body::body_read_error(&error)),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.decoder.decode(&data, &mut self.chunker.text)?;
                    self.permit.grow_to(self.chunker.text.len())?;
                    if self.chunker.unfinished_bytes() as u64 > limit {
                        return Err(self.chunker.describe_too_large(limit));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn unread_lines_are_bounded_by_their_bytes_but_small_ones_are_free() {
        let (lines, mut answer) = LineSender::new();
        let line = Bytes::from(vec![b'x'; 4000]);
        let fitting = MAX_PENDING_BYTES as usize / line.len();
        for _ in 0..fitting {
            assert!(lines.send(line.clone()).await);
        }
        let mut next = Box::pin(lines.send(line.clone()));
        assert!((&mut next).now_or_never().is_none());
        assert!(lines.send(Bytes::from(vec![b'x'; MAX_SMALL_LINE_BYTES])).await);
        answer.recv().await.unwrap();
        assert!(next.await);
        while answer.try_recv().is_ok() {}
        let larger_than_all = Bytes::from(vec![b'x'; 2 << 20]);
        assert!(lines.send(larger_than_all).await);
        drop(answer);
        assert!(!lines.send(line).await);
    }
}
