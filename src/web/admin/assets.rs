//! The scripts and styles of the pages, in the binary. Their addresses contain their hash, so that browsers
//! can cache them without limit and still get the version of the page.
use penstock_base::hex::encode_hex;
use penstock_http::problem::Problem;
use salvo::http::ResBody;
use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use salvo::{Request, Response, handler};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// One file.
struct Asset {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 11] = [
    Asset {
        name: "admin.css",
        media_type: "text/css; charset=utf-8",
        text: include_str!("../templates/admin/admin.css"),
    },
    Asset {
        name: "app.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/app.js"),
    },
    Asset {
        name: "choices.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/choices.js"),
    },
    Asset {
        name: "complete.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/complete.js"),
    },
    Asset {
        name: "editor.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/editor.js"),
    },
    Asset {
        name: "explore.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/explore.js"),
    },
    Asset {
        name: "lines.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/lines.js"),
    },
    Asset {
        name: "query.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/query.js"),
    },
    Asset {
        name: "shapes.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/shapes.js"),
    },
    Asset {
        name: "sparql.js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("../templates/admin/sparql.js"),
    },
    Asset {
        name: "icon.svg",
        media_type: "image/svg+xml",
        text: include_str!("../templates/admin/icon.svg"),
    },
];

/// The hash of all files together, since they mostly change together.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in &ASSETS {
        hash.update(asset.text);
    }
    encode_hex(hash.finalize().get(..8).unwrap_or_default())
});

/// Returns the path of the file of this name, without the prefix.
pub(crate) fn asset_path(name: &str) -> String {
    format!("/admin/assets/{}/{name}", *HASH)
}

/// Serves one of the files.
#[handler]
pub(crate) async fn serve_asset(req: &mut Request, res: &mut Response) -> Result<(), Problem> {
    let param = |name: &str| req.params().get(name).map(String::as_str).unwrap_or_default();
    let (hash, name) = (param("hash"), param("name"));
    // A request of an old page must not be cached as its old version.
    let asset = ASSETS.iter().find(|asset| asset.name == name && *hash == *HASH);
    let asset = asset.ok_or_else(|| {
        Problem::not_found("this version of the file no longer exists; reload the page")
    })?;
    let headers = res.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    res.replace_body(ResBody::Once(asset.text.into()));
    Ok(())
}
