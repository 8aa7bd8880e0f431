/** A tool call of MCP against the REST route that it names, both in this process. */
import { defined } from '../domain/defined.ts'
import { createServer } from './creations.ts'
import { type Cloud, openCloud } from './cloud.ts'
import { type Bench, closedLoop } from './runner.ts'

const CLIENTS = 4
/** Each may make 30 tool calls at once. */
const TOKENS = { full: 2_000, short: 10 }

export const bench: Bench = {
  name: 'B12 MCP',
  question: 'tools/call of get_server',
  subjectName: 'tool calls',
  peerName: 'GET /v1/servers/{id}',
  unit: 'calls',
  goal: 0.8,
  heldBy:
    'a tool call is a request within a request, and its result has the answer twice, as the protocol wants it: as ' +
    'text and as structured content.',
  tier: 'database',
  async open(round) {
    const cloud = await openCloud(['n1'], { tokens: TOKENS[round] })
    await cloud.startCaches()
    const id = await createServer(cloud, cloud, 0)
    const call = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'get_server', arguments: { id } },
    })
    return {
      subject: {
        run: (seconds) =>
          closedLoop(CLIENTS, seconds, async () => {
            const { result } = JSON.parse(await send(cloud, 'POST', '/mcp', call)) as {
              readonly result?: { readonly isError: boolean }
            } // JSON-RPC
            if (result?.isError !== false) throw new Error('the tool call failed')
          }),
      },
      peer: {
        run: (seconds) =>
          closedLoop(CLIENTS, seconds, async () => void (await send(cloud, 'GET', `/v1/servers/${id}`))),
      },
      close: () => cloud.close(),
    }
  },
}

let number = 0

async function send({ app, tokens }: Cloud, method: 'GET' | 'POST', target: string, body?: string): Promise<string> {
  const response = await app.customers({
    method,
    target,
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    headers: {
      authorization: `Bearer ${tokens[number++ % tokens.length]}`,
      accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...defined({ body }),
  })
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${String(response.body)}`)
  return String(response.body)
}
