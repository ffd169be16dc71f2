//! Any text as a command line and as a permission rule: nothing panics; what is understood is read the same again when it
//! is quoted; the rule made of a command is about that command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::session::permission::Rule;
use tandem::text::shell::{self, Dialect, Unclear, Words, quoted};

fn parse(line: &str) -> Result<Vec<Words>, Unclear> {
    shell::read(line, Dialect::Posix).and_then(|line| line.plain())
}

fuzz_target!(|line: &str| {
    let _any_answer = (Rule::parse(line), shell::read(line, Dialect::Cmd));
    for words in parse(line).into_iter().flatten() {
        let again = quoted(&words);
        assert_eq!(parse(&again).as_deref(), Ok([words].as_slice()), "{line:?} {again:?}");
        let rule = Rule::parse(&format!("run_command({again})")).expect("what is understood can be a rule");
        assert_eq!(rule.to_string(), format!("run_command({again})"));
    }
});
