//! What rendered files show: the state after one commit, as long as the store can keep it.
use penstock_base::error::{ErrorClass, GatewayError, describe_lost_snapshot};
use penstock_store::{Error, LostCause, ReadStore, Snapshot};

/// What the files show while they are rendered: the state after one commit. If the store cannot keep it, the rest shows
/// each object as it is when it is read.
#[derive(Debug)]
pub(super) struct ShownState<'a> {
    store: &'a ReadStore,
    /// The state after one commit, until it is lost.
    pub(super) snapshot: Option<Snapshot>,
    /// The instance of the store's index.
    instance: u64,
    /// The sequence of the commit that the first object shows.
    commit: u64,
    /// Whether rendering started over with a second snapshot.
    is_restarted: bool,
    /// The warning that the files mix commits, if they do.
    pub(super) mixed_warning: Option<String>,
}

/// What rendered files show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RenderedState {
    /// The instance of the store's index that they were rendered from.
    pub(crate) instance: u64,
    /// The sequence of a commit of which they have every change.
    pub(crate) commit: u64,
    /// Whether they may have changes of later commits too.
    pub(crate) is_mixed: bool,
}

impl<'a> ShownState<'a> {
    /// Begins with the state after the newest commit.
    pub(super) fn open(store: &'a ReadStore) -> Result<Self, Error> {
        let snapshot = store.snapshot()?;
        Ok(Self {
            store,
            instance: snapshot.instance(),
            commit: snapshot.sequence(),
            snapshot: Some(snapshot),
            is_restarted: false,
            mixed_warning: None,
        })
    }

    /// Returns the result of reading a page. Returns `None` if the state of one commit was lost meanwhile: the rest is to
    /// be read again, after the URI `after`, which is the last one that was rendered.
    pub(super) fn recover<T>(
        &mut self,
        page: Result<T, GatewayError>,
        after: Option<&str>,
    ) -> Result<Option<T>, GatewayError> {
        let cause = self.snapshot.as_ref().and_then(Snapshot::lost_cause);
        match (page, cause) {
            (Err(error), Some(cause)) if matches!(error.class, ErrorClass::Unavailable(_)) => {
                self.replace_lost(cause, after)?;
                Ok(None)
            }
            (page, _) => page.map(Some),
        }
    }

    /// Starts over with a new snapshot, once, if nothing was rendered yet. Otherwise the rest is read without one.
    fn replace_lost(&mut self, cause: LostCause, after: Option<&str>) -> Result<(), Error> {
        self.snapshot = None;
        if after.is_none() && !self.is_restarted {
            let restarted = Self::open(self.store)?;
            if restarted.instance != self.instance {
                return Err(Error::Reopening);
            }
            *self = Self { is_restarted: true, ..restarted };
            return Ok(());
        }
        let shows = match after {
            None => "each object is as it was when it was read".to_owned(),
            Some(uri) => {
                let commit = self.commit;
                format!(
                    "objects up to {uri} are as they were after commit {commit}, later ones are newer"
                )
            }
        };
        let why = describe_lost_snapshot(cause);
        self.mixed_warning =
            Some(format!("The export may mix several commits: {shows}, because {why}."));
        Ok(())
    }

    pub(super) fn to_rendered(&self) -> RenderedState {
        let Self { instance, commit, .. } = *self;
        RenderedState { instance, commit, is_mixed: self.mixed_warning.is_some() }
    }
}
