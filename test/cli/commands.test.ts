import { expect, test } from 'vitest'
import { z } from 'zod'
import { requestFields, knownOf, split } from '../../cli/arguments.ts'
import { type Command, commandsOf, nameOf } from '../../cli/commands.ts'
import { candidates, completionScript } from '../../cli/completion.ts'
import { Failure, serviceFailure } from '../../cli/exit.ts'
import { commandHelp } from '../../cli/help.ts'
import { withIds } from '../../cli/names.ts'
import { render } from '../../cli/output.ts'
import { COMMANDS } from '../../cli/session.ts'
import { route } from '../../kit/http/route.ts'

const routeOf = (id: string, path: string, more: object = {}) =>
  route({
    id,
    method: 'GET',
    path,
    summary: 'x',
    permission: 'read',
    answers: { 200: z.strictObject({}) },
    ...more,
  })

test.each([
  ['list_servers', '/v1/servers', 'server list'],
  ['get_server', '/v1/servers/{id}', 'server get'],
  ['change_server_plan', '/v1/servers/{id}/change-plan', 'server change-plan'],
  ['renumber_server_ipv6', '/v1/servers/{id}/renumber-ipv6', 'server renumber-ipv6'],
  ['get_dev_cluster_kubeconfig', '/v1/dev-clusters/{id}/kubeconfig', 'dev-cluster kubeconfig'],
  ['list_account_quotas', '/v1/account/quotas', 'quota list'],
  ['get_audit_integrity', '/v1/audit/integrity', 'audit integrity'],
  ['list_credits', '/v1/account/credits', 'credit list'],
  ['assign_floating_ip', '/v1/floating-ips/{id}/assign', 'floating-ip assign'],
])('%s at %s is %s', (id, path, name) => {
  expect(
    commandsOf([routeOf(id, path, path.includes('{') ? { params: z.strictObject({ id: z.string() }) } : {})]).map(
      nameOf,
    ),
  ).toEqual([name])
})

test('two operations are never one command, and what no token may call is none', () => {
  expect(() => commandsOf([routeOf('list_servers', '/v1/servers'), routeOf('list_servers', '/v1/servers')])).toThrow(
    'server list',
  )
  const names = COMMANDS.map(nameOf)
  expect(names).toEqual(expect.arrayContaining(['server create', 'server list', 'ssh-key create', 'operation get']))
  expect(names.filter((name) => /console|token|login|mcp/.test(name))).toEqual([
    'dev-cluster token',
    'kubernetes-cluster token',
    'token revoke-own',
  ])
})

const commandOf = (name: string): Command => {
  const command = COMMANDS.find((candidate) => nameOf(candidate) === name)
  if (command === undefined) throw new Error(name)
  return command
}
test('an id is of what the path names before it, and has its name', () => {
  const nounOf = (name: string) => commandOf(name).parameters.map(({ noun }) => noun)
  expect(nounOf('server start')).toEqual(['server'])
  expect(nounOf('backup create')).toEqual(['storage'])
  expect(nounOf('snapshot create')).toEqual(['storage'])
  expect(commandHelp(commandOf('backup create'))).toContain('Usage: svccloud backup create STORAGE [FLAGS]')
})

test('a field that names another resource takes its title, for every purpose of the field', async () => {
  const items = (path: string) => [{ id: `id-of-${/[\w-]+(?=[?]|$)/.exec(path)?.[0]}`, title: 'Numbers' }]
  const api = { send: async ({ path }: { path: string }) => ({ body: { items: items(path), next_cursor: null } }) }
  const given = { source_snapshot_id: 'Numbers', storage_id: 'Numbers', ssh_key_ids: ['Numbers'], title: 'Numbers' }
  expect(await withIds(api as never, COMMANDS, { ...given, unknown_id: 'Numbers' })).toEqual({
    source_snapshot_id: 'id-of-snapshots',
    storage_id: 'id-of-storages',
    ssh_key_ids: ['id-of-ssh-keys'],
    title: 'Numbers',
    unknown_id: 'Numbers',
  })
})

const bodyOf = (name: string, ...line: string[]) => {
  const command = commandOf(name)
  return requestFields(command.flags, split([...name.split(' '), ...line], knownOf(command)).own, 'body')
}

test('flags become fields of their type', () => {
  expect(
    bodyOf(
      'server create',
      '--zone',
      'z',
      '--labels',
      'a=1,b=x=y',
      '--labels=c=',
      '--storage-gibibytes',
      '20',
      '--no-start',
      '--ssh-key-ids',
      'one,two',
    ),
  ).toEqual({
    zone: 'z',
    labels: { a: '1', b: 'x=y', c: '' },
    storage_gibibytes: 20,
    start: false,
    ssh_key_ids: ['one', 'two'],
  })
  expect(bodyOf('server update', 'web', '--is-protected', '--title', '')).toEqual({ is_protected: true, title: '' })
  expect(bodyOf('server update', 'web', '--is-protected=false', '--labels', '')).toEqual({
    is_protected: false,
    labels: {},
  })
})

test.each([
  ['server list', ['--nonsense'], '--nonsense'],
  ['server create', ['--storage-gibibytes', 'many'], 'whole number'],
  ['server create', ['--zone'], 'needs a value'],
  ['server create', ['--labels', 'a'], 'key=value'],
  ['server list', ['--output', 'xml'], 'table, json'],
  ['server create', ['--start=maybe'], 'true or false'],
])('%s %j is refused', (name, line, told) => {
  expect(() => bodyOf(name, ...line)).toThrow(told)
})

const style = { format: 'table', columns: undefined, hasColor: false } as const
const LIST = {
  items: [
    { id: '1', name: 'one', size: null },
    { id: '22', name: 'two\u001b[2J', size: { a: 1 } },
  ],
  next_cursor: null,
}

test('answers are shown as tables, sheets, JSON, YAML or ids', () => {
  expect(render(LIST, style)).toBe('ID  NAME\n1   one\n22  two [2J\n')
  expect(render(LIST, { ...style, columns: ['name', 'size.a'] })).toBe('NAME     SIZE.A\none      -\ntwo [2J  1\n')
  expect(render(LIST, { ...style, format: 'name' })).toBe('1\n22\n')
  expect(render({ server: { id: '1', state: 'started' }, operation: { id: '2' } }, style)).toBe(
    'id     1\nstate  started\n',
  )
  expect(render({ server: { id: '1' } }, { ...style, format: 'json' })).toBe(
    '{\n  "server": {\n    "id": "1"\n  }\n}\n',
  )
  expect(render({ server: { id: '1' } }, { ...style, format: 'yaml' })).toBe('server:\n  id: "1"\n')
  expect(render({ items: [], next_cursor: null }, style)).not.toContain('undefined')
})

test('a list of invoices shows what is due, and a list of credits what is left', () => {
  const invoice = {
    id: '1',
    period: '2026-11',
    total_cents: 872,
    lines: [],
    payment_status: 'paid',
    created_at: 'then',
  }
  expect(render({ items: [invoice] }, style)).toMatch(/^ID +PERIOD +TOTAL CENTS +PAYMENT STATUS +CREATED AT\n/)
  const credit = { id: '1', label: 'Coupon', state: 'live', amount_cents: 300, remaining_cents: 5 }
  expect(render({ items: [credit] }, style)).toMatch(/^ID +LABEL +STATE +AMOUNT CENTS +REMAINING CENTS\n/)
})

test('exit codes follow the status, and a refusal says its reason and its request', () => {
  const codeOf = (status: number) => serviceFailure(status, {}, new Headers()).code
  expect([400, 401, 402, 403, 404, 409, 413, 415, 422, 429, 500, 503].map(codeOf)).toEqual([
    3, 2, 1, 2, 1, 1, 3, 3, 1, 1, 1, 1,
  ])
  const refusal = serviceFailure(
    409,
    { title: 'Conflict', detail: 'Busy.', reason: 'operation_in_progress' },
    new Headers({ 'x-request-id': 'r-1' }),
  )
  expect(refusal).toBeInstanceOf(Failure)
  expect(refusal.message).toBe('409 Conflict: Busy.\n  reason operation_in_progress, request r-1')
})

test('shells complete nouns, verbs, flags and choices', () => {
  expect(candidates(COMMANDS, [])).toEqual(expect.arrayContaining(['server', 'login', 'console', 'audit']))
  expect(candidates(COMMANDS, ['audit'])).toEqual(['entries', 'export-entries', 'integrity', 'verify'])
  expect(candidates(COMMANDS, ['server', 'stop', 'web'])).toEqual(expect.arrayContaining(['--stop-type', '--no-wait']))
  expect(candidates(COMMANDS, ['server', 'stop', 'web', '--stop-type'])).toEqual(['soft', 'hard'])
  for (const shell of ['bash', 'zsh', 'fish']) expect(completionScript(shell)).toContain('svccloud complete --')
  expect(completionScript('csh')).toBeUndefined()
})

test('a series is drawn as bars, as many as fit, and is JSON for programs', () => {
  const at = (second: number) => new Date(second * 1000).toISOString()
  const points = Array.from({ length: 120 }, (_, second) => ({
    at: at(second),
    bytes: second === 119 ? 7 : 0,
    calls: 0,
  }))
  const lines = render({ period: '1h', points }, style).split('\n')
  expect(lines[0]).toBe(`From ${at(0)} to ${at(119)}`)
  expect(lines[1]).toBe(`bytes  ${'▁'.repeat(59)}█  most 7`)
  expect(lines[2]).toBe(`calls  ${'▁'.repeat(60)}  most 0`)
  expect(JSON.parse(render({ points }, { ...style, format: 'json' }))).toEqual({ points })
})

test('columns that an answer does not have are refused, and one of an absent label is empty', () => {
  expect(() => render(LIST, { ...style, columns: ['nmae'] })).toThrow('there is no column nmae; did you mean name?')
  expect(() => render({ server: { id: '1' } }, { ...style, columns: ['x'] })).toThrow(
    'there is no column x; there are id',
  )
  expect(render(LIST, { ...style, columns: ['size.b'] })).toBe('SIZE.B\n-\n-\n')
})
