//! What a SHACL shapes graph may have. rudof reads more than SHACL Core and passes over what it does not know, so a
//! constraint would be dropped silently. Its parser and its evaluator call themselves for each level of nesting, and its parser
//! copies a list or a path for each shape that refers to it.
use crate::data::to_subject;
use crate::patterns::{MAX_PATTERNS, Pattern};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedNodeRef, NamedOrBlankNode, Term, Triple};
use penstock_base::error::Finding;
use rudof_rdf::rdf_core::term::Object;
use shacl::ir::{IRComponent, IRSchema};
use std::collections::{HashMap, HashSet};

pub(crate) const SHACL: &str = "http://www.w3.org/ns/shacl#";
const OWL_IMPORTS: NamedNodeRef<'_> =
    NamedNodeRef::new_unchecked("http://www.w3.org/2002/07/owl#imports");

/// The maximum number of levels of shapes, paths and lists in each other.
const MAX_DEPTH: usize = 50;
/// The maximum length of all lists and paths in bytes, each counted for every shape that refers to it.
const MAX_COPIED_BYTES: usize = 32 << 20;
/// What a node of a list or a path takes beside its text, in bytes.
const NODE_BYTES: usize = 64;
/// The maximum number of findings of one shapes graph.
const MAX_FINDINGS: usize = 20;

/// Each makes a constraint (SHACL, 4).
const CONSTRAINT: u8 = 1;
/// Its values are shapes, paths, or lists of them.
const NESTING: u8 = 2;
/// A shape has it at most once (SHACL, 4): rudof reads one of several values.
const SINGLE: u8 = 4;
/// It makes a path that is not a sequence.
const PATH: u8 = 8;

/// The properties of SHACL Core, after the namespace, with their kinds.
const PROPERTIES: [(&str, u8); 54] = [
    ("alternativePath", NESTING | SINGLE | PATH),
    ("and", CONSTRAINT | NESTING),
    ("class", CONSTRAINT),
    ("closed", SINGLE),
    ("datatype", CONSTRAINT | SINGLE),
    ("deactivated", SINGLE),
    ("declare", 0),
    ("defaultValue", 0),
    ("description", 0),
    ("disjoint", CONSTRAINT),
    ("equals", CONSTRAINT),
    ("flags", SINGLE),
    ("group", 0),
    ("hasValue", CONSTRAINT),
    ("ignoredProperties", SINGLE),
    ("in", CONSTRAINT | SINGLE),
    ("inversePath", NESTING | SINGLE | PATH),
    ("languageIn", CONSTRAINT | SINGLE),
    ("lessThan", CONSTRAINT),
    ("lessThanOrEquals", CONSTRAINT),
    ("maxCount", CONSTRAINT | SINGLE),
    ("maxExclusive", CONSTRAINT | SINGLE),
    ("maxInclusive", CONSTRAINT | SINGLE),
    ("maxLength", CONSTRAINT | SINGLE),
    ("message", 0),
    ("minCount", CONSTRAINT | SINGLE),
    ("minExclusive", CONSTRAINT | SINGLE),
    ("minInclusive", CONSTRAINT | SINGLE),
    ("minLength", CONSTRAINT | SINGLE),
    ("name", 0),
    ("namespace", 0),
    ("node", CONSTRAINT | NESTING),
    ("nodeKind", CONSTRAINT | SINGLE),
    ("not", CONSTRAINT | NESTING),
    ("oneOrMorePath", NESTING | SINGLE | PATH),
    ("or", CONSTRAINT | NESTING),
    ("order", 0),
    ("path", NESTING | SINGLE),
    ("pattern", CONSTRAINT | SINGLE),
    ("prefix", 0),
    ("property", CONSTRAINT | NESTING),
    ("qualifiedMaxCount", SINGLE),
    ("qualifiedMinCount", SINGLE),
    ("qualifiedValueShape", CONSTRAINT | NESTING | SINGLE),
    ("qualifiedValueShapesDisjoint", SINGLE),
    ("severity", 0),
    ("targetClass", 0),
    ("targetNode", 0),
    ("targetObjectsOf", 0),
    ("targetSubjectsOf", 0),
    ("uniqueLang", CONSTRAINT | SINGLE),
    ("xone", CONSTRAINT | NESTING),
    ("zeroOrMorePath", NESTING | SINGLE | PATH),
    ("zeroOrOnePath", NESTING | SINGLE | PATH),
];

/// Returns a property of SHACL after the namespace, and its kinds; `None` for any other one.
fn find_property(predicate: &NamedNode) -> Option<(&str, Option<u8>)> {
    let name = predicate.as_str().strip_prefix(SHACL)?;
    let known = PROPERTIES.iter().find(|(known, _)| *known == name);
    Some((name, known.map(|(_, kinds)| *kinds)))
}

/// Returns whether a property is supported and has one of these kinds.
fn is_of_kind(predicate: &NamedNode, kinds: u8) -> bool {
    find_property(predicate).and_then(|(_, known)| known).is_some_and(|known| known & kinds > 0)
}

/// Checks that every constraint of the triples was compiled. rudof passes over some that are not valid.
///
/// # Errors
/// The shapes that lack a constraint.
pub(super) fn check_complete(triples: &[Triple], schema: &IRSchema) -> Result<(), Vec<Finding>> {
    let mut expected: HashMap<&NamedOrBlankNode, Vec<&str>> = HashMap::new();
    for triple in triples {
        if let Some((name, Some(kinds))) = find_property(&triple.predicate)
            && kinds & CONSTRAINT > 0
        {
            expected.entry(&triple.subject).or_default().push(name);
        }
    }
    expected.retain(|subject, names| {
        let id = Object::try_from(Term::from((*subject).clone())).ok();
        let shape = id.and_then(|id| schema.get_shape(&id));
        let compiled = shape.map_or(0, |shape| {
            shape.components().iter().filter(|component| !is_without_triple(component)).count()
                + shape.property_shapes().len()
        });
        compiled < names.len()
    });
    let mut incomplete: Vec<_> = expected.into_iter().collect();
    incomplete.sort_by_cached_key(|(subject, _)| subject.to_string());
    // Finding a name reads all triples.
    let findings = incomplete.iter().take(MAX_FINDINGS).map(|(subject, names)| {
        Finding::whole(format!(
            "{} has a constraint whose value is not valid: one of sh:{}",
            name_subject(subject, triples),
            names.join(", sh:")
        ))
    });
    let findings: Vec<Finding> = findings.collect();
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// Returns whether this component comes from no property that is a [`CONSTRAINT`].
fn is_without_triple(component: &IRComponent) -> bool {
    matches!(component, IRComponent::Closed(_) | IRComponent::Deactivated(_))
}

/// Checks that every part of a shapes graph is supported.
///
/// # Errors
/// What is not, with its shape.
pub(super) fn check_supported(triples: &[Triple]) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    let mut patterns = 0;
    let mut single = HashSet::new();
    let with_path: HashSet<Term> = triples
        .iter()
        .filter(|triple| triple.predicate.as_str().strip_prefix(SHACL) == Some("path"))
        .map(|triple| triple.subject.clone().into())
        .collect();
    for triple in triples {
        if findings.len() >= MAX_FINDINGS {
            break;
        }
        let Triple { subject, predicate, object } = triple;
        if predicate.as_ref() == OWL_IMPORTS {
            findings.push(Finding::whole(format!(
                "owl:imports {object}: nothing is ever fetched; put all shapes into one graph"
            )));
        }
        if matches!(object, Term::Triple(_)) {
            findings.push(Finding::whole(format!(
                "{subject} refers to a triple, which RDF 1.1 does not have"
            )));
        }
        let Some((name, kinds)) = find_property(predicate) else { continue };
        let shape = || name_subject(subject, triples);
        let Some(kinds) = kinds else {
            findings.push(Finding::whole(format!(
                "sh:{name} in {} is not supported; the constraints, targets and paths of SHACL Core are",
                shape()
            )));
            continue;
        };
        if kinds & SINGLE > 0 && !single.insert((subject, name)) {
            findings
                .push(Finding::whole(format!("sh:{name} is given more than once in {}", shape())));
        }
        let why = match (name, object) {
            ("property", shape) if !with_path.contains(shape) => {
                Some(format!("is {shape}, which has no sh:path"))
            }
            ("pattern", Term::Literal(pattern)) => {
                patterns += 1;
                if patterns > MAX_PATTERNS {
                    continue;
                }
                Pattern::compile(pattern.value(), find_flags(subject, triples)).err()
            }
            ("deactivated" | "closed", Term::Literal(value)) if is_boolean(value.value()) => None,
            ("deactivated" | "closed", _) => Some("must be true or false".to_owned()),
            ("targetNode", Term::BlankNode(_)) => {
                Some("is a blank node, which no object has".to_owned())
            }
            (
                "targetClass" | "targetSubjectsOf" | "targetObjectsOf",
                Term::Literal(_) | Term::BlankNode(_),
            ) => Some(format!("is {object}; it must be an IRI")),
            (
                "minCount" | "maxCount" | "minLength" | "maxLength" | "qualifiedMinCount"
                | "qualifiedMaxCount",
                _,
            ) => check_count(object),
            _ => None,
        };
        findings.extend(why.map(|why| Finding::whole(format!("sh:{name} in {} {why}", shape()))));
    }
    if patterns > MAX_PATTERNS {
        findings.push(Finding::whole(format!(
            "it has {patterns} times sh:pattern, and at most {MAX_PATTERNS} are allowed"
        )));
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut index = Index::new();
    for triple in triples {
        index.entry(&triple.subject).or_default().push(triple);
    }
    check_copies(triples, &index)?;
    check_depth(triples, &index)
}

/// The triples of each subject.
type Index<'t> = HashMap<&'t NamedOrBlankNode, Vec<&'t Triple>>;

/// Checks that the lists and paths are not much longer when they are copied for each shape that refers to them.
fn check_copies(triples: &[Triple], index: &Index<'_>) -> Result<(), Vec<Finding>> {
    let (mut known, mut bytes) = (HashMap::new(), 0_usize);
    for triple in triples {
        if find_property(&triple.predicate).is_none() || is_of_kind(&triple.predicate, PATH) {
            continue;
        }
        let shape = || name_subject(&triple.subject, triples);
        let Some(copied) = count_copied_bytes(&triple.object, index, &mut known, 0) else {
            return Err(vec![Finding::whole(format!(
                "{} has a list or a path that has no end, or more than {MAX_DEPTH} levels",
                shape()
            ))]);
        };
        bytes = bytes.saturating_add(copied);
        if bytes > MAX_COPIED_BYTES {
            return Err(vec![Finding::whole(format!(
                "the lists and paths up to {} have more than {MAX_COPIED_BYTES} bytes, counted for each shape that refers \
                 to them; shorten them, or divide the shapes graph into several",
                shape()
            ))]);
        }
    }
    Ok(())
}

/// Returns the length of a term in bytes, with what is in it if it is a list or a path; `None` if that has no end, or more than
/// [`MAX_DEPTH`] levels.
fn count_copied_bytes(
    term: &Term,
    index: &Index<'_>,
    known: &mut HashMap<NamedOrBlankNode, usize>,
    depth: usize,
) -> Option<usize> {
    let text_bytes = match term {
        Term::NamedNode(node) => node.as_str().len(),
        Term::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        _ => 0,
    };
    let mut bytes = NODE_BYTES + text_bytes;
    let Some(node) = as_node(term) else { return Some(bytes) };
    if let Some(known) = known.get(&node) {
        return Some(*known);
    }
    // An alternative is one level: a node and its list.
    if depth > 2 * MAX_DEPTH {
        return None;
    }
    let mut cells = 0;
    let mut rest = Some(node.clone());
    while let Some(cell) = rest.take() {
        cells += 1;
        if cells > index.len() + 1 {
            return None;
        }
        for triple in index.get(&cell).into_iter().flatten() {
            if triple.predicate == rdf::REST {
                rest = as_node(&triple.object);
            } else if triple.predicate == rdf::FIRST || is_of_kind(&triple.predicate, PATH) {
                let is_list = |node: NamedOrBlankNode| {
                    let own: Option<&Vec<&Triple>> = index.get(&node);
                    own.is_some_and(|own| own.iter().any(|own| own.predicate == rdf::FIRST))
                };
                let is_nested =
                    triple.predicate == rdf::FIRST && as_node(&triple.object).is_some_and(is_list);
                let inner_depth = depth + if is_nested { 2 } else { 1 };
                let inner = count_copied_bytes(&triple.object, index, known, inner_depth)?;
                bytes = bytes.saturating_add(inner);
            }
        }
    }
    known.insert(node, bytes);
    Some(bytes)
}

/// Returns the value of `sh:flags` of a shape.
fn find_flags<'t>(shape: &NamedOrBlankNode, triples: &'t [Triple]) -> &'t str {
    let of_shape = triples.iter().filter(|triple| triple.subject == *shape);
    let mut flags = of_shape.filter_map(|triple| match &triple.object {
        Term::Literal(flags) if triple.predicate.as_str().strip_prefix(SHACL) == Some("flags") => {
            Some(flags.value())
        }
        _ => None,
    });
    flags.next().unwrap_or_default()
}

fn is_boolean(text: &str) -> bool {
    matches!(text, "true" | "false" | "1" | "0")
}

fn check_count(value: &Term) -> Option<String> {
    let valid = matches!(value, Term::Literal(literal) if literal.value().parse::<u32>().is_ok());
    (!valid).then(|| format!("is {value}; it must be an integer from 0 to {}", u32::MAX))
}

/// Returns how an error names a shape: its IRI, or that of the nearest shape that it is part of.
fn name_subject(subject: &NamedOrBlankNode, triples: &[Triple]) -> String {
    let mut current = subject.clone();
    for _ in 0..MAX_DEPTH {
        if let NamedOrBlankNode::NamedNode(node) = &current {
            let part = if *subject == current { "" } else { "a part of " };
            return format!("{part}{node}");
        }
        let sought = Term::from(current.clone());
        match triples.iter().find(|triple| triple.object == sought) {
            Some(triple) => current = triple.subject.clone(),
            None => break,
        }
    }
    "a shape without an IRI".to_owned()
}

/// Checks that shapes, paths and lists are not nested too deeply and contain no cycle.
fn check_depth(triples: &[Triple], index: &Index<'_>) -> Result<(), Vec<Finding>> {
    let mut done: HashMap<NamedOrBlankNode, usize> = HashMap::new();
    let mut starts: Vec<&NamedOrBlankNode> = index.keys().copied().collect();
    starts.sort_by_cached_key(ToString::to_string);
    for start in starts {
        let mut open: HashSet<NamedOrBlankNode> = HashSet::new();
        let mut stack = vec![Visit::Enter(start.clone())];
        while let Some(visit) = stack.pop() {
            match visit {
                Visit::Enter(node) => {
                    if done.contains_key(&node) {
                        continue;
                    }
                    if !open.insert(node.clone()) {
                        return Err(vec![Finding::whole(format!(
                            "{} contains itself; recursive shapes, paths and lists are not supported (SHACL leaves them undefined)",
                            name_subject(&node, triples)
                        ))]);
                    }
                    let parts = list_parts(&node, index)?;
                    stack.push(Visit::Leave(node, parts.clone()));
                    stack.extend(parts.into_iter().map(Visit::Enter));
                }
                Visit::Leave(node, parts) => {
                    open.remove(&node);
                    let deepest = parts.iter().filter_map(|part| done.get(part)).max();
                    let depth = deepest.map_or(0, |depth| depth + 1);
                    if depth > MAX_DEPTH {
                        return Err(vec![Finding::whole(format!(
                            "{} has more than {MAX_DEPTH} levels of shapes and paths in each other",
                            name_subject(&node, triples)
                        ))]);
                    }
                    done.insert(node, depth);
                }
            }
        }
    }
    Ok(())
}

enum Visit {
    Enter(NamedOrBlankNode),
    Leave(NamedOrBlankNode, Vec<NamedOrBlankNode>),
}

/// Returns the shapes and paths directly in a node.
fn list_parts(
    node: &NamedOrBlankNode,
    index: &Index<'_>,
) -> Result<Vec<NamedOrBlankNode>, Vec<Finding>> {
    let mut parts = Vec::new();
    let own = |node: &NamedOrBlankNode| index.get(node).into_iter().flatten().copied();
    for triple in own(node) {
        if !is_of_kind(&triple.predicate, NESTING) {
            continue;
        }
        let Some(part) = as_node(&triple.object) else { continue };
        let mut cell = part.clone();
        let mut cells = HashSet::new();
        // The elements of a list are parts of the node, whatever its length.
        while let Some(first) = own(&cell).find(|cell| cell.predicate == rdf::FIRST) {
            if !cells.insert(cell.clone()) {
                return Err(vec![Finding::whole(format!("the list at {cell} has no end"))]);
            }
            parts.extend(as_node(&first.object));
            match own(&cell).find(|cell| cell.predicate == rdf::REST).map(|rest| &rest.object) {
                Some(rest) => match as_node(rest) {
                    Some(rest) => cell = rest,
                    None => break,
                },
                None => break,
            }
        }
        if cells.is_empty() {
            parts.push(part);
        }
    }
    Ok(parts)
}

/// Returns the term as a subject; `None` for a literal and the empty list.
fn as_node(term: &Term) -> Option<NamedOrBlankNode> {
    let is_nil = matches!(term, Term::NamedNode(node) if node.as_ref() == rdf::NIL);
    if is_nil { None } else { to_subject(term) }
}
