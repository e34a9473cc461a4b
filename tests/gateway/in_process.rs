//! A gateway in the process of the test, on a free port of the loopback address.
use penstock_base::error::GatewayError;
use penstock_cli::app;
use penstock_config::{Sources, load};
use penstock_service::gateway::Gateway;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running gateway, aborted when dropped.
pub(crate) struct InProcess {
    pub(crate) address: SocketAddr,
    /// The opened gateway; `None` after the stop.
    gateway: Option<Gateway>,
    dir: Option<TempDir>,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<(), GatewayError>>,
}

impl InProcess {
    /// Starts a gateway in its own folder.
    pub(crate) async fn start(arguments: &[impl AsRef<str>]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut started = Self::start_in(dir.path(), arguments).await.unwrap();
        started.dir = Some(dir);
        started
    }

    /// Starts a gateway in an existing folder, with its data in `data`.
    pub(crate) async fn start_in(
        dir: &Path,
        arguments: &[impl AsRef<str>],
    ) -> Result<Self, GatewayError> {
        let data = format!("--service.data-dir={}", dir.join("data").display());
        let mut all = vec![data, "--server.port=0".to_owned()];
        all.extend(arguments.iter().map(|argument| argument.as_ref().to_owned()));
        let loaded = load(&Sources { arguments: all, ..Sources::default() }).unwrap();
        let (ready, is_ready) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(app::serve_until(
            Arc::new(loaded.settings),
            Box::new(|| None),
            move |address, gateway| ready.send((address, gateway)).ok().unwrap(),
            async {
                let _ = stopped.await;
            },
        ));
        let Ok((address, gateway)) = is_ready.await else {
            return Err(running.await.unwrap().unwrap_err());
        };
        Ok(Self { address, gateway: Some(gateway), dir: None, stop: Some(stop), running })
    }

    /// Returns the opened gateway.
    pub(crate) fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    /// Returns the folder of a gateway that was started in its own.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    /// Stops the gateway gracefully, waits until its store is closed, and returns its own folder.
    pub(crate) async fn stop(mut self) -> Option<TempDir> {
        let lock = self.gateway().settings.data_dir.join("store/lock");
        self.gateway = None;
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.running).await.unwrap().unwrap();
        // The tasks of closed connections may keep the store open for a moment.
        let lock = std::fs::File::open(lock).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        while lock.try_lock().is_err() {
            assert!(Instant::now() < deadline, "the store is still open");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        lock.unlock().unwrap();
        self.dir.take()
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.running.abort();
    }
}
