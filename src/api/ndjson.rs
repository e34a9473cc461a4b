//! Ingestion of a stream of lines. A stream of any length takes bounded memory. Each chunk has one line in the
//! response.
use crate::ingest::Job;
use crate::shapes::{ChunkPlace, Ingestion};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use penstock_http::body::{self, BodyPermit};
use penstock_http::problem::{Problem, ProblemDocument};
use penstock_http::reply::{Reply, ReplyResult};
use penstock_http::state::run_blocking;
use penstock_model::ingest::Body;
use penstock_service::blocking::task_ended_error;
use salvo::http::{ReqBody, ResBody};
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

const MEDIA_TYPE: &str = "application/x-ndjson";
/// The maximum number of objects of a chunk.
const MAX_CHUNK_OBJECTS: usize = 1000;
/// A chunk ends with the line in which it reaches this number of bytes.
const CHUNK_END_BYTES: usize = 1 << 20;
/// The size up to which a response line is small: that of a chunk without rejected objects, warnings and results of single
/// objects. The number of small lines is not limited, so that a client may send the whole stream before it reads.
const MAX_SMALL_LINE_BYTES: usize = 512;
/// The maximum bytes of larger response lines that the client has not read yet. One line may exceed it.
const MAX_PENDING_BYTES: u32 = 1 << 20;

/// Ingests the stream. The result of the first chunk determines the status, so the response begins after it.
pub(super) async fn ingest_stream(body: ReqBody, job: Job) -> ReplyResult {
    let mut chunks = Chunks::new(body, job)?;
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
            problem: ProblemDocument,
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
    chunker: LineChunker,
    permit: BodyPermit,
    /// The index of the chunk's first object: the number of objects in the chunks before it.
    first: usize,
    ended: bool,
}

impl Chunks {
    fn new(body: ReqBody, job: Job) -> Result<Self, Problem> {
        let permit = job.state.body_quotas.data.try_acquire(CHUNK_END_BYTES as u64);
        let permit = permit.inspect_err(|problem| job.log_refusal(problem))?;
        Ok(Self { body, job, chunker: LineChunker::default(), permit, first: 0, ended: false })
    }

    /// Ingests the next chunk and returns its line of the response.
    async fn ingest_next(&mut self) -> Option<Result<Bytes, FailedChunk>> {
        let chunk = match self.read_chunk().await {
            Ok(chunk) => chunk?,
            Err(problem) => {
                self.job.log_refusal(&problem);
                let place = self.place_of(self.chunker.line_numbers.len() + 1);
                return Some(Err(FailedChunk { problem, place }));
            }
        };
        let (place, job) = (self.place_of(chunk.line_numbers.len()), self.job.clone());
        let done = run_blocking(move || {
            // Chunks depend only on the bytes. So if the same stream is sent again with its `Idempotency-Key`, it
            // has the same chunks.
            let Chunk { text, line_numbers } = &chunk;
            let answer =
                job.ingest_body(Body::Lines { text, first: place.first_index, line_numbers })?;
            let (lists_objects, on_error) = (job.request.lists_objects, job.request.on_error);
            let ingestion = Ingestion::from_answer(answer, lists_objects, on_error);
            Ok(json_line(&ingestion.with_place(place)))
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
            if let Some(chunk) = self.chunker.next_chunk(self.ended) {
                return Ok(Some(chunk));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await {
                None => self.ended = true,
                Some(Err(error)) => return Err(body::body_read_error(&error)),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.chunker.text.extend_from_slice(&data);
                    self.permit.grow_to(self.chunker.text.len())?;
                    if self.chunker.unfinished_bytes() as u64 > limit {
                        return Err(body::line_too_large(limit));
                    }
                }
            }
        }
    }
}

/// Whole lines that are ingested together.
#[derive(Debug, PartialEq, Eq)]
struct Chunk {
    text: Vec<u8>,
    /// The number of each line in the stream, from 1. Each line is an object.
    line_numbers: Vec<u64>,
}

/// Splits a text into chunks of whole lines. The split depends only on the text, never on the pieces in which
/// it arrived. Blank lines are left out.
#[derive(Debug, Default)]
struct LineChunker {
    text: Vec<u8>,
    /// The start of the first line that is not in `line_numbers` yet.
    line_start: usize,
    /// The position up to which that line was searched for its end.
    searched: usize,
    /// The numbers of the lines before it, each of which is an object.
    line_numbers: Vec<u64>,
    /// The number of all lines before it in the stream, with blank ones.
    closed_lines: u64,
}

impl LineChunker {
    /// Returns the next chunk if it is complete, or the rest at the end of the text.
    fn next_chunk(&mut self, ended: bool) -> Option<Chunk> {
        while let Some(length) = self.text.get(self.searched..)?.iter().position(|b| *b == b'\n') {
            let end = self.searched + length + 1;
            self.close_line(end);
            if self.line_numbers.len() == MAX_CHUNK_OBJECTS || self.line_start >= CHUNK_END_BYTES {
                return Some(self.take_chunk());
            }
        }
        self.searched = self.text.len();
        if !ended {
            return None;
        }
        self.close_line(self.text.len());
        (!self.line_numbers.is_empty()).then(|| self.take_chunk())
    }

    /// Counts the line that ends before `end`, or removes it if it is blank.
    fn close_line(&mut self, end: usize) {
        self.closed_lines += 1;
        if self.text.get(self.line_start..end).is_some_and(|line| line.trim_ascii().is_empty()) {
            self.text.drain(self.line_start..end);
            self.searched = self.line_start;
        } else {
            self.line_numbers.push(self.closed_lines);
            self.line_start = end;
            self.searched = end;
        }
    }

    fn take_chunk(&mut self) -> Chunk {
        let rest = self.text.split_off(self.line_start);
        let text = std::mem::replace(&mut self.text, rest);
        let line_numbers = std::mem::take(&mut self.line_numbers);
        self.line_start = 0;
        self.searched = 0;
        Chunk { text, line_numbers }
    }

    /// Returns the bytes of the line that has no end yet.
    fn unfinished_bytes(&self) -> usize {
        self.text.len() - self.line_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn chunks(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<Chunk> {
        let (mut chunker, mut chunks) = (LineChunker::default(), Vec::new());
        for piece in pieces {
            chunker.text.extend_from_slice(&piece);
            while let Some(chunk) = chunker.next_chunk(false) {
                chunks.push(chunk);
            }
        }
        while let Some(chunk) = chunker.next_chunk(true) {
            chunks.push(chunk);
        }
        chunks
    }

    #[test]
    fn chunks_do_not_depend_on_the_pieces() {
        let mut text = Vec::new();
        for index in 0..2500 {
            text.extend_from_slice(format!("{{\"n\":{index}}}\r\n").as_bytes());
            if index % 100 == 0 {
                text.extend_from_slice(b" \n\n");
            }
        }
        text.extend_from_slice(br#"{"n":"last"}"#);
        let whole = chunks([text.clone()]);
        let counts: Vec<_> = whole.iter().map(|chunk| chunk.line_numbers.len()).collect();
        assert_eq!(counts, [1000, 1000, 501]);
        let numbers = whole.iter().flat_map(|chunk| chunk.line_numbers.iter().copied());
        let has_object = |line: &[u8]| !line.trim_ascii().is_empty();
        let lines = (1..).zip(text.split(|byte| *byte == b'\n'));
        let expected = lines.filter(|(_, line)| has_object(line)).map(|(number, _)| number);
        assert!(numbers.eq(expected), "blank lines count");
        for size in [1, 7, 4096] {
            assert_eq!(chunks(text.chunks(size).map(<[u8]>::to_vec)), whole, "{size}");
        }
        let joined: Vec<u8> = whole.into_iter().flat_map(|chunk| chunk.text).collect();
        let lines = |text: &[u8]| {
            let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
            lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        assert_eq!(lines(&joined), lines(&text));
    }

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

    #[test]
    fn a_chunk_ends_with_the_line_that_fills_it() {
        let line = [vec![b'x'; 400_000], vec![b'\n']].concat();
        let text = line.repeat(4);
        let found: Vec<_> =
            chunks([text]).iter().map(|c| (c.line_numbers.len(), c.text.len())).collect();
        assert_eq!(found, [(3, 1_200_003), (1, 400_001)]);
    }

    #[test]
    fn blank_text_has_no_chunk() {
        assert_eq!(chunks([b" \n\r\n  ".to_vec()]), []);
        assert_eq!(chunks([]), []);
    }
}
