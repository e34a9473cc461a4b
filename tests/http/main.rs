//! The API over HTTP, one behaviour per file. The gateway runs in the test's own process.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test panics where something is wrong"
)]

mod api_keys;
mod audit;
mod backup;
mod business_objects;
mod changes;
mod changes_model;
mod codes;
mod credentials;
mod csrf;
mod csv;
mod definition_files;
mod definitions;
mod deletions;
mod documentation;
mod documented_members;
mod documents;
mod downloads;
mod encodings;
mod events;
mod explore;
mod export_files;
mod field_groups;
mod forms;
mod graphql;
mod graphql_client;
mod graphql_docs;
mod hosts;
mod identifiers;
mod integrator_docs;
mod labels;
mod languages;
mod lifecycle;
mod main_job;
mod mapping_docs;
mod maps;
mod natural_keys;
mod ndjson;
mod object_filters;
mod object_pages;
mod opening;
mod operating_pages;
mod poisoned;
mod preconditions;
mod problems;
mod pushes;
mod rdf_documents;
mod rejected;
mod revoked;
mod roles;
mod search;
mod shapes;
mod shared_property;
mod shares;
mod sign_in;
mod snapshots;
mod sources;
mod sparql;
mod status;
mod summaries;
mod targets;
mod traces;
mod unread;
mod users;
mod validations;
mod views;
mod webhooks;
