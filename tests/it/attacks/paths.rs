//! Paths that lead out of the workspace, in every spelling.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::checks::sockets;
use super::scene::{CANARY, Scene, read, reply, write};

#[test]
fn files_outside_are_not_read_by_any_spelling() {
    let scene = Scene::new();
    std::fs::create_dir(scene.ws("src")).unwrap();
    scene.write(&scene.home(".ssh/id_rsa"), CANARY);
    symlink(scene.outside("secret.txt"), scene.ws("notes.txt")).unwrap();
    let secret = scene.outside("secret.txt").display().to_string();
    let mut play = scene.start("ask");
    for (id, path) in [
        ("path-001", "../ws-evil/secret.txt"),
        ("path-002", secret.as_str()),
        ("path-004", "/etc/passwd"),
        ("path-006", &format!("/proc/self/root{secret}")),
        ("path-007", "/proc/self/cwd/../ws-evil/secret.txt"),
        ("path-011", "notes.txt"),
    ] {
        play.heard.clear();
        scene.calls(&[read(path)]);
        play.turn();
        assert_eq!(play.results().len(), 1, "{id}");
        play.fails_with("");
    }
    play.hides("root:x:0:0");
    play.hides_everywhere(CANARY);
}

#[test]
fn path_019_a_write_through_a_hard_link_leaves_the_other_name() {
    let scene = Scene::new();
    std::fs::hard_link(scene.outside("secret.txt"), scene.ws("h.txt")).unwrap();
    scene.say(json!([reply(&[read("h.txt")])]));
    scene.play("auto", &[write("h.txt", "PWN")]);
    assert_eq!(
        std::fs::read_to_string(scene.outside("secret.txt")).unwrap(),
        CANARY
    );
}

#[test]
fn path_022_a_parent_that_is_swapped_during_2000_writes_leads_nowhere() {
    let scene = Scene::new();
    std::fs::create_dir(scene.ws("race_real")).unwrap();
    let (real, link, name) = (
        scene.ws("race_real"),
        scene.world.path().join("link"),
        scene.ws("race"),
    );
    symlink(scene.outside(""), &link).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for from in [&real, &link] {
                    // The attacker may make a round fail; the next one works again.
                    let _ =
                        std::fs::rename(from, &name).and_then(|()| std::fs::rename(&name, from));
                }
            }
        });
        let mut play = scene.start("auto");
        // A hundred per turn, so that no limit ends it.
        for _ in 0..20 {
            scene.calls(&vec![write("race/w.txt", "p"); 100]);
            play.turn();
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(!scene.outside("w.txt").exists());
}

#[test]
fn path_024_a_workspace_replaced_by_a_link_is_not_followed() {
    let scene = Scene::new();
    scene.calls(&[read("secret.txt")]);
    let mut play = scene.start("auto");
    std::fs::rename(
        scene.world.path().join("ws"),
        scene.world.path().join("ws.moved"),
    )
    .unwrap();
    symlink(scene.outside(""), scene.world.path().join("ws")).unwrap();
    play.turn();
    play.hides_everywhere(CANARY);
}

#[test]
fn path_027_an_empty_path_is_an_error() {
    let scene = Scene::new();
    let mut play = scene.play("auto", &[write("", "x")]);
    play.fails_with("");
    play.lives();
}

#[test]
fn path_029_another_case_of_a_protected_folder_is_protected_too() {
    let scene = Scene::new();
    scene.git();
    scene.play("auto", &[write(".GIT/hooks/pre-commit", "#!/bin/sh")]);
    assert!(
        !scene.ws(".git/hooks/pre-commit").exists() && !scene.ws(".GIT/hooks/pre-commit").exists()
    );
}

/// Only Windows would interpret them; they are harmless elsewhere.
#[test]
fn path_031_to_033_names_of_windows_reach_nothing() {
    let scene = Scene::new();
    std::fs::create_dir(scene.ws(".vscode")).unwrap();
    let calls = [
        write(".vscode::$INDEX_ALLOCATION/settings.json", "{}"),
        read("\\\\attacker\\share\\x"),
        read("\\??\\UNC\\attacker\\share\\x"),
    ];
    let play = scene.play("ask", &calls);
    assert!(!scene.ws(".vscode/settings.json").exists());
    let model = scene
        .world
        .model
        .base_url()
        .trim_end_matches("/v1")
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let model = format!(":{:04X}", model.parse::<u16>().unwrap());
    let strangers: Vec<_> = sockets(play.program.pid())
        .into_iter()
        .filter(|line| !line.contains(&model))
        .collect();
    assert_eq!(strangers, Vec::<String>::new());
}

#[test]
fn path_035_and_037_lists_and_searches_stay_inside() {
    let scene = Scene::new();
    symlink(scene.outside(""), scene.ws("link")).unwrap();
    let play = scene.play(
        "auto",
        &[
            ("list_files", json!({ "path": ".", "depth": 10 })),
            ("grep", json!({ "pattern": "CANARY" })),
            ("grep", json!({ "pattern": "CANARY", "path": "../**" })),
        ],
    );
    assert_eq!(play.results().len(), 3);
    play.hides_everywhere(CANARY);
}
