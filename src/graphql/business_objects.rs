//! `businessObjects`: the definitions, their state and their warnings.
use super::execution::{Execution, to_json};
use super::gateway_types::ListedBusinessObject;
use super::out::ResultValue;
use async_graphql::parser::types::SelectionSet;
use penstock_base::error::GatewayError;
use penstock_model::resource::Compiled;
use penstock_resources::business_object::BusinessObject;
use penstock_service::business_objects::show_business_objects;
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
        let shown = if fields.iter().any(|field| field.field.node.name.node == "warnings") {
            let mut shown = Vec::new();
            for some in all.chunks(CHECKED_AT_ONCE) {
                self.budget.check_time()?;
                shown.extend(show_business_objects(&self.sources.gateway, some)?);
            }
            shown
        } else {
            all.iter().map(|compiled| compiled.object.show(Vec::new())).collect()
        };
        let all = shown.iter().map(|one| self.answer_business_object(one, sets));
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
        shown: &BusinessObject,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let model = self.planner.model;
        let id = &shown.id;
        let place = model.business_objects.iter().position(|one| one.compiled.object.id == *id);
        let of = place.and_then(|place| model.root_type(place));
        let left_out = model.left_out.iter().find(|left| left.id == *id);
        let members = to_json(&ListedBusinessObject {
            business_object: shown,
            object_type: of.map(|of| &*of.name),
            type_missing: left_out.map(|left| &*left.why),
        })?;
        self.select_members(TYPE, &members, sets)
    }
}
