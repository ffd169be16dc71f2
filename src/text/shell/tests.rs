use super::Dialect::{Posix, PowerShell};
use super::*;
use proptest::prelude::*;

fn plain(line: &str) -> Result<Vec<Words>, Unclear> {
    read(line, Posix).and_then(|line| line.plain())
}

#[track_caller]
fn check(line: &str, expected: &[&[&str]]) {
    let expected: Vec<Words> = expected
        .iter()
        .map(|words| words.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(plain(line), Ok(expected), "{line}");
}

#[test]
fn simple_commands_split_into_words() {
    check("cargo test", &[&["cargo", "test"]]);
    check(" cargo\ttest \n", &[&["cargo", "test"]]);
    check(
        "a && b || c; d | e\nf;",
        &[&["a"], &["b"], &["c"], &["d"], &["e"], &["f"]],
    );
    check("a &&\n\n b", &[&["a"], &["b"]]);
    check(
        r#"git commit -m "it's \"done\" \n" 'a b'c"#,
        &[&["git", "commit", "-m", "it's \"done\" \\n", "a bc"]],
    );
    check(
        r"echo \$HOME \* a\ b '' '$x `y` \d'",
        &[&["echo", "$HOME", "*", "a b", "", r"$x `y` \d"]],
    );
    check(
        "git show HEAD~1 a=b x#y :/!",
        &[&["git", "show", "HEAD~1", "a=b", "x#y", ":/!"]],
    );
    check("printf 'a\n\tb'", &[&["printf", "a\n\tb"]]);
    check("a x 2>&1 >/dev/null | b", &[&["a", "x"], &["b"]]);
}

#[test]
fn ambiguous_lines_are_not_understood() {
    for line in [
        "",
        " \n",
        ";",
        "a;;b",
        "a; ;b",
        "&& a",
        "a &&",
        "a |",
        "a | | b",
        "a &",
        "a & b",
        "a |& b",
        "a &> f",
        "echo $HOME",
        "echo ${HOME}",
        "echo $(id)",
        "echo `id`",
        "echo \"$(id)\"",
        "echo \"`id`\"",
        "echo $'a'",
        "echo > f",
        "cat < f",
        "a 2>&f",
        "a >&-",
        "a >& $x",
        "a 2>f",
        "a < /dev/null",
        "a >> /dev/null/x",
        "cat <<E\nE",
        "echo *",
        "ls a?",
        "ls [ab]",
        "echo {a,b}",
        "{touch,x}",
        "echo ~",
        "cat ~/x",
        "a --x=~/y",
        "a x:~/y",
        "=ls",
        "! a",
        "(a)",
        "{ a; }",
        "if true; then a; fi",
        "for i in a; do b; done",
        "while a; do b; done",
        "f() { a; }",
        "time a",
        "[[ a ]]",
        "[ a ]",
        "A=b c",
        "A=b",
        "PATH+=x ls",
        "echo a # b",
        "'a",
        "\"a",
        "a\\",
        "a\\\nb",
        "a \\n",
        "\"a\\\nb\"",
        "'a\\'b'",
        "'a\\\\b'",
        "''",
        "'' a",
        "a\rb",
        "a\0b",
        "a\u{a0}b",
        "a\u{200b}b",
        "'a\u{202e}b'",
        "a\u{3000}b",
        "echo *(e:'touch x':)",
        "\"\\`\"",
    ] {
        assert!(plain(line).is_err(), "{line:?} is {:?}", plain(line));
    }
}

proptest! {
    #[test]
    fn quoting_round_trips(words in prop::collection::vec("[ -~é\n]{0,6}", 0..4)) {
        let mut line = vec!["run".to_owned()];
        line.extend(words);
        prop_assert_eq!(plain(&quoted(&line)), Ok(vec![line]));
    }

    #[test]
    fn quoting_preserves_parsed_commands(line in r#"[ab*'"\\;&|~#=!$ \n]{0,12}"#) {
        for words in plain(&line).into_iter().flatten() {
            prop_assert_eq!(plain(&quoted(&words)), Ok(vec![words]));
        }
    }
}

/// All commands of a line as bash runs them: the keyword, and the words as written.
fn outline(line: &str) -> String {
    let line = read(line, Posix).unwrap_or_else(|why| panic!("{line}: {why}"));
    let command = |command: &&Command| {
        let words = command.words.iter().map(Word::written);
        let keyword = command.keyword.map(|keyword| format!("<{keyword}>"));
        keyword
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    };
    line.all()
        .iter()
        .map(command)
        .collect::<Vec<_>>()
        .join("; ")
}

#[test]
fn commands_within_commands_are_read() {
    for (line, expected) in [
        ("FOO=bar BAZ=$(a) b 2>/dev/null", "b; a"),
        (
            "if a; then b; elif c; then d; else e; fi | f",
            "<if>; a; b; c; d; e; f",
        ),
        (
            "while a; do b $(c); done > $(d)",
            "<while>; d; a; b $(c); c",
        ),
        (
            "for x in 1 $(a)\ndo b; done; for y; do c; done",
            "<for> x 1 $(a); a; b; <for> y; c",
        ),
        (
            "for ((i = $(a); i < 3; i++)); do b; done",
            "<for> ((i = $(a); i < 3; i++)); a; b",
        ),
        (
            "case $(a) in (x|y) b;; *) c; d ;& z) ;; esac; e",
            "<case> $(a) x y * z; a; b; c; d; e",
        ),
        (
            "f() { a; b; }; function g { c; } > x; f",
            "<function> f; <{>; a; b; <function> g; <{>; c; f",
        ),
        ("(a; b) & { c; }", "<(>; a; b; <{>; c"),
        ("! a | time -p b", "a; b"),
        (
            "[[ -f x && $(a) -eq 1 && b =~ (c|d) ]] && e",
            "<[[> -f x & & $(a) -eq 1 & & b =~ ( c | d ); a; e",
        ),
        ("(( x[$(a)]++ ))", "<((> (( x[$(a)]++ )); a"),
        (
            "echo `a \\`b\\` c` \"$(d \"$(e)\")\" ${x:-$(f)} $((1 + $(g)))",
            "echo `a \\`b\\` c` $(d \"$(e)\") ${x:-$(f)} $((1 + $(g))); a `b` c; b; d $(e); e; f; g",
        ),
        ("a <(b) >(c); x=(1 $(d)) e", "a <(b) >(c); b; c; e; d"),
        ("a $'b c' $\"d\" e", "a $'b c' d e"),
        ("cat <<E | a\n$(b) '$(c)'\nE\nd", "cat; b; c; a; d"),
        ("cat <<'E' <<-F\n$(b)\nE\n\t$(c)\n\tF\nd", "cat; c; d"),
        (
            "cat <<E \"$(a\nb)\" <(c\nd)\n'$(e)'\nE\nf",
            "cat $(a\nb) <(c\nd); a; b; c; d; e; f",
        ),
        ("cat <<E\na \\\nb\nE\nc", "cat; c"),
        (
            "a \"$(cat <<'E'\nb\\\nE\n)\"",
            "a $(cat <<'E'\nb\\\nE\n); cat",
        ),
        (
            "echo ${x:-'}'} \"${x:-\"y\"}\"",
            "echo ${x:-'}'} ${x:-\"y\"}",
        ),
        ("a=1", ""),
        (
            "ls a* ?b [c] {d,e} ~ !(f) {} [ ]",
            "ls a* ?b [c] {d,e} ~ !(f) {} [ ]",
        ),
        ("a $[1 + $(b)] \"$\" $", "a $[1 + $(b)] $ $; b"),
        ("a # $(b)\nc", "a; c"),
        ("a \\\n b", "a b"),
        ("a 2>&1 >&- &>> b", "a"),
    ] {
        assert_eq!(outline(line), expected, "{line}");
    }
}

#[test]
fn lines_that_cannot_be_parsed_are_an_error() {
    for line in [
        "if a; then b",
        "while a",
        "case x in y) b",
        "a)",
        "(a",
        "$(a",
        "`a",
        "${a",
        "cat <<E\na",
        "cat <<E",
        "a $(cat <<E)\nE",
        "cat <<E; x=(a\nb)\nE",
        "a ;; b",
        "a (b)",
        "f() a",
        "(a) b",
        "a >",
        "[[ a",
        "((a",
        "x=(a",
        "a $((1",
        "${ a; }",
        "a | ; b)",
    ] {
        assert!(
            read(line, Posix).is_err(),
            "{line}: {:?}",
            read(line, Posix)
        );
    }
    for deep in ["(", "$(", "\"${x:-", "x=(", "function f ", "$((", "if "] {
        assert!(read(&deep.repeat(10_000), Posix).is_err(), "{deep}");
    }
}

/// bash and dash end these here-documents and quotes at different places.
#[test]
fn a_line_whose_parts_end_elsewhere_in_another_shell_is_an_error() {
    for line in [
        "cat <<$'E'\nE\na\n$'E'",
        "cat <<$\"E\"\nE\na\n$\"E\"",
        "cat <<`E`\nE",
        "cat <<E\\\nF\n$(a)\nEF",
        "cat <<EF\nE\\\nF\na\nEF",
        "cat <<EF\nb\\\nEF\necho '$(a)'\nEF",
        "cat <<-EF\nE\\\n\tF\na\nEF",
        "cat <<E\nE\\\n\na\nE",
        "echo \"${v:-'}\"; a; echo \"'}\"",
        "echo \"${v:-${w:-'}}\"; a; echo \"'}\"",
        "cat <<E\n${v:-'}\nE\na\n'}\nE",
    ] {
        assert!(
            read(line, Posix).is_err(),
            "{line}: {:?}",
            read(line, Posix)
        );
    }
}

#[test]
fn a_value_that_a_shell_evaluates_is_marked() {
    let evaluates = |line: &str| {
        let line = read(line, Posix).unwrap();
        line.all()
            .iter()
            .flat_map(|command| &command.words)
            .flat_map(Word::expansions)
            .any(|expansion| expansion.evaluates)
    };
    for line in [
        "a $((x))",
        "a $((1 + $x))",
        "a ${x@P}",
        "a ${!x}",
        "a ${x[y]}",
        "a ${x:y}",
        "a $[x]",
        "a \"$((x + 1))\"",
    ] {
        assert!(evaluates(line), "{line}");
    }
    for line in [
        "a $((3 > 2))",
        "a $((0x1f + 16#ff))",
        "a $x",
        "a ${x}",
        "a ${x:-y} ${x%%.*} ${#x} ${x/a/b}",
        "a $(b)",
        "a $[1]",
    ] {
        assert!(!evaluates(line), "{line}");
    }
}

#[test]
fn simple_windows_lines_are_parsed() {
    let check = |line: &str, expected: &[&[&str]]| {
        let commands = read(line, PowerShell)
            .and_then(|line| line.plain())
            .unwrap_or_default();
        assert_eq!(
            commands,
            expected
                .iter()
                .map(|words| words.to_vec())
                .collect::<Vec<_>>(),
            "{line}"
        );
    };
    check("cargo test --lib", &[&["cargo", "test", "--lib"]]);
    check(
        r#"del "a b.txt" & dir C:\x"#,
        &[&["del", "a b.txt"], &["dir", r"C:\x"]],
    );
    check(
        "npm ci && npm test | findstr ok",
        &[&["npm", "ci"], &["npm", "test"], &["findstr", "ok"]],
    );
    check(
        "Get-Item x; Remove-Item y\n",
        &[&["Get-Item", "x"], &["Remove-Item", "y"]],
    );
}

#[test]
fn lines_that_cmd_and_powershell_read_differently_are_not_understood() {
    for line in [
        "",
        " ; ",
        "del %X%",
        "del $x",
        "del (x)",
        "echo ^& del x",
        "del `x",
        "'del' x",
        "\"del\" x",
        "del \"a\\\"",
        "del a\"b",
        "del \"$x\"",
        "x > y",
        "x < y",
        "del @x",
        "del x,y",
        "# del",
        "del {x}",
        "\u{2013}x",
        "del \u{201c}x\u{201d}",
        "del !x!",
    ] {
        assert!(read(line, PowerShell).is_err(), "{line}");
    }
}
