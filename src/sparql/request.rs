//! Parsed requests.
use crate::constant_patterns::check_constant_patterns;
use crate::newer_syntax::check_version;
use crate::syntax::{
    RequestKind, Token, Tokens, check_comparisons, check_nesting, prepare, to_error,
};
use crate::warnings::find_warnings;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::prefixes::WELL_KNOWN_PREFIXES;
use penstock_base::unwind::catch;
use spargebra::algebra::{GraphPattern, QueryDataset};
use spargebra::{GraphUpdateOperation, SparqlParser};
use std::collections::HashMap;
use std::sync::LazyLock;

/// The graphs that the parameters of the protocol name (SPARQL 1.1 Protocol, sections 2.1.4 and 2.2.3). If there are
/// any, they replace those of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetParameters {
    /// `default-graph-uri` or `using-graph-uri`
    pub default_graphs: Vec<NamedNode>,
    /// `named-graph-uri` or `using-named-graph-uri`
    pub named_graphs: Vec<NamedNode>,
}

impl DatasetParameters {
    fn to_dataset(&self) -> Option<QueryDataset> {
        if self.default_graphs.is_empty() && self.named_graphs.is_empty() {
            return None;
        }
        let named = Some(self.named_graphs.clone());
        Some(QueryDataset { default: self.default_graphs.clone(), named })
    }
}

/// The form of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryForm {
    /// Solutions.
    Select,
    /// A boolean.
    Ask,
    /// A graph.
    Construct,
    /// A graph.
    Describe,
}

/// A parsed query.
#[derive(Debug, Clone)]
pub struct Query {
    pub(crate) parsed: spargebra::Query,
    /// Whether the text has SERVICE.
    pub(crate) uses_service: bool,
}

impl Query {
    /// Parses a query (SPARQL 1.1 Query). The well-known prefixes need no declaration. Call it on a thread of
    /// [`crate::spawn_query_thread`] or in [`crate::run_on_query_stack`].
    ///
    /// # Errors
    /// [`ErrorClass::Malformed`] with line and column, also if it is nested too deeply; [`ErrorClass::TooLarge`].
    pub fn parse(text: &str, parameters: &DatasetParameters) -> Result<Self, GatewayError> {
        check_nesting(text)?;
        check_version(text)?;
        check_comparisons(text)?;
        let mut query = catch("the SPARQL request", || {
            let parsed = parser()?.parse_query(&prepare(text));
            parsed.map_err(|error| to_error(text, &error, RequestKind::Query))
        })?;
        check_constant_patterns(text)?;
        if let spargebra::Query::Select { pattern, .. } = &mut query {
            order_columns(text, pattern);
        }
        if let Some(dataset) = parameters.to_dataset() {
            match &mut query {
                spargebra::Query::Select { dataset: of_text, .. }
                | spargebra::Query::Ask { dataset: of_text, .. }
                | spargebra::Query::Construct { dataset: of_text, .. }
                | spargebra::Query::Describe { dataset: of_text, .. } => *of_text = Some(dataset),
            }
        }
        Ok(Self { parsed: query, uses_service: has_service(text) })
    }

    /// Returns what is valid and probably not meant, a sentence for each.
    pub fn warnings(&self) -> Vec<String> {
        find_warnings(&self.parsed)
    }

    /// Returns the form.
    pub fn form(&self) -> QueryForm {
        match &self.parsed {
            spargebra::Query::Select { .. } => QueryForm::Select,
            spargebra::Query::Ask { .. } => QueryForm::Ask,
            spargebra::Query::Construct { .. } => QueryForm::Construct,
            spargebra::Query::Describe { .. } => QueryForm::Describe,
        }
    }
}

/// Orders the columns of `SELECT *` as the variables appear in the text; the parser orders them by name.
fn order_columns(text: &str, pattern: &mut GraphPattern) {
    let mut tokens =
        Tokens::new(text).map(|(_, token)| token).skip_while(|token| !is_word(*token, "SELECT"));
    let is_modifier = |token: &Token<'_>| is_word(*token, "DISTINCT") || is_word(*token, "REDUCED");
    tokens.next();
    if tokens.find(|token| !is_modifier(token)) != Some(Token::Symbol('*')) {
        return;
    }
    let mut places = HashMap::new();
    for (place, token) in tokens.enumerate() {
        if let Token::Word(word) = token
            && let Some(name) = word.strip_prefix(['?', '$'])
        {
            places.entry(name).or_insert(place);
        }
    }
    let mut pattern = pattern;
    loop {
        match pattern {
            GraphPattern::Project { variables, .. } => {
                return variables.sort_by_key(|variable| {
                    places.get(variable.as_str()).copied().unwrap_or(usize::MAX)
                });
            }
            GraphPattern::Slice { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::OrderBy { inner, .. } => pattern = inner,
            _ => return,
        }
    }
}

fn has_service(text: &str) -> bool {
    Tokens::new(text).any(|(_, token)| is_word(token, "SERVICE"))
}

fn is_word(token: Token<'_>, sought: &str) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(sought))
}

/// A parsed update.
#[derive(Debug, Clone)]
pub struct Update {
    pub(crate) operations: Vec<Operation>,
    pub(crate) base_iri: Option<oxiri::Iri<String>>,
}

/// One operation of an update.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) kind: GraphUpdateOperation,
    /// For COPY, MOVE and ADD. Their patterns read the unnamed graph as the default graph; those of a WHERE read the
    /// union of all graphs.
    pub(crate) copy: Option<Copy>,
}

/// An operation that copies a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copy {
    /// Whether a graph without quads may be copied.
    pub(crate) is_silent: bool,
}

impl Update {
    /// Parses an update (SPARQL 1.1 Update). The well-known prefixes need no declaration. Call it on a thread of
    /// [`crate::spawn_query_thread`].
    ///
    /// # Errors
    /// As [`Query::parse`]; also for LOAD and SERVICE, which are refused, and for parameters beside USING or WITH.
    pub fn parse(text: &str, using: &DatasetParameters) -> Result<Self, GatewayError> {
        check_nesting(text)?;
        check_version(text)?;
        check_comparisons(text)?;
        let update = catch("the SPARQL request", || {
            let parsed = parser()?.parse_update(&prepare(text));
            parsed.map_err(|error| to_error(text, &error, RequestKind::Update))
        })?;
        check_constant_patterns(text)?;
        let mut operations = to_operations(text, update.operations)?;
        refuse_remote_data(text, &operations)?;
        for operation in &mut operations {
            if let (Some(parameters), GraphUpdateOperation::DeleteInsert { using, .. }, None) =
                (using.to_dataset(), &mut operation.kind, operation.copy)
            {
                if using.is_some() {
                    return Err(GatewayError::new(
                        ErrorClass::Malformed,
                        "the update has USING or WITH beside the parameters using-graph-uri or using-named-graph-uri; use one of both",
                    ));
                }
                *using = Some(parameters);
            }
        }
        Ok(Self { operations, base_iri: update.base_iri })
    }
}

fn parser() -> Result<SparqlParser, GatewayError> {
    // Checking the prefixes takes longer than copying them.
    static PARSER: LazyLock<Result<SparqlParser, String>> = LazyLock::new(|| {
        WELL_KNOWN_PREFIXES.iter().try_fold(SparqlParser::new(), |parser, (prefix, iri)| {
            let parser = parser.with_prefix(*prefix, *iri);
            parser.map_err(|error| format!("the prefix {prefix}: {error}"))
        })
    });
    (*PARSER).clone().map_err(|detail| GatewayError::new(ErrorClass::Internal, detail))
}

/// Marks the operations of COPY, MOVE and ADD. The parser replaces them by the operations that SPARQL 1.1 Update,
/// sections 3.2.3 to 3.2.5, defines them by, so the text of each operation is parsed again to count these.
fn to_operations(
    text: &str,
    operations: Vec<GraphUpdateOperation>,
) -> Result<Vec<Operation>, GatewayError> {
    let statements = split_statements(text);
    let mut marks = Vec::new();
    if statements.iter().any(|statement| statement.copy.is_some()) {
        let mut prologues = String::new();
        for statement in statements {
            let text = prepare(&format!("{prologues}{}{}", statement.prologue, statement.body));
            let parsed = catch("the SPARQL request", || {
                parser()?.parse_update(&text).map_err(|_| unclear_error())
            })?;
            marks.extend(std::iter::repeat_n(statement.copy, parsed.operations.len()));
            prologues.push_str(statement.prologue);
            prologues.push('\n');
        }
        if marks.len() != operations.len() {
            return Err(unclear_error());
        }
    }
    let marks = marks.into_iter().chain(std::iter::repeat(None));
    let operations = operations.into_iter().zip(marks);
    Ok(operations.map(|(kind, copy)| Operation { kind, copy }).collect())
}

fn unclear_error() -> GatewayError {
    GatewayError::new(
        ErrorClass::Malformed,
        "the operations of the update cannot be told apart; send COPY, MOVE and ADD in requests of their own",
    )
}

/// The text of one operation.
struct Statement<'t> {
    /// Its BASE and PREFIX declarations.
    prologue: &'t str,
    body: &'t str,
    /// If it is COPY, MOVE or ADD.
    copy: Option<Copy>,
}

fn split_statements(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let (mut start, mut open) = (0, 0_usize);
    // Where the operation's keyword is, behind the prologue.
    let mut keyword: Option<(usize, &str)> = None;
    let mut is_silent = false;
    let mut in_declaration = false;
    for (at, token) in Tokens::new(text).chain([(text.len(), Token::Symbol(';'))]) {
        match token {
            Token::Symbol('{' | '(' | '[') => open += 1,
            Token::Symbol('}' | ')' | ']') => open = open.saturating_sub(1),
            Token::Symbol(';') if open == 0 => {
                let is_silent = std::mem::take(&mut is_silent);
                if let Some((body, word)) = keyword.take() {
                    let is_copy =
                        ["COPY", "MOVE", "ADD"].iter().any(|copy| is_word(Token::Word(word), copy));
                    statements.push(Statement {
                        prologue: text.get(start..body).unwrap_or_default(),
                        body: text.get(body..at).unwrap_or_default(),
                        copy: is_copy.then_some(Copy { is_silent }),
                    });
                }
                start = at + 1;
            }
            Token::Word(_) if keyword.is_some() && open == 0 => {
                is_silent |= is_word(token, "SILENT");
            }
            Token::Word(word) if keyword.is_none() && !in_declaration => {
                if is_word(token, "PREFIX") || is_word(token, "BASE") {
                    in_declaration = true;
                } else {
                    keyword = Some((at, word));
                }
            }
            Token::Iri(_) | Token::Quoted => in_declaration = false,
            Token::Word(_) | Token::Symbol(_) => {}
        }
    }
    statements
}

/// Refuses what would fetch data from elsewhere.
fn refuse_remote_data(text: &str, operations: &[Operation]) -> Result<(), GatewayError> {
    let is_load =
        |operation: &Operation| matches!(operation.kind, GraphUpdateOperation::Load { .. });
    let refused = if operations.iter().any(is_load) {
        "LOAD"
    } else if has_service(text) {
        "SERVICE"
    } else {
        return Ok(());
    };
    Err(GatewayError::new(
        ErrorClass::Invalid,
        format!(
            "{refused} is not allowed in updates: a change must not depend on another server; send the data in the request"
        ),
    ))
}
