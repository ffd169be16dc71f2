const { Diagnostic, languages, lm, LanguageModelTextPart, LanguageModelToolResult, Range, workspace } = require("vscode");
const { provider } = require("./models.js");

exports.activate = ({ subscriptions }) => {
  const problems = languages.createDiagnosticCollection("linter");
  const lint = (document) => {
    const found = [...document.getText().matchAll(/badly/g)].map(({ index }) => {
      const range = new Range(document.positionAt(index), document.positionAt(index + 5));
      return Object.assign(new Diagnostic(range, "a bad word: badly"), { source: "linter", code: "bad-word" });
    });
    problems.set(document.uri, found);
  };
  workspace.textDocuments.forEach(lint);
  const invoke = ({ input: { text } }) => {
    if (text === "") {
      throw new Error("an empty text");
    }
    return new LanguageModelToolResult([new LanguageModelTextPart(`${text.match(/badly/g).length} bad words`)]);
  };
  subscriptions.push(
    lm.registerTool("linter_count", { invoke }),
    lm.registerLanguageModelChatProvider("linter", provider),
    problems,
    workspace.onDidOpenTextDocument(lint),
    workspace.onDidChangeTextDocument(({ document }) => lint(document)),
  );
};
