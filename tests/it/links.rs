//! Symbolic links in patches: deleting or moving a link leaves its target alone, and writing through one writes the
//! target or is refused.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::driver::{Client, World, call};

/// A link by its target; `OUT` is a folder outside the workspace.
const LINKS: [&str; 9] = [
    "file",
    "./file",
    "folder",
    "gone",
    "gone/file",
    "OUT/secret",
    "OUT",
    "OUT/gone",
    "other",
];

/// Where a link is.
const PLACES: [&str; 3] = ["link", "folder/link", "folder/../link"];

struct Scene {
    world: World,
    out: tempfile::TempDir,
    leads: PathBuf,
}

impl Scene {
    /// A link in a workspace whose model sends this patch; `LINK` in it is the link's name.
    fn new(name: &'static str, leads: &str, patch: &str) -> Self {
        let out = tempfile::tempdir().unwrap();
        let patch = patch.replace("LINK", name);
        let patch = format!("*** Begin Patch\n{patch}*** End Patch");
        let world = World::new(json!([
            [call("c1", "apply_patch", json!({ "patch": patch }))],
            [{ "text": "Done." }]
        ]));
        for file in ["file", "folder/file"] {
            world.write(file, "old\n");
        }
        std::fs::write(out.path().join("secret"), "old\n").unwrap();
        symlink("file", world.path().join("other")).unwrap();
        let leads = PathBuf::from(leads.replace("OUT", out.path().to_str().unwrap()));
        symlink(&leads, world.path().join(name)).unwrap();
        Self { world, out, leads }
    }

    /// Runs the turn; returns the results the model received, and the session.
    fn play(&self) -> (Client, String, String) {
        let mut client = self.world.client();
        let session = client.session(&self.world);
        client.call(
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "auto" }),
        );
        let prompt = client.prompt(&session, "go");
        assert_eq!(client.answer(prompt)["result"]["stopReason"], "end_turn");
        let last = self.world.rehearsal().requests().last().unwrap()["messages"].clone();
        let messages = last.as_array().unwrap().clone();
        let told = messages
            .iter()
            .find(|message| message["role"] == "tool")
            .unwrap()["content"]
            .to_string();
        (client, session, told)
    }

    fn leads(&self, name: &str) -> Option<PathBuf> {
        std::fs::read_link(self.world.path().join(name)).ok()
    }

    /// Whatever the link can resolve to is unchanged.
    fn check_targets(&self, what: &str) {
        for file in ["file", "folder/file"] {
            assert_eq!(self.world.read(file), "old\n", "{what}");
        }
        assert_eq!(self.leads("other").as_deref(), Some(Path::new("file")));
        let names = std::fs::read_dir(self.out.path()).unwrap().count();
        let secret = std::fs::read_to_string(self.out.path().join("secret")).unwrap();
        assert_eq!((names, &*secret), (1, "old\n"), "{what}");
    }
}

fn review(client: &mut Client, session: &str, action: &str) -> Value {
    client.call(
        "_tandem/review",
        json!({ "sessionId": session, "action": action }),
    )
}

#[test]
fn links_are_deleted_and_moved_themselves() {
    let actions = [
        ("*** Delete File: LINK\n", None),
        ("*** Update File: LINK\n*** Move to: moved\n", Some("moved")),
        (
            "*** Update File: LINK\n*** Move to: new/folder/moved\n",
            Some("new/folder/moved"),
        ),
    ];
    for name in PLACES {
        for leads in LINKS {
            for (patch, to) in actions {
                let scene = Scene::new(name, leads, patch);
                let (mut client, session, told) = scene.play();
                let what = format!("{name} -> {leads}: {patch}: {told}");
                for _ in 0..2 {
                    assert_eq!(scene.leads(name), None, "{what}");
                    let moved = to.and_then(|to| scene.leads(to));
                    assert_eq!(moved, to.map(|_| scene.leads.clone()), "{what}");
                    scene.check_targets(&what);
                    let undone = review(&mut client, &session, "undo");
                    assert_eq!(undone["result"]["left"], json!([]), "{what}: {undone}");
                    assert_eq!(scene.leads(name), Some(scene.leads.clone()), "{what}");
                    assert!(!scene.world.path().join("new").exists(), "{what}");
                    assert_eq!(scene.leads("moved"), None, "{what}");
                    scene.check_targets(&what);
                    let redone = review(&mut client, &session, "redo");
                    assert_eq!(redone["result"]["left"], json!([]), "{what}: {redone}");
                }
            }
        }
    }
}

#[test]
fn what_writes_through_a_link_writes_its_target_or_is_refused() {
    let actions = [
        "*** Update File: LINK\n@@\n-old\n+new\n",
        "*** Add File: LINK\n+new\n",
        "*** Update File: LINK\n*** Move to: moved\n@@\n-old\n+new\n",
    ];
    for name in PLACES {
        for leads in LINKS {
            for patch in actions {
                let scene = Scene::new(name, leads, patch);
                let (_client, _session, told) = scene.play();
                let what = format!("{name} -> {leads}: {patch}: {told}");
                assert_eq!(scene.leads(name), Some(scene.leads.clone()), "{what}");
                assert!(!scene.world.path().join("moved").exists(), "{what}");
                if leads.starts_with("OUT") {
                    scene.check_targets(&what);
                }
                let is_update = !patch.contains("Move") && patch.contains("Update");
                let is_file = scene.world.path().join(name).is_file();
                if is_update && is_file && !leads.starts_with("OUT") {
                    let now = std::fs::read_to_string(scene.world.path().join(name));
                    assert_eq!(now.unwrap(), "new\n", "{what}");
                }
            }
        }
    }
}

/// All effects of one patch on a link and on files are undone together; a link with a protected name requires approval.
#[test]
fn links_and_files_go_together() {
    let patch = "*** Delete File: LINK\n*** Update File: file\n@@\n-old\n+new\n*** Delete File: folder/file\n";
    let scene = Scene::new("link", "folder", patch);
    let (mut client, session, told) = scene.play();
    assert_eq!(scene.leads("link"), None, "{told}");
    assert_eq!(scene.world.read("file"), "new\n");
    assert!(!scene.world.path().join("folder/file").exists());
    let undone = review(&mut client, &session, "undo");
    assert_eq!(undone["result"]["left"], json!([]), "{undone}");
    assert_eq!(scene.leads("link"), Some(PathBuf::from("folder")));
    scene.check_targets("both");

    let scene = Scene::new("AGENTS.md", "gone", "*** Delete File: LINK\n");
    let mut client = scene.world.client();
    let session = client.session(&scene.world);
    client.call(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    let prompt = client.prompt(&session, "go");
    let question = client.next("session/request_permission");
    assert_eq!(
        question["params"]["toolCall"]["title"],
        "Delete AGENTS.md (a link to gone) (AGENTS.md is protected because other programs load or run it)"
    );
    crate::driver::choose(&mut client, &question, "reject_once");
    client.answer(prompt);
    assert_eq!(scene.leads("AGENTS.md"), Some(PathBuf::from("gone")));
}
