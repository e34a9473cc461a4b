//! Opens the gateway on a thread of its own, and waits for disk space.
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::Settings;
use penstock_http::state::State;
use penstock_service::gateway::Gateway;
use penstock_service::recovery::ReplayLog;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The interval between attempts to open a store for which disk space was missing.
const DISK_SPACE_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Opens the gateway, and retries while the disk is too full for it. Meanwhile, responses to clients contain the
/// reason. The process does not exit, because a restart would free no space.
pub(super) async fn open_when_space_allows(
    settings: &Arc<Settings>,
    state: &Arc<State>,
) -> Result<Gateway, GatewayError> {
    let mut is_logged = false;
    loop {
        match open_on_thread(settings.clone(), state.clone()).await {
            Err(error) if error.class == ErrorClass::InsufficientStorage => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::error!(
                        "{}; the gateway retries until there is enough space.",
                        error.detail
                    );
                }
                state.set_wait_reason(Some(describe_missing_space(&error)));
                tokio::time::sleep(DISK_SPACE_RETRY_INTERVAL).await;
            }
            opened => {
                state.set_wait_reason(None);
                return opened;
            }
        }
    }
}

/// Returns why the gateway is not open, for clients. The path is only in the log.
fn describe_missing_space(error: &GatewayError) -> String {
    let needed = error.findings.first().map_or_else(String::new, |finding| format!(" ({finding})"));
    format!("the gateway's disk is full; the store opens when there is enough space{needed}")
}

/// Opens the gateway on a separate thread. The process can exit without waiting for that thread.
async fn open_on_thread(
    settings: Arc<Settings>,
    state: Arc<State>,
) -> Result<Gateway, GatewayError> {
    let (sender, receiver) = oneshot::channel();
    let opening = std::thread::Builder::new().name("open".into()).spawn(move || {
        let mut replay = ReplayLog::default();
        let opened = Gateway::open(settings, &mut |progress| {
            state.set_progress(progress);
            replay.log_progress(progress);
        });
        // The receiver is gone if the shutdown came first.
        let _ = sender.send(opened);
    });
    if let Err(error) = opening {
        return Err(GatewayError::new(
            ErrorClass::Internal,
            format!("starting the thread that opens the store failed: {error}"),
        ));
    }
    receiver.await.unwrap_or_else(|_| {
        Err(GatewayError::new(ErrorClass::Internal, "opening the store ended without a result"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_service::gateway;
    use penstock_store::{DiskFull, Error};
    use std::path::PathBuf;

    #[test]
    fn a_lack_of_disk_space_is_reported_with_amounts_and_without_the_path() {
        let full = DiskFull { needed: 38 << 20, free: 36 << 20 };
        let path = PathBuf::from("/var/lib/penstock/store/index");
        let error = gateway::disk_error(&full.into(), "writing a checkpoint to", &path);
        assert_eq!(error.class, ErrorClass::InsufficientStorage);
        let refused =
            GatewayError::from(Error::Io { action: "writing to", path, source: full.into() });
        for text in [describe_missing_space(&error), refused.to_string()] {
            assert!(text.contains("38.0 MiB are needed, and 36.0 MiB are free"), "{text}");
            assert!(!text.contains("/var"), "{text}");
        }
        assert!(error.detail.contains("/var/lib/penstock/store/index"), "{error}");
    }
}
