//! Tests whether a target would accept files, without writing one.
use super::Exporter;
use super::cause::DeliveryFailure;
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
        let found = match OpenTarget::open(&self.inner, bucket_name) {
            Ok(target) => {
                target.test_access(&target::key_prefix(&options.targets, bucket_name)).await
            }
            Err(failure) => Err(failure),
        };
        let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let kind = target::type_name(options, bucket_name);
        let failure = found.as_ref().err();
        Ok(TargetTest {
            target: bucket_name.to_owned(),
            kind,
            ok: failure.is_none(),
            reachable: failure.map_or(Some(true), DeliveryFailure::target_reached),
            caused_by: failure.map(|failure| failure.class),
            answer: failure.and_then(|failure| failure.answer.clone()),
            cause: match found {
                Ok(remark) => remark.map(str::to_owned),
                Err(failure) => Some(failure.cause),
            },
            milliseconds,
        })
    }
}
