// An MCP server that requires a login, with an authorization server that lets everyone in as Ada.
import { createServer } from "node:http";

const TOKEN = "token-of-ada";

export async function serveWithLogin() {
  const server = createServer(async (request, response) => {
    const origin = `http://${request.headers.host}`;
    const { pathname, searchParams } = new URL(request.url, origin);
    const send = (status, headers, body) => response.writeHead(status, headers).end(body && JSON.stringify(body));
    let text = "";
    for await (const chunk of request) {
      text += chunk;
    }
    switch (pathname) {
      case "/mcp":
        if (request.headers.authorization !== `Bearer ${TOKEN}`) {
          return send(401, { "www-authenticate": "Bearer" });
        }
        return send(200, { "content-type": "application/json" }, answer(JSON.parse(text)));
      case "/.well-known/oauth-protected-resource/mcp":
        return send(200, {}, { resource: `${origin}/mcp`, authorization_servers: [origin] });
      case "/.well-known/oauth-authorization-server":
        return send(200, {}, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          code_challenge_methods_supported: ["S256"],
        });
      case "/register":
        return send(201, {}, { client_id: "editor" });
      case "/authorize": {
        const back = new URL(searchParams.get("redirect_uri"));
        back.search = new URLSearchParams({ code: "code-of-ada", state: searchParams.get("state") });
        return send(302, { location: back.href });
      }
      case "/token":
        return send(200, {}, { access_token: TOKEN, token_type: "Bearer", expires_in: 3600 });
      default:
        return send(404, {});
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, close: () => server.close() };
}

function answer({ id, method }) {
  const results = {
    "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } },
    "tools/list": { tools: [{ name: "whoami", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: "Ada" }] },
  };
  return { jsonrpc: "2.0", id, result: results[method] };
}
