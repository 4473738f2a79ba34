// An MCP server over HTTP that is not in the container: the executor's requests to it go by the network policy. It is
// run by scripts/behind-policy, which lets one address through.
import http from 'node:http';
import { once } from 'node:events';

const tool = { name: 'where', description: 'Says where it is', inputSchema: { type: 'object', properties: {} } };

/** What the server answers to a request; null to a notification. */
function answer({ id, method, params }) {
  const results = {
    initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'outside', version: '1' } }),
    'tools/list': () => ({ tools: [tool] }),
    'tools/call': () => ({ content: [{ type: 'text', text: 'outside of the container' }] }),
  };
  return id === undefined ? null : { jsonrpc: '2.0', id, result: results[method]?.() ?? {} };
}

async function serve(address) {
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    const body = request.method === 'POST' ? answer(JSON.parse(text)) : null;
    if (body) response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    else response.writeHead(request.method === 'POST' ? 202 : 405).end();
  });
  server.listen(0, address);
  await once(server, 'listening');
  return server;
}

export default [
  {
    name: 'mcp-server-behind-the-policy',
    async run(t) {
      for (const [address, want] of [[process.env.EXEC_SERVER_ADDRESS, 'ready'], ['127.0.0.1', 'failed']]) {
        const server = await serve(address);
        try {
          const app = await t.app({ extra: `[mcp_servers.outside]\nurl = "http://${address}:${server.address().port}/mcp"\nenvironment_id = "rig"\n` });
          const started = app.waitFor((n) => n.method === 'mcpServer/startupStatus/updated' && ['ready', 'failed'].includes(n.params.status), 30000, 'the MCP server to start');
          const thread = await t.thread(app);
          t.assert.equal((await started).params.status, want);
          if (want !== 'ready') continue;
          await t.turn(app, thread, async (m) => {
            const r = await m.raw({ type: 'function_call', call_id: 'outside-1', namespace: 'mcp__outside', name: 'where', arguments: '{}' });
            t.assert.match(r.text, /outside of the container/);
          });
          t.assert.ok(t.sent('http/request').length >= 3);
        } finally {
          server.closeAllConnections();
          server.close();
        }
      }
    },
  },
];
