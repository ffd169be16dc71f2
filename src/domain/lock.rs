//! Locks. What a panicking task held is complete between two statements, so that a lock stays usable.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, whether or not a thread panicked while it had it.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
