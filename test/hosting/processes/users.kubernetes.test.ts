/** Programs of a control plane run as a user that nothing else runs as, and that may do nothing besides. */
import { execFile } from 'node:child_process'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ControlPlaneSnapshot } from '../../../integrations/control-planes/control.ts'
import { isRoot, signalProcess } from '../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, newDesired, openHosted, untilState } from './hosted.ts'

const run = promisify(execFile)
const PROGRAMS = [
  'etcd-0',
  'kube-apiserver-0',
  'kube-controller-manager',
  'kube-scheduler',
  'konnectivity-server',
  'reader',
]

let hosted: Hosted
const planes = [newDesired(), newDesired()] as const
beforeAll(async () => {
  hosted = await openHosted()
  for (const desired of planes) await hosted.host.ensure(desired)
  for (const { id } of planes) await adminOf(hosted, id)
})
afterAll(() => hosted.end())

const statusOf = async (id: string, program: string): Promise<Readonly<Record<string, string>>> => {
  const text = await readFile(`/proc/${hosted.host.pid(id, program)}/status`, 'utf8')
  return Object.fromEntries(text.split('\n').map((line) => line.split(/:\s+/) as [string, string]))
}
const usersOf = async (id: string) => {
  const statuses = await Promise.all(PROGRAMS.map((program) => statusOf(id, program)))
  return [...new Set(statuses.flatMap(({ Uid = '', Gid = '' }) => [...Uid.split('\t'), ...Gid.split('\t')]))]
}

test('each has its own, without rights', async () => {
  if (!isRoot()) return
  const [one = [], other = []] = await Promise.all(planes.map(({ id }) => usersOf(id)))
  expect([one.length, other.length]).toEqual([1, 1])
  expect(one).not.toEqual(other)
  expect(one).not.toContain('0')
  for (const { id } of planes)
    for (const program of PROGRAMS) {
      const status = await statusOf(id, program)
      expect(status, program).toMatchObject({ NoNewPrivs: '1', Groups: '' })
      for (const set of ['CapEff', 'CapPrm', 'CapBnd', 'CapInh', 'CapAmb'])
        expect(status[set], `${program} ${set}`).toMatch(/^0+$/)
      const limits = await readFile(`/proc/${hosted.host.pid(id, program)}/limits`, 'utf8')
      expect(limits).toMatch(/^Max processes\s+2048\s+2048/m)
      const bytes = program === 'reader' ? 1_024 ** 3 : 6 * 1_024 ** 3
      expect(limits, program).toMatch(new RegExp(`^Max data size\\s+${bytes}\\s+${bytes}`, 'm'))
    }
})

test("it reads none of another's, and changes nothing that the host reads", async () => {
  if (!isRoot()) return
  const [user = ''] = await usersOf(planes[0].id)
  const as = (script: string, id: string) =>
    run('setpriv', [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', 'sh', '-c', script], {
      cwd: join(hosted.folder, id),
    })
  await as('cat ca.key > /dev/null', planes[0].id) // which it signs with
  // As earlier hosts left it, with the keys of the bucket that snapshots are in.
  const place = join(hosted.folder, planes[0].id, 'snapshot-place.json')
  await writeFile(place, '{}')
  await run('chmod', ['644', place])
  const modeOf = async () => (await stat(place)).mode & 0o777
  await until('the next round', modeOf, (mode) => mode === 0o600)
  for (const name of ['record.json', 'snapshot-place.json', 'reader.log'])
    await expect(as(`cat ${name}`, planes[0].id), name).rejects.toThrow()
  await expect(as('echo x > new', planes[0].id)).rejects.toThrow()
  await expect(as('echo x >> ca.crt', planes[0].id)).rejects.toThrow()
  await expect(as('cat ca.key', planes[1].id)).rejects.toThrow()
})

test('it keeps its user when the host starts again', async () => {
  if (!isRoot()) return
  const before = await Promise.all(planes.map(({ id }) => usersOf(id)))
  await hosted.reopen()
  for (const { id } of planes) await adminOf(hosted, id)
  expect(await Promise.all(planes.map(({ id }) => usersOf(id)))).toEqual(before)
})

test('whatever becomes of who reads for one of them, it serves on, and others are not touched', async () => {
  const { host } = hosted
  const [one, other] = [planes[0].id, planes[1].id]
  const client = await adminOf(hosted, one)
  const [reader, server, neighbour] = [
    host.pid(one, 'reader'),
    host.pid(one, 'kube-apiserver-0'),
    host.pid(other, 'reader'),
  ]
  signalProcess(reader ?? 0, 'SIGSTOP')
  const asked = host.nodes(one).catch((error: unknown) => String(error))
  expect((await client.send('GET', '/api/v1/namespaces/default')).status).toBe(200)
  expect(await host.nodes(other)).toEqual([])
  signalProcess(reader ?? 0, 'SIGKILL')
  expect(await asked).toContain('started again')
  expect((await client.send('GET', '/api/v1/namespaces/default')).status).toBe(200)
  await until(
    'another one',
    async () => host.pid(one, 'reader'),
    (pid) => pid !== undefined && pid !== reader,
  )
  await untilState(hosted, one, isWhole)
  expect(
    await until(
      'its answer',
      () => host.nodes(one),
      () => true,
    ),
  ).toEqual([])
  expect([host.pid(one, 'kube-apiserver-0'), host.pid(other, 'reader')]).toEqual([server, neighbour])
})

test('a snapshot is taken by its user, and belongs to the host', async () => {
  const { id } = planes[0]
  const snapshot = newUuid(systemRandom)
  await hosted.host.snapshot(id, snapshot)
  const isDone = (all: readonly ControlPlaneSnapshot[]) =>
    all.some((each) => each.id === snapshot && each.phase === 'done')
  await until('the snapshot', () => hosted.host.snapshots(id), isDone)
  const file = join(hosted.folder, id, 'snapshots', `${snapshot}.db`)
  expect(await stat(file)).toMatchObject({ uid: (await stat(hosted.folder)).uid, mode: 0o100_600 })
  await expect(stat(join(hosted.folder, id, 'run', 'snapshot.db'))).rejects.toThrow('ENOENT')
})

test('one that was made when everything belonged to root gets a user, with all that it stored', async () => {
  if (!isRoot()) return
  const { id } = planes[0]
  const client = await adminOf(hosted, id)
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' }, data: { from: 'before' } }
  await client.send('POST', '/api/v1/namespaces/default/configmaps', body)
  const folder = join(hosted.folder, id)
  await hosted.reopen(async () => {
    // As hosts without users left it: no folder for what programs write, and nobody but root.
    await rm(join(folder, 'run'), { recursive: true })
    await run('chown', ['-R', '0:0', folder])
    await run('chmod', ['-R', 'go=', folder])
    const record = JSON.parse(await readFile(join(folder, 'record.json'), 'utf8')) as object // of a separate shape
    await writeFile(join(folder, 'record.json'), JSON.stringify({ ...record, user: undefined }))
  })
  const again = await adminOf(hosted, id)
  expect(await again.send('GET', '/api/v1/namespaces/default/configmaps/kept')).toMatchObject({
    status: 200,
    body: { data: { from: 'before' } },
  })
  const [user, ...others] = await usersOf(id)
  expect([user === '0', others]).toEqual([false, []])
  const { stdout } = await run('find', [join(folder, 'etcd-0-0'), '!', '-uid', user ?? ''])
  expect(stdout).toBe('')
})
