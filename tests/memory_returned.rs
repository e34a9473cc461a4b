//! Memory of a peak is returned to the kernel, even if a small allocation that was made last remains. The test has a
//! process of its own, so that no other code allocates.
use penstock_base::memory::unreclaimable_bytes;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// The number of threads, as many as serve requests at once.
const THREADS: u64 = 16;
/// The number of blocks that each thread allocates; they are as small as those of a request.
const BLOCKS: u64 = 4096;
const BLOCK: u64 = 1024;
/// The maximum bytes in use after the peak, beyond those before it.
const REST: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn memory_of_many_threads_is_returned_when_they_are_idle() {
    let before = unreclaimable_bytes().unwrap();
    let barrier = Arc::new(Barrier::new(usize::try_from(THREADS).unwrap() + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                let block = |number: u64| vec![u8::try_from(number % 256).unwrap(); 1024];
                let mut blocks: Vec<_> = (0..BLOCKS).map(block).collect();
                barrier.wait();
                barrier.wait();
                let last = blocks.pop();
                drop(blocks);
                barrier.wait();
                // Threads that serve requests remain, and so does an allocation of the last request.
                barrier.wait();
                drop(last);
            })
        })
        .collect();
    barrier.wait();
    let peak = unreclaimable_bytes().unwrap();
    assert!(peak >= before + THREADS * BLOCKS * BLOCK, "{peak} after {before}");
    barrier.wait();
    barrier.wait();
    let begun = Instant::now();
    while unreclaimable_bytes().unwrap() > before + REST {
        let now = unreclaimable_bytes().unwrap();
        assert!(
            begun.elapsed() < PATIENCE,
            "{now} bytes are in use, {before} were before, {peak} at the peak"
        );
        thread::sleep(Duration::from_millis(50));
    }
    barrier.wait();
    for thread in threads {
        thread.join().unwrap();
    }
}
