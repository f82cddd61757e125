// A client of the TypeScript SDK: `node client.mjs handshake|modern ADDRESS|COMMAND...` prints what it was given, as JSON.
const [era, ...target] = process.argv.slice(2);
const isHttp = target[0].startsWith("http");

const packages =
  era === "handshake"
    ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js",
       "@modelcontextprotocol/sdk/client/streamableHttp.js", "@modelcontextprotocol/sdk/types.js"]
    : ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio", "@modelcontextprotocol/client", undefined];
const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }, types] = await Promise.all(
  packages.map((name) => (name ? import(name) : undefined)),
);

const asked = [];
const answer = async (request) => {
  asked.push(request.params.message);
  const isApproval = "confirm" in request.params.requestedSchema.properties;
  return { action: "accept", content: isApproval ? { confirm: true } : { answer: "A line." } };
};
const client = new Client(
  { name: "test", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } },
);
client.setRequestHandler(types ? types.ElicitRequestSchema : "elicitation/create", answer);

const transport = isHttp
  ? new StreamableHTTPClientTransport(new URL(target[0]))
  : new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "inherit" });
await client.connect(transport);

const progress = [];
const options = { onprogress: (each) => progress.push(each.progress) };
const call = (name, given) => {
  const params = { name, arguments: given };
  return types ? client.callTool(params, undefined, options) : client.callTool(params, options);
};
const sum = await call("sum", {});
const line = await call("by_hand", {});
const refused = await call("describe", { words: "many" });
const page = await client.readResource({ uri: sum.structuredContent.resources.report });
const { tools } = await client.listTools();
await client.close();
console.log(JSON.stringify({
  asked, progress, sum, line, refused,
  tools: tools.map((tool) => tool.name),
  page: page.contents[0].mimeType,
}));
process.exit(0);
