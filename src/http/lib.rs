//! What every HTTP request passes on its way to its handler, and what handlers share.
//!
//! `service` passes each request through its route. `caller` authenticates it by its `credential`, and `access`
//! authorizes it. `sender_page` refuses requests that pages of other sites send. `accept`, `body`, `path`, `query`,
//! `etag`, `origin`, `trace` and `return_path` read the parts of a request. `reply` and `problem` are the two kinds of
//! responses to programs: results, and errors as problem details (RFC 9457). `encoding` decodes bodies and compresses responses.
//! `sending` and `unsent` limit the responses that are not sent yet. `operation` declares an operation of the API once, with
//! its `parameters`, and `router` builds the router.

pub mod accept;
pub mod access;
pub mod body;
pub mod call;
pub mod caller;
pub mod credential;
mod encoding;
pub mod etag;
mod failures;
pub mod operation;
pub mod origin;
pub mod parameters;
pub mod path;
pub mod problem;
pub mod query;
pub mod reply;
pub mod return_path;
pub mod router;
pub mod sender_page;
pub mod sending;
pub mod service;
pub mod state;
pub mod trace;
pub mod unsent;
