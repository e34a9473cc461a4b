//! Decodes request bodies while they arrive, within limits of memory and ratio.
//!
//! The limits of a route apply to the decoded bytes: the reader of the body counts them as those of any other body.

use super::Encoding;
use crate::body::quota::{BodyPermit, BodyQuota};
use crate::problem::Problem;
use crate::state::State;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use salvo::Request;
use salvo::http::ReqBody;
use salvo::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use salvo::hyper::body::{Body, Frame};
use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::coop::poll_proceed;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// The decoded bytes from which the ratio counts.
const MIN_BYTES_FOR_RATIO: u64 = 1 << 20;
/// The maximum of decoded bytes for each encoded byte.
const MAX_RATIO: u64 = 200;
/// The maximum window of zstd, as a power of two: 8 MiB (RFC 9659).
const MAX_WINDOW_LOG: u32 = 23;
/// The memory of a decoder of gzip: its window, tables and buffer.
const GZIP_DECODER_BYTES: usize = 96 << 10;
/// The bytes that zstd decodes at once.
const PIECE_BYTES: usize = 32 << 10;

/// Why a body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The encoded bytes could not be read.
    #[error("{0}")]
    Transport(io::Error),
    /// The bytes are not in the coding that the request declares.
    #[error("the body is not valid {}, which Content-Encoding declares: {cause}", encoding.name())]
    Malformed { encoding: Encoding, cause: String },
    /// The body grows too much.
    #[error(
        "the body has more than {MAX_RATIO} times its compressed bytes; send it uncompressed, or compressed in smaller \
         parts"
    )]
    Ratio,
    /// The decoder needs more memory than there is.
    #[error("{0}")]
    NoMemory(String),
}

impl DecodeError {
    /// Returns the error that a body in a coding was read with.
    pub(crate) fn find(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// Decodes the body while its reader reads it, if the request declares a known coding. Another coding stays declared, and
/// the reader refuses it.
///
/// Only for authorized requests, so that no unauthenticated client makes the gateway hold a window.
pub(crate) fn decode_body(req: &mut Request, state: &Arc<State>) {
    let mut declared = req.headers().get_all(CONTENT_ENCODING).iter();
    let Some(encoding) = declared
        .next()
        .filter(|_| declared.next().is_none())
        .and_then(|value| Encoding::find(value.to_str().ok()?))
    else {
        return;
    };
    req.headers_mut().remove(CONTENT_ENCODING);
    req.headers_mut().remove(CONTENT_LENGTH);
    let inner = req.take_body();
    let body = DecodedBody::new(inner, encoding, state.clone());
    req.replace_body(ReqBody::Boxed { inner: Box::pin(body), fuse_config: None });
}

/// A body that is decoded while it is read.
struct DecodedBody {
    /// The encoded bytes.
    inner: ReqBody,
    encoding: Encoding,
    state: Arc<State>,
    /// `None` before the first byte, and after the end or an error.
    decoder: Option<Decoder>,
    has_ended: bool,
    /// Encoded bytes that are not decoded yet.
    rest: Bytes,
    encoded_bytes: u64,
    decoded_bytes: u64,
}

impl DecodedBody {
    fn new(inner: ReqBody, encoding: Encoding, state: Arc<State>) -> Self {
        Self {
            inner,
            encoding,
            state,
            decoder: None,
            has_ended: false,
            rest: Bytes::new(),
            encoded_bytes: 0,
            decoded_bytes: 0,
        }
    }

    /// Decodes some of the rest.
    fn decode_rest(&mut self) -> Result<Bytes, DecodeError> {
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            none => none.insert(Decoder::new(self.encoding, &self.state.body_quotas.data)?),
        };
        let (consumed, decoded) = decoder.decode(&self.rest)?;
        let _ = self.rest.split_to(consumed);
        self.encoded_bytes += consumed as u64;
        self.decoded_bytes += decoded.len() as u64;
        if self.decoded_bytes > MIN_BYTES_FOR_RATIO
            && self.decoded_bytes / MAX_RATIO > self.encoded_bytes
        {
            return Err(DecodeError::Ratio);
        }
        Ok(decoded.into())
    }

    /// Returns the last decoded bytes, after the last encoded ones.
    fn finish(&mut self) -> Result<Bytes, DecodeError> {
        self.has_ended = true;
        let finished = self.decoder.take().map_or_else(|| Ok(Vec::new()), Decoder::finish);
        finished.map(Bytes::from)
    }

    fn poll_decoded(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, DecodeError>>> {
        loop {
            // A piece can decode to many, without waiting for the client in between.
            let budget = ready!(poll_proceed(cx));
            if self.has_more() {
                budget.made_progress();
                match self.decode_rest() {
                    Ok(decoded) if decoded.is_empty() => continue,
                    decoded => return Poll::Ready(Some(decoded)),
                }
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => self.rest = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => {
                    return Poll::Ready(Some(Err(DecodeError::Transport(error))));
                }
                None => {
                    let last = self.finish();
                    let is_empty = last.as_ref().is_ok_and(Bytes::is_empty);
                    return Poll::Ready(Some(last).filter(|_| !is_empty));
                }
            }
        }
    }

    fn has_more(&self) -> bool {
        !self.rest.is_empty() || self.decoder.as_ref().is_some_and(|decoder| decoder.has_more)
    }
}

impl Body for DecodedBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.has_ended {
            // After an error the rest is only read to be discarded, so it is not decoded.
            let rest = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            return Poll::Ready(rest.map(|frame| Ok(frame.map(|_| Frame::data(Bytes::new()))?)));
        }
        let decoded = ready!(self.poll_decoded(cx));
        if let Some(Err(_)) = &decoded {
            self.has_ended = true;
            self.decoder = None;
            self.rest = Bytes::new();
        }
        Poll::Ready(decoded.map(|decoded| Ok(decoded.map(Frame::data)?)))
    }

    fn is_end_stream(&self) -> bool {
        !self.has_more() && self.decoder.is_none() && self.inner.is_end_stream()
    }
}

/// A decoder and the permit for its memory.
struct Decoder {
    kind: DecoderKind,
    /// The permit is a part of `service.limits.in-flight`, as that of the body is.
    permit: BodyPermit,
    /// Whether it has decoded bytes for which there was no place.
    has_more: bool,
    /// Whether the encoded bytes may end here.
    is_complete: bool,
}

enum DecoderKind {
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd(DCtx<'static>),
}

impl Decoder {
    fn new(encoding: Encoding, quota: &BodyQuota) -> Result<Self, DecodeError> {
        let kind = match encoding {
            Encoding::Gzip => DecoderKind::Gzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Encoding::Zstd => {
                let mut context = DCtx::create();
                let limited = context.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG));
                limited.map_err(zstd_error)?;
                DecoderKind::Zstd(context)
            }
        };
        let permit = quota.acquire_working_memory().map_err(no_memory)?;
        Ok(Self { kind, permit, has_more: false, is_complete: false })
    }

    /// Decodes some of these bytes. Returns how many it has consumed, and what they are.
    fn decode(&mut self, encoded: &[u8]) -> Result<(usize, Vec<u8>), DecodeError> {
        match &mut self.kind {
            DecoderKind::Gzip(decoder) => {
                self.permit.grow_to(GZIP_DECODER_BYTES).map_err(no_memory)?;
                let written = decoder.write(encoded).and_then(|consumed| {
                    // Without it, the decoder keeps the last bytes until more arrive.
                    decoder.flush()?;
                    Ok(consumed)
                });
                match written {
                    Ok(0) if !encoded.is_empty() => Err(gzip_error(&"bytes follow its end")),
                    Ok(consumed) => Ok((consumed, mem::take(decoder.get_mut()))),
                    Err(error) => Err(gzip_error(&error)),
                }
            }
            DecoderKind::Zstd(context) => {
                let mut decoded = Vec::with_capacity(PIECE_BYTES);
                let mut input = InBuffer::around(encoded);
                let mut output = OutBuffer::around(&mut decoded);
                let hint =
                    context.decompress_stream(&mut output, &mut input).map_err(zstd_error)?;
                self.is_complete = hint == 0;
                self.has_more = output.pos() == PIECE_BYTES && !self.is_complete;
                let consumed = input.pos;
                // The frame that begins decides how large its window is.
                self.permit.grow_to(context.sizeof()).map_err(no_memory)?;
                Ok((consumed, decoded))
            }
        }
    }

    /// Returns the last bytes. An error if the encoded bytes are not complete.
    fn finish(self) -> Result<Vec<u8>, DecodeError> {
        match self.kind {
            DecoderKind::Gzip(decoder) => decoder.finish().map_err(|error| gzip_error(&error)),
            DecoderKind::Zstd(_) if self.is_complete => Ok(Vec::new()),
            DecoderKind::Zstd(_) => Err(malformed(Encoding::Zstd, &"it ends within a frame")),
        }
    }
}

fn malformed(encoding: Encoding, cause: &dyn Display) -> DecodeError {
    DecodeError::Malformed { encoding, cause: cause.to_string() }
}

fn gzip_error(cause: &dyn Display) -> DecodeError {
    malformed(Encoding::Gzip, cause)
}

fn zstd_error(code: usize) -> DecodeError {
    malformed(Encoding::Zstd, &get_error_name(code))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn no_memory(problem: Problem) -> DecodeError {
    DecodeError::NoMemory(problem.detail().to_owned())
}
