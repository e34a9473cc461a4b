//! `If-Match`: an object that has changed since the client read it is not written.
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
    /// Its view has this tag: a person has seen it in that state, and changes that. The change may be reviewed.
    IsAsShown(String),
}

impl ObjectCondition {
    /// Whether a request with this condition may become a change. Those of `If-Match` may not: their client would take the
    /// answer for that of a change that is published.
    pub(super) fn allows_review(&self) -> bool {
        matches!(self, Self::IsAsShown(_))
    }

    /// Checks the stored object.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed` if it does not exist, or has another view.
    pub(super) fn check_object(
        &self,
        read: &impl Read,
        shape: &Shape,
        uri: &NamedNode,
    ) -> Result<(), GatewayError> {
        let shown = uri.as_str();
        if read.quads_about(&uri.clone().into())?.is_empty() {
            return Err(GatewayError::new(
                ErrorClass::PreconditionFailed,
                match self {
                    Self::Exists | Self::HasTag(_) => format!(
                        "If-Match requires an existing object, and there is none with the URI {shown}"
                    ),
                    Self::IsAsShown(_) => format!("the object {shown} has been deleted meanwhile"),
                },
            ));
        }
        let tags = match self {
            Self::Exists => return Ok(()),
            Self::HasTag(tags) => tags.as_slice(),
            Self::IsAsShown(tag) => std::slice::from_ref(tag),
        };
        let mut json = Vec::new();
        view::render_object(read, shape, uri, &mut json, &mut Vec::new())?;
        if tags.contains(&view::compute_etag(&json)) {
            return Ok(());
        }
        Err(GatewayError::new(
            ErrorClass::PreconditionFailed,
            format!(
                "the object {shown} has changed since it was read; read it again and repeat the change"
            ),
        ))
    }
}
