//! What a command in a sandbox can do and cannot.
