//! The menu of every page: its entries in groups, and the saved views below their Business Objects.
use super::objects::address::view_path;
use penstock_auth::{Caller, Role};
use penstock_http::state::gateway;
use penstock_service::views::{list_views, list_views_by_business_object};
use salvo::Depot;

/// The maximum number of saved views in the menu. The list of views has the others.
const MAX_VIEWS: usize = 12;

/// The section of the interface that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    BusinessObjects,
    Changes,
    Rejected,
    Exports,
    Targets,
    Backup,
    Sources,
    Query,
    Sparql,
    Namespaces,
    Shapes,
    Quality,
    Keys,
    Users,
    Groups,
    Audit,
    Settings,
    Profile,
    /// No section: the page of an error, or what was searched for.
    None,
}

/// An entry of the menu.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) section: Section,
    /// The path of its page, without the prefix.
    pub(super) path: &'static str,
    pub(super) words: &'static str,
    /// The minimum role to see the entry. The routes require it too.
    minimum_role: Role,
}

/// A group of entries.
struct Group {
    /// Its heading; empty for the first one.
    caption: &'static str,
    items: &'static [Item],
}

const fn item(
    section: Section,
    path: &'static str,
    words: &'static str,
    minimum_role: Role,
) -> Item {
    Item { section, path, words, minimum_role }
}

/// The menu, in its order.
static GROUPS: [Group; 5] = [
    Group { caption: "", items: &[item(Section::Overview, "/admin", "Overview", Role::User)] },
    Group {
        caption: "Data",
        items: &[
            item(
                Section::BusinessObjects,
                "/admin/business-objects",
                "Business Objects",
                Role::User,
            ),
            item(Section::Changes, "/admin/changes", "Changes", Role::User),
            item(Section::Query, "/admin/query", "GraphQL", Role::User),
            item(Section::Sparql, "/admin/sparql", "SPARQL", Role::User),
            item(Section::Namespaces, "/admin/namespaces", "Namespaces", Role::User),
            item(Section::Shapes, "/admin/shapes", "Shapes", Role::User),
            item(Section::Quality, "/admin/quality", "Data quality", Role::User),
        ],
    },
    Group {
        caption: "Exchange",
        items: &[
            item(Section::Sources, "/admin/sources", "Sources", Role::User),
            item(Section::Rejected, "/admin/rejected", "Dead letters", Role::Contributor),
            item(Section::Exports, "/admin/exports", "Exports", Role::User),
            item(Section::Targets, "/admin/targets", "Targets", Role::User),
            item(Section::Backup, "/admin/backup", "Backup", Role::User),
        ],
    },
    Group {
        caption: "Access",
        items: &[
            item(Section::Keys, "/admin/keys", "API keys", Role::User),
            item(Section::Users, "/admin/users", "Users", Role::Admin),
            item(Section::Groups, "/admin/groups", "Groups", Role::Admin),
        ],
    },
    Group {
        caption: "System",
        items: &[
            item(Section::Audit, "/admin/audit", "Audit trail", Role::Admin),
            item(Section::Settings, "/admin/settings", "Settings", Role::Admin),
        ],
    },
];

/// A group with the entries that the viewer may use.
pub(super) struct ShownGroup {
    pub(super) caption: &'static str,
    pub(super) items: Vec<&'static Item>,
}

/// Returns the groups with entries that a viewer of this role may use.
pub(super) fn list_groups(role: Role) -> impl Iterator<Item = ShownGroup> {
    GROUPS.iter().filter_map(move |group| {
        let items: Vec<_> = group.items.iter().filter(|item| role >= item.minimum_role).collect();
        (!items.is_empty()).then_some(ShownGroup { caption: group.caption, items })
    })
}

/// The saved views in the menu.
#[derive(Debug, Default)]
pub(super) struct MenuViews {
    pub(super) business_objects: Vec<ViewsEntry>,
    /// Whether there are more.
    pub(super) has_more: bool,
}

/// A Business Object with views.
#[derive(Debug)]
pub(super) struct ViewsEntry {
    pub(super) id: String,
    pub(super) name: String,
    /// The paths of its views, without the prefix, and their names.
    pub(super) views: Vec<(String, String)>,
}

impl MenuViews {
    /// Lists the first views that a viewer sees. Never blocks.
    pub(super) fn list(by: &Caller, depot: &Depot) -> Self {
        let Ok(gateway) = gateway(depot) else { return Self::default() };
        let (mut menu, mut left) = (Self::default(), MAX_VIEWS);
        for of in list_views_by_business_object(&gateway, by) {
            let shown = of.views.len().min(left);
            menu.has_more |= shown < of.views.len();
            left -= shown;
            if shown == 0 {
                continue;
            }
            let object = &of.business_object.object;
            let views = of.views.iter().take(shown);
            let views =
                views.map(|view| (view_path(&object.id, &view.id), view.content.name.clone()));
            menu.business_objects.push(ViewsEntry {
                id: object.id.clone(),
                name: object.definition.name.clone(),
                views: views.collect(),
            });
        }
        if menu.business_objects.is_empty() {
            // Those of deleted Business Objects are only in the list of views.
            menu.has_more = !list_views(&gateway, by, None, None, 1).is_empty();
        }
        menu
    }

    pub(super) fn is_empty(&self) -> bool {
        self.business_objects.is_empty() && !self.has_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_entries_of_the_role_is_left_out() {
        let captions = |role| list_groups(role).map(|group| group.caption).collect::<Vec<_>>();
        assert_eq!(captions(Role::User), ["", "Data", "Exchange", "Access"]);
        assert_eq!(captions(Role::Admin), ["", "Data", "Exchange", "Access", "System"]);
        let count = |role| list_groups(role).map(|group| group.items.len()).sum::<usize>();
        assert_eq!([Role::User, Role::Contributor, Role::Admin].map(count), [13, 14, 18]);
    }
}
