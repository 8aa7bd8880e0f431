/** Access to Ceph, taken and given back at a real cluster: one monitor on loopback, which is its own quorum. Blocklists
 *  need no other daemon. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openCeph } from '../../../controllers/fencing/ceph.ts'
import { probePort } from '../../../embedded/kit/ports.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { endPeer } from './peer.ts'

const run = promisify(execFile)
const HOST = '127.0.0.1'
const CLIENT = 'svccloud-fence'
let folder: string
let monitors: string
let monitor: ChildProcess
let key: string

const configuration = (id: string) => `[global]
fsid = ${id}
mon host = ${monitors}
mon data = ${folder}/mon
keyring = ${folder}/keyring
run dir = ${folder}
log file = ${folder}/log
mon cluster log file = ${folder}/cluster-log
mon data avail crit = 0
`
const file = (name: string) => join(folder, name)
const asAdministrator = async (...words: readonly string[]): Promise<string> =>
  (await run('ceph', ['--conf', file('ceph.conf'), '--connect-timeout', '30', ...words])).stdout

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ceph-'))
  monitors = `[v2:${HOST}:${await probePort(HOST, 0)}]`
  const id = newUuid(systemRandom)
  await writeFile(file('ceph.conf'), configuration(id))
  await run('ceph-authtool', [
    file('keyring'),
    '--create-keyring',
    '--gen-key',
    '-n',
    'mon.',
    '--cap',
    'mon',
    'allow *',
  ])
  await run('ceph-authtool', [file('keyring'), '--gen-key', '-n', 'client.admin', '--cap', 'mon', 'allow *'])
  await run('monmaptool', ['--create', '--fsid', id, '--addv', 'a', monitors, file('map')])
  await run('ceph-mon', [
    '--conf',
    file('ceph.conf'),
    '-i',
    'a',
    '--mkfs',
    '--monmap',
    file('map'),
    '--keyring',
    file('keyring'),
  ])
  monitor = spawn('ceph-mon', ['--conf', file('ceph.conf'), '-i', 'a', '-f'], { stdio: 'ignore' })
  key = (
    await asAdministrator(
      'auth',
      'get-or-create-key',
      `client.${CLIENT}`,
      'mon',
      'allow command "osd blocklist", allow command "osd blocklist ls"',
    )
  ).trim()
})
afterAll(async () => {
  await endPeer(monitor)
  await rm(folder, { recursive: true, force: true })
})

const open = (changes: Partial<Parameters<typeof openCeph>[0]> = {}) =>
  openCeph({
    monitors,
    username: CLIENT,
    key,
    addresses: ['192.0.2.7', '2001:DB8:0::7'],
    clock: systemClock,
    ...changes,
  })
const blocked = async () =>
  (await asAdministrator('osd', 'blocklist', 'ls'))
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')
    .filter((entry) => entry !== '')
    .sort()

it('takes the access of a host away, by all its addresses, and gives it back', async () => {
  await open().take()
  expect(await blocked()).toEqual(['cidr:192.0.2.7:0/32', 'cidr:[2001:db8::7]:0/128'])
  await open().take()
  await open({ addresses: ['192.0.2.8'] }).take()
  await open().giveBack()
  await open().giveBack()
  expect(await blocked()).toEqual(['cidr:192.0.2.8:0/32'])
})

it('makes years of an entry that somebody made for an hour', async () => {
  await asAdministrator('osd', 'blocklist', 'range', 'add', '192.0.2.9/32')
  await open({ addresses: ['192.0.2.9'] }).take()
  const [entry = ''] = (await asAdministrator('osd', 'blocklist', 'ls'))
    .split('\n')
    .filter((line) => line.includes('192.0.2.9'))
  expect(Date.parse(entry.split(' ')[1] ?? '')).toBeGreaterThan(systemClock.now().getTime() + 9 * 365 * 86_400_000)
})

it('needs no other right than that', async () => {
  await expect(
    run('ceph', ['--conf', '/dev/null', '--mon-host', monitors, '--name', `client.${CLIENT}`, 'osd', 'tree'], {
      env: { ...process.env, CEPH_ARGS: `--key=${key}` },
    }),
  ).rejects.toThrow('EACCES')
})

it('gets no answer with a key that is not the right one', async () => {
  await expect(open({ key: 'AQDHhgJrgFUZEBAA8UZ3rvAdc/YbzFYu4bKpKA==' }).take()).rejects.toThrow(
    'do not let the client in',
  )
})

it('gets no answer from a cluster without a quorum', async () => {
  monitor.kill('SIGSTOP')
  try {
    await expect(open().take()).rejects.toThrow('have no quorum')
  } finally {
    monitor.kill('SIGCONT')
  }
})
