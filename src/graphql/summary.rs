//! The summaries of Business Objects: their types, and their answers.
use super::document::{Arguments, Selected};
use super::execution::Execution;
use super::field_definitions::{build_argument, build_field, parse_type_ref};
use super::input;
use super::out::ResultValue;
use super::plan::unimplemented_field_error;
use super::system::{SUMMARY_ROW_TYPE, SUMMARY_TYPE};
use async_graphql::Value;
use async_graphql::dynamic::{Field, Object, SchemaBuilder};
use async_graphql::parser::types::SelectionSet;
use penstock_base::error::GatewayError;
use penstock_model::search::{self, SummaryPlan, SummaryRequest, SummaryRow};

/// Registers the types.
pub(super) fn register_types(schema: SchemaBuilder) -> SchemaBuilder {
    let summary = Object::new(SUMMARY_TYPE)
        .description("How many objects each group has.")
        .field(build_field(
            "rows",
            parse_type_ref(&format!("[{SUMMARY_ROW_TYPE}!]!")),
            "The groups, at most 1,000: the largest first, those of times in order.",
        ))
        .field(build_field(
            "complete",
            parse_type_ref("Boolean!"),
            "Whether these are all groups.",
        ));
    let row = Object::new(SUMMARY_ROW_TYPE)
        .description("A group of objects.")
        .field(build_field(
            "group",
            parse_type_ref("[PenstockJSON]!"),
            "Its values, in the order of the argument `group`; null for no value.",
        ))
        .field(build_field("count", parse_type_ref("Integer!"), "How many objects it has."))
        .field(build_field(
            "measures",
            parse_type_ref("[PenstockJSON]!"),
            "The measures besides `count`, each once, in the order of the argument `measure`; null without a value.",
        ));
    schema.register(summary).register(row)
}

/// Creates the field with the summary of the objects of a Business Object.
pub(super) fn build_summary_field(name: &str, filter: &str, business_object: &str) -> Field {
    let about =
        format!("How many objects of {business_object} each group has, and their measures.");
    build_field(name, parse_type_ref(SUMMARY_TYPE), about)
        .argument(build_argument("where", filter, "The filter."))
        .argument(build_argument(
            "group",
            "[String!]",
            "The fields by which objects are grouped, at most two, named as in the mapping; for dates and times with a \
             unit: `measured.day`.",
        ))
        .argument(build_argument(
            "measure",
            "[String!]",
            "The measures: `min`, `max`, `avg` or `sum` of a field, such as `max(flow)`.",
        ))
        .argument(build_argument(
            "timezone",
            "String",
            "The IANA time zone of minutes to years. The default is that of the Business Object, otherwise UTC.",
        ))
}

impl<'d> Execution<'d> {
    /// Answers with the summary of the objects of a Business Object.
    pub(super) fn answer_summary(
        &self,
        place: usize,
        arguments: &Arguments,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let model = self.planner.model;
        let business = self.business_object_types(place)?;
        let object =
            model.object_types.get(business.object).ok_or_else(unimplemented_field_error)?;
        let filter = input::parse_filter(model, object, arguments)?;
        let (snapshot, compiled) = (self.snapshot()?, &business.compiled);
        let plan = SummaryPlan::new(compiled, &read_request(arguments))?;
        let summary = search::summarize(snapshot, compiled, filter.as_ref(), &plan, &self.budget)?;
        let mut members = Vec::new();
        let fields = self.planner.document.collect_fields(sets, &|name| name == SUMMARY_TYPE);
        for Selected { key, field, sets } in fields {
            let out = match field.node.name.node.as_str() {
                "__typename" => ResultValue::from_text(SUMMARY_TYPE),
                "complete" => ResultValue::from_bool(summary.is_complete),
                "rows" => {
                    let rows = summary.rows.iter().map(|row| self.build_row(row, &sets));
                    ResultValue::List(rows.collect::<Result<_, GatewayError>>()?)
                }
                _ => return Err(unimplemented_field_error()),
            };
            self.count_bytes(key, &out)?;
            members.push((key.clone(), out));
        }
        Ok(ResultValue::Object(members))
    }

    fn build_row(
        &self,
        row: &SummaryRow,
        sets: &[&'d SelectionSet],
    ) -> Result<ResultValue, GatewayError> {
        let mut members = Vec::new();
        let fields = self.planner.document.collect_fields(sets, &|name| name == SUMMARY_ROW_TYPE);
        for Selected { key, field, .. } in fields {
            let raw = |json: &String| ResultValue::Raw(json.clone());
            let out = match field.node.name.node.as_str() {
                "__typename" => ResultValue::from_text(SUMMARY_ROW_TYPE),
                "group" => ResultValue::List(row.group.iter().map(raw).collect()),
                "count" => ResultValue::Raw(row.count.to_string()),
                "measures" => {
                    let measures = row.measures.iter();
                    let measures =
                        measures.map(|json| ResultValue::or_null(json.as_ref().map(raw)));
                    ResultValue::List(measures.collect())
                }
                _ => return Err(unimplemented_field_error()),
            };
            self.count_bytes(key, &out)?;
            members.push((key.clone(), out));
        }
        Ok(ResultValue::Object(members))
    }
}

/// Reads the arguments besides the filter.
fn read_request(arguments: &Arguments) -> SummaryRequest {
    let texts = |name: &str| -> Option<Vec<String>> {
        let values = match arguments.get(name)? {
            Value::List(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let texts = values.iter().filter_map(|value| match value {
            Value::String(text) => Some(text.clone()),
            _ => None,
        });
        Some(texts.collect())
    };
    SummaryRequest {
        groups: texts("group").unwrap_or_default(),
        measures: texts("measure").filter(|texts| !texts.is_empty()).map(|texts| texts.join(",")),
        timezone: arguments.get_text("timezone").map(str::to_owned),
    }
}
