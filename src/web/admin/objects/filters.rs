//! The filters that the page shows: the form that adds one, and chips.
use super::address::{FILTER_NAMES, Pair};
use super::conditions::{OPERATORS, find_trimmed, read_form_filter};
use super::state::State;
use crate::admin::filter_bar::Select;
use crate::admin::views::describe_filter;
use crate::admin::words::shorten_text;
use penstock_model::mapping::Shape;
use penstock_model::search::{TextFilter, list_search_fields};
use penstock_resources::view::ViewFilter;

/// The maximum number of fields that can be chosen.
const MAX_CHOSEN_FIELDS: usize = 200;

/// A filter that the form sent and that does not fit.
pub(super) struct WrongFilter {
    field: String,
    /// The name of the operator.
    test: String,
    text: String,
    /// Why it does not fit.
    why: String,
}

impl WrongFilter {
    /// Takes the filter that the form sent out of the state if it does not fit. The page then shows the objects without it, and
    /// the form what was typed.
    pub(super) fn take(state: &mut State, shape: &Shape, pairs: &[Pair]) -> Option<Self> {
        let [names, ..] = &FILTER_NAMES;
        let condition = read_form_filter(shape, pairs, names)?;
        let ViewFilter { field, test, value } = &condition;
        let error = TextFilter { field, test, value }.check(shape).err()?;
        state.conditions.retain(|known| *known != condition);
        let [_, test, text] = names.map(|name| find_trimmed(pairs, name).to_owned());
        Some(Self { field: condition.field, test, text, why: error.detail })
    }
}

/// A filter that the page shows.
pub(super) struct Chip {
    /// The filter in words.
    pub(super) words: String,
    /// The address of the page without it.
    pub(super) removal: String,
}

/// Returns the chips of a state. `path` is the address of the page without parameters.
pub(super) fn list_chips(state: &State, shape: &Shape, path: &str) -> Vec<Chip> {
    let chips = state.conditions.iter().enumerate().map(|(place, condition)| Chip {
        words: shorten_text(&describe_filter(condition)),
        removal: format!("{path}{}", state.without_condition(place).to_query(shape)),
    });
    chips.collect()
}

/// The form that adds a filter.
pub(super) struct FilterForm {
    pub(super) field: Select,
    pub(super) test: Select,
    pub(super) text: String,
    /// Why the filter that was sent does not fit; empty without one.
    pub(super) fault: String,
}

impl FilterForm {
    /// Creates the form, with the filter that was sent last if that was wrong. People filter by the label, unless they choose
    /// another field.
    pub(super) fn new(shape: &Shape, label: Option<&str>, wrong: Option<WrongFilter>) -> Self {
        let sent = wrong.unwrap_or_else(|| WrongFilter {
            field: label.unwrap_or("uri").to_owned(),
            test: "contains".to_owned(),
            text: String::new(),
            why: String::new(),
        });
        let uri = std::iter::once("uri".to_owned());
        let names = list_search_fields(shape).into_iter().map(|field| field.name);
        let names = uri.chain(names.take(MAX_CHOSEN_FIELDS));
        let fields =
            names.map(|name| (name.clone(), if name == "uri" { "URI".to_owned() } else { name }));
        let operators = OPERATORS.map(|(name, _, _, words)| (name, words));
        Self {
            field: Select::new("field", "Field", fields, Some(sent.field.as_str())),
            test: Select::new("test", "Operator", operators, Some(sent.test.as_str())),
            text: sent.text,
            fault: sent.why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::time_zone::Zone;

    #[test]
    fn the_form_offers_the_fields_and_begins_with_the_label() {
        let mapping = "type: object\npath: A:.\nfields:\n  name: {type: string, path: <urn:n>}\n  data: {type: json, path: <urn:d>}\n";
        let root = penstock_model::mapping::compile(mapping).unwrap().root;
        let form = FilterForm::new(&root, Some("name"), None);
        let fields: Vec<_> =
            form.field.choices.iter().map(|choice| choice.value.as_str()).collect();
        assert_eq!(fields, ["uri", "name"]);
        assert!(form.field.choices[1].is_chosen && form.test.choices[0].is_chosen);
        assert!(FilterForm::new(&root, None, None).field.choices[0].is_chosen);
    }

    #[test]
    fn a_filter_of_the_form_that_does_not_fit_is_back_in_the_form() {
        let mapping = "type: object\npath: A:.\nfields:\n  name: {type: string, path: <urn:n>}\n  flow: {type: number, path: <urn:f>}\n";
        let root = penstock_model::mapping::compile(mapping).unwrap().root;
        let take = |query: &str| {
            let pairs = penstock_http::query::parse_form(query.as_bytes()).unwrap();
            let mut state = State::new(&root, None, &pairs, &Zone::UTC);
            let wrong = WrongFilter::take(&mut state, &root, &pairs);
            (FilterForm::new(&root, Some("name"), wrong), state.to_query(&root))
        };
        let (form, query) = take("filter.name=a&field=flow&test=after&text=+high");
        let chosen = |select: &Select| {
            select.choices.iter().find(|choice| choice.is_chosen).map(|choice| choice.value.clone())
        };
        assert_eq!(chosen(&form.field).as_deref(), Some("flow"));
        assert_eq!(chosen(&form.test).as_deref(), Some("after"));
        assert_eq!(form.text, "high");
        assert!(!form.fault.is_empty());
        assert_eq!(query, "?filter.name=a");
        let (form, query) = take("field=flow&test=after&text=7");
        assert!(form.text.is_empty() && form.fault.is_empty());
        assert_eq!(query, "?filter.flow.after=7");
    }
}
