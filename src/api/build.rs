//! Compresses the files of Swagger UI for `docs.rs`. They come from salvo-oapi, so `Cargo.lock` has their version and
//! checksum. Two files and a page of our own take 0.46 MB instead of 4.2, and need no inline script. The crate
//! utoipa-swagger-ui-vendored is quicker to compile, but has an older one, whose `DOMPurify` has known vulnerabilities.
use salvo_oapi::swagger_ui::{Config, serve};
use std::error::Error;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::{env, fs};

/// The files that the page loads.
const FILES: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var("OUT_DIR")?);
    // More iterations take longer and save less than 0.2 %.
    let options = zopfli::Options { iteration_count: NonZeroU64::MIN, ..Default::default() };
    for name in FILES {
        let file = serve(name, "", "", "", &Config::default())?.ok_or_else(|| {
            format!("salvo-oapi has no file {name:?} of Swagger UI; see FILES in src/api/build.rs")
        })?;
        let mut packed = Vec::new();
        zopfli::compress(options, zopfli::Format::Gzip, &*file.bytes, &mut packed)?;
        fs::write(folder.join(format!("{name}.gz")), packed)?;
    }
    Ok(())
}
