//! What a credential sees of the stored graph.
use super::change_feed::Watch;
use super::list::find_owner;
use super::resource::Compiled;
use super::write_scope::WriteScope;
use oxrdf::{
    BlankNode, NamedNode, NamedNodeRef, NamedOrBlankNode, NamedOrBlankNodeRef, Quad, Term,
};
use penstock_base::error::GatewayError;
use penstock_shapes::Violation;
use penstock_store::{
    Document, DocumentRange, Error, ListedSubject, Pattern, Read, SubjectFilter, SubjectQuads,
    ValueRange, VisitValue,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;

/// The number of subjects whose visibility is remembered.
const MAX_REMEMBERED: usize = 10_000;
/// The message of a violation whose value the credential may not see. Approvers see it too, in the warnings of its changes.
const WITHHELD_MESSAGE: &str =
    "does not conform; a credential for certain Business Objects may not see the value";

/// Reads only what a credential may see. One that is limited to certain Business Objects sees no quads of objects that
/// it could not change and that belong to none of these. So views, filters and orders show such an object only as the
/// URI that a visible object refers to.
pub struct VisibleObjects<'v, R> {
    read: R,
    scope: WriteScope<'v>,
    hidden: RefCell<HashMap<NamedNode, bool>>,
}

impl<'v, R: Read> VisibleObjects<'v, R> {
    /// Reads what a credential with this write scope sees; everything without one.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn new(
        read: R,
        watch: &Watch,
        write_scope: Option<impl IntoIterator<Item = &'v Compiled>>,
    ) -> Result<Self, GatewayError> {
        let scope = match write_scope {
            Some(business_objects) => WriteScope::limited_to(&read, watch, business_objects)?,
            None => WriteScope::ALL,
        };
        Ok(Self::with_scope(read, scope))
    }

    /// Reads what a credential with this write scope sees.
    pub(crate) fn with_scope(read: R, scope: WriteScope<'v>) -> Self {
        Self { read, scope, hidden: RefCell::default() }
    }

    /// Returns what it reads from.
    pub fn unlimited(&self) -> &R {
        &self.read
    }

    /// Removes from a violation what the credential may not see: the values of a hidden object, and a value at the end of a
    /// path of several properties, which may lead to one. `holders` are objects that have the focus node as a value. Without a
    /// visible one, a focus node that is no stored object is not shown either, unless it is an IRI.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn withhold_values<'h>(
        &self,
        violation: &mut Violation,
        holders: impl IntoIterator<Item = &'h NamedNode>,
    ) -> Result<(), Error> {
        if self.scope.is_unlimited() || self.shows_values_of(violation, holders)? {
            return Ok(());
        }
        if !matches!(violation.focus_node, Term::NamedNode(_)) {
            violation.focus_node = BlankNode::new_unchecked("withheld").into();
        }
        violation.value = None;
        // A message can quote the value.
        violation.messages = vec![(None, WITHHELD_MESSAGE.to_owned())];
        Ok(())
    }

    fn shows_values_of<'h>(
        &self,
        violation: &Violation,
        holders: impl IntoIterator<Item = &'h NamedNode>,
    ) -> Result<bool, Error> {
        let Violation { focus_node, path, predicate, value, .. } = violation;
        if path.is_some() && predicate.is_none() && value.is_some() {
            return Ok(false);
        }
        if let Term::NamedNode(uri) = focus_node {
            let about = Pattern { subject: Some(uri.clone().into()), ..Pattern::default() };
            if self.read.any(&about)? {
                return Ok(!self.is_hidden(uri.as_ref().into())?);
            }
            if path.is_none() {
                // It is about the IRI itself.
                return Ok(true);
            }
        }
        for holder in holders {
            if !self.is_hidden(holder.as_ref().into())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl<R: Read> Read for VisibleObjects<'_, R> {
    fn is_hidden(&self, subject: NamedOrBlankNodeRef<'_>) -> Result<bool, Error> {
        let NamedOrBlankNodeRef::NamedNode(uri) = subject else { return Ok(false) };
        if self.scope.is_unlimited() {
            return Ok(false);
        }
        let uri = uri.into_owned();
        // A node of a list is seen with its object.
        let uri = find_owner(&uri).unwrap_or(uri);
        if let Some(known) = self.hidden.borrow().get(&uri) {
            return Ok(*known);
        }
        let is_hidden = self.scope.hides(&self.read, &uri)?;
        let mut remembered = self.hidden.borrow_mut();
        if remembered.len() == MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(uri, is_hidden);
        Ok(is_hidden)
    }

    fn read_subject(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        if self.is_hidden(subject)? {
            quads.clear();
            return Ok(());
        }
        self.read.read_subject(subject, quads)
    }

    fn quads_about(&self, subject: &NamedOrBlankNode) -> Result<Vec<Quad>, Error> {
        if self.is_hidden(subject.as_ref())? {
            return Ok(Vec::new());
        }
        self.read.quads_about(subject)
    }

    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut failed = None;
        self.read.for_each(pattern, &mut |quad| match self.is_hidden(quad.subject.as_ref()) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => visit(quad),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn for_each_with_hidden(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.read.for_each_with_hidden(pattern, visit)
    }

    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        self.read.list_subjects(filter, after, limit)
    }

    fn list_to_read(
        &self,
        filter: &SubjectFilter,
        after: Option<&ListedSubject>,
        limit: usize,
    ) -> Result<Vec<ListedSubject>, Error> {
        self.read.list_to_read(filter, after, limit)
    }

    fn read_listed(&self, subject: &ListedSubject, quads: &mut SubjectQuads) -> Result<(), Error> {
        if self.is_hidden(subject.iri.as_ref().into())? {
            quads.clear();
            return Ok(());
        }
        self.read.read_listed(subject, quads)
    }

    /// Passes hidden subjects too: what is read about them here has no values. So the caller can limit how many it visits.
    fn visit_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
        reverse: bool,
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error> {
        self.read.visit_values(property, range, reverse, visit)
    }

    fn estimate_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        self.read.estimate_values(property, range)
    }

    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.read.read_document(collection, key)
    }

    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        self.read.read_documents(collection, range)
    }
}

impl<R> fmt::Debug for VisibleObjects<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VisibleObjects").field("scope", &self.scope).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;
    use crate::search::{
        ReferenceSearch, Search, SearchBudget, count_objects, find_page, find_referrers,
    };
    use crate::testing::{Fixture, insert_quad, put_namespace, render_object};
    use crate::tree::read_tree;
    use oxrdf::Literal;
    use penstock_resources::namespace::Generator;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_page_of_hidden_objects_is_a_page_so_that_a_search_can_check_its_time() {
        let config =
            "type: object\npath: Pump:.\nfields: {feeds: {type: resource, path: <urn:feeds>}}";
        let fixture = Fixture::new(compile(config).unwrap().root);
        let (kind, fed) = (Literal::from("pump"), NamedNode::new_unchecked("urn:9"));
        for (uri, graph) in [("urn:1", "http://x/Other/"), ("urn:2", "http://x/Pump/")] {
            insert_quad(&fixture.store, uri, "urn:kind", kind.clone(), graph);
            insert_quad(&fixture.store, uri, "urn:feeds", fed.clone(), graph);
        }
        let having = vec![(NamedNode::new_unchecked("urn:kind"), kind.into())];
        let all = Compiled { conditions: having.clone(), ..fixture.business_object.clone() };
        let snapshot = fixture.store.snapshot().unwrap();
        let own = Some([&fixture.business_object]);
        let visible = VisibleObjects::new(snapshot, &fixture.watch, own).unwrap();
        let filter = SubjectFilter { graph: None, having, ..SubjectFilter::default() };
        let page = visible.list_to_read(&filter, None, 1).unwrap();
        let hidden: Vec<&str> = page.iter().map(|listed| listed.iri.as_str()).collect();
        assert_eq!(hidden, ["urn:1"]);
        let page = visible.list_subjects(&filter, None, 1).unwrap();
        assert_eq!(page, [NamedNode::new_unchecked("urn:1")]);
        let budget = SearchBudget::new(10, Duration::from_mins(1));
        assert_eq!(count_objects(&visible, &all, None, &budget).unwrap(), 1);
        let search = Search { limit: 10, ..Search::default() };
        let page = find_page(&visible, &all, &search, &budget).unwrap();
        let found: Vec<&str> = page.found.iter().map(|found| found.uri.as_str()).collect();
        assert_eq!(found, ["urn:2"]);
        let links = Pattern {
            predicate: Some(NamedNode::new_unchecked("urn:feeds")),
            ..Pattern::default()
        };
        let (mut seen, mut stored) = (0, 0);
        let count = |count: &mut u32| {
            *count += 1;
            ControlFlow::Continue(())
        };
        visible.for_each(&links, &mut |_| count(&mut seen)).unwrap();
        visible.for_each_with_hidden(&links, &mut |_| count(&mut stored)).unwrap();
        assert_eq!((seen, stored), (1, 2));
        let (all, any) = ([Arc::new(all)], ReferenceSearch::all(None, 10));
        let page = find_referrers(&visible, &all, &fed, any, &budget).unwrap();
        let found: Vec<&str> = page.found.iter().map(|found| found.uri.as_str()).collect();
        assert_eq!(found, ["urn:2"]);
    }

    #[test]
    fn a_hidden_member_of_a_map_is_no_reference() {
        let config = "
type: object
path: Pump:.
fields:
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
";
        let fixture = Fixture::new(compile(config).unwrap().root);
        put_namespace(&fixture.store, "Other", "http://x/Other/", Generator::Uuid);
        let member = NamedNode::new_unchecked("urn:m");
        insert_quad(&fixture.store, "urn:p", "urn:level", member.clone(), "http://x/Pump/");
        insert_quad(&fixture.store, "urn:m", "urn:code", Literal::from("A"), "http://x/Level/");
        insert_quad(&fixture.store, "urn:m", "urn:value", Literal::from(1), "http://x/Level/");
        // Data in a namespace of others hides the object.
        insert_quad(&fixture.store, "urn:m", "urn:note", Literal::from("x"), "http://x/Other/");
        let budget = SearchBudget::new(10, Duration::from_mins(1));
        let all = [Arc::new(fixture.business_object.clone())];
        let root = &fixture.business_object.mapping.root;
        for (limit, view, count) in [
            (None, r#"{"uri":"urn:p","levels":{"A":1}}"#, 1),
            (Some([&fixture.business_object]), r#"{"uri":"urn:p"}"#, 0),
        ] {
            let snapshot = fixture.store.snapshot().unwrap();
            let visible = VisibleObjects::new(snapshot, &fixture.watch, limit).unwrap();
            assert_eq!(render_object(&visible, &fixture.business_object, "urn:p").0, view);
            let any = ReferenceSearch::all(None, 10);
            let page = find_referrers(&visible, &all, &member, any, &budget).unwrap();
            assert_eq!(page.found.len(), count, "{view}");
            let uri = NamedNode::new_unchecked("urn:p");
            let tree = read_tree(&visible, root, &uri, None).unwrap();
            let levels = &tree.fields.unwrap()[0];
            assert_eq!((levels.total, levels.notes.len()), (count, 0), "{levels:?}");
        }
    }
}
