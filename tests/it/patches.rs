//! git's own diffs of random changes: a patch restores the folder to the state git diffed, or changes
//! nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::json;

use crate::driver::{World, call};
use crate::git::{git, printed};

const CASES: u64 = 80;

/// Lines that look like parts of a diff, and lines that occur repeatedly.
const LINES: [&str; 12] = [
    "-- x",
    "++ y",
    "-- ",
    "- a/f.txt",
    "@@ -1 +1 @@",
    "diff --git a/f.txt b/f.txt",
    "*** Delete File: f.txt",
    "*** End Patch",
    "\\ No newline at end of file",
    "}",
    "",
    "\tx",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % limit
    }

    fn line(&mut self) -> String {
        let odd = self.below(3) == 0;
        let number = self.below(100_000);
        if odd {
            LINES[number % LINES.len()].to_owned()
        } else {
            format!("line {number}")
        }
    }

    fn text(&mut self, lines: &[String], ending: &str) -> String {
        let text = lines.join(ending);
        if lines.is_empty() || self.below(4) == 0 {
            text
        } else {
            text + ending
        }
    }

    /// Changes some of the files of a folder.
    fn change(&mut self, folder: &Path, files: &BTreeMap<String, (Vec<String>, &str)>) {
        for (name, (lines, ending)) in files {
            let mut lines = lines.clone();
            match self.below(8) {
                0 => fs::remove_file(folder.join(name)).unwrap(),
                1 => {}
                kind => {
                    for _ in 0..self.below(3) {
                        let at = self.below(lines.len() + 1);
                        match self.below(3) {
                            0 => lines.insert(at, self.line()),
                            1 if at < lines.len() => lines[at] = self.line(),
                            _ => drop(lines.drain(at..(at + 2).min(lines.len()))),
                        }
                    }
                    let text = self.text(&lines, ending);
                    fs::write(folder.join(name), text).unwrap();
                    if kind == 2 {
                        fs::rename(folder.join(name), folder.join(format!("moved {name}")))
                            .unwrap();
                    }
                }
            }
        }
        if self.below(3) == 0 {
            let lines: Vec<String> = (0..self.below(4)).map(|_| self.line()).collect();
            let text = self.text(&lines, "\n");
            fs::write(folder.join("new \u{fc}.txt"), text).unwrap();
        }
    }
}

/// The contents of a folder's subfolders, by name.
fn files(root: &Path) -> BTreeMap<String, BTreeMap<String, String>> {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect::<Vec<_>>()
    };
    let text = |folder: &str, name: String| {
        let text = fs::read_to_string(root.join(folder).join(&name)).unwrap();
        (name, text)
    };
    let folders = names(root)
        .into_iter()
        .filter(|name| name.starts_with("case"));
    folders
        .map(|folder| {
            let files = names(&root.join(&folder))
                .into_iter()
                .map(|name| text(&folder, name))
                .collect();
            (folder, files)
        })
        .collect()
}

#[test]
fn diffs_that_git_writes_are_applied_as_git_would_or_not_at_all() {
    let repository = tempfile::tempdir().unwrap();
    let root = repository.path();
    git(root, &["init", "--quiet"]);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut cases = Vec::new();
    for case in 0..CASES {
        let folder = root.join(format!("case{case}"));
        fs::create_dir(&folder).unwrap();
        let mut before = BTreeMap::new();
        for name in ["f.txt", "two words.md", "\u{e9}.sql"] {
            let ending = if dice.below(3) == 0 { "\r\n" } else { "\n" };
            let lines: Vec<String> = (0..3 + dice.below(12)).map(|_| dice.line()).collect();
            fs::write(folder.join(name), dice.text(&lines, ending)).unwrap();
            before.insert(name.to_owned(), (lines, ending));
        }
        cases.push(before);
    }
    let commit = ["commit", "--quiet", "--message", "before"];
    git(root, &["add", "."]);
    git(root, &commit);
    let old = files(root);
    for (case, before) in cases.iter().enumerate() {
        dice.change(&root.join(format!("case{case}")), before);
    }
    git(root, &["add", "--all"]);
    let new = files(root);
    let calls: Vec<_> = (0..CASES)
        .map(|case| {
            let (folder, context) = (format!("case{case}"), format!("-U{}", dice.below(5)));
            let renames = ["-M", "--no-renames"][dice.below(2)];
            let diff = printed(
                root,
                &["diff", "--cached", &context, renames, "HEAD", "--", &folder],
            );
            call(&folder, "apply_patch", json!({ "patch": diff }))
        })
        .collect();
    let mut script: Vec<_> = calls.chunks(10).map(|calls| json!(calls)).collect();
    script.push(json!([{ "text": "Done." }]));

    let world = World::new(json!(script));
    for (folder, texts) in &old {
        for (name, text) in texts {
            world.write(&format!("{folder}/{name}"), text);
        }
    }
    let mut client = world.client();
    let session = client.session(&world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    let prompt = client.prompt(&session, "go");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let (now, mut applied, mut wrong) = (files(&world.path()), 0, Vec::new());
    for (case, call) in calls.iter().enumerate() {
        let folder = format!("case{case}");
        if now[&folder] == new[&folder] {
            applied += 1;
        } else if now[&folder] != old[&folder] {
            wrong.push(format!(
                "{call}\nnow {:?}\nnew {:?}",
                now[&folder], new[&folder]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(applied >= 60, "{applied} of {CASES}");
}

/// The results of these calls, as the model received them, after all of them ran without questions.
fn results(world: &World) -> Vec<String> {
    let mut client = world.client();
    let session = client.session(world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    let prompt = client.prompt(&session, "go");
    assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
    let requests = world.rehearsal().requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn lines_to_add_without_context_are_not_put_where_their_numbers_do_not_say() {
    let text = "import re\n\nx = 1\n";
    let added = ["+import os\n", "+import os\n+import sys\n"];
    let headers = [
        "@@ -1,3 +1,4 @@",
        "@@ -1 +1,2 @@",
        "@@ -0,0 +1 @@",
        "@@ -1,0 +2,2 @@",
        "@@ -1,3 +1,4 @@ import re",
    ];
    let mut patches = Vec::new();
    for (header, lines) in headers
        .iter()
        .flat_map(|it| added.map(|lines| (*it, lines)))
    {
        patches.push(format!("--- a/NAME\n+++ b/NAME\n{header}\n{lines}"));
        patches.push(format!(
            "*** Begin Patch\n*** Update File: NAME\n{header}\n{lines}*** End Patch"
        ));
    }
    let name = |index: usize| format!("{index}.py");
    let calls: Vec<_> = patches
        .iter()
        .enumerate()
        .map(|(index, patch)| {
            let patch = patch.replace("NAME", &name(index));
            call(&name(index), "apply_patch", json!({ "patch": patch }))
        })
        .collect();
    let world = World::new(json!([calls, [{ "text": "Done." }]]));
    for index in 0..patches.len() {
        world.write(&name(index), text);
    }
    let results = results(&world);
    for (index, (patch, result)) in patches.iter().zip(results).enumerate() {
        assert_eq!(world.read(&name(index)), text, "{patch}");
        assert!(result.contains("no context"), "{patch}\n{result}");
    }
}

#[test]
fn folders_named_like_the_prefixes_of_git_are_folders() {
    let patch =
        |old: &str, new: &str| format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-x = 1\n+x = 2\n");
    let calls = json!([
        call(
            "c1",
            "apply_patch",
            json!({ "patch": patch("a/main.py", "a/main.py") })
        ),
        call(
            "c2",
            "apply_patch",
            json!({ "patch": patch("b/other.py\t2026-01-01", "b/other.py\t2026-01-02") })
        ),
        call(
            "c3",
            "apply_patch",
            json!({ "patch": patch("a/last.py", "b/last.py") })
        ),
    ]);
    let world = World::new(json!([calls, [{ "text": "Done." }]]));
    let names = [
        "main.py",
        "a/main.py",
        "other.py",
        "b/other.py",
        "last.py",
        "a/last.py",
    ];
    for name in names {
        world.write(name, "x = 1\n");
    }
    let results = results(&world);
    let changed = names
        .into_iter()
        .filter(|name| world.read(name) == "x = 2\n");
    assert_eq!(
        changed.collect::<Vec<_>>(),
        ["a/main.py", "b/other.py", "last.py"],
        "{results:?}"
    );
}

#[test]
fn a_patch_that_an_edit_quotes_is_not_applied() {
    let quoted = "*** Begin Patch\n*** Delete File: keep.txt\n*** End Patch";
    let edit = json!({ "file_path": "docs.md", "old_string": quoted, "new_string": "a patch" });
    let world = World::new(json!([[call("c1", "edit_file", edit)], [{ "text": "Done." }]]));
    world.write("docs.md", &format!("Such as:\n{quoted}\n"));
    world.write("keep.txt", "kept\n");
    let results = results(&world);
    assert_eq!(world.read("keep.txt"), "kept\n", "{results:?}");
    assert_eq!(world.read("docs.md"), "Such as:\na patch\n", "{results:?}");
}

#[test]
fn an_edit_of_an_expected_number_of_places_changes_as_many_or_none() {
    let edit = |count: u32| json!({ "file_path": format!("{count}.py"), "old_string": "x", "new_string": "y", "expected_replacements": count });
    let calls: Vec<_> = (1..=5)
        .map(|count| call(&format!("c{count}"), "replace", edit(count)))
        .collect();
    let world = World::new(json!([calls, [{ "text": "Done." }]]));
    for count in 1..=5 {
        world.write(&format!("{count}.py"), "x\nx\nx\n");
    }
    let results = results(&world);
    for count in 1..=5 {
        let expected = if count == 3 { "y\ny\ny\n" } else { "x\nx\nx\n" };
        assert_eq!(world.read(&format!("{count}.py")), expected, "{results:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_patch_that_replaces_a_link_leaves_its_target_alone() {
    let patch =
        "*** Begin Patch\n*** Delete File: link.md\n*** Add File: link.md\n+new\n*** End Patch";
    let world = World::new(json!([
        [call("c1", "apply_patch", json!({ "patch": patch }))],
        [{ "text": "Done." }]
    ]));
    world.write("target.md", "old\n");
    std::os::unix::fs::symlink("target.md", world.path().join("link.md")).unwrap();
    let results = results(&world);
    assert_eq!(world.read("target.md"), "old\n", "{results:?}");
    assert!(results[0].contains("is a symbolic link"), "{results:?}");
}
