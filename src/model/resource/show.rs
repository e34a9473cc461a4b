//! What is shown of a Business Object.
use super::{BusinessObject, Definition, Deletion};
use penstock_base::error::Finding;
use penstock_resources::business_object::{self, Deleting};

impl BusinessObject {
    /// Returns what is shown of it, with the warnings about it.
    pub fn show(&self, warnings: Vec<Finding>) -> business_object::BusinessObject {
        let object = self.clone();
        business_object::BusinessObject {
            id: object.id,
            definition: object.definition.into(),
            version: object.version,
            created_at: object.created_at,
            updated_at: object.updated_at,
            updated_by: object.updated_by,
            created_namespaces: object.created_namespaces,
            deleting: object.deleting.map(|Deletion { remaining, .. }| Deleting { remaining }),
            warnings: warnings.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Definition> for business_object::Definition {
    fn from(definition: Definition) -> Self {
        Self {
            name: definition.name,
            description: definition.description,
            enabled: definition.enabled,
            config: definition.config,
            namespaces: definition.namespaces,
            conditions: definition.conditions,
            push_targets: definition.push_targets,
            schedule: definition.schedule,
            timezone: definition.timezone,
            export_on_change: definition.export_on_change,
            debounce: definition.debounce,
            retention: definition.retention,
            validation: definition.validation,
            review: definition.review,
            approvers: definition
                .approvers
                .map(|approvers| approvers.into_iter().map(Into::into).collect()),
        }
    }
}
