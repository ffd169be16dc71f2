//! The rules that no compiler checks: which module may use which, how long files may be, and duplicated code.
//! `src/README.md` and `CONTRIBUTING.md` state them; here they are enforced.
//!
//! Each check is a function of source text; a test beside it proves on bad samples that it can fail.

mod copies;
mod imports;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use imports::Import;
use source::Source;

/// The modules that each top-level module may use, besides itself, `text` and `domain`. Re-exports are resolved: the module
/// that defines an item counts.
const MAY_IMPORT: [(&str, &[&str]); 18] = [
    ("lib", &[]),
    ("text", &[]),
    ("domain", &["text"]),
    ("rpc", &[]),
    ("config", &[]),
    ("protocol", &[]),
    ("model", &[]),
    ("workspace", &[]),
    ("changes", &["workspace"]),
    ("process", &["changes", "workspace"]),
    ("calls", &[]),
    ("tools", &["calls", "process", "changes", "workspace"]),
    (
        "agent",
        &["model", "calls", "tools", "process", "changes", "workspace"],
    ),
    (
        "session",
        &[
            "agent",
            "model",
            "tools",
            "process",
            "changes",
            "workspace",
            "config",
        ],
    ),
    (
        "completion",
        &["session::connect", "model", "workspace", "config"],
    ),
    (
        "server",
        &[
            "session",
            "changes",
            "process",
            "completion",
            "agent::event",
            "tools::output",
            "workspace",
            "rpc",
            "protocol",
            "config",
        ],
    ),
    (
        "cli",
        &[
            "server",
            "session",
            "agent",
            "model",
            "tools",
            "process",
            "changes",
            "workspace",
            "rpc",
            "protocol",
            "config",
        ],
    ),
    ("main", &["cli"]),
];

/// The maximum number of lines of a file, excluding tests. Clippy limits functions (`clippy.toml`), but not files.
const FILE_MAX: usize = 600;

/// Pairs of places with the same code.
const COPIES_MAX: usize = 10;

/// One test, since reading the sources takes longer than checking them.
#[test]
fn sources_follow_the_rules() {
    let sources = source::load();
    let mut problems = Vec::new();
    let imports = imports::imports(&sources);
    let wrong = forbidden(&sources, &imports).into_iter();
    problems.extend(wrong.map(|what| format!("an import that goes the wrong way: {what}")));
    let circles = circles(&sources, &imports).into_iter();
    problems.extend(circles.map(|cycle| format!("an import cycle: {}", cycle.join(", "))));
    let long = sources
        .iter()
        .filter(|source| source.production_lines().count() > FILE_MAX);
    problems.extend(long.map(|source| format!("{} has more than {FILE_MAX} lines", source.file)));
    let copies = copies::copies(&sources);
    if copies.len() > COPIES_MAX {
        problems.extend(
            copies
                .iter()
                .map(|(one, other)| format!("the same code stands in {one} and {other}")),
        );
    }
    let silent = sources.iter().filter(|source| !is_described(source));
    problems.extend(silent.map(|source| format!("{} has no module documentation", source.file)));
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Files of `tests/it` that may use a clock, and why.
const CLOCKS: [(&str, &str); 4] = [
    (
        "driver.rs",
        "`until` and what fails in place of a test that hangs",
    ),
    (
        "acp.rs",
        "an answer that waits for the client comes when the server's own limit is over, and is otherwise the same",
    ),
    (
        "faults.rs",
        "a lower bound, which a slow machine cannot break: the server asked for a second",
    ),
    (
        "attacks",
        "a laptop that sleeps, a client that does not read, and lower bounds of pauses",
    ),
];

#[test]
fn tests_do_not_look_at_a_clock() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut wrong = Vec::new();
    for (file, text) in source::files(&folder) {
        let name = file.split(['/', '.']).next().unwrap_or_default();
        if file != "house.rs"
            && !CLOCKS
                .iter()
                .any(|(allowed, _)| allowed.trim_end_matches(".rs") == name)
        {
            wrong.extend(clocks(&file, &text));
        }
    }
    assert!(
        wrong.is_empty(),
        "wait for an event, or with `driver::until`: {wrong:#?}"
    );
}

/// The lines that sleep or measure time.
fn clocks(file: &str, text: &str) -> Vec<String> {
    const CLOCK: [&str; 4] = ["Instant::now", "SystemTime::now", ".elapsed()", "sleep("];
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| CLOCK.iter().any(|word| line.contains(word)));
    lines
        .map(|(index, line)| format!("{file}:{}: {}", index + 1, line.trim()))
        .collect()
}

#[test]
fn tests_run_git_in_one_place() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let runs = |text: &str| text.contains(concat!("Command::new(\"", "git\")"));
    assert!(runs(r#"std::process::Command::new("git").arg("init")"#));
    let files = source::files(&folder)
        .into_iter()
        .filter(|(file, text)| file != "house.rs" && runs(text));
    let wrong: Vec<_> = files.map(|(file, _)| file).collect();
    assert!(
        wrong.is_empty(),
        "use `crate::git`, which needs no configuration of this machine: {wrong:?}"
    );
}

#[test]
fn the_invariants_of_the_map_name_tests_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("src/README.md")).unwrap();
    let code: String = ["src", "tests/it"]
        .iter()
        .flat_map(|folder| source::files(&root.join(folder)))
        .map(|(_, text)| text)
        .collect();
    let named = tests_of_invariants(&map);
    assert!(named.len() > 30, "{named:?}");
    let gone: Vec<_> = named
        .iter()
        .filter(|name| !code.contains(&format!("fn {name}(")))
        .collect();
    assert!(
        gone.is_empty(),
        "src/README.md names tests that do not exist: {gone:?}"
    );
}

#[test]
fn the_map_names_files_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("src/README.md")).unwrap();
    let is_source = |name: &&str| {
        let is_file = name.contains(".rs") || name.contains('/') && name.contains('.');
        is_file && !name.starts_with('.')
    };
    let named: Vec<_> = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(is_source)
        .collect();
    assert!(named.len() > 150, "{named:?}");
    let exists = |name: &str| root.join("src").join(name).exists() || root.join(name).exists();
    let gone: Vec<_> = named.iter().filter(|name| !exists(name)).collect();
    assert!(
        gone.is_empty(),
        "src/README.md names files that do not exist: {gone:?}"
    );
}

/// The tests that the items of `## Invariants` name after `Test:` or `Tests:`.
fn tests_of_invariants(map: &str) -> Vec<String> {
    let section = map
        .split("\n## Invariants")
        .nth(1)
        .unwrap_or_default()
        .split("\n## ")
        .next()
        .unwrap_or_default();
    let tests = section.lines().filter_map(|line| {
        line.split_once("Test: ")
            .or_else(|| line.split_once("Tests: "))
    });
    tests
        .flat_map(|(_, names)| {
            names
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn is_described(source: &Source) -> bool {
    source.text.starts_with("//!") || source.text.starts_with("#![doc")
}

/// The imports that the table does not allow: where each is written, and which file defines its item.
fn forbidden(sources: &[Source], imports: &BTreeSet<Import>) -> Vec<String> {
    let table: BTreeMap<_, _> = MAY_IMPORT.into_iter().collect();
    let is_wrong = |import: &&Import| {
        let (layer, to) = (sources[import.from].layer(), &sources[import.to]);
        let allowed = table
            .get(layer)
            .unwrap_or_else(|| panic!("`{layer}` is missing from the table of imports"));
        let module = to.module.join("::");
        let within = |name: &str| module == name || module.starts_with(&format!("{name}::"));
        let is_shared = (within("text") || within("domain")) && !matches!(layer, "text" | "domain");
        to.layer() != "lib"
            && !within(layer)
            && !is_shared
            && !allowed.iter().any(|name| within(name))
    };
    let found = imports.iter().filter(is_wrong).map(|import| {
        let (from, to) = (&sources[import.from], &sources[import.to]);
        format!(
            "{} uses {} of {}",
            from.file,
            import.path.join("::"),
            to.file
        )
    });
    found.collect()
}

/// The import cycles inside each module. A module and its submodules may use each other: they are one unit.
fn circles(sources: &[Source], imports: &BTreeSet<Import>) -> Vec<Vec<String>> {
    let is_edge = |import: &&Import| {
        let (from, to) = (&sources[import.from], &sources[import.to]);
        let is_family = from.module.starts_with(&to.module) || to.module.starts_with(&from.module);
        from.layer() == to.layer() && !is_family
    };
    let edges: BTreeSet<_> = imports
        .iter()
        .filter(is_edge)
        .map(|import| (import.from, import.to))
        .collect();
    let name = |index: usize| sources[index].file.clone();
    imports::cycles(sources.len(), &edges)
        .into_iter()
        .map(|cycle| cycle.into_iter().map(name).collect())
        .collect()
}

mod on_bad_samples {
    use super::imports::imports;
    use super::source::{Source, sample};
    use super::{circles, clocks, copies, forbidden, is_described, tests_of_invariants};

    const LIB: (&str, &str) = (
        "lib.rs",
        "pub mod text; pub mod tools; pub mod server; pub mod agent;",
    );

    fn wrong(files: &[(&str, &str)]) -> Vec<String> {
        let sources = sample(&[&[LIB], files].concat());
        forbidden(&sources, &imports(&sources))
    }

    #[test]
    fn forbidden_imports_are_found_anywhere() {
        let tools = ("tools.rs", "pub struct Tool;");
        for text in [
            "use crate::tools::Tool;",
            "#[cfg(test)] mod tests {} fn f(_: crate::tools::Tool) {}",
            "fn f() { log!(\"{}\", crate::tools::Tool::NAME); }",
            "mod inner { fn f() { use crate::tools::{self, Tool}; } }",
            "use super::tools::Tool;",
        ] {
            assert!(!wrong(&[tools, ("text.rs", text)]).is_empty(), "{text}");
        }
        for text in [
            "#[cfg(test)] mod tests { use crate::tools::Tool; }",
            "//! [`crate::tools::Tool`]",
            "use std::fmt;",
        ] {
            assert_eq!(wrong(&[tools, ("text.rs", text)]), [""; 0], "{text}");
        }
    }

    #[test]
    fn several_supers_and_re_exports_are_followed() {
        let deep = ("text/a/b.rs", "use super::super::super::tools::Tool;");
        let files = [
            ("tools.rs", "pub struct Tool;"),
            ("text.rs", "mod a;"),
            ("text/a.rs", "mod b;"),
            deep,
        ];
        assert_eq!(wrong(&files), ["text/a/b.rs uses tools::Tool of tools.rs"]);
        let through = ("agent.rs", "pub mod event;");
        let event = (
            "agent/event.rs",
            "pub use crate::tools::{Kind as ToolKind};",
        );
        let server = (
            "server.rs",
            "use crate::agent::event; fn f(_: event::ToolKind) {}",
        );
        assert_eq!(
            wrong(&[("tools.rs", "pub enum Kind {}"), through, event, server]),
            ["server.rs uses agent::event::ToolKind of tools.rs"]
        );
    }

    #[test]
    fn cycles_through_the_parent_are_found() {
        let lib = ("lib.rs", "mod text;");
        let a = ("text/a.rs", "use super::B; pub struct A;");
        let b = ("text/b.rs", "pub struct B(super::a::A);");
        let found = |files: &[(&str, &str)]| {
            let sources = sample(files);
            circles(&sources, &imports(&sources))
        };
        let whole = ("text.rs", "mod a; mod b; pub use b::B; use a::A;");
        assert_eq!(found(&[lib, whole, a, b]), [["text/a.rs", "text/b.rs"]]);
        let part = ("text/a.rs", "use super::Whole; pub struct A;");
        let whole = ("text.rs", "mod a; pub struct Whole(a::A);");
        assert_eq!(found(&[lib, whole, part]), Vec::<Vec<String>>::new());
    }

    #[test]
    fn invariant_tests_are_parsed() {
        let map = "# Map\n`x`\n## Invariants\n\n- A `thing` holds. Tests: `one`, `two`.\n- More. Test: `three`.\n## Next\n- Test: `four`";
        assert_eq!(tests_of_invariants(map), ["one", "two", "three"]);
    }

    #[test]
    fn wall_clock_reads_are_found() {
        assert_eq!(
            clocks("a.rs", "ok();\n  thread::sleep(second);"),
            ["a.rs:2: thread::sleep(second);"]
        );
    }

    #[test]
    fn copies_and_undocumented_files_are_found() {
        let body = "let a = f(1, 2) + g(3);\nif a > 4 { h(a, a + 1); }\nmatch a { 5 => i(), 6 => j(7), _ => k(8, 9) }\n";
        let text = format!("impl X {{ fn long() {{\n{body}}} }}");
        let sources = sample(&[
            ("a.rs", &text),
            ("b.rs", &format!("fn other() {{ {body} }}")),
            ("c.rs", "fn f() {}"),
        ]);
        assert_eq!(
            copies::copies(&sources),
            [("a.rs:1".to_owned(), "b.rs:1".to_owned())]
        );
        assert_eq!(copies::copies(&sources[1..]), []);
        assert!(
            !is_described(&sources[2])
                && is_described(&Source::parse("d.rs", &["d"], "//! Words."))
        );
    }
}
