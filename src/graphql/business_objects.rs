//! `businessObjects`: the definitions, their state and their warnings.
use super::execute::{Execution, to_json};
use super::out::ResultValue;
use async_graphql::parser::types::SelectionSet;
use penstock_base::error::{Finding, GatewayError, Place};
use penstock_model::resource::Compiled;
use penstock_service::business_objects::{CheckedBusinessObject, check_business_objects};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The type of a definition.
const TYPE: &str = "BusinessObject";

/// The number of definitions that are checked before the time limit is checked again.
const CHECKED_AT_ONCE: usize = 50;

impl<'d> Execution<'d> {
    /// Answers with the Business Objects that the caller may see.
    pub(super) fn answer_business_objects(
        &self,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let all: Vec<_> = self.all.iter().map(|one| self.find_current(one)).collect();
        let fields = self.planner.document.collect_fields(sets, &|name| name == TYPE);
        let checked = if fields.iter().any(|field| field.field.node.name.node == "warnings") {
            let mut checked = Vec::new();
            for some in all.chunks(CHECKED_AT_ONCE) {
                self.budget.check_time()?;
                checked.extend(check_business_objects(&self.sources.gateway, some.to_vec())?);
            }
            checked
        } else {
            let unchecked = |compiled| CheckedBusinessObject { compiled, warnings: Vec::new() };
            all.into_iter().map(unchecked).collect()
        };
        let all = checked.iter().map(|one| self.answer_business_object(one, sets));
        Ok(ResultValue::List(all.collect::<Result<_, _>>()?))
    }

    /// Returns the present form: the progress of a deletion makes no new version of the catalogue.
    fn find_current(&self, known: &Arc<Compiled>) -> Arc<Compiled> {
        let id = &known.object.id;
        let current = self.sources.catalogue.get(id).filter(|current| current.object.id == *id);
        current.unwrap_or_else(|| Arc::clone(known))
    }

    fn answer_business_object(
        &self,
        CheckedBusinessObject { compiled, warnings }: &CheckedBusinessObject,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let model = self.planner.model;
        let mut members = to_json(&compiled.object)?;
        let id = &compiled.object.id;
        let place = model.business_objects.iter().position(|one| one.compiled.object.id == *id);
        let of = place.and_then(|place| model.root_type(place));
        if let Json::Object(members) = &mut members {
            members.insert("type".to_owned(), of.map_or(Json::Null, |of| of.name.clone().into()));
            let left_out = model.left_out.iter().find(|left| left.id == *id);
            let missing = left_out.map_or(Json::Null, |left| left.why.clone().into());
            members.insert("typeMissing".to_owned(), missing);
            members.insert("warnings".to_owned(), warnings.iter().map(warning_to_json).collect());
        }
        Ok(self.select_members(TYPE, &members, sets))
    }
}

/// Returns the members of the type `PenstockWarning`.
fn warning_to_json(Finding { place, message, .. }: &Finding) -> Json {
    match place {
        Place::Pointer(pointer) => json!({"pointer": pointer, "message": message}),
        Place::Line { line, column } => json!({"line": line, "column": column, "message": message}),
        Place::Whole => json!({"message": message}),
    }
}
