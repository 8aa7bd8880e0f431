/** A service, or whoever named things there, that means harm to the terminal, the shell and the files of a person; and
 *  surroundings that are not as they should be. */
import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { printable } from '../../domain/printable.ts'
import { changeProfiles, readProfiles } from '../../cli/profiles.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { Template, Zone } from '../../resources/catalog/index.ts'
import { runLine } from './run-line.ts'

const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eabc\rgone'
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on a port
}
const json = (body: unknown, status = 200, type = 'application/json') =>
  serve((_request, response) => {
    response.writeHead(status, { 'content-type': type }).end(typeof body === 'string' ? body : JSON.stringify(body))
  })
const as = (url: string) => ({ environment: { SVCCLOUD_URL: url, SVCCLOUD_TOKEN: 't' } })
async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'svccloud-cli-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return path
}

describe('escapes that a service sends reach no terminal', () => {
  const item = { id: `id${ESCAPES}`, name: `name${ESCAPES}` }
  test.each(['name', 'table', 'yaml', 'json'])('as %s', async (format) => {
    const url = await json({ items: [item], next_cursor: null })
    const { code, out } = await runLine(['ssh-key', 'list', '-o', format], { ...as(url), isTerminal: true })
    expect(code).toBe(0)
    expect(out.replaceAll('\u001b[1m', '').replaceAll('\u001b[0m', '')).not.toMatch(CONTROL)
    if (format === 'json') expect(JSON.parse(out)).toEqual({ items: [item], next_cursor: null })
  })
  test('in a refusal', async () => {
    const url = await json({ title: `No${ESCAPES}`, detail: ESCAPES, reason: ESCAPES }, 409, 'application/problem+json')
    const { code, error } = await runLine(['ssh-key', 'list'], { ...as(url), isTerminal: true })
    expect(code).toBe(1)
    expect(error.replace('\u001b[31msvccloud:\u001b[0m', '')).not.toMatch(CONTROL)
  })
  test('in plain text', async () => {
    const url = await json(ESCAPES, 200, 'text/plain')
    expect((await runLine(['api', 'GET', '/v1/x'], as(url))).out).not.toMatch(CONTROL)
  })
  test('in the progress of an operation, where the line that is written over is ours', async () => {
    const operation = { id: 'o', kind: 'server.start', status: 'running', step: ESCAPES, step_index: 1, step_count: 2 }
    let asked = 0
    const url = await serve((request, response) => {
      const status = (asked += 1) > 3 ? 'succeeded' : 'running'
      const isStart = request.method === 'POST'
      response
        .writeHead(isStart ? 202 : 200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ operation: { ...operation, status, events: [{ message: ESCAPES, level: 'info' }] } }))
    })
    const { error } = await runLine(['operation', 'wait', 'o'], { ...as(url), isTerminal: true })
    expect(error.replaceAll('\r\u001b[K', '').replaceAll(/\u001b\[(0|31)m/g, '')).not.toMatch(CONTROL)
  })
})

test('printable JSON is the same JSON', () => {
  const value = { text: `${ESCAPES}\ufeff\u2028 ä 日本 👩‍👩‍👧` }
  expect(JSON.parse(printable(JSON.stringify(value)))).toEqual(value)
  expect(printable('a\tb\r\nc\n')).toBe('a\tb\r\nc\n')
})

describe('an answer that is not as it should be ends a command without a trace', () => {
  test.each([
    ['no JSON', '<html>', 'invalid JSON'],
    ['JSON that breaks off', '{"server": {', 'invalid JSON'],
    ['another shape', '{"server": 1}', 'an unexpected answer'],
  ])('%s', async (_what, body, message) => {
    const url = await json(body)
    const home = await folder()
    const { code, error } = await runLine(['ssh', '0b5f1a52-6f10-4a53-9f0c-6a1d5b1d9f11'], {
      environment: { ...as(url).environment, HOME: home },
    })
    expect([code, error]).toEqual([1, expect.stringContaining(message)])
  })
  test('a connection that breaks off', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{')
      setImmediate(() => response.destroy())
    })
    expect(await runLine(['ssh-key', 'list'], as(url))).toMatchObject({
      code: 6,
      error: expect.stringMatching(/closed the connection during its answer/),
    })
  })
})

describe('what a service says of a server reaches ssh in its exact form only', () => {
  const ID = '0b5f1a52-6f10-4a53-9f0c-6a1d5b1d9f11'
  const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFake'
  const ssh = { host: '192.0.2.7', port: 22, user: 'root', host_keys: [KEY], proxy: null }
  const server = { id: ID, hostname: 'web', state: 'started', state_detail: '', network_status_reason: null }
  test.each([
    ['host', '-oProxyCommand=touch pwned'],
    ['host', 'a b'],
    ['host', '$(touch pwned)'],
    ['host', 'a;b'],
    ['user', '-oProxyCommand=x'],
    ['user', 'root`id`'],
    ['user', 'a b'],
    ['host_keys', [`${KEY}\n* ssh-ed25519 AAAA`]],
    ['host_keys', ['@cert-authority *']],
    ['host_keys', ['-x AAAA']],
    ['port', 0],
    ['port', 70_000],
    ['proxy', 'file:///etc/passwd'],
    ['proxy', 'http://127.0.0.1:1'],
    ['proxy', 'socks5://127.0.0.1'],
    ['proxy', "socks5://a'b:1080"],
    ['proxy', 'socks5://-x:1080'],
  ])('%s %j', async (field, value) => {
    const url = await json({ server: { ...server, ssh: { ...ssh, [field]: value } } })
    const home = await folder()
    const { code, error } = await runLine(['ssh', ID], { environment: { ...as(url).environment, HOME: home } })
    expect([code, error]).toEqual([1, expect.stringContaining('an unexpected answer')])
    expect(await readdir(home)).toEqual([])
  })
  /** The code of ssh to a server whose user this is, and what was said. */
  const signInAs = async (user: string) => {
    const url = await json({ server: { ...server, ssh: { ...ssh, user } } })
    const bin = await folder()
    await writeFile(join(bin, 'ssh'), '#!/bin/sh\n', { mode: 0o755 })
    const environment = { ...as(url).environment, HOME: await folder(), PATH: `${bin}:${process.env['PATH']}` }
    const { code, error } = await runLine(['ssh', ID], { environment })
    return [code, error]
  }
  test.each(['debian', 'Ada', '_x.y-1', 'a'.repeat(32)])(
    'the user %s, whom templates can have, is in it',
    async (user) => {
      expect(Template.spec.shape.defaultUser.parse(user)).toBe(user)
      expect(await signInAs(user)).toEqual([0, ''])
    },
  )
  test.each(['', '1st', 'a'.repeat(33), 'ü', 'a;b'])('the user "%s" is not, and no template has it', async (user) => {
    expect(Template.spec.shape.defaultUser.safeParse(user).success).toBe(false)
    expect(await signInAs(user)).toEqual([1, expect.stringContaining('an unexpected answer')])
  })
  test.each([
    ['socks5://127.0.0.1:1080', "'127.0.0.1' '1080' %h %p"],
    ['socks5://[::1]:1080', "'::1' '1080' %h %p"],
    ['socks5://proxy-1.example:80', "'proxy-1.example' '80' %h %p"],
  ])('the proxy %s, as zones name it, is in it', async (proxy, words) => {
    expect(Zone.spec.shape.publicNetwork.unwrap().shape.proxy.parse(proxy)).toBe(proxy)
    const url = await json({ server: { ...server, ssh: { ...ssh, proxy } } })
    const bin = await folder()
    await writeFile(join(bin, 'ssh'), `#!/bin/sh\nprintf '%s\\n' "$@"\n`, { mode: 0o755 })
    const environment = { ...as(url).environment, HOME: await folder(), PATH: `${bin}:${process.env['PATH']}` }
    const { code, out, error } = await runLine(['ssh', ID], { environment })
    expect([code, error]).toEqual([0, ''])
    expect(out.split('\n').filter((word) => word.startsWith('ProxyCommand='))).toEqual([expect.stringContaining(words)])
  })
})

describe('the file of profiles', () => {
  const profiles = (name: string) => ({
    current: name,
    profiles: { [name]: { url: 'http://127.0.0.1:1', token: 't' } },
  })
  const store = (environment: { readonly HOME: string }, name: string) =>
    changeProfiles(environment, systemClock, () => profiles(name))
  test('has all of those that log in at the same moment', async () => {
    const environment = { HOME: await folder() }
    const url = await json({ account: {} })
    const names = Array.from({ length: 20 }, (_, index) => `p${index}`)
    const ended = await Promise.all(
      names.map((name) => runLine(['login', '--url', url, '--token', 't', '--profile', name], { environment })),
    )
    expect(ended.map(({ code, error }) => [code, error])).toEqual(
      names.map(() => [0, expect.stringContaining('Logged in')]),
    )
    const known = await readProfiles(environment)
    expect(Object.keys(known.profiles).sort()).toEqual(names.toSorted())
    expect(names).toContain(known.current)
    await Promise.all(names.slice(1).map((name) => runLine(['logout', '--profile', name], { environment })))
    expect(await readProfiles(environment)).toMatchObject({ current: 'p0', profiles: { p0: { url } } })
    expect(await readdir(join(environment.HOME, '.config', 'svccloud'))).toEqual(['config.json'])
  })
  test('is changed after a command that was killed while it changed it', async () => {
    const environment = { HOME: await folder() }
    await store(environment, 'mine')
    const lock = join(environment.HOME, '.config', 'svccloud', 'config.json.lock')
    await writeFile(lock, '')
    await utimes(lock, new Date(), new Date(Date.now() - 60_000))
    await Promise.all(['one', 'two', 'three'].map((name) => store(environment, name)))
    expect(['one', 'two', 'three']).toContain((await readProfiles(environment)).current)
    expect(await readdir(dirname(lock))).toEqual(['config.json'])
  })
  test('is refused where others may read it', async () => {
    const environment = { HOME: await folder() }
    await store(environment, 'mine')
    const file = join(environment.HOME, '.config', 'svccloud', 'config.json')
    await chmod(file, 0o644)
    const { code, error } = await runLine(['ssh-key', 'list'], { environment })
    expect([code, error]).toEqual([4, expect.stringMatching(/mode 644.*chmod 600/)])
    await chmod(file, 0o600)
    expect((await readProfiles(environment)).current).toBe('mine')
    expect(await readFile(file, 'utf8')).toContain('"token"')
  })
})

describe('the process', () => {
  function start(words: readonly string[], environment: Record<string, string>, shell = '') {
    const command = `'${process.execPath}' cli/main.ts ${words.join(' ')} ${shell}`
    const { PATH = '' } = process.env
    const child = spawn('sh', ['-c', command], { env: { PATH, HOME: '/nonexistent', ...environment } })
    let error = ''
    let out = ''
    child.stderr.on('data', (bytes: Buffer) => void (error += String(bytes)))
    child.stdout.on('data', (bytes: Buffer) => void (out += String(bytes)))
    return new Promise<{ code: number | null; error: string; out: string }>((resolve) =>
      child.once('close', (code) => resolve({ code, error, out })),
    )
  }
  test('fails when its output was not written', async () => {
    const url = await json({ items: [{ id: 'a' }], next_cursor: null })
    const ended = await start(['ssh-key', 'list'], as(url).environment, '> /dev/full')
    expect(ended).toMatchObject({ code: 1, error: expect.stringContaining('not written') })
    expect(await start(['ssh-key', 'list'], as(url).environment, '| true')).toMatchObject({ error: '' })
  })
  test('uses the proxies of its environment, and none where NO_PROXY says so', async () => {
    const asked: string[] = []
    const service = new URL(await json({ items: [], next_cursor: null }))
    const proxy = createServer()
    // Tunnels, as clients ask for them; every one ends at the service.
    proxy.on('connect', (request, client: Socket) => {
      asked.push(request.url ?? '')
      const server = connect(Number(service.port), service.hostname, () => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        client.pipe(server).pipe(client)
      })
      for (const socket of [client, server]) socket.on('error', () => socket.destroy())
      onTestFinished(() => void server.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void proxy.close())
    const { port } = proxy.address() as AddressInfo // it listens on a port
    const environment = {
      SVCCLOUD_URL: 'http://cloud.invalid:8080',
      SVCCLOUD_TOKEN: 't',
      HTTP_PROXY: `http://127.0.0.1:${port}`,
    }
    expect(await start(['ssh-key', 'list'], environment)).toMatchObject({ code: 0 })
    expect(asked).toEqual(['cloud.invalid:8080'])
    expect(await start(['ssh-key', 'list'], { ...environment, NO_PROXY: 'cloud.invalid' })).toMatchObject({ code: 6 })
    expect(asked).toHaveLength(1)
  })
})
