//! The turns of pushes. A push renders on a thread of its own, of which there are few: those that wait do so
//! without one, each Business Object's in the order they came, and go when nobody waits for the answer.
use super::{Exporter, render};
use penstock_base::fault::{Fault, Kind};
use penstock_model::resource::Compiled;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pushes that are made at once, each of another Business Object.
const AT_ONCE: usize = 3;
/// Pushes that are made or wait.
const PLACES: usize = 64;
/// When one for which there was no place may come again.
const LATER: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Pushes {
    places: Arc<Semaphore>,
    at_once: Arc<Semaphore>,
    /// By the Business Object's id.
    of_one: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Default for Pushes {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(PLACES)),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            of_one: Mutex::default(),
        }
    }
}

/// Leave to push, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    _held: [OwnedSemaphorePermit; 3],
}

impl Pushes {
    fn of_one(&self, id: &str) -> Arc<Semaphore> {
        let mut of_one = self.of_one.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(of_one.entry(id.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }

    /// `None` when there is no place to wait at.
    async fn take(&self, id: &str) -> Option<Turn> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let of_one = self.of_one(id).acquire_owned().await.ok()?;
        let at_once = Arc::clone(&self.at_once).acquire_owned().await.ok()?;
        Some(Turn { _held: [place, of_one, at_once] })
    }
}

impl Exporter {
    /// Waits until this Business Object may be pushed ([`Self::push`]); hold the turn until that is done.
    ///
    /// # Errors
    /// `Kind::Unavailable` when too many wait, or the gateway stops.
    pub async fn turn(&self, business_object: &Compiled) -> Result<Turn, Fault> {
        let inner = &*self.inner;
        let turn = inner.pushes.take(&business_object.object.id).await;
        render::go_on(&inner.stopping)?;
        turn.ok_or_else(|| {
            Fault::new(
                Kind::Unavailable(LATER),
                format!(
                    "{PLACES} pushes wait already, so none was made of `{}`; try again in {} s, and wait for \
                     an answer before the next push",
                    business_object.object.definition.name,
                    LATER.as_secs()
                ),
            )
        })
    }

    /// Leaves off what is being rendered, and lets nothing more be: the gateway stops.
    pub fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }
}
