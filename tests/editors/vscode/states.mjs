// States of the chat that no other check reaches: their pictures are checked for legibility like all others.
import { createServer } from "node:http";
import { once } from "node:events";
import { until } from "./workbench.mjs";

const CONFIG = ".config/tandem/config.toml";
const OTHERS = { mcpServers: { tracker: { command: "npx", args: ["-y", "tracker-mcp"] }, "postgres-of-the-shop": { command: "uvx", args: ["postgres-mcp"] } } };

/** The checks, in order, each a name and a function. */
export function stateChecks({ bench, model, picture }) {
  const { chat } = bench;
  const answer = (text) => chat.locator(".answer", { hasText: text });

  async function compacted() {
    await model.reset();
    await bench.newSession();
    await bench.setMode("ask");
    await model.script([{ text: "Noted." }], [{ text: "The word is xylophone, and nothing else was said." }]);
    await bench.say("The word is xylophone.");
    await answer("Noted.").waitFor();
    await bench.idle();
    await bench.say("/compact");
    await chat.locator(".list .thought, .list .notice").last().waitFor();
    await bench.idle();
    await picture("compacted");
  }

  /** An endpoint's response to a request it refuses. */
  async function refused() {
    const message = "Invalid value: 'reasoning_effort'. Supported values are: 'low' and 'medium' (request req_0123456789abcdef0123456789abcdef)";
    await model.script([{ status: 400, body: { error: { message } } }]);
    await bench.say("Think hard.");
    await chat.locator(".list .error", { hasText: "reasoning_effort" }).waitFor();
    await picture("error-400");
  }

  async function offered() {
    bench.save(".mcp.json", JSON.stringify(OTHERS));
    await bench.newSession();
    await model.script([{ text: "Hello." }]);
    await bench.say("Hello?");
    await answer("Hello.").waitFor();
    await chat.locator(".notice", { hasText: "MCP servers of other agents" }).waitFor();
    await bench.idle();
    await picture("import");
  }

  async function login() {
    const site = createServer(answerOfIssuer);
    await once(site.listen(0, "127.0.0.1"), "listening");
    bench.write(CONFIG, `[mcp.issue-board]\nurl = "http://127.0.0.1:${site.address().port}/mcp"\n`);
    await bench.newSession();
    await model.script([{ text: "It needs a login." }]);
    await bench.say("What is on the board?");
    const card = chat.locator(".asking", { hasText: "Log in to the MCP server issue-board" });
    await card.waitFor();
    await picture("login");
    await card.locator(".question button", { hasText: /reject|decline|no/i }).first().click();
    await answer("It needs a login.").waitFor();
    await bench.idle();
    bench.write(CONFIG, "");
    site.close();
    site.closeAllConnections();
  }

  /** Every kind of content an answer can have, with long words. */
  async function written() {
    const text = [
      "# Zusammenfassung der Warenkorbberechnung\n",
      "The `Donaudampfschifffahrtsgesellschaft` has [a page](https://example.com/donaudampfschifffahrt) and **internationalization**.\n",
      "| field | description | required |\n|---|---|---|\n| `identifier` | which record is meant, as the registry knows it | yes |\n| `quantity` | how many | no |\n",
      "- [x] a task that is done\n- [ ] one that is open, with responsibilities\n",
      "> A quotation about compatibility.\n",
      '```ts\n// of all\nexport class Cart<T extends Line = Line> {\n  total = 12.5; /* net */\n  get name() { return `cart ${this.total}` + "x".repeat(3); }\n}\n```\n',
      '```json\n{ "name": "shop", "private": true, "count": 1 }\n```\n',
      "```diff\n- old\n+ new\n```\n",
      "```html\n<a href=\"x\">y</a>\n```\n",
      "```css\n.cart:hover { color: #fff; margin: 2px }\n```\n",
      "```sh\n# runs\nnpm test -- --grep \"$NAME\"\n```\n",
      "```python\n@cached\ndef total(lines: list[Line]) -> float:\n    return sum(line.price for line in lines)  # net\n```\n",
      "```mermaid\nflowchart LR\n  cart --> total\n```\n",
      "Inline $a^2 + b^2$ and\n\n$$\\sum_{i=1}^n i = \\frac{n(n+1)}{2}$$\n",
    ].join("\n");
    await bench.newSession();
    await model.script([{ text }]);
    await bench.say("Summarize the responsibilities, at src/price.ts and in the documentation.");
    await answer("A quotation").waitFor();
    await bench.idle();
    await until(chat.locator(".answer .hljs-keyword").first(), (word) => word.isConnected);
    await picture("written");
    await chat.locator(".answer .code[data-language=mermaid]").hover();
    await chat.locator(".answer").getByRole("button", { name: "Show Diagram" }).click();
    const preview = bench.page.frameLocator('iframe.webview.ready:not([src*="tandem.tandem"])').frameLocator("iframe#active-frame");
    await preview.locator("svg", { hasText: "total" }).first().waitFor();
    await picture("diagram");
    await bench.command("View: Close Editor");
  }

  return [
    ["a compacted conversation says so", compacted],
    ["a refused request is shown with what to do", refused],
    ["servers of other agents are named once", offered],
    ["a login at an MCP server is asked about", login],
    ["an answer of every kind of text is drawn, and a diagram in the Markdown preview", written],
  ];
}

/** A server that requires a login, and an authorization server: only as far as the person is asked. */
function answerOfIssuer({ url, headers }, response) {
  const here = `http://${headers.host}`;
  const documents = {
    "/.well-known/oauth-protected-resource": { resource: `${here}/mcp`, authorization_servers: [here] },
    "/.well-known/oauth-authorization-server": {
      issuer: here,
      authorization_endpoint: `${here}/authorize`,
      token_endpoint: `${here}/token`,
      registration_endpoint: `${here}/register`,
      code_challenge_methods_supported: ["S256"],
    },
    "/register": { client_id: "shop" },
  };
  const document = documents[url];
  const wanted = { "WWW-Authenticate": `Bearer resource_metadata="${here}/.well-known/oauth-protected-resource"` };
  response.writeHead(document ? (url === "/register" ? 201 : 200) : 401, document ? { "Content-Type": "application/json" } : wanted);
  response.end(document && JSON.stringify(document));
}
