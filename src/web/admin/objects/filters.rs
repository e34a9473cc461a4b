//! The filters of a list of objects. Each has three parameters in the address: `field`, `test` and `text`, those of the
//! second filter `field2`, and so on.
use super::SearchField;
use crate::admin::filter_bar::Select;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_http::query::Query;
use penstock_model::mapping::Shape;
use penstock_model::search::{Filter, ValueTest};

/// The search operators: the name in the address, and the label.
const OPERATORS: [(&str, &str); 8] = [
    ("contains", "contains"),
    ("is", "is"),
    ("startsWith", "begins with"),
    ("before", "is before or less than"),
    ("after", "is after or greater than"),
    ("atMost", "is at most"),
    ("atLeast", "is at least"),
    ("exists", "has a value"),
];

/// The names of the parameters of each filter.
const NAMES: [[&str; 3]; 5] = [
    ["field", "test", "text"],
    ["field2", "test2", "text2"],
    ["field3", "test3", "text3"],
    ["field4", "test4", "text4"],
    ["field5", "test5", "text5"],
];

/// Returns the names of all parameters.
pub(super) fn parameter_names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().flatten()
}

/// The filters of a list. An object must pass all of them.
pub(super) struct Filters {
    given: Vec<GivenFilter>,
    /// The field that a new filter begins with.
    default_field: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct GivenFilter {
    /// The JSON Pointer of the field; empty for the URI.
    field: String,
    test: String,
    text: String,
}

/// A filter in the form.
pub(super) struct FilterRow {
    pub(super) number: usize,
    pub(super) field: Select,
    pub(super) test: Select,
    /// The name of the parameter of the text.
    pub(super) text_name: &'static str,
    pub(super) text: String,
}

impl GivenFilter {
    fn is_search(&self) -> bool {
        !self.text.is_empty() || self.test == "exists"
    }
}

impl Filters {
    /// Reads the filters from the address. Those without a text are left out.
    pub(super) fn read(query: &Query, default_field: &str) -> Self {
        let given = NAMES.iter().map(|names| {
            let [field, test, text] = names.map(|name| query.get(name).unwrap_or_default());
            let (test, text) = (test.to_owned(), text.trim().to_owned());
            GivenFilter { field: field.to_owned(), test, text }
        });
        let given = given.filter(GivenFilter::is_search).collect();
        Self { given, default_field: default_field.to_owned() }
    }

    /// Whether there is a filter.
    pub(super) fn is_search(&self) -> bool {
        !self.given.is_empty()
    }

    /// Returns the filters as parameters of an address.
    pub(super) fn to_parameters(&self) -> Vec<(&'static str, Option<&str>)> {
        let pairs = NAMES.iter().zip(&self.given).flat_map(|([field, test, text], given)| {
            let GivenFilter { field: pointer, test: operator, text: value } = given;
            [(*field, pointer), (*test, operator), (*text, value)]
        });
        pairs
            .map(|(name, value)| (name, Some(value.as_str()).filter(|it| !it.is_empty())))
            .collect()
    }

    /// Returns the rows of the form: the filters, and one to add.
    pub(super) fn to_rows(&self, fields: &[SearchField]) -> Vec<FilterRow> {
        // People search by the label, unless they choose another field.
        let new = GivenFilter { field: self.default_field.clone(), ..GivenFilter::default() };
        let all = self.given.iter().chain([&new]).zip(NAMES).enumerate();
        all.map(|(index, (given, names))| FilterRow::new(index + 1, names, given, fields)).collect()
    }

    /// Returns the filter that an object must pass; `None` without one. Filters below one array are for the same element.
    pub(super) fn build_filter(
        &self,
        shape: &Shape,
        fields: &[SearchField],
    ) -> Result<Option<Filter>, GatewayError> {
        let mut built = Vec::new();
        for given in &self.given {
            built.push(given.build_filter(shape, fields)?);
        }
        Ok(Filter::all_of(shape, built))
    }
}

impl GivenFilter {
    fn build_filter(&self, shape: &Shape, fields: &[SearchField]) -> Result<Filter, GatewayError> {
        let invalid = |detail: String| GatewayError::new(ErrorClass::Invalid, detail);
        let text = self.text.clone();
        let test = match self.test.as_str() {
            "" | "contains" => ValueTest::ContainsAnyCase(text),
            "is" => ValueTest::In(vec![text]),
            "exists" => ValueTest::Exists,
            other => match ValueTest::with_text(other, text) {
                Some(test) => test,
                None => return Err(invalid(format!("there is no operator {other:?}"))),
            },
        };
        if self.field.is_empty() {
            return Ok(Filter::Uri(test));
        }
        let path = fields.iter().find(|(pointer, _)| *pointer == self.field);
        let (_, path) =
            path.ok_or_else(|| invalid(format!("the mapping has no field {:?}", self.field)))?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Filter::for_field(shape, &path, test)
    }
}

impl FilterRow {
    fn new(
        number: usize,
        [field, test, text_name]: [&'static str; 3],
        given: &GivenFilter,
        fields: &[SearchField],
    ) -> Self {
        let uri = (String::new(), "URI".to_owned());
        let named = fields.iter().map(|(pointer, path)| (pointer.clone(), path.join(" › ")));
        let fields = std::iter::once(uri).chain(named);
        Self {
            number,
            field: Select::new(field, "Field", fields, Some(&given.field)),
            test: Select::new(test, "Operator", OPERATORS, Some(&given.test)),
            text_name,
            text: given.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(given: &[[&str; 3]]) -> Filters {
        let given = given.iter().map(|[field, test, text]| GivenFilter {
            field: (*field).to_owned(),
            test: (*test).to_owned(),
            text: (*text).to_owned(),
        });
        Filters { given: given.collect(), default_field: "/name".to_owned() }
    }

    #[test]
    fn an_object_must_pass_all_filters() {
        let mapping = "type: object\npath: A:.\nfields:\n  name: {type: string, path: <urn:n>}\n  flow: {type: number, path: <urn:f>}\n";
        let root = penstock_model::mapping::compile(mapping).unwrap().root;
        let fields: Vec<SearchField> =
            ["name", "flow"].map(|name| (format!("/{name}"), vec![name.to_owned()])).to_vec();
        let build = |given: &[[&str; 3]]| filters(given).build_filter(&root, &fields);
        assert_eq!(build(&[]).unwrap(), None);
        let both = build(&[["/name", "contains", "feed"], ["/flow", "after", "2"]]).unwrap();
        assert!(matches!(both, Some(Filter::All(all)) if all.len() == 2));
        assert!(build(&[["/other", "is", "x"]]).unwrap_err().detail.contains("/other"));
        let least = Filter::for_field(&root, &["flow"], ValueTest::AtLeast("2".to_owned()));
        assert_eq!(build(&[["/flow", "atLeast", "2"]]).unwrap(), Some(least.unwrap()));
    }

    #[test]
    fn the_form_has_one_row_more_than_filters() {
        let fields = vec![("/name".to_owned(), vec!["name".to_owned()])];
        let rows = filters(&[["", "is", "u:1"]]).to_rows(&fields);
        assert_eq!(rows.len(), 2);
        assert!(rows[0].field.choices[0].is_chosen && rows[1].field.choices[1].is_chosen);
        let names = [rows[1].field.name, rows[1].test.name, rows[1].text_name];
        assert_eq!(names, ["field2", "test2", "text2"]);
        assert_eq!(filters(&[["", "is", "x"]; 5]).to_rows(&fields).len(), 5);
    }
}
