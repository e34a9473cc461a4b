//! The shapes on the wire, as the OpenAPI document describes them.
//!
//! Most responses are serialized by the layers below, not from these types. The contract tests
//! (`tests/schemathesis`) compare the responses with these shapes.
#![expect(
    dead_code,
    clippy::struct_field_names,
    reason = "most fields are there to be described, under the names of the wire"
)]

mod account;
mod api_key;
mod business_object;
mod event;
mod export;
mod gateway;
mod graphql;
mod ingestion;
mod namespace;
mod problem;
mod requests;

pub use account::Account;
pub(super) use account::Accounts;
pub use api_key::{ApiKey, MadeApiKey};
pub(super) use api_key::{ApiKeys, AuditEvent, AuditEvents};
pub(super) use business_object::{
    BusinessObject, BusinessObjects, Definition, JsonSchema, ObjectsOrObject, ViewedObject,
};
pub(super) use event::Event;
pub(super) use export::{Export, ExportFile, Exports, Push, Target, TargetTest, Targets};
pub(super) use gateway::{ClockStatus, Health, Limits, Status};
pub(super) use graphql::{GraphqlRequest, GraphqlResponse};
pub(super) use ingestion::{Ingestion, IngestionRecord, IngestionRequest, Ingestions, Mode};
pub(super) use namespace::{Namespace, Namespaces};
pub(super) use problem::Problem;
pub(super) use requests::{AccountChange, NamespaceDefinition, NewAccount, NewApiKey, NewPassword};
