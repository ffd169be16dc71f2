//! The documentation is correct: its configuration is valid, its commands parse, its links resolve, the messages it
//! quotes exist, and the table of options is the one generated from the types (`UPDATE_DOCS=1 cargo test --test it docs::`
//! rewrites it).

mod facts;
mod options;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;
use tandem::cli::Cli;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Every page people read.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut pages = vec![
        root.join("README.md"),
        root.join("src/README.md"),
        root.join("benches/README.md"),
    ];
    for folder in ["docs", ".github", "editors"] {
        markdown_files(&root.join(folder), &mut pages);
    }
    pages
}

fn markdown_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("node_modules") {
            markdown_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The parsed contents of a page.
#[derive(Debug, Default)]
struct Page {
    /// The language and text of each fenced code block.
    blocks: Vec<(String, String)>,
    /// The targets of links and pictures.
    links: Vec<String>,
    /// The anchors of its headings, as forges make them.
    anchors: BTreeSet<String>,
}

fn read(path: &Path) -> Page {
    let text = fs::read_to_string(path).unwrap();
    let (mut page, mut heading, mut block) =
        (Page::default(), None::<String>, None::<(String, String)>);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                block = Some((language.to_string(), String::new()));
            }
            Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => page
                .anchors
                .extend(heading.take().map(|text| anchor(&text))),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.to_string());
            }
            Event::Text(text) | Event::Code(text) => {
                let target = heading.as_mut().or(block.as_mut().map(|(_, code)| code));
                let () = target.map_or((), |target| target.push_str(&text));
            }
            _ => {}
        }
    }
    page
}

/// The anchor of a heading: lower case, words joined by hyphens, punctuation gone.
fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn all_links_resolve() {
    let mut broken = Vec::new();
    for path in pages() {
        for link in read(&path)
            .links
            .iter()
            .filter(|link| !link.contains("://") && !link.starts_with("mailto:"))
        {
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                path.parent().unwrap().join(file)
            };
            let is_page = target
                .extension()
                .is_some_and(|extension| extension == "md");
            if !target.exists()
                || (is_page && !fragment.is_empty() && !read(&target).anchors.contains(fragment))
            {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn documented_configurations_are_valid() {
    let validator =
        jsonschema::validator_for(&serde_json::to_value(tandem::config::schema()).unwrap())
            .unwrap();
    let (mut checked, mut wrong) = (0, Vec::new());
    for path in pages()
        .iter()
        .filter(|path| !path.components().any(|part| part.as_os_str() == "helix"))
    {
        for (_, block) in read(path)
            .blocks
            .iter()
            .filter(|(language, _)| language == "toml")
        {
            let value: Value = toml::from_str(block)
                .unwrap_or_else(|error| panic!("{}: {error}\n{block}", path.display()));
            checked += 1;
            wrong.extend(
                validator
                    .iter_errors(&value)
                    .map(|error| format!("{}: {error}\n{block}", path.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 5, "only {checked} blocks were found");
}

#[test]
fn documented_commands_parse() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for path in pages() {
        for (_, block) in read(&path)
            .blocks
            .iter()
            .filter(|(language, _)| language == "sh")
        {
            for line in block.lines() {
                let Some(words) = tandem_command(line) else {
                    continue;
                };
                checked += 1;
                // Help and version are output, not mistakes.
                let mistake = Cli::try_parse_from(&words)
                    .err()
                    .filter(clap::Error::use_stderr);
                wrong.extend(mistake.map(|error| format!("{}: {line}\n{error}", path.display())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 8, "only {checked} commands were found");
}

/// The languages of code blocks, and how each is checked: a block in any other language would not be checked.
const LANGUAGES: [(&str, &str); 10] = [
    ("diff", "tests/first_change.py applies it"),
    ("elisp", "its brackets are balanced"),
    ("json", "it is parsed"),
    ("lua", "editors/neovim/tests/unit.lua compiles it"),
    ("markdown", "a sample of a text"),
    ("mermaid", "its brackets are balanced"),
    ("rust", "tests/first_change.py compiles it"),
    ("sh", "its tandem commands are parsed"),
    ("text", "a drawing"),
    ("toml", "it is valid configuration"),
];

#[test]
fn all_code_blocks_are_checked() {
    let mut wrong = Vec::new();
    for path in pages() {
        for (language, block) in read(&path).blocks {
            let language = language.split_whitespace().next().unwrap_or_default();
            let is_right = match language {
                "json" => [block.clone(), format!("{{{block}}}")]
                    .iter()
                    .any(|text| serde_json::from_str::<Value>(text).is_ok()),
                "elisp" | "mermaid" => is_balanced(&block),
                other => LANGUAGES.iter().any(|(known, _)| *known == other),
            };
            if !is_right {
                wrong.push(format!("{}: `{language}`\n{block}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether every bracket outside quotes is closed by one of its own kind.
fn is_balanced(text: &str) -> bool {
    let (mut open, mut is_quoted) = (Vec::new(), false);
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(character) => return false,
            _ => {}
        }
    }
    open.is_empty() && !is_quoted
}

#[test]
fn unbalanced_brackets_are_detected() {
    assert!(
        is_balanced("a[b (c)] -- \"(\" --> d{e}") && !is_balanced("a[b (c]") && !is_balanced("(\"")
    );
}

/// The words of a line that runs tandem, directly or through cargo.
fn tandem_command(line: &str) -> Option<Vec<String>> {
    let mut words = shlex::split(line.rsplit(" | ").next()?)?;
    if words.first().is_some_and(|word| word == "cargo") {
        let program = words
            .iter()
            .position(|word| word == "--")
            .filter(|_| words.get(1).is_some_and(|word| word == "run"))?;
        words.drain(..=program);
        words.insert(0, "tandem".to_owned());
    }
    words
        .first()
        .is_some_and(|word| word == "tandem")
        .then_some(words)
}

#[test]
fn all_commands_are_documented() {
    let text: String = pages()
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let commands = Cli::command();
    let shown = commands
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let missing: Vec<&str> = shown
        .map(clap::Command::get_name)
        .filter(|name| !text.contains(&format!("tandem {name}")))
        .collect();
    assert!(missing.is_empty(), "not mentioned anywhere: {missing:?}");
}

/// Messages worded by a library or the system.
const WORDED_BY_OTHERS: [&str; 2] = [
    "invalid peer certificate: UnknownIssuer", // rustls
    "connection refused",                      // the system
];

/// The messages that have a remedy: in a table of a page as `| *message* |` or `| "message"`; in Neovim's help, in
/// quotation marks on an unindented line.
fn quoted_messages(page: &str) -> Vec<&str> {
    let mut found: Vec<_> = page.lines().filter_map(quoted_in_a_row).collect();
    if let Some((_, help)) = page.split_once("*tandem-troubleshooting*") {
        let heads = help.lines().filter(|line| !line.starts_with(' '));
        found.extend(heads.filter_map(|line| line.split('"').nth(1)));
    }
    found
}

fn quoted_in_a_row(line: &str) -> Option<&str> {
    let cell = line.strip_prefix("| ")?;
    let (message, _) = match cell.strip_prefix('*') {
        Some(cell) => cell.split_once("* |")?,
        None => cell.strip_prefix('"')?.split_once('"')?,
    };
    Some(message)
}

#[test]
fn quoted_messages_are_printed() {
    let mut sources = String::new();
    for folder in [
        "src",
        "editors/vscode/src",
        "editors/vscode/webview",
        "editors/neovim/lua",
    ] {
        sources.push_str(&source_text(&Path::new(ROOT).join(folder)));
    }
    let is_printed = |message: &str| {
        let mut parts = message.split(['…', '`']).map(str::trim);
        WORDED_BY_OTHERS.contains(&message) || parts.all(|part| sources.contains(part))
    };
    let (mut count, mut unknown) = (0, Vec::new());
    let help = Path::new(ROOT).join("editors/neovim/doc/tandem.txt");
    for path in pages().into_iter().chain([help]) {
        for message in quoted_messages(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            if !is_printed(message) {
                unknown.push(format!("{}: {message}", path.display()));
            }
        }
    }
    assert!(count > 12 && unknown.is_empty(), "of {count}: {unknown:#?}");
    assert!(!is_printed("the key was refused"), "the check can fail");
}

/// The sources in a folder, with texts that span lines joined.
fn source_text(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            text.push_str(&source_text(&path));
        } else if matches!(extension, Some("rs" | "ts" | "lua")) {
            let source = fs::read_to_string(&path).unwrap();
            text.extend(source.split("\\\n").map(str::trim_start));
        }
    }
    text
}

#[test]
fn the_options_table_matches_the_types() {
    let path = Path::new(ROOT).join("docs/options.md");
    let expected = options::page(&serde_json::to_value(tandem::config::schema()).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found, expected,
        "run UPDATE_DOCS=1 cargo test --test it docs::"
    );
}
