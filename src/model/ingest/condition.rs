//! `If-Match` and `If-None-Match`: an object that has changed since the client read it is not written.
use crate::mapping::Shape;
use crate::view;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_store::Read;

/// The state that the object of a request must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectCondition {
    /// The object exists.
    Exists,
    /// Its view has one of these tags ([`view::compute_etag`]).
    HasTag(Vec<String>),
    /// The object does not exist (`If-None-Match: *`).
    Missing,
    /// The object does not exist, or its view has none of these tags.
    LacksTag(Vec<String>),
    /// Its view has this tag: a person has seen it in that state, and changes that. The change may be reviewed.
    IsAsShown(String),
}

impl ObjectCondition {
    /// Whether a request with this condition may become a change. Those of headers may not: their client would take the
    /// answer for that of a change that is published.
    pub(super) fn allows_review(&self) -> bool {
        matches!(self, Self::IsAsShown(_))
    }

    /// Checks the stored object.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed` if it is in another state.
    pub(super) fn check_object(
        &self,
        read: &dyn Read,
        shape: &Shape,
        uri: &NamedNode,
    ) -> Result<(), GatewayError> {
        let shown = uri.as_str();
        let exists = !read.quads_about(&uri.clone().into())?.is_empty();
        if matches!(self, Self::Missing) && exists {
            return Err(GatewayError::new(
                ErrorClass::PreconditionFailed,
                format!(
                    "If-None-Match: * requires that there is no object {shown}, and it exists; nothing was stored"
                ),
            ));
        }
        if !exists {
            return Err(GatewayError::new(
                ErrorClass::PreconditionFailed,
                match self {
                    Self::Missing | Self::LacksTag(_) => return Ok(()),
                    Self::Exists | Self::HasTag(_) => format!(
                        "If-Match requires an existing object, and there is none with the URI {shown}"
                    ),
                    Self::IsAsShown(_) => format!("the object {shown} has been deleted meanwhile"),
                },
            ));
        }
        let tags = match self {
            Self::Exists | Self::Missing => return Ok(()),
            Self::HasTag(tags) | Self::LacksTag(tags) => tags.as_slice(),
            Self::IsAsShown(tag) => std::slice::from_ref(tag),
        };
        let mut json = Vec::new();
        view::render_object(read, shape, uri, &mut json, &mut Vec::new())?;
        let has_tag = tags.contains(&view::compute_etag(&json));
        if has_tag != matches!(self, Self::LacksTag(_)) {
            return Ok(());
        }
        if has_tag {
            return Err(GatewayError::new(
                ErrorClass::PreconditionFailed,
                format!("the object {shown} is in a state that If-None-Match excludes"),
            ));
        }
        Err(GatewayError::new(
            ErrorClass::PreconditionFailed,
            format!(
                "the object {shown} has changed since it was read; read it again and repeat the change"
            ),
        ))
    }
}
