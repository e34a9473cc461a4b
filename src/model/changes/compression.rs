//! Compresses the parts of a change: their texts repeat the same IRIs.
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use penstock_base::error::{ErrorClass, GatewayError};
use std::io::{self, Read as _, Write as _};

/// Compresses a part. Its size before (u64, big endian) comes first.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, GatewayError> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut encoder = DeflateEncoder::new(length.to_be_bytes().to_vec(), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| {
        GatewayError::new(ErrorClass::Internal, format!("compressing a change failed: {error}"))
    })
}

/// Returns what [`compress`] was given.
pub(super) fn decompress(bytes: &[u8]) -> Result<Vec<u8>, GatewayError> {
    let mut text = Vec::new();
    let (length, compressed) = bytes.split_first_chunk().unwrap_or((&[0; 8], bytes));
    let length = u64::from_be_bytes(*length);
    let read: io::Result<usize> =
        DeflateDecoder::new(compressed).take(length).read_to_end(&mut text);
    read.map_err(|error| {
        tracing::error!(%error, "A part of a change could not be read.");
        GatewayError::new(
            ErrorClass::Internal,
            "a part of a change could not be read; the log has the cause",
        )
    })?;
    Ok(text)
}
