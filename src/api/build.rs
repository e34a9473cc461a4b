//! Takes the files of Swagger UI for `docs.rs` out of the archive in utoipa-swagger-ui-vendored, so `Cargo.lock` has
//! their version and checksum. They stay compressed as they are there: a gzip file is a header, the same DEFLATE stream,
//! its checksum and its length (RFC 1952, 2.2). Two files and a page of our own take 0.44 MB instead of 4.2, and need
//! no inline script.
use rawzip::{CompressionMethod, ZipArchive};
use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

/// The files that the page loads.
const FILES: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];
/// The header of a gzip file: DEFLATE, no name, no time, from an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    let archive = ZipArchive::from_slice(SWAGGER_UI_VENDORED)?;
    let mut missing = FILES.to_vec();
    let mut entries = archive.entries();
    while let Some(entry) = entries.next_entry()? {
        let path = entry.file_path();
        let path = std::str::from_utf8(path.as_ref())?;
        let Some(at) = missing.iter().position(|name| path.ends_with(&format!("/dist/{name}")))
        else {
            continue;
        };
        if entry.compression_method() != CompressionMethod::DEFLATE {
            return Err(format!("{path} in the archive of Swagger UI is not DEFLATE").into());
        }
        let length = u32::try_from(entry.uncompressed_size_hint())?;
        let stream = archive.get_entry(entry.wayfinder())?.data();
        let trailer = [entry.crc32().to_le_bytes(), length.to_le_bytes()].concat();
        let packed = [&GZIP_HEADER, stream, trailer.as_slice()].concat();
        fs::write(folder.join(format!("{}.gz", missing.swap_remove(at))), packed)?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("the archive of Swagger UI lacks {missing:?}; see FILES in src/api/build.rs")
        .into())
}
