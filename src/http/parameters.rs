//! The parameters of operations, and their types in the query and in headers. The declaration of a parameter is its reading,
//! its error and its description.
use super::problem::Problem;
use super::query::{CursorKey, MAX_LIMIT, Query, TextCursor, cursor_after};
use penstock_model::ingest::{BodyForm, Mode, OnError, parse_mode, parse_on_error};
use penstock_resources::Page;
use penstock_resources::change::{ChangeRole, ChangeState};
pub use salvo::Request;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Returns the JSON Schema of a type.
pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// Where a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// A header.
    Header,
}

/// A parameter of an operation.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it is.
    pub place: Place,
    /// What it means.
    pub description: &'static str,
    /// Whether the request must have it.
    pub is_required: bool,
    /// Whether it may be repeated.
    pub is_list: bool,
    /// The type of its value.
    pub schema: SchemaFn,
}

impl Parameter {
    /// Describes an optional header of the request.
    pub fn header(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            place: Place::Header,
            description,
            is_required: false,
            is_list: false,
            schema: |generator| generator.subschema_for::<String>(),
        }
    }

    /// Describes a query parameter.
    pub fn query<T: ParameterValue>(name: &'static str, description: &'static str) -> Self {
        let schema: SchemaFn = T::schema;
        Self {
            name,
            place: Place::Query,
            description,
            is_required: false,
            is_list: T::IS_LIST,
            schema,
        }
    }
}

/// Parameters of an operation that its handler gets. [`parameters!`](crate::parameters!) declares those of a query.
pub trait Parameters: Sized + Send + 'static {
    /// Describes each parameter.
    fn describe() -> Vec<Parameter>;

    /// Reads the parameters, which are in this query or are headers of the request.
    ///
    /// # Errors
    /// 400 with the parameter, its value and what it must be.
    fn read(req: &Request, query: &Query) -> Result<Self, Problem>;

    /// Reads the parameters of a request; `described` is what [`Self::describe`] returns.
    ///
    /// # Errors
    /// 400 for an unknown or repeated parameter, or as [`Self::read`].
    fn read_request(req: &Request, described: &[Parameter]) -> Result<Self, Problem> {
        let in_query = described.iter().filter(|parameter| parameter.place == Place::Query);
        let known: Vec<_> = in_query.map(|parameter| (parameter.name, parameter.is_list)).collect();
        Self::read(req, &Query::read_known(req, &known)?)
    }
}

/// The value of a query parameter.
pub trait ParameterValue: Sized {
    /// Whether the parameter may be repeated.
    const IS_LIST: bool = false;

    /// Returns the JSON Schema of the value.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Reads the value of the parameter with this name.
    ///
    /// # Errors
    /// 400 with the parameter, its value and what it must be.
    fn read(query: &Query, name: &str) -> Result<Self, Problem>;
}

impl ParameterValue for Option<String> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<String>()
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        Ok(query.get(name).map(str::to_owned))
    }
}

impl ParameterValue for Vec<String> {
    const IS_LIST: bool = true;

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Self>()
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        Ok(query.get_all(name).to_vec())
    }
}

/// The filters of a list: the parameters whose names begin with `filter.`, each with its values.
#[derive(Debug, Default)]
pub struct FilterParameters(pub Vec<(String, Vec<String>)>);

impl ParameterValue for FilterParameters {
    const IS_LIST: bool = true;

    fn schema(_generator: &mut SchemaGenerator) -> Schema {
        // Each member of the object is a parameter (OpenAPI, style `form` with `explode`).
        json_schema!({
            "type": "object",
            "propertyNames": {"pattern": "^filter\\."},
            "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}},
        })
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        let named = query.iter_below(name);
        Ok(Self(named.map(|(name, values)| (name.to_owned(), values.to_vec())).collect()))
    }
}

impl ParameterValue for bool {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Self>()
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        query.read_flag(name)
    }
}

impl ParameterValue for Option<bool> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<bool>()
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        query.get(name).map(|_| query.read_flag(name)).transpose()
    }
}

/// A value out of a few names.
pub trait Choice: Sized + JsonSchema {
    /// Returns the value with this name.
    ///
    /// # Errors
    /// What the names are.
    fn parse(name: &str) -> Result<Self, String>;
}

impl Choice for Mode {
    fn parse(name: &str) -> Result<Self, String> {
        parse_mode(name).map_err(|error| error.detail)
    }
}

impl Choice for OnError {
    fn parse(name: &str) -> Result<Self, String> {
        parse_on_error(name).map_err(|error| error.detail)
    }
}

impl Choice for BodyForm {
    fn parse(name: &str) -> Result<Self, String> {
        Self::parse(name)
    }
}

impl Choice for ChangeState {
    fn parse(name: &str) -> Result<Self, String> {
        Self::parse(name)
    }
}

impl Choice for ChangeRole {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "author" => Ok(Self::Author),
            "owner" => Ok(Self::Owner),
            "approver" => Ok(Self::Approver),
            _ => Err(format!(
                "the query parameter role is {name:?}; it must be author, owner or approver"
            )),
        }
    }
}

impl<T: Choice> ParameterValue for Option<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        query.get(name).map(T::parse).transpose().map_err(Problem::malformed)
    }
}

/// Declares the query parameters of an operation as a struct of [`ParameterValue`]s: for each its name, its
/// description and the field that it becomes. `..page: PageQuery<…>` adds those of a page.
///
/// ```text
/// parameters! {
///     /// Which changes are listed.
///     pub(super) struct ChangesQuery {
///         "role" => role: Option<ChangeRole>, "Only changes to which the caller has this relation.";
///         ..page: PageQuery<UuidCursor>
///     }
/// }
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($parameter:literal => $field:ident: $type:ty, $description:literal;)*
            $(..$rest:ident: $rest_type:ty)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug)]
        $visibility struct $name {
            $($field: $type,)*
            $($rest: $rest_type,)?
        }

        impl $crate::parameters::Parameters for $name {
            fn describe() -> Vec<$crate::parameters::Parameter> {
                let mut described = vec![$($crate::parameters::Parameter::query::<$type>($parameter, $description)),*];
                $(described.extend(<$rest_type as $crate::parameters::Parameters>::describe());)?
                described
            }

            fn read(
                req: &$crate::parameters::Request,
                query: &$crate::query::Query,
            ) -> Result<Self, $crate::problem::Problem> {
                // Only the parameters of a page are read with it.
                let _ = req;
                Ok(Self {
                    $($field: $crate::parameters::ParameterValue::read(query, $parameter)?,)*
                    $($rest: $crate::parameters::Parameters::read(req, query)?,)?
                })
            }
        }
    };
}

/// The key in `cursor`, if there is one: where a page begins.
#[derive(Debug)]
pub struct After<C: CursorKey>(pub Option<C::Key>);

impl<C: CursorKey> ParameterValue for After<C> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<String>()
    }

    fn read(query: &Query, name: &str) -> Result<Self, Problem> {
        debug_assert_eq!(name, "cursor");
        query.read_cursor::<C>().map(Self)
    }
}

/// The parameters of a page of a list with cursors of several kinds.
#[derive(Debug)]
pub struct AnyPageQuery {
    /// The maximum number of items of the page.
    pub limit: usize,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
}

impl Parameters for AnyPageQuery {
    fn describe() -> Vec<Parameter> {
        PageQuery::<TextCursor>::describe()
    }

    fn read(_req: &Request, query: &Query) -> Result<Self, Problem> {
        Ok(Self { limit: query.read_limit()?, cursor: query.get("cursor").map(str::to_owned) })
    }
}

/// The parameters of a page of a list.
#[derive(Debug)]
pub struct PageQuery<C: CursorKey> {
    /// The maximum number of items of the page.
    pub limit: usize,
    /// The key of the last item of the previous page.
    pub after: Option<C::Key>,
}

impl<C: CursorKey> Parameters for PageQuery<C> {
    fn describe() -> Vec<Parameter> {
        vec![
            Parameter {
                name: "limit",
                place: Place::Query,
                description: "Items of a page, 1 to 1000; 100 when absent.",
                is_required: false,
                is_list: false,
                schema: |_| json_schema!({"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
            },
            Parameter::query::<After<C>>("cursor", "The `next` of the previous page."),
        ]
    }

    fn read(_req: &Request, query: &Query) -> Result<Self, Problem> {
        Ok(Self { limit: query.read_limit()?, after: query.read_cursor::<C>()? })
    }
}

impl PageQuery<TextCursor> {
    /// Creates the page of a list of which all items are given, ordered by `key`.
    pub fn page_of_all<T>(&self, mut items: Vec<T>, key: impl Fn(&T) -> &str) -> Page<T> {
        if let Some(after) = &self.after {
            items.retain(|item| key(item) > after.as_str());
        }
        self.page(items, |item| key(item).to_owned())
    }
}

impl<C: CursorKey> PageQuery<C> {
    /// Creates the page of these items, of which there is one more than `limit` if a further page follows.
    pub fn page<T>(&self, items: Vec<T>, key: impl Fn(&T) -> String) -> Page<T> {
        page_of(items, self.limit, key)
    }
}

/// Creates the page of the first `limit` of these items. There is a further page if there are more. The cursor has the key
/// of the last item.
pub fn page_of<T>(mut items: Vec<T>, limit: usize, key: impl Fn(&T) -> String) -> Page<T> {
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| cursor_after(&key(last)));
    Page { items, next }
}

/// The parameters of both, such as those of a query and the headers of conditions.
impl<A: Parameters, B: Parameters> Parameters for (A, B) {
    fn describe() -> Vec<Parameter> {
        [A::describe(), B::describe()].concat()
    }

    fn read(req: &Request, query: &Query) -> Result<Self, Problem> {
        Ok((A::read(req, query)?, B::read(req, query)?))
    }
}

/// Any query parameters: the handler reads them.
#[derive(Debug)]
pub struct AnyQuery;

impl Parameters for AnyQuery {
    fn describe() -> Vec<Parameter> {
        Vec::new()
    }

    fn read(_req: &Request, _query: &Query) -> Result<Self, Problem> {
        Ok(Self)
    }

    fn read_request(_req: &Request, _described: &[Parameter]) -> Result<Self, Problem> {
        Ok(Self)
    }
}

/// The parameters, or why they cannot be read, for a handler that reports the error.
impl<Q: Parameters> Parameters for Result<Q, Problem> {
    fn describe() -> Vec<Parameter> {
        Q::describe()
    }

    fn read(req: &Request, query: &Query) -> Result<Self, Problem> {
        Ok(Q::read(req, query))
    }

    fn read_request(req: &Request, described: &[Parameter]) -> Result<Self, Problem> {
        Ok(Q::read_request(req, described))
    }
}
