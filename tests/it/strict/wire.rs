//! The requirements of providers, in our words, and what enforces each: a rule of the strict server, or a test.
//! Counted by `every_wire_rule_is_held`.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;

use super::rules;

/// What enforces a wire rule.
enum By {
    /// A rule of the strict server whose text begins like this; the tests prove that it can refuse.
    Rule(&'static str),
    /// A test.
    Test(&'static str),
}

use By::{Rule, Test};

const SESSION: By = Test("a_whole_session_of_every_row_is_never_refused_and_every_rule_can_refuse");
const REFUSED: By = Test("a_field_that_a_host_refuses_by_name_is_left_out_once_in_the_session");
const EFFORTS: By = Test("efforts_are_sent_once_in_provider_terms");
const LISTS: By = Test("model_lists_of_all_providers_are_parsed");
const LOADED: By = Test("local_servers_report_the_loaded_context_window");

/// The wire rules: the provider, the requirement, and what enforces it.
const WIRE: &[(&str, &[(&str, By)])] = &[
    (
        "all",
        &[
            (
                "tools, system prompt and settings do not change",
                Rule("Tools, system prompt and settings"),
            ),
            (
                "the history does not change",
                Rule("A request repeats the one before"),
            ),
            ("nor in a process that resumes the conversation", SESSION),
            ("nor after a turn was cancelled", SESSION),
            ("nor after an answer that broke off", SESSION),
            (
                "nor after a process that ended in the middle of a turn",
                SESSION,
            ),
            (
                "no reasoning of another model",
                Rule("Another model's reasoning"),
            ),
            (
                "no reasoning of the same model at another provider",
                Test("reasoning_does_not_go_to_another_provider_of_the_same_model"),
            ),
            (
                "after a change of model the words of all turns are there",
                SESSION,
            ),
            (
                "only fields that the host knows",
                Rule("Unknown field at the top level"),
            ),
            ("the answer is streamed", Rule("The answer is streamed")),
            (
                "an effort that the model takes there, and in the field it has for it",
                Rule("The model takes this effort"),
            ),
            (
                "a host that does not stream is understood",
                Test("a_complete_json_answer_is_accepted_instead_of_a_stream"),
            ),
            ("a model that exists", Rule("The model does not exist")),
            (
                "tools with a good name, a description and a schema",
                Rule("A tool has a name"),
            ),
            (
                "names and ids that the dialect takes",
                Test("invalid_names_and_ids_are_sanitized"),
            ),
            ("a summary leaves the person's words", SESSION),
            ("a summary leaves the instructions of AGENTS.md", SESSION),
            (
                "a summary leaves tools, system prompt and cache key",
                Rule("Tools, system prompt and settings"),
            ),
            ("a summary is asked for without calls", SESSION),
            ("a summary is no answer", SESSION),
            (
                "words and instructions survive several summaries",
                Test("repeated_summaries_keep_instructions_and_user_text"),
            ),
            (
                "a picture of a person",
                Test("pictures_go_in_the_words_of_each_dialect_and_into_results_where_they_may"),
            ),
            (
                "a picture in a result",
                Test("pictures_go_in_the_words_of_each_dialect_and_into_results_where_they_may"),
            ),
            (
                "pictures after a change of model",
                Test("images_reach_the_next_model_and_a_summary_mentions_them"),
            ),
            (
                "pictures in a summary",
                Test("images_reach_the_next_model_and_a_summary_mentions_them"),
            ),
            (
                "pictures of a person that are refused are left out",
                Test("unsupported_images_are_dropped_with_a_notice"),
            ),
            (
                "pictures of results that are refused are left out",
                Test("unsupported_images_of_results_are_dropped_too"),
            ),
            ("a field refused by name is left out", REFUSED),
            ("the person is told once", REFUSED),
            (
                "it is not sent again in the session",
                Test("refused_fields_are_dropped_for_the_session"),
            ),
            ("nor by the next process", REFUSED),
            ("another server of that name is asked for itself", REFUSED),
            (
                "every host's way to name a field is understood",
                Test("refused_fields_are_recognized_by_name"),
            ),
            (
                "a refusal that names no field is no such refusal",
                Test("prose_is_not_a_field_name"),
            ),
            (
                "every host's way to say that it is too long is understood",
                Test("context_overflow_is_recognized_for_all_providers"),
            ),
            (
                "a temperature only where one was chosen and is taken",
                Rule("A temperature is sent"),
            ),
            (
                "the chosen limit of an answer, in the right field",
                Rule("The limit of an answer"),
            ),
            (
                "the same for all rows",
                Test("a_chosen_limit_and_temperature_are_sent_where_each_model_takes_them"),
            ),
        ],
    ),
    (
        "openai, azure",
        &[
            (
                "Responses for tools",
                Rule("Function tools are not supported in /v1/chat/completions"),
            ),
            (
                "a host that names the other dialect is asked there",
                Test("a_host_that_names_the_other_api_is_used_with_it_from_then_on"),
            ),
            (
                "and the person is told",
                Test("a_server_that_names_another_api_is_used_with_it"),
            ),
            (
                "every way to name it is understood",
                Test("a_suggested_dialect_is_recognized"),
            ),
            ("nothing is stored", Rule("Nothing is stored")),
            (
                "encrypted reasoning is asked for",
                Rule("Encrypted reasoning is asked for"),
            ),
            (
                "but not of a model without reasoning",
                Rule("Encrypted content is not supported"),
            ),
            (
                "an effort, or it does not reason",
                Rule("Without an effort"),
            ),
            ("one effort, in its words", EFFORTS),
            (
                "a summary of the reasoning",
                Rule("A summary of the reasoning"),
            ),
            (
                "no reasoning for gpt-4.1 and older",
                Rule("Unsupported parameter: 'reasoning.effort'"),
            ),
            (
                "max_output_tokens",
                Rule("Unsupported parameter: 'max_tokens'"),
            ),
            (
                "one cache key in a conversation, at most 64 characters",
                Rule("A conversation has a cache key"),
            ),
            (
                "another one in another conversation",
                Test("a_conversation_has_a_cache_key_of_its_own"),
            ),
            (
                "items as they came and in their order",
                Rule("Output items go back as they came"),
            ),
            (
                "with their phase",
                Test("items_are_sent_back_verbatim_and_in_order"),
            ),
            (
                "calls of custom tools too",
                Test("items_are_sent_back_verbatim_and_in_order"),
            ),
            (
                "reasoning is followed by what it led to",
                Rule("Item of type 'reasoning'"),
            ),
            (
                "a call has an output, an output a call",
                Rule("No tool output found"),
            ),
            (
                "what a person says in a turn follows the outputs",
                Rule("A message does not stand between"),
            ),
            (
                "ids of calls up to 64 characters",
                Rule("Invalid 'input[0].call_id'"),
            ),
            ("names of calls", Rule("Invalid 'input[0].name'")),
            ("parts of messages", Rule("A part of a message")),
            (
                "input_image with a data URL",
                Rule("An image is a data URL in image_url"),
            ),
            (
                "patches for gpt-4.1 and later, whoever serves them; old and new text for all others",
                Rule("OpenAI's models since gpt-4.1"),
            ),
        ],
    ),
    (
        "anthropic",
        &[
            ("the version of the API", Rule("anthropic-version")),
            (
                "a limit of the answer that the model can write",
                Rule("max_tokens: Field required"),
            ),
            (
                "adaptive thinking since 4.6",
                Rule("thinking.type.enabled is not supported"),
            ),
            (
                "a budget before, with room for the answer",
                Rule("adaptive thinking is not supported"),
            ),
            (
                "no effort before 4.6",
                Rule("This model does not support the effort parameter."),
            ),
            ("one effort, of the menu or the configuration", EFFORTS),
            (
                "blocks as they came, redacted ones too",
                Rule("`thinking` blocks"),
            ),
            (
                "no more than four cache marks",
                Rule("A maximum of 4 blocks"),
            ),
            (
                "one that moves with the end",
                Rule("The mark of the end moves along"),
            ),
            (
                "results right after calls and first; what a person says follows",
                Rule("`tool_use` ids were found"),
            ),
            ("no result without a call", Rule("unexpected `tool_use_id`")),
            (
                "ids and names of letters, digits, _ and -",
                Rule("tool_use.id"),
            ),
            (
                "arguments stream as they are written",
                Rule("Tools that write files stream"),
            ),
            (
                "no empty text",
                Rule("text content blocks must be non-empty"),
            ),
            (
                "a person's message or a result is last",
                Rule("This model does not support assistant message prefill"),
            ),
            (
                "a person's message is first",
                Rule("messages: first message"),
            ),
            (
                "image with a base64 source",
                Rule("An image has a base64 source"),
            ),
            (
                "no forced call beside thinking",
                Rule("Thinking may not be enabled"),
            ),
            (
                "pause_turn: the same again with what came",
                Rule("A paused turn is sent again"),
            ),
            (
                "pause_turn does not end the turn",
                Test("pause_turn_is_resent_and_a_full_window_is_an_overflow"),
            ),
            (
                "model_context_window_exceeded is an overflow",
                Test("pause_turn_is_resent_and_a_full_window_is_an_overflow"),
            ),
        ],
    ),
    (
        "chat, all hosts",
        &[
            (
                "only fields of messages that the host knows",
                Rule("Unknown field in a message"),
            ),
            (
                "only fields of calls that the host knows",
                Rule("Unknown field in a call"),
            ),
            (
                "results right after calls; what a person says follows",
                Rule("An assistant message with 'tool_calls'"),
            ),
            (
                "no result without a call",
                Rule("messages with role 'tool'"),
            ),
            (
                "arguments are the text of an object",
                Rule("Arguments of a call"),
            ),
            (
                "no empty message of the assistant",
                Rule("A message of the assistant"),
            ),
            ("the assistant is not last", Rule("The last message is")),
            (
                "image_url with a data URL, in a person's message",
                Rule("An image is a data URL in image_url.url"),
            ),
            ("tokens are asked for", Rule("Tokens are counted")),
            (
                "every call has its own id",
                Rule("Every call of a conversation"),
            ),
            (
                "ids up to 40 characters where the host counts them",
                Rule("Invalid 'messages[2].tool_calls[0].id'"),
            ),
            (
                "no effort that nobody chose",
                Rule("Nobody chose an effort"),
            ),
        ],
    ),
    (
        "openrouter, vercel",
        &[
            ("cache_control for Claude", Rule("Claude caches only where")),
            (
                "Vercel's own marks for Claude",
                Rule("The gateway marks what Claude caches"),
            ),
            (
                "reasoning_details as they came",
                Rule("reasoning_details go back"),
            ),
            (
                "an effort as reasoning.effort",
                Rule("An effort is said as reasoning.effort"),
            ),
        ],
    ),
    (
        "gemini, vertex",
        &[
            (
                "every first call has a signature, one that skips the check where there was none",
                Rule("Function call is missing"),
            ),
            (
                "a real signature goes back on its call and is never replaced",
                Rule("Thought signature is not valid"),
            ),
        ],
    ),
    (
        "deepseek, moonshot and their models elsewhere",
        &[
            (
                "reasoning_content beside all calls, empty where there was none",
                Rule("thinking is enabled but"),
            ),
            (
                "the own reasoning_content comes back",
                Rule("The reasoning_content of a model's own calls"),
            ),
            ("Kimi's ids are kept", Rule("The ids of Kimi's calls")),
            (
                "no reasoning_effort beside thinking",
                Rule("Invalid request: thinking and"),
            ),
        ],
    ),
    (
        "mistral and its models elsewhere",
        &[
            (
                "ids of nine letters and digits",
                Rule("Tool call id has to be"),
            ),
            (
                "no person right after a result",
                Rule("Unexpected role 'user'"),
            ),
            ("no stream_options", Rule("Unknown field at the top level")),
        ],
    ),
    (
        "xai, groq",
        &[
            (
                "x-grok-conv-id, the same in a conversation",
                Rule("A conversation stays with the server"),
            ),
            (
                "no effort unless it was chosen",
                Rule("Model grok-4.3 does not support"),
            ),
            (
                "Groq: no fields of others in messages",
                Rule("Unknown field in a message"),
            ),
        ],
    ),
    (
        "windows",
        &[
            (
                "context_length, context_window, max_context_length and max_model_len of lists",
                LISTS,
            ),
            ("what Ollama, llama.cpp and LM Studio have loaded", LOADED),
            (
                "a configured window beats what is reported",
                Test("the_endpoint_overrides_the_table_and_the_configuration_overrides_both"),
            ),
            (
                "known with the first answer, with a key alone",
                Test("a_key_alone_yields_window_and_cost_with_the_first_answer"),
            ),
            (
                "a small one is told once, with its remedy",
                Test("local_windows_are_read_and_small_ones_reported_once"),
            ),
            (
                "a silent cut is noticed and adopted",
                Test("silently_truncated_prompts_are_detected_and_compacted"),
            ),
            (
                "embedding models do not chat",
                Test("non_chat_models_are_recognized"),
            ),
            (
                "the newest of the preferred line is taken",
                Test("the_best_available_model_is_chosen"),
            ),
            (
                "a retired name offers the nearest",
                Test("retired_models_are_answered_with_available_ones"),
            ),
            (
                "of its own family first",
                Test("suggested_models_are_of_the_same_family"),
            ),
        ],
    ),
    (
        "kept between turns",
        &[
            (
                "OpenAI since 5.6: the reasoning of all turns",
                Rule("Reasoning of earlier turns is dropped"),
            ),
            (
                "OpenAI since 5.6: a mark at the end of the instructions",
                Rule("The cache is written at the end"),
            ),
            (
                "OpenAI before: a day of cache",
                Rule("The cache of older models"),
            ),
            (
                "and nobody else is asked for it",
                Rule("Unsupported parameter: prompt_cache_retention"),
            ),
            (
                "OpenRouter: the conversation's id",
                Rule("A conversation stays with the host that has its cache: session_id"),
            ),
            ("GLM keeps its thoughts", Rule("Without clear_thinking")),
            ("Kimi too", Rule("Without thinking.keep")),
            ("and Qwen at Alibaba", Rule("Alibaba's models drop")),
            (
                "and Qwen in its own template",
                Rule("Qwen's template drops"),
            ),
            (
                "the thoughts of every answer go back there",
                Rule("The thoughts of every answer"),
            ),
            ("Kimi K3 takes an effort", Rule("kimi-k3 takes")),
            (
                "Claude shows its thoughts",
                Rule("Thoughts are secret unless"),
            ),
            ("Gemini too", Rule("Thoughts are shown where")),
        ],
    ),
];

/// The names of all tests in a folder of sources.
fn tests(folder: &Path, found: &mut HashSet<String>) {
    for entry in std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if entry.is_dir() {
            tests(&entry, found);
            continue;
        }
        let text = std::fs::read_to_string(&entry).unwrap_or_default();
        for part in text
            .split("#[test]")
            .chain(text.split("#[tokio::test"))
            .skip(1)
        {
            let name = part
                .split_once("fn ")
                .and_then(|(_, rest)| rest.split_once('('));
            found.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
}

#[test]
fn every_wire_rule_is_held() {
    let mut known = HashSet::new();
    for folder in ["tests/it", "src"] {
        tests(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
            &mut known,
        );
    }
    let says: Vec<&str> = rules::all().map(|rule| rule.says).collect();
    let all = || {
        WIRE.iter()
            .flat_map(|(whose, rules)| rules.iter().map(move |(rule, by)| (*whose, *rule, by)))
    };
    let is_held = |by: &By| match by {
        Rule(begin) => says.iter().any(|says| says.starts_with(begin)),
        Test(name) => known.contains(*name),
    };
    let open: Vec<_> = all()
        .filter(|(_, _, by)| !is_held(by))
        .map(|(whose, rule, _)| (whose, rule))
        .collect();
    let is_counted =
        |says: &&&str| all().any(|(_, _, by)| matches!(by, Rule(begin) if says.starts_with(begin)));
    let uncounted: Vec<_> = says.iter().filter(|says| !is_counted(says)).collect();
    let (count, of_rules) = (
        all().count(),
        all().filter(|(_, _, by)| matches!(by, Rule(_))).count(),
    );
    let line = format!(
        "wire rules: {} of {count} held, {of_rules} by the strict server\n",
        count - open.len()
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert!(open.is_empty(), "nothing enforces these: {open:#?}");
    assert!(
        uncounted.is_empty(),
        "the strict server has rules that are not in the table: {uncounted:#?}"
    );
}
