//! The definitions as lines of text, whose difference a dry run shows.
use super::super::resources::{Content, Resource};
use super::Run;
use penstock_auth::groups::Group;
use penstock_base::error::GatewayError;
use penstock_model::resource::Definition;
use penstock_model::{namespace, shapes_graphs};
use penstock_resources::definitions::{DefinitionId, DefinitionKind};
use penstock_store::Read;
use serde_json::Value;

impl Run<'_> {
    /// Returns the lines of the stored definition that a resource replaces; only for a dry run.
    pub(super) fn describe(
        &self,
        read: &impl Read,
        resource: &Resource<'_>,
    ) -> Result<Vec<String>, GatewayError> {
        if !self.options.is_dry_run {
            return Ok(Vec::new());
        }
        let name = &resource.id.name;
        Ok(match &resource.content {
            Content::BusinessObject(_) => {
                let there = self.gateway.catalogue.get(name);
                there.map(|there| describe_definition(&there.object.definition)).unwrap_or_default()
            }
            Content::Group(_) => {
                let there = self.gateway.auth.groups.get(name);
                there.map(|there| describe_group(&there)).unwrap_or_default()
            }
            _ => describe_stored(read, &resource.id)?,
        })
    }

    /// Returns the lines of a definition after it was written; only for a dry run.
    pub(super) fn describe_new(
        &self,
        read: &impl Read,
        resource: &Resource<'_>,
    ) -> Result<Vec<String>, GatewayError> {
        if !self.options.is_dry_run {
            return Ok(Vec::new());
        }
        Ok(match &resource.content {
            Content::BusinessObject(new) => describe_definition(&new.definition),
            Content::Group(_) => {
                let new = self.groups.get(&resource.id.name);
                new.map(|new| describe_group(&new)).unwrap_or_default()
            }
            _ => describe_stored(read, &resource.id)?,
        })
    }
}

/// Returns the lines of a stored namespace or shapes graph.
fn describe_stored(
    read: &impl Read,
    DefinitionId { kind, name }: &DefinitionId,
) -> Result<Vec<String>, GatewayError> {
    Ok(match kind {
        DefinitionKind::Namespace => namespace::get(read, name)?
            .map(|there| {
                vec![
                    format!("uriBase: {}", there.uri_base),
                    format!("generator: {}", there.generator.name()),
                ]
            })
            .unwrap_or_default(),
        DefinitionKind::Shapes => shapes_graphs::SHAPES_GRAPHS
            .get_readable(read, name)?
            .map(|there| {
                let head = format!("contentType: {}", there.metadata.format.media_type());
                let lines = there.text.lines().map(str::to_owned);
                std::iter::once(head).chain(lines).collect()
            })
            .unwrap_or_default(),
        DefinitionKind::Group | DefinitionKind::BusinessObject => Vec::new(),
    })
}

fn describe_group(group: &Group) -> Vec<String> {
    let list = |name: &str, values: &[String]| {
        let elements = values.iter().map(|value| format!("  - {value}"));
        std::iter::once(format!("{name}:")).chain(elements).collect::<Vec<_>>()
    };
    [list("members", &group.members), list("claimValues", &group.claim_values)].concat()
}

/// Returns the members of a definition, one or more lines for each. The mapping is last, as it was given.
fn describe_definition(definition: &Definition) -> Vec<String> {
    let Ok(Value::Object(members)) = serde_json::to_value(definition) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (name, value) in members.into_iter().filter(|(name, _)| name != "config") {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        lines.extend(format!("{name}: {text}").lines().map(str::to_owned));
    }
    lines.push("config:".to_owned());
    lines.extend(definition.config.lines().map(|line| format!("  {line}")));
    lines
}
