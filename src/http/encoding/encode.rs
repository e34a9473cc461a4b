//! Compresses responses for clients that accept it.
//!
//! Pages are not compressed: they have the session's token beside text that others may choose, and the length of the
//! compressed page would disclose it (BREACH).

use super::Encoding;
use crate::accept::preferred_encoding;
use crate::state::state;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use salvo::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY,
};
use salvo::http::{ResBody, StatusCode};
use salvo::hyper::body::{Body, Frame};
use salvo::{Depot, Request, Response};
use std::io::{self, Write as _};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::coop::poll_proceed;
use zstd::stream::raw::CParameter;

/// The maximum number of bytes of a response that is not compressed.
const MAX_UNCOMPRESSED_BYTES: usize = 1 << 10;
/// The maximum number of bytes of a response that is compressed before it is sent, so that no encoder waits for its
/// client. It takes about a millisecond.
const MAX_BYTES_AT_ONCE: usize = 64 << 10;
/// The bytes that are compressed at once in a longer response.
const PIECE_BYTES: usize = 16 << 10;
/// The window of zstd, as a power of two. With it, an encoder takes about 1 MiB.
const ZSTD_WINDOW_LOG: u32 = 17;

/// Compresses a small response at once, before its bytes are counted.
pub(crate) fn compress_small_response(req: &Request, res: &mut Response) {
    let ResBody::Once(bytes) = &res.body else { return };
    if !(MAX_UNCOMPRESSED_BYTES + 1..=MAX_BYTES_AT_ONCE).contains(&bytes.len()) {
        return;
    }
    let bytes = bytes.clone();
    let Some(encoding) = negotiate(req, res) else { return };
    let compressed = Encoder::new(encoding).and_then(|mut encoder| {
        encoder.write_all(&bytes)?;
        encoder.finish()
    });
    if let Ok(compressed) = compressed
        && compressed.len() < bytes.len()
    {
        declare(encoding, res);
        res.replace_body(ResBody::Once(compressed.into()));
    }
}

/// Compresses a longer response, or a stream, while it is sent. Without a permit for an encoder it stays as it is.
pub(crate) fn compress_long_response(req: &Request, depot: &Depot, res: &mut Response) {
    if res.status_code == Some(StatusCode::NOT_MODIFIED) {
        declare_variants(res);
    }
    match &res.body {
        ResBody::Once(bytes) if bytes.len() <= MAX_BYTES_AT_ONCE => return,
        ResBody::None | ResBody::Error(_) => return,
        _ => {}
    }
    let Some(encoding) = negotiate(req, res) else { return };
    let Ok(permit) = state(depot).stream_encoders.clone().try_acquire_owned() else { return };
    let Ok(encoder) = Encoder::new(encoding) else { return };
    declare(encoding, res);
    let inner = res.take_body();
    let body = CompressedBody {
        inner,
        rest: Bytes::new(),
        encoder: Some((encoder, permit)),
        has_unflushed: false,
    };
    res.replace_body(ResBody::Boxed(Box::pin(body)));
}

/// Returns the coding of a response that may be compressed, and declares its variants.
fn negotiate(req: &Request, res: &mut Response) -> Option<Encoding> {
    let has_content = !matches!(
        res.status_code,
        Some(StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT)
    );
    let headers = res.headers_mut();
    if !has_content
        || headers.contains_key(CONTENT_ENCODING)
        || !headers.get(CONTENT_TYPE).is_some_and(is_compressible)
    {
        return None;
    }
    declare_variants(res);
    preferred_encoding(req.headers())
}

/// Declares that the response depends on `Accept-Encoding`.
fn declare_variants(res: &mut Response) {
    let headers = res.headers_mut();
    let varies = headers
        .get_all(VARY)
        .iter()
        .any(|value| value.as_bytes().eq_ignore_ascii_case(ACCEPT_ENCODING.as_str().as_bytes()));
    if !varies {
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
}

fn declare(encoding: Encoding, res: &mut Response) {
    let headers = res.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    headers.remove(CONTENT_LENGTH);
}

/// Whether a response of this media type becomes shorter, and has no form token. What has no type of its own, such as
/// a backup, is packed already.
fn is_compressible(media_type: &HeaderValue) -> bool {
    let Ok(media_type) = media_type.to_str() else { return false };
    let name = media_type.split(';').next().unwrap_or_default().trim();
    match name.split_once('/') {
        Some(("text", kind)) => kind != "html",
        Some(("application", kind)) => kind != "octet-stream",
        Some(("image", kind)) => kind == "svg+xml",
        _ => false,
    }
}

/// A response that is compressed while it is read. It flushes the encoder whenever the source waits, so that a client
/// gets each event of a stream at once.
struct CompressedBody {
    inner: ResBody,
    /// Bytes that are not compressed yet.
    rest: Bytes,
    /// `None` after the end.
    encoder: Option<(Encoder, OwnedSemaphorePermit)>,
    has_unflushed: bool,
}

impl CompressedBody {
    fn poll_compressed(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Vec<u8>>>> {
        loop {
            let Some((encoder, _)) = &mut self.encoder else { return Poll::Ready(None) };
            let budget = ready!(poll_proceed(cx));
            if !self.rest.is_empty() {
                budget.made_progress();
                let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
                self.has_unflushed = true;
                match encoder.write_all(&piece).map(|()| encoder.take_output()) {
                    Ok(compressed) if compressed.is_empty() => continue,
                    compressed => return Poll::Ready(Some(compressed)),
                }
            }
            match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => self.rest = frame.into_data().unwrap_or_default(),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {
                    let last = self.encoder.take().map(|(encoder, _)| encoder.finish());
                    return Poll::Ready(last);
                }
                Poll::Pending if mem::take(&mut self.has_unflushed) => {
                    return Poll::Ready(Some(encoder.flush().map(|()| encoder.take_output())));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Body for CompressedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let compressed = ready!(self.poll_compressed(cx));
        Poll::Ready(compressed.map(|bytes| Ok(Frame::data(bytes?.into()))))
    }
}

/// An encoder that writes into memory.
enum Encoder {
    Gzip(Box<GzEncoder<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
}

impl Encoder {
    fn new(encoding: Encoding) -> io::Result<Self> {
        Ok(match encoding {
            Encoding::Gzip => {
                Self::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::default())))
            }
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1)?;
                encoder.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_LOG))?;
                Self::Zstd(Box::new(encoder))
            }
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }

    fn take_output(&mut self) -> Vec<u8> {
        match self {
            Self::Gzip(encoder) => mem::take(encoder.get_mut()),
            Self::Zstd(encoder) => mem::take(encoder.get_mut()),
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}
