//! The types on the wire. Handlers fill them from what the use cases return, and the OpenAPI document describes them.
//!
//! Responses that are streamed or written by the layers below have shapes that only describe them: objects in their
//! view, files of exports, and JSON Schemas. So have the bodies of `requests`.
#![expect(clippy::struct_field_names, reason = "the fields have the names of the wire")]

mod account;
mod api_key;
mod business_object;
mod change;
mod dead_letter;
mod definitions;
mod event;
mod export;
mod gateway;
mod graphql;
mod group;
mod ingestion;
mod limits;
mod namespace;
mod object;
mod requests;
mod shapes_graph;
mod source;
mod validation;
mod webhook;

pub use account::Account;
pub(super) use account::Accounts;
pub use api_key::{ApiKey, MadeApiKey};
pub(super) use api_key::{ApiKeys, AuditEvent, AuditEvents};
pub(super) use business_object::{BusinessObject, BusinessObjects, DeletionCount, JsonSchema};
pub(super) use change::{
    Change, ChangeDetails, ChangeRole, ChangeState, Changes, StepComment, SubmittedChange,
};
pub(super) use dead_letter::DeadLetter;
pub use definitions::{AppliedDefinitions, ApplyDefinitions};
pub(super) use event::Event;
pub(super) use export::{Export, ExportFile, Exports, Push, Target, TargetTest, Targets};
pub(super) use gateway::{ClockStatus, Health, Heartbeat, HeartbeatTimes, Status};
pub(super) use graphql::GraphqlResponse;
pub(super) use group::{Group, Groups, NewGroup};
pub(super) use ingestion::{
    ChunkPlace, Ingestion, IngestionRecord, Ingestions, Mode, OnErrorName as OnError, SparqlUpdate,
};
pub(super) use limits::Limits;
pub(super) use namespace::{Namespace, Namespaces};
pub(super) use object::{ObjectsOrObject, ViewedObject};
pub(super) use requests::{
    AccountChange, Definition, GraphqlRequest, IngestionRequest, NamespaceDefinition, NewAccount,
    NewApiKey, NewPassword, SparqlQueryForm, SparqlUpdateForm,
};
pub(super) use shapes_graph::{ShapesGraph, ShapesGraphs};
pub(super) use source::{Source, SourceTest, Sources};
pub(super) use validation::{Validation, ValidationReport, Validations};
pub(super) use webhook::{Webhook, WebhookTest, Webhooks};
