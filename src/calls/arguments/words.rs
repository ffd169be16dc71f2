//! The words that other agents' arguments and values are named with. Tables only.
//!
//! Each row names what knows it: a model family is trained with the tools of the agents that its maker knows.

/// Our arguments, the words that name each of them, and the words that may stand beside one of those. Where two
/// arguments of a tool match, the upper row does.
///
/// A sign before a word says how its value is converted: `!` negates it, `#` is a count, of which one and less is
/// false, `*` is the name of a file type.
pub(super) const ARGUMENTS: &[(&str, &str, &str)] = &[
    (
        "cwd",
        "cd cwd dir directory folder path workdir",
        "working current exec name",
    ),
    (
        "command",
        "command cmd bash script input",
        "line shell code",
    ),
    (
        "timeout_s",
        "timeout maxwait",
        "max command run second seconds sec secs ms millis milliseconds min minutes time limit",
    ),
    (
        "background",
        "background async detached detach !blocking !wait",
        "is run in for completion until done",
    ),
    ("job", "job", "id number"),
    (
        "content",
        "content text code data body step task title",
        "file new full source string",
    ),
    (
        "old_text",
        "old original find search before target from",
        "text string str code content lines block snippet value",
    ),
    (
        "new_text",
        "new replace replacing replacement updated update after to",
        "text string str code content lines block snippet value with by",
    ),
    (
        "replace_all",
        "all global multiple every #expected",
        "allow replace replacements occurrences matches instances",
    ),
    (
        "edits",
        "edit changes modifications operations replacements chunks",
        "replacement list",
    ),
    (
        "glob",
        "glob include filter filepattern *type *extension *ext",
        "file files pattern patterns",
    ),
    (
        "pattern",
        "pattern regex regexp query q search term glob name text include",
        "file search string expression keyword",
    ),
    ("context", "context a b c", "lines line of around number"),
    (
        "ignore_case",
        "i insensitive ignorecase !sensitive",
        "case is",
    ),
    (
        "max_results",
        "limit count results matches m",
        "max num head result number of match total",
    ),
    ("depth", "depth level", "max recursion"),
    (
        "offset",
        "start from begin first line offset",
        "number one indexed index at",
    ),
    (
        "limit",
        "limit count lines",
        "max num number line of read to",
    ),
    (
        "patch",
        "patch diff changes content text input",
        "string code unified",
    ),
    ("entries", "entries items plan steps task todo", "list"),
    ("status", "status state", ""),
    (
        "options",
        "options choices suggestions followup",
        "list answer",
    ),
    ("question", "question prompt", "text user"),
    ("op", "operation action", "name"),
    ("column", "col character", ""),
    (
        "path",
        "path pathname filename file dir directory directories folder uri location include",
        "absolute relative target source search workspace full name root one to",
    ),
];

/// Arguments that comment on a call, or ask for less care than it gets anyway: without them it does the same.
pub(super) const COMMENTS: &[(&str, &str, &str)] = &[
    (
        "all: why the call is made",
        "description explanation reason reasoning rationale purpose intent justification thinking thought thoughts note notes summary instruction instructions goal message id",
        "display tool task reminder user brief short call",
    ),
    (
        "all: how dangerous it is",
        "approval permissions sandbox dangerous dangerously risk safe",
        "level reason requires require required user with escalated disable is security to auto run",
    ),
    (
        "all: folders are made anyway",
        "create make mk parents",
        "directories directory dirs dir parents folders missing if not exists",
    ),
    ("Claude Code", "activeform outputmode n showlinenumbers", ""),
    (
        "Codex",
        "login maxoutputtokens prefixrule sessionid shell tty yieldtimems",
        "",
    ),
    (
        "Windsurf, Copilot",
        "codemarkdownlanguage initialwait waitmsbeforeasync",
        "",
    ),
    ("Cline, Roo", "linecount taskprogress toolname", ""),
    (
        "Cursor, Augment",
        "addlastlinenewline oldstrstartlinenumber oldstrendlinenumber shouldreadentirefile waitforprevious",
        "",
    ),
];

/// Values of other agents' arguments that say what a tool does anyway. Any other value asks for something else.
pub(super) const USUAL: &[(&str, &str)] = &[
    // Continue.
    ("overwrite", "true"),
    // Qwen Code and MCP's file server.
    ("mode", "overwrite edit sync"),
    ("encoding", "utf8"),
    // OpenHands' task tracker.
    ("command", "plan"),
];

/// The last one of the lines to read (Cursor, Augment).
pub(super) const LAST_LINES: (&str, &str) = ("end last to", "line number one indexed inclusive");
/// Ranges of lines, as one argument (Anthropic's text editor, Roo Code).
pub(super) const RANGES: (&str, &str) = ("range ranges lines", "view line read");

/// Values of our enumerations, and words for them (Gemini, Codex, Roo Code).
pub(super) const WORDS: &[(&str, &str)] = &[
    (
        "completed",
        "cancelled canceled complete done finished ✅ ✔ ✓",
    ),
    ("in_progress", "active current doing started 🔄"),
    ("pending", "notstarted open planned queued todo ⏳"),
    ("medium", "normal"),
    ("high", "urgent"),
];

/// ripgrep's file types (Claude Code) whose name is not their extension.
pub(super) const FILE_TYPES: &[(&str, &str)] = &[
    ("python", "py"),
    ("rust", "rs"),
    ("javascript", "js"),
    ("typescript", "ts"),
    ("markdown", "md"),
    ("ruby", "rb"),
    ("csharp", "cs"),
    ("kotlin", "kt"),
    ("shell", "sh"),
];
