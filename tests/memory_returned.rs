//! What a peak took goes back to the kernel, also where something small that came last stays. It has a process of its
//! own, so that nothing else allocates.
use penstock_base::memory::held;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

/// As many threads as serve requests at once.
const THREADS: u64 = 16;
/// What one of them takes at once, in blocks as small as those of a request.
const BLOCKS: u64 = 4096;
const BLOCK: u64 = 1024;
/// What may be held beyond what was before the peak.
const REST: u64 = 16 << 20;
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn what_many_threads_took_at_once_is_returned_when_they_are_idle() {
    let before = held().unwrap();
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
                // Threads that serve requests stay, and so does what the last request left.
                barrier.wait();
                drop(last);
            })
        })
        .collect();
    barrier.wait();
    let peak = held().unwrap();
    assert!(peak >= before + THREADS * BLOCKS * BLOCK, "{peak} after {before}");
    barrier.wait();
    barrier.wait();
    let begun = Instant::now();
    while held().unwrap() > before + REST {
        let now = held().unwrap();
        assert!(
            begun.elapsed() < PATIENCE,
            "{now} bytes are held, {before} were before, {peak} at the peak"
        );
        thread::sleep(Duration::from_millis(50));
    }
    barrier.wait();
    for thread in threads {
        thread.join().unwrap();
    }
}
