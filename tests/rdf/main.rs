//! A dump of the graph in any format loads as the same graph, term by term.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod documents;
mod snapshots;
mod terms;

use oxrdf::{GraphName, Quad};
use penstock_base::commit::NoClient;
use penstock_base::disk::Disk;
use penstock_model::change_feed::Watch;
use penstock_model::rdf::{
    DumpOptions, Format, LoadError, LoadOptions, LoadProgress, LoadTarget, load_document,
    write_dump,
};
use penstock_model::testing::open_store;
use penstock_store::{Pattern, Read, Store};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use tempfile::TempDir;

/// A store in a temporary directory.
struct Fixture {
    store: Store,
    dir: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let (dir, store) = open_store();
        Self { store, dir }
    }

    fn of(quads: &[Quad]) -> Self {
        let fixture = Self::new();
        let put = fixture.store.transact(|transaction| {
            for quad in quads {
                transaction.insert(quad.as_ref())?;
            }
            Ok::<_, penstock_store::Error>(())
        });
        put.unwrap();
        fixture
    }

    fn quads(&self) -> BTreeSet<String> {
        let mut quads = BTreeSet::new();
        let mut visit = |quad: Quad| {
            assert!(quads.insert(quad.to_string()));
            ControlFlow::Continue(())
        };
        self.store.read().for_each(&Pattern::default(), &mut visit).unwrap();
        quads
    }

    fn dump(&self, format: Format, graph: Option<GraphName>) -> Vec<u8> {
        let mut out = Vec::new();
        write_dump(&self.store, &DumpOptions { format, graph }, &mut out, &mut |_| {}).unwrap();
        out
    }

    fn load(&self, options: &LoadOptions, text: &[u8]) -> Result<LoadProgress, LoadError> {
        self.load_with(0, options, text)
    }

    /// Loads with this disk reserve, in bytes.
    fn load_with(
        &self,
        reserve: u64,
        options: &LoadOptions,
        text: &[u8],
    ) -> Result<LoadProgress, LoadError> {
        let disk = Disk::new(self.dir.path().to_owned(), reserve);
        let target = LoadTarget {
            store: &self.store.clone().into(),
            check: &NoClient,
            disk: &disk,
            watch: &Watch::default(),
            check_time: std::time::Duration::from_mins(1),
        };
        load_document(&target, options, text, &mut |_| Ok(()))
    }
}

fn options(format: Format) -> LoadOptions {
    LoadOptions {
        format,
        graph: GraphName::DefaultGraph,
        base: None,
        skolemize: None,
        bypass: false,
    }
}
