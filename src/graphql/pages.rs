//! Reads and writes pages of connections.
use super::execute::Execution;
use super::out::Out;
use super::plan::{EdgePart, Nodes, Page, Part};
use penstock_base::fault::Fault;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// An object on a page.
#[derive(Debug)]
pub(super) struct Item {
    /// The Business Object that it belongs to, as an index into the Business Objects of the model.
    pub(super) business: usize,
    pub(super) uri: String,
    pub(super) cursor: String,
    /// The fields through which it refers to the object that the page is about.
    pub(super) path: Option<String>,
}

/// The objects of a page, for each part of the page that shows them. The key is the address of the part.
pub(super) type Loaded = HashMap<*const (), HashMap<(usize, String), Rc<Out>>>;

impl<'d> Execution<'d> {
    /// Reads the objects of pages with the same selection, each once for each part.
    pub(super) fn load<'i>(
        &self,
        page: &Page<'d>,
        items: &(impl Iterator<Item = &'i Item> + Clone),
    ) -> Result<Loaded, Fault> {
        let mut loaded = Loaded::new();
        for (_, part) in &page.parts {
            match part {
                Part::Nodes(nodes) => {
                    loaded.insert(address(nodes), self.load_nodes(nodes, items.clone())?);
                }
                Part::Edges(parts) => {
                    for (_, part) in parts {
                        if let EdgePart::Node(nodes) = part {
                            loaded.insert(address(nodes), self.load_nodes(nodes, items.clone())?);
                        }
                    }
                }
                Part::TypeName | Part::PageInfo(_) | Part::TotalCount => {}
            }
        }
        Ok(loaded)
    }

    fn load_nodes<'i>(
        &self,
        nodes: &Nodes<'d>,
        items: impl Iterator<Item = &'i Item>,
    ) -> Result<HashMap<(usize, String), Rc<Out>>, Fault> {
        let mut of: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for item in items {
            of.entry(item.business).or_default().insert(item.uri.clone());
        }
        let mut loaded = HashMap::new();
        for (business, uris) in of {
            let plan = nodes.plan(&self.planner, business)?;
            let objects = self.objects(business, &plan, &uris)?;
            loaded.extend(objects.into_iter().map(|(uri, out)| ((business, uri), out)));
        }
        Ok(loaded)
    }

    /// Builds a page. Omits objects that were deleted since the search.
    pub(super) fn connect(
        &self,
        page: &Page<'d>,
        items: &[Item],
        more: bool,
        loaded: &Loaded,
        total: &dyn Fn() -> Result<Out, Fault>,
    ) -> Result<Out, Fault> {
        let node = |nodes: &Nodes<'d>, item: &Item| {
            let out = loaded.get(&address(nodes))?.get(&(item.business, item.uri.clone()))?;
            Some(Out::Shared(Rc::clone(out)))
        };
        let mut members = Vec::new();
        for (key, part) in &page.parts {
            let out = match part {
                Part::TypeName => Out::text(page.type_name.as_str()),
                Part::Nodes(nodes) => {
                    Out::List(items.iter().filter_map(|item| node(nodes, item)).collect())
                }
                Part::Edges(parts) => Out::List(self.edges(page, parts, items, &node)?),
                Part::PageInfo(fields) => {
                    let fields = fields.iter().map(|(key, field)| {
                        let cursor = |item: Option<&Item>| {
                            Out::or_null(item.map(|item| Out::text(item.cursor.as_str())))
                        };
                        let out = match field.as_str() {
                            "hasNextPage" => Out::flag(more),
                            "hasPreviousPage" => Out::flag(page.after.is_some()),
                            "startCursor" => cursor(items.first()),
                            "endCursor" => cursor(items.last()),
                            _ => Out::text("PageInfo"),
                        };
                        (key.clone(), out)
                    });
                    Out::Object(fields.collect())
                }
                Part::TotalCount => total().unwrap_or_else(|fault| Out::Failed(Box::new(fault))),
            };
            if !matches!(part, Part::Nodes(_)) {
                self.weigh(key, &out)?;
            }
            members.push((key.clone(), out));
        }
        Ok(Out::Object(members))
    }

    fn edges(
        &self,
        page: &Page<'d>,
        parts: &[(async_graphql::Name, EdgePart<'d>)],
        items: &[Item],
        node: &dyn Fn(&Nodes<'d>, &Item) -> Option<Out>,
    ) -> Result<Vec<Out>, Fault> {
        let type_name = page.type_name.strip_suffix("Connection").unwrap_or_default();
        let mut edges = Vec::new();
        'items: for item in items {
            let mut members = Vec::with_capacity(parts.len());
            for (key, part) in parts {
                let out = match part {
                    EdgePart::TypeName => Out::text(format!("{type_name}Edge")),
                    EdgePart::Cursor => Out::text(item.cursor.as_str()),
                    EdgePart::ObjectType => {
                        let of = self.planner.model.root_type(item.business);
                        Out::text(of.map_or("", |of| &of.name))
                    }
                    EdgePart::Path => Out::or_null(item.path.as_deref().map(Out::text)),
                    EdgePart::Node(nodes) => match node(nodes, item) {
                        Some(out) => out,
                        None => continue 'items,
                    },
                };
                if !matches!(part, EdgePart::Node(_)) {
                    self.weigh(key, &out)?;
                }
                members.push((key.clone(), out));
            }
            edges.push(Out::Object(members));
        }
        Ok(edges)
    }
}

fn address(nodes: &Nodes<'_>) -> *const () {
    std::ptr::from_ref(nodes).cast()
}
