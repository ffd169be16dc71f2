//! Test data beside the repository, which adds to what the repository's own tests say. Without it they are counted as skipped.
#![expect(clippy::disallowed_methods, reason = "the tests' own data")]

use std::io::Write as _;
use std::path::PathBuf;

/// A file or folder of `../shared`, or of the folder `TANDEM_SHARED` names. If it is missing, prints that, bypassing the
/// test harness, in the form that `tests/run` counts.
///
/// # Panics
///
/// Panics if `TANDEM_SHARED` names a folder that lacks it.
pub fn shared(name: &str) -> Option<PathBuf> {
    let named = std::env::var("TANDEM_SHARED").ok();
    let is_expected = named.is_some();
    let folder =
        named.unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared").to_owned());
    let path = PathBuf::from(folder).join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(!is_expected, "TANDEM_SHARED has no {name}");
    let line = format!("skipped shared data: {} does not exist\n", path.display());
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error can be written");
    None
}
