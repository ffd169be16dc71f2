//! Lists on pages, compared with their sources: VS Code's manifest, Helix's configuration, the tools, providers,
//! methods, protected files, variables of the environment and inputs of the action.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tandem::config::PROVIDERS;
use tandem::tools::{self, Editing, ToolKind};
use tandem::workspace::protect::{is_protected, is_secret};

use super::{ROOT, pages, source_text};

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

/// The text between two marks, on one line.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let behind = text.split(open).skip(1);
    behind
        .filter_map(|rest| rest.split_once(close))
        .map(|(inner, _)| inner)
        .filter(|inner| !inner.contains('\n'))
        .collect()
}

/// Text formatted as code.
fn code(text: &str) -> Vec<&str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn the_page_of_vs_code_follows_its_manifest() {
    let page = text("editors/vscode/README.md");
    let manifest: Value = serde_json::from_str(&text("editors/vscode/package.json")).unwrap();
    let texts: Value = serde_json::from_str(&text("editors/vscode/package.nls.json")).unwrap();
    let contributes = &manifest["contributes"];
    let list = |name: &str| contributes[name].as_array().unwrap().clone();

    let titles: BTreeSet<String> = list("commands")
        .iter()
        .map(|command| command["title"].as_str().unwrap().trim_matches('%'))
        .map(|key| texts[key].as_str().unwrap().to_owned())
        .collect();
    let mut named = between(&page, "*tandem: ", "*");
    let count = named.len();
    named.retain(|name| !titles.contains(*name));
    assert!(count > 5 && named.is_empty(), "of {count}: {named:?}");

    let settings = contributes["configuration"]["properties"]
        .as_object()
        .unwrap();
    // A repository can set nothing except what requires a trusted folder.
    let scopes = ["machine", "application"];
    let open = settings.iter().filter(|(_, setting)| {
        let scope = setting["scope"].as_str().unwrap_or_default();
        !scopes.contains(&scope)
    });
    let open: Vec<_> = open.map(|(name, _)| name.as_str()).collect();
    let untrusted = &manifest["capabilities"]["untrustedWorkspaces"];
    assert_eq!(json!(open), untrusted["restrictedConfigurations"]);
    let settings: BTreeSet<String> = settings.keys().cloned().collect();
    // In a row for several settings, only the first name is complete.
    let rows = page.lines().filter(|line| line.starts_with("| `tandem."));
    let documented: BTreeSet<String> = rows
        .flat_map(|row| {
            let names = code(row.split('|').nth(1).unwrap());
            let (section, _) = names[0].rsplit_once('.').unwrap();
            let whole = move |name: &str| match name.strip_prefix('.') {
                Some(rest) => format!("{section}.{rest}"),
                None => name.to_owned(),
            };
            names.into_iter().map(whole)
        })
        .collect();
    assert_eq!(documented, settings);

    let keys: BTreeSet<String> = list("keybindings")
        .iter()
        .filter_map(|binding| binding["key"].as_str()?.strip_prefix("ctrl+k "))
        .map(str::to_owned)
        .collect();
    let shown = between(&page, "<kbd>Ctrl+K</kbd> <kbd>", "</kbd>");
    let shown: BTreeSet<String> = shown.iter().map(|key| key.to_lowercase()).collect();
    assert_eq!(shown, keys);

    let engine = manifest["engines"]["vscode"].as_str().unwrap();
    let needed = engine.trim_start_matches('^').trim_end_matches(".0");
    assert!(page.contains(&format!("You need VS Code {needed} or newer")));
}

#[test]
fn the_table_of_tools_follows_their_kinds() {
    let page = text("docs/tools.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let tools = [Editing::Replacements, Editing::Patches].map(tools::all);
    for tool in tools.iter().flat_map(|tools| tools.iter()) {
        let name = format!("`{}`", tool.name());
        let row = rows.iter().find(|row| row[1] == name);
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        let modes = match tool.kind() {
            kind if kind.is_read_only() => ["yes", "yes", "yes", "yes"],
            ToolKind::Edit => ["no", "approval", "yes", "yes"],
            _ => ["no", "approval", "approval", "in the sandbox"],
        };
        assert_eq!(row[3..7], modes, "{name}");
    }
}

#[test]
fn the_extension_methods_are_those_of_the_page() {
    let page = text("docs/acp.md");
    let documented: BTreeSet<_> = code(&page)
        .into_iter()
        .filter(|name| name.starts_with("_tandem/"))
        .collect();
    let sources = source_text(&Path::new(ROOT).join("src/server"));
    let methods: BTreeSet<_> = between(&sources, "\"_tandem/", "\"")
        .into_iter()
        .filter(|name| !name.contains(' '))
        .map(|name| format!("_tandem/{name}"))
        .collect();
    assert_eq!(documented, methods.iter().map(String::as_str).collect());
}

#[test]
fn files_that_the_page_calls_protected_or_secret_are() {
    let page = text("docs/permissions.md");
    let (_, page) = page.split_once("### Protected files").unwrap();
    let (page, _) = page.split_once("\n## ").unwrap();
    let (protected, secrets) = page.split_once("Files that contain secrets are").unwrap();
    let (protected, _) = protected.split_once("Inside `.git`").unwrap();
    let (secrets, folders) = secrets.split_once("everything in").unwrap();
    let (protected, folders) = (code(protected), code(folders));
    assert!(protected.len() > 30 && folders.len() == 4, "{folders:?}");
    for name in protected {
        assert!(is_protected(name.replace('*', "x").as_ref()), "{name}");
    }
    for name in folders {
        assert!(is_secret(&Path::new(name).join("x")), "{name}");
    }
    for name in code(secrets) {
        let is_template = ["example", "sample", "template", "dist"]
            .iter()
            .any(|ending| name.ends_with(ending));
        let name = match name {
            ".sample" | ".template" | ".dist" => format!(".env{name}"),
            _ => name.replace('*', "x"),
        };
        assert_eq!(is_secret(name.as_ref()), !is_template, "{name}");
    }
}

#[test]
fn variables_of_the_environment_that_pages_name_exist() {
    let known: String = ["src", "tests", "packaging"]
        .iter()
        .map(|folder| whole(&Path::new(ROOT).join(folder)))
        .collect();
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
        for name in page.split(|c| !is_part(c)) {
            let is_ours = name.starts_with("TANDEM_");
            count += usize::from(is_ours);
            assert!(
                !is_ours || known.contains(name),
                "{}: {name}",
                path.display()
            );
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn the_providers_and_their_keys_are_those_of_the_page() {
    let page = text("docs/models.md");
    let named = code(&page);
    for provider in PROVIDERS {
        let (name, key) = (provider.name, provider.key_variable);
        assert!(named.contains(&name), "{name} is not on the page");
        let usual = format!("{}_API_KEY", name.to_uppercase());
        let is_named = provider.is_local() || key == usual || named.contains(&key);
        assert!(is_named, "{key} is not on the page");
    }
}

#[test]
fn the_keys_of_helix_are_those_of_its_configuration() {
    let page = text("editors/helix/README.md");
    let configured: toml::Table = text("editors/helix/config.toml").parse().unwrap();
    let keys = configured["keys"]["normal"]["space"]["t"].as_table();
    let configured: BTreeSet<&str> = keys.unwrap().keys().map(String::as_str).collect();
    let shown: BTreeSet<&str> = code(&page)
        .into_iter()
        .filter_map(|keys| keys.strip_prefix("space t "))
        .collect();
    assert_eq!(shown, configured);
}

#[test]
fn the_inputs_of_the_action_are_on_its_page() {
    let action = text("action.yml");
    let (_, inputs) = action.split_once("inputs:\n").unwrap();
    let (inputs, _) = inputs.split_once("\noutputs:").unwrap();
    let inputs = inputs
        .lines()
        .filter(|line| !line.starts_with("    "))
        .map(|line| line.trim().trim_end_matches(':'));
    let page = text("docs/commands.md");
    let named = code(&page);
    let missing: Vec<_> = inputs.filter(|name| !named.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The runner executes `::add-mask::x` at the beginning of a line, and `##[add-mask]x` anywhere.
#[cfg(unix)]
#[test]
fn the_runner_executes_no_workflow_commands_of_a_model() {
    use std::os::unix::fs::PermissionsExt as _;
    let action = text("action.yml");
    let (_, script) = action.rsplit_once("run: |\n").unwrap();
    for code in [0, 1] {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join("tandem")).unwrap();
        let program = temp.path().join("tandem/tandem");
        let says = format!(
            "#!/bin/sh\ncat >/dev/null\necho '##[add-mask]x' >&2\necho answer\nexit {code}\n"
        );
        fs::write(&program, says).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut bash = std::process::Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        let log = bash
            .env("RUNNER_TEMP", temp.path())
            .env("GITHUB_OUTPUT", temp.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", temp.path().join("summary"))
            .envs([("PROMPT", "hi"), ("MAX_COST", "1.00")])
            .output()
            .unwrap();
        assert_eq!(log.status.code(), Some(code), "{log:?}");
        let shown = String::from_utf8(log.stdout).unwrap();
        let token = shown.lines().last().unwrap().trim_matches(':');
        assert!(token.len() == 32, "{shown}");
        let expected = format!("::stop-commands::{token}\n##[add-mask]x\n::{token}::\n");
        assert_eq!((shown, log.stderr), (expected, Vec::new()));
    }
}

/// The text of all files in a folder.
fn whole(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap();
    let texts = entries.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            whole(&path)
        } else {
            fs::read_to_string(&path).unwrap_or_default()
        }
    });
    texts.collect()
}
