//! What an ingestion does if an object has an error.
use penstock_base::error::{ErrorClass, GatewayError};

/// What an ingestion does if an object has an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Stores nothing of the request, or of the chunk of a stream.
    #[default]
    Abort,
    /// Rejects the object and stores the others.
    Skip,
}

impl std::str::FromStr for OnError {
    type Err = GatewayError;

    /// Parses the query parameter, which is case-sensitive.
    fn from_str(text: &str) -> Result<Self, GatewayError> {
        match text {
            "abort" => Ok(Self::Abort),
            "skip" => Ok(Self::Skip),
            _ => Err(GatewayError::new(
                ErrorClass::Malformed,
                format!(
                    "the query parameter onError is {}; it must be abort or skip",
                    super::findings::quote_excerpt(text)
                ),
            )),
        }
    }
}
