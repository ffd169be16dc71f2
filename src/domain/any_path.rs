//! Paths as JSON, whatever their bytes: a string if they are UTF-8, otherwise a list of bytes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that is stored so.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnyPath(#[serde(with = "self")] pub PathBuf);

#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(PathBuf),
    Bytes(Vec<u8>),
}

/// For `#[serde(with)]`.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_encoded_bytes().serialize(serializer),
    }
}

/// For `#[serde(with)]`.
///
/// # Errors
/// It is neither, or not a path of this system.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    match Stored::deserialize(deserializer)? {
        Stored::Text(path) => Ok(path),
        Stored::Bytes(bytes) => {
            of_bytes(bytes).ok_or_else(|| serde::de::Error::custom("not a path on this system"))
        }
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "not every system takes any bytes")]
fn of_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(not(unix))]
fn of_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    Some(String::from_utf8(bytes).ok()?.into())
}
