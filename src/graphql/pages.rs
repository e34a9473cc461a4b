//! Reads and writes pages of connections.
use super::execution::Execution;
use super::out::ResultValue;
use super::plan::{EdgePart, Nodes, Page, PagePart};
use penstock_base::error::GatewayError;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// An object on a page.
#[derive(Debug)]
pub(super) struct PageItem {
    /// The Business Object that it belongs to, as an index into the Business Objects of the model.
    pub(super) business: usize,
    pub(super) uri: String,
    pub(super) cursor: String,
    /// The fields through which it refers to the object that the page is about.
    pub(super) path: Option<String>,
}

/// The objects of pages, for each part of a page that shows objects. The key is the address of the part's [`Nodes`].
/// The inner key is the Business Object and the URI.
pub(super) type LoadedObjects = HashMap<*const (), HashMap<(usize, String), Rc<ResultValue>>>;

impl<'d> Execution<'d> {
    /// Reads the objects of all pages with this selection. An object on several pages is read once for each part.
    pub(super) fn load_page<'i>(
        &self,
        page: &Page<'d>,
        items: &(impl Iterator<Item = &'i PageItem> + Clone),
    ) -> Result<LoadedObjects, GatewayError> {
        let mut loaded = LoadedObjects::new();
        for (_, part) in &page.parts {
            match part {
                PagePart::Nodes(nodes) => {
                    loaded.insert(address_of(nodes), self.load_nodes(nodes, items.clone())?);
                }
                PagePart::Edges(parts) => {
                    for (_, part) in parts {
                        if let EdgePart::Node(nodes) = part {
                            loaded
                                .insert(address_of(nodes), self.load_nodes(nodes, items.clone())?);
                        }
                    }
                }
                PagePart::TypeName | PagePart::PageInfo(_) | PagePart::TotalCount => {}
            }
        }
        Ok(loaded)
    }

    fn load_nodes<'i>(
        &self,
        nodes: &Nodes<'d>,
        items: impl Iterator<Item = &'i PageItem>,
    ) -> Result<HashMap<(usize, String), Rc<ResultValue>>, GatewayError> {
        let mut uris_by_business: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for item in items {
            uris_by_business.entry(item.business).or_default().insert(item.uri.clone());
        }
        let mut loaded = HashMap::new();
        for (business, uris) in uris_by_business {
            let plan = nodes.plan_for(&self.planner, business)?;
            let objects = self.read_objects(business, &plan, &uris)?;
            loaded.extend(objects.into_iter().map(|(uri, out)| ((business, uri), out)));
        }
        Ok(loaded)
    }

    /// Builds a page. Omits objects that were deleted since the search.
    pub(super) fn build_page(
        &self,
        page: &Page<'d>,
        items: &[PageItem],
        more: bool,
        loaded: &LoadedObjects,
        total: &dyn Fn() -> Result<ResultValue, GatewayError>,
    ) -> Result<ResultValue, GatewayError> {
        let node = |nodes: &Nodes<'d>, item: &PageItem| {
            let out = loaded.get(&address_of(nodes))?.get(&(item.business, item.uri.clone()))?;
            Some(ResultValue::Shared(Rc::clone(out)))
        };
        let mut members = Vec::new();
        for (key, part) in &page.parts {
            let out = match part {
                PagePart::TypeName => ResultValue::from_text(page.type_name.as_str()),
                PagePart::Nodes(nodes) => {
                    ResultValue::List(items.iter().filter_map(|item| node(nodes, item)).collect())
                }
                PagePart::Edges(parts) => {
                    ResultValue::List(self.build_edges(page, parts, items, &node)?)
                }
                PagePart::PageInfo(fields) => {
                    let fields = fields.iter().map(|(key, field)| {
                        let cursor = |item: Option<&PageItem>| {
                            ResultValue::or_null(
                                item.map(|item| ResultValue::from_text(item.cursor.as_str())),
                            )
                        };
                        let out = match field.as_str() {
                            "hasNextPage" => ResultValue::from_bool(more),
                            "hasPreviousPage" => ResultValue::from_bool(page.after.is_some()),
                            "startCursor" => cursor(items.first()),
                            "endCursor" => cursor(items.last()),
                            _ => ResultValue::from_text("PageInfo"),
                        };
                        (key.clone(), out)
                    });
                    ResultValue::Object(fields.collect())
                }
                PagePart::TotalCount => {
                    total().unwrap_or_else(|error| ResultValue::Failed(Box::new(error)))
                }
            };
            if !matches!(part, PagePart::Nodes(_)) {
                self.count_bytes(key, &out)?;
            }
            members.push((key.clone(), out));
        }
        Ok(ResultValue::Object(members))
    }

    fn build_edges(
        &self,
        page: &Page<'d>,
        parts: &[(async_graphql::Name, EdgePart<'d>)],
        items: &[PageItem],
        node: &dyn Fn(&Nodes<'d>, &PageItem) -> Option<ResultValue>,
    ) -> Result<Vec<ResultValue>, GatewayError> {
        let type_name = page.type_name.strip_suffix("Connection").unwrap_or_default();
        let mut edges = Vec::new();
        'items: for item in items {
            let mut members = Vec::with_capacity(parts.len());
            for (key, part) in parts {
                let out = match part {
                    EdgePart::TypeName => ResultValue::from_text(format!("{type_name}Edge")),
                    EdgePart::Cursor => ResultValue::from_text(item.cursor.as_str()),
                    EdgePart::ObjectType => {
                        let of = self.planner.model.root_type(item.business);
                        ResultValue::from_text(of.map_or("", |of| &of.name))
                    }
                    EdgePart::Path => {
                        ResultValue::or_null(item.path.as_deref().map(ResultValue::from_text))
                    }
                    EdgePart::Node(nodes) => match node(nodes, item) {
                        Some(out) => out,
                        None => continue 'items,
                    },
                };
                if !matches!(part, EdgePart::Node(_)) {
                    self.count_bytes(key, &out)?;
                }
                members.push((key.clone(), out));
            }
            edges.push(ResultValue::Object(members));
        }
        Ok(edges)
    }
}

fn address_of(nodes: &Nodes<'_>) -> *const () {
    std::ptr::from_ref(nodes).cast()
}
