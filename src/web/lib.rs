//! The pages: signing in and out, and the administration interface. They are rendered here, work without script, and
//! load nothing from elsewhere.

mod admin;
mod routes;
mod sign_in;

pub use admin::error_page::ERROR_PAGE;
pub use routes::{page_routes, sign_in_operations, sign_in_routes};
