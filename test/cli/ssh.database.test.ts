/** `svccloud ssh` and `scp` up to the program of the system: what it is given, and whom it may believe. That a session
 *  comes of it is proven with real guests, by the README's own commands. */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { accountNamespace } from '../../resources/index.ts'
import { Server, type ServerStatus } from '../../resources/server/index.ts'
import { PUBLIC_KEY } from '../apiserver/cloud.ts'
import { useWorld } from './command-line.ts'

const HOST_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu'
const FORWARD = { host: '127.0.0.1', port: 40_022 }

const shared = useWorld()
let serverId: string
let environment: Readonly<Record<string, string>>

/** Programs that print what they were given, one word a line. */
beforeAll(async () => {
  const { world } = shared
  const folder = join(world.folder, 'bin')
  await mkdir(folder)
  for (const program of ['ssh', 'scp']) {
    await writeFile(join(folder, program), `#!/bin/sh\nprintf '%s\\n' "$0" "$@"\nexit 7\n`)
    await chmod(join(folder, program), 0o755)
  }
  environment = { PATH: `${folder}:${process.env['PATH']}` }
  await world.owner.send('POST', '/v1/ssh-keys', { body: { name: 'key', public_key: PUBLIC_KEY } })
  serverId = (
    await world.owner.send('POST', '/v1/servers', {
      body: { zone: world.cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux' },
    })
  ).body['server'].id
})

const svccloud = (...line: string[]) => shared.world.svccloud(line, { environment })
const knownHosts = () => join(shared.world.folder, 'svccloud/known_hosts/environment')
/** What controller and host report of it. */
async function report(status: Partial<ServerStatus>): Promise<void> {
  const { world } = shared
  const key = { namespace: accountNamespace(world.owner.accountId), name: serverId }
  const cleared = { sshForward: null, sshHostKeys: null }
  // null removes a field of a merge patch
  await world.cloud.admin.patch(Server, key, { status: { ...cleared, ...status } as Partial<ServerStatus> }, 'status')
}

test('the program gets address, port, user and known host keys, and decides the exit code', async () => {
  await report({ state: 'started', sshForward: FORWARD, sshHostKeys: [HOST_KEY] })
  const { code, out } = await svccloud('ssh', '-i', 'id', 'web', 'ls', '-l', '--all', '/')
  const words = out.trim().split('\n')
  expect([code, words[0]]).toEqual([7, expect.stringMatching(/bin\/ssh$/)])
  expect(words.slice(-9)).toEqual(['-p', '40022', '-l', 'root', '--', '127.0.0.1', 'ls', '-l', '--all', '/'].slice(-9))
  for (const option of [
    `HostKeyAlias=svccloud-${serverId}`,
    `UserKnownHostsFile="${knownHosts()}"`,
    'GlobalKnownHostsFile=/dev/null',
    'StrictHostKeyChecking=yes',
  ])
    expect(words).toContain(option)
  expect(await readFile(knownHosts(), 'utf8')).toBe(`svccloud-${serverId} ${HOST_KEY}\n`)
})

test('keys of other servers stay, and those of a rebuilt one are exchanged', async () => {
  const other = `svccloud-other ${HOST_KEY}`
  await writeFile(knownHosts(), `${other}\nsvccloud-${serverId} ssh-ed25519 OLD\n`)
  await report({ state: 'started', sshForward: FORWARD, sshHostKeys: [HOST_KEY] })
  await svccloud('ssh', 'web')
  expect(await readFile(knownHosts(), 'utf8')).toBe(`${other}\nsvccloud-${serverId} ${HOST_KEY}\n`)
})

test('files are copied from and to one server', async () => {
  await report({ state: 'started', sshForward: FORWARD, sshHostKeys: [HOST_KEY] })
  const { code, out } = await svccloud('scp', '-r', './a:b', 'web:/tmp/')
  expect([code, out.trim().split('\n').slice(-6)]).toEqual([
    7,
    ['-P', '40022', '-r', '--', './a:b', 'root@127.0.0.1:/tmp/'],
  ])
  expect(await svccloud('scp', 'a', 'b')).toMatchObject({ code: 4, error: expect.stringContaining('web:/tmp/') })
  expect(await svccloud('scp', 'web:a', 'db:b')).toMatchObject({
    code: 4,
    error: expect.stringContaining('one server'),
  })
})

test('a server that boots is waited for, until its host keys are known', async () => {
  await report({ state: 'started', sshForward: FORWARD })
  const leave = new AbortController()
  const waiting = shared.world.svccloud(['ssh', 'web'], {
    environment,
    signal: leave.signal,
    onError: (error) => void (error.includes('waiting for its SSH host keys') && leave.abort()),
  })
  expect(await waiting).toMatchObject({ code: 130, out: '' })
  const { code, out } = await svccloud('ssh', '--accept-new-key', 'web')
  expect([code, out]).toEqual([7, expect.stringContaining('StrictHostKeyChecking=accept-new')])
})

test.each<readonly [string, Partial<ServerStatus>, string]>([
  ['is off', { state: 'stopped' }, 'web is stopped; start it with svccloud server start web'],
  ['failed', { state: 'error', stateDetail: 'No room.' }, 'web is error: No room.'],
  ['has no address', { state: 'started' }, 'no address reaches the SSH port of web'],
])('one that %s is refused with what to do', async (_why, status, expected) => {
  await report(status)
  expect(await svccloud('ssh', 'web')).toMatchObject({ code: 1, out: '', error: expect.stringContaining(expected) })
})

test('a port of the loopback of a host elsewhere is not taken for one of this machine', async () => {
  await report({ state: 'started', sshForward: FORWARD, sshHostKeys: [HOST_KEY] })
  const SVCCLOUD_URL = shared.world.url.replace('127.0.0.1', '[::ffff:127.0.0.1]')
  const { code, error } = await shared.world.svccloud(['ssh', 'web'], { environment: { ...environment, SVCCLOUD_URL } })
  expect([code, error]).toEqual([1, expect.stringContaining('only on its host')])
})
