import { describe, expect, test } from 'vitest'
import { type Decision, decide, errorMessage, resultMessage, REVISIONS } from '../../../../kit/http/mcp/protocol.ts'

const MODERN = '2026-07-28'
const META = { 'io.modelcontextprotocol/protocolVersion': MODERN, 'io.modelcontextprotocol/clientCapabilities': {} }
const meta = (params: object = {}) => ({ _meta: META, ...params })

function decideText(text: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Decision {
  return decide({ body: typeof text === 'string' ? Buffer.from(text) : text, header: (name) => headers[name] })
}
const decideMessage = (message: unknown, headers: Readonly<Record<string, string>> = {}) =>
  decideText(JSON.stringify(message), headers)
const legacy = (message: object, version?: string) =>
  decideMessage({ jsonrpc: '2.0', id: 1, ...message }, version === undefined ? {} : { 'mcp-protocol-version': version })
const modern = (
  message: { readonly method: string; readonly params?: object },
  headers: Readonly<Record<string, string | undefined>> = {},
) => {
  const sent = { 'mcp-protocol-version': MODERN, 'mcp-method': message.method, ...headers }
  return decideMessage(
    { jsonrpc: '2.0', id: 1, ...message },
    Object.fromEntries(Object.entries(sent).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
  )
}
const codeOf = (decision: Decision): [string, number | undefined] => [
  decision.kind,
  'error' in decision ? decision.error.code : undefined,
]

const NESTED = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`

describe('what is no message at all is malformed', () => {
  test.each<[string, string | Uint8Array, number]>([
    ['no JSON', '{"jsonrpc":', -32700],
    ['an empty body', '', -32700],
    ['no UTF-8', Uint8Array.of(0x22, 0xff, 0x22), -32700],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
    ['nesting without end', `{"jsonrpc":"2.0","id":1,"method":"ping","params":${NESTED}}`, -32700],
    ['an empty batch', '[]', -32600],
    ['text', '"ping"', -32600],
    ['null', 'null', -32600],
    ['no version of JSON-RPC', '{"id":1,"method":"ping"}', -32600],
    ['another version of JSON-RPC', '{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['a method that is no text', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['params that are a list', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600],
    ['params that are null', '{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600],
    ['an id of null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    ['a fractional id', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600],
    ['an id that would lose digits', '{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32600],
    ['neither method nor result', '{"jsonrpc":"2.0","id":1}', -32600],
    ['both result and error', '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600],
    ['a result without an id', '{"jsonrpc":"2.0","result":{}}', -32600],
  ])('%s', (_name, text, code) => {
    expect(codeOf(decideText(text))).toEqual(['malformed', code])
  })
})

test('notifications and responses of clients are accepted, in every revision', () => {
  expect(decideMessage({ jsonrpc: '2.0', method: 'notifications/initialized' })).toEqual({ kind: 'accepted' })
  expect(
    decideMessage(
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: meta() },
      { 'mcp-protocol-version': MODERN },
    ),
  ).toEqual({ kind: 'accepted' })
  expect(decideMessage({ jsonrpc: '2.0', id: 'a', result: {} })).toEqual({ kind: 'accepted' })
  expect(
    decideMessage({ jsonrpc: '2.0', id: 1, error: { code: 1, message: '' } }, { 'mcp-protocol-version': MODERN }),
  ).toEqual({ kind: 'accepted' })
})

describe('revisions with a handshake', () => {
  test.each([
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    ['2024-11-05', '2025-11-25'],
    [MODERN, '2025-11-25'],
    [7, '2025-11-25'],
    [undefined, '2025-11-25'],
  ])('initialize with %s answers %s', (asked, answered) => {
    expect(legacy({ method: 'initialize', params: { protocolVersion: asked } })).toMatchObject({
      kind: 'answer',
      isStateless: false,
      request: { method: 'initialize', revision: answered },
    })
  })
  test.each([undefined, '2025-03-26', '2025-06-18', '2025-11-25', ' 2025-11-25 '])(
    'tools with the header %s',
    (version) => {
      expect(legacy({ method: 'tools/list' }, version)).toMatchObject({
        kind: 'answer',
        isStateless: false,
        request: { method: 'tools/list', cursor: undefined },
      })
      expect(
        legacy({ id: 'x', method: 'tools/call', params: { name: 'a', arguments: { b: 1 } } }, version),
      ).toMatchObject({ kind: 'answer', id: 'x', request: { method: 'tools/call', name: 'a', arguments: { b: 1 } } })
      expect(legacy({ method: 'ping' }, version)).toMatchObject({ kind: 'answer', request: { method: 'ping' } })
    },
  )
  test.each(['1900-01-01', '2025-12-01', 'nonsense'])('the unknown revision %s is malformed', (version) => {
    expect(legacy({ method: 'tools/list' }, version >= MODERN ? '2025-12-01' : version)).toMatchObject({
      kind: 'malformed',
      error: { code: -32022, data: { supported: REVISIONS } },
    })
  })
  test.each<[string, object]>([
    ['resources/list', {}],
    ['resources/read', { uri: 'x' }],
    ['server/discover', {}],
    ['subscriptions/listen', {}],
    ['nonsense', {}],
    ['__proto__', {}],
    ['constructor', {}],
  ])('%s is no method here', (method, params) => {
    expect(codeOf(legacy({ method, params }))).toEqual(['error', -32601])
  })
  test.each<[string, object]>([
    ['tools/call', {}],
    ['tools/call', { name: 1 }],
    ['tools/call', { name: 'a', arguments: [] }],
    ['tools/list', { cursor: 1 }],
  ])('%s with %j has invalid params', (method, params) => {
    expect(codeOf(legacy({ method, params }))).toEqual(['error', -32602])
  })
})

describe(`revision ${MODERN}`, () => {
  test.each(['__proto__', 'constructor', 'toString'])('%s is no method here', (method) => {
    expect(codeOf(modern({ method, params: meta() }))).toEqual(['error', -32601])
  })
  test('answers what it has', () => {
    expect(modern({ method: 'server/discover', params: meta() })).toMatchObject({
      kind: 'answer',
      isStateless: true,
      request: { method: 'server/discover' },
    })
    expect(modern({ method: 'tools/list', params: meta({ cursor: 'c' }) })).toMatchObject({
      kind: 'answer',
      isStateless: true,
      request: { method: 'tools/list', cursor: 'c' },
    })
    expect(modern({ method: 'tools/call', params: meta({ name: 'a' }) }, { 'mcp-name': 'a' })).toMatchObject({
      kind: 'answer',
      isStateless: true,
      request: { method: 'tools/call', name: 'a', arguments: {} },
    })
  })
  test('reads names that headers cannot say', () => {
    const encoded = `=?base64?${Buffer.from('größe').toString('base64')}?=`
    expect(modern({ method: 'tools/call', params: meta({ name: 'größe' }) }, { 'mcp-name': encoded })).toMatchObject({
      kind: 'answer',
    })
    expect(
      codeOf(modern({ method: 'tools/call', params: meta({ name: 'a' }) }, { 'mcp-name': '=?base64?/w==?=' })),
    ).toEqual(['malformed', -32020])
  })
  test.each<
    [
      string,
      { readonly method: string; readonly params?: object },
      Readonly<Record<string, string | undefined>>,
      number,
    ]
  >([
    ['the revision only in the header', { method: 'tools/list' }, {}, -32602],
    [
      'the revision only in the body',
      { method: 'tools/list', params: meta() },
      { 'mcp-protocol-version': undefined },
      -32020,
    ],
    ['two revisions', { method: 'tools/list', params: meta() }, { 'mcp-protocol-version': '2025-11-25' }, -32020],
    [
      'no capabilities',
      { method: 'tools/list', params: { _meta: { 'io.modelcontextprotocol/protocolVersion': MODERN } } },
      {},
      -32602,
    ],
    [
      'capabilities that are a list',
      { method: 'tools/list', params: { _meta: { ...META, 'io.modelcontextprotocol/clientCapabilities': [] } } },
      {},
      -32602,
    ],
    [
      'a revision that is not served',
      { method: 'tools/list', params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '2027-01-01' } } },
      { 'mcp-protocol-version': '2027-01-01' },
      -32022,
    ],
    [
      'an old revision in the new form',
      { method: 'tools/list', params: { _meta: { ...META, 'io.modelcontextprotocol/protocolVersion': '2025-11-25' } } },
      { 'mcp-protocol-version': '2025-11-25' },
      -32022,
    ],
    ['no method header', { method: 'tools/list', params: meta() }, { 'mcp-method': undefined }, -32020],
    ['another method header', { method: 'tools/list', params: meta() }, { 'mcp-method': 'tools/call' }, -32020],
    ['the method header in capitals', { method: 'tools/list', params: meta() }, { 'mcp-method': 'Tools/List' }, -32020],
    ['no name header', { method: 'tools/call', params: meta({ name: 'a' }) }, {}, -32020],
    ['another name header', { method: 'tools/call', params: meta({ name: 'a' }) }, { 'mcp-name': 'b' }, -32020],
    ['no name', { method: 'tools/call', params: meta() }, { 'mcp-name': 'a' }, -32602],
  ])('%s is malformed', (_name, message, headers, code) => {
    expect(codeOf(modern(message, headers))).toEqual(['malformed', code])
  })
  test.each(['initialize', 'ping', 'resources/list', 'subscriptions/listen', 'logging/setLevel', 'nonsense'])(
    '%s is no method here',
    (method) => {
      expect(codeOf(modern({ method, params: meta() }))).toEqual(['error', -32601])
    },
  )
})

test('results say more where a revision asks for it', () => {
  expect(resultMessage(7, { tools: [] }, undefined)).toEqual({ jsonrpc: '2.0', id: 7, result: { tools: [] } })
  expect(
    resultMessage(
      'a',
      { tools: [], _meta: { own: 1 } },
      { serverInfo: { name: 's' }, caching: { ttlMs: 1, cacheScope: 'private' } },
    ),
  ).toEqual({
    jsonrpc: '2.0',
    id: 'a',
    result: {
      resultType: 'complete',
      tools: [],
      ttlMs: 1,
      cacheScope: 'private',
      _meta: { own: 1, 'io.modelcontextprotocol/serverInfo': { name: 's' } },
    },
  })
  expect(errorMessage(null, { code: -32700, message: 'x' })).toEqual({
    jsonrpc: '2.0',
    id: null,
    error: { code: -32700, message: 'x' },
  })
})
