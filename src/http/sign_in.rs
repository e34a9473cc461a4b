//! Signing in and out in a browser. The pages are made here, work without script, and fetch nothing.
//!
//! | file | what |
//! |---|---|
//! | `password` | `GET` and `POST /login`: with a password, or the way to the provider |
//! | `provider` | `/oauth2/authorization/{id}` and `/login/oauth2/code/{id}`: at an OpenID provider |
//! | `home` | `GET /`: on to the administration interface |
//! | `logout` | `POST /logout`, and the page after it |
//! | `pages` | the templates, and what every page has |
//! | `session` | the session and its cookies |
//! | `back` | where to go after signing in: an address of this gateway, never another |

mod back;
mod home;
mod logout;
mod pages;
mod password;
mod provider;
mod session;

pub(super) use home::front;
pub(super) use logout::{sign_out, signed_out};
pub(super) use pages::{Message, answer, redirect, show as show_page};
pub(super) use password::fields;
pub(super) use password::{show, sign_in};
pub(super) use provider::{authorize, complete};

use super::service::origin;
use back::Back;
use salvo::Depot;

/// Where a browser that is not signed in goes, to come back to `to` (a path with its query) afterwards.
pub(super) fn location(depot: &Depot, to: &str) -> String {
    let back = Back::read(Some(to));
    format!("{}/login{}", origin(depot).prefix, back.query())
}
