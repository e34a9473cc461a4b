//! A gateway for tests.
use crate::gateway::Gateway;
use penstock_base::error::ErrorClass;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Opens a gateway with this data directory and more settings.
pub(crate) fn open_gateway(data_dir: &Path, settings: &[String]) -> Gateway {
    let mut arguments = vec![format!("--service.data-dir={}", data_dir.display())];
    arguments.extend_from_slice(settings);
    let sources = penstock_config::Sources { arguments, ..Default::default() };
    let settings = Arc::new(penstock_config::load(&sources).unwrap().settings);
    // A thread of a gateway that was just dropped may hold its store for a moment.
    for _ in 0..500 {
        match Gateway::open(settings.clone(), &mut |_| {}) {
            Err(error) if error.class == ErrorClass::Conflict => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("another gateway holds the store");
}
