//! Maps other agents' tool names to ours. Pure.
//!
//! A model trained with another agent's tools uses their names. Permission, order and display are decided on the
//! resolved tool, so that understanding a name never allows more than the tool itself.

/// Names without case, separators and wrapping, and the tool that does the same.
const ALIASES: &[(&str, &str)] = &[
    ("applypatchtool", "apply_patch"),
    ("patch", "apply_patch"),
    ("applydiff", "apply_patch"),
    ("bash", "run_command"),
    ("bashcommand", "run_command"),
    ("bashtool", "run_command"),
    ("cmd", "run_command"),
    ("command", "run_command"),
    ("console", "run_command"),
    ("exec", "run_command"),
    ("execbash", "run_command"),
    ("execcommand", "run_command"),
    ("execute", "run_command"),
    ("executebash", "run_command"),
    ("executecommand", "run_command"),
    ("executeshell", "run_command"),
    ("executeshellcommand", "run_command"),
    ("launchprocess", "run_command"),
    ("localshell", "run_command"),
    ("powershell", "run_command"),
    ("runbash", "run_command"),
    ("runbashcommand", "run_command"),
    ("runcmd", "run_command"),
    ("runcommandline", "run_command"),
    ("runcommands", "run_command"),
    ("runinterminal", "run_command"),
    ("runshell", "run_command"),
    ("runshellcommand", "run_command"),
    ("runterminalcmd", "run_command"),
    ("runterminalcommand", "run_command"),
    ("sh", "run_command"),
    ("shell", "run_command"),
    ("shellcommand", "run_command"),
    ("shellexec", "run_command"),
    ("shelltool", "run_command"),
    ("terminal", "run_command"),
    ("cat", "read_file"),
    ("readmultiplefiles", "read_file"),
    ("readfiles", "read_file"),
    ("fileread", "read_file"),
    ("filereader", "read_file"),
    ("fsread", "read_file"),
    ("getfile", "read_file"),
    ("getfilecontents", "read_file"),
    ("open", "read_file"),
    ("openfile", "read_file"),
    ("read", "read_file"),
    ("readfilecontent", "read_file"),
    ("readfilecontents", "read_file"),
    ("readfiletool", "read_file"),
    ("readmanyfiles", "read_file"),
    ("readtextfile", "read_file"),
    ("view", "read_file"),
    ("viewfile", "read_file"),
    ("viewimage", "read_file"),
    ("edit", "edit_file"),
    ("strreplacefile", "edit_file"),
    ("replacefilecontent", "edit_file"),
    ("editexistingfile", "edit_file"),
    ("edittool", "edit_file"),
    ("fileedit", "edit_file"),
    ("modifyfile", "edit_file"),
    ("multiedit", "edit_file"),
    ("multireplace", "edit_file"),
    ("multireplacestringinfile", "edit_file"),
    ("replace", "edit_file"),
    ("replaceinfile", "edit_file"),
    ("replacestringinfile", "edit_file"),
    ("replacetext", "edit_file"),
    ("searchandreplace", "edit_file"),
    ("searchreplace", "edit_file"),
    ("strreplace", "edit_file"),
    ("stringreplace", "edit_file"),
    ("updatefile", "edit_file"),
    ("create", "write_file"),
    ("createfile", "write_file"),
    ("createnewfile", "write_file"),
    ("filecreate", "write_file"),
    ("filewrite", "write_file"),
    ("fswrite", "write_file"),
    ("newfile", "write_file"),
    ("overwritefile", "write_file"),
    ("savefile", "write_file"),
    ("write", "write_file"),
    ("writetofile", "write_file"),
    ("writetool", "write_file"),
    ("codesearch", "grep"),
    ("codebasesearch", "grep"),
    ("semanticsearch", "grep"),
    ("contentsearch", "grep"),
    ("grepfiles", "grep"),
    ("grepsearch", "grep"),
    ("greptool", "grep"),
    ("regexsearch", "grep"),
    ("ripgrep", "grep"),
    ("rg", "grep"),
    ("search", "grep"),
    ("searchcode", "grep"),
    ("searchfilecontent", "grep"),
    ("searchfilecontents", "grep"),
    ("searchfiles", "grep"),
    ("searchinfiles", "grep"),
    ("searchtext", "grep"),
    ("textsearch", "grep"),
    ("filesearch", "glob"),
    ("findbyname", "glob"),
    ("fileglobsearch", "glob"),
    ("find", "glob"),
    ("findfile", "glob"),
    ("findfiles", "glob"),
    ("findpath", "glob"),
    ("globfiles", "glob"),
    ("globsearch", "glob"),
    ("globtool", "glob"),
    ("searchfilesbyname", "glob"),
    ("dir", "list_files"),
    ("directorytree", "list_files"),
    ("list", "list_files"),
    ("viewfolder", "list_files"),
    ("listdir", "list_files"),
    ("listdirectory", "list_files"),
    ("listdirectorycontents", "list_files"),
    ("listfolder", "list_files"),
    ("ls", "list_files"),
    ("lstool", "list_files"),
    ("readdir", "list_files"),
    ("readdirectory", "list_files"),
    ("readfolder", "list_files"),
    ("tree", "list_files"),
    ("viewdirectory", "list_files"),
    ("managetodolist", "update_plan"),
    ("settodolist", "update_plan"),
    ("tasktracker", "update_plan"),
    ("plan", "update_plan"),
    ("setplan", "update_plan"),
    ("todo", "update_plan"),
    ("todolist", "update_plan"),
    ("todos", "update_plan"),
    ("todowrite", "update_plan"),
    ("updateplan", "update_plan"),
    ("updatetodolist", "update_plan"),
    ("updatetodos", "update_plan"),
    ("writetodos", "update_plan"),
    ("geterrors", "diagnostics"),
    ("getdiagnostics", "diagnostics"),
    ("lspdiagnostics", "diagnostics"),
    ("problems", "diagnostics"),
    ("readlints", "diagnostics"),
    ("ask", "ask_user"),
    ("askfollowupquestion", "ask_user"),
    ("askquestion", "ask_user"),
    ("askuserquestion", "ask_user"),
    ("question", "ask_user"),
    ("requestuserinput", "ask_user"),
    ("loadskill", "skill"),
    ("useskill", "skill"),
];

/// Editor tools with a command argument.
const EDITORS: &[&str] = &[
    "strreplaceeditor",
    "strreplacebasededittool",
    "strreplacebasededit",
    "texteditor",
    "fileeditor",
    "editor",
];

/// The commands of [`EDITORS`].
const EDITOR_COMMANDS: &[(&str, &str)] = &[
    ("view", "read_file"),
    ("create", "write_file"),
    ("write", "write_file"),
    ("str_replace", "edit_file"),
    ("insert", "edit_file"),
];

/// The one of `ours` that an unknown `name` means.
pub(crate) fn resolve<'a>(name: &str, ours: &[&'a str]) -> Option<&'a str> {
    let name = squash(bare(name));
    if name.is_empty() {
        return None;
    }
    // As an MCP server of ours would call it, another agent's own namespace, with the word `tool`, or numbered.
    let numbered = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let prefixes =
        ["mcptandem", "developer", "builtin", "tool"].map(|prefix| name.strip_prefix(prefix));
    let plain = prefixes
        .into_iter()
        .chain([name.strip_suffix("tool"), Some(numbered)]);
    std::iter::once(name.as_str())
        .chain(plain.flatten())
        .find_map(|name| of_squashed(name, ours))
}

fn of_squashed<'a>(name: &str, ours: &[&'a str]) -> Option<&'a str> {
    let mut same = ours.iter().filter(|our| squash(our) == name);
    if let (Some(one), None) = (same.next(), same.next()) {
        return Some(one);
    }
    let (_, alias) = ALIASES.iter().find(|(alias, _)| *alias == name)?;
    ours.iter().find(|our| *our == alias).copied()
}

/// Whether `name` is an editor tool with several commands.
pub(crate) fn is_editor(name: &str) -> bool {
    let name = squash(bare(name));
    EDITORS.contains(&name.strip_prefix("developer").unwrap_or(&name))
}

/// The tool for a command of an editor tool.
pub(crate) fn of_editor(command: &str) -> Option<&'static str> {
    EDITOR_COMMANDS
        .iter()
        .find(|(name, _)| *name == command)
        .map(|(_, tool)| *tool)
}

/// A name without leaked control tokens, namespace and number: `functions.read_file:0`,
/// `read_file<|channel|>commentary`.
#[must_use]
pub(crate) fn bare(name: &str) -> &str {
    let name = name.split(['<', '(', '{', '[']).next().unwrap_or_default();
    let name = name.trim_matches(|c: char| c.is_whitespace() || "\"'`".contains(c));
    let name = match name.rsplit_once(':') {
        Some((before, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => before,
        _ => name,
    };
    name.rsplit(['.', ':', '/', ' ']).next().unwrap_or_default()
}

/// Without case and separators, and without a suffix some agents append.
pub(crate) fn squash(name: &str) -> String {
    name.chars()
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
        ] {
            check(name, Some("read_file"));
        }
        check("MultiEdit", Some("edit_file"));
        check("developer__shell", Some("run_command"));
        check("TodoWrite", Some("update_plan"));
        check("read-file", Some("read_file"));
        check("mcp__tandem__run_command", Some("run_command"));
        check("tool", None);
    }

    #[test]
    fn unknown_names_stay_unknown() {
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

    #[test]
    fn aliases_are_normalized_and_unique() {
        let mut names: Vec<_> = ALIASES
            .iter()
            .map(|(alias, _)| *alias)
            .chain(EDITORS.iter().copied())
            .collect();
        assert!(names.iter().all(|name| squash(name) == *name));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
