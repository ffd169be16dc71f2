//! The project of the demo, in the shell that the system has.

/// A program with a mistake, its test, and what the scripted model does about it.
pub(super) struct Project {
    pub code_name: &'static str,
    pub code: String,
    pub test_name: &'static str,
    pub test: String,
    pub script: &'static str,
    /// What the person has typed and not saved.
    pub typed: String,
    /// What runs the test.
    pub run: &'static [&'static str],
}

#[cfg(unix)]
pub(super) fn project() -> Project {
    Project {
        code_name: "total.sh",
        code: include_str!("unix/total.sh").to_owned(),
        test_name: "test.sh",
        test: include_str!("unix/test.sh").to_owned(),
        script: include_str!("unix/script.json"),
        typed: "# (typed a moment ago, not saved yet)\n".to_owned(),
        run: &["sh", "test.sh"],
    }
}

#[cfg(windows)]
pub(super) fn project() -> Project {
    // Batch files have the line ends of Windows: with others, `cmd` does not find its labels.
    let lines = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    Project {
        code_name: "total.cmd",
        code: lines(include_str!("windows/total.cmd")),
        test_name: "test.cmd",
        test: lines(include_str!("windows/test.cmd")),
        script: include_str!("windows/script.json"),
        typed: "@rem (typed a moment ago, not saved yet)\r\n".to_owned(),
        run: &["cmd", "/d", "/c", "test.cmd"],
    }
}
