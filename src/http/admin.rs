//! The administration interface: pages made by the server, that work without script.
//!
//! Each page has a template in `templates/admin/` that extends `layout.html`, and a struct that holds its
//! [`Frame`](frame::Frame) as `frame`. A form posts to a route of its own, calls what the API's handler
//! calls, and sends the browser on with [`frame::done`], or shows itself again with its [`form::Faults`].
//!
//! | file | what |
//! |---|---|
//! | `frame` | what every page has: navigation, the caller, a notice, the answer's headers |
//! | `form` | what a form sent, whose page it comes from, and what is wrong with it |
//! | `fault` | the page in place of a problem |
//! | `assets` | script and style, under addresses that change with them |
//! | `words` | numbers, sizes and times as people read them |
//! | `pager` | the links below a list that has more pages |
//! | `overview`, `health`, `plot` | is it well, and if not, why |
//! | `business_objects` | the list, one of them, export, delete |
//! | `editor`, `draft`, `check`, `samples` | one is written and changed; what its form holds; what is wrong with it and what it makes of a sample; one derived from a sample |
//! | `objects` | searched, and one from all sides |
//! | `exports`, `targets`, `query` | the queue and its files; where they go; GraphQL |
//! | `users`, `profile`, `keys`, `audit` | who may come in, and what happened |
//! | `namespaces`, `settings` | what they say |

pub(super) mod assets;
pub(super) mod audit;
pub(super) mod business_objects;
pub(super) mod check;
mod draft;
pub(super) mod editor;
pub(super) mod exports;
pub(super) mod fault;
pub(super) mod form;
mod frame;
mod health;
pub(super) mod keys;
pub(super) mod namespaces;
pub(super) mod objects;
pub(super) mod overview;
mod pager;
mod plot;
pub(super) mod profile;
pub(super) mod query;
pub(super) mod samples;
pub(super) mod settings;
pub(super) mod targets;
pub(super) mod users;
mod words;
