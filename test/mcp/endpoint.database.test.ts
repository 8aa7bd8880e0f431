/** The endpoint from outside: statuses, official clients of both generations, and what a tool call leaves behind. */
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { describe, expect, test } from 'vitest'
import { useMcpWorld } from './mcp-world.ts'

const shared = useMcpWorld()
const REVISION = '2026-07-28'
const META = { 'io.modelcontextprotocol/protocolVersion': REVISION, 'io.modelcontextprotocol/clientCapabilities': {} }

interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, any> // tests read many shapes
}

async function post(
  body: unknown,
  headers: Readonly<Record<string, string | undefined>> = {},
  path = '',
): Promise<Reply> {
  const sent = {
    authorization: `Bearer ${shared.world.tokens.writing}`,
    'content-type': 'application/json',
    ...headers,
  }
  const response = await fetch(`${shared.world.url}${path}`, {
    method: 'POST',
    headers: Object.fromEntries(
      Object.entries(sent).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
}
const ask = (
  method: string,
  params: object = {},
  headers: Readonly<Record<string, string | undefined>> = {},
  path = '',
) => post({ jsonrpc: '2.0', id: 1, method, params }, headers, path)
const callTool = async (
  name: string,
  args: object = {},
  headers: Readonly<Record<string, string | undefined>> = {},
  path = '',
) => (await ask('tools/call', { name, arguments: args }, headers, path)).body['result']
const namesOf = async (token: string, path = '') =>
  (await ask('tools/list', {}, { authorization: `Bearer ${token}` }, path)).body['result'].tools.map(
    (tool: { name: string }) => tool.name,
  ) as string[]

describe('before a message is read', () => {
  test.each(['GET', 'DELETE', 'PUT'])('%s: 405', async (method) => {
    const response = await fetch(shared.world.url, {
      method,
      headers: { authorization: `Bearer ${shared.world.tokens.writing}` },
    })
    expect([response.status, response.headers.get('allow'), response.headers.get('content-type')]).toEqual([
      405,
      'POST',
      'application/problem+json',
    ])
  })
  test.each(['https://evil.example', 'null', 'http://127.0.0.1.evil.example'])(
    'origin %s: 403, even without a token',
    async (origin) => {
      expect(await ask('ping', {}, { origin })).toMatchObject({ status: 403, body: { status: 403 } })
      expect(await ask('ping', {}, { origin, authorization: undefined })).toMatchObject({ status: 403 })
    },
  )
  test.each(['http://127.0.0.1:8080', 'http://localhost:8080'])(
    "the service's own origin %s is answered",
    async (origin) => {
      expect(await ask('ping', {}, { origin })).toMatchObject({ status: 200 })
    },
  )
  test('no token, a bad one, a session: 401 with WWW-Authenticate', async () => {
    const session = await shared.world.owner.send('POST', '/mcp', { body: { jsonrpc: '2.0', id: 1, method: 'ping' } })
    expect([session.status, session.headers['www-authenticate']]).toEqual([401, 'Bearer'])
    for (const [authorization, challenge] of [
      [undefined, 'Bearer'],
      ['Bearer nonsense', 'Bearer error="invalid_token"'],
    ] as const) {
      const reply = await ask('ping', {}, { authorization })
      expect([reply.status, reply.headers.get('www-authenticate'), reply.body['status']]).toEqual([401, challenge, 401])
    }
  })
})

test('a tool call has one request id: in the answer, in its result', async () => {
  for (const name of ['list_servers', 'get_server']) {
    const { headers, body } = await ask('tools/call', { name, arguments: { id: crypto.randomUUID() } })
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(body['result']._meta['svccloud.dev/request_id']).toBe(headers.get('x-request-id'))
  }
})

describe('statuses of messages', () => {
  test('malformed ones: 400 with a JSON-RPC error of id null', async () => {
    for (const [body, code] of [
      ['{', -32700],
      ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
      ['{}', -32600],
      ['{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}', -32600],
    ] as const) {
      expect(await post(body)).toMatchObject({ status: 400, body: { jsonrpc: '2.0', id: null, error: { code } } })
    }
    expect(
      await ask('tools/list', { _meta: META }, { 'mcp-protocol-version': '2025-06-18', 'mcp-method': 'tools/list' }),
    ).toMatchObject({ status: 400, body: { id: null, error: { code: -32020 } } })
  })
  test('notifications and responses: 202 without a body', async () => {
    for (const message of [
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { jsonrpc: '2.0', id: 1, result: {} },
    ])
      expect(await post(message)).toMatchObject({ status: 202, body: {} })
  })
  test('unknown methods: an error inside a 200, in every revision', async () => {
    expect(await ask('no/such')).toMatchObject({ status: 200, body: { id: 1, error: { code: -32601 } } })
    expect(
      await ask('no/such', { _meta: META }, { 'mcp-protocol-version': REVISION, 'mcp-method': 'no/such' }),
    ).toMatchObject({ status: 200, body: { id: 1, error: { code: -32601 } } })
  })
  test('any content type and Accept are taken', async () => {
    expect(await ask('ping', {}, { 'content-type': 'text/plain', accept: 'application/json' })).toMatchObject({
      status: 200,
      body: { result: {} },
    })
    expect(await ask('ping', {}, { accept: '*/*' })).toMatchObject({ status: 200 })
  })
  test('a body of more than 1 MiB: 413', async () => {
    expect(await post(`{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(1_048_576)}"}`)).toMatchObject({ status: 413 })
  })
  test('unknown tools and cursors of other lists are invalid params', async () => {
    for (const name of ['no_such_tool', 'stream_server_console', 'log_in', 'send_mcp_message'])
      expect(await ask('tools/call', { name })).toMatchObject({ status: 200, body: { error: { code: -32602 } } })
    expect(await ask('tools/list', { cursor: 'bm8' })).toMatchObject({ status: 200, body: { error: { code: -32602 } } })
  })
})

describe('tools', () => {
  test('are those that the token may call', async () => {
    const { reading, writing } = shared.world.tokens
    const [fewer, more] = [await namesOf(reading), await namesOf(writing)]
    expect(more).toEqual(expect.arrayContaining(['create_server', 'get_operation', 'list_servers']))
    expect(fewer).toContain('list_servers')
    expect(fewer).not.toContain('create_server')
    expect(more).toEqual(expect.arrayContaining(fewer))
    expect(more).not.toContain('create_api_token')
  })
  test('are chosen by toolset, by reading only, and by search', async () => {
    const { writing } = shared.world.tokens
    expect(await namesOf(writing, '?toolsets=ssh-keys&readonly=1')).toEqual(['get_ssh_key', 'list_ssh_keys'])
    expect((await ask('tools/list', {}, { 'x-mcp-toolsets': 'zones' })).body['result'].tools).toHaveLength(1)
    expect(await namesOf(writing, '?mode=search')).toEqual(['read_operation', 'search_operations', 'write_operation'])
    expect(await ask('tools/call', { name: 'create_ssh_key' }, {}, '?readonly=1')).toMatchObject({
      body: { error: { code: -32602 } },
    })
  })
  test.each(['?read_only=1', '?readonly=yes', '?mode=serch', '?schemas=all', '?toolsets=ssh-keys,no-such'])(
    'are never listed for a setting that is not known: %s',
    async (query) => {
      const { status, body } = await ask('tools/list', {}, {}, query)
      expect(status).toBe(400)
      expect(body).toMatchObject({ title: 'Bad Request', errors: [{ field: expect.stringMatching(/\w/) }] })
    },
  )
  test('whoami says for whom a model acts', async () => {
    const { structuredContent } = await callTool('whoami')
    expect(structuredContent.account).toMatchObject({ role: 'owner', permissions: expect.any(Array) })
    expect(structuredContent.account.email).toMatch(/@/)
    expect(await namesOf(shared.world.tokens.reading)).toContain('whoami')
  })
  test('prompts are listed and filled in; others, and unknown arguments, are invalid', async () => {
    const { prompts } = (await ask('prompts/list')).body['result']
    expect(prompts.map(({ name }: { name: string }) => name)).toEqual([
      'create_server',
      'diagnose_server',
      'run_command',
      'review_costs',
    ])
    const got = await ask('prompts/get', { name: 'run_command', arguments: { server: 'web', command: 'uptime' } })
    expect(got.body['result'].messages).toEqual([
      { role: 'user', content: { type: 'text', text: expect.stringContaining('uptime') } },
    ])
    for (const params of [
      { name: 'no_such' },
      { name: 'run_command', arguments: { server: 'web' } },
      { name: 'run_command', arguments: { server: 'web', command: 1 } },
      { name: 'review_costs', arguments: { other: 'x' } },
    ])
      expect(await ask('prompts/get', params)).toMatchObject({ status: 200, body: { error: { code: -32602 } } })
  })
  test('in search mode call the same routes', async () => {
    const found = await callTool('search_operations', { query: 'list the zones' }, {}, '?mode=search')
    expect(found.structuredContent.operations[0].name).toBe('list_zones')
    expect(
      (await callTool('read_operation', { name: 'list_zones' }, {}, '?mode=search')).structuredContent.items.length,
    ).toBeGreaterThan(0)
    expect(
      await callTool('read_operation', { name: 'delete_server', arguments: { id: 'x' } }, {}, '?mode=search'),
    ).toMatchObject({ isError: true })
    expect(
      await callTool('write_operation', { name: 'delete_server', arguments: { id: 'x' } }, {}, '?mode=search'),
    ).toMatchObject({ isError: true, _meta: { 'svccloud.dev/status': 404 } })
  })
  test('answer what their route answers, with its status and request id', async () => {
    const result = await callTool('list_zones')
    expect(result).toMatchObject({
      isError: false,
      structuredContent: { items: expect.any(Array), next_cursor: null },
      _meta: { 'svccloud.dev/status': 200, 'svccloud.dev/request_id': expect.stringMatching(/^[0-9a-f-]{36}$/) },
    })
    expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent)
  })
  test('refuse as their route does, in a result: bad arguments, missing ids, unknown ids', async () => {
    expect(await callTool('create_ssh_key', { name: 'x' })).toMatchObject({
      isError: true,
      structuredContent: { status: 400, errors: [{ field: 'public_key' }] },
      content: [{ text: expect.stringContaining('400 Bad Request') }],
      _meta: { 'svccloud.dev/status': 400 },
    })
    expect(await callTool('get_server')).toMatchObject({
      isError: true,
      structuredContent: { errors: [{ field: 'id', detail: 'is required' }] },
    })
    for (const id of ['no-such', '../zones', 'a/b', 'x?y', '\ud800'])
      expect(await callTool('get_server', { id }), id).toMatchObject({
        isError: true,
        structuredContent: { status: 404 },
      })
    expect(await callTool('list_zones', { nonsense: 1 })).toMatchObject({
      isError: true,
      structuredContent: { status: 400, errors: [{ field: 'nonsense' }] },
    })
  })
  test('that the token may not call are refused by their route, and the refusal is audited once', async () => {
    const result = await callTool(
      'delete_server',
      { id: 'any' },
      { authorization: `Bearer ${shared.world.tokens.reading}` },
    )
    expect(result).toMatchObject({ isError: true, structuredContent: { status: 403 } })
    const rows = await shared.world.cloud.db
      .selectFrom('audit_entry')
      .select('body')
      .where('request_id', '=', result._meta['svccloud.dev/request_id'])
      .execute()
    expect(rows.map((row) => JSON.parse(row.body))).toMatchObject([
      { action: 'server.delete', outcome: 'denied', actor_kind: 'token', source_ip: '127.0.0.1' },
    ])
    expect(await callTool('create_api_token', { name: 'x', scope: 'read' })).toMatchObject({
      isError: true,
      structuredContent: { status: 403 },
    })
  })
})

describe('official clients', () => {
  const requestInit = (token: string) => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } })

  test('of the first generation list, call and read errors', async () => {
    const client = new OldClient({ name: 'test', version: '1' })
    await client.connect(
      new OldTransport(new URL(shared.world.url), requestInit(shared.world.tokens.writing)) as Parameters<
        OldClient['connect']
      >[0],
    ) // its types are not for exactOptionalPropertyTypes
    try {
      expect(client.getServerVersion()).toMatchObject({ name: 'svccloud' })
      expect(client.getInstructions()).toContain('get_operation')
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('list_servers')
      expect(await client.callTool({ name: 'list_plans' })).toMatchObject({
        isError: false,
        structuredContent: { next_cursor: null },
      })
      expect(await client.callTool({ name: 'get_server', arguments: { id: 'nope' } })).toMatchObject({ isError: true })
      await client.ping()
      await expect(client.callTool({ name: 'nope' })).rejects.toThrow('nope')
    } finally {
      await client.close()
    }
  })

  test.each(['legacy', 'auto', { pin: REVISION }] as const)(
    'of the second generation do too, in mode %j',
    async (mode) => {
      const client = new NewClient({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
      await client.connect(
        new NewTransport(new URL(`${shared.world.url}?schemas=output`), requestInit(shared.world.tokens.writing)),
      )
      try {
        const { tools } = await client.listTools()
        expect(tools.map(({ name }) => name)).toContain('list_servers')
        expect(tools.find(({ name }) => name === 'list_plans')?.outputSchema).toMatchObject({ type: 'object' })
        expect(await client.callTool({ name: 'list_plans', arguments: {} })).toMatchObject({
          structuredContent: { next_cursor: null },
        })
        expect(await client.callTool({ name: 'get_server', arguments: { id: 'nope' } })).toMatchObject({
          isError: true,
        })
      } finally {
        await client.close()
      }
    },
  )
})

test('a model makes a server, and its owner sees who it was', async () => {
  const [zone, plan] = [shared.world.cloud.zone, 'tiny']
  const made = await callTool('create_server', { zone, plan, hostname: 'by-model', template: 'tiny-linux' })
  expect(made).toMatchObject({
    isError: false,
    structuredContent: { server: { hostname: 'by-model' }, operation: { kind: 'server.create' } },
    _meta: { 'svccloud.dev/status': 202 },
  })
  const operation = await callTool('get_operation', { id: made.structuredContent.operation.id })
  expect(operation.structuredContent.operation).toMatchObject({
    kind: 'server.create',
    actor: expect.stringMatching(/^token:/),
  })
  expect((await callTool('list_servers', { hostname: 'by-model' })).structuredContent.items).toHaveLength(1)
  expect(await callTool('create_server', { zone, plan, hostname: 'by-model', template: 'tiny-linux' })).toMatchObject({
    isError: true,
    _meta: { 'svccloud.dev/status': 409, 'svccloud.dev/reason': 'name_taken' },
  })
})

test('too many messages: 429 with Retry-After, for each token', async () => {
  shared.world.hurry()
  const statuses = new Map<number, Reply>()
  for (let sent = 0; sent < 40; sent += 1) {
    const reply = await ask('ping')
    statuses.set(reply.status, reply)
  }
  expect([...statuses.keys()]).toEqual([200, 429])
  expect(statuses.get(429)?.headers.get('retry-after')).toBe('1')
  expect(statuses.get(429)?.body).toMatchObject({ status: 429, reason: 'rate_limited' })
  expect(await ask('ping', {}, { authorization: `Bearer ${shared.world.tokens.reading}` })).toMatchObject({
    status: 200,
  })
})
