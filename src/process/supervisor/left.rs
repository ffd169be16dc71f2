//! What a command leaves behind where orphans do not become children of the supervisor, as on macOS: read from the table that
//! `ps` prints, environments included.
//!
//! A daemon that left group and session still carries the mark in its environment. macOS shows no environment of its own
//! programs (`/bin/sleep`), so such a daemon of Apple's is not found.

use std::collections::HashSet;

/// The variable with the mark. Each supervisor adds one, so that those of the supervisors around it stay.
pub(super) const VARIABLE: &str = "TANDEM_COMMAND";

/// The mark of the supervisor with this number.
pub(super) fn mark(supervisor: i32) -> String {
    format!("/{supervisor}/")
}

/// The processes that run and are the command's: in its group, below the supervisor, or marked. A line has number, parent,
/// group, state, arguments and environment.
pub(super) fn left(table: &str, group: i32, supervisor: i32) -> Vec<i32> {
    let rows: Vec<Row<'_>> = table
        .lines()
        .filter_map(Row::read)
        .filter(|row| !row.state.starts_with('Z'))
        .collect();
    let (mark, mut found) = (mark(supervisor), HashSet::new());
    loop {
        let before = found.len();
        for row in &rows {
            let is_below = row.parent == supervisor || found.contains(&row.parent);
            if is_below || row.group == group || row.is_marked(&mark) {
                found.insert(row.pid);
            }
        }
        if found.len() == before {
            found.remove(&supervisor);
            return found.into_iter().collect();
        }
    }
}

struct Row<'a> {
    pid: i32,
    parent: i32,
    group: i32,
    state: &'a str,
    /// The arguments and the environment.
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut number = || words.next()?.parse().ok();
        let (pid, parent, group) = (number()?, number()?, number()?);
        Some(Self {
            pid,
            parent,
            group,
            state: words.next()?,
            words,
        })
    }

    fn is_marked(&self, mark: &str) -> bool {
        let marks = |word: &'a str| word.strip_prefix(VARIABLE)?.strip_prefix('=');
        self.words
            .clone()
            .filter_map(marks)
            .any(|marks| marks.contains(mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_that_left_their_session_are_found_by_their_mark() {
        let table = "\
            1     0     1 Ss   /sbin/launchd\n\
            500   1   500 S    /usr/local/bin/tandem lsp\n\
            600   500 600 Ss   /usr/local/bin/tandem sandbox-exec -- sh -c x\n\
            601   600 601 S    sh -c x TANDEM_COMMAND=/600/ HOME=/Users/me\n\
            602   601 601 S    node watch.js HOME=/Users/me\n\
            603   1   601 S    left its parent HOME=/Users/me\n\
            604   1   604 Ss   java -jar gradle.jar TANDEM_COMMAND=/600/ HOME=/Users/me\n\
            605   604 605 Ss   java worker HOME=/Users/me\n\
            606   600 606 S    left its group\n\
            607   1   607 Ss   one below another supervisor TANDEM_COMMAND=/600//700/\n\
            608   601 601 Z    (sh)\n\
            700   1   700 Ss   of another command TANDEM_COMMAND=/6001/\n\
            701   1   701 Ss   of another command TANDEM_COMMAND=/60/ X=/600/\n\
            a line that is none\n";
        let mut found = left(table, 601, 600);
        found.sort_unstable();
        assert_eq!(found, [601, 602, 603, 604, 605, 606, 607]);
        assert_eq!(left("", 601, 600), [0; 0]);
    }
}
