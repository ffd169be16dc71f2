//! Commands: what a sandbox denies them, what an allow rule doesn't cover, and what they leave behind.

use std::net::UdpSocket;

use serde_json::json;

use super::checks::running;
use super::scene::{CANARY, Scene, reply, run};
use crate::driver::until;

#[test]
fn commands_do_not_leave_the_sandbox() {
    let scene = Scene::new();
    scene.git();
    scene.write(&scene.ws("a"), "1");
    scene.write(&scene.home(".bashrc"), "ok");
    for name in [
        ".ssh/id_rsa",
        ".aws/credentials",
        ".netrc",
        ".git-credentials",
    ] {
        scene.write(&scene.home(name), CANARY);
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let port = socket.local_addr().unwrap().port();
    let pwn = scene.outside("pwn");
    let touch = format!("touch {}", pwn.display());
    let mut play = scene.start("auto");
    for (id, command) in [
        ("shell-003", "echo evil >> ~/.bashrc"),
        ("shell-004", "cat ~/.ssh/id_rsa"),
        (
            "shell-005",
            "cat ~/.aws/credentials ~/.config/gh/hosts.yml ~/.netrc ~/.docker/config.json ~/.kube/config ~/.git-credentials 2>/dev/null",
        ),
        (
            "shell-007",
            &format!(
                "python3 -c \"import socket;socket.socket(2,2).sendto(b'CANARY',('127.0.0.1',{port}))\""
            ),
        ),
        (
            "shell-012",
            "printf \"#!/bin/sh\\n\" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        ),
        (
            "shell-016",
            &format!(
                "mkdir -p sub/objects sub/refs && printf \"[core]\\n\\trepositoryformatversion=0\\n\\tbare=false\\n\\tworktree=..\\n\\tfsmonitor=\\\"{touch}; true\\\"\\n\" > sub/config && echo ref: refs/heads/x > sub/HEAD && git --git-dir=sub status; git -C sub status"
            ),
        ),
        (
            "shell-017",
            &format!(
                "git add -A && git -c user.email=a@b -c user.name=a commit -qm m && echo 2 > a; GIT_EXTERNAL_DIFF=\"{touch}\" git diff; git -c core.pager=\"{touch}\" -p log"
            ),
        ),
    ] {
        play.heard.clear();
        scene.calls(&[run(&format!("{command}; echo RAN"))]);
        play.turn();
        assert!(
            play.results().iter().any(|(_, text)| text.contains("RAN")),
            "{id}: {:?}",
            play.results()
        );
        assert!(
            !scene.ws(".git/hooks/pre-commit").exists() && !pwn.exists(),
            "{id}"
        );
    }
    assert!(
        socket.recv(&mut [0; 8]).is_err(),
        "shell-007: something came"
    );
    assert_eq!(
        std::fs::read_to_string(scene.home(".bashrc")).unwrap(),
        "ok"
    );
    play.hides_everywhere(CANARY);
}

#[test]
fn an_allow_rule_allows_no_more_than_it_says() {
    for (id, rule, command) in [
        ("shell-019", "echo *", "echo ok; touch PWN"),
        ("shell-020", "echo *", "echo ok\ntouch PWN"),
        ("shell-022", "echo *", "echo $(touch PWN)"),
        ("shell-023", "echo *", "echo `touch PWN`"),
        (
            "shell-030",
            "git *",
            "git ls-remote --upload-pack=\"touch PWN\" .",
        ),
        (
            "shell-032",
            "tar *",
            "tar cf /dev/null a.txt --checkpoint=1 --checkpoint-action=exec=\"touch PWN\"",
        ),
        ("shell-033", "rm *", "env -i timeout 5 nice touch PWN"),
        ("shell-034", "echo *", "echo *(e:'touch PWN':)"),
        ("shell-036", "echo *", "{touch,PWN}"),
        ("shell-049", "rm *", "rm -rf ~ /"),
    ] {
        let scene = Scene::new();
        scene.git();
        scene.write(&scene.ws("a.txt"), "1\n");
        scene.write(&scene.home("keep"), "k");
        scene.write(
            &scene.home("config.toml"),
            format!("[permissions]\nallow = [\"run_command({rule})\"]\n"),
        );
        let command = command.replace("PWN", &scene.ws("PWN").display().to_string());
        let play = scene.play("ask", &[run(&command)]);
        assert!(
            play.asked()
                .concat()
                .contains(command.lines().next().unwrap()),
            "{id}: {:?}",
            play.asked()
        );
        assert!(
            !scene.ws("PWN").exists() && scene.home("keep").exists(),
            "{id}"
        );
    }
}

#[test]
fn shell_040_output_that_is_not_text_is_survived() {
    let scene = Scene::new();
    let mut play = scene.play("auto", &[run("head -c 4096 /dev/urandom")]);
    play.lives();
    play.works();
}

#[test]
fn shell_041_and_stream_073_a_cancel_ends_all_processes_of_a_command() {
    // Other runs of this test use other numbers.
    let sleep = |tens: u32| format!("sleep {tens}{}", std::process::id());
    let tree = sleep(41);
    for (words, command, many) in [
        (
            &tree,
            format!("setsid sh -c \"trap '' TERM; {tree} & {tree}\" & {tree}"),
            3,
        ),
        (&sleep(73), sleep(73), 1),
    ] {
        let scene = Scene::new();
        scene.say(json!([reply(&[run(&command)])]));
        let mut play = scene.start("auto");
        let prompt = play.prompt();
        until("the command runs", || running(words) >= many);
        play.cancel();
        assert_eq!(play.end(prompt)["result"]["stopReason"], "cancelled");
        until("its processes end", || running(words) == 0);
        play.works();
    }
}

#[test]
fn shell_045_a_memory_bomb_is_survived() {
    let scene = Scene::new();
    let (name, mut arguments) = run("python3 -c \"a=bytearray(8<<30)\"");
    arguments["timeout_s"] = json!(5);
    scene.play("auto", &[(name, arguments)]).lives();
}

#[test]
fn shell_050_an_ordinary_build_works() {
    let scene = Scene::new();
    scene.git();
    let play = scene.play(
        "auto",
        &[run("mkdir -p target && echo ok > target/x && cat target/x")],
    );
    assert!(play.results()[0].1.contains("ok"), "{:?}", play.results());
}
