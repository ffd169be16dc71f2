//! The reader: one pass over the text. What it cannot follow is an error; what only some shells read as bash does, or
//! what is open, is noted and read on.

mod document;

use std::sync::{Arc, OnceLock};

use self::document::Document;
use super::{Command, Dialect, End, Line, Redirection, Unclear, Word};

/// How deep commands may be nested.
const DEPTH: usize = 40;

/// Words that do not name a program in bash or another shell, except those that begin a compound command.
const RESERVED: [&str; 21] = [
    "}",
    "and",
    "begin",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "foreach",
    "function",
    "nocorrect",
    "noglob",
    "not",
    "or",
    "repeat",
    "switch",
    "then",
    "time",
];
/// Words that begin a compound command, what stands between its parts, and what ends it.
const COMPOUND: [(&str, &[&str], &str); 7] = [
    ("if", &["then", "elif", "else"], "fi"),
    ("while", &["do"], "done"),
    ("until", &["do"], "done"),
    ("for", &[], "done"),
    ("select", &[], "done"),
    ("case", &[], "esac"),
    ("{", &[], "}"),
];
/// The longer ones first.
const REDIRECTIONS: [&str; 12] = [
    "<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "&>>", "&>", "<", ">",
];

pub(super) const SUBSTITUTES: &str = "contains an expansion";
pub(super) const ESCAPES: &str = "contains an escape that shells read differently";
pub(super) const PATTERN: &str = "contains a pattern";
pub(super) const COMPOUNDS: &str = "contains a compound command";
pub(super) const UNENDED: &str = "lacks the end of a command";
pub(super) const UNQUOTED: &str = "lacks a closing quote";
pub(super) const UNWRITTEN: &str = "lacks the text of a here-document";

pub(super) type Read<T> = Result<T, Unclear>;

/// Reads a line.
///
/// # Errors
/// It cannot be followed to its end.
pub fn read(line: &str, dialect: Dialect) -> Read<Line> {
    let mut reader = Reader {
        rest: line,
        unclear: None,
        documents: Vec::new(),
        depth: 0,
    };
    let commands = match dialect {
        Dialect::Posix => reader.list(&[])?.0,
        Dialect::PowerShell | Dialect::Cmd => reader.windows()?,
    };
    if commands.is_empty() {
        return Err(Unclear("lacks a command"));
    }
    if reader.awaits_document() {
        return Err(Unclear(UNWRITTEN));
    }
    let unclear = reader.unclear;
    Ok(Line { commands, unclear })
}

pub(super) struct Reader<'a> {
    pub rest: &'a str,
    unclear: Option<Unclear>,
    /// Here-documents whose text begins on the next line.
    documents: Vec<Document>,
    depth: usize,
}

pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

pub(super) fn ends_word(character: char) -> bool {
    is_blank(character) || "\n;&|<>()".contains(character)
}

impl<'a> Reader<'a> {
    pub fn note(&mut self, why: &'static str) {
        self.unclear.get_or_insert(Unclear(why));
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    pub fn eat(&mut self, what: &str) -> bool {
        let rest = self.rest.strip_prefix(what);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// One level deeper.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == DEPTH {
            return Err(Unclear("nests too deep"));
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// The text between an earlier place and here.
    pub fn since(&self, before: &'a str) -> &'a str {
        before
            .get(..before.len() - self.rest.len())
            .unwrap_or_default()
    }

    /// The unquoted word here, if it is one of these.
    fn keyword(&mut self, words: &[&'static str]) -> Option<&'static str> {
        let is_here = |word: &&&str| {
            let after = self.rest.strip_prefix(**word);
            let is_sign = word.starts_with([';', ')']);
            after.is_some_and(|rest| is_sign || rest.chars().next().is_none_or(ends_word))
        };
        let word = words.iter().find(is_here).copied()?;
        self.eat(word);
        Some(word)
    }

    pub fn blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(is_blank);
            if self.rest.starts_with("\\\n") {
                self.note(ESCAPES);
                self.eat("\\\n");
            } else if self.rest.starts_with('#') {
                self.note("contains a comment");
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = self.rest.get(end..).unwrap_or_default();
            } else {
                return;
            }
        }
    }

    /// Whitespace and line breaks, with the here-documents after them.
    pub fn lines(&mut self) -> Read<()> {
        self.blanks();
        while self.eat("\n") {
            for document in std::mem::take(&mut self.documents) {
                self.document(&document)?;
            }
            self.blanks();
        }
        Ok(())
    }

    /// Reads another text, such as the text between backticks.
    pub fn within<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Reader<'_>) -> Read<T>,
    ) -> Read<T> {
        let mut reader = Reader {
            rest: text,
            unclear: None,
            documents: Vec::new(),
            depth: self.depth,
        };
        let done = read(&mut reader)?;
        let unclear = reader.unclear;
        let is_whole = reader.rest.is_empty() && !reader.awaits_document();
        self.unclear = self.unclear.or(unclear);
        if is_whole {
            Ok(done)
        } else {
            Err(Unclear(UNENDED))
        }
    }

    /// Whether the text of a here-document begins after this line.
    pub fn awaits_document(&self) -> bool {
        !self.documents.is_empty()
    }

    /// The commands of a substitution after its `(`. The line breaks in it do not begin the here-documents before it.
    pub fn substituted(&mut self) -> Read<Vec<Command>> {
        let before = std::mem::take(&mut self.documents);
        let commands = self.list(&[")"])?.0;
        if self.awaits_document() {
            return Err(Unclear(UNWRITTEN));
        }
        self.documents = before;
        Ok(commands)
    }

    /// Commands up to one of these words, which is given too; to the end of the text if there are none.
    pub fn list(&mut self, ends: &[&'static str]) -> Read<(Vec<Command>, &'static str)> {
        self.deeper(|reader| reader.commands(ends))
    }

    fn commands(&mut self, ends: &[&'static str]) -> Read<(Vec<Command>, &'static str)> {
        let mut commands: Vec<Command> = Vec::new();
        loop {
            self.lines()?;
            if let Some(end) = self.keyword(ends) {
                return Ok((commands, end));
            }
            if self.rest.is_empty() {
                let joins =
                    |command: &Command| matches!(command.end, End::And | End::Or | End::Pipe);
                if commands.last().is_some_and(joins) {
                    self.note("lacks a command");
                }
                return if ends.is_empty() {
                    Ok((commands, ""))
                } else {
                    Err(Unclear(UNENDED))
                };
            }
            let before = self.rest;
            let mut command = self.command()?;
            if command == Command::default() {
                self.note("lacks a command");
            }
            command.end = self.end();
            if self.rest == before {
                return Err(Unclear("lacks a command"));
            }
            commands.push(command);
        }
    }

    fn end(&mut self) -> End {
        // `;;` of a `case` is not ours.
        let is_case = [";;", ";&"].iter().any(|end| self.rest.starts_with(end));
        if !is_case && self.eat(";") {
            return End::Sequence;
        }
        if self.eat("&&") {
            return End::And;
        }
        if self.eat("||") {
            return End::Or;
        }
        if self.eat("|&") {
            self.note("lacks a command");
            return End::Pipe;
        }
        if self.eat("|") {
            return End::Pipe;
        }
        if self.eat("&") {
            self.note("runs something in the background");
            return End::Background;
        }
        End::Sequence
    }

    fn command(&mut self) -> Read<Command> {
        while self.keyword(&["!", "time", "coproc"]).is_some() {
            self.note(COMPOUNDS);
            self.blanks();
            while self.keyword(&["-p", "--"]).is_some() {
                self.blanks();
            }
        }
        let mut command = self.compound()?.unwrap_or_default();
        let is_simple = command.keyword.is_none();
        loop {
            self.blanks();
            if self.redirection(&mut command)? {
                continue;
            }
            match self.peek() {
                None => break,
                Some('(') if is_simple && command.words.len() == 1 => {
                    self.note(COMPOUNDS);
                    self.eat("(");
                    self.blanks();
                    if !self.eat(")") {
                        return Err(Unclear(COMPOUNDS));
                    }
                    return self.function(command.words);
                }
                Some('(') => return Err(Unclear(COMPOUNDS)),
                Some(character) if ends_word(character) && !self.is_process() => break,
                Some(_) if !is_simple => return Err(Unclear(UNENDED)),
                Some(_) => self.word_of(&mut command)?,
            }
        }
        if is_simple {
            self.check_program(&command);
        }
        Ok(command)
    }

    /// The next word, or assignment, of a simple command.
    fn word_of(&mut self, command: &mut Command) -> Read<()> {
        let name = self
            .rest
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let has_name =
            name.len() < self.rest.len() && !self.rest.starts_with(|c: char| c.is_ascii_digit());
        let is_assignment = has_name && (name.starts_with(['=', '[']) || name.starts_with("+="));
        let word = self.word()?;
        if is_assignment && command.words.is_empty() && word.written().contains('=') {
            self.note("sets a variable");
            command.assignments.push(word);
        } else {
            command.words.push(word);
        }
        Ok(())
    }

    /// Notes a simple command whose program depends on the shell.
    fn check_program(&mut self, command: &Command) {
        let Some(program) = command.words.first() else {
            if !command.redirections.is_empty() {
                self.note("names no program");
            }
            return;
        };
        match program.text() {
            Some(text) if text.is_empty() => self.note("names no program"),
            Some(text) if text.contains('=') => self.note("sets a variable"),
            Some(text)
                if RESERVED.contains(&text.as_str())
                    || COMPOUND.iter().any(|(word, _, _)| *word == text) =>
            {
                self.note(COMPOUNDS);
            }
            _ => {}
        }
    }

    fn function(&mut self, words: Vec<Word>) -> Read<Command> {
        self.lines()?;
        let body = self.deeper(Self::compound)?.ok_or(Unclear(UNENDED))?;
        Ok(Command {
            keyword: Some("function"),
            words,
            body: vec![body],
            ..Command::default()
        })
    }

    /// A compound command, if one begins here.
    fn compound(&mut self) -> Read<Option<Command>> {
        let mut command = Command::default();
        if self.rest.starts_with("((") {
            let before = self.rest;
            if let Some(word) = self.calculation("((", "))")? {
                self.note(COMPOUNDS);
                return Ok(Some(Command {
                    keyword: Some("(("),
                    words: vec![word],
                    ..command
                }));
            }
            self.rest = before;
        }
        if self.eat("(") {
            self.note(COMPOUNDS);
            command.keyword = Some("(");
            command.body = self.list(&[")"])?.0;
            return Ok(Some(command));
        }
        if self.keyword(&["[["]).is_some() {
            self.note(COMPOUNDS);
            command.keyword = Some("[[");
            command.words = self.condition()?;
            return Ok(Some(command));
        }
        if self.keyword(&["function"]).is_some() {
            self.note(COMPOUNDS);
            self.blanks();
            let name = self.word()?;
            self.blanks();
            if self.eat("(") && !self.eat(")") {
                return Err(Unclear(COMPOUNDS));
            }
            return self.function(vec![name]).map(Some);
        }
        let found = COMPOUND
            .into_iter()
            .find(|(word, _, _)| self.keyword(&[word]).is_some());
        let Some((keyword, between, end)) = found else {
            return Ok(None);
        };
        self.note(COMPOUNDS);
        command.keyword = Some(keyword);
        match keyword {
            "for" | "select" => self.for_head(&mut command)?,
            "case" => {
                self.cases(&mut command)?;
                return Ok(Some(command));
            }
            _ => {}
        }
        let ends: Vec<&'static str> = between.iter().copied().chain([end]).collect();
        loop {
            let (part, last) = self.list(&ends)?;
            command.body.extend(part);
            if last == end {
                return Ok(Some(command));
            }
        }
    }

    /// `NAME in WORDS; do`, or `((…)); do`.
    fn for_head(&mut self, command: &mut Command) -> Read<()> {
        self.blanks();
        if self.rest.starts_with("((") {
            let word = self.calculation("((", "))")?;
            command.words.push(word.ok_or(Unclear(UNENDED))?);
        } else {
            command.words.push(self.word()?);
            self.lines()?;
            if self.keyword(&["in"]).is_some() {
                self.blanks();
                while self
                    .peek()
                    .is_some_and(|next| !ends_word(next) || self.is_process())
                {
                    command.words.push(self.word()?);
                    self.blanks();
                }
            }
        }
        self.blanks();
        self.eat(";");
        self.lines()?;
        self.keyword(&["do", "{"])
            .map(|_| ())
            .ok_or(Unclear(UNENDED))
    }

    /// `WORD in PATTERN) commands ;; … esac`.
    fn cases(&mut self, command: &mut Command) -> Read<()> {
        self.blanks();
        command.words.push(self.word()?);
        self.lines()?;
        self.keyword(&["in"]).ok_or(Unclear(UNENDED))?;
        loop {
            self.lines()?;
            if self.keyword(&["esac"]).is_some() {
                return Ok(());
            }
            self.eat("(");
            loop {
                self.blanks();
                command.words.push(self.word()?);
                self.blanks();
                if self.eat(")") {
                    break;
                }
                if !self.eat("|") {
                    return Err(Unclear(UNENDED));
                }
            }
            let (part, end) = self.list(&[";;&", ";;", ";&", "esac"])?;
            command.body.extend(part);
            if end == "esac" {
                return Ok(());
            }
        }
    }

    /// The words of `[[ … ]]`.
    fn condition(&mut self) -> Read<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.lines()?;
            if self.keyword(&["]]"]).is_some() {
                return Ok(words);
            }
            let mut word = Word::default();
            match self.peek().ok_or(Unclear(UNENDED))? {
                sign if ends_word(sign) && !self.is_process() => {
                    self.next();
                    word.push(sign.encode_utf8(&mut [0; 4]));
                }
                _ => word = self.word()?,
            }
            words.push(word);
        }
    }

    pub fn is_process(&self) -> bool {
        self.rest.starts_with("<(") || self.rest.starts_with(">(")
    }

    /// Reads a redirection into the command, if one begins here.
    fn redirection(&mut self, command: &mut Command) -> Read<bool> {
        if self.is_process() {
            return Ok(false);
        }
        let before = self.rest;
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let found = REDIRECTIONS.iter().find(|operator| {
            self.rest.starts_with(**operator) && !(operator.starts_with('&') && before != self.rest)
        });
        let Some(operator) = found.copied() else {
            self.rest = before;
            return Ok(false);
        };
        self.eat(operator);
        self.blanks();
        let start = self.rest;
        let target = self.word()?;
        if self.rest == start {
            return Err(Unclear("redirects to nothing"));
        }
        // Output that joins other output or is discarded changes no file.
        let changes_nothing = match (operator, target.text().as_deref()) {
            (">&", Some(to)) => to.bytes().all(|digit| digit.is_ascii_digit()),
            (">", Some(to)) => to == "/dev/null",
            _ => false,
        };
        if !changes_nothing {
            self.note("redirects");
        }
        let mut body = None;
        if matches!(operator, "<<" | "<<-") {
            let (text, source) = (Arc::new(OnceLock::new()), self.since(start));
            // Where it ends, or whether its text is expanded, depends on the shell.
            if source.contains(['$', '`']) || source.contains("\\\n") || target.text().is_none() {
                return Err(Unclear("has an unusual delimiter of a here-document"));
            }
            self.documents.push(Document {
                delimiter: target.written(),
                is_quoted: source.contains(['\'', '"', '\\']),
                is_indented: operator == "<<-",
                body: Arc::clone(&text),
            });
            body = Some(text);
        }
        command.redirections.push(Redirection {
            operator,
            target,
            body,
        });
        Ok(true)
    }
}
