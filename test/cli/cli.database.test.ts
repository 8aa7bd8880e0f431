/** Commands against the real API: what they print, what they leave behind, how they end. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { generateSync } from 'otplib'
import { accountNamespace } from '../../resources/index.ts'
import { Operation } from '../../resources/operation/index.ts'
import { PASSWORD, PUBLIC_KEY } from '../apiserver/cloud.ts'
import { endServerOperation } from '../apiserver/end-operation.ts'
import { eventually } from '../eventually.ts'
import { useWorld } from './command-line.ts'
import { runLine } from './run-line.ts'

const shared = useWorld()
const svccloud = (...line: string[]) => shared.world.svccloud(line)

describe('signing in', () => {
  const home = (name: string) => ({ XDG_CONFIG_HOME: join(shared.world.folder, name) })
  const login = (name: string, line: readonly string[], more: object = {}, environment: object = {}) =>
    runLine(['login', '--url', shared.world.url, ...line], { environment: { ...home(name), ...environment }, ...more })

  test('with a token keeps it for its owner alone, and commands use it', async () => {
    const token = await shared.world.owner.token('read')
    expect(await login('by-token', ['--token', '-'], { input: `${token}\n` })).toMatchObject({
      code: 0,
      error: expect.stringContaining('profile default'),
    })
    const file = join(shared.world.folder, 'by-token/svccloud/config.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const use = (...line: string[]) => runLine(line, { environment: home('by-token') })
    expect(await use('zone', 'list', '-o', 'name')).toMatchObject({
      code: 0,
      out: expect.stringContaining(shared.world.cloud.zone),
    })
    expect(await use('ssh-key', 'create', '--name', 'x', '--public-key', PUBLIC_KEY)).toMatchObject({
      code: 2,
      error: expect.stringMatching(/^svccloud: 403 Forbidden: .*\n {2}request [0-9a-f-]{36}\n$/),
    })
    expect(await login('by-token', ['--profile', 'other', '--token', token])).toMatchObject({ code: 0 })
    expect((await use('profile', 'list')).out).toMatch(/default +http.* +false\nother +http.* +true\n/)
    expect(await use('profile', 'use', 'default')).toMatchObject({
      code: 0,
      error: `Commands now use the profile default (${shared.world.url}).\n`,
    })
    expect(await use('logout')).toMatchObject({
      code: 0,
      error: expect.stringMatching(/stays valid\. Commands now use the profile other\.\n$/),
    })
    expect(await readFile(file, 'utf8')).not.toContain('"default": {')
    expect(await use('profile', 'use', 'default')).toMatchObject({ code: 4 })
  })
  test('with a bad token keeps nothing', async () => {
    expect(await login('bad', ['--token', 'nonsense'])).toMatchObject({
      code: 2,
      error: expect.stringContaining('401'),
    })
    expect(await runLine(['zone', 'list'], { environment: home('bad') })).toMatchObject({
      code: 2,
      error: expect.stringContaining('svccloud login'),
    })
  })
  test('with a password makes a token, asking for what is not given', async () => {
    expect(await login('asked', [], { isTerminal: true, input: `owner@example.com\n${PASSWORD}` })).toMatchObject({
      code: 0,
      error: expect.stringContaining('Password: '),
    })
    expect(await login('given', ['--email', 'owner@example.com'], {}, { SVCCLOUD_PASSWORD: PASSWORD })).toMatchObject({
      code: 0,
    })
    expect(await runLine(['zone', 'list'], { environment: home('given') })).toMatchObject({ code: 0 })
    expect(await login('none', [])).toMatchObject({ code: 4 })
    // What login made goes with logout; what a person made does not.
    const { token } = JSON.parse(await readFile(join(shared.world.folder, 'given/svccloud/config.json'), 'utf8'))
      .profiles.default
    const send = () => shared.world.cloud.send('GET', '/v1/regions', { headers: { authorization: `Bearer ${token}` } })
    expect((await send()).status).toBe(200)
    expect(await runLine(['logout'], { environment: home('given') })).toMatchObject({
      code: 0,
      error: `Logged out of ${shared.world.url} (profile default). Its token is revoked.\n`,
    })
    expect((await send()).status).toBe(401)
    expect(await login('wrong', ['--email', 'owner@example.com'], {}, { SVCCLOUD_PASSWORD: 'wrong' })).toMatchObject({
      code: 2,
    })
  })
  test('with a second factor too', async () => {
    const careful = await shared.world.cloud.signUp('careful@example.com')
    const { secret } = (await careful.send('POST', '/v1/account/mfa/totp')).body
    const codes = await careful.send('POST', '/v1/account/mfa/totp/confirm', {
      body: { code: generateSync({ secret }) },
    })
    const [recoveryCode] = codes.body['recovery_codes']
    const line = ['--email', 'careful@example.com']
    expect(await login('factor', line, {}, { SVCCLOUD_PASSWORD: PASSWORD })).toMatchObject({
      code: 4,
      error: expect.stringContaining('--code'),
    })
    expect(await login('factor', [...line, '--code', recoveryCode], {}, { SVCCLOUD_PASSWORD: PASSWORD })).toMatchObject(
      { code: 0 },
    )
    expect(await runLine(['zone', 'list'], { environment: home('factor') })).toMatchObject({ code: 0 })
  })
})

describe('servers', () => {
  test('are made, waited for, and shown as they are then', async () => {
    expect(await svccloud('ssh-key', 'create', '--name', 'laptop', '--public-key', PUBLIC_KEY)).toMatchObject({
      code: 0,
      out: expect.stringContaining('SHA256:'),
    })
    const { cloud, owner } = shared.world
    const making = svccloud(
      'server',
      'create',
      '--zone',
      cloud.zone,
      '--hostname',
      'web',
      '--plan',
      'tiny',
      '--template',
      'tiny-linux',
      '--ssh-key-ids',
      'laptop',
    )
    const key = { namespace: accountNamespace(owner.accountId) }
    let operation: Awaited<ReturnType<typeof cloud.admin.list<never, never>>>['items'][number] | undefined
    while (operation === undefined) {
      operation = (await cloud.admin.list(Operation, key).catch(() => ({ items: [] }))).items[0] as typeof operation
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const events = [{ at: '2026-01-01T00:00:00Z', kind: 'started', message: 'Placed.' }]
    await endServerOperation(
      cloud.admin,
      { ...key, name: operation.metadata.name },
      { status: 'succeeded', step: '', stepIndex: 4, error: '', events },
    )
    const made = await making
    expect(made).toMatchObject({ code: 0, error: expect.stringContaining('server.create: Placed.\n') })
    expect(made.out).toMatch(/^hostname +web$/m)
  })
  test('that fail to come about end with their error', async () => {
    const { cloud, owner } = shared.world
    const started = await svccloud(
      'server',
      'create',
      '--zone',
      cloud.zone,
      '--hostname',
      'broken',
      '--plan',
      'tiny',
      '--template',
      'tiny-linux',
      '--no-wait',
      '-o',
      'json',
    )
    expect(started.code, started.error).toBe(0)
    const { server, operation } = JSON.parse(started.out)
    const key = { namespace: accountNamespace(owner.accountId), name: operation.id }
    const end = { status: 'failed' as const, step: 'storage', stepIndex: 1, error: 'No room.' }
    await endServerOperation(cloud.admin, key, end)
    expect(await svccloud('operation', 'get', operation.id, '--columns', 'status,error')).toMatchObject({
      code: 0,
      out: 'status  failed\nerror   No room.\n',
    })
    expect(await svccloud('server', 'delete', server.id)).toMatchObject({
      code: 4,
      error: expect.stringContaining('--yes'),
    })
    expect(
      await shared.world.svccloud(['server', 'delete', 'broken'], { isTerminal: true, input: 'no' }),
    ).toMatchObject({ code: 4, error: expect.stringContaining('nothing was changed') })
    // What changes nothing is not confirmed, and there is nothing to wait for.
    expect(await svccloud('server', 'delete', 'broken', '--dry-run')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^dry_run: true\n[^]*kind: server\.delete/),
    })
    expect(await svccloud('server', 'delete', 'broken', '--yes', '--no-wait')).toMatchObject({ code: 0 })
  })
  test('are found by name, changed, and listed', async () => {
    expect(
      await svccloud('server', 'update', 'web', '--labels', 'tier=front', '--title', 'Front', '-o', 'yaml'),
    ).toMatchObject({ code: 0, out: expect.stringContaining('title: Front') })
    expect(
      await svccloud('server', 'list', '--label', 'tier=front', '--columns', 'hostname,labels.tier'),
    ).toMatchObject({ code: 0, out: 'HOSTNAME  LABELS.TIER\nweb       front\n' })
    expect(await svccloud('server', 'update', 'web', '--title', 'x', '--if-match', '"99"')).toMatchObject({
      code: 1,
      error: expect.stringContaining('reason state_not_allowed'),
    })
    expect(await svccloud('server', 'get', 'no-such')).toMatchObject({
      code: 1,
      error: expect.stringContaining('404 Not Found'),
    })
    expect(await svccloud('server', 'list', '--limit', '1')).toMatchObject({
      code: 0,
      error: expect.stringContaining('--all'),
    })
    expect(
      (await svccloud('server', 'list', '--limit', '1', '--all', '-o', 'name')).out.trim().split('\n'),
    ).toHaveLength(2)
  })
  test('of others are named by the names of those', async () => {
    const { zone } = shared.world.cloud
    const making = ['--zone', zone, '--size-gibibytes', '1', '--title', 'Numbers', '--no-wait']
    expect(await svccloud('storage', 'create', ...making)).toMatchObject({ code: 0 })
    expect(await svccloud('snapshot', 'create', 'no-such')).toMatchObject({ error: expect.stringContaining('404') })
    expect(await svccloud('snapshot', 'create', 'Numbers')).toMatchObject({ error: expect.stringContaining('409') })
    expect(await svccloud('snapshot', 'create')).toMatchObject({
      code: 4,
      error: expect.stringContaining('snapshot create takes STORAGE'),
    })
  })
  test('are described in files, where flags win', async () => {
    const file = join(shared.world.folder, 'server.yaml')
    await writeFile(
      file,
      `zone: ${shared.world.cloud.zone}\nhostname: from-file\nplan: no-such\ntemplate: tiny-linux\n`,
    )
    expect(await svccloud('server', 'create', '-f', file, '--no-wait')).toMatchObject({
      code: 3,
      error: expect.stringContaining('plan'),
    })
    expect(await svccloud('server', 'create', '-f', file, '--plan', 'tiny', '--no-wait')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^hostname +from-file$/m),
    })
    expect(await svccloud('server', 'create', '-f', join(shared.world.folder, 'nothing'))).toMatchObject({ code: 4 })
    expect(await svccloud('server', 'create', '--hostname', 'x')).toMatchObject({
      code: 4,
      error: 'svccloud: --zone, --plan and one of --template and --custom-image-id are required\n',
    })
  })
})

test('an interrupted wait ends with 130, and says how to follow the operation, which continues', async () => {
  const { cloud } = shared.world
  const interrupt = new AbortController()
  const making = shared.world.svccloud(
    ['server', 'create', '--zone', cloud.zone, '--hostname', 'slow', '--plan', 'tiny', '--template', 'tiny-linux'],
    {
      isTerminal: true,
      signal: interrupt.signal,
      onError: (error) => void (error.includes('server.create: ') && interrupt.abort()),
    },
  )
  const { code, error } = await making
  const [, id = ''] = /operation (\S+) continues. Follow it with: svccloud operation wait \1\n$/.exec(error) ?? []
  expect([code, id]).toEqual([130, expect.stringMatching(/^[0-9a-f-]{36}$/)])
  // Following it works, and ends as the operation does.
  const following = svccloud('operation', 'wait', id)
  const key = { namespace: accountNamespace(shared.world.owner.accountId), name: id }
  const end = { status: 'failed' as const, step: 'storage', stepIndex: 1, error: 'No room.' }
  await endServerOperation(cloud.admin, key, end)
  expect(await following).toMatchObject({ code: 5, error: expect.stringContaining('failed: No room.') })
})

test('a key comes from its file', async () => {
  const file = join(shared.world.folder, 'key.pub')
  await writeFile(file, `${PUBLIC_KEY.split(' ').slice(0, 2).join(' ')} from-a-file\n`)
  expect(await svccloud('ssh-key', 'delete', 'laptop', '--yes')).toMatchObject({ code: 0 })
  expect(await svccloud('ssh-key', 'create', '--name', 'filed', '--public-key', `@${file}`)).toMatchObject({
    code: 0,
    out: expect.stringContaining('from-a-file'),
  })
  expect(await svccloud('ssh-key', 'create', '--name', 'none', '--public-key', `@${file}.no`)).toMatchObject({
    code: 4,
    error: expect.stringContaining(`${file}.no cannot be read`),
  })
})

describe('signing up', () => {
  const home = { XDG_CONFIG_HOME: '/nonexistent', SVCCLOUD_PASSWORD: PASSWORD }
  const signup = (line: readonly string[], more: object = {}) =>
    runLine(['signup', '--url', shared.world.url, ...line], { environment: home, ...more })

  test('says where the mail is, and confirms the address with its link', async () => {
    const mails = join(shared.world.folder, 'mails')
    await mkdir(mails)
    const signing = signup(['--name', 'Ada', '--email', 'ada@example.com', '--mails', mails])
    const body = await eventually('the mail', async () => {
      const mails = shared.world.cloud.db.selectFrom('email_outbox').select('body')
      return (await mails.where('recipient', '=', 'ada@example.com').executeTakeFirst())?.body
    })
    await writeFile(join(mails, 'other.eml'), `To: grace@example.com\r\n\r\n${body.replace('#token=', '#token=x')}`)
    await writeFile(join(mails, 'hers.eml'), `To: ada@example.com\r\n\r\n${body}`)
    expect(await signing).toMatchObject({
      code: 0,
      error: expect.stringMatching(/It is in \S+hers\.eml\nThe address is confirmed\. Next: svccloud login /),
    })
    const environment = { ...home, XDG_CONFIG_HOME: join(shared.world.folder, 'ada') }
    const login = ['login', '--url', shared.world.url, '--email', 'ada@example.com']
    expect(await runLine(login, { environment })).toMatchObject({ code: 0 })
    // Only a verified address may make servers; a key of SSH is missing before that is looked at.
    expect(await runLine(['whoami'], { environment })).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^email +ada@example\.com$/m),
    })
  })
  test('without mails to look at says how to continue', async () => {
    expect(await signup(['--email', 'grace@example.com'])).toMatchObject({
      code: 0,
      error: expect.stringContaining(`svccloud confirm-email LINK --url ${shared.world.url}`),
    })
    expect(await runLine(['confirm-email', 'x', '--url', shared.world.url], { environment: home })).toMatchObject({
      code: 3,
      error: expect.stringContaining('token'),
    })
    expect(await runLine(['signup', '--url', shared.world.url], { environment: {} })).toMatchObject({ code: 4 })
  })
})

test('whoami works with any token, and names the account', async () => {
  const token = await shared.world.owner.token('read')
  const environment = { SVCCLOUD_TOKEN: token }
  const { accountId } = shared.world.owner
  expect(await shared.world.svccloud(['whoami', '-o', 'name'], { environment })).toEqual({
    code: 0,
    out: `${accountId}\n`,
    error: '',
  })
  const { out } = await shared.world.svccloud(['-o', 'json', 'whoami'], { environment })
  expect(JSON.parse(out).account).toMatchObject({
    namespace: accountNamespace(accountId),
    email: 'owner@example.com',
    role: 'owner',
    permissions: expect.arrayContaining(['read']),
    token: { id: expect.any(String) },
  })
})

test('tokens are managed by the person, who is asked for the password', async () => {
  const environment = { SVCCLOUD_PASSWORD: PASSWORD }
  // Without --email it is the person of the profile's token.
  const run = (...line: string[]) => shared.world.svccloud(line, { environment })
  const made = await run('token', 'create', 'robot', '--scope', 'read', '--expires-at', 'never')
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/^svccloud_r_\S+\n$/) })
  const robot = { SVCCLOUD_TOKEN: made.out.trim() }
  expect(await shared.world.svccloud(['zone', 'list'], { environment: robot })).toMatchObject({ code: 0 })
  expect((await run('token', 'list', '--columns', 'name,scope,expires_at')).out).toMatch(/^robot +read +-$/m)
  expect(await run('token', 'revoke', 'robt')).toMatchObject({
    code: 4,
    error: expect.stringContaining('did you mean robot?'),
  })
  expect(await run('token', 'revoke', 'robot')).toMatchObject({ code: 0 })
  expect(await shared.world.svccloud(['zone', 'list'], { environment: robot })).toMatchObject({ code: 2 })
  expect(await svccloud('token', 'list')).toMatchObject({
    code: 4,
    error: expect.stringContaining('SVCCLOUD_PASSWORD'),
  })
})

test('the audit log is fetched and checked, and a changed export is found out', async () => {
  expect(await svccloud('audit', 'verify')).toMatchObject({ code: 0, out: expect.stringMatching(/^OK: \d+ entries/) })
  const { out } = await svccloud('audit', 'export-entries', '--limit', '3', '--all')
  const lines = out.trim().split('\n')
  expect(lines.length).toBeGreaterThan(3)
  const file = join(shared.world.folder, 'audit.ndjson')
  await writeFile(file, out)
  expect(await runLine(['audit', 'verify', file], {})).toMatchObject({
    code: 0,
    out: expect.stringContaining(`OK: ${lines.length} entries`),
  })
  await writeFile(file, out.replace('owner@example.com', 'other@example.com'))
  expect(await runLine(['audit', 'verify', file], {})).toMatchObject({
    code: 1,
    out: expect.stringContaining('BROKEN'),
  })
  expect(await runLine(['audit', 'verify', '-'], { input: 'nonsense' })).toMatchObject({ code: 3 })
})

test("any request can be sent, and its refusal is the command's", async () => {
  expect(JSON.parse((await svccloud('api', 'get', '/v1/regions')).out)).toMatchObject({ next_cursor: null })
  expect(
    await shared.world.svccloud(['api', 'POST', '/v1/ssh-keys', '-f', '-'], { input: '{"name": "x"}' }),
  ).toMatchObject({ code: 3, error: expect.stringContaining('public_key') })
  expect(await svccloud('api', 'GET', 'v1')).toMatchObject({ code: 4 })
})

test('the console types what is piped in, and says what cannot be typed', async () => {
  const server = (await svccloud('server', 'list', '--hostname', 'web', '-o', 'name')).out.trim()
  const leave = new AbortController()
  // No controller has started it here, so what is typed is refused; then there is nothing to wait for.
  const isRefused = (error: string) => void (error.includes('not sent: 409') && leave.abort())
  expect(
    await shared.world.svccloud(['console', server], { input: 'hello\n', signal: leave.signal, onError: isRefused }),
  ).toMatchObject({ code: 0 })
  expect(await svccloud('console')).toMatchObject({ code: 4 })
  // Nothing to type: it ends with its input, unless it is to stay.
  expect(await shared.world.svccloud(['console', server], { input: '' })).toMatchObject({ code: 0 })
  expect(await shared.world.svccloud(['console', server, '--for', '0'], { input: '' })).toMatchObject({ code: 0 })
  expect(await svccloud('console', 'no-such')).toMatchObject({ code: 1, error: expect.stringContaining('404') })
})

describe('command lines', () => {
  test.each([
    [['nonsense'], 4],
    [['server', 'nonsense'], 4],
    [['server', 'get'], 4],
    [['server', 'list', 'extra'], 4],
    [['completion', 'csh'], 4],
    [['help'], 0],
    [['server', '--help'], 0],
    [['server', 'create', '--help'], 0],
    [['login', '-h'], 0],
    [['--version'], 0],
  ])('%j ends with %i', async (line, code) => {
    expect(await svccloud(...line)).toMatchObject({ code, [code === 0 ? 'error' : 'out']: '' })
  })
  test('nobody there is its own code', async () => {
    expect(
      await runLine(['zone', 'list'], { environment: { SVCCLOUD_URL: 'http://127.0.0.1:9', SVCCLOUD_TOKEN: 'x' } }),
    ).toMatchObject({ code: 6, error: expect.stringContaining('cannot be reached') })
  })
  test('colors are left out where NO_COLOR asks for it', async () => {
    expect((await shared.world.svccloud(['zone', 'list'], { isTerminal: true })).out).toContain('\u001b[1m')
    expect(
      (await shared.world.svccloud(['zone', 'list'], { isTerminal: true, environment: { NO_COLOR: '1' } })).out,
    ).not.toContain('\u001b')
  })
})

test('the program itself runs, started by any Node', async () => {
  const token = await shared.world.owner.token('read')
  const { stdout } = await promisify(execFile)('cli/svccloud.js', ['zone', 'list', '-o', 'name'], {
    env: { PATH: process.env['PATH'], SVCCLOUD_URL: shared.world.url, SVCCLOUD_TOKEN: token },
  })
  expect(stdout).toContain(shared.world.cloud.zone)
})
