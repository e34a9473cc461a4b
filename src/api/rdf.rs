//! `/control/dump` and `/control/load`, only over the control socket: the graph as a stream of RDF.
use crate::backup::stream_written;
use bytes::Bytes;
use http_body_util::BodyExt;
use oxrdf::GraphName;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::access::MinimumRole::Local;
use penstock_http::call::Call;
use penstock_http::operation::{Operation, get, post};
use penstock_http::problem::Problem;
use penstock_http::reply::ReplyResult;
use penstock_model::rdf::{
    DumpOptions, Dumped, Format, LoadError, LoadOptions, LoadProgress, parse_graph, parse_iri,
};
use penstock_service::rdf;
use salvo::http::ReqBody;
use serde::Serialize;
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The maximum number of pieces of a body that wait for the store.
const MAX_PENDING_PIECES: usize = 4;

/// Returns the operations of the control socket.
pub(super) fn operations() -> Vec<Operation> {
    vec![get("/control/dump", Local, dump_graph), post("/control/load", Local, load_document)]
}

penstock_http::parameters! {
    /// What is dumped.
    struct DumpQuery {
        "format" => format: Option<String>, "The format of the output: ttl, nt, nq, trig, rdf or jsonld.";
        "graph" => graph: Option<String>, "The only graph to dump: its IRI, or `default`.";
    }
}

/// Streams a dump. If the dump fails, the gateway breaks the connection. A trailer warns if the
/// dump may mix several commits.
async fn dump_graph(call: Call<'_>, query: DumpQuery) -> ReplyResult {
    let format = read_format(query.format.as_deref())?;
    let graph = read_graph(query.graph.as_deref())?;
    let (gateway, by) = (call.gateway()?, call.caller().clone());
    let options = DumpOptions { format, graph };
    // An error within the stream breaks it without a reason.
    options.check()?;
    Ok(stream_written("application/octet-stream", move |pieces| {
        let out = BufWriter::with_capacity(64 << 10, &mut *pieces);
        rdf::dump_graph(&gateway, &by, &options, out).map(Dumped::to_warning)
    }))
}

penstock_http::parameters! {
    /// How the body is loaded.
    struct LoadQuery {
        "format" => format: Option<String>, "The format of the document: ttl, nt, nq, trig, rdf or jsonld.";
        "graph" => graph: Option<String>, "The graph for triples that the document assigns to no graph: its IRI, or `default`.";
        "base" => base: Option<String>, "The base of relative IRIs.";
        "skolemize" => skolemize: Option<String>, "Replace each blank node by an IRI that begins with this one.";
        "bypass" => bypass: bool, "Change objects of Business Objects that refuse what violates their shapes.";
    }
}

/// Loads the body. The response is NDJSON: a line after each commit, and a last one with `done` or the error.
async fn load_document(call: Call<'_>, query: LoadQuery) -> ReplyResult {
    let iri = |text: Option<&str>| text.map(parse_iri).transpose().map_err(Problem::malformed);
    let options = LoadOptions {
        format: read_format(query.format.as_deref())?,
        graph: read_graph(query.graph.as_deref())?.unwrap_or(GraphName::DefaultGraph),
        base: iri(query.base.as_deref())?,
        skolemize: iri(query.skolemize.as_deref())?,
        bypass: query.bypass,
    };
    let (state, gateway, by) = (call.state(), call.gateway()?, call.caller().clone());
    let (sender, frames) = mpsc::channel(MAX_PENDING_PIECES);
    tokio::spawn(forward_body(call.req.take_body(), sender));
    let body = IncomingBody { frames, piece: Bytes::new(), ended: false };
    Ok(stream_written("application/x-ndjson", move |pieces| {
        let loaded = rdf::load_document(&gateway, &by, &options, body, &mut |loaded| {
            if state.is_stopping() {
                let later = ErrorClass::Unavailable(Duration::from_secs(5));
                return Err(GatewayError::new(later, "the gateway is stopping"));
            }
            // Loading continues even if the client has disconnected.
            let _ = write_line(pieces, &LoadLine::from(loaded));
            Ok(())
        });
        let last = match loaded {
            Ok(loaded) => LoadLine { done: Some(true), ..loaded.into() },
            Err(LoadError { error, loaded }) => {
                LoadLine { fault: Some(error.to_string()), ..loaded.into() }
            }
        };
        // If the client has disconnected, the log has the result.
        let _ = write_line(pieces, &last);
        Ok(None)
    }))
}

fn read_format(text: Option<&str>) -> Result<Format, Problem> {
    text.unwrap_or_default().parse().map_err(Problem::malformed)
}

fn read_graph(text: Option<&str>) -> Result<Option<GraphName>, Problem> {
    text.map(parse_graph).transpose().map_err(Problem::malformed)
}

/// A line of the response to a load.
#[derive(Default, Serialize)]
struct LoadLine {
    /// Whether the whole document is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<bool>,
    /// Why the load ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    quads: u64,
    added: u64,
    commits: u64,
}

impl From<LoadProgress> for LoadLine {
    fn from(LoadProgress { quads, added, commits }: LoadProgress) -> Self {
        Self { quads, added, commits, ..Self::default() }
    }
}

fn write_line(out: &mut impl Write, line: &LoadLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)
}

/// Passes on the pieces of a body, then its end. If the receiver is gone, reads and drops the rest: a client that
/// is still sending would otherwise get a connection reset instead of the response.
async fn forward_body(mut body: ReqBody, sender: Sender<io::Result<Option<Bytes>>>) {
    let mut is_received = true;
    loop {
        let piece = match body.frame().await {
            None => Ok(None),
            Some(Err(error)) => Err(error),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => Ok(Some(data)),
                Err(_) => continue,
            },
        };
        let continues = matches!(piece, Ok(Some(_)));
        is_received = is_received && sender.send(piece).await.is_ok();
        if !continues {
            return;
        }
    }
}

/// A body that is read while it arrives, on a thread that may block.
struct IncomingBody {
    frames: Receiver<io::Result<Option<Bytes>>>,
    piece: Bytes,
    ended: bool,
}

impl Read for IncomingBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() && !self.ended {
            match self.frames.blocking_recv() {
                Some(Ok(Some(piece))) => self.piece = piece,
                Some(Ok(None)) => self.ended = true,
                Some(Err(error)) => return Err(error),
                // A truncated body must not look complete.
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let read = buffer.len().min(self.piece.len());
        let taken = self.piece.split_to(read);
        if let Some(buffer) = buffer.get_mut(..read) {
            buffer.copy_from_slice(&taken);
        }
        Ok(read)
    }
}
