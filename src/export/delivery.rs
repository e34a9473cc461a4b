//! One delivery: an entry, its file, and what the target needs to deliver it.
use super::cause::{DeliveryFailure, unreadable_file_failure};
use super::file;
use super::key::ExportExt as _;
use super::queue::ExportQueue;
use super::uplink::Uplink;
use super::uploads::{self, UploadFolder};
use penstock_base::blocking::spawn_blocking;
use penstock_base::hex::encode_hex;
use penstock_base::shared::Shared;
use penstock_config::Compression;
use penstock_resources::export::Export;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::sync::Arc;
use std::time::Instant;

/// The default compression levels. Higher levels take many times longer and save only a few per cent.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Which object with other bytes a delivery replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaces<'a> {
    /// One with the id of the export, because it is damaged.
    Damaged,
    /// The one with this entity tag, or any if the server names no tag.
    Tagged(Option<&'a str>),
    /// None.
    Nothing,
}

/// One delivery of an entry.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    pub(super) entry: &'a Export,
    /// The metadata as an object of its own. The target stores it before the file.
    pub(super) metadata: Option<MetadataObject>,
    /// The spool file, or the reason why it is not usable.
    pub(super) file: Result<File, String>,
    /// Whether an earlier attempt may have stored the object ([`super::queue::DeliveryJob::may_be_stored`]).
    pub(super) may_be_stored: bool,
    /// When the last attempt without a clear result ended. The target may still be storing the object.
    pub(super) unclear_since: Option<Instant>,
    /// Whether the export was delivered before.
    pub(super) is_replay: bool,
    /// What a bucket may replace.
    pub(super) replaces: Replaces<'a>,
    pub(super) uploads: &'a UploadFolder,
    pub(super) uplink: &'a Arc<Uplink>,
    /// The queue, which knows the other exports.
    pub(super) queue: &'a Shared<ExportQueue>,
}

/// The metadata of an export in the format `jsonl`, as an object of its own.
#[derive(Debug)]
pub(super) struct MetadataObject {
    /// The export, with the key, the length and the checksum of this object.
    pub(super) entry: Export,
    pub(super) text: String,
}

impl MetadataObject {
    /// Returns the metadata of an export. Returns `None` in the format `json`.
    pub(super) fn of_export(entry: &Export, text: Option<String>) -> Option<Self> {
        let (text, key) = (text?, entry.metadata_key()?);
        let (bytes, sha256) = (text.len() as u64, encode_hex(&Sha256::digest(&text)));
        Some(Self { entry: Export { bytes, sha256, key, ..entry.clone() }, text })
    }
}

/// The content of an object in the bucket.
#[derive(Debug)]
pub(super) struct ObjectContent {
    pub(super) file: Arc<File>,
    pub(super) length: u64,
    /// SHA-256 of these bytes, lowercase hex.
    pub(super) sha256: String,
    /// The value of the `Content-Encoding` header, if the content is compressed.
    pub(super) encoding: Option<&'static str>,
}

/// Returns the `Content-Encoding` of a compression.
pub(super) fn content_encoding(compression: Compression) -> Option<&'static str> {
    match compression {
        Compression::None => None,
        Compression::Gzip => Some("gzip"),
        Compression::Zstd => Some("zstd"),
    }
}

/// The error text for a file whose bytes have changed.
pub(super) const DAMAGED_FILE: &str = "the file in the spool is damaged: its SHA-256 has changed since it was written; \
     restore the file, or park the export so that the next ones can be delivered";

/// Returns the failure for a file that is missing in the spool.
pub(super) fn missing_file_failure(cause: &str) -> DeliveryFailure {
    DeliveryFailure::of_gateway(format!(
        "{cause}, and the target does not have it either; restore the file, or park the export so that the \
         next ones can be delivered"
    ))
}

/// Checks that a file has the bytes that were rendered, so that nothing else is sent, and returns to its beginning. Returns
/// its length.
pub(super) fn check_digest(file: &mut File, expected: &str) -> Result<u64, DeliveryFailure> {
    let digest = file::digest_to_end(file).and_then(|digest| file.rewind().map(|()| digest));
    match digest {
        Ok((length, sha256)) if sha256 == expected => Ok(length),
        Ok(_) => Err(DeliveryFailure::of_gateway(DAMAGED_FILE)),
        Err(error) => Err(unreadable_file_failure(&error)),
    }
}

impl Delivery<'_> {
    /// Reads the file once, checks its SHA-256, and compresses it if configured.
    pub(super) async fn prepare_content(
        self,
        compression: Compression,
    ) -> Result<ObjectContent, DeliveryFailure> {
        let mut file = self.file.map_err(|cause| missing_file_failure(&cause))?;
        let mut sha256 = self.entry.sha256.clone();
        let (id, uploads) = (self.entry.id.clone(), self.uploads.clone());
        let work = spawn_blocking(move || {
            let mut length = check_digest(&mut file, &sha256)?;
            let encoding = content_encoding(compression);
            if encoding.is_some() {
                (file, length, sha256) = compress_file(file, &uploads, &id, compression)
                    .map_err(|error| compression_failure(&error))?;
            }
            Ok::<_, DeliveryFailure>(ObjectContent {
                file: Arc::new(file),
                length,
                sha256,
                encoding,
            })
        });
        work.await.unwrap_or_else(|error| Err(unreadable_file_failure(&error)))
    }
}

fn compression_failure(error: &io::Error) -> DeliveryFailure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DeliveryFailure::of_gateway(
            "the gateway's disk has no space to compress the file; free space on it",
        ),
        _ => unreadable_file_failure(error),
    }
}

/// Compresses a file into one without a name on the disk of the upload records, so that a failure or a crash frees its
/// space. The same program compresses the same file to the same bytes. A newer version of the gateway may produce other
/// bytes. Then the upload record no longer matches, and the upload starts again.
fn compress_file(
    mut source: File,
    uploads: &UploadFolder,
    id: &str,
    compression: Compression,
) -> io::Result<(File, u64, String)> {
    uploads.create_folder()?;
    let ending = if compression == Compression::Gzip { ".gz" } else { ".zst" };
    let path = uploads.file_path(id, ending);
    let target = uploads::create_private_file(&path)?;
    fs::remove_file(&path)?;
    let mut packed = if compression == Compression::Gzip {
        let mut encoder =
            flate2::write::GzEncoder::new(target, flate2::Compression::new(GZIP_LEVEL));
        io::copy(&mut source, &mut encoder)?;
        encoder.finish()?
    } else {
        let mut encoder = zstd::stream::write::Encoder::new(target, ZSTD_LEVEL)?;
        io::copy(&mut source, &mut encoder)?;
        encoder.finish()?
    };
    packed.rewind()?;
    let (length, sha256) = file::digest_to_end(&mut packed)?;
    Ok((packed, length, sha256))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn a_compressed_file_leaves_no_name_behind() {
        let dir = tempfile::tempdir().unwrap();
        let uploads = UploadFolder::new(dir.path().join("uploads"));
        let mut source = tempfile::tempfile().unwrap();
        source.write_all(&vec![7; 100_000]).unwrap();
        for compression in [Compression::Gzip, Compression::Zstd] {
            source.rewind().unwrap();
            let source = source.try_clone().unwrap();
            let (mut packed, length, _) =
                compress_file(source, &uploads, "id", compression).unwrap();
            assert!(uploads.list_export_ids().is_empty());
            packed.rewind().unwrap();
            let mut bytes = Vec::new();
            packed.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes.len() as u64, length);
        }
    }
}
