//! `/control/dump` and `/control/load`, only over the control socket: the graph as a stream of RDF.
use crate::backup::{Pieces, stream_written};
use bytes::Bytes;
use http_body_util::BodyExt;
use oxrdf::GraphName;
use penstock_auth::Authorized;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::Query;
use penstock_http::reply::ReplyResult;
use penstock_http::state::{State, gateway, state};
use penstock_model::rdf::{self, DumpOptions, LoadError, LoadOptions, LoadProgress, LoadTarget};
use penstock_service::gateway::{Gateway, data_events};
use salvo::http::ReqBody;
use salvo::{Depot, Request, handler};
use serde_json::{Value, json};
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// The maximum number of pieces of a body that wait for the store.
const MAX_PENDING_PIECES: usize = 4;

/// Streams a dump. If the dump fails, the gateway breaks the connection.
#[handler]
pub(super) async fn dump(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["format", "graph"])?;
    let format = query.get("format").unwrap_or_default().parse().map_err(Problem::malformed)?;
    let graph = query.get("graph").map(rdf::parse_graph).transpose().map_err(Problem::malformed)?;
    let gateway = gateway(depot)?;
    let options = DumpOptions { format, graph };
    Ok(stream_written("application/octet-stream", move |pieces| {
        let out = BufWriter::with_capacity(64 << 10, &mut *pieces);
        let result = rdf::write_dump(&gateway.store, &options, out, &mut |_| {});
        gateway.auth.audit.record_event(data_events::dump_event(&options, &result));
        match result {
            Ok(quads) => tracing::info!(quads, "The graph was dumped."),
            Err(cause) => {
                tracing::warn!(%cause, "A dump failed.");
                pieces.break_connection(cause.to_string());
            }
        }
    }))
}

/// Loads the body. The response is NDJSON: a line after each commit, and a last one with `done` or the error.
#[handler]
pub(super) async fn load(req: &mut Request, depot: &mut Depot) -> ReplyResult {
    let query = Query::read(req, &["format", "graph", "base", "skolemize"])?;
    let iri =
        |name: &str| query.get(name).map(rdf::parse_iri).transpose().map_err(Problem::malformed);
    let graph = query.get("graph").map(rdf::parse_graph).transpose().map_err(Problem::malformed)?;
    let options = LoadOptions {
        format: query.get("format").unwrap_or_default().parse().map_err(Problem::malformed)?,
        graph: graph.unwrap_or(GraphName::DefaultGraph),
        base: iri("base")?,
        skolemize: iri("skolemize")?,
    };
    let (state, gateway) = (state(depot), gateway(depot)?);
    let (sender, frames) = mpsc::channel(MAX_PENDING_PIECES);
    tokio::spawn(forward_body(req.take_body(), sender));
    let body = IncomingBody { frames, piece: Bytes::new(), ended: false };
    let by = caller(depot).clone();
    Ok(stream_written("application/x-ndjson", move |pieces| {
        let last = match load_body(&state, (&gateway, &by), &options, body, pieces) {
            Ok(loaded) => progress_json(loaded, json!({"done": true})),
            Err(LoadError { error, loaded }) => {
                progress_json(loaded, json!({"fault": error.to_string()}))
            }
        };
        // If the client has disconnected, the log has the result.
        let _ = writeln!(pieces, "{last}");
    }))
}

fn load_body(
    state: &State,
    (gateway, by): (&Gateway, &Authorized),
    options: &LoadOptions,
    body: IncomingBody,
    pieces: &mut Pieces,
) -> Result<LoadProgress, LoadError> {
    let target = LoadTarget {
        store: &gateway.store,
        check: by,
        disk: &gateway.disk,
        watch: gateway.catalogue.watch(),
    };
    let result = rdf::load_document(&target, options, body, &mut |loaded| {
        if state.is_stopping() {
            let later = ErrorClass::Unavailable(Duration::from_secs(5));
            return Err(GatewayError::new(later, "the gateway is stopping"));
        }
        // Loading continues even if the client has disconnected.
        let _ = writeln!(pieces, "{}", progress_json(loaded, json!({})));
        Ok(())
    });
    gateway.auth.audit.record_event(data_events::load_event(options, &result));
    match &result {
        Ok(LoadProgress { quads, added, commits }) => {
            tracing::info!(quads, added, commits, "A document was loaded.");
        }
        Err(LoadError { error: fault, loaded: LoadProgress { quads, added, commits } }) => {
            tracing::warn!(quads, added, commits, cause = %fault, "A document was loaded in part.");
        }
    }
    result
}

fn progress_json(loaded: LoadProgress, mut members: Value) -> Value {
    let LoadProgress { quads, added, commits } = loaded;
    if let Some(members) = members.as_object_mut() {
        members.insert("quads".to_owned(), quads.into());
        members.insert("added".to_owned(), added.into());
        members.insert("commits".to_owned(), commits.into());
    }
    members
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
