/** A real guest whose disks are in a real Ceph cluster, from its boot on one host to the fencing of another. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDiskWork } from '../../../agents/node/backup/disk-work.ts'
import type { Hypervisor } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { CephUnreachable } from '../../../agents/node/drivers/storage/ceph-pool.ts'
import { formatOf } from '../../../agents/node/drivers/storage/rbd-path.ts'
import { KeyedMutex } from '../../../kit/sys/mutex.ts'
import { runProgram } from '../../../agents/node/run-program.ts'
import { removeInGuest, takeInGuest } from '../../../agents/node/volume/snapshots-in-guest.ts'
import { openCeph } from '../../../controllers/fencing/ceph.ts'
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useCeph } from '../../ceph.ts'
import { until as untilIs } from '../../eventually.ts'
import { openCephWorld } from './ceph-world.ts'
import { AGENT, guestShell, PROMPT } from './guest-agent/guest-shell.ts'
import { openQemuMachine } from './qemu-machine.ts'
import { IMAGE_FOLDER } from './real-host.ts'

const NAME = '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a12'
const KEY = 'a1'.repeat(32)
const FENCE = 'svccloud-fence'
// A fence shuts this machine out of the cluster, and files of the tier run at the same time.
const cluster = useCeph(['rack-0'])

let world: Awaited<ReturnType<typeof openCephWorld>>
let machine: Awaited<ReturnType<typeof openQemuMachine>>
let hosts: readonly [Hypervisor, Hypervisor]
/** On which of them the guest is. */
let hypervisor: Hypervisor

beforeEach(async () => {
  world = await openCephWorld(cluster.ceph, IMAGE_FOLDER)
  machine = await openQemuMachine(world)
  hosts = [await machine.host(0).attach(), await machine.host(1).attach()]
  hypervisor = hosts[0]
})
afterEach(async () => {
  for (const each of hosts) {
    await each.forget(NAME)
    await each.close()
  }
  await machine.close()
  await world.close()
})

const { type, until } = guestShell(
  (isTrue) => machine.until(isTrue),
  () => hypervisor.console(NAME),
)
const definition = () => machine.definition(NAME, 1, 'boot')
async function boot(): Promise<void> {
  await machine.volumes.requireClosed('boot')
  await hypervisor.start(await definition())
  await until((all) => all.includes(PROMPT))
}
const identical = async (one: string, other: string) => {
  const paths = await Promise.all([one, other].map((name) => machine.volumes.checkedPathOf(name)))
  const formats = paths.flatMap((path, index) => [index === 0 ? '-f' : '-F', formatOf(path)])
  expect(await runProgram('qemu-img', ['compare', ...formats, ...paths])).toContain('Images are identical')
}

const jobOf = (name: string, parent?: string) => ({
  backup: { namespace: 'acct-a', name, uid: `uid-${name}` },
  work: 'write' as const,
  accountId: 'a',
  secretName: 'key',
  storageId: 's1',
  volume: 'boot',
  ...defined({ parent }),
})
const openWork = (userOf: () => Promise<string | undefined>) =>
  openDiskWork({
    location: join(machine.folder, 'store'),
    environment: {},
    bytesPerSecond: 1_000_000_000,
    folder: join(machine.folder, 'backups'),
    hypervisor,
    volumes: machine.volumes,
    diskLocks: new KeyedMutex(),
    userOf,
    store: {
      get: async () => ({ metadata: { name: 'key' }, data: { key: Buffer.from('01'.repeat(32)).toString('base64') } }),
    } as never, // nothing else is asked of it
    namespace: 'node-n1',
    clock: systemClock,
    random: systemRandom,
  })
const quietly = { signal: new AbortController().signal, onProgress: () => {} }

it('boots, has disks that come, grow and go, snapshots and copies of them, and moves with all of it', async () => {
  const { volumes } = machine
  const pool = volumes.pools[0] ?? ''
  await boot()
  const disk = await machine.disk()
  expect(disk.path).toMatch(/^rbd:/)
  await hypervisor.plugDisk(NAME, disk)
  await type('until [ -e /dev/vdc ]; do sleep 0.1; done; cat /sys/block/vdc/size', /^2097152\r?$/m)
  await volumes.grow('data', 2, async (path, size) => expect(await hypervisor.growDisk(NAME, path, size)).toBe(true))
  await type('cat /sys/block/vdc/size', /^4194304\r?$/m)
  await type('echo first | dd of=/dev/vdc bs=512 conv=sync,fsync 2>/dev/null && echo "is written"', /^is written\r?$/m)
  for (const each of ['boot', 'data']) await expect(volumes.requireClosed(each)).rejects.toThrow(Unavailable)

  await type(AGENT, /agent-is-up\r?$/m)
  await volumes.takeSnapshot('data', 's1', takeInGuest(hypervisor, NAME))
  await type('echo later | dd of=/dev/vdc bs=512 conv=sync,fsync 2>/dev/null && echo "is changed"', /^is changed\r?$/m)
  expect(await volumes.snapshots('data')).toEqual([{ name: 's1', sizeGibibytes: 2, isFrozen: true }])
  await volumes.create({ name: 'copy', sizeGibibytes: 2, pool, snapshotOf: { volume: 'data', pool, snapshot: 's1' } })
  await volumes.removeSnapshot('data', 's1', removeInGuest(hypervisor, NAME))
  expect(await volumes.snapshots('data')).toEqual([])
  const first = ['-f', 'raw', '-c', 'read -v 0 16', await volumes.checkedPathOf('copy')]
  expect(await runProgram('qemu-io', first)).toContain('first')

  await type('echo memory > /tmp/kept && echo "is remembered"', /^is remembered\r?$/m)
  const order = { id: 'op-1', attempt: 1, key: KEY, mirroredDisks: [] }
  const arriving = { ...(await definition()), disks: [...(await definition()).disks, disk] }
  const { transfer } = await hosts[1].receive(arriving, order)
  const { host = '', port = 0 } = transfer ?? {}
  const limits = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 60 }
  await hosts[0].send(NAME, { ...order, ...limits, host, port })
  const stateOf = (each: Hypervisor) => async () => (await each.inspect(NAME))?.state
  await untilIs('the guest', stateOf(hosts[1]), (state) => state === 'running')
  await untilIs('the hand-over', stateOf(hosts[0]), (state) => state === 'handed_over')
  await hosts[0].forget(NAME)
  hypervisor = hosts[1]
  expect([...((await hypervisor.inspect(NAME))?.disks ?? [])].sort()).toEqual(
    [(await definition()).disks[0]?.path, disk.path].sort(),
  )
  await type('cat /tmp/kept; dd if=/dev/vdc bs=512 count=1 2>/dev/null', /^memory\r?\nlater/m)
  await expect(volumes.requireClosed('boot')).rejects.toThrow(Unavailable)
  await hypervisor.unplugDisk(NAME, disk.path, false)
  await untilIs(
    'the release',
    async () => (await hypervisor.inspect(NAME))?.disks.length,
    (count) => count === 1,
  )
  await volumes.requireClosed('data')
  await volumes.remove('data')
})

it('is backed up while it runs, from the last backup on wherever it ran since, and is restored', async () => {
  const { volumes } = machine
  await boot()
  let user: string | undefined = NAME
  const work = openWork(async () => user)
  const write = (text: string) =>
    type(`echo ${text} > /data/file; sync; echo "written ${text}"`, new RegExp(`^written ${text}\\r?$`, 'm'))
  await write('one')
  expect(await work.run(jobOf('b1'), quietly)).toMatchObject({ fullBecause: 'it is the first backup of the storage' })
  await write('two')
  await type('mount -o remount,ro /data; echo "it rests"', /^it rests\r?$/m)
  expect(await work.run(jobOf('b2', 'b1'), quietly)).toMatchObject({ parent: 'b1' })
  const points = async () => (await volumes.pointsOf('boot'))?.list()
  expect(await points()).toEqual(['backup-b2'])
  await hypervisor.forget(NAME)
  ;[, hypervisor] = hosts
  await untilIs(
    'the disk',
    () =>
      volumes.requireClosed('boot').then(
        () => true,
        () => false,
      ),
    (isClosed) => isClosed,
  )
  await boot()
  await write('three')
  await hypervisor.forget(NAME)
  user = undefined
  let sent = 0
  const onProgress = ({ bytesSent = 0 }) => void (sent = bytesSent)
  expect(await work.run(jobOf('b3', 'b2'), { ...quietly, onProgress })).toMatchObject({ parent: 'b2' })
  expect(sent).toBeGreaterThan(0)
  await work.abandon(jobOf('b4', 'b3')) // it began nothing
  expect(await points()).toEqual(['backup-b3'])
  await volumes.pointsOf('boot').then((kept) => kept?.remove('backup-b3'))
  expect(await work.run(jobOf('b4', 'b3'), quietly)).toMatchObject({
    fullBecause: 'the disk has no record of what has changed since the last backup',
  })
  // A guest that is about to open the disk has it at once; the backup goes on at its point then.
  const begun = Promise.withResolvers<void>()
  const interrupted = work
    .run(jobOf('b5'), { ...quietly, onProgress: () => begun.resolve() })
    .catch((error: unknown) => error)
  await Promise.race([begun.promise, interrupted])
  await work.yieldDisk('boot')
  await volumes.requireClosed('boot')
  await interrupted
  expect(await work.run(jobOf('b5'), quietly)).toMatchObject({ sizeBytes: 1_073_741_824 })
  expect(await points()).toEqual(['backup-b5'])
  for (const backup of ['b3', 'b4', 'b5']) {
    const fill = (path: string) => work.fill({ backup, accountId: 'a', secretName: 'key' }, path, quietly)
    await volumes.create({ name: backup, sizeGibibytes: 1, pool: volumes.pools[0] ?? '', fill })
    await identical('boot', backup)
  }
})

it('writes nothing once its host is fenced, and continues elsewhere with what it had written', async () => {
  const { ceph } = cluster
  const caps = 'allow command "osd blocklist", allow command "osd blocklist ls"'
  const key = (await ceph.administer('auth', 'get-or-create-key', `client.${FENCE}`, 'mon', caps)).trim()
  const addresses = ['127.0.0.1']
  const access = openCeph({ monitors: ceph.monitors, username: FENCE, key, addresses, clock: systemClock })
  await boot()
  await type('echo kept > /data/file; sync; echo "is kept"', /^is kept\r?$/m)
  await access.take()
  try {
    await type('dd if=/dev/zero of=/data/lost bs=512 count=1 conv=fsync || echo "is refused"', /^is refused\r?$/m)
    await expect(world.openPool('fenced')).rejects.toThrow(CephUnreachable)
  } finally {
    await access.giveBack()
  }
  await hypervisor.forget(NAME)
  ;[, hypervisor] = hosts
  await untilIs(
    'the disk',
    () =>
      machine.volumes.requireClosed('boot').then(
        () => true,
        () => false,
      ),
    (isClosed) => isClosed,
  )
  await boot()
  await type('cat /data/file; ls /data/lost || echo "lost is not there"', /^kept\r?\n[^]*lost is not there\r?$/m)
})
