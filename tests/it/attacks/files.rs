//! File systems that are full, slow, unusual or changed by another program: nothing is torn, lost or hung.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::scene::{Scene, edit, read, reply, write};
use super::skip;

/// Runs a system program; returns why it failed.
fn system(program: &str, arguments: &[&str]) -> Result<(), String> {
    let done = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let said = || {
        format!(
            "{program}: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        )
    };
    if done.status.success() {
        Ok(())
    } else {
        Err(said())
    }
}

/// A file system mounted over a folder. Dropping it unmounts it.
struct Mount(PathBuf);

impl Mount {
    fn over(folder: &Path, options: &[&str]) -> Result<Self, String> {
        system("mount", &[options, &[folder.to_str().unwrap()]].concat())?;
        Ok(Self(folder.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _gone = system("umount", &["-l", self.0.to_str().unwrap()]);
    }
}

#[test]
fn fs_fault_002_a_full_disk_leaves_the_old_file() {
    let scene = Scene::new();
    let _mount = match Mount::over(&scene.ws(""), &["-t", "tmpfs", "-o", "size=2m", "tmpfs"]) {
        Ok(mount) => mount,
        Err(why) => return skip("fs-fault-002", &why),
    };
    scene.write(&scene.ws("a.txt"), "original\n");
    let full = std::fs::write(scene.ws("filler"), vec![b'f'; 4 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    scene.say(json!([reply(&[read("a.txt")])]));
    scene
        .play("auto", &[write("a.txt", &"x".repeat(100_000))])
        .fails_with("space");
    assert_eq!(
        std::fs::read_to_string(scene.ws("a.txt")).unwrap(),
        "original\n"
    );
}

/// Really writes one byte at a time to files of the workspace: `strace` would only pretend to.
const SHORT_WRITES: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t write(int fd, const void *bytes, size_t length) {
    const char *folder = getenv("TANDEM_TEST_SHORT_WRITES");
    char link[64], path[4096] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (length > 1 && readlink(link, path, sizeof path - 1) > 0 && !strncmp(path, folder, strlen(folder))) length = 1;
    return syscall(SYS_write, fd, bytes, length);
}
"#;

#[test]
fn fs_fault_008_short_writes_write_everything() {
    let scene = Scene::new();
    let (source, library) = (scene.home("short.c"), scene.home("short.so"));
    scene.write(&source, SHORT_WRITES);
    let compiled = system(
        "cc",
        &[
            "-shared",
            "-fPIC",
            "-o",
            library.to_str().unwrap(),
            source.to_str().unwrap(),
        ],
    );
    if let Err(why) = compiled {
        return skip("fs-fault-008", &why);
    }
    scene.calls(&[write("new.txt", "new content\n")]);
    let mut play = scene.start_with("auto", |command| {
        command
            .env("LD_PRELOAD", &library)
            .env("TANDEM_TEST_SHORT_WRITES", scene.ws(""));
    });
    play.turn();
    assert_eq!(
        std::fs::read_to_string(scene.ws("new.txt")).unwrap(),
        "new content\n"
    );
    play.lives();
}

#[test]
fn fs_fault_009_a_read_only_file_system_is_reported() {
    let scene = Scene::new();
    scene.write(&scene.ws("a.txt"), "original\n");
    let (folder, mount) = (scene.ws(""), scene.ws("").display().to_string());
    let mounted = Mount::over(&folder, &["--bind", &mount]);
    let locked = system("mount", &["-o", "remount,bind,ro", &mount]);
    let _mount = match mounted.and_then(|mount| locked.map(|()| mount)) {
        Ok(mount) => mount,
        Err(why) => return skip("fs-fault-009", &why),
    };
    scene.say(json!([reply(&[read("a.txt")])]));
    scene
        .play("auto", &[write("a.txt", "new content\n")])
        .fails_with("read-only");
    assert_eq!(
        std::fs::read_to_string(scene.ws("a.txt")).unwrap(),
        "original\n"
    );
}

#[test]
fn encodings_and_line_endings_survive_an_edit() {
    let scene = Scene::new();
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let (before, after) = (utf16("\u{feff}hi there\r\n"), utf16("\u{feff}hi you\r\n"));
    for (id, old, new, bytes, expected) in [
        (
            "fs-fault-015",
            "there",
            "you",
            "\u{feff}hi there\r\n".as_bytes(),
            ["\u{feff}hi you\r\n".as_bytes()].as_slice(),
        ),
        ("fs-fault-016", "there", "you", &before, &[&before, &after]),
        (
            "fs-fault-019",
            "c",
            "C",
            b"a\r\nb\nc\r\n",
            &[b"a\r\nb\nC\r\n"],
        ),
    ] {
        let name = format!("{id}.txt");
        scene.write(&scene.ws(&name), bytes);
        scene.play("auto", &[edit(&name, old, new)]);
        let found = std::fs::read(scene.ws(&name)).unwrap();
        assert!(expected.contains(&found.as_slice()), "{id}: {found:?}");
    }
}

#[test]
fn fs_fault_021_a_file_that_a_person_changed_since_is_not_overwritten() {
    let scene = Scene::new();
    scene.write(&scene.ws("a.txt"), "original\n");
    let mut late = reply(&[write("a.txt", "model version\n")]);
    late.as_array_mut()
        .unwrap()
        .insert(0, json!({ "gate": "typed" }));
    scene.say(json!([reply(&[read("a.txt")]), late, [{ "text": "FINAL_OK" }]]));
    let mut play = scene.start("auto");
    let prompt = play.prompt();
    scene
        .world
        .wait(scene.world.rehearsal().waiting_at("typed"));
    scene.write(&scene.ws("a.txt"), "user typed this\n");
    scene.world.rehearsal().open("typed");
    play.end(prompt);
    play.fails_with("changed");
    assert_eq!(
        std::fs::read_to_string(scene.ws("a.txt")).unwrap(),
        "user typed this\n"
    );
}

#[test]
fn fs_fault_022_a_file_with_unsaved_text_is_not_written_behind_the_editor() {
    let scene = Scene::new();
    scene.write(&scene.ws("a.txt"), "original\n");
    scene.calls(&[write("a.txt", "model version\n")]);
    let mut play = scene.start("auto");
    let uri = format!("file://{}", scene.ws("a.txt").display());
    play.client.open(&uri, "original\n");
    let change = json!({ "textDocument": { "uri": uri, "version": 2 }, "contentChanges": [{ "text": "unsaved user text\n" }] });
    play.client.notify("textDocument/didChange", change);
    play.turn();
    assert_eq!(
        std::fs::read_to_string(scene.ws("a.txt")).unwrap(),
        "original\n"
    );
}

#[test]
fn fs_fault_027_a_search_in_a_huge_folder_is_bounded_and_can_be_cancelled() {
    let scene = Scene::new();
    std::fs::File::create(scene.ws("big"))
        .and_then(|file| file.set_len(5 << 30))
        .unwrap();
    for number in 0..100_000 {
        let folder = scene.ws(&format!("many/{}", number / 1000));
        if number % 1000 == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::write(folder.join(format!("{number}.txt")), "hay\n").unwrap();
    }
    scene.say(json!([reply(&[("grep", json!({ "pattern": "needle" }))]), [{ "gate": "never" }]]));
    let mut play = scene.start("auto");
    let prompt = play.prompt();
    play.client
        .find(|message| message["params"]["update"]["status"] == "in_progress");
    play.cancel();
    assert_eq!(play.end(prompt)["result"]["stopReason"], "cancelled");
    assert!(
        play.program.peak_memory() <= 200 << 20,
        "{}",
        play.program.peak_memory()
    );
}

#[test]
fn fs_fault_028_no_pattern_takes_forever() {
    let scene = Scene::new();
    scene.write(&scene.ws("r.txt"), "a".repeat(50_000));
    let play = scene.play("auto", &[("grep", json!({ "pattern": "(a+)+$|(a|a)*b" }))]);
    assert_eq!(play.results().len(), 1);
}

#[test]
fn fs_fault_029_a_folder_that_cannot_be_read_does_not_end_a_search() {
    let scene = Scene::new();
    scene.write(&scene.ws("ok.txt"), "needle");
    std::fs::create_dir(scene.ws("locked")).unwrap();
    let lock = |mode| {
        std::fs::set_permissions(scene.ws("locked"), std::fs::Permissions::from_mode(mode))
            .unwrap();
    };
    lock(0o000);
    scene.calls(&[("grep", json!({ "pattern": "needle" }))]);
    let mut play = scene.start_with("auto", crate::program::without_override);
    play.turn();
    lock(0o700);
    assert!(
        play.results()[0].1.contains("ok.txt"),
        "{:?}",
        play.results()
    );
}
