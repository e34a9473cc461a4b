//! The administration interface: pages rendered by the server, which work without script.
//!
//! Each page has a template in `templates/admin/` that extends `layout.html`, and a struct with its
//! [`Frame`](frame::Frame) as `frame`. A form posts to a route of its own, which calls the same use case of the service
//! as the API. A handler returns a [`frame::PageReply`]: a page, a redirect with a notice after a form was processed,
//! the form again with its [`form::FormErrors`], or a part of a page for a script.
//!
//! - `frame`: what every page has: the caller, a notice, the response headers; the replies of handlers
//! - `menu`, `search`: the menu, and the one search field
//! - `form`: the fields of a form, the check of the page that sent it, and its errors
//! - `error_page`: the error page, instead of a problem document
//! - `assets`: scripts and styles, whose addresses change with their content
//! - `words`, `labels`: numbers, sizes and times in readable form, and states in words; templates call them
//! - `pager`, `filter_bar`: the links to further pages of a list, and the choices of its filters
//! - `overview`, `health`, `plot`: the state of the gateway, and what is wrong
//! - `business_objects`: the list, one Business Object, export, delete
//! - `editor`, `draft`, `check`, `samples`: creating and changing a Business Object, the content of that form, its
//!   check with a sample, and deriving a mapping
//! - `schedule`: a schedule in words with its next runs
//! - `views`: the saved views
//! - `objects`, `object`: the page "Explore" with filters, charts and a table; the tabs of one object, and the forms that
//!   change and delete it
//! - `exports`, `targets`: the queue and its files; the targets
//! - `backup`: the continuous backup, and how to restore it
//! - `export_file`, `empty_runs`: a file as a table, and its difference to the one before; runs that exported nothing
//! - `remedy`, `configured`: what to do about a failure of a target; settings with their sources, and how to change them
//! - `sources`: the connections to brokers
//! - `query`, `sparql`: queries in GraphQL and SPARQL
//! - `ingestions`: the record of an ingestion
//! - `rejected`: dead letters, their correction and retry
//! - `changes`: changes under review, with their difference and the steps; `approval_count`: how many wait for the viewer
//! - `definitions`: the pages of a kind of definitions; `namespaces`, `shapes_graphs`, `groups`: its kinds
//! - `users`, `profile`, `keys`, `audit`, `settings`: accounts, API keys, the audit trail, and the configuration in force

pub(super) mod approval_count;
pub(super) mod assets;
pub(super) mod audit;
pub(super) mod backup;
pub(super) mod business_objects;
pub(super) mod changes;
pub(super) mod check;
mod configured;
pub(super) mod definitions;
mod draft;
pub(super) mod editor;
mod empty_runs;
pub(super) mod error_page;
mod export_file;
pub(super) mod exports;
mod filter_bar;
pub(super) mod form;
mod frame;
mod groups;
mod health;
pub(super) mod ingestions;
pub(super) mod keys;
mod labels;
mod menu;
mod namespaces;
pub(super) mod object;
pub(super) mod objects;
pub(super) mod overview;
mod pager;
mod plot;
pub(super) mod profile;
pub(super) mod quality;
pub(super) mod query;
pub(super) mod rejected;
mod remedy;
pub(super) mod samples;
mod schedule;
pub(super) mod search;
pub(super) mod settings;
mod shapes_graphs;
pub(super) mod sources;
pub(super) mod sparql;
pub(super) mod targets;
pub(super) mod users;
pub(super) mod views;
mod words;
