//! Tests whether a target would accept files, without writing one.
use super::Exporter;
use super::target::{self, OpenTarget};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::export::TargetTest;
use std::time::Instant;

impl Exporter {
    /// Tests with the configured credentials whether a target would accept files. It writes nothing and does
    /// not affect the queue.
    ///
    /// # Errors
    /// `ErrorClass::NotFound` if the bucketName refers to no target.
    pub async fn test_target(&self, bucket_name: &str) -> Result<TargetTest, GatewayError> {
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
            Ok(remark) => TargetTest {
                target,
                kind,
                ok: true,
                reachable: Some(true),
                cause: remark.map(str::to_owned),
                caused_by: None,
                milliseconds,
                answer: None,
            },
            Err(failure) => TargetTest {
                target,
                kind,
                ok: false,
                reachable: failure.target_reached(),
                cause: Some(failure.cause),
                caused_by: Some(failure.class),
                milliseconds,
                answer: failure.answer,
            },
        })
    }
}
