//! The content of a definition in a file, and what it is read with.
use penstock_auth::groups::NewGroup;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::Json;
use penstock_model::resource::CompiledDefinition;
use penstock_model::shapes_graphs::NewGraph;
use penstock_resources::namespace::DefinedNamespace;

/// The content of a definition.
#[derive(Debug)]
pub(crate) enum Content {
    Namespace(DefinedNamespace),
    Shapes(NewGraph),
    Group(NewGroup),
    BusinessObject(Box<CompiledDefinition>),
}

/// Takes a member out of an object; `None` if it is absent or null.
pub(crate) fn take_member(members: &mut Vec<(String, Json)>, name: &str) -> Option<Json> {
    let place = members.iter().position(|(member, _)| member == name)?;
    Some(members.remove(place).1).filter(|value| *value != Json::Null)
}

/// Returns the error of a definition with one finding.
pub(crate) fn invalid_error(pointer: &str, message: impl Into<String>) -> GatewayError {
    let message = message.into();
    let findings = vec![Finding::at_pointer(pointer, message.clone())];
    GatewayError::with_findings(ErrorClass::Invalid, message, findings)
}
