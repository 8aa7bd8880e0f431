import { expect, test } from 'vitest'
import { z } from 'zod'
import { searchStep } from '../../../../kit/http/mcp/search.ts'
import { isAllowed, isChosen, toolsOf } from '../../../../kit/http/mcp/tools.ts'
import { route } from '../../../../kit/http/route.ts'
import type { Customer } from '../../../../kit/http/call.ts'
import { ROUTES } from '../../../../resources/index.ts'

const tools = toolsOf(ROUTES)
const toolOf = (name: string) => {
  const tool = tools.find(({ shown }) => shown.name === name)
  if (tool === undefined) throw new Error(`there is no tool ${name}`)
  return tool
}

test(
  'every JSON operation of signed-in customers is one tool by its operationId; streams, public routes and the ' +
    'endpoint itself are none',
  () => {
    const names = tools.map(({ shown }) => shown.name)
    expect(names).toEqual([...names].sort())
    expect(names).toEqual(expect.arrayContaining(['list_servers', 'create_server', 'get_operation', 'delete_ssh_key']))
    for (const name of ['stream_server_console', 'export_audit_entries', 'log_in', 'sign_up', 'send_mcp_message'])
      expect(names).not.toContain(name)
  },
)

test('arguments are path, query and body in one closed object of JSON Schema', () => {
  expect(toolOf('stop_server').shown.inputSchema).toMatchObject({
    type: 'object',
    required: ['id'],
    additionalProperties: false,
    properties: { id: { type: 'string' }, stop_type: { enum: ['soft', 'hard'], default: 'soft' } },
  })
  expect(toolOf('list_servers').shown.inputSchema).toMatchObject({
    properties: { limit: { type: 'integer', default: 20 }, label: { type: 'array' } },
  })
  for (const { shown, outputSchema } of tools) {
    expect(shown.inputSchema, shown.name).toMatchObject({ type: 'object' })
    expect(outputSchema ?? { type: 'object' }, shown.name).toMatchObject({ type: 'object' })
    expect(JSON.stringify([shown.inputSchema, outputSchema]), shown.name).not.toMatch(
      /"\$ref":"(?!#\/\$defs\/)|9007199254740991|x-kubernetes/,
    )
    expect(shown.name).toMatch(/^[A-Za-z0-9_.-]{1,128}$/)
  }
})

test('hints come from the route', () => {
  const hints = (name: string) => toolOf(name).shown.annotations
  expect(hints('get_server')).toEqual({
    readOnlyHint: true,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: false,
  })
  expect(hints('create_server')).toEqual({
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: false,
    openWorldHint: false,
  })
  expect(hints('delete_server')).toMatchObject({ readOnlyHint: false, destructiveHint: true })
  const [secret] = toolsOf([
    route({
      id: 'get_secret',
      method: 'GET',
      path: '/v1/secrets',
      summary: 'x',
      permission: 'operate',
      isCredentialRead: true,
      answers: { 200: z.strictObject({}) },
    }),
  ])
  expect(secret?.shown.annotations.readOnlyHint).toBe(false)
})

const sharing = (id: string, query: z.ZodObject | null) =>
  route({
    id,
    method: 'POST',
    path: '/v1/{id}',
    summary: 'x',
    permission: null,
    credentials: ['token', 'session'],
    params: z.strictObject({ id: z.string() }),
    ...(query === null ? {} : { query }),
    body: z.strictObject({ id: z.string() }),
    answers: { 204: null },
  })

test('a name that path and body share is two arguments', () => {
  const [tool] = toolsOf([sharing('both', null)])
  expect(Object.keys(tool?.shown.inputSchema['properties'] ?? {})).toEqual(['path_id', 'id'])
})

test('a route whose query and body share a name cannot be a tool', () =>
  expect(() => toolsOf([sharing('twice', z.strictObject({ id: z.string() }))])).toThrow('twice'))

test('what a token does to itself is no tool: it would end the client', () => {
  const own = route({
    id: 'revoke_own',
    method: 'DELETE',
    path: '/v1/own',
    summary: 'Revoke',
    credentials: ['token'],
    permission: null,
    audit: 'own.revoke',
    isDestructive: true,
    answers: { 204: null },
  })
  expect(toolsOf([own])).toEqual([])
  expect(toolsOf([{ ...own, credentials: ['token', 'session'] }])).toHaveLength(1)
})

const caller = (permissions: Customer['permissions']): Customer => ({
  kind: 'token',
  accountId: 'a',
  userId: 'u',
  email: '',
  role: 'owner',
  permissions,
  isEmailVerified: true,
  actor: '',
  token: { id: 't', name: 't', scope: 'read' },
})

test('tools are offered by what the token may do, and by what the client chose', () => {
  expect(isAllowed(toolOf('list_servers'), caller(['read']), true)).toBe(true)
  expect(isAllowed(toolOf('create_server'), caller(['read']), true)).toBe(false)
  expect(isAllowed(toolOf('create_server'), caller(['read', 'operate']), false)).toBe(true)
  expect(isAllowed(toolOf('create_api_token'), caller(['tokens.manage']), false), 'session only').toBe(false)
  const chosen = (filter: Parameters<typeof isChosen>[1]) =>
    tools.filter((tool) => isChosen(tool, filter)).map(({ shown }) => shown.name)
  expect(new Set(chosen({ toolsets: ['ssh-keys'], isReadOnly: false }))).toEqual(
    new Set(['create_ssh_key', 'delete_ssh_key', 'get_ssh_key', 'list_ssh_keys', 'update_ssh_key']),
  )
  expect(chosen({ toolsets: ['ssh-keys', 'no-such'], isReadOnly: true })).toEqual(['get_ssh_key', 'list_ssh_keys'])
  expect(chosen({ toolsets: ['no-such'], isReadOnly: false })).toEqual([])
})

test('operations are found by words', () => {
  const names = (query: string) => {
    const step = searchStep('search_operations', { query }, tools)
    return step !== undefined && 'found' in step
      ? (step.found['operations'] as { name: string }[]).map(({ name }) => name)
      : []
  }
  expect(names('stop a server')[0]).toBe('stop_server')
  expect(names('delete ssh keys')[0]).toBe('delete_ssh_key')
  expect(names('zzz')).toEqual([])
  expect(searchStep('search_operations', { query: '' }, tools)).toMatchObject({
    found: { names: tools.map(({ shown }) => shown.name) },
  })
  expect(searchStep('search_operations', {}, tools)).toHaveProperty('fault')
  expect(searchStep('read_operation', { name: 'list_servers' }, tools)).toEqual({
    call: 'list_servers',
    arguments: {},
    mustOnlyRead: true,
  })
  expect(searchStep('list_servers', {}, tools)).toBeUndefined()
})
