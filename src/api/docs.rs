//! The OpenAPI document and the Swagger UI, which is part of the program and loads nothing from elsewhere.
use crate::openapi;
use bytes::Bytes;
use flate2::read::GzDecoder;
use parking_lot::Mutex;
use penstock_http::accept::accepts_gzip;
use penstock_http::operation::Operation;
use penstock_http::origin::origin;
use penstock_http::state::state;
use penstock_service::blocking::run_in_place;
use salvo::http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION,
    VARY,
};
use salvo::http::{ResBody, StatusCode};
use salvo::{Depot, Request, Response, handler};
use std::io::Read as _;
use std::sync::{Arc, OnceLock, Weak};

/// Responds with the OpenAPI document. The first request builds it, which takes 5 MB of memory. Only its JSON is
/// kept, without the opening brace: all responses share these members, and put their own `servers` before them.
pub(super) struct Document {
    operations: Vec<Operation>,
    members: OnceLock<Bytes>,
}

impl Document {
    /// Creates the document of these operations.
    pub(super) fn new(operations: Vec<Operation>) -> Self {
        Self { operations, members: OnceLock::new() }
    }
}

#[handler]
impl Document {
    fn handle(&self, depot: &mut Depot, res: &mut Response) {
        let members = self.members.get_or_init(|| {
            let json =
                openapi::build_document(state(depot).settings(), &self.operations).to_string();
            Bytes::copy_from_slice(json.strip_prefix('{').unwrap_or_default().as_bytes())
        });
        let prefix = &origin(depot).prefix;
        let server = if prefix.is_empty() { "/" } else { prefix };
        let servers = serde_json::json!([{ "url": server }]);
        let first = format!("{{\"servers\":{servers},");
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        res.replace_body(ResBody::Chunks([first.into(), members.clone()].into()));
    }
}

/// A file of the Swagger UI.
struct File {
    name: &'static str,
    media_type: &'static str,
    content: Content,
}

enum Content {
    Plain(&'static [u8]),
    Gzip(PackedFile),
}

/// A compressed file from `build.rs`.
macro_rules! packed_file {
    ($name:literal) => {
        PackedFile::new(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".gz")))
    };
}

/// A compressed file, unpacked for clients that do not accept gzip. Concurrent responses share one unpacked copy,
/// because any client may request the file any number of times.
struct PackedFile {
    bytes: &'static [u8],
    unpacked: Mutex<Weak<Vec<u8>>>,
}

impl PackedFile {
    const fn new(bytes: &'static [u8]) -> Self {
        Self { bytes, unpacked: Mutex::new(Weak::new()) }
    }

    fn unpack(&self) -> Bytes {
        // While one request unpacks the file, others wait for it.
        let mut unpacked = self.unpacked.lock();
        let plain = unpacked.upgrade().unwrap_or_else(|| {
            let mut plain = Vec::new();
            GzDecoder::new(self.bytes)
                .read_to_end(&mut plain)
                .expect("the file is part of the program, and a test unpacks it");
            let plain = Arc::new(plain);
            *unpacked = Arc::downgrade(&plain);
            plain
        });
        Bytes::from_owner(SharedBytes(plain))
    }
}

struct SharedBytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// All files of the Swagger UI. `build.rs` takes those of others from a crate.
static FILES: [File; 4] = [
    File {
        name: "",
        media_type: "text/html; charset=utf-8",
        content: Content::Plain(include_bytes!("swagger/index.html")),
    },
    File {
        name: "start.js",
        media_type: "text/javascript; charset=utf-8",
        content: Content::Plain(include_bytes!("swagger/start.js")),
    },
    File {
        name: "swagger-ui-bundle.js",
        media_type: "text/javascript; charset=utf-8",
        content: Content::Gzip(packed_file!("swagger-ui-bundle.js")),
    },
    File {
        name: "swagger-ui.css",
        media_type: "text/css; charset=utf-8",
        content: Content::Gzip(packed_file!("swagger-ui.css")),
    },
];

/// Serves the files of the Swagger UI. They refer to each other by relative addresses, so that any prefix works.
#[handler]
pub(super) async fn get_swagger_file(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    let path = req.params().tail().unwrap_or_default();
    if path.is_empty() && !req.uri().path().ends_with('/') {
        let location = format!("{}/swagger-ui/", origin(depot).prefix);
        if let Ok(location) = HeaderValue::from_str(&location) {
            res.headers_mut().insert(LOCATION, location);
        }
        res.status_code(StatusCode::FOUND);
        return;
    }
    let name = if path == "index.html" { "" } else { path };
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        res.status_code(StatusCode::NOT_FOUND);
        return;
    };
    let headers = res.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
             frame-ancestors 'none'",
        ),
    );
    let body: Bytes = match &file.content {
        Content::Plain(bytes) => Bytes::from_static(bytes),
        Content::Gzip(packed) => {
            headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
            if accepts_gzip(req.headers()) {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                Bytes::from_static(packed.bytes)
            } else {
                run_in_place(|| packed.unpack())
            }
        }
    };
    res.replace_body(ResBody::Once(body));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compressed files have 440 kB.
    const MAX_PACKED_BYTES: usize = 450_000;

    #[test]
    fn the_files_of_others_are_whole_and_small() {
        let mut packed_bytes = 0;
        for file in &FILES {
            let Content::Gzip(packed) = &file.content else { continue };
            assert!(
                packed.unpack().starts_with(b"/*") || packed.unpack().starts_with(b"."),
                "{}",
                file.name
            );
            packed_bytes += packed.bytes.len();
        }
        assert!(packed_bytes < MAX_PACKED_BYTES, "{packed_bytes}");
    }

    #[test]
    fn responses_share_the_unpacked_file() {
        let packed = packed_file!("swagger-ui.css");
        let (one, other) = (packed.unpack(), packed.unpack());
        assert!(one.len() > packed.bytes.len());
        assert_eq!(one.as_ptr(), other.as_ptr());
        drop((one, other));
        assert!(packed.unpacked.lock().upgrade().is_none());
    }
}
