//! A server's tool: each call requires approval like a change (the server's own claims grant nothing), long results are
//! truncated, and a cancel is passed on. What the server asks for meanwhile goes to the person.

use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Kept;
use super::connection::list;
use super::content::readable;
use super::digest;
use super::era::HEADER_MISMATCH;
use super::exchange::{Answer, Fault, Refusal};
use super::headers::Mirrored;
use super::input::Request;
use super::keep::Status;
use super::line::Line;
use super::listing::Listed;
use super::login::Challenge;
use crate::text::without_middle;
use crate::tools::{Pending, Preview, Tool, ToolContext, ToolError, ToolKind, ToolOutput};

/// The maximum size of a result for the model, in bytes.
const LARGEST: usize = 32 << 10;
/// The maximum size of the arguments in a permission request, in characters.
const SHOWN: usize = 2000;
/// How long a call waits for a server that is restarting.
const AGAIN: Duration = Duration::from_secs(10);
/// Timeout for telling a server that a call was cancelled.
const GOODBYE: Duration = Duration::from_millis(500);
/// A server that only reports progress times out after this many times the limit.
const MAX_PROGRESS: u32 = 10;

/// The maximum number of times a server asks for input, or for a login, during one call.
const MAX_ROUNDS: usize = 8;
const MAX_LOGINS: usize = 2;
/// A server's error: a page must be opened first (2025-11-25).
const OPEN_FIRST: i64 = -32042;

/// A tool of a server.
pub(super) struct McpTool {
    /// What the model calls it.
    pub name: String,
    pub kept: Kept,
    pub listed: Listed,
    /// How long a call may go without an answer or a progress report.
    pub limit: Duration,
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.listed.description
    }

    fn parameters(&self) -> Value {
        self.listed.schema.clone()
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Other
    }

    fn preview<'a>(
        &'a self,
        _context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, Preview> {
        std::future::ready(object(arguments).map(|_object| self.shown(arguments))).boxed()
    }

    fn run<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Value,
    ) -> Pending<'a, ToolOutput> {
        // Whatever it waits for, it tells the server of a cancel within this time.
        let overdue = async {
            context.cancel.cancelled().await;
            sleep(2 * GOODBYE).await;
        };
        let call = async move {
            tokio::select! {
                biased;
                result = self.call(context, arguments) => result,
                () = overdue => Err(self.cancelled()),
            }
        };
        call.boxed()
    }
}

impl McpTool {
    /// The preview: the tool and its arguments.
    fn shown(&self, arguments: &Value) -> Preview {
        let arguments = arguments.to_string();
        let arguments = match arguments.char_indices().nth(SHOWN) {
            Some((end, _)) => format!(
                "{}… ({} bytes)",
                arguments.get(..end).unwrap_or_default(),
                arguments.len()
            ),
            None => arguments,
        };
        Preview {
            title: format!(
                "{}: {} {arguments}",
                self.kept.server.name, self.listed.name
            ),
            origin: Some(self.fingerprint()),
            ..Preview::default()
        }
    }

    /// What *Always* allows: the server, and the tool as the server describes it.
    fn fingerprint(&self) -> String {
        let server = self.kept.server.fingerprint();
        let Listed {
            name,
            description,
            schema,
            ..
        } = &self.listed;
        digest(&json!([server, name, description, schema]).to_string())
    }

    async fn call(
        &self,
        context: &ToolContext,
        arguments: &Value,
    ) -> Result<ToolOutput, ToolError> {
        let arguments = object(arguments)?;
        let mut params = json!({ "name": self.listed.name, "arguments": arguments });
        let mut mirrored = self.listed.mirrored.clone().unwrap_or_default();
        let (mut rounds, mut logins, mut restarts, mut lists) = (0, 0, 0, 0);
        loop {
            let fault = match self.ask(context, &params, &mirrored).await? {
                Ok(answer) => match answer["resultType"].as_str() {
                    None | Some("complete") => {
                        return understood(&answer, context.room(LARGEST));
                    }
                    Some("input_required") if rounds < MAX_ROUNDS => {
                        rounds += 1;
                        self.fill_in(&answer, &mut params, context).await;
                        continue;
                    }
                    Some("input_required") => Fault::invalid("it keeps asking for input"),
                    Some(kind) => {
                        Fault::invalid(&format!("its result is of an unknown type, {kind}"))
                    }
                },
                Err(fault) => fault,
            };
            match fault {
                // The server did not look at the call, and begins a new session.
                Fault::Expired if restarts == 0 => restarts += 1,
                Fault::Login(challenge) if logins < MAX_LOGINS => {
                    logins += 1;
                    self.log_in(&challenge, context).await?;
                }
                Fault::Refused(refusal) if refusal.code == HEADER_MISMATCH && lists == 0 => {
                    lists += 1;
                    mirrored = self.mirrored_now().await.unwrap_or(mirrored);
                }
                Fault::Refused(refusal) if refusal.code == OPEN_FIRST && rounds < MAX_ROUNDS => {
                    rounds += 1;
                    let wanted = refusal.data["elicitations"].as_array();
                    for params in wanted.into_iter().flatten() {
                        let request = json!({ "method": "elicitation/create", "params": params });
                        let stands = CancellationToken::new();
                        let answer = self.answer(&request, context, &stands).await;
                        if !answer.is_ok_and(|answer| answer["action"] == "accept") {
                            return Err(self.failed(Fault::Refused(refusal)));
                        }
                    }
                }
                fault => return Err(self.failed(fault)),
            }
        }
    }

    /// Gathers the input a server asked for instead of a result; its state goes back as it came.
    async fn fill_in(&self, answer: &Value, params: &mut Value, context: &ToolContext) {
        let mut responses = Map::new();
        for (key, request) in answer["inputRequests"].as_object().into_iter().flatten() {
            let stands = CancellationToken::new();
            if let Ok(result) = self.answer(request, context, &stands).await {
                responses.insert(key.clone(), result);
            }
        }
        let Value::Object(params) = params else {
            return;
        };
        params.shift_remove("inputResponses");
        params.shift_remove("requestState");
        if !responses.is_empty() {
            params.insert("inputResponses".to_owned(), responses.into());
        }
        if let Some(state) = answer.get("requestState") {
            params.insert("requestState".to_owned(), state.clone());
        }
    }

    /// The person's answer to a request of the server, unless that is withdrawn.
    async fn answer(
        &self,
        request: &Value,
        context: &ToolContext,
        withdrawn: &CancellationToken,
    ) -> Result<Value, Value> {
        let request = Request {
            server: &self.kept.server.name,
            method: request["method"].as_str().unwrap_or_default(),
            params: &request["params"],
        };
        request.answer(&context.person, withdrawn).await
    }

    async fn log_in(&self, challenge: &Challenge, context: &ToolContext) -> Result<(), ToolError> {
        let login = self.kept.server.login();
        let login = login.ok_or_else(|| self.because("requires a login"))?;
        let done = login.log_in(challenge, &context.person).await;
        done.map_err(|why| self.because(&why))?;
        self.kept.nudge.notify_one();
        Ok(())
    }

    /// The mirrored parameters as the server lists them now.
    async fn mirrored_now(&self) -> Option<Mirrored> {
        let line = self.line().await.ok()?;
        let list = list(&line).await.ok()?;
        let mut tools = list.tools.into_iter().flatten();
        let tool = tools.find(|tool| tool.name == self.listed.name)?;
        tool.mirrored.ok()
    }

    /// Sends the call once.
    async fn ask(
        &self,
        context: &ToolContext,
        params: &Value,
        mirrored: &Mirrored,
    ) -> Result<Answer, ToolError> {
        let line = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(self.cancelled()),
            line = self.line() => line?,
        };
        let id = line.next_id();
        let mut params = params.clone();
        params["_meta"] = json!({ "progressToken": id });
        let headers = if line.mirrors() {
            mirrored.headers(&params["arguments"])
        } else {
            HeaderMap::new()
        };
        let mut requests = line.exchange.requests();
        let answer = line.request_with(id, "tools/call", params, headers);
        tokio::pin!(answer);
        let unanswered = loop {
            let request = tokio::select! {
                biased;
                () = context.cancel.cancelled() => break self.cancelled(),
                answer = &mut answer => return Ok(answer),
                Some(request) = requests.recv() => request,
                () = silence(line.exchange.progress.subscribe(), self.limit) => break self.late(),
            };
            // The call goes on while the person thinks, and may end before they answer.
            let withdrawn = CancellationToken::new();
            let asked = self.answer(&request, context, &withdrawn);
            tokio::pin!(asked);
            let result = tokio::select! {
                biased;
                result = &mut asked => result,
                answer = &mut answer => {
                    withdrawn.cancel();
                    let _withdrawn = asked.await;
                    return Ok(answer);
                }
            };
            // A server may have stopped reading, or answer before it takes this.
            let responded = timeout(self.limit, line.respond(&request["id"], result));
            tokio::select! {
                biased;
                answer = &mut answer => return Ok(answer),
                _gone_or_late = responded => {}
            }
        };
        let _does_not_listen = timeout(GOODBYE, line.give_up(id)).await;
        Err(unanswered)
    }

    /// The connection to the server, once it runs.
    async fn line(&self) -> Result<Line, ToolError> {
        let mut status = self.kept.status.clone();
        match timeout(AGAIN, Status::running(&mut status)).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(why)) => Err(self.because(&format!("{why}; continue without it"))),
            Err(_late) => Err(self.because("is starting; try again later")),
        }
    }

    fn failed(&self, fault: Fault) -> ToolError {
        let why = match fault {
            Fault::Over => {
                "crashed during this call and is being restarted; what the call did is unknown"
                    .to_owned()
            }
            Fault::Expired => "lost its session twice and did not carry out this call".to_owned(),
            Fault::Denied(why) => why,
            Fault::Refused(Refusal { message, .. }) => {
                format!("answered: {}", capped(message, LARGEST))
            }
            Fault::Login(_) => {
                "requires a login with more permissions than the user granted".to_owned()
            }
            Fault::Unreachable(why) => format!("cannot be reached: {}", capped(why, LARGEST)),
        };
        self.because(&why)
    }

    fn late(&self) -> ToolError {
        let seconds = self.limit.as_secs();
        self.because(&format!(
            "did not answer within {seconds} s (limits.command-timeout)"
        ))
    }

    fn because(&self, why: &str) -> ToolError {
        ToolError(format!("the MCP server `{}` {why}", self.kept.server.name))
    }

    fn cancelled(&self) -> ToolError {
        ToolError(format!(
            "cancelled; `{}` may have done part of it",
            self.kept.server.name
        ))
    }
}

/// The arguments as an object; none are an empty one.
fn object(arguments: &Value) -> Result<Map<String, Value>, ToolError> {
    match arguments {
        Value::Object(object) => Ok(object.clone()),
        Value::Null => Ok(Map::new()),
        _ => Err(ToolError("the arguments must be an object".to_owned())),
    }
}

/// Resolves after `limit` without a progress report, or after too long with nothing else.
async fn silence(mut progress: watch::Receiver<u64>, limit: Duration) {
    let quiet = async {
        while let Ok(changed) = timeout(limit, progress.changed()).await {
            if changed.is_err() {
                return sleep(limit).await;
            }
        }
    };
    let _only_progress = timeout(limit.saturating_mul(MAX_PROGRESS), quiet).await;
}

/// The result as at most `most` bytes of text, and images.
fn understood(answer: &Value, most: usize) -> Result<ToolOutput, ToolError> {
    let (text, images) = match answer["content"].as_array() {
        Some(blocks) if !blocks.is_empty() => readable(blocks),
        _ => match &answer["structuredContent"] {
            Value::Null => Default::default(),
            structured => (structured.to_string(), Vec::new()),
        },
    };
    let text = capped(text, most);
    match (answer["isError"] == true, text.is_empty()) {
        (true, true) => Err(ToolError(
            "the tool failed without an error message".to_owned(),
        )),
        (true, false) => Err(ToolError(text)),
        (false, true) => Ok("(the tool returned nothing)".to_owned().into()),
        (false, false) => Ok(ToolOutput {
            content: text,
            images,
            ..ToolOutput::default()
        }),
    }
}

/// The beginning and end of a text that is longer than `most` bytes.
fn capped(text: String, most: usize) -> String {
    match without_middle(&text, most / 4 * 3, most / 4) {
        Some((head, left_out, tail)) => {
            format!("{head}\n… ({left_out} bytes left out; ask for less at once) …\n{tail}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::IMAGES;
    use super::*;

    fn check(result: &Value, expected: Result<&str, &str>) {
        let understood = understood(result, LARGEST)
            .map(|output| output.content)
            .map_err(|ToolError(why)| why);
        assert_eq!(
            understood,
            expected.map(str::to_owned).map_err(str::to_owned)
        );
    }

    #[test]
    fn results_become_text() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        check(&json!({ "content": [text("a"), text("b")] }), Ok("a\nb"));
        check(
            &json!({ "content": [text("no")], "isError": true }),
            Err("no"),
        );
        check(
            &json!({ "content": [], "isError": true }),
            Err("the tool failed without an error message"),
        );
        check(&json!({ "content": [] }), Ok("(the tool returned nothing)"));
        check(
            &json!({ "content": [], "structuredContent": { "a": 1 } }),
            Ok(r#"{"a":1}"#),
        );
        check(
            &json!({ "content": [text("a"), { "type": "hologram" }] }),
            Ok("a\n[{\"type\":\"hologram\"}]"),
        );
        check(
            &json!({ "unheard": "of" }),
            Ok("(the tool returned nothing)"),
        );
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(4096) });
        check(
            &json!({ "content": [image.clone()] }),
            Ok("[image, image/png, 3 kB]"),
        );
        for image in [
            json!({ "type": "image", "mimeType": "image/tiff", "data": "A".repeat(4096) }),
            json!({ "type": "image", "mimeType": "image/png", "data": "no base64!".repeat(410) }),
        ] {
            assert!(
                understood(&json!({ "content": [image] }), LARGEST)
                    .unwrap()
                    .images
                    .is_empty()
            );
        }
        let many = understood(&json!({ "content": vec![image; IMAGES + 1] }), LARGEST).unwrap();
        assert_eq!(many.images.len(), IMAGES);
        assert!(
            many.content.ends_with("3 kB: not shown]"),
            "{}",
            many.content
        );
        let file = json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "b" } });
        check(&json!({ "content": [file] }), Ok("[file:///a]\nb"));
    }

    #[test]
    fn long_results_keep_both_ends() {
        let text = capped(format!("head{}tail", "é".repeat(LARGEST)), LARGEST);
        assert!(text.len() < LARGEST + 100, "{}", text.len());
        assert!(text.starts_with("head") && text.ends_with("tail"));
        assert!(text.contains("bytes left out"));
        assert_eq!(capped("short".to_owned(), LARGEST), "short");
    }

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_timeout_up_to_a_limit() {
        use tokio::time::Instant;

        let limit = Duration::from_secs(10);
        let begun = Instant::now();
        let (reports, progress) = watch::channel(0);
        silence(progress, limit).await;
        assert_eq!(begun.elapsed(), limit, "without progress");
        let begun = Instant::now();
        let reporting = async {
            loop {
                tokio::time::sleep(limit / 2).await;
                reports.send_modify(|count| *count += 1);
            }
        };
        tokio::select! {
            () = silence(reports.subscribe(), limit) => {}
            () = reporting => {}
        }
        assert_eq!(
            begun.elapsed(),
            limit * MAX_PROGRESS,
            "with nothing but progress"
        );
    }
}
