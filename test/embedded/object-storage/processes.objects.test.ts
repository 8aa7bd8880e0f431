/** The process that serves clients has no rights, and reaches of tenants only the sockets of their engines. */
import { execFile } from 'node:child_process'
import { chmod, lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { openCertificates } from '../../../embedded/kubernetes/server/certificates.ts'
import { findEngine } from '../../../embedded/object-storage/program.ts'
import { startObjectStorage } from '../../../embedded/object-storage/start.ts'
import { probePort } from '../../../embedded/kit/ports.ts'
import { openControl } from '../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { isRoot, signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const run = promisify(execFile)

async function open() {
  const folder = await mkdtemp(join(tmpdir(), 'processes-'))
  await chmod(folder, 0o711)
  const parts = { clock: systemClock, random: systemRandom, log: silentLog }
  const controlPort = await probePort('127.0.0.1', 0)
  const start = async () => {
    const storage = await startObjectStorage({
      ...parts,
      folder,
      controlPort,
      registry: join(folder, 'registry'),
      token: 'token',
      host: '127.0.0.1',
      port: 0,
      program: (await findEngine()) ?? 'versitygw',
      certificates: await openCertificates({ ...parts, folder, hosts: ['localhost'] }),
    })
    onTestFinished(() => storage.stop())
    return storage
  }
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
  const control = openControl({ url: `http://127.0.0.1:${controlPort}`, token: 'token' }, never)
  const tell = async (id: string) => {
    const settings = { ...newTenantKeys(systemRandom), quotaBytes: 1e9, isSuspended: false, isFrozen: false }
    await control.putTenant(id, { ...settings, buckets: [`${settings.bucketPrefix}a`] })
    return settings
  }
  return { folder, start, control, tell }
}

const statusOf = async (pid: number): Promise<Readonly<Record<string, string>>> =>
  Object.fromEntries(
    (await readFile(`/proc/${pid}/status`, 'utf8'))
      .split('\n')
      .map((line) => line.split(/:\s*/))
      .map(([name = '', value = '']) => [name, value.trim()]),
  )

test.runIf(isRoot())('clients are served by a separate user, without rights or a way to gain any', async () => {
  const { folder, start, tell } = await open()
  const storage = await start()
  const { secretAccessKey } = await tell('ada')
  const pid = storage.interfacePid
  const status = await statusOf(pid)
  const uid = Number(status['Uid']?.split('\t')[0])
  expect(uid).toBeGreaterThan(0x7000_0000)
  expect([status['Uid'], status['Gid']]).toEqual([Array(4).fill(uid).join('\t'), Array(4).fill(uid).join('\t')])
  const none = '0000000000000000'
  expect(['CapInh', 'CapPrm', 'CapEff', 'CapAmb', 'NoNewPrivs', 'Groups'].map((name) => status[name])).toEqual([
    none,
    none,
    none,
    none,
    '1',
    '',
  ])
  expect(await readFile(`/proc/${pid}/environ`, 'utf8')).not.toMatch(/token|SECRET/i)
  expect(await readFile(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(secretAccessKey)
  // What it has open: nothing of a tenant but sockets, and no folder but the one of all tenants and its own.
  const handles = await readdir(`/proc/${pid}/fd`)
  const names = await Promise.all(handles.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')))
  const inFolder = names.filter((name) => name.startsWith(folder)).map((name) => name.slice(folder.length))
  expect([...new Set(inFolder)].toSorted()).toEqual([
    '/interface',
    '/tenants',
    '/tenants/1/run/admin',
    '/tenants/1/run/s3',
  ])

  // As whoever has taken it over.
  const as = ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs', '--']
  const script = `cd ${folder}; exec ${as.join(' ')} sh -c "$1"`
  const isDone = (lines: string) =>
    run('sh', ['-c', script, 'sh', lines]).then(
      () => true,
      () => false,
    )
  const reached = ['test -S tenants/1/run/s3', 'echo x >interface/mine']
  for (const lines of reached) expect([lines, await isDone(lines)]).toEqual([lines, true])
  const refused = [
    'ls tenants',
    'ls tenants/1',
    'ls tenants/1/data',
    'ls tenants/1/run',
    'ls tenants/1/versions',
    'ls places',
    'cat places/1.json',
    'cat tenants/1/run/users/users.json',
    'cat server.key',
    'cat user-range.json',
    'touch tenants/x',
    'touch tenants/1/x',
    'touch tenants/1/run/x',
    'rm tenants/1/run/s3',
    'touch x',
    `kill -9 ${storage.enginePid('ada')}`,
    'mv interface other',
    'chmod 777 tenants',
  ]
  for (const lines of refused) expect([lines, await isDone(lines)]).toEqual([lines, false])
})

test('without the process that serves clients no engine runs; started again everything is there', async () => {
  const { start, control, tell } = await open()
  const storage = await start()
  const { secretAccessKey: _, ...settings } = await tell('ada')
  const engine = storage.enginePid('ada') ?? 0
  expect(engine).toBeGreaterThan(0)
  signalProcess(storage.interfacePid, 'SIGKILL')
  expect(await storage.ended).toBe('SIGKILL')
  expect([signalProcess(engine, 0), storage.enginePid('ada')]).toEqual([false, undefined])
  await start()
  expect(await control.getTenant('ada', true)).toMatchObject({ accessKeyId: settings.accessKeyId, bucketCount: 1 })
})

test.runIf(isRoot())('what tenants may do moves to the process that serves clients, with its owner', async () => {
  const { folder, start } = await open()
  await writeFile(join(folder, 'tenants.json'), '[]')
  const storage = await start()
  const uid = Number((await statusOf(storage.interfacePid))['Uid']?.split('\t')[0])
  const { uid: owner } = await lstat(join(folder, 'interface', 'tenants.json'))
  expect([owner, (await lstat(join(folder, 'interface'))).mode & 0o777]).toEqual([uid, 0o700])
  await expect(lstat(join(folder, 'tenants.json'))).rejects.toThrow('ENOENT')
})
