//! Frames from a stream.
use super::segment::{FRAME_HEADER_LEN, frame_at};
use crate::frame::MAX_PAYLOAD_BYTES;
use std::io::{self, Read};

/// Reads whole frames from a stream, and checks the checksum of each.
#[derive(Debug)]
pub struct FrameReader<R> {
    input: R,
    max_payload_bytes: u32,
    offset: u64,
}

impl<R: Read> FrameReader<R> {
    /// Reads the frames of commits.
    pub fn new(input: R) -> Self {
        Self::with_limit(input, MAX_PAYLOAD_BYTES, 0)
    }

    /// Reads frames with payloads of at most so many bytes. `offset` is the position of the stream.
    pub(super) fn with_limit(input: R, max_payload_bytes: u32, offset: u64) -> Self {
        Self { input, max_payload_bytes, offset }
    }

    /// Returns the position of the next frame, in bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next frame with its sequence; `None` at the end of the stream.
    ///
    /// # Errors
    /// `ErrorKind::InvalidData` if there is no valid frame; the errors of the stream.
    pub fn read_frame(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut frame = Vec::new();
        self.input.by_ref().take(FRAME_HEADER_LEN as u64).read_to_end(&mut frame)?;
        let (Some(length), Some(sequence)) =
            (frame.first_chunk::<4>(), frame.get(8..).and_then(<[u8]>::first_chunk::<8>))
        else {
            return if frame.is_empty() {
                Ok(None)
            } else {
                Err(damaged("a frame ends too early"))
            };
        };
        let (length, sequence) = (u32::from_le_bytes(*length), u64::from_le_bytes(*sequence));
        if length > self.max_payload_bytes {
            return Err(damaged("a frame is longer than the limit"));
        }
        // Memory is allocated only as the bytes arrive, because a damaged length can be any.
        self.input.by_ref().take(u64::from(length)).read_to_end(&mut frame)?;
        if frame.len() != FRAME_HEADER_LEN + length as usize {
            return Err(damaged("a frame ends too early"));
        }
        if frame_at(&frame, 0).is_none() {
            return Err(damaged("the checksum of a frame is wrong"));
        }
        self.offset += frame.len() as u64;
        Ok(Some((sequence, frame)))
    }
}
