//! Suggestions for a value that somebody types.
use super::Explored;
use crate::gateway::Gateway;
use crate::objects::labels::read_labels;
use crate::objects::search::SharedTime;
use oxrdf::NamedNode;
use penstock_auth::Caller;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_model::resource::Compiled;
use penstock_model::search::{self, Column, Columns, SearchBudget};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 10;
/// The maximum number of objects that are read for them.
const MAX_READ_OBJECTS: u64 = 20_000;
/// The maximum time in which they are read.
const SUGGESTION_TIMEOUT: Duration = Duration::from_millis(500);

/// A value that somebody may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The value as the view shows it.
    pub text: String,
    /// The label of the object that it names.
    pub label: Option<String>,
}

/// Suggests values of a field that begin with a text, among the members that the caller sees: none if that takes long.
///
/// # Errors
/// - `ErrorClass::Invalid` if there is no such field
/// - `ErrorClass::Unavailable` if too many searches and queries are running
pub async fn suggest_field_values(
    gateway: &Gateway,
    by: &Caller,
    business_object: Arc<Compiled>,
    field: String,
    prefix: String,
) -> Result<Vec<Suggestion>, GatewayError> {
    let (all, has_labels) = (gateway.clone(), by.business_objects().is_none());
    let explored = Explored { business_object, filter: None, time: SharedTime::default() };
    explored
        .read(gateway, by, move |Explored { business_object, .. }, read, _| {
            let budget = SearchBudget::new(MAX_READ_OBJECTS, SUGGESTION_TIMEOUT);
            let named = (field.as_str(), prefix.as_str());
            let texts =
                search::suggest_values(read, business_object, named, MAX_SUGGESTIONS, &budget);
            let texts = match texts {
                Err(error) if error.class == ErrorClass::TooLarge => Vec::new(),
                texts => texts?,
            };
            let columns = Columns::new(&business_object.mapping.root, [field.as_str()])?;
            let mut labels = HashMap::new();
            if has_labels && columns.as_slice().iter().all(Column::holds_iris) {
                let iris = texts.iter().filter_map(|text| NamedNode::new(text).ok());
                labels = read_labels(&all, read.unlimited(), iris)?;
            }
            let suggestions = texts.into_iter().map(|text| {
                let label = labels.get(&text).filter(|label| **label != text).cloned();
                Suggestion { text, label }
            });
            Ok(suggestions.collect())
        })
        .await
}
