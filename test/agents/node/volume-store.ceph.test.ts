/** Volumes in a real Ceph cluster beside those on the host's own disks. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CephUnreachable, openCephPool } from '../../../agents/node/drivers/storage/ceph-pool.ts'
import { takeSnapshotClosed } from '../../../agents/node/drivers/storage/qcow2-snapshots.ts'
import { formatOf } from '../../../agents/node/drivers/storage/rbd-path.ts'
import type { SnapshotOf, VolumeStore } from '../../../agents/node/drivers/storage/volume-store.ts'
import { processArgumentsOf } from '../../../agents/node/host.ts'
import { runProgram } from '../../../agents/node/run-program.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useCeph } from '../../ceph.ts'
import { eventually } from '../../eventually.ts'
import { openCephWorld } from './ceph-world.ts'
import { volumeStoreContract } from './volume-store-contract.ts'

const COPIES_MAXIMUM = 20
const cluster = useCeph()

async function openWorld() {
  const images = await mkdtemp(join(tmpdir(), 'svccloud-images-'))
  const disk = join(images, 'template.qcow2')
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '1G'])
  await runProgram('qemu-io', ['-c', 'write -P 0x5a 1M 64k', disk])
  const world = await openCephWorld(cluster.ceph, images)
  return {
    ...world,
    open: () => world.openHost('alpha'),
    openOther: () => world.openHost('beta'),
    template: { name: 'debian-13', version: '1', boot: undefined, disk },
    takeFrozen: (path: string, labelOf: (isFrozen: boolean) => string) =>
      formatOf(path) === 'raw' ? world.takeFrozen(path, labelOf) : takeSnapshotClosed(path, () => labelOf(true)),
    async close() {
      await world.close()
      await rm(images, { recursive: true })
    },
  }
}

volumeStoreContract(openWorld)

describe('volumes in a pool', () => {
  let world: Awaited<ReturnType<typeof openWorld>>
  let volumes: VolumeStore
  let pool: string
  beforeEach(async () => {
    world = await openWorld()
    volumes = await world.open()
    pool = volumes.pools[0] ?? ''
  })
  afterEach(() => world.close())

  /** Reads and writes with a program of the host; rejects when what is read is not what it should be. */
  async function io(store: VolumeStore, name: string, ...commands: readonly string[]): Promise<void> {
    const path = await store.checkedPathOf(name)
    const words = ['-f', formatOf(path), ...commands.flatMap((command) => ['-c', command]), path]
    expect(await runProgram('qemu-io', words)).not.toContain('verification failed')
  }
  async function processWith(argument: string): Promise<number | undefined> {
    for (const pid of (await readdir('/proc')).map(Number).filter((each) => each > 0))
      if ((await processArgumentsOf(pid))?.includes(argument) === true) return pid
    return undefined
  }
  /** A copy that neither goes on nor ends by itself; answers how it ends. */
  async function stoppedCopy(of: SnapshotOf): Promise<() => Promise<unknown>> {
    for (let attempt = 1; attempt <= COPIES_MAXIMUM; attempt++) {
      const to = join(world.folder, `copy-${attempt}.qcow2`)
      let isOver = false
      const copy = volumes
        .copySnapshot(of, to)
        .catch((error: unknown) => error)
        .finally(() => (isOver = true))
      while (!isOver) {
        const pid = await processWith(to)
        if (pid !== undefined && signalProcess(pid, 'SIGSTOP')) return () => copy
      }
    }
    throw new Error('each copy ended before it was stopped')
  }
  const objectsOf = async (): Promise<number> =>
    JSON.parse(await cluster.ceph.administer('df', '--format', 'json')).pools.find(
      (each: { readonly name: string }) => each.name === cluster.ceph.pool,
    ).stats.stored

  it('a template that nothing shares data with goes a week after its last use, and comes again', async () => {
    const made = (name: string) => volumes.create({ name, sizeGibibytes: 1, source: world.template, pool })
    const later = (days: number) =>
      world.openPool('later', { ...systemClock, now: () => new Date(Date.now() + days * 86_400_000) })
    const template = 'template.debian-13.1'
    await made('a')
    expect(await (await later(8)).removeUnusedTemplates()).toEqual([]) // a shares data with it
    await volumes.remove('a')
    expect(await (await later(6)).removeUnusedTemplates()).toEqual([])
    await cluster.ceph.rbd('image-meta', 'rm', `${cluster.ceph.pool}/${template}`, 'svccloud-used')
    expect(await (await later(8)).removeUnusedTemplates()).toEqual([]) // it counts from now on
    await cluster.ceph.rbd('rename', `${cluster.ceph.pool}/${template}`, `${cluster.ceph.pool}/${template}.leaving`)
    await made('b') // while a host that died left one half removed
    await volumes.remove('b')
    expect(await (await later(16)).removeUnusedTemplates()).toEqual([template])
    expect(await world.images()).toEqual([])
    await made('c')
    await io(volumes, 'c', 'read -P 0x5a 1M 64k')
  })

  it('says how much room each snapshot alone keeps', async () => {
    await volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template, pool })
    const room = async () => Object.fromEntries(await volumes.roomOfSnapshots('a'))
    const object = 4 * 1_048_576
    await io(volumes, 'a', 'write -P 1 0 8M')
    await volumes.takeSnapshot('a', 's1')
    expect(await room()).toEqual({ s1: 0 })
    await io(volumes, 'a', 'write -P 2 0 1M')
    expect(await room()).toEqual({ s1: object })
    await volumes.takeSnapshot('a', 's2')
    await io(volumes, 'a', 'write -P 3 0 8M')
    // the second object both have
    expect(await room()).toEqual({ s1: object, s2: object })
    await volumes.removeSnapshot('a', 's1')
    expect(await room()).toEqual({ s2: 2 * object })
  })

  it('a template is copied to the pool once, by any host, and volumes are cloned from it at once', async () => {
    const other = await world.openOther()
    await Promise.all([
      volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template, pool }),
      other.create({ name: 'b', sizeGibibytes: 3, source: world.template, pool }),
    ])
    expect((await world.images()).toSorted()).toEqual(['a', 'b', 'template.debian-13.1'])
    await io(volumes, 'a', 'read -P 0x5a 1M 64k', 'write -P 1 1M 64k', 'write -P 1 2047M 1M')
    await io(other, 'b', 'read -P 0x5a 1M 64k')
  })

  it('what shares data with a snapshot or a volume keeps them when that goes', async () => {
    await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
    await io(volumes, 'a', 'write -P 1 8M 8M')
    await volumes.takeSnapshot('a', 's1')
    await volumes.takeSnapshot('a', 's2')
    await io(volumes, 'a', 'write -P 2 8M 8M')
    for (const snapshot of ['s1', 's2'])
      await volumes.create({ name: snapshot, sizeGibibytes: 2, pool, snapshotOf: { volume: 'a', pool, snapshot } })
    await io(volumes, 's1', 'read -P 1 8M 8M', 'read -P 0 1G 64k')
    await volumes.removeSnapshot('a', 's1')
    expect((await volumes.snapshots('a')).map(({ name }) => name)).toEqual(['s2'])
    await volumes.remove('a')
    expect((await world.images()).toSorted()).toEqual(['s1', 's2'])
    for (const name of ['s1', 's2']) await io(volumes, name, 'read -P 1 8M 8M')
  })

  it('copies of snapshots go from the host to the pool and back', async () => {
    await volumes.create({ name: 'a', sizeGibibytes: 1, source: world.template })
    await volumes.takeSnapshot('a', 's1')
    await io(volumes, 'a', 'write -P 2 1M 64k')
    await volumes.create({ name: 'b', sizeGibibytes: 2, pool, snapshotOf: { volume: 'a', snapshot: 's1' } })
    await io(volumes, 'b', 'read -P 0x5a 1M 64k', 'write -P 3 1025M 64k')
    await volumes.takeSnapshot('b', 's2')
    await io(volumes, 'b', 'write -P 4 1025M 64k')
    await volumes.create({ name: 'c', sizeGibibytes: 2, snapshotOf: { volume: 'b', pool, snapshot: 's2' } })
    await io(volumes, 'c', 'read -P 0x5a 1M 64k', 'read -P 3 1025M 64k')
    expect(await volumes.inspect('c')).toEqual({ name: 'c', sizeGibibytes: 2 })
  })

  it('data go from the host to the pool and from the pool to another host, served by either', async () => {
    const other = await world.openOther()
    const key = 'e5'.repeat(32)
    await volumes.create({ name: 'a', sizeGibibytes: 1, source: world.template })
    const from = { ...(await volumes.serve('a', key)), key }
    await expect(
      other.create({ name: 'a', sizeGibibytes: 2, pool, from: { ...from, key: 'f6'.repeat(32) } }),
    ).rejects.toThrow()
    expect([await other.inspect('a'), await other.isInPool('a', pool)]).toEqual([undefined, false])
    await other.create({ name: 'a', sizeGibibytes: 2, pool, from })
    await io(other, 'a', 'read -P 0x5a 1M 64k', 'write -P 1 1M 64k')
    await volumes.remove('a')
    await volumes.create({ name: 'a', sizeGibibytes: 2, from: { ...(await other.serve('a', key)), key } })
    await io(volumes, 'a', 'read -P 1 1M 64k')
    await other.remove('a')
    expect(await world.images()).toEqual([])
  })

  it('a custom image and a backup fill a disk of the pool', async () => {
    await volumes.create({ name: 'a', sizeGibibytes: 2, copyOf: world.template.disk, pool })
    await io(volumes, 'a', 'read -P 0x5a 1M 64k')
    const fill = async (path: string) =>
      void (await runProgram('qemu-io', ['-f', formatOf(path), '-c', 'write -P 7 3M 1M', path]))
    await volumes.create({ name: 'b', sizeGibibytes: 1, pool, fill })
    await io(volumes, 'b', 'read -P 7 3M 1M')
    const broken = () => Promise.reject(new Error('the store is gone'))
    await expect(volumes.create({ name: 'c', sizeGibibytes: 1, pool, fill: broken })).rejects.toThrow('store is gone')
    expect([await volumes.inspect('c'), (await world.images()).toSorted()]).toEqual([undefined, ['a', 'b', 'c.new']])
    await volumes.remove('c')
    expect((await world.images()).toSorted()).toEqual(['a', 'b'])
  })

  it('a disk that somebody has open is known to be, on every host, and is not removed', async () => {
    const other = await world.openOther()
    await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
    await other.adopt('a', pool)
    await other.requireClosed('a')
    const user = spawn('qemu-io', ['-f', 'raw', await volumes.checkedPathOf('a')], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    await eventually('the other user', () =>
      other.requireClosed('a').then(
        () => undefined,
        () => true,
      ),
    )
    await expect(other.requireClosed('a')).rejects.toThrow('has open')
    await expect(other.remove('a')).rejects.toThrow('has open')
    expect(await volumes.inspect('a')).toEqual({ name: 'a', sizeGibibytes: 1, pool })
    user.stdin.end()
    await once(user, 'exit')
    await other.requireClosed('a')
    await other.remove('a')
  })

  it('a disk is closed as soon as nobody serves it, and what copies a snapshot of it gives way', async () => {
    await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
    await volumes.serve('a', 'e5'.repeat(32))
    await expect(volumes.requireClosed('a')).rejects.toThrow('has open')
    await volumes.stopServing('a')
    await volumes.requireClosed('a')
    await io(volumes, 'a', 'write -P 1 0 128M')
    await volumes.takeSnapshot('a', 's2')
    const copy = await stoppedCopy({ volume: 'a', pool, snapshot: 's2' })
    await volumes.requireClosed('a').catch(() => undefined)
    expect(await copy()).toBeInstanceOf(Unavailable)
  })

  it('deletion gives the space back', async () => {
    await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
    await io(volumes, 'a', 'write -P 1 0 64M')
    await expect.poll(objectsOf).toBeGreaterThan(60 * 1024 ** 2)
    await volumes.remove('a')
    await expect.poll(objectsOf).toBeLessThan(1024 ** 2)
  })

  it('says that the cluster does not let the host in, and what is wrong with its settings', async () => {
    const open = (changes: Partial<typeof world.login>) =>
      openCephPool({
        ...world.login,
        ...changes,
        folder: join(world.folder, 'other'),
        clock: systemClock,
        random: systemRandom,
      })
    await expect(open({ pool: 'another' })).rejects.toThrow(CephUnreachable)
    await expect(open({ user: 'nobody' })).rejects.toThrow(CephUnreachable)
    await expect(open({ keyringFile: '/no/such/file' })).rejects.toThrow('ENOENT')
    for (const user of ['client.admin', 'a:b', '']) await expect(open({ user })).rejects.toThrow('name of a client')
    for (const name of ['a/b', 'a@b', 'p'.repeat(27)])
      await expect(open({ pool: name })).rejects.toThrow('name of a pool')
  })
})
