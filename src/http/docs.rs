//! The OpenAPI document and the Swagger UI, which is part of the program and fetches nothing from
//! elsewhere.
use super::service::origin;
use salvo::http::ResBody;
use salvo::http::StatusCode;
use salvo::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION,
};
use salvo::oapi::swagger_ui::{self, Config};
use salvo::oapi::{OpenApi, Server};
use salvo::{Depot, Request, Response, handler};
use std::sync::Arc;

/// Answers with the document.
pub(super) struct Document(pub(super) Arc<OpenApi>);

#[handler]
impl Document {
    fn handle(&self, depot: &mut Depot, res: &mut Response) {
        let mut document = OpenApi::clone(&self.0);
        let prefix = &origin(depot).prefix;
        let server = if prefix.is_empty() { "/" } else { prefix };
        document.servers.insert(Server::new(server));
        // The document is plain data, which always has a JSON form.
        let body = document.to_json().unwrap_or_default();
        res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        res.replace_body(ResBody::Once(body.into()));
    }
}

/// The page's files; its addresses are relative, so that any prefix works.
#[handler]
pub(super) async fn swagger(req: &mut Request, depot: &mut Depot, res: &mut Response) {
    let path = req.params().tail().unwrap_or_default().to_owned();
    if path.is_empty() && !req.uri().path().ends_with('/') {
        let location = format!("{}/swagger-ui/", origin(depot).prefix);
        if let Ok(location) = HeaderValue::from_str(&location) {
            res.headers_mut().insert(LOCATION, location);
        }
        res.status_code(StatusCode::FOUND);
        return;
    }
    // Without this, the page would ask a validator on the internet about every document.
    let config = Config::new(["../api-doc/openapi.json"]).validator_url("none");
    let Ok(Some(file)) = swagger_ui::serve(&path, "Penstock", "", "", &config) else {
        res.status_code(StatusCode::NOT_FOUND);
        return;
    };
    let headers = res.headers_mut();
    if let Ok(media_type) = HeaderValue::from_str(&file.content_type) {
        headers.insert(CONTENT_TYPE, media_type);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; script-src 'self' 'unsafe-inline'; \
             style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
        ),
    );
    res.replace_body(ResBody::Once(file.bytes.into_owned().into()));
}
