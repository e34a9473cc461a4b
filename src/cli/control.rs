//! The client of a running service's control socket: `<data-dir>/control.sock`, HTTP/1.1.
use super::{output, owner};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use penstock_service::gateway::store_path;
use penstock_store::is_in_use;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Bytes of an upload that are read at once.
const UPLOAD_CHUNK_BYTES: usize = 64 << 10;

/// What helps if the disk of an output is full.
pub(super) const FULL_OUTPUT_REMEDY: &str = "free space there, or choose a file on another disk";

/// The trailer with a warning about a response.
const WARNING_TRAILER: &str = "penstock-warning";

/// The maximum time that a command waits for a service that has the store open and does not answer yet.
const MAX_WAIT: Duration = Duration::from_mins(1);
/// The time in which a service that has closed the store may be started again. A command that opened the store meanwhile
/// would keep it from starting.
const RESTART_TIME: Duration = Duration::from_secs(3);
const WAIT_INTERVAL: Duration = Duration::from_millis(250);
/// The time after which the command says that it waits.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// The maximum number of items on a page of a list.
const MAX_PAGE_ITEMS: usize = 100;

/// Sends a request without a body to the service, and returns the JSON of the response; `None` if no service runs.
///
/// # Errors
/// Why there is no response, or the error that the response describes.
pub(super) async fn request_json(
    data_dir: &Path,
    method: Method,
    path: &str,
) -> Result<Option<Value>, String> {
    request_json_with_body(data_dir, method, path, None).await
}

/// Sends a request with an optional JSON body, as [`request_json`]. An empty response gives null.
///
/// # Errors
/// As [`request_json`].
pub(super) async fn request_json_with_body(
    data_dir: &Path,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Option<Value>, String> {
    let Some(response) = send_request(data_dir, method, path, body).await? else { return Ok(None) };
    let status = response.status();
    parse_response(status, &read_whole_body(response).await?).map(Some)
}

/// Whether a service runs.
///
/// # Errors
/// Why that is unknown.
pub(super) async fn is_served(data_dir: &Path) -> Result<bool, String> {
    Ok(connect_to_service(data_dir).await?.is_some())
}

/// Builds a path with a query.
pub(super) fn path_with_query(path: &str, query: &[(&str, String)]) -> String {
    let parameters = query
        .iter()
        .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
    format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}

/// Reads at most `limit` items of a list from the service, page by page; `None` if no service runs.
///
/// # Errors
/// As [`request_json`].
pub(super) async fn list_items(
    data_dir: &Path,
    path: &str,
    limit: usize,
) -> Result<Option<Vec<Value>>, String> {
    let mut items: Vec<Value> = Vec::new();
    let mut cursor = String::new();
    loop {
        let count = MAX_PAGE_ITEMS.min(limit - items.len());
        let page = format!("{path}?limit={count}{cursor}");
        let Some(mut page) = request_json(data_dir, Method::GET, &page).await? else {
            return Ok(None);
        };
        if let Some(Value::Array(more)) = page.get_mut("items").map(Value::take) {
            items.extend(more);
        }
        match page.get("next").and_then(Value::as_str) {
            Some(next) if items.len() < limit => {
                cursor = format!("&cursor={}", utf8_percent_encode(next, NON_ALPHANUMERIC));
            }
            _ => return Ok(Some(items)),
        }
    }
}

/// A response that was written completely.
pub(super) struct Downloaded {
    /// The warning in its trailer.
    pub(super) warning: Option<String>,
}

/// Writes the response of the service to `out` as it arrives; returns `None` if no service runs.
///
/// # Errors
/// Why there is no complete response, or the error that the response describes.
pub(super) async fn download_to(
    data_dir: &Path,
    path: &str,
    out: &mut dyn Write,
) -> Result<Option<Downloaded>, String> {
    match send_request(data_dir, Method::GET, path, None).await? {
        Some(response) => write_response(response, out).await.map(Some),
        None => Ok(None),
    }
}

/// Sends a text, and writes the response of the service to `out` as it arrives; returns `false` if no service runs.
///
/// # Errors
/// As [`download_to`].
pub(super) async fn post_text_to(
    data_dir: &Path,
    path: &str,
    text: String,
    out: &mut dyn Write,
) -> Result<bool, String> {
    let Some(mut connection) = connect_to_service(data_dir).await? else { return Ok(false) };
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let response = connection.send_request(Method::POST, path, Some("text/plain"), body).await?;
    write_response(response, out).await.map(|_| true)
}

async fn write_response(
    mut response: Response<Incoming>,
    out: &mut dyn Write,
) -> Result<Downloaded, String> {
    let status = response.status();
    if !status.is_success() {
        return parse_response(status, &read_whole_body(response).await?)
            .map(|_| Downloaded { warning: None });
    }
    let mut downloaded = Downloaded { warning: None };
    while let Some(frame) = response.frame().await {
        let frame = frame.map_err(|error| {
            format!("the service's response was interrupted: {error}; its log has the cause")
        })?;
        if let Some(bytes) = frame.data_ref() {
            out.write_all(bytes).map_err(|error| describe_write_error(&error))?;
        }
        let value = frame.trailers_ref().and_then(|trailers| trailers.get(WARNING_TRAILER));
        downloaded.warning = value.and_then(|value| value.to_str().ok()).map(str::to_owned);
    }
    Ok(downloaded)
}

fn describe_write_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("writing failed: {error}; {FULL_OUTPUT_REMEDY}")
        }
        _ => format!("writing failed: {error}"),
    }
}

/// Sends a text as it is read, and passes each line of the NDJSON response to `line`, which may break. Returns `false`
/// if no service runs.
///
/// # Errors
/// As [`download_to`], or that reading the text fails.
pub(super) async fn upload_for_lines(
    data_dir: &Path,
    path: &str,
    mut text: impl Read + Send + 'static,
    line: &mut dyn FnMut(Value) -> ControlFlow<()>,
) -> Result<bool, String> {
    let (sender, receiver) = mpsc::channel::<io::Result<Frame<Bytes>>>(2);
    let frames = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|frame| (frame, receiver))
    });
    let body = BodyExt::boxed(StreamBody::new(frames));
    let Some(mut sending) = connect_to_service(data_dir).await? else { return Ok(false) };
    std::thread::spawn(move || {
        loop {
            let mut piece = vec![0; UPLOAD_CHUNK_BYTES];
            let read = text.read(&mut piece).map(|read| {
                piece.truncate(read);
                Frame::data(Bytes::from(piece))
            });
            let ended =
                read.as_ref().is_ok_and(|frame| frame.data_ref().is_none_or(Bytes::is_empty));
            let failed = read.is_err();
            // An error breaks the connection, so that a partial text does not look complete.
            if ended || sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    let mut response = sending.send_request(Method::POST, path, None, body).await?;
    let status = response.status();
    if !status.is_success() {
        return parse_response(status, &read_whole_body(response).await?).map(|_| true);
    }
    let mut rest = Vec::new();
    while let Some(frame) = response.frame().await {
        let frame = frame.map_err(|error| {
            format!("the service's response was interrupted: {error}; its log has the cause")
        })?;
        rest.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let value: Vec<u8> = rest.drain(..=end).collect();
            if line(parse_response(status, &value)?).is_break() {
                return Ok(true);
            }
        }
    }
    Ok(true)
}

async fn read_whole_body(response: Response<Incoming>) -> Result<Bytes, String> {
    let body = response.into_body().collect().await;
    Ok(body.map_err(|error| format!("the service's response was interrupted: {error}"))?.to_bytes())
}

async fn send_request(
    data_dir: &Path,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Option<Response<Incoming>>, String> {
    match connect_to_service(data_dir).await? {
        Some(mut sending) => {
            let json = body.map(|_| "application/json");
            let body = Bytes::from(body.map(Value::to_string).unwrap_or_default());
            let body = Full::new(body).map_err(|never| match never {}).boxed();
            sending.send_request(method, path, json, body).await.map(Some)
        }
        None => Ok(None),
    }
}

type Body = BoxBody<Bytes, io::Error>;

/// A connection to the service.
struct ServiceConnection {
    sender: SendRequest<Body>,
    socket: PathBuf,
}

/// Connects to the service; `None` if none runs.
async fn connect_to_service(data_dir: &Path) -> Result<Option<ServiceConnection>, String> {
    let socket = data_dir.join("control.sock");
    let Some(stream) = open_stream(data_dir, &socket).await? else { return Ok(None) };
    let peer = stream.peer_cred().map_err(|error| format!("{}: {error}", socket.display()))?;
    owner::check_peer(data_dir, &socket, peer.uid())?;
    let failed = |error: hyper::Error| format!("{}: {error}", socket.display());
    let (sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // The task ends with the sender; its error shows in the response too.
    tokio::spawn(connection);
    Ok(Some(ServiceConnection { sender, socket }))
}

/// Opens a stream to the service; `None` if none runs. A service that starts, stops or restarts has no socket: waits until
/// it answers or has ended.
async fn open_stream(data_dir: &Path, socket: &Path) -> Result<Option<UnixStream>, String> {
    let (mut wait, mut is_reported) = (ServiceWait::begin(Instant::now()), false);
    loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            // The path is too long for a socket (unix(7)), so no service has created it.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                if !is_in_use(&store_path(data_dir)) {
                    return Ok(None);
                }
                return Err(format!(
                    "{}: {error}; a service that runs cannot be asked there: stop it, or give it a data directory with a \
                     shorter path",
                    socket.display()
                ));
            }
            Err(error) => {
                return Err(format!(
                    "{}: {error}; only root and the user that the service runs as may connect to it",
                    socket.display()
                ));
            }
        }
        let now = Instant::now();
        if !wait.is_due(is_in_use(&store_path(data_dir)), now) {
            return Ok(None);
        }
        if now.duration_since(wait.begun) >= REPORT_AFTER
            && !std::mem::replace(&mut is_reported, true)
        {
            output::print_error_line(
                "penstock: waiting up to 1 min for the process that has the store open, such as a service that starts",
            );
        }
        sleep(WAIT_INTERVAL).await;
    }
}

/// The wait for a service that does not answer.
struct ServiceWait {
    begun: Instant,
    /// When a process had the store open last.
    in_use_at: Option<Instant>,
}

impl ServiceWait {
    fn begin(begun: Instant) -> Self {
        Self { begun, in_use_at: None }
    }

    /// Returns whether to wait longer.
    fn is_due(&mut self, is_in_use: bool, now: Instant) -> bool {
        if is_in_use {
            self.in_use_at = Some(now);
        }
        let may_restart = self.in_use_at.is_some_and(|at| now.duration_since(at) < RESTART_TIME);
        may_restart && now.duration_since(self.begun) < MAX_WAIT
    }
}

impl ServiceConnection {
    async fn send_request(
        &mut self,
        method: Method,
        path: &str,
        media_type: Option<&str>,
        body: Body,
    ) -> Result<Response<Incoming>, String> {
        let mut request =
            Request::builder().method(method).uri(path).header(hyper::header::HOST, "localhost");
        request = request.header(hyper::header::TE, "trailers");
        if let Some(media_type) = media_type {
            request = request.header(hyper::header::CONTENT_TYPE, media_type);
        }
        let request = request.body(body).map_err(|error| format!("{path}: {error}"))?;
        let failed = |error: hyper::Error| format!("{}: {error}", self.socket.display());
        self.sender.send_request(request).await.map_err(failed)
    }
}

fn parse_response(status: StatusCode, body: &[u8]) -> Result<Value, String> {
    if status == StatusCode::NO_CONTENT {
        return Ok(Value::Null);
    }
    let value = serde_json::from_slice::<Value>(body);
    if status.is_success() {
        return value.map_err(|error| format!("parsing the service's response failed: {error}"));
    }
    let value = value.unwrap_or_default();
    let text = |value: &Value, member: &str| value.get(member)?.as_str().map(str::to_owned);
    let mut message =
        text(&value, "detail").unwrap_or_else(|| format!("the service answered {status}"));
    for finding in value.get("errors").and_then(Value::as_array).into_iter().flatten() {
        let place = text(finding, "pointer").filter(|pointer| !pointer.is_empty());
        let number = |member: &str| finding.get(member).and_then(Value::as_u64);
        let line = number("line").zip(number("column"));
        let line = line.map(|(line, column)| format!("line {line}, column {column}"));
        let place = place.or(line).map_or_else(String::new, |place| format!("{place}: "));
        // Writing into a string cannot fail.
        let _ = write!(message, "\n  {place}{}", text(finding, "message").unwrap_or_default());
    }
    Err(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_of_the_output_is_reported_with_its_remedy() {
        let full = describe_write_error(&io::Error::from_raw_os_error(28));
        assert!(full.starts_with("writing failed: No space left") && full.contains("another disk"));
    }

    #[test]
    fn a_command_waits_for_a_service_that_restarts_and_for_no_other() {
        let begun = Instant::now();
        let mut wait = ServiceWait::begin(begun);
        assert!(!wait.is_due(false, begun), "no service runs");
        let stopped = begun + Duration::from_secs(5);
        assert!(wait.is_due(true, begun) && wait.is_due(true, stopped));
        // The service that starts opens the store, not the command.
        assert!(wait.is_due(false, stopped + RESTART_TIME / 2));
        assert!(!wait.is_due(false, stopped + RESTART_TIME));
        assert!(wait.is_due(true, begun + MAX_WAIT / 2));
        assert!(!wait.is_due(true, begun + MAX_WAIT));
    }

    #[test]
    fn an_error_is_reported_with_its_detail() {
        let error = parse_response(StatusCode::NOT_FOUND, br#"{"detail": "there is no export x"}"#);
        assert_eq!(error, Err("there is no export x".to_owned()));
        assert!(parse_response(StatusCode::BAD_GATEWAY, b"<html>").unwrap_err().contains("502"));
        let error = br#"{"detail": "no", "errors": [{"pointer": "/a", "message": "wrong"}]}"#;
        assert_eq!(parse_response(StatusCode::CONFLICT, error), Err("no\n  /a: wrong".to_owned()));
        let error =
            br#"{"detail": "no", "errors": [{"line": 2, "column": 3, "message": "wrong"}]}"#;
        let place = "no\n  line 2, column 3: wrong".to_owned();
        assert_eq!(parse_response(StatusCode::BAD_REQUEST, error), Err(place));
        assert_eq!(parse_response(StatusCode::NO_CONTENT, b""), Ok(Value::Null));
        assert!(parse_response(StatusCode::OK, b"<html>").is_err());
        assert_eq!(parse_response(StatusCode::OK, b"{}"), Ok(serde_json::json!({})));
    }
}
