/** The same messages to this endpoint and to the official server package. Where the two differ, the difference is
 *  listed here with its reason, and nowhere else may there be one. */
import { createMcpHandler, McpServer, fromJsonSchema } from '@modelcontextprotocol/server'
import { expect, test } from 'vitest'
import { defined } from '../../domain/defined.ts'
import { useMcpWorld } from './mcp-world.ts'

const shared = useMcpWorld()
const NEW = '2026-07-28'
const META = { 'io.modelcontextprotocol/protocolVersion': NEW, 'io.modelcontextprotocol/clientCapabilities': {} }
const ACCEPT = 'application/json, text/event-stream'

interface Probe {
  readonly method?: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}
/** Status, and the code of the error or the names of the result's members. */
interface Outcome {
  readonly status: number
  readonly code?: number
  readonly result?: readonly string[]
}

const raw = (body: string, headers: Readonly<Record<string, string>> = {}): Probe => ({
  body,
  headers: { 'content-type': 'application/json', accept: ACCEPT, ...headers },
})
const old = (method: string, params: object = {}, headers: Readonly<Record<string, string>> = {}): Probe =>
  raw(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers)
const initialize = (protocolVersion: string) =>
  old('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'probe', version: '1' } })
const modern = (
  method: string,
  params: object = {},
  headers: Readonly<Record<string, string | undefined>> = {},
): Probe => {
  const sent = { 'mcp-protocol-version': NEW, 'mcp-method': method, ...headers }
  return old(
    method,
    { _meta: META, ...params },
    Object.fromEntries(Object.entries(sent).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  )
}

const PROBES: Readonly<Record<string, Probe>> = {
  discover: modern('server/discover'),
  list: modern('tools/list'),
  call: modern('tools/call', { name: 'list_regions', arguments: {} }, { 'mcp-name': 'list_regions' }),
  'call of an unknown tool': modern('tools/call', { name: 'nope', arguments: {} }, { 'mcp-name': 'nope' }),
  'method header missing': modern('tools/list', {}, { 'mcp-method': undefined }),
  'method header wrong': modern('tools/list', {}, { 'mcp-method': 'tools/call' }),
  'name header missing': modern('tools/call', { name: 'list_regions', arguments: {} }),
  'name header wrong': modern('tools/call', { name: 'list_regions', arguments: {} }, { 'mcp-name': 'other' }),
  'version header missing': modern('tools/list', {}, { 'mcp-protocol-version': undefined }),
  'version header of an old revision': modern('tools/list', {}, { 'mcp-protocol-version': '2025-11-25' }),
  'no _meta': modern('tools/list', { _meta: undefined }),
  'no capabilities': modern('tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': NEW } }),
  'revision 1900-01-01': modern(
    'tools/list',
    { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '1900-01-01' } },
    { 'mcp-protocol-version': '1900-01-01' },
  ),
  'unknown method': modern('no/such'),
  'initialize in the new form': modern('initialize', {
    protocolVersion: NEW,
    capabilities: {},
    clientInfo: { name: 'probe', version: '1' },
  }),
  'ping in the new form': modern('ping'),
  'resources in the new form': modern('resources/list'),
  'listen in the new form': modern('subscriptions/listen', { notifications: {} }),
  'notification in the new form': raw(
    JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { _meta: META, requestId: 1 } }),
    { 'mcp-protocol-version': NEW, 'mcp-method': 'notifications/cancelled' },
  ),
  'initialize 2026-07-28': initialize(NEW),
  'initialize 2025-11-25': initialize('2025-11-25'),
  'initialize 2025-06-18': initialize('2025-06-18'),
  'initialize 2025-03-26': initialize('2025-03-26'),
  'initialize of an unknown revision': initialize('1999-01-01'),
  'old ping': old('ping'),
  'old list without a header': old('tools/list'),
  'old list 2025-03-26': old('tools/list', {}, { 'mcp-protocol-version': '2025-03-26' }),
  'old list 2025-11-25': old('tools/list', {}, { 'mcp-protocol-version': '2025-11-25' }),
  'old list of an unknown revision': old('tools/list', {}, { 'mcp-protocol-version': '1900-01-01' }),
  'old call': old('tools/call', { name: 'list_regions', arguments: {} }),
  'old call of an unknown tool': old('tools/call', { name: 'nope', arguments: {} }),
  'old unknown method': old('no/such'),
  'old notification': raw('{"jsonrpc":"2.0","method":"notifications/initialized"}'),
  'posted response': raw('{"jsonrpc":"2.0","id":9,"result":{}}'),
  'id null': raw('{"jsonrpc":"2.0","id":null,"method":"ping"}'),
  batch: raw('[{"jsonrpc":"2.0","id":1,"method":"ping"}]'),
  'empty batch': raw('[]'),
  'broken JSON': raw('{"jsonrpc":'),
  'JSON that is no message': raw('{"hello":1}'),
  'Accept of JSON only': raw('{"jsonrpc":"2.0","id":1,"method":"ping"}', { accept: 'application/json' }),
  'Accept of anything': raw('{"jsonrpc":"2.0","id":1,"method":"ping"}', { accept: '*/*' }),
  'text/plain': raw('{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'content-type': 'text/plain' }),
  GET: { ...raw(''), method: 'GET' },
  DELETE: { ...raw(''), method: 'DELETE' },
}

const NO_METHOD: Outcome = { status: 200, code: -32601 }
const IS_200 = 'the contract answers every JSON-RPC error of a sound message inside a 200; the revision says 404 here'
const IS_LENIENT = 'the contract names no 406 and no 415 here: whoever can post JSON is answered JSON'
const IS_PROBLEM = 'what comes before a message is refused with a problem document'

/** What this endpoint answers where the official server answers otherwise, and why. */
const ALLOWED: Readonly<Record<string, { readonly ours: Outcome; readonly why: string }>> = {
  'unknown method': { ours: NO_METHOD, why: IS_200 },
  'initialize in the new form': { ours: NO_METHOD, why: IS_200 },
  'ping in the new form': { ours: NO_METHOD, why: IS_200 },
  'resources in the new form': { ours: NO_METHOD, why: IS_200 },
  'listen in the new form': { ours: NO_METHOD, why: 'no event stream is ever opened' },
  'old list of an unknown revision': {
    ours: { status: 400, code: -32022 },
    why: 'the error names the revisions that are served, as the new revision does',
  },
  batch: { ours: { status: 400, code: -32600 }, why: 'the contract refuses batches in every revision' },
  'Accept of JSON only': { ours: { status: 200, result: [] }, why: IS_LENIENT },
  'Accept of anything': { ours: { status: 200, result: [] }, why: IS_LENIENT },
  'text/plain': { ours: { status: 200, result: [] }, why: IS_LENIENT },
  GET: { ours: { status: 405 }, why: IS_PROBLEM },
  DELETE: { ours: { status: 405 }, why: IS_PROBLEM },
}

async function outcomeOf(response: Response): Promise<Outcome> {
  const text = await response.text()
  const json = (response.headers.get('content-type') ?? '').startsWith('text/event-stream')
    ? (/^data: (\{.*)$/m.exec(text)?.[1] ?? '')
    : text
  let body: { readonly result?: object; readonly error?: { readonly code: number } } = {}
  try {
    body = JSON.parse(json) as typeof body
  } catch {
    // no JSON: only the status counts
  }
  return {
    status: response.status,
    ...defined({ code: body.error?.code }),
    ...(body.result === undefined
      ? {}
      : {
          result: Object.keys(body.result)
            .filter((name) => !OPTIONAL.includes(name))
            .sort(),
        }),
  }
}
/** Members that a server may add or leave out. */
const OPTIONAL = ['_meta', 'instructions', 'isError', 'structuredContent']

/** The official server with one tool of the name that the probes call. */
function oracle(): (request: Request) => Promise<Response> {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'oracle', version: '1' }, { capabilities: { tools: {} } })
      server.registerTool('list_regions', { inputSchema: fromJsonSchema({ type: 'object' }) }, async () => ({
        content: [{ type: 'text', text: '{}' }],
      }))
      return server
    },
    { legacy: 'stateless', responseMode: 'json' },
  )
  return (request) => handler.fetch(request)
}

test('differs from the official server only where it is meant to', async () => {
  const ask = oracle()
  const differences: Record<string, { readonly ours: Outcome; readonly official: Outcome }> = {}
  for (const [name, { method = 'POST', body, headers }] of Object.entries(PROBES)) {
    const init = { method, headers, ...(method === 'POST' ? { body } : {}) }
    const ours = await outcomeOf(
      await fetch(shared.world.url, {
        ...init,
        headers: { ...headers, authorization: `Bearer ${shared.world.tokens.reading}` },
      }),
    )
    const response = await ask(new Request(shared.world.url, init))
    const official =
      /event-stream/.test(response.headers.get('content-type') ?? '') && name.includes('listen')
        ? { status: response.status }
        : await outcomeOf(response)
    if (JSON.stringify(ours) !== JSON.stringify(official)) differences[name] = { ours, official }
  }
  expect(Object.fromEntries(Object.entries(differences).map(([name, { ours }]) => [name, ours]))).toEqual(
    Object.fromEntries(Object.entries(ALLOWED).map(([name, { ours }]) => [name, ours])),
  )
})
