//! The operations of the API. One declaration has the route of an operation, its minimum role, its parameters, its body
//! and its answers. The router, the reading of the query and the OpenAPI document follow from it.
use super::access::MinimumRole;
use super::call::Call;
use super::parameters::{Parameter, Parameters, Place, SchemaFn};
use super::problem::Problem;
use super::query::Query;
use super::reply::ReplyResult;
use super::router::{Route, plain_route};
use penstock_model::rdf::Format;
use salvo::http::Method;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Scribe, async_trait};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;
use std::marker::PhantomData;

/// A form that a body can have: a media type, and the type of its value.
#[derive(Debug, Clone)]
pub struct Content {
    /// The media type.
    pub media_type: &'static str,
    /// The type of the value.
    pub schema: SchemaFn,
}

/// The body of a request.
#[derive(Debug, Clone)]
pub struct Body {
    /// What it contains; empty if its type says it.
    pub description: &'static str,
    /// Whether the request must have it.
    pub is_required: bool,
    /// The forms that it can have.
    pub contents: Vec<Content>,
}

/// A successful answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// What it means.
    pub description: &'static str,
    /// The forms that its body can have.
    pub contents: Vec<Content>,
    /// Its headers, with what they mean.
    pub headers: Vec<(&'static str, &'static str)>,
}

/// An operation of the API.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a route has a handler")]
pub struct Operation {
    /// Its route.
    pub route: Route,
    /// Its unique name, for generated clients.
    pub id: &'static str,
    /// The group of operations that it belongs to.
    pub tag: &'static str,
    /// What it does: one sentence, and more after an empty line.
    pub description: &'static str,
    /// The parameters.
    pub parameters: Vec<Parameter>,
    /// The body of the request, if it has one.
    pub body: Option<Body>,
    /// The successful answers.
    pub answers: Vec<Answer>,
    /// The statuses of its problems, besides those that every operation can have.
    pub problems: &'static [u16],
    /// Further media types of problems, for these statuses.
    pub problem_contents: Vec<(u16, Content)>,
}

/// A handler of an operation: an asynchronous function of [`Call`] and of its [`Parameters`], if it has some. `Q` is `()` for
/// a function without parameters, and otherwise the tuple of their type.
pub trait Handle<'a, Q>: Send + Sync + 'static {
    /// The future of the answer.
    type Future: Future<Output = ReplyResult> + Send + 'a;

    /// Describes the parameters.
    fn describe_parameters() -> Vec<Parameter>;

    /// Reads the parameters, and begins the call. `described` is what [`Self::describe_parameters`] returns.
    ///
    /// # Errors
    /// 400 for a malformed parameter, and for an unknown or repeated one in the query.
    fn begin(&self, call: Call<'a>, described: &[Parameter]) -> Result<Self::Future, Problem>;
}

impl<'a, F, R> Handle<'a, ()> for F
where
    F: Fn(Call<'a>) -> R + Send + Sync + 'static,
    R: Future<Output = ReplyResult> + Send + 'a,
{
    type Future = R;

    fn describe_parameters() -> Vec<Parameter> {
        Vec::new()
    }

    fn begin(&self, call: Call<'a>, _described: &[Parameter]) -> Result<R, Problem> {
        Query::read(call.req, &[])?;
        Ok(self(call))
    }
}

impl<'a, F, R, Q> Handle<'a, (Q,)> for F
where
    F: Fn(Call<'a>, Q) -> R + Send + Sync + 'static,
    R: Future<Output = ReplyResult> + Send + 'a,
    Q: Parameters,
{
    type Future = R;

    fn describe_parameters() -> Vec<Parameter> {
        Q::describe()
    }

    fn begin(&self, call: Call<'a>, described: &[Parameter]) -> Result<R, Problem> {
        let parameters = Q::read_request(call.req, described)?;
        Ok(self(call, parameters))
    }
}

/// Runs the handler of an operation.
struct Runner<F, Q> {
    handler: F,
    described: Vec<Parameter>,
    parameters: PhantomData<fn() -> Q>,
}

#[async_trait]
impl<F, Q> Handler for Runner<F, Q>
where
    F: for<'a> Handle<'a, Q>,
    Q: 'static,
{
    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        _ctrl: &mut FlowCtrl,
    ) {
        let outcome = match self.handler.begin(Call { req, depot }, &self.described) {
            Ok(answer) => answer.await,
            Err(problem) => Err(problem),
        };
        match outcome {
            Ok(reply) => reply.render(res),
            Err(problem) => problem.write_response(req, depot, res),
        }
    }
}

/// Declares an operation that reads.
pub fn get<F, Q>(path: &'static str, role: MinimumRole, handler: F) -> Operation
where
    F: for<'a> Handle<'a, Q>,
    Q: 'static,
{
    Operation::new(Method::GET, path, role, handler)
}

/// Declares an operation that creates or replaces what its path names.
pub fn put<F, Q>(path: &'static str, role: MinimumRole, handler: F) -> Operation
where
    F: for<'a> Handle<'a, Q>,
    Q: 'static,
{
    Operation::new(Method::PUT, path, role, handler)
}

/// Declares an operation that processes what it is sent.
pub fn post<F, Q>(path: &'static str, role: MinimumRole, handler: F) -> Operation
where
    F: for<'a> Handle<'a, Q>,
    Q: 'static,
{
    Operation::new(Method::POST, path, role, handler)
}

/// Declares an operation that deletes what its path names.
pub fn delete<F, Q>(path: &'static str, role: MinimumRole, handler: F) -> Operation
where
    F: for<'a> Handle<'a, Q>,
    Q: 'static,
{
    Operation::new(Method::DELETE, path, role, handler)
}

impl Operation {
    fn new<F, Q>(method: Method, path: &'static str, role: MinimumRole, handler: F) -> Self
    where
        F: for<'a> Handle<'a, Q>,
        Q: 'static,
    {
        let described = <F as Handle<'static, Q>>::describe_parameters();
        let runner = Runner { handler, described: described.clone(), parameters: PhantomData };
        let mut operation = Self::with_handler(method, path, role, runner);
        operation.parameters.extend(described);
        operation
    }

    /// Declares an operation whose handler writes the response, as that of a page does.
    pub fn with_handler(
        method: Method,
        path: &'static str,
        role: MinimumRole,
        handler: impl Handler,
    ) -> Self {
        Self {
            route: plain_route(method, path, role, handler),
            id: "",
            tag: "",
            description: "",
            parameters: path_parameters(path),
            body: None,
            answers: Vec::new(),
            problems: &[],
            problem_contents: Vec::new(),
        }
    }

    /// Sets the id, the tag and the description. Without them, the OpenAPI document leaves the operation out.
    #[must_use]
    pub fn describe(
        mut self,
        id: &'static str,
        tag: &'static str,
        description: &'static str,
    ) -> Self {
        (self.id, self.tag, self.description) = (id, tag, description);
        self
    }

    /// Whether the OpenAPI document describes it.
    pub fn is_documented(&self) -> bool {
        !self.id.is_empty()
    }

    /// Describes a parameter of the path, the query or the headers.
    #[must_use]
    pub fn parameter(mut self, name: &str, description: &'static str) -> Self {
        let known = self.parameters.iter_mut().find(|parameter| parameter.name == name);
        debug_assert!(known.is_some(), "{}: no parameter {name}", self.route.path);
        if let Some(parameter) = known {
            parameter.description = description;
        }
        self
    }

    /// Adds an optional query parameter, for a handler that reads the query.
    #[must_use]
    pub fn query<T: JsonSchema>(mut self, name: &'static str, description: &'static str) -> Self {
        self.parameters.push(Parameter {
            name,
            place: Place::Query,
            description,
            is_required: false,
            is_list: false,
            schema: schema_of::<T>,
        });
        self
    }

    /// Makes a parameter required.
    #[must_use]
    pub fn require(mut self, name: &str) -> Self {
        let known = self.parameters.iter_mut().find(|parameter| parameter.name == name);
        debug_assert!(known.is_some(), "{}: no parameter {name}", self.route.path);
        if let Some(parameter) = known {
            parameter.is_required = true;
        }
        self
    }

    /// Adds an optional header of the request.
    #[must_use]
    pub fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.parameters.push(Parameter::header(name, description));
        self
    }

    /// Adds a JSON body of this type.
    #[must_use]
    pub fn body<T: JsonSchema>(self) -> Self {
        self.body_as::<T>("application/json")
    }

    /// Adds a body of this type and media type, or a further media type.
    #[must_use]
    pub fn body_as<T: JsonSchema>(mut self, media_type: &'static str) -> Self {
        let none = || Body { description: "", is_required: true, contents: Vec::new() };
        let content = Content { media_type, schema: schema_of::<T> };
        self.body.get_or_insert_with(none).contents.push(content);
        self
    }

    /// Describes the body, which may be absent if `is_required` is false.
    #[must_use]
    pub fn describe_body(mut self, description: &'static str, is_required: bool) -> Self {
        if let Some(body) = &mut self.body {
            (body.description, body.is_required) = (description, is_required);
        }
        self
    }

    /// Adds a JSON answer of this type.
    #[must_use]
    pub fn answer<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.empty_answer(status, description).answer_as::<T>("application/json")
    }

    /// Adds an answer without a body.
    #[must_use]
    pub fn empty_answer(mut self, status: u16, description: &'static str) -> Self {
        self.answers.push(Answer {
            status,
            description,
            contents: Vec::new(),
            headers: Vec::new(),
        });
        self
    }

    /// Adds a form that the body of the last answer can have.
    #[must_use]
    pub fn answer_as<T: JsonSchema>(mut self, media_type: &'static str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.contents.push(Content { media_type, schema: schema_of::<T> });
        }
        self
    }

    /// Adds every RDF format to the last answer.
    #[must_use]
    pub fn answer_as_rdf(self) -> Self {
        Format::ALL.iter().fold(self, |operation, format| match format {
            Format::JsonLd => operation.answer_as::<Value>(format.media_type()),
            _ => operation.answer_as::<String>(format.media_type()),
        })
    }

    /// Adds a header to the last answer.
    #[must_use]
    pub fn answer_header(mut self, name: &'static str, description: &'static str) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            answer.headers.push((name, description));
        }
        self
    }

    /// Adds the `ETag` of a version to the last answer.
    #[must_use]
    pub fn etag(self) -> Self {
        self.answer_header("ETag", "The version in quotes.")
    }

    /// Adds the path of what was created to the last answer.
    #[must_use]
    pub fn location(self) -> Self {
        self.answer_header("Location", "Its path.")
    }

    /// Sets the statuses of its problems, besides those that every operation can have.
    #[must_use]
    pub fn problems(mut self, statuses: &'static [u16]) -> Self {
        self.problems = statuses;
        self
    }

    /// Adds a further media type of the problems with these statuses.
    #[must_use]
    pub fn problem_as<T: JsonSchema>(mut self, statuses: &[u16], media_type: &'static str) -> Self {
        let contents =
            statuses.iter().map(|status| (*status, Content { media_type, schema: schema_of::<T> }));
        self.problem_contents.extend(contents);
        self
    }
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Returns the parameters in a path, such as `{id}`.
fn path_parameters(path: &'static str) -> Vec<Parameter> {
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    names
        .filter(|name| !name.starts_with("**"))
        .map(|name| Parameter {
            name,
            place: Place::Path,
            description: if name == "id" { "Its id." } else { "Its name." },
            is_required: true,
            is_list: false,
            schema: schema_of::<String>,
        })
        .collect()
}
