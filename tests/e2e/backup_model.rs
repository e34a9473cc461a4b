//! A model of the continuous backup: random commits, faults of the bucket, kills of the gateway, also in the middle of an
//! upload, lost machines, new eras and deletion of what is old. After each step, a restore has the state after one of the
//! commits, which is not older than the head says.
//!
//! `PENSTOCK_TEST_BACKUP_CASES=50` makes it longer. A failure names the smallest operations that were found, and has the end
//! of the gateway's log.
use penstock_test_support::backup::{
    Place, Site, define_wells, head_key, until_backup, until_shipped, wells,
};
use penstock_test_support::bucket::{BucketFault, MemoryBucket};
use penstock_test_support::prelude::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{MutexGuard, PoisonError};

const SEGMENT: &str = ".segment";
const BASE: &str = ".base";
const HEAD: &str = "head.json";
const ERA: &str = "era.json";

#[derive(Debug, Clone)]
enum Operation {
    /// Stores some wells in one commit.
    Commit { wells: u64 },
    /// The next requests with this method for such a key fail in this way.
    Fault { fault: BucketFault, method: &'static str, words: &'static str, count: u8 },
    /// The gateway is killed before or after the bucket stores such an object.
    KillAtUpload { words: &'static str, after: bool },
    /// The gateway is killed and started.
    Kill,
    /// The gateway is stopped and started.
    Restart,
    /// All faults end, and the bucket gets everything.
    Settle,
    /// The gateway begins a new era, with a new base.
    NewEra,
    /// The machine is lost, and another one continues. The first upload of its takeover may fail.
    Lose { fault: BucketFault, words: &'static str },
    /// Days pass for the bucket, and the gateway is started again: it deletes what is old.
    PassDays { days: i64 },
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use BucketFault::{Busy, Cut, Deny, LoseAnswer, None, ReturnOld};
    let fails = prop::sample::select(vec![
        (Cut, "PUT", SEGMENT),
        (LoseAnswer, "PUT", SEGMENT),
        (Busy, "PUT", SEGMENT),
        (Cut, "PUT", HEAD),
        (LoseAnswer, "PUT", HEAD),
        (Busy, "PUT", HEAD),
        (Cut, "PUT", BASE),
        (LoseAnswer, "PUT", BASE),
        (LoseAnswer, "PUT", ERA),
        (ReturnOld, "GET", HEAD),
        (Cut, "GET", ""),
        (Cut, "HEAD", ""),
        (Deny, "DELETE", ""),
    ]);
    let uploaded = prop::sample::select(vec![SEGMENT, HEAD, BASE, ERA]);
    let takeover =
        prop::sample::select(vec![(None, ""), (Cut, ERA), (Cut, HEAD), (LoseAnswer, HEAD)]);
    let operation = prop_oneof![
        5 => prop_oneof![1..4_u64, 100..300_u64].prop_map(|wells| Operation::Commit { wells }),
        4 => (fails, 1..3_u8).prop_map(|((fault, method, words), count)| Operation::Fault {
            fault, method, words, count
        }),
        3 => (uploaded, any::<bool>())
            .prop_map(|(words, after)| Operation::KillAtUpload { words, after }),
        1 => Just(Operation::Kill),
        1 => Just(Operation::Restart),
        2 => Just(Operation::Settle),
        1 => Just(Operation::NewEra),
        2 => takeover.prop_map(|(fault, words)| Operation::Lose { fault, words }),
        1 => (1..4_i64).prop_map(|days| Operation::PassDays { days }),
    ];
    prop::collection::vec(operation, 4..12)
}

/// What the bucket does with the next requests.
#[derive(Default)]
struct Script {
    /// The faults, each with the method, a part of the key, and for how many requests.
    faults: Vec<(BucketFault, &'static str, &'static str, u8)>,
    /// The process to kill at an upload: a part of the key, and whether it is stored before.
    kill: Option<(u32, &'static str, bool)>,
    /// Whether a reader of the test uses the bucket, which has no faults for it.
    is_paused: bool,
}

impl Script {
    fn choose(&mut self, method: &str, key: &str) -> BucketFault {
        if self.is_paused {
            return BucketFault::None;
        }
        if let Some((process, words, after)) = self.kill
            && method == "PUT"
            && key.contains(words)
        {
            self.kill = None;
            signal(process, "KILL");
            return if after { BucketFault::LoseAnswer } else { BucketFault::Cut };
        }
        let fits = |(_, wanted, words, count): &&mut (BucketFault, &str, &str, u8)| {
            *count > 0 && *wanted == method && key.contains(*words)
        };
        match self.faults.iter_mut().find(fits) {
            Some((fault, _, _, count)) => {
                *count -= 1;
                *fault
            }
            None => BucketFault::None,
        }
    }
}

struct Model {
    site: Site,
    bucket: MemoryBucket,
    script: Arc<Mutex<Script>>,
    server: Option<TestProcess>,
    machine: String,
    machines: usize,
    /// The levels that are stored after each commit, and a sequence of the journal that is not below the commit's. The
    /// sequence is the highest possible while it is not known.
    history: Vec<(u64, BTreeSet<u64>)>,
    /// The sequence that the head covered when it was last read.
    counted: u64,
    next_level: u64,
    /// The level of each URI that the gateway or an earlier machine acknowledged.
    minted: BTreeMap<String, u64>,
}

impl Model {
    fn new() -> Self {
        let bucket = MemoryBucket::start();
        let (server, name) = (bucket.server.clone(), MemoryBucket::NAME.to_owned());
        let mut site = Site::new(Place::Bucket { server, name });
        site.more.push("--service.backup.keep=1d".to_owned());
        let script: Arc<Mutex<Script>> = Arc::default();
        let chosen = Arc::clone(&script);
        bucket.choose(move |method, key| lock(&chosen).choose(method, key));
        let server = site.start("machine-0");
        define_wells(server.client);
        // A state without the definition has no wells to compare.
        until_shipped(server.client);
        let (server, machine) = (Some(server), "machine-0".to_owned());
        let history = vec![(0, BTreeSet::new())];
        Self {
            site,
            bucket,
            script,
            server,
            machine,
            machines: 1,
            history,
            counted: 0,
            next_level: 0,
            minted: BTreeMap::new(),
        }
    }

    /// Runs the operations, and then lets the bucket get everything.
    fn run_all(&mut self, operations: &[Operation]) {
        for operation in operations {
            self.run(operation);
            self.check();
        }
        self.run(&Operation::Settle);
        self.check();
        assert_eq!(self.find_restored(), self.history.len() - 1);
    }

    fn run(&mut self, operation: &Operation) {
        match operation {
            Operation::Commit { wells } => self.commit(*wells),
            Operation::Fault { fault, method, words, count } => {
                self.script().faults.push((*fault, *method, *words, *count));
            }
            Operation::KillAtUpload { words, after } => self.kill_at_upload(words, *after),
            Operation::Kill => self.restart(false),
            Operation::Restart => self.restart(true),
            Operation::Settle => {
                self.script().faults.clear();
                until_shipped(self.client());
            }
            Operation::NewEra => self.take_over(),
            Operation::Lose { fault, words } => self.lose(*fault, words),
            Operation::PassDays { days } => {
                self.bucket.pass_time(jiff::SignedDuration::from_hours(24 * days));
                self.restart(true);
            }
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    fn client(&self) -> Client {
        self.server.as_ref().unwrap().client
    }

    /// Stores wells in one commit. The gateway may be killed meanwhile.
    fn commit(&mut self, wells: u64) {
        let levels: Vec<u64> = (self.next_level..self.next_level + wells).collect();
        self.next_level += wells;
        let mut state = self.history.last().unwrap().1.clone();
        state.extend(&levels);
        let data: Vec<Value> = levels.iter().map(|level| json!({ "level": level })).collect();
        let body = json!({ "data": data }).to_string();
        let path = "/api/v1/business-objects/Wells?mode=ADD";
        self.history.push((u64::MAX, state));
        let Ok(answer) = self.client().try_post(path, body) else { return };
        let answer = answer.expect(200).json();
        for (object, level) in answer["objects"].list().iter().zip(levels) {
            let before = self.minted.insert(object["uri"].string(), level);
            assert_eq!(before, None, "{} was used twice", object["uri"]);
        }
        if let Ok(status) = self.client().send("GET", "/api/v1/status", &[], "") {
            let sequence = status.expect(200).json()["store"]["sequence"].as_u64();
            self.history.last_mut().unwrap().0 = sequence.unwrap();
        }
    }

    /// Ends the gateway, and starts it again with the same data.
    fn restart(&mut self, is_stopped: bool) {
        let mut server = self.server.take().unwrap();
        if is_stopped {
            signal(server.id(), "TERM");
            // Not within the time of other tests: deliveries that fail use all of it, and the disk may be busy.
            wait_for("the gateway has stopped", || server.has_ended());
        }
        let log = server.kill();
        assert!(!is_stopped || log.contains("The gateway stopped."), "it did not stop in order");
        self.start();
    }

    /// Starts the gateway, and compares what it has with the history.
    fn start(&mut self) {
        let server = self.site.start(&self.machine);
        let found: BTreeSet<u64> =
            wells(server.client).values().map(|level| level.as_u64().unwrap()).collect();
        let sequence = server.client.read("/api/v1/status")["store"]["sequence"].as_u64().unwrap();
        let kept = &self.history.last().unwrap().1;
        let mut acknowledged = self.minted.values().filter(|level| kept.contains(level));
        assert!(acknowledged.all(|level| found.contains(level)), "a commit is lost");
        // The last commit may not have been acknowledged.
        if self.history.last().unwrap().1 != found {
            self.history.pop();
        }
        let last = self.history.last_mut().unwrap();
        assert_eq!(last.1, found);
        last.0 = last.0.min(sequence);
        self.server = Some(server);
    }

    /// Begins a new era.
    fn take_over(&self) {
        self.site.command(&self.machine, &["offsite-backup", "take-over"]).succeed();
    }

    /// Kills the gateway at an upload, and starts it again.
    fn kill_at_upload(&mut self, words: &'static str, after: bool) {
        self.script().faults.clear();
        until_backup(self.client(), "the backup runs", |backup| backup["state"] == "running");
        let process = self.server.as_ref().unwrap().id();
        self.script().kill = Some((process, words, after));
        if [BASE, ERA].contains(&words) {
            // Its answer may be lost with the gateway.
            let take_over = ["offsite-backup", "take-over"];
            self.site.command(&self.machine, &take_over).output().unwrap();
        } else {
            self.commit(1);
        }
        wait_for("the gateway is killed", || self.script().kill.is_none());
        self.server.take().unwrap().kill();
        self.start();
    }

    /// Loses the machine, and continues with another one.
    fn lose(&mut self, fault: BucketFault, words: &'static str) {
        self.server.take().unwrap().kill();
        *self.script() = Script { is_paused: true, ..Script::default() };
        // What the machine has sent can arrive after its end, but not between the two restores.
        self.bucket.wait_until_idle();
        if self.counted_sequence().is_none() {
            // Nothing can be restored yet.
            *self.script() = Script::default();
            return self.start();
        }
        let kept = self.find_restored();
        self.history.truncate(kept + 1);
        let lost = mem::replace(&mut self.machine, format!("machine-{}", self.machines));
        self.machines += 1;
        self.site.lose(&lost);
        *self.script() = Script { faults: vec![(fault, "PUT", words, 1)], ..Script::default() };
        let restored = self.site.restore(&self.machine, &[]);
        *self.script() = Script::default();
        if !restored.status.success() {
            assert!(fault != BucketFault::None, "{}", restored.err());
            // The same command again, with the data directory as the first one left it.
            self.site.restore(&self.machine, &[]).success();
        }
        self.start();
    }

    /// Returns the sequence up to which the head says that a restore has everything; `None` before the first base.
    fn counted_sequence(&self) -> Option<u64> {
        if !self.site.place.keys().contains(&head_key()) {
            return None;
        }
        let head = self.site.place.head();
        let counted = if head["base"].is_object() { &head } else { &head["previous"] };
        counted["last"]["sequence"].as_u64()
    }

    /// Restores a copy, and returns the number of the commit after which it is the state.
    fn find_restored(&mut self) -> usize {
        let counted = self.counted_sequence().unwrap();
        assert!(counted >= self.counted, "the head went from {} back to {counted}", self.counted);
        self.counted = counted;
        self.site.restore("copy", &["--copy"]).success();
        let (stored, _) = quads(&self.site.data("copy"));
        self.site.lose("copy");
        let levels: BTreeSet<u64> = stored
            .iter()
            .filter_map(|quad| {
                let (_, rest) = quad.split_once("<https://wells.example/level> \"")?;
                rest.split_once('"')?.0.parse().ok()
            })
            .collect();
        let found = self.history.iter().position(|(_, state)| *state == levels);
        let found = found.unwrap_or_else(|| panic!("no commit led to {levels:?}"));
        let least = self.history.iter().rposition(|(sequence, _)| *sequence <= counted);
        assert!(Some(found) >= least, "commit {found} is older than {least:?} of the head");
        found
    }

    /// Restores a copy while the gateway runs.
    fn check(&mut self) {
        self.script().is_paused = true;
        if self.counted_sequence().is_some() {
            self.find_restored();
        }
        self.script().is_paused = false;
    }
}

/// The lines of the gateway's log that a failure shows.
const LOG_LINES: usize = 40;

impl Model {
    /// Returns why an operation failed, and the end of the gateway's log.
    fn describe_failure(&self, panic: &(dyn Any + Send)) -> String {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
        let log = self.server.as_ref().map(TestProcess::log).unwrap_or_default();
        let before = log.lines().count().saturating_sub(LOG_LINES);
        let end: Vec<&str> = log.lines().skip(before).collect();
        format!("{text}\nThe end of the gateway's log:\n{}\n", end.join("\n"))
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_restore_is_the_state_after_a_commit_and_not_older_than_the_head_says() {
    let cases = std::env::var("PENSTOCK_TEST_BACKUP_CASES").ok();
    let cases = cases.map_or(2, |text| text.parse().unwrap());
    let config =
        Config { cases, max_shrink_iters: 20, failure_persistence: None, ..Config::default() };
    let run = |operations: Vec<Operation>| {
        let mut model = Model::new();
        let ran = catch_unwind(AssertUnwindSafe(|| model.run_all(&operations)));
        // Dropped after the panic, the gateway does not print its log for each list of operations.
        ran.map_err(|panic| TestCaseError::fail(model.describe_failure(&*panic)))
    };
    if let Err(failed) = TestRunner::new(config).run(&operations(), run) {
        panic!("{failed}");
    }
}
