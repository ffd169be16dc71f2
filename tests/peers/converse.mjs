// A conversation with `tandem acp` by the official client: npm @agentclientprotocol/sdk.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { environment, load, tandem } from './harness.mjs';

const acp = await load('@agentclientprotocol/sdk');
const { agent, client } = acp.methods;

// converse FOLDER SETTINGS ANSWER BODY SERVERS CAPABILITIES: runs an agent and a client that answers questions with the option
// of that kind, provides these MCP servers and announces these optional parts of the protocol.
export async function converse(folder, settings, answer, body, mcpServers = [], clientCapabilities = {}) {
  const env = environment(path.join(folder, '.home'), settings);
  const child = spawn(tandem, ['acp'], { stdio: ['pipe', 'pipe', 'inherit'], env });
  const ended = once(child, 'exit');
  const heard = { pid: child.pid, updates: [], questions: [], first: Promise.withResolvers() };
  const app = acp.client({ name: 'peer' })
    .onRequest(client.session.requestPermission, ({ params }) => {
      heard.questions.push(params);
      const { optionId } = params.options.find((option) => option.kind === answer);
      return { outcome: { outcome: 'selected', optionId } };
    })
    .onNotification(client.session.update, ({ params }) => {
      heard.updates.push(params.update);
      if (params.update.sessionUpdate === 'agent_message_chunk') heard.first.resolve();
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await app.connectWith(stream, async (agentSide) => {
    const hello = await agentSide.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities });
    assert.equal(hello.agentInfo.name, 'tandem');
    assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
    heard.hello = hello;
    const { sessionId } = await agentSide.request(agent.session.new, { cwd: folder, mcpServers });
    await body(agentSide, sessionId, heard);
  });
  child.stdin.end();
  const [code] = await ended;
  assert.equal(code, 0, 'a closed input is a good end');
}

export const prompt = (sessionId, text) => ({ sessionId, prompt: [{ type: 'text', text }] });
export const text = ({ updates }) =>
  updates.filter((update) => update.sessionUpdate === 'agent_message_chunk').map((update) => update.content.text).join('');
