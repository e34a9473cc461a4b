//! Parses YAML and JSON into nodes with their line and column, for mappings. The configuration has a reader of its own
//! (`src/config/yaml.rs`), because it must read every layout that earlier versions read.
//!
//! The nodes are built with an explicit stack, so no depth of the text can overflow the thread's stack. Aliases are
//! expanded within a budget of nodes, which limits the growth of a text.
use crate::error::Finding;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// The maximum number of nodes in a text, including the copies from aliases.
const MAX_NODES: usize = 200_000;

/// The maximum depth of nested nodes. A level of objects takes two (`fields` and the field); an array of objects takes
/// three.
const MAX_DEPTH: usize = 1000;

/// A position in the text. Line and column count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

/// A node and its first position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its position; of a copy from an alias (`*name`), that of the original.
    pub at: Location,
    /// Its content.
    pub content: Content,
    /// The number of nodes in it, including itself.
    size: usize,
    /// The number of levels in it, including itself.
    height: usize,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// No value: `null`, `~`, or no text.
    Null,
    /// A text.
    Scalar {
        /// The text as it is written, so that numbers keep their digits.
        text: String,
        /// Whether it has no quotes.
        plain: bool,
    },
    /// A list of nodes.
    Sequence(Vec<Node>),
    /// Keys and values in the order of the text; each key occurs once.
    Mapping(Vec<(Key, Node)>),
}

/// The key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its position.
    pub at: Location,
    /// Its text.
    pub name: String,
    /// Whether it has no quotes.
    pub plain: bool,
}

/// A key that occurs again in its mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The later key.
    pub key: Key,
    /// The position of the first one.
    pub first: Location,
    /// Whether the mapping is the whole document.
    pub is_at_top: bool,
}

/// The error that makes a text unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// Its position. If the text ends too early, that may be on the line after it.
    pub at: Location,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.at.line, self.at.column, self.message)
    }
}

impl Node {
    /// Describes the kind of content in words.
    pub fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Scalar { .. } => "a text",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }
}

impl Location {
    fn from_marker(mark: Marker) -> Self {
        Self { line: mark.line().max(1) as u64, column: mark.col() as u64 + 1 }
    }

    /// Creates a finding about this position.
    pub fn to_finding(self, message: impl Into<String>) -> Finding {
        Finding::at_line(self.line, self.column, message)
    }

    fn to_error(self, message: impl Into<String>) -> YamlError {
        YamlError { at: self, message: message.into() }
    }
}

/// Parses one document, which errors call by this noun. Adds duplicate keys to `duplicates`, and uses the first of them.
/// Returns `None` for an empty document.
///
/// # Errors
/// Returns the error that makes the text unreadable.
pub fn parse_document(
    text: &str,
    noun: &str,
    duplicates: &mut Vec<DuplicateKey>,
) -> Result<Option<Node>, YamlError> {
    let mut parser = Parser::new_from_str(text);
    let mut builder = NodeBuilder {
        noun,
        duplicates,
        open: Vec::new(),
        anchors: HashMap::new(),
        budget: MAX_NODES,
        root: None,
    };
    while let Some((event, span)) = next_event(&mut parser)? {
        builder.handle_event(event, span)?;
    }
    Ok(builder.root.filter(|root| root.content != Content::Null))
}

fn next_event<'i>(
    parser: &mut Parser<'i, StrInput<'i>>,
) -> Result<Option<(Event<'i>, Span)>, YamlError> {
    parser.next_event().transpose().map_err(|error| {
        let info = match error.info() {
            "recursion limit exceeded" => {
                "brackets nest deeper than 255 levels; indented YAML without brackets nests deeper"
            }
            info => info,
        };
        Location::from_marker(*error.marker()).to_error(format!("this is not valid YAML: {info}"))
    })
}

/// A sequence or mapping that is not closed yet.
struct OpenNode {
    at: Location,
    anchor: usize,
    size: usize,
    height: usize,
    content: OpenContent,
}

enum OpenContent {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<(Key, Node)>,
        names: HashMap<String, Location>,
        key: Option<(Key, bool)>,
    },
}

struct NodeBuilder<'d> {
    noun: &'d str,
    duplicates: &'d mut Vec<DuplicateKey>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, Node>,
    budget: usize,
    root: Option<Node>,
}

impl NodeBuilder<'_> {
    fn handle_event(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let at = Location::from_marker(span.start);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => Err(at.to_error(format!(
                "a second document begins here; a {} must be one document",
                self.noun
            ))),
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(at, tag.as_ref())?;
                let plain = style == ScalarStyle::Plain;
                let content = if plain && (span.is_empty() || is_null(&text)) {
                    Content::Null
                } else {
                    Content::Scalar { text: text.into_owned(), plain }
                };
                self.spend_budget(at, 1)?;
                self.add_node(Node { at, content, size: 1, height: 1 }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(at, tag.as_ref())?;
                self.open_node(at, anchor, OpenContent::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(at, tag.as_ref())?;
                let content =
                    OpenContent::Mapping { entries: Vec::new(), names: HashMap::new(), key: None };
                self.open_node(at, anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let content = match open.content {
                    OpenContent::Sequence(elements) => Content::Sequence(elements),
                    OpenContent::Mapping { entries, .. } => Content::Mapping(entries),
                };
                let OpenNode { at, anchor, size, height, .. } = open;
                self.add_node(Node { at, content, size, height }, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(at.to_error("this alias is inside the value that it refers to"));
                };
                let (size, height) = (node.size, node.height);
                if self.open.len() + height > MAX_DEPTH {
                    return Err(depth_error(at));
                }
                self.spend_budget(at, size)?;
                let node = self.anchors.get(&anchor).cloned();
                node.map_or(Ok(()), |node| self.add_node(node, 0))
            }
            _ => Ok(()),
        }
    }

    fn open_node(
        &mut self,
        at: Location,
        anchor: usize,
        content: OpenContent,
    ) -> Result<(), YamlError> {
        if self.open.len() == MAX_DEPTH {
            return Err(depth_error(at));
        }
        self.spend_budget(at, 1)?;
        self.open.push(OpenNode { at, anchor, size: 1, height: 1, content });
        Ok(())
    }

    /// Adds a complete node to the innermost open one, or makes it the root.
    fn add_node(&mut self, node: Node, anchor: usize) -> Result<(), YamlError> {
        if anchor > 0 {
            self.spend_budget(node.at, node.size)?;
            self.anchors.insert(anchor, node.clone());
        }
        let is_at_top = self.open.len() == 1;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.size += node.size;
        open.height = open.height.max(node.height + 1);
        match &mut open.content {
            OpenContent::Sequence(elements) => elements.push(node),
            OpenContent::Mapping { entries, names, key } => match key.take() {
                None => {
                    let at = node.at;
                    let (name, plain) = match node.content {
                        Content::Scalar { text, plain } => (text, plain),
                        Content::Null => ("null".to_owned(), true),
                        _ => {
                            return Err(
                                at.to_error(format!("a key must be a text, not {}", node.kind()))
                            );
                        }
                    };
                    let first = names.get(&name).copied();
                    let new = Key { at, name: name.clone(), plain };
                    match first {
                        Some(first) => {
                            let key = new.clone();
                            self.duplicates.push(DuplicateKey { key, first, is_at_top });
                        }
                        None => drop(names.insert(name, at)),
                    }
                    *key = Some((new, first.is_none()));
                }
                Some((key, true)) => entries.push((key, node)),
                Some((_, false)) => {}
            },
        }
        Ok(())
    }

    fn refuse_tag(&self, at: Location, tag: Option<&Cow<'_, Tag>>) -> Result<(), YamlError> {
        match tag {
            Some(tag) => Err(at.to_error(format!(
                "the tag {tag} has no meaning in a {}; leave it out",
                self.noun
            ))),
            None => Ok(()),
        }
    }

    fn spend_budget(&mut self, at: Location, nodes: usize) -> Result<(), YamlError> {
        match self.budget.checked_sub(nodes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(at.to_error(format!(
                "the text has more than {MAX_NODES} values after expansion of anchors and aliases"
            ))),
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn depth_error(at: Location) -> YamlError {
    at.to_error(format!("the text nests deeper than {MAX_DEPTH} levels"))
}

#[cfg(test)]
mod tests;
