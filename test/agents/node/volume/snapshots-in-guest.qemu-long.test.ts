/** Snapshots of a disk that a real guest writes to, and what is made of them: copies, and the backups that go on. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDiskWork } from '../../../../agents/node/backup/disk-work.ts'
import type { BackupWork } from '../../../../agents/node/backup/work.ts'
import type { Hypervisor } from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { KeyedMutex } from '../../../../kit/sys/mutex.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { removeInGuest, takeInGuest } from '../../../../agents/node/volume/snapshots-in-guest.ts'
import { defined } from '../../../../domain/defined.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { AGENT, agentOf, guestShell, PROMPT } from '../guest-agent/guest-shell.ts'
import { openQemuMachine } from '../qemu-machine.ts'

const NAME = '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a12'
const DISK = 'boot'
const SLOW_BYTES_PER_SECOND = 2_000_000
/** Numbers, one a line, each on the disk before it is acknowledged. */
const WRITER =
  '(n=0; while [ ! -e /tmp/stop ]; do n=$((n+1)); printf "%08d\\n" $n | ' +
  'dd of=/data/log bs=9 seek=$((n-1)) conv=notrunc,fsync 2>/dev/null && echo "kept $n"; sleep 0.1; done) &'

let machine: Awaited<ReturnType<typeof openQemuMachine>>
let hypervisor: Hypervisor

beforeEach(async () => {
  machine = await openQemuMachine()
  hypervisor = await machine.host(0).attach()
  await boot(DISK)
})
afterEach(async () => {
  await hypervisor.forget(NAME)
  await hypervisor.close()
  await machine.close()
})

const { text, type, until } = guestShell(
  (isTrue) => machine.until(isTrue),
  () => hypervisor.console(NAME),
)
async function boot(volume: string): Promise<void> {
  await hypervisor.start(await machine.definition(NAME, 1, volume))
  await until((all) => all.includes(PROMPT))
}
const take = (snapshot: string) => machine.volumes.takeSnapshot(DISK, snapshot, takeInGuest(hypervisor, NAME))
const snapshots = async () => (await machine.volumes.snapshots(DISK)).map(({ name, isFrozen }) => ({ name, isFrozen }))
const kept = () => Number([...text().matchAll(/^kept (\d+)\r?$/gm)].at(-1)?.[1] ?? 0)
const isSound = async (volume: string) =>
  expect(await runProgram('qemu-img', ['check', await machine.volumes.pathOf(volume)])).toContain('No errors')

it('hold what the guest had acknowledged, frozen where its agent does that, and so do copies', async () => {
  await type(WRITER, /^kept 3\r?$/m)
  await take('running')
  await type(AGENT, /agent-is-up\r?$/m)
  const acknowledged = kept()
  await take('frozen')
  const after = kept()
  await until(() => kept() > after + 2)
  expect(await snapshots()).toEqual([
    { name: 'running', isFrozen: false },
    { name: 'frozen', isFrozen: true },
  ])
  for (const snapshot of ['running', 'frozen'])
    await machine.volumes.create({ name: snapshot, sizeGibibytes: 1, snapshotOf: { volume: DISK, snapshot } })
  const end = kept()
  await machine.volumes.removeSnapshot(DISK, 'running', removeInGuest(hypervisor, NAME))
  await until(() => kept() > end)
  await hypervisor.forget(NAME)
  expect(await snapshots()).toEqual([{ name: 'frozen', isFrozen: true }])

  for (const [copy, least] of [
    ['running', 3],
    ['frozen', acknowledged],
  ] as const) {
    await isSound(copy)
    await boot(copy)
    await type('echo "last $(tail -n 1 /data/log) of $(wc -l < /data/log)"', /^last \d{8} of \d+\r?$/m)
    const [, last, lines] = /^last (\d{8}) of (\d+)\r?$/m.exec(text()) ?? []
    expect(Number(last)).toBe(Number(lines))
    expect(Number(last)).toBeGreaterThanOrEqual(least)
    expect(Number(last)).toBeLessThanOrEqual(end)
    await hypervisor.forget(NAME)
  }
  await isSound(DISK)
})

it('claim nothing of a guest that thawed by itself, and are taken once all the same', async () => {
  await type(agentOf({ thawed: 0 }), /agent-is-up\r?$/m)
  await take('s1')
  expect(await snapshots()).toEqual([{ name: 's1', isFrozen: false }])
  await type('touch /data/written && echo "it is thawed"', /^it is thawed\r?$/m)
})

it('wait for a backup without freezing the guest, and later backups are incremental', async () => {
  await type(agentOf({ beforeFreezing: 'echo is""-asked >&2' }), /agent-is-up\r?$/m)
  const isAsked = () => text().match(/is-asked\r?$/gm)?.length ?? 0
  await type('echo one > /data/file; sync; echo "written one"', /^written one\r?$/m)
  const refused: unknown[] = []
  // The backup waits for its bandwidth until the snapshot was answered, however slow the machine is.
  const slowWork = openWork(SLOW_BYTES_PER_SECOND, {
    ...systemClock,
    sleep: async (milliseconds, signal) => {
      await systemClock.sleep(milliseconds, signal)
      await Promise.all(refused)
    },
  })
  const work = openWork()
  const onProgress = () => void (refused.length === 0 && refused.push(take('s1').catch((error: unknown) => error)))
  const first = await slowWork.run(jobOf('b1'), { signal: new AbortController().signal, onProgress })
  expect(first).toMatchObject({ isFrozen: true })
  expect(refused).toHaveLength(1)
  for (const each of await Promise.all(refused)) expect(each).toBeInstanceOf(Unavailable)
  await until(() => isAsked() > 0)
  expect([await snapshots(), isAsked()]).toEqual([[], 1])

  await take('s1')
  await until(() => isAsked() > 1) // the console may come later than the answer
  expect([await snapshots(), isAsked()]).toEqual([[{ name: 's1', isFrozen: true }], 2])
  await type('echo two > /data/file; sync; mount -o remount,ro /data; echo "written two"', /^written two\r?$/m)
  const second = await work.run(jobOf('b2', 'b1'), { signal: new AbortController().signal, onProgress: () => {} })
  expect(second).toMatchObject({ parent: 'b1' })
  await hypervisor.forget(NAME)
  await machine.volumes.create({
    name: 'restored',
    sizeGibibytes: 1,
    fill: (path, signal = new AbortController().signal) =>
      work.fill({ backup: 'b2', accountId: 'a', secretName: 'key' }, path, { signal, onProgress: () => {} }),
  })
  const paths = await Promise.all([DISK, 'restored'].map((name) => machine.volumes.pathOf(name)))
  expect(await runProgram('qemu-img', ['compare', ...paths])).toContain('Images are identical')
  await isSound(DISK)
})

const jobOf = (name: string, parent?: string) => ({
  backup: { namespace: 'acct-a', name, uid: `uid-${name}` },
  work: 'write' as const,
  accountId: 'a',
  secretName: 'key',
  storageId: 's1',
  volume: DISK,
  ...defined({ parent }),
})

const openWork = (bytesPerSecond = 1_000_000_000, clock = systemClock): BackupWork =>
  openDiskWork({
    location: join(machine.folder, 'store'),
    environment: {},
    bytesPerSecond,
    folder: join(machine.folder, 'backups'),
    hypervisor,
    volumes: machine.volumes,
    diskLocks: new KeyedMutex(),
    userOf: async () => NAME,
    store: {
      get: async () => ({ metadata: { name: 'key' }, data: { key: Buffer.from('01'.repeat(32)).toString('base64') } }),
    } as never, // nothing else is asked of it
    namespace: 'node-n1',
    clock,
    random: systemRandom,
  })
