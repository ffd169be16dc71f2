// A provider of language models, like Copilot. Its model edits a file; when asked for a story, it talks until it is cancelled.
const { LanguageModelTextPart, LanguageModelToolCallPart, LanguageModelToolResultPart } = require("vscode");

const EDIT = { path: "src/offer.ts", edits: [{ old_text: "EUR", new_text: "USD" }] };
let cancelled = 0;

const text = (parts) => parts.map(({ value }) => value ?? "").join("");

exports.provider = {
  provideLanguageModelChatInformation: () => [
    { id: "editor", name: "Editor", family: "tests", version: "1", maxInputTokens: 60_000, maxOutputTokens: 8_000, capabilities: { toolCalling: true } },
  ],
  provideTokenCount: async () => 1,
  async provideLanguageModelChatResponse(_model, messages, { tools = [] }, progress, token) {
    const say = (words) => progress.report(new LanguageModelTextPart(words));
    const last = messages.at(-1).content;
    const results = last.filter((part) => part instanceof LanguageModelToolResultPart);
    if (results.length > 0) {
      say(`The result: ${text(results.flatMap(({ content }) => content))}`);
    } else if (text(last).includes("How often")) {
      say(`Cancelled ${cancelled} times.`);
    } else if (text(last).includes("a story")) {
      say("Once upon a time");
      await new Promise((resolve) => token.onCancellationRequested(resolve));
      cancelled += 1;
    } else {
      say(`I have ${tools.some(({ name }) => name === "edit_file") ? "a **pencil**" : "nothing"}. `);
      progress.report(new LanguageModelToolCallPart("call_m1", "edit_file", EDIT));
    }
  },
};
