//! Which of our tools a name means: its spelling, and the words it is made of. Pure.
//!
//! A model trained with another agent's tools uses their names. Permission, order and display are decided on the
//! resolved tool, so that understanding a name never allows more than the tool itself.

/// Our tools, the words that name each of them in other agents' tools (Claude Code, Codex, Gemini, Cursor, Copilot,
/// Cline, Roo, Windsurf, `OpenHands`, Goose), and the words that may stand beside one of those. Of two rows that match
/// the upper one does.
const TOOLS: &[(&str, &str, &str)] = &[
    ("apply_patch", "patch applydiff", "apply code file"),
    (
        "edit_file",
        "edit editor replace insert modify update",
        "file files existing text string str code content in and search multi multiple find based apply",
    ),
    (
        "write_file",
        "write create save overwrite newfile",
        "file files new text content to in document or",
    ),
    (
        "update_plan",
        "plan todo todos todolist tasktracker",
        "update write set manage list make create",
    ),
    (
        "ask_user",
        "ask question questions userinput",
        "user human followup clarifying request",
    ),
    ("skill", "skill", "load use invoke activate get"),
    (
        "diagnostics",
        "diagnostics diagnostic errors lints lint problems",
        "get read lsp file check linter",
    ),
    (
        "run_command",
        "bash shell sh cmd command commands exec execute terminal console powershell process",
        "run local line call launch start in and wait script system cli invoke",
    ),
    (
        "glob",
        "glob find filesearch byname",
        "file files path search name pattern matching",
    ),
    (
        "grep",
        "grep ripgrep rg search",
        "code codebase semantic regex file files text content contents in for by pattern project repo",
    ),
    (
        "list_files",
        "list ls dir dirs directory directories folder folders tree",
        "read view show explore file files contents in get structure",
    ),
    (
        "read_file",
        "read reader view open cat getfile showfile loadfile fetchfile",
        "file files text image content contents multiple many get lines document source",
    ),
];

/// Namespaces and prefixes of names, which tell whose tools they are.
const OWNERS: &[&str] = &[
    "tools",
    "tool",
    "functions",
    "function",
    "fs",
    "developer",
    "builtin",
    "filesystem",
    "copilot",
    "tandem",
];

/// The one of `ours` that an unknown `name` means.
pub(crate) fn resolve<'a>(name: &str, ours: &[&'a str]) -> Option<&'a str> {
    let name = bare(name);
    // The server does not exist here, and one of that name could only have the same files.
    let name = match name.strip_prefix(SERVER).and_then(|it| it.split_once("__")) {
        Some((server, tool)) if OWNERS.contains(&squash(server).as_str()) => tool,
        _ => name,
    };
    // Anything before our own name is a namespace, except another server's prefix.
    let after = |separator: &str| Some(name.rsplit_once(separator)?.1);
    let mut namespaced = ["__", "-", " "].into_iter().filter_map(after);
    if let Some(our) = namespaced.find_map(|name| ours.iter().find(|our| **our == name))
        && !name.starts_with(SERVER)
    {
        return Some(our);
    }
    let name = squash(name);
    // An agent's own namespace glued before it (Kimi), the word `tool` after it, or a number.
    let owned = std::iter::successors(Some(name.as_str()), |name| without_owner(name));
    let spellings = || {
        owned.clone().flat_map(|name| {
            let numbered = name.trim_end_matches(char::is_numeric);
            [name, name.trim_end_matches("tool"), numbered]
        })
    };
    spellings()
        .find_map(|name| {
            let mut same = ours.iter().filter(|our| squash(our) == name);
            let first = same.next();
            first.filter(|_| same.next().is_none())
        })
        .or_else(|| {
            spellings().find_map(|name| {
                let (tool, _, _) = TOOLS
                    .iter()
                    .find(|(_, heads, beside)| head(name, heads, beside).is_some())?;
                ours.iter().find(|our| our == &tool)
            })
        })
        .copied()
}

/// The prefix before the name of an MCP server.
const SERVER: &str = "mcp__";

fn without_owner(name: &str) -> Option<&str> {
    OWNERS.iter().find_map(|owner| name.strip_prefix(owner))
}

/// Whether a name has one of the words that name a tool, whatever the other ones are. The name of a server's tool never
/// counts: that tool would change something else.
pub(crate) fn hints_at(name: &str, tool: &str) -> bool {
    let name = bare(name);
    if name.starts_with(SERVER) {
        return false;
    }
    let name = squash(name);
    let mut rows = TOOLS.iter().filter(|(ours, _, _)| *ours == tool);
    rows.any(|(_, heads, _)| heads.split(' ').any(|head| name.contains(head)))
}

/// The longest name that is split into words.
const LONGEST: usize = 64;

/// The first of `heads` in a name without separators that is made of nothing but these words and those that may stand
/// `beside` one. A single letter is a name alone.
pub(crate) fn head<'a>(name: &str, heads: &'a str, beside: &str) -> Option<&'a str> {
    heads
        .split(' ')
        .find(|head| head.trim_start_matches(SIGNS) == name)
        .or_else(|| (name.len() <= LONGEST).then(|| made_of(name, heads, beside, None))?)
}

/// The signs before words that say how a value is converted.
const SIGNS: [char; 3] = ['!', '#', '*'];

fn made_of<'a>(
    rest: &str,
    heads: &'a str,
    beside: &str,
    found: Option<&'a str>,
) -> Option<&'a str> {
    if rest.is_empty() {
        return found;
    }
    let after = |word: &str| {
        let word = word.trim_start_matches(SIGNS);
        rest.strip_prefix(word).filter(|_| word.len() > 1)
    };
    heads
        .split(' ')
        .find_map(|word| made_of(after(word)?, heads, beside, found.or(Some(word))))
        .or_else(|| {
            beside
                .split(' ')
                .find_map(|word| made_of(after(word)?, heads, beside, found))
        })
}

/// A name without leaked control tokens, namespace and number: `functions.read_file:0`,
/// `read_file<|channel|>commentary`.
#[must_use]
pub(crate) fn bare(name: &str) -> &str {
    let name = name.split(['(', '{', '[']).next().unwrap_or_default();
    // The recipient follows `name=` or `to=`; otherwise it precedes all marks except those the name begins with.
    let name = match name.rsplit_once('=') {
        Some((_, addressed)) => addressed,
        None if name.starts_with('<') => name.split_once('>').map_or("", |(_, name)| name),
        None => name,
    };
    let name = name.split(['<', '>']).next().unwrap_or_default();
    let name = name.trim_matches(|c: char| c.is_whitespace() || "\"'`.:".contains(c));
    let numbered = name.trim_end_matches(char::is_numeric);
    let name = numbered.strip_suffix(':').unwrap_or(name);
    name.rsplit(['.', ':', '/']).next().unwrap_or_default()
}

/// Without case and separators.
pub(crate) fn squash(name: &str) -> String {
    // A prefix that means "number of": `n_lines`.
    let (count, name) = match name.strip_prefix("n_") {
        Some(counted) => ("num", counted),
        None => ("", name),
    };
    count
        .chars()
        .chain(name.chars())
        .filter(|it| !matches!(it, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &[&str] = &[
        "read_file",
        "edit_file",
        "write_file",
        "run_command",
        "grep",
        "update_plan",
        "mcp__x__open",
    ];

    #[track_caller]
    fn check(name: &str, expected: Option<&str>) {
        assert_eq!(resolve(name, OURS), expected, "{name}");
    }

    #[test]
    fn foreign_tool_names_map_to_ours() {
        for name in [
            "Bash",
            "shell",
            "container.exec",
            "run_terminal_cmd",
            "functions.exec_command",
            "runCommand",
        ] {
            check(name, Some("run_command"));
        }
        for name in [
            "Read",
            "ReadFile",
            "default_api.read_file",
            "functions.read_file:0",
            "read_file<|channel|>json",
            "tool_read_file",
            "builtin_read_file",
            "\"read_file\"",
            "read_file_2",
            "functionsread_file12",
            "mcp__tandem__fs_read",
            "filesystem-read_file",
            "name=read_file",
            "assistant<|channel|>commentary to=functions.read_file",
        ] {
            check(name, Some("read_file"));
        }
        check("MultiEdit", Some("edit_file"));
        check("developer__shell", Some("run_command"));
        check("TodoWrite", Some("update_plan"));
        check("read-file", Some("read_file"));
        check("mcp__tandem__run_command", Some("run_command"));
        check("mcp__filesystem__read_text_file", Some("read_file"));
        check("mcp__ssh__run_command", None);
        check("mcp__files__read_file", None);
        check("tool", None);
    }

    /// Other agents' names in the spellings that models give them.
    #[test]
    fn words_are_understood_in_every_spelling() {
        let ours: Vec<&str> = TOOLS.iter().map(|(tool, _, _)| *tool).collect();
        for (row, (_, heads, beside)) in TOOLS.iter().enumerate() {
            for head in heads.split(' ') {
                let both = beside
                    .split(' ')
                    .flat_map(|word| [[head, word], [word, head]]);
                for words in both {
                    for spelled in spellings(&words) {
                        for name in [spelled.clone(), format!("functions.{spelled}:3")] {
                            let found = resolve(&name, &ours);
                            let found = ours.iter().position(|tool| Some(*tool) == found);
                            assert!(found.is_some_and(|found| found <= row), "{name}");
                        }
                    }
                }
            }
        }
    }

    fn spellings(words: &[&str]) -> Vec<String> {
        let title = |word: &&str| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        };
        let pascal: String = words.iter().map(title).collect();
        let (first, rest) = pascal.split_at(1);
        let camel = first.to_lowercase() + rest;
        let snake = words.join("_");
        vec![
            snake.to_uppercase(),
            words.join("-"),
            words.concat(),
            snake,
            camel,
            pascal,
        ]
    }

    #[test]
    fn unknown_names_stay_unknown() {
        let ours: Vec<&str> = TOOLS.iter().map(|(tool, _, _)| *tool).collect();
        for name in [
            "delete_file",
            "DeleteFiles",
            "move_file",
            "web_search",
            "fetch",
            "open_url",
            "git_diff",
            "Task",
            "exit_plan_mode",
            "execute_python",
            "run_tests",
            "create_directory",
            "write_stdin",
            "kill_shell",
            "execute_sql",
            "list_issues",
            "search_issues",
            "edit_notebook",
            "undo_edit",
            "write_memory",
            "image",
        ] {
            assert_eq!(resolve(name, &ours), None, "{name}");
        }
        // Splitting a long name ends.
        assert_eq!(resolve(&"searchfiles".repeat(10_000), &ours), None);
        for name in [
            "",
            "<|channel|>",
            "browser_navigate",
            "send_mail",
            "read_mail",
            "glob",
            "delete",
        ] {
            check(name, None);
        }
    }
}
