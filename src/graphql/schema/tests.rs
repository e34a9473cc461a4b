//! Tests of documents and their answers, against a gateway with data of a plant.
mod documents;
mod fixture;
mod limits;
mod queries;
mod schema;
mod state;
mod variables;
