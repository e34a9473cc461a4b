//! Parses YAML and JSON into nodes with their line and column.
//!
//! The nodes are built with an explicit stack, so no depth of the text can overflow the thread's stack. Aliases are
//! expanded within a budget of nodes, which limits the growth of a text.
use penstock_base::error::Finding;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The maximum length of a text, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The maximum number of nodes in a text, including the copies from aliases.
const MAX_NODES: usize = 200_000;

/// The maximum depth of nested nodes. A level of objects takes two (`fields` and the field); an array of objects takes
/// three.
const MAX_DEPTH: usize = 1000;

/// A position in the text. Line and column count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A node and its first position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) at: Location,
    pub(crate) content: Content,
    /// The number of nodes in it, including itself.
    size: usize,
    /// The number of levels in it, including itself.
    height: usize,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// No value: `null`, `~`, or no text.
    Null,
    /// A text; `plain` if it has no quotes.
    Scalar { text: String, plain: bool },
    /// A list of nodes.
    Sequence(Vec<Node>),
    /// Keys and values in the order of the text; each key occurs once.
    Mapping(Vec<(Key, Node)>),
}

/// The key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) at: Location,
    pub(crate) name: String,
}

impl Node {
    /// Describes the kind of content in words.
    pub(super) fn kind(&self) -> &'static str {
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

    pub(crate) fn to_finding(self, message: impl Into<String>) -> Finding {
        Finding::at_line(self.line, self.column, message)
    }
}

/// Parses one document. Reports duplicate keys in `findings`, and uses the first of them.
///
/// # Errors
/// Returns the error that makes the text unreadable.
pub(crate) fn parse_document(text: &str, findings: &mut Vec<Finding>) -> Result<Node, Finding> {
    if text.len() > MAX_BYTES {
        return Err(Finding::at_line(
            1,
            1,
            format!("the text has {} bytes; the maximum for a mapping is {MAX_BYTES}", text.len()),
        ));
    }
    let mut parser = Parser::new_from_str(text);
    let mut builder = NodeBuilder {
        findings,
        open: Vec::new(),
        anchors: HashMap::new(),
        budget: MAX_NODES,
        root: None,
    };
    while let Some((event, span)) = next_event(&mut parser, text)? {
        builder.handle_event(event, span)?;
    }
    match builder.root {
        Some(Node { content: Content::Null, .. }) | None => {
            Err(Finding::at_line(1, 1, "the text is empty; a mapping begins with `type: object`"))
        }
        Some(root) => Ok(root),
    }
}

fn next_event<'i>(
    parser: &mut Parser<'i, StrInput<'i>>,
    text: &str,
) -> Result<Option<(Event<'i>, Span)>, Finding> {
    parser.next_event().transpose().map_err(|error| {
        let info = match error.info() {
            "recursion limit exceeded" => {
                "brackets nest deeper than 255 levels; indented YAML without brackets nests deeper"
            }
            info => info,
        };
        // If the text ends too early, the parser's mark is on the line after it.
        Location::from_marker(*error.marker())
            .min(end_location(text))
            .to_finding(format!("this is not valid YAML: {info}"))
    })
}

fn end_location(text: &str) -> Location {
    let last = text.lines().last().unwrap_or_default();
    Location { line: text.lines().count().max(1) as u64, column: last.chars().count() as u64 + 1 }
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
    Mapping { entries: Vec<(Key, Node)>, names: HashSet<String>, key: Option<(Key, bool)> },
}

struct NodeBuilder<'f> {
    findings: &'f mut Vec<Finding>,
    open: Vec<OpenNode>,
    anchors: HashMap<usize, Node>,
    budget: usize,
    root: Option<Node>,
}

impl NodeBuilder<'_> {
    fn handle_event(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        let at = Location::from_marker(span.start);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(at.to_finding("a second document begins here; a mapping must be one document"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(at, tag.as_ref())?;
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
                refuse_tag(at, tag.as_ref())?;
                self.open_node(at, anchor, OpenContent::Sequence(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(at, tag.as_ref())?;
                let content =
                    OpenContent::Mapping { entries: Vec::new(), names: HashSet::new(), key: None };
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
                    return Err(at.to_finding("this alias is inside the value that it refers to"));
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
    ) -> Result<(), Finding> {
        if self.open.len() == MAX_DEPTH {
            return Err(depth_error(at));
        }
        self.spend_budget(at, 1)?;
        self.open.push(OpenNode { at, anchor, size: 1, height: 1, content });
        Ok(())
    }

    /// Adds a complete node to the innermost open one, or makes it the root.
    fn add_node(&mut self, node: Node, anchor: usize) -> Result<(), Finding> {
        if anchor > 0 {
            self.spend_budget(node.at, node.size)?;
            self.anchors.insert(anchor, node.clone());
        }
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
                    let name = match node.content {
                        Content::Scalar { text, .. } => text,
                        Content::Null => "null".to_owned(),
                        _ => {
                            return Err(
                                at.to_finding(format!("a key must be a text, not {}", node.kind()))
                            );
                        }
                    };
                    let new = names.insert(name.clone());
                    if !new {
                        self.findings.push(
                            at.to_finding(format!("the key `{name}` is in this mapping twice")),
                        );
                    }
                    *key = Some((Key { at, name }, new));
                }
                Some((key, true)) => entries.push((key, node)),
                Some((_, false)) => {}
            },
        }
        Ok(())
    }

    fn spend_budget(&mut self, at: Location, nodes: usize) -> Result<(), Finding> {
        match self.budget.checked_sub(nodes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(at.to_finding(format!(
                "the text has more than {MAX_NODES} values after expansion of anchors and aliases"
            ))),
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn refuse_tag(at: Location, tag: Option<&Cow<'_, Tag>>) -> Result<(), Finding> {
    match tag {
        Some(tag) => {
            Err(at.to_finding(format!("the tag {tag} has no meaning in a mapping; leave it out")))
        }
        None => Ok(()),
    }
}

fn depth_error(at: Location) -> Finding {
    at.to_finding(format!("the text nests deeper than {MAX_DEPTH} levels"))
}

#[cfg(test)]
mod tests;
