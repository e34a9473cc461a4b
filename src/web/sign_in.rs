//! Signing in and out in a browser. The pages are rendered here, work without script, and load nothing from
//! elsewhere.
//!
//! - `password`: `GET` and `POST /login`: sign-in with a password, or the link to the provider
//! - `provider`: `/oauth2/authorization/{id}` and `/login/oauth2/code/{id}`: sign-in at an OpenID provider
//! - `home`: `GET /`: redirects to the administration interface, or to the sign-in
//! - `logout`: `POST /logout`, and the page after it
//! - `pages`: the templates, and what every page has
//! - `session`: the session and its cookies

mod home;
mod logout;
mod pages;
mod password;
mod provider;
mod session;

pub(super) use home::redirect_home;
pub(super) use logout::{show_signed_out, sign_out_operation};
pub(super) use pages::{
    Message, redirect, render_page, show_static_page as show_page, show_text_with_policy,
};
pub(super) use password::{parse_form_fields, sign_in_operations};
pub(super) use provider::{begin_provider_sign_in, complete_provider_sign_in};
