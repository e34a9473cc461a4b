//! Finds what refers to an object: the objects of Business Objects that hold its URI, at any depth.
use super::budget::SearchBudget;
use super::clue::find_subjects_linking_to;
use super::cursor;
use crate::list::find_element_owners;
use crate::mapping::{Property, Shape, Value};
use crate::members;
use crate::resource::Compiled;
use crate::view::{find_owning_field, shows_last_member, shows_value};
use oxrdf::{NamedNode, NamedNodeRef, Term};
use penstock_base::cursor::encode_cursor;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::{Pattern, Read};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The maximum number of objects that are listed at a time.
const MAX_LISTED_OBJECTS: usize = 1_000;

/// A page of the objects that refer to an object.
#[derive(Debug, Clone)]
pub struct ReferrersPage {
    /// The objects, ordered by the Business Object's id, then the path, then the URI.
    pub found: Vec<Referrer>,
    /// Whether there are more after this page.
    pub more: bool,
}

/// An object that refers to another one.
#[derive(Debug, Clone)]
pub struct Referrer {
    /// The Business Object that it belongs to.
    pub business_object: Arc<Compiled>,
    /// The names of the fields that lead from this object to the other one, separated by dots.
    pub path: String,
    /// Its URI.
    pub uri: NamedNode,
    /// The cursor for the next page, if this is the last object of its page.
    pub cursor: String,
}

/// The parameters of a search for references.
#[derive(Debug, Clone, Copy)]
pub struct ReferenceSearch<'t> {
    /// Only references from the Business Object with this id.
    pub business_object: Option<&'t str>,
    /// Only references by this path, as in [`Referrer::path`].
    pub path: Option<&'t str>,
    /// The cursor after which the page begins.
    pub after: Option<&'t str>,
    /// The maximum number of objects on the page.
    pub limit: usize,
}

impl<'t> ReferenceSearch<'t> {
    /// Searches the references of all Business Objects and paths.
    pub fn all(after: Option<&'t str>, limit: usize) -> Self {
        Self { business_object: None, path: None, after, limit }
    }
}

/// Returns the objects that refer to `uri` by a field that holds a resource or a nested object. Blocking. A map shows no member
/// without a name, or without the value that it is, so a link to one is no reference. A hidden object has neither for its caller.
///
/// # Errors
/// - `ErrorClass::Malformed` if this listing did not return the cursor
/// - `ErrorClass::TooLarge` if the search would examine more than the bounds allow
pub fn find_referrers(
    read: &dyn Read,
    business_objects: &[Arc<Compiled>],
    uri: &NamedNode,
    search: ReferenceSearch<'_>,
    bounds: &SearchBudget,
) -> Result<ReferrersPage, GatewayError> {
    let limit = search.limit;
    let after = search.after.map(cursor::decode_own_cursor::<3>).transpose()?;
    let after = match after {
        Some([Some(id), Some(path), Some(uri)]) => Some((id, path, uri)),
        Some(_) => return Err(cursor::foreign_cursor_error()),
        None => None,
    };
    let mut business_objects: Vec<_> = business_objects.iter().collect();
    business_objects.sort_unstable_by(|a, b| a.object.id.cmp(&b.object.id));
    let mut run = ReferrerRun { read, budget: bounds, target: uri, known: HashMap::new() };
    let (mut found, wanted) = (Vec::new(), limit.saturating_add(1));
    for business_object in business_objects {
        let id = business_object.object.id.as_str();
        if search.business_object.is_some_and(|only| only != id) {
            continue;
        }
        for (path, steps) in run.collect_links(&business_object.mapping.root)? {
            if search.path.is_some_and(|only| only != path) {
                continue;
            }
            let from = match &after {
                Some((i, p, _)) if (id, path.as_str()) < (i.as_str(), p.as_str()) => continue,
                Some((i, p, uri)) if (id, path.as_str()) == (i.as_str(), p.as_str()) => Some(uri),
                _ => None,
            };
            let uris = run.find_roots(business_object, &steps, from, wanted - found.len())?;
            found.extend(uris.into_iter().map(|uri| Referrer {
                business_object: Arc::clone(business_object),
                cursor: encode_cursor(&[Some(id), Some(&path), Some(uri.as_str())]),
                path: path.clone(),
                uri,
            }));
            if found.len() >= wanted {
                found.truncate(limit);
                return Ok(ReferrersPage { found, more: true });
            }
        }
    }
    Ok(ReferrersPage { found, more: false })
}

struct ReferrerRun<'r> {
    read: &'r dyn Read,
    budget: &'r SearchBudget,
    target: &'r NamedNode,
    /// For each property, and whether it is an ordered array: whether some object has the target as a value of it.
    known: HashMap<(NamedNode, bool), bool>,
}

/// The path of a reference: the names of its fields as text, and its fields from the root down.
type Link<'s> = (String, Vec<Step<'s>>);

/// A field that refers to other objects.
#[derive(Debug, Clone, Copy)]
struct Step<'s> {
    shape: &'s Shape,
    /// The field's index in the shape.
    place: usize,
    predicate: &'s NamedNode,
    /// Whether it is an ordered array.
    is_ordered: bool,
    /// The shape of the members, if it is a map.
    members: Option<&'s Shape>,
}

impl Step<'_> {
    /// Returns whether a value of the property belongs to this field.
    fn owns_value(&self, uri: &str) -> bool {
        let uri = NamedNodeRef::new_unchecked(uri);
        find_owning_field(self.shape, self.predicate.as_ref(), uri.into()) == Some(self.place)
    }
}

impl ReferrerRun<'_> {
    /// Returns the references of a shape that may hold the target, ordered by path.
    fn collect_links<'s>(&mut self, shape: &'s Shape) -> Result<Vec<Link<'s>>, GatewayError> {
        let mut links = Vec::new();
        self.collect_nested_links(shape, "", &mut Vec::new(), &mut links)?;
        links.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(links)
    }

    fn collect_nested_links<'s>(
        &mut self,
        shape: &'s Shape,
        above: &str,
        steps: &mut Vec<Step<'s>>,
        links: &mut Vec<Link<'s>>,
    ) -> Result<(), GatewayError> {
        for (place, field, property) in shape.iter_properties() {
            let Property { predicate, value, is_ordered, .. } = property;
            if matches!(value, Value::Literal(_)) {
                continue;
            }
            let members = property.map().map(|(members, _)| members);
            let step = Step { shape, place, predicate, is_ordered: *is_ordered, members };
            steps.push(step);
            let target = self.target.as_str();
            let holds = step.owns_value(target)
                && self.has_target_under(step)?
                && self.shows_member(step, target)?;
            let nested = value.shape();
            if holds || nested.is_some() {
                let dot = if above.is_empty() { "" } else { "." };
                let path = format!("{above}{dot}{}", field.name);
                if let Some(nested) = nested {
                    self.collect_nested_links(nested, &path, steps, links)?;
                }
                if holds {
                    links.push((path, steps.clone()));
                }
            }
            steps.pop();
        }
        Ok(())
    }

    /// Returns whether a field can show this object: always, unless it is a map.
    fn shows_member(&self, step: Step<'_>, uri: &str) -> Result<bool, GatewayError> {
        let Some(shape) = step.members else { return Ok(true) };
        self.budget.count_examined(1)?;
        let uri = NamedNodeRef::new_unchecked(uri);
        Ok(shows_last_member(self.read, shape, &[uri], &mut HashSet::new())?
            && shows_value(self.read, shape, uri, None)?)
    }

    /// Returns those of these objects that a field can show.
    fn retain_shown(
        &self,
        step: Step<'_>,
        uris: BTreeSet<String>,
    ) -> Result<BTreeSet<String>, GatewayError> {
        let mut shown = BTreeSet::new();
        for uri in uris {
            if step.owns_value(&uri) && self.shows_member(step, &uri)? {
                shown.insert(uri);
            }
        }
        Ok(shown)
    }

    /// Returns whether some object has the target as a value of the property of a field, or as an element of its array.
    fn has_target_under(&mut self, step: Step<'_>) -> Result<bool, GatewayError> {
        let Step { predicate, is_ordered, .. } = step;
        let key = (predicate.clone(), is_ordered);
        if let Some(holds) = self.known.get(&key) {
            return Ok(*holds);
        }
        self.budget.check_time()?;
        let target = Term::from(self.target.clone());
        // Many hidden objects, or arrays of other properties, may have it.
        let mut found = Ok(false);
        let mut add = |holds: Result<bool, GatewayError>| {
            found = self.budget.check_time().and(holds);
            if matches!(found, Ok(false)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        if is_ordered {
            let visit = &mut |owner: Option<NamedNode>| add(Ok(owner.is_some()));
            find_element_owners(self.read, predicate, &target, visit)?;
        } else {
            let pattern = Pattern {
                predicate: Some(predicate.clone()),
                object: Some(target),
                ..Pattern::default()
            };
            self.read.for_each_with_hidden(&pattern, &mut |quad| {
                let is_hidden = self.read.is_hidden(quad.subject.as_ref());
                add(is_hidden.map(|is_hidden| !is_hidden).map_err(GatewayError::from))
            })?;
        }
        let holds = found?;
        self.known.insert(key, holds);
        Ok(holds)
    }

    /// Returns the objects with one of these elements in an ordered array with this property.
    fn find_owners(
        &self,
        predicate: &NamedNode,
        elements: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, GatewayError> {
        let mut owners = BTreeSet::new();
        for element in elements {
            let element = Term::from(NamedNode::new_unchecked(element));
            let mut counted = Ok(());
            find_element_owners(self.read, predicate, &element, &mut |owner| {
                counted = match &owner {
                    Some(_) => self.budget.count_examined(1),
                    None => self.budget.check_time(),
                };
                owners.extend(owner.map(NamedNode::into_string));
                if counted.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            counted?;
        }
        Ok(owners)
    }

    /// Returns up to `wanted` members after a URI that lead to the target by these properties.
    fn find_roots(
        &self,
        business_object: &Compiled,
        steps: &[Step<'_>],
        after: Option<&String>,
        wanted: usize,
    ) -> Result<Vec<NamedNode>, GatewayError> {
        let Some((first, nested)) = steps.split_first() else { return Ok(Vec::new()) };
        let mut ends = BTreeSet::from([self.target.as_str().to_owned()]);
        for step @ Step { predicate, .. } in nested.iter().rev() {
            ends = self.retain_shown(*step, ends)?;
            if step.is_ordered {
                ends = self.find_owners(predicate, &ends)?;
                continue;
            }
            let above = find_subjects_linking_to(self.read, self.budget, predicate, &ends)?;
            ends = above.ok_or_else(|| {
                GatewayError::new(
                    ErrorClass::TooLarge,
                    format!(
                        "too many objects refer to {} by {}; ask for the references of one field",
                        self.target.as_str(),
                        predicate.as_str()
                    ),
                )
            })?;
        }
        let ends = self.retain_shown(*first, ends)?;
        let mut found = BTreeSet::new();
        if first.is_ordered {
            for owner in self.find_owners(first.predicate, &ends)? {
                let uri = NamedNode::new_unchecked(&owner);
                if after.is_none_or(|after| owner > *after)
                    && found.len() < wanted
                    && members::is_member(self.read, business_object, &uri)?
                {
                    found.insert(owner);
                }
            }
            return Ok(found.into_iter().map(NamedNode::new_unchecked).collect());
        }
        for end in &ends {
            let mut filter = members::build_member_filter(self.read, business_object)?;
            filter.having.push((first.predicate.clone(), NamedNode::new_unchecked(end).into()));
            filter.deadline = Some(self.budget.deadline());
            let mut from = after.cloned();
            let mut listed = 0;
            while listed < wanted {
                self.budget.check_time()?;
                let limit = (wanted - listed).min(MAX_LISTED_OBJECTS);
                let uris = self.read.list_subjects(&filter, from.as_deref(), limit)?;
                let is_last = uris.len() < limit;
                from = uris.last().map(|uri| uri.as_str().to_owned());
                for uri in uris {
                    if !self.read.is_hidden(uri.as_ref().into())? {
                        self.budget.count_examined(1)?;
                        listed += 1;
                        found.insert(uri.into_string());
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(found.into_iter().take(wanted).map(NamedNode::new_unchecked).collect())
    }
}
