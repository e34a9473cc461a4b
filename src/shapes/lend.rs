//! Lends triples to a validation on another thread. rudof takes data only if it borrows nothing, and a transaction borrows
//! the store. So its thread answers what the validation reads, until that has ended.
use crate::data::{TriplePattern, Triples};
use oxrdf::{Term, Triple};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::memory::drop_foreign;
use penstock_store::Pattern as QuadPattern;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

/// The size of the stack of a thread that validates. rudof calls itself for each level of shapes. Only pages that are used take
/// memory.
pub const VALIDATION_STACK_BYTES: usize = 16 << 20;
/// The maximum number of triples of one answer, and the maximum length of their literals in bytes.
const MAX_TRIPLES: usize = 100_000;
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// What a validation asks for.
struct Question {
    pattern: QuadPattern,
    /// Whether one triple is enough.
    is_any: bool,
}

type Answer = Result<Vec<Triple>, GatewayError>;

/// Triples that another thread reads.
struct LentTriples {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Triples for LentTriples {
    fn for_each(
        &self,
        pattern: TriplePattern<'_>,
        visit: &mut dyn FnMut(Triple) -> ControlFlow<()>,
    ) -> Result<(), GatewayError> {
        let triples = self.ask(pattern, false)?;
        // The visitor may break at any time; the answer is complete nevertheless. It gets copies, so that the limit for
        // memory counts what it keeps.
        let _ = triples.iter().cloned().try_for_each(visit);
        drop_foreign(triples);
        Ok(())
    }

    fn any(&self, pattern: TriplePattern<'_>) -> Result<bool, GatewayError> {
        let triples = self.ask(pattern, true)?;
        let found = !triples.is_empty();
        drop_foreign(triples);
        Ok(found)
    }
}

impl LentTriples {
    fn ask(&self, pattern: TriplePattern<'_>, is_any: bool) -> Answer {
        let ended = || GatewayError::new(ErrorClass::Internal, "the thread that reads has ended");
        let question = Question { pattern: pattern.in_any_graph(), is_any };
        self.questions.send(question).map_err(|_| ended())?;
        self.answers.recv().map_err(|_| ended())?
    }
}

/// Runs `work` on a thread of its own, which reads `triples` through the calling thread. Blocking.
///
/// # Errors
/// `ErrorClass::Unavailable` if the thread cannot be started; those of `work`.
pub fn lend_triples<T: Send>(
    triples: &dyn Triples,
    work: impl FnOnce(Box<dyn Triples>) -> Result<T, GatewayError> + Send,
) -> Result<T, GatewayError> {
    let (questions, asked) = channel::<Question>();
    let (answer, answers) = channel::<Answer>();
    std::thread::scope(|scope| {
        let builder = Builder::new().name("shapes".into()).stack_size(VALIDATION_STACK_BYTES);
        let worker = builder
            .spawn_scoped(scope, move || work(Box::new(LentTriples { questions, answers })))
            .map_err(|error| {
                tracing::warn!(%error, "A thread for a validation could not be started.");
                GatewayError::new(
                    ErrorClass::Unavailable(Duration::from_secs(5)),
                    "the machine has no capacity for a validation now; try again later",
                )
            })?;
        // The worker drops its end when it has finished.
        for question in asked {
            let sent = answer.send(read_answer(triples, &question));
            if sent.is_err() {
                break;
            }
        }
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn read_answer(triples: &dyn Triples, question: &Question) -> Answer {
    let Question { pattern, is_any } = question;
    let mut found = Vec::new();
    let (mut is_full, mut bytes) = (false, 0);
    triples.for_each(pattern.into(), &mut |triple| {
        if let Term::Literal(literal) = &triple.object {
            bytes += literal.value().len();
        }
        if found.len() == MAX_TRIPLES || bytes > MAX_ANSWER_BYTES {
            is_full = true;
            return ControlFlow::Break(());
        }
        found.push(triple);
        if *is_any { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if is_full {
        return Err(GatewayError::new(
            ErrorClass::Invalid,
            format!(
                "a constraint of the shapes graph reads more than {MAX_TRIPLES} triples or {MAX_ANSWER_BYTES} bytes for one object; use a more selective path"
            ),
        ));
    }
    Ok(found)
}
