//! Lines that remove the workspace, however they reach or spell it, and everyday lines that do not.

use super::unrelated::UNRELATED;
use super::*;

/// What removes `{}`.
const COMMANDS: [&str; 7] = [
    "rm -rf {}",
    "rm -f --recursive -- {}",
    "/bin/rm -R {}",
    "sudo rm -rf {}",
    "mv {} /tmp",
    "mv -t /tmp {}",
    "rimraf {}",
];

/// Ways to the workspace: what stands before the command, and the workspace as it is named there.
const WAYS: [(&str, &str); 32] = [
    ("", "../app"),
    ("", "../../src"),
    ("", "/home/me/src/app/"),
    ("cd .. && ", "app"),
    ("cd ..; ", "./app"),
    ("cd ..\n", "app"),
    ("cd -P -- .. && ", "app"),
    ("cd .. && cd .. && ", "src/app"),
    ("cd ../x && ", "../app"),
    ("cd ../x && cd y && ", "../../app"),
    ("cd sub && ", "../../app"),
    ("cd a && cd b && ", "../../../app"),
    ("cd sub/../.. && ", "app"),
    ("cd /home/me/src && ", "app"),
    ("cd /home/me/x && ", "../src"),
    ("cd / && ", "home/me/src/app"),
    ("cd && ", "src/app"),
    ("cd ~/src && ", "app"),
    ("cd \"$OLDPWD\" && ", "app"),
    ("pushd .. && ", "app"),
    ("pushd ../x && popd && cd ..; ", "app"),
    ("chdir .. && ", "app"),
    ("builtin cd .. && ", "app"),
    ("for i in 1 2; do cd ..; done; ", "src/app"),
    ("f() { cd ..; }; f; ", "app"),
    ("env -C .. ", "app"),
    ("env -C.. ", "app"),
    ("env --chdir=.. ", "app"),
    ("", "$PWD"),
    ("cd .. && ", "$PWD/app"),
    ("", "~/src/app"),
    ("", "$HOME"),
];

/// What runs a line: `{}` is the line itself, `%` the line as a word, `@` the line as text of another language.
const WRAPPERS: [&str; 33] = [
    "{}",
    "make && {}",
    "({})",
    "{ {}; }",
    "if true; then {}; fi",
    "echo \"$({})\"",
    "diff <({}) x",
    "sh -c %",
    "bash -lc %",
    "/bin/bash -e -c % x",
    "sudo timeout 5 sh -c %",
    "find . -maxdepth 0 -exec sh -c % ';'",
    "eval %",
    "trap % EXIT",
    "alias x=%; x",
    "bash <<'E'\n{}\nE",
    "sh -s <<< %",
    "echo % | sh",
    "echo % | sudo bash",
    "echo % | xargs -I_ sh -c _",
    "cat > x.sh <<'E'\n{}\nE\nsh x.sh",
    "source <(echo %)",
    "x=%; $x",
    "x=%; eval \"$x\"",
    "X=% sh -c '$X'",
    "git -c alias.x='!{}' x",
    "python3 -c 'import os; os.system(@)'",
    "python3 - <<'E'\nimport os\nos.system(@)\nE",
    "perl -e 'system(@)'",
    "ruby -e 'system @'",
    "node -e 'require(\"child_process\").execSync(@)'",
    "awk 'BEGIN { system(@) }'",
    "npm exec -c %",
];

fn line(command: &str, undo: Undo) -> CommandLine {
    CommandLine {
        command: command.into(),
        dialect: Dialect::Posix,
        cwd: "/home/me/src/app".into(),
        sandboxed: true,
        network: false,
        localhost: true,
        undo,
    }
}

/// Whether a line requires approval although undo covers everything, in a workspace with two folders.
fn is_cautious(command: &str) -> bool {
    let roots = ["/home/me/src/app".into(), "/srv/other".into()];
    empties(&line(command, Undo::Everything), &roots)
}

fn wrapped(wrapper: &str, line: &str) -> String {
    let text = format!("\"{}\"", line.replace('"', "\\\"").replace('\n', "\\n"));
    wrapper
        .replace('%', &shell::quoted(&[line]))
        .replace('@', &text)
        .replace("{}", line)
}

#[test]
fn removing_the_workspace_requires_approval_however_it_is_spelled() {
    let mut missed = Vec::new();
    for command in COMMANDS {
        for (before, name) in WAYS {
            let line = format!("{before}{}", command.replace("{}", name));
            let lines = WRAPPERS.map(|wrapper| wrapped(wrapper, &line));
            missed.extend(lines.into_iter().filter(|line| !is_cautious(line)));
        }
    }
    for line in [
        "perl -e 'system(\"rm\", \"-rf\", \"../app\")'",
        "perl -e 'chdir \"..\"; system \"rm -rf app\"'",
        "python3 -c 'import os; os.chdir(\"..\"); os.system(\"rm -rf app\")'",
        "bash -c 'echo \"rm -rf ../app\" | sh'",
        "sh -c \"sh -c 'cd .. && rm -rf app'\"",
        "echo rm -rf ../app | sh",
        "printf 'cd ..\\nrm -rf app\\n' | sh",
        "cd /srv/other && rm -rf .",
        "sh -c 'rm -rf .git'",
        "rm -rf ../{app,x}",
        "rm -rf {x,{../app,y}}",
        "mv ../{x,{y,app}} /tmp",
        "rm -rf {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
        "rm -rf \"$PWD\"",
        "rm -rf \"${PWD}/\"",
        "rm -rf \"$(pwd)\"",
        "rm -rf \"$HOME\"/src",
        "rm -rf ~/src/app/.git",
        "find ../app -delete",
        "find ../app -depth -delete",
        "find -L .. -exec rm -rf {} +",
        "find \"$PWD\" -delete",
        "cd .. && find app -delete",
    ] {
        missed.extend((!is_cautious(line)).then(|| line.to_owned()));
    }
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn a_workspace_with_a_blank_in_its_name_is_recognized() {
    let roots = ["/home/me/my work/my app".into()];
    for command in [
        "rm -rf '../my app'",
        "cd .. && rm -rf my\\ app",
        "cd '/home/me/my work' && rm -rf 'my app'",
        "sh -c 'rm -rf \"/home/me/my work\"'",
        "bash <<'E'\ncd \"/home/me/my work\"\nrm -rf my*app 'my app'\nE",
    ] {
        let line = CommandLine {
            cwd: "/home/me/my work/my app".into(),
            ..line(command, Undo::Everything)
        };
        assert!(empties(&line, &roots), "{command}");
    }
}

/// Lines that remove or name something else. The workspace is in a folder whose name is common inside a project, too.
const EVERYDAY: [&str; 39] = [
    "rm -rf build",
    "rm -rf src/app",
    "rm -rf ./src ./home",
    "cd sub && rm -rf target",
    "cd app && rm -rf src",
    "cd src && rm -rf app",
    "cd web && rm -rf ../src ../dist",
    "cd packages/ui && rm -rf ../../node_modules ../src",
    "cd /home/me/src/app && rm -rf src",
    "cd /home/me/src/app/web; rm -rf ../src app",
    "(cd web && rm -rf node_modules && npm ci)",
    "pushd web && rm -rf src && popd && ls",
    "cd web && make && cd - && rm -rf src",
    "cd .. && ls && cd app && rm -rf build",
    "cd \"$(git rev-parse --show-toplevel)\" && rm -rf build",
    "for d in a b; do cd $d && rm -rf target && cd ..; done",
    "cd /tmp/x && rm -rf app src",
    "env -C web rm -rf src",
    "make -C .. && rm -rf src",
    "timeout 60 /usr/bin/make > /dev/null && rm -rf src",
    "bash -c 'cd web && make > /dev/null && rm -rf ../src'",
    "sh -c 'rm -rf build dist'",
    "bash <<'E'\nset -e\nrm -rf build\nmkdir build\nE",
    "python3 -c 'print(1 / 2)' && rm -rf src",
    "echo 'rm -rf build' | sh",
    "mv src/app src/lib",
    "mv ../x .",
    "mv a b ..",
    "mv -t .. a b",
    "cd web && mv app ..",
    "git mv src/app lib",
    "git -C web mv app lib",
    "git commit -m 'never rm -rf ..'",
    "git -C web commit -m 'rm -rf / is refused'",
    "grep -rn 'rm -rf /' src | head -5",
    "MSG='rm -rf ../app'; echo \"$MSG\"",
    "cat > notes.md <<'E'\nrm -rf ../app\nE",
    "docker exec web sh -c 'rm -rf /var/cache/app'",
    "ssh host 'cd /srv/www && rm -rf app'",
];

#[test]
fn everyday_lines_do_not_count_as_removing_the_workspace() {
    let lines = EVERYDAY.iter().chain(UNRELATED);
    let cautious: Vec<_> = lines.filter(|line| is_cautious(line)).collect();
    assert_eq!(cautious, Vec::<&&str>::new());
    let root = ["/home/me/src/app".into()];
    for covered in [
        "cd sub && rm -rf target",
        "(cd web && rm -rf node_modules && npm ci)",
        "sh -c 'rm -rf build dist'",
        "cd /home/me/src/app && rm -rf src && git status",
        "$MAKE build && mv a b",
    ] {
        assert!(
            !empties(&line(covered, Undo::ExceptIgnored), &root),
            "{covered}"
        );
    }
}

/// What is substituted is found in each command around it; a long text has many words.
#[test]
fn long_and_nested_lines_are_judged_once() {
    let roots = [PathBuf::from("/home/me/src/app")];
    let nested = (0..18).fold("echo a".to_owned(), |inner, _| {
        format!("echo \"a $(bash -c \"a $({inner})\")\"")
    });
    let numbers = format!("python3 - <<'E'\nx = [{}]\nE", "1, ".repeat(20_000));
    for text in [nested, numbers] {
        assert!(!empties(&line(&text, Undo::Everything), &roots));
    }
}
