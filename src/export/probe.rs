//! Tests whether a target would accept files, without writing one.
use super::Exporter;
use super::cause::{DeliveryFailure, FailureClass};
use super::target::{self, OpenTarget};
use penstock_base::error::{ErrorClass, GatewayError};
use std::time::Instant;

/// The result of a target test.
#[derive(Debug, Clone)]
pub struct ProbeResult {
    /// The bucketName.
    pub target: String,
    /// `directory`, `s3` or `sparql`.
    pub kind: &'static str,
    /// Whether no obstacle to a delivery was found.
    pub ok: bool,
    /// Whether the target was reached, null if it was not contacted.
    pub reachable: Option<bool>,
    /// The obstacle, or what could not be checked, as text.
    pub cause: Option<String>,
    /// The class of the obstacle, null if there is none.
    pub caused_by: Option<FailureClass>,
    /// What the server answered, if it refused: the status and its words.
    pub answer: Option<String>,
    /// The duration of the test in milliseconds.
    pub milliseconds: u64,
}

impl Exporter {
    /// Tests with the configured credentials whether a target would accept files. It writes nothing and does
    /// not affect the queue.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if the bucketName refers to no target.
    pub async fn test_target(&self, bucket_name: &str) -> Result<ProbeResult, GatewayError> {
        let options = &self.inner.options;
        target::check_target(options, bucket_name)
            .map_err(|why| GatewayError::new(ErrorClass::NotFound, why))?;
        let begun = Instant::now();
        let found = match OpenTarget::open(options, bucket_name) {
            Ok(target) => {
                target.test_access(&target::key_prefix(&options.targets, bucket_name)).await
            }
            Err(failure) => Err(failure),
        };
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let kind = target::type_name(options, bucket_name);
        let target = bucket_name.to_owned();
        Ok(match found {
            Ok(remark) => {
                let (ok, cause, caused_by) = (true, remark.map(str::to_owned), None);
                ProbeResult {
                    target,
                    kind,
                    ok,
                    reachable: Some(true),
                    cause,
                    caused_by,
                    answer: None,
                    milliseconds,
                }
            }
            Err(DeliveryFailure { class, cause, answer, .. }) => ProbeResult {
                target,
                kind,
                ok: false,
                reachable: class.target_reached(),
                cause: Some(cause),
                caused_by: Some(class),
                answer,
                milliseconds,
            },
        })
    }
}
