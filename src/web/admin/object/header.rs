//! What every page about an object shows: where it is, what it is called, what can be done with it, and the tabs.
use super::link::object_link;
use crate::admin::frame::Frame;
use crate::admin::words::shorten_text;
use penstock_base::Role;
use penstock_http::path::encode_segment;
use penstock_http::problem::Problem;
use penstock_model::resource::Compiled;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{ObjectHeader, ShapePlace};
use std::fmt::Write as _;

/// A tab of the page of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Fields,
    Graph,
    Rdf,
    History,
    References,
}

impl Tab {
    const ALL: [Self; 5] = [Self::Fields, Self::Graph, Self::Rdf, Self::History, Self::References];

    /// Reads the parameter `tab`.
    pub(super) fn read(parameter: Option<&str>) -> Result<Self, Problem> {
        let Some(name) = parameter else { return Ok(Self::Fields) };
        Self::ALL.into_iter().find(|tab| tab.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Problem::malformed(format!("there is no tab {name:?}; use one of {names}"))
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Fields => "fields",
            Self::Graph => "graph",
            Self::Rdf => "rdf",
            Self::History => "history",
            Self::References => "references",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Fields => "Fields",
            Self::Graph => "Graph",
            Self::Rdf => "RDF",
            Self::History => "History",
            Self::References => "References",
        }
    }
}

/// The addresses of the pages about one object.
pub(super) struct ObjectAddress {
    prefix: String,
    uri: String,
    /// The id of the Business Object that shows it, if the address names one.
    view: Option<String>,
}

impl ObjectAddress {
    pub(super) fn new(frame: &Frame, uri: &str, view: Option<String>) -> Self {
        Self { prefix: frame.prefix.clone(), uri: uri.to_owned(), view }
    }

    /// Returns the URI of the object.
    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Returns the parameters of a tab.
    pub(super) fn parameters(&self, tab: Tab) -> Vec<(&'static str, Option<&str>)> {
        let tab = Some(tab.name()).filter(|_| tab != Tab::Fields);
        vec![("uri", Some(&*self.uri)), ("view", self.view.as_deref()), ("tab", tab)]
    }

    /// Returns the address of a tab.
    pub(super) fn tab(&self, tab: Tab) -> String {
        let mut address = format!("{}/admin/object", self.prefix);
        let given = self.parameters(tab).into_iter();
        let given = given.filter_map(|(name, value)| Some((name, value?)));
        for (at, (name, value)) in given.enumerate() {
            let before = if at == 0 { '?' } else { '&' };
            // Writing into a string cannot fail.
            let _ = write!(address, "{before}{name}={}", encode_segment(value));
        }
        address
    }

    /// Returns the address of the drawing with more of the objects that a property links.
    pub(super) fn expanded(&self, predicate: &str) -> String {
        format!("{}&expand={}", self.tab(Tab::Graph), encode_segment(predicate))
    }

    /// Returns the address of the elements of a field from this index.
    pub(super) fn elements(&self, field: &str, from: usize) -> String {
        format!("{}&field={}&from={from}", self.tab(Tab::Fields), encode_segment(field))
    }
}

/// A link of the tabs, or to another view.
pub(super) struct HeaderLink {
    pub(super) link: String,
    pub(super) words: String,
    pub(super) is_current: bool,
}

/// What every page about an object shows.
pub(super) struct Header {
    pub(super) uri: String,
    /// Its label; the URI without one.
    pub(super) label: String,
    /// The pages above this one: address and words.
    pub(super) crumbs: Vec<(String, String)>,
    /// The Business Objects that it belongs to: address and name.
    pub(super) belongs: Vec<(String, String)>,
    /// The Business Objects that can show it, if there are several.
    pub(super) views: Vec<HeaderLink>,
    pub(super) tabs: Vec<HeaderLink>,
    /// The query of the pages that change it, if the viewer may change it.
    pub(super) change_query: Option<String>,
    /// The object that it is part of, which is changed in its place: address and label.
    pub(super) whole: Option<(String, String)>,
}

impl Header {
    pub(super) fn new(
        gateway: &Gateway,
        frame: &Frame,
        header: ObjectHeader,
        address: &ObjectAddress,
        tab: Tab,
    ) -> Self {
        let ObjectHeader { uri, label, business_objects, place, ancestors } = header;
        let uri = uri.into_string();
        let list = |compiled: &Compiled| {
            let object = &compiled.object;
            let link = format!("{}/admin/objects/{}", frame.prefix, object.id);
            (link, object.definition.name.clone())
        };
        let mut crumbs = vec![(
            format!("{}/admin/business-objects", frame.prefix),
            "Business Objects".to_owned(),
        )];
        crumbs.extend(place.as_ref().map(|place| list(&place.business_object)));
        let mut above = Vec::new();
        for ancestor in &ancestors {
            let label = ancestor.label.as_deref().unwrap_or(ancestor.uri.as_str());
            let link = object_link(frame, ancestor.uri.as_str());
            above.push((link.clone(), shorten_text(label)));
            let elements = format!("{link}&field={}", encode_segment(&ancestor.field));
            above.push((elements, ancestor.field.clone()));
        }
        let may_change = frame.may(Role::Contributor);
        let change_query = place
            .as_ref()
            .filter(|_| may_change)
            .and_then(|place| change_query(gateway, place, &uri));
        let whole = above.first().filter(|_| change_query.is_none() && may_change).cloned();
        crumbs.extend(above);
        let current = place.as_ref().map(|place| place.business_object.object.id.as_str());
        let views = business_objects.iter().map(|compiled| {
            let id = &compiled.object.id;
            let named = ObjectAddress::new(frame, &uri, Some(id.clone()));
            HeaderLink {
                link: named.tab(tab),
                words: compiled.object.definition.name.clone(),
                is_current: Some(id.as_str()) == current,
            }
        });
        let views: Vec<_> = views.collect();
        Self {
            label: label.as_deref().map_or_else(|| uri.clone(), shorten_text),
            crumbs,
            belongs: business_objects.iter().map(|compiled| list(compiled)).collect(),
            views: if views.len() > 1 { views } else { Vec::new() },
            tabs: Tab::ALL
                .map(|one| HeaderLink {
                    link: address.tab(one),
                    words: one.words().to_owned(),
                    is_current: one == tab,
                })
                .into(),
            change_query,
            whole,
            uri,
        }
    }
}

/// Returns the query of the pages that change an object through this Business Object, if that accepts data. A nested object
/// is changed with the object that contains it.
fn change_query(gateway: &Gateway, place: &ShapePlace, uri: &str) -> Option<String> {
    let compiled = &place.business_object;
    let is_open = compiled.object.definition.enabled
        && compiled.object.deleting.is_none()
        && gateway.catalogue.get(&compiled.object.id).is_some();
    (place.steps.is_empty() && is_open).then(|| {
        format!("?uri={}&view={}", encode_segment(uri), encode_segment(&compiled.object.id))
    })
}
