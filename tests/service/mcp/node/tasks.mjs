// The client of the extension for tasks: `node tasks.mjs ADDRESS` prints the result of a task that asks once, as JSON.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  resultFromTaskOutcome,
} from "@modelcontextprotocol/ext-tasks/client";

const address = process.argv[2];
const clientInfo = { name: "test", version: "1" };
const clientCapabilities = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {} },
};
const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: "auto" } });
await client.connect(new StreamableHTTPClientTransport(new URL(address)));
const protocolVersion = client.getNegotiatedProtocolVersion();

let next = 0;
const sent = [];
async function rawDispatch(request) {
  sent.push(request.method);
  const name = request.params.taskId ?? request.params.name;
  const response = await fetch(address, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": protocolVersion,
      "Mcp-Method": request.method,
      ...(name === undefined ? {} : { "Mcp-Name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: `raw-${next++}`, ...request }),
  });
  const text = await response.text();
  const data = text.startsWith("{") ? text : text.split("\n").filter((each) => each.startsWith("data: ")).at(-1).slice(6);
  const message = JSON.parse(data);
  return message.error ? { kind: "error", error: message.error } : { kind: "result", result: message.result };
}

const asked = [];
const unexpected = () => {
  throw new Error("the server asks for what no client of it has to have");
};
const session = createTaskSessionFromClient(client, {
  endpointId: "test",
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: createApplicationInputHandler({
    elicitation: async (request) => {
      asked.push(request);
      return { action: "accept", content: { confirm: true } };
    },
    sampling: unexpected,
    roots: unexpected,
  }),
});
const execution = await session.callTool("sum", {});
const { outcome } = await execution.settle();
const result = resultFromTaskOutcome(outcome);
await session.close();
await client.close();
console.log(JSON.stringify({ kind: execution.kind, asked: asked.length, sent, result }));
process.exit(0);
