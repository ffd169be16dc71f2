//! Work shared by several threads, in which an item may produce more items.
//!
//! The last item is taken first, so that a tree is walked depth first and the queue stays small. Work ends when nothing
//! is queued and no thread is busy, also when a thread panics.

use crate::domain::lock;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// More threads would only wait for the disk.
const THREADS: usize = 8;

pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    busy: usize,
}

impl<T> Queue<T> {
    pub fn new(waiting: Vec<T>) -> Self {
        Self {
            state: Mutex::new(State { waiting, busy: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Takes items until there are none left. `work` returns the items one produced.
    fn work(&self, mut work: impl FnMut(T) -> Vec<T>) {
        while let Some(piece) = self.take() {
            let mut busy = Busy {
                queue: self,
                brought: Vec::new(),
            };
            busy.brought = work(piece);
        }
    }

    /// [`Self::work`] on as many threads as the machine can use.
    pub fn share(&self, work: impl Fn(T) -> Vec<T> + Sync)
    where
        T: Send,
    {
        self.share_among(|| &work);
    }

    /// [`Self::share`] among workers, one per thread.
    pub fn share_among<W: FnMut(T) -> Vec<T>>(&self, worker: impl Fn() -> W + Sync)
    where
        T: Send,
    {
        let threads = std::thread::available_parallelism()
            .map_or(1, std::num::NonZero::get)
            .min(THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work(worker()));
            }
            self.work(worker());
        });
    }

    /// [`Self::share`] for work that can fail. After that no other item is worked on.
    ///
    /// # Errors
    /// The first failure.
    pub fn try_share(&self, work: impl Fn(T) -> io::Result<Vec<T>> + Sync) -> io::Result<()>
    where
        T: Send,
    {
        let failed = Mutex::new(None);
        self.share(|item| {
            if lock(&failed).is_some() {
                return Vec::new();
            }
            work(item).unwrap_or_else(|error| {
                lock(&failed).get_or_insert(error);
                Vec::new()
            })
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }

    fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(piece) = state.waiting.pop() {
                state.busy += 1;
                return Some(piece);
            }
            if state.busy == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}

/// A thread working on an item; dropped when it is done or has panicked.
struct Busy<'a, T> {
    queue: &'a Queue<T>,
    brought: Vec<T>,
}

impl<T> Drop for Busy<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.busy -= 1;
        state.waiting.append(&mut self.brought);
        self.queue.changed.notify_all();
    }
}
