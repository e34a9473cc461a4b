//! Starts work on a thread that may block.
use std::any::Any;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::{JoinError, JoinHandle};

type Output = Box<dyn Any + Send>;

/// Work that [`spawn_blocking`] has started. Its output is what the work returns. If it is dropped, the work goes on.
#[derive(Debug)]
pub struct BlockingTask<T> {
    task: JoinHandle<Output>,
    returns: PhantomData<fn() -> T>,
}

/// Starts work on a thread that may block, as [`tokio::task::spawn_blocking`] does. All work has one type there, because the
/// code of a task is compiled once for each type.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> BlockingTask<T> {
    let work = Box::new(move || Box::new(work()) as Output);
    BlockingTask { task: spawn_erased(work), returns: PhantomData }
}

fn spawn_erased(work: Box<dyn FnOnce() -> Output + Send>) -> JoinHandle<Output> {
    tokio::task::spawn_blocking(work)
}

impl<T: 'static> Future for BlockingTask<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map(|ended| {
            let output = ended?.downcast().unwrap_or_else(|_| unreachable!("the work returned T"));
            Ok(*output)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_returns_its_own_type_and_a_panic_is_an_error() {
        let (number, text) = (spawn_blocking(|| 7_u8), spawn_blocking(|| "seven".to_owned()));
        assert_eq!(number.await.unwrap(), 7);
        assert_eq!(text.await.unwrap(), "seven");
        assert!(spawn_blocking(|| -> () { panic!("broken") }).await.unwrap_err().is_panic());
    }
}
