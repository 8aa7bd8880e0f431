import { beforeEach, describe, expect, it } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import { Lease, type ResourceType, Secret } from '../../../kit/kube/object.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { simulatedBackups } from '../../../agents/node/backup/simulated.ts'
import {
  AGENT_FINALIZER,
  HEARTBEAT_LEASE_NAME,
  Image,
  Instance,
  NODE_REPORT_NAME,
  NodeReport,
  Volume,
} from '../../../resources/instance/index.ts'
import { type AgentWorld, INSTANCE, NAMESPACE, openAgentWorld, POOL } from './agent-world.ts'
import { instanceSpec } from './instance-spec.ts'

type InstanceKey = { readonly namespace: string; readonly name: string }

async function* mute(): AsyncGenerator<string> {
  await new Promise<never>(() => {})
}

describe('an agent of a simulated host', () => {
  let world: AgentWorld
  beforeEach(async () => {
    world = await openAgentWorld()
    world.startAgent()
  })
  const running = () => world.instanceWhen(({ status }) => status?.state === 'running')
  const stopped = () => world.instanceWhen(({ status }) => status?.state === 'stopped')
  const soft = (id: string) => ({ id, type: 'soft' as const, timeoutSeconds: 60, timeoutAction: 'hard' as const })

  it('has the reading of a backup end before the running guest gets the disk', async () => {
    world.killAgent()
    const disksWhenYielded: (readonly [string, readonly string[]])[] = []
    const backups = simulatedBackups(new Map(), { sizeOf: async () => 1, clock: systemClock })
    world.startAgent({
      backups: {
        ...backups,
        yieldDisk: async (volume) =>
          void disksWhenYielded.push([volume, world.host.running().flatMap(({ disks }) => disks)]),
      },
    })
    await world.createInstance()
    const instance = await running()
    const data = { metadata: { namespace: NAMESPACE, name: 'data', finalizers: [AGENT_FINALIZER] } }
    const storage = { namespace: 'acct-1', name: 'd', uid: 'd' }
    await world.settled(world.store.create(Volume, { ...data, spec: { storage, sizeGibibytes: 1 } }))
    await world.change({ disks: [...instance.spec.disks, { volume: 'data', serial: 'data', slot: 1 }] })
    await world.until(async () => world.host.running()[0]?.disks.includes('/simulated/data') ?? false)
    expect(disksWhenYielded).toEqual([
      ['boot', []],
      ['data', ['/simulated/boot']],
    ])
  })

  it('gives a guest no disk that somebody else has open, and costs it no incarnation', async () => {
    world.killAgent()
    const openElsewhere = new Set(['boot', 'data'])
    world.startAgent({ openElsewhere })
    await world.createInstance()
    await world.pass(60_000)
    expect(world.host.running()).toEqual([])
    openElsewhere.delete('boot')
    const instance = await running()
    expect(instance.status).toMatchObject({ incarnation: 1 })
    const data = { metadata: { namespace: NAMESPACE, name: 'data', finalizers: [AGENT_FINALIZER] } }
    const storage = { namespace: 'acct-1', name: 'd', uid: 'd' }
    await world.settled(world.store.create(Volume, { ...data, spec: { storage, sizeGibibytes: 1 } }))
    await world.change({ disks: [...instance.spec.disks, { volume: 'data', serial: 'data', slot: 1 }] })
    await world.pass(60_000)
    expect(world.host.running()[0]?.disks).toEqual(['/simulated/boot'])
    openElsewhere.clear()
    await world.until(async () => world.host.running()[0]?.disks.includes('/simulated/data') ?? false)
  })

  it('runs a guest, stops it, starts it again, and leaves nothing behind', async () => {
    await world.createInstance()
    const instance = await running()
    expect(instance.status).toMatchObject({
      incarnation: 1,
      hypervisor: 'simulated',
      observedGeneration: instance.metadata.generation,
    })
    expect(world.host.running()).toMatchObject([
      { name: INSTANCE, uid: instance.metadata.uid, incarnation: 1, disks: ['/simulated/boot'] },
    ])

    await world.change({ power: 'stopped', stop: soft('op-1') })
    expect((await stopped()).status).toMatchObject({
      incarnation: 1,
      endReason: 'requested',
      stop: { id: 'op-1', outcome: 'stopped' },
    })
    expect(world.host.running()).toEqual([])

    await world.change({ power: 'running', incarnation: 2 })
    expect((await running()).status).toMatchObject({ incarnation: 2 })
    await world.change({ incarnation: 3, stop: soft('op-2') })
    expect(
      (await world.instanceWhen(({ status }) => status?.incarnation === 3 && status.state === 'running')).status
        ?.endReason,
    ).toBeUndefined()

    await world.settled(world.store.delete(Volume, { namespace: NAMESPACE, name: 'boot' }))
    await world.pass(5_000)
    expect(world.disks.size).toBe(1) // its guest still has it open
    await world.settled(world.store.delete(Instance, { namespace: NAMESPACE, name: INSTANCE }))
    await world.until(async () => (await world.store.get(Volume, { namespace: NAMESPACE, name: 'boot' })) === undefined)
    expect(await world.settled(world.store.get(Instance, { namespace: NAMESPACE, name: INSTANCE }))).toBeUndefined()
    expect([world.host.running(), world.disks.size]).toEqual([[], 0])
  })

  it('keeps a disk that its guest has open, also when the spec has changed to another one', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    const spec = {
      storage: { namespace: 'acct-1', name: 't', uid: 't' },
      sizeGibibytes: 1,
      source: { kind: 'template', name: 'tiny-linux' },
    } as const
    await world.settled(world.store.create(Volume, { metadata: { namespace: NAMESPACE, name: 'other' }, spec }))
    await world.change({ disks: [{ volume: 'other', serial: 'other' }] })
    await world.settled(world.store.delete(Volume, { namespace: NAMESPACE, name: 'boot' }))
    world.startAgent()
    await world.until(async () => world.disks.has('other'))
    await world.pass(5_000)
    expect([world.host.running().length, world.disks.has('boot')]).toEqual([1, true])
    await world.change({ power: 'stopped', stop: soft('op-1') })
    await world.until(async () => !world.disks.has('boot'))
  })

  it('knows which disks a guest was to have whose start it has not noted', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    const { uid = '', generation = 0, volumes = [] } = world.ledger.get(INSTANCE) ?? {}
    expect(volumes).toEqual(['boot'])
    world.ledger.put(INSTANCE, { uid, generation, incarnation: 0, volumes })
    world.startAgent()
    await world.until(async () => world.ledger.get(INSTANCE)?.incarnation === 1)
    expect(world.ledger.get(INSTANCE)?.volumes).toEqual(['boot'])
  })

  it("never restarts a guest behind its owner's back", async () => {
    await world.createInstance()
    await running()
    world.host.powerOffGuest(INSTANCE)
    expect((await stopped()).status).toMatchObject({ endReason: 'guest_shutdown', incarnation: 1 })
    await world.change({ incarnation: 2 })
    await running()
    world.host.crashGuest(INSTANCE)
    expect((await stopped()).status).toMatchObject({ endReason: 'crashed', incarnation: 2 })
    await world.pass(1_200_000)
    expect(world.host.running()).toEqual([])
  })

  it('ends a guest that does not listen, or gives up, as was asked', async () => {
    await world.createInstance()
    await running()
    await world.pass(5_000)
    world.host.hangGuest(INSTANCE)
    await world.change({ power: 'stopped', stop: { ...soft('op-1'), timeoutAction: 'fail' } })
    await world.instanceWhen(({ status }) => status?.state === 'stopping')
    expect((await world.instanceWhen(({ status }) => status?.stop !== undefined)).status).toMatchObject({
      state: 'running',
      stop: { id: 'op-1', outcome: 'timed_out' },
    })
    await world.change({ stop: soft('op-2') })
    expect((await stopped()).status).toMatchObject({ endReason: 'requested', stop: { id: 'op-2', outcome: 'stopped' } })
  })

  it('says why a guest did not start, and does not try that incarnation again', async () => {
    world.host.failNextStart('no memory left')
    await world.createInstance()
    expect((await world.instanceWhen(({ status }) => status?.state === 'error')).status).toMatchObject({
      detail: 'no memory left',
      incarnation: 1,
      endReason: 'crashed',
    })
    await world.pass(1_200_000)
    expect(world.host.running()).toEqual([])
    await world.change({ incarnation: 2 })
    expect((await running()).status?.detail).toBeUndefined()
  })

  it('adopts what it finds after a kill, and notices what happened in between', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    await world.pass(60_000)
    const before = world.host.running()
    world.startAgent()
    await world.pass(5_000)
    expect(world.host.running()).toEqual(before)

    world.killAgent()
    world.host.crashGuest(INSTANCE)
    world.startAgent()
    expect((await stopped()).status).toMatchObject({ endReason: 'crashed', incarnation: 1 })
  })

  it('has at most one guest and stops it, killed at any instant', async () => {
    for (let instant = 0; instant < 400; instant += 16) {
      const each = await openAgentWorld(instant + 1)
      each.startAgent()
      await each.createInstance()
      await each.pass(instant)
      each.killAgent()
      expect(each.host.running().length).toBeLessThanOrEqual(1)
      each.startAgent()
      // Killed between the ledger and the process, the incarnation is spent: a crash, for the controllers to answer.
      const { status } = await each.instanceWhen(
        (instance) => instance.status?.state === 'running' || instance.status?.endReason === 'crashed',
      )
      expect(each.host.running().length).toBe(status?.state === 'running' ? 1 : 0)
      await each.settled(each.store.delete(Instance, { namespace: NAMESPACE, name: INSTANCE }))
      await each.settled(each.store.delete(Volume, { namespace: NAMESPACE, name: 'boot' }))
      await each.until(async () => (await each.store.get(Volume, { namespace: NAMESPACE, name: 'boot' })) === undefined)
      expect([each.host.running(), each.disks.size]).toEqual([[], 0])
      each.killAgent()
    }
  })

  /** As a person does it, or an older state of Kubernetes. */
  const takeAway = async (type: ResourceType, name: string) => {
    const key = { namespace: NAMESPACE, name }
    await world.settled(world.store.delete(type, key))
    await world.settled(world.store.patch(type, key, { metadata: { finalizers: null } }).catch(() => undefined))
  }
  const unclaimed = async () => {
    const key = { namespace: NAMESPACE, name: NODE_REPORT_NAME }
    const { status } = (await world.settled(world.store.get(NodeReport, key))) ?? {}
    return {
      count: status?.held?.unclaimed,
      names: status?.unclaimed?.map(({ kind, name }) => `${kind} ${name}`),
      unnamed: status?.unnamed,
    }
  }

  it('leaves a guest and its disk whose objects went past their finalizers, and says so', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    await takeAway(Instance, INSTANCE)
    await takeAway(Volume, 'boot')
    world.startAgent()
    await world.pass(20_000)
    // Its room is reported at once, so that nobody gets it.
    const guest = { name: INSTANCE, cores: 1, memoryMebibytes: 128, storageGibibytes: 1 }
    expect(await unclaimed()).toMatchObject({ count: 0, unnamed: [{ ...guest, server: { name: 'server-1' } }] })
    await world.pass(8.5 * 60_000)
    expect((await unclaimed()).count).toBe(0)
    await world.pass(2 * 60_000)
    expect(await unclaimed()).toMatchObject({ count: 2, names: [`Instance ${INSTANCE}`, 'Volume boot'] })
    await world.pass(3 * 3_600_000)
    expect([world.host.running().length, [...world.disks.keys()]]).toEqual([1, ['boot']])
  })

  it.each([
    { isCurrent: undefined, disks: ['boot'], report: [{ kind: 'Volume', name: 'boot', isCurrent: true }] },
    { isCurrent: true, disks: [], report: undefined },
  ])('keeps a disk that a move brought and a guest used, unless the move has ended here', async (each) => {
    await world.createInstanceOnly()
    const spec = {
      storage: { namespace: 'acct-1', name: 's', uid: 'boot' },
      sizeGibibytes: 1,
      source: { kind: 'mirror', name: 'op-1' },
      ...defined({ isCurrent: each.isCurrent }),
    } as const
    const metadata = { namespace: NAMESPACE, name: 'boot', finalizers: [AGENT_FINALIZER] }
    await world.settled(world.store.create(Volume, { metadata, spec }))
    await running()
    world.killAgent()
    world.startAgent()
    await world.settled(world.store.delete(Instance, { namespace: NAMESPACE, name: INSTANCE }))
    await world.settled(world.store.delete(Volume, { namespace: NAMESPACE, name: 'boot' }))
    const volume = () => world.settled(world.store.get(Volume, { namespace: NAMESPACE, name: 'boot' }))
    await world.until(async () => (await volume()) === undefined)
    await world.pass(12 * 60_000)
    const report = await world.settled(world.store.get(NodeReport, { namespace: NAMESPACE, name: NODE_REPORT_NAME }))
    expect([...world.disks.keys()]).toEqual(each.disks)
    expect(report?.status?.unclaimed).toEqual(each.report?.map((one) => ({ ...one, since: expect.any(String) })) ?? [])
  })

  it('claims again what gets its object back', async () => {
    world.disks.set('known', { name: 'known', sizeGibibytes: 1 })
    await world.pass(12 * 60_000)
    expect((await unclaimed()).names).toEqual(['Volume known'])
    await world.settled(
      world.store.create(Volume, {
        metadata: { namespace: NAMESPACE, name: 'known', finalizers: [AGENT_FINALIZER] },
        spec: { storage: { namespace: 'acct-1', name: 's', uid: 'known' }, sizeGibibytes: 1 },
      }),
    )
    await world.pass(60_000)
    expect((await unclaimed()).names).toEqual([])
  })

  it('puts the record of an ended guest and of a disk on shared storage away, which hold nothing', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    await takeAway(Instance, INSTANCE)
    world.shared.pools.get(POOL)?.set('moved', { name: 'moved', sizeGibibytes: 1 })
    world.disks.set('moved', { name: 'moved', sizeGibibytes: 1, pool: POOL })
    world.shared.owners.set('moved', { node: 'beta', bootId: 'boot of beta' })
    world.host.reboot()
    world.startAgent()
    await world.until(async () => !world.disks.has('moved'))
    await world.pass(60_000)
    expect((await unclaimed()).count).toBe(0)
    expect(world.shared.pools.get(POOL)?.has('moved')).toBe(true)
    expect(world.shared.owners.get('moved')).toMatchObject({ node: 'beta' })
    expect(world.ledger.get(INSTANCE)).toMatchObject({ incarnation: 1, ended: { reason: 'crashed' } })
  })

  it('removes no disk from under a guest that no object names', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    await takeAway(Instance, INSTANCE)
    world.startAgent()
    await world.settled(world.store.delete(Volume, { namespace: NAMESPACE, name: 'boot' }))
    await world.pass(60_000)
    expect([world.host.running().length, [...world.disks.keys()]]).toEqual([1, ['boot']])
  })

  it('makes no blank disk in place of one that it had, and starts no guest on it', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    world.host.crashGuest(INSTANCE)
    world.disks.delete('boot')
    await world.change({ incarnation: 2 })
    world.startAgent()
    const { status } = await world.instanceWhen((instance) => instance.status?.state === 'error')
    expect(status?.detail).toBe('volume boot is lost')
    const volume = await world.settled(world.store.get(Volume, { namespace: NAMESPACE, name: 'boot' }))
    expect([volume?.status?.state, [...world.disks.keys()], world.host.running()]).toEqual(['lost', [], []])
  })

  it('makes no blank disk for a server that was deleted and came back with an older Kubernetes', async () => {
    await world.createInstance()
    await running()
    for (const [type, name] of [
      [Instance, INSTANCE],
      [Volume, 'boot'],
    ] as const)
      await world.settled(world.store.delete(type, { namespace: NAMESPACE, name }))
    await world.until(async () => (await world.store.get(Volume, { namespace: NAMESPACE, name: 'boot' })) === undefined)
    expect(world.disks.size).toBe(0)
    await world.createInstance()
    const { status } = await world.instanceWhen((instance) => instance.status?.state === 'error')
    expect([status?.detail, world.disks.size]).toEqual(['volume boot is lost', 0])
  })

  it('starts nothing on a disk that another host was given, by an older state of Kubernetes', async () => {
    const key = { namespace: NAMESPACE, name: 'boot' }
    const disk = async () => world.settled(world.store.get(Volume, key))
    const serve = (id: string | null) =>
      world.settled(world.store.patch(Volume, key, { spec: { serve: id && { id, secretName: 'move' } } }))
    const isServedFor = (id: string) =>
      world.until(async () => (await world.store.get(Volume, key))?.status?.serving?.id === id)
    const data = { psk: Buffer.from('0'.repeat(64)).toString('base64') }
    await world.settled(
      world.store.create(Secret, { metadata: { namespace: NAMESPACE, name: 'move' }, spec: undefined, data }),
    )
    await world.createInstance({ power: 'stopped' })
    await world.until(async () => (await world.store.get(Volume, key))?.status?.state === 'ready')

    // An order that is taken back leaves it as it was.
    await serve('op-1')
    await isServedFor('op-1')
    await serve(null)
    await world.until(async () => world.ledger.bytesOf('volume', 'boot')?.served === undefined)
    await serve('op-2')
    await isServedFor('op-2')

    world.killAgent()
    const entry = world.ledger.bytesOf('volume', 'boot')
    if (entry?.served === undefined) throw new Error('nothing was noted')
    // As many writes ago as are lost.
    const served = { ...entry.served, generation: entry.served.generation + 10 }
    world.ledger.putBytes('volume', 'boot', { ...entry, served })
    await serve(null)
    world.startAgent()
    await world.until(async () => (await world.store.get(Volume, key))?.status?.state === 'lost')
    await world.change({ power: 'running', incarnation: 2 })
    await world.pass(60_000)
    expect([world.host.running(), [...world.disks.keys()]]).toEqual([[], ['boot']])
    expect((await disk())?.status?.detail).toContain('given to another host')
  })

  it('makes no image of a disk a second time', async () => {
    world.disks.set('boot', { name: 'boot', sizeGibibytes: 1 })
    const key = { namespace: NAMESPACE, name: image }
    await world.settled(
      world.store.create(Image, {
        metadata: { ...key, finalizers: [AGENT_FINALIZER] },
        spec: { image: { namespace: 'acct-1', name: 'mine', uid: 'u' }, volume: 'boot' },
      }),
    )
    await world.until(async () => (await world.store.get(Image, key))?.status?.state === 'ready')
    world.images.clear()
    world.killAgent()
    world.startAgent()
    await world.until(async () => (await world.store.get(Image, key))?.status?.state === 'lost')
    await world.pass(60_000)
    expect(world.images.size).toBe(0)
  })

  it("stops nothing for another object of the guest's name, and continues once the guest has stopped", async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    await takeAway(Instance, INSTANCE)
    await world.settled(
      world.store.create(Instance, {
        metadata: { namespace: NAMESPACE, name: INSTANCE, finalizers: [AGENT_FINALIZER] },
        spec: instanceSpec({ power: 'running', incarnation: 2 }),
      }),
    )
    world.startAgent()
    const taken = await world.instanceWhen(({ status }) => status?.state === 'error')
    expect(taken.status?.conditions).toEqual([expect.objectContaining({ type: 'NameTaken', status: 'True' })])
    await world.change({ power: 'stopped' })
    await world.pass(60_000)
    expect(world.host.running().map(({ incarnation }) => incarnation)).toEqual([1])
    world.host.crashGuest(INSTANCE)
    await world.change({ power: 'running' })
    const { status } = await world.instanceWhen((instance) => instance.status?.state === 'running')
    expect(status?.conditions).toEqual([expect.objectContaining({ type: 'NameTaken', status: 'False' })])
    expect(world.host.running().map(({ incarnation }) => incarnation)).toEqual([2])
  })

  it('ends nothing when another object of the name goes', async () => {
    await world.createInstance()
    await running()
    world.killAgent()
    await takeAway(Instance, INSTANCE)
    await world.createInstanceOnly()
    world.startAgent()
    await world.instanceWhen(({ status }) => status?.state === 'error')
    const key = { namespace: NAMESPACE, name: INSTANCE }
    await world.settled(world.store.delete(Instance, key))
    await world.until(async () => (await world.store.get(Instance, key)) === undefined)
    expect(world.host.running().length).toBe(1)
  })

  const image = 'acct-1.mine'
  const holdImage = async () => {
    await world.settled(
      world.store.create(Image, {
        metadata: { namespace: NAMESPACE, name: image, finalizers: [AGENT_FINALIZER] },
        spec: {
          image: { namespace: 'acct-1', name: 'mine', uid: 'u' },
          url: 'https://images.example.com/disk.qcow2',
          checksum: 'a'.repeat(64),
        },
      }),
    )
    await world.until(async () => world.images.has(image))
    world.killAgent()
    await world.settled(world.store.delete(Image, { namespace: NAMESPACE, name: image }))
  }
  const loseImage = () =>
    world.settled(world.store.patch(Image, { namespace: NAMESPACE, name: image }, { metadata: { finalizers: null } }))

  it('leaves an image whose Image went past its finalizer, and says so', async () => {
    await holdImage()
    await loseImage()
    world.startAgent()
    await world.pass(12 * 60_000)
    expect([[...world.images.keys()], (await unclaimed()).names]).toEqual([[image], [`Image ${image}`]])
  })

  it('refuses a spec that is older than the one it acted on', async () => {
    await world.createInstance()
    const { metadata } = await running()
    world.killAgent()
    // As after a restore of an older backup: the host knows more than the cluster.
    const entry = world.ledger.get(INSTANCE)
    if (entry !== undefined) world.ledger.put(INSTANCE, { ...entry, generation: (metadata.generation ?? 0) + 10 })
    world.startAgent()
    await world.change({ power: 'stopped' })
    await world.pass(300_000)
    expect(world.host.running().length).toBe(1)
  })

  it.each<readonly [string, (key: InstanceKey) => Promise<unknown>]>([
    ['changed', (key) => world.store.patch(Instance, key, { spec: { power: 'stopped' } })],
    ['deleted', (key) => world.store.delete(Instance, key)],
    [
      'made anew under its name',
      async (key) => {
        await world.store.patch(Instance, key, { metadata: { finalizers: null } })
        await world.store.delete(Instance, key)
        await world.store.create(Instance, { metadata: key, spec: instanceSpec({ power: 'stopped' }) })
      },
    ],
  ])('boots nothing by a spec of the past: the Instance was %s meanwhile', async (_what, meanwhile) => {
    world.killAgent()
    const key = { namespace: NAMESPACE, name: INSTANCE }
    await world.createInstance()
    let isListed = false
    let isMute = true
    world.startAgent({
      // The agent lists the Instance as it was, and its watch does not tell of the change.
      disturb: (serve) => async (request) => {
        if (!request.path.includes('/instances?')) return serve(request)
        const response = await serve(request)
        if (request.path.includes('watch=true')) return isMute ? { ...response, lines: () => mute() } : response
        const list = await response.text()
        if (!isListed) await meanwhile(key)
        isListed = true
        return { ...response, text: async () => list }
      },
    })
    await world.pass(20_000)
    expect([isListed, world.disks.has('boot')]).toEqual([true, true])
    expect([world.host.running(), world.ledger.get(INSTANCE)?.incarnation ?? 0]).toEqual([[], 0])
    isMute = false
    await world.pass(120_000)
    expect([world.host.running(), world.ledger.get(INSTANCE)?.incarnation ?? 0]).toEqual([[], 0])
  })

  it('knows how a guest ended also when it dies right after that guest', async () => {
    world.killAgent()
    world.startAgent({ diesWithGuest: true })
    await world.createInstance()
    await running()
    world.host.powerOffGuest(INSTANCE)
    await world.pass(5_000)
    expect(world.ledger.get(INSTANCE)).toMatchObject({ ended: { reason: 'guest_shutdown' } })
    world.startAgent()
    expect((await stopped()).status).toMatchObject({ endReason: 'guest_shutdown', incarnation: 1 })
  })

  it('reports itself again when its report was taken away or changed', async () => {
    const key = { namespace: NAMESPACE, name: NODE_REPORT_NAME }
    const report = async () => (await world.settled(world.store.get(NodeReport, key)))?.spec
    await world.until(async () => (await world.store.get(NodeReport, key)) !== undefined)
    await world.settled(world.store.delete(NodeReport, key))
    await world.pass(310_000)
    expect(await report()).toMatchObject({ bootId: 'boot', logicalCpus: 2 })
    await world.settled(world.store.patch(NodeReport, key, { spec: { logicalCpus: 64 } }))
    await world.pass(310_000)
    expect(await report()).toMatchObject({ logicalCpus: 2 })
  })

  it('reports a template that somebody has built with its next beat, and lives on when it cannot look', async () => {
    world.killAgent()
    await world.pass(1_000) // its last write may be under way
    let templates: readonly string[] | undefined = ['tiny-linux']
    world.startAgent({
      built: async () => templates ?? Promise.reject(new Error('no look')),
    })
    const reported = async () =>
      (await world.settled(world.store.get(NodeReport, { namespace: NAMESPACE, name: NODE_REPORT_NAME })))?.spec
        .templates
    await world.pass(10_000)
    expect(await reported()).toEqual(['tiny-linux'])
    templates = ['managed-machine', 'tiny-linux']
    await world.pass(10_000)
    expect(await reported()).toEqual(templates)
    templates = undefined
    const renewedAt = async () =>
      (await world.settled(world.store.get(Lease, { namespace: NAMESPACE, name: HEARTBEAT_LEASE_NAME })))?.spec
        .renewTime
    const before = await renewedAt()
    await world.pass(6_000)
    expect(await renewedAt()).not.toBe(before)
  })

  it('is not alive before it has reported itself, and stays so when a later report fails', async () => {
    world.killAgent()
    await world.pass(1_000) // its last write may be under way
    let canReport = false
    world.startAgent({ canReport: () => canReport })
    const renewedAt = async () =>
      (await world.settled(world.store.get(Lease, { namespace: NAMESPACE, name: HEARTBEAT_LEASE_NAME })))?.spec
        .renewTime
    const first = await renewedAt()
    await world.pass(30_000)
    expect(await renewedAt()).toBe(first)
    canReport = true
    await world.pass(10_000)
    canReport = false
    await world.pass(10 * 60_000) // beyond the next report
    const later = await renewedAt()
    await world.pass(6_000)
    expect(Date.parse((await renewedAt()) ?? '') - Date.parse(later ?? '')).toBeGreaterThan(0)
  })

  it('reports what is on the host, again within 30 s when it is empty', async () => {
    const status = async () =>
      (await world.settled(world.store.get(NodeReport, { namespace: NAMESPACE, name: NODE_REPORT_NAME })))?.status
    const heldAt = async () => Date.parse((await status())?.heldAt ?? '')
    await world.until(async () => Number.isFinite(await heldAt()))
    expect((await status())?.held).toEqual({ guests: 0, volumes: 0, images: 0, unclaimed: 0 })
    const first = await heldAt()
    await world.pass(30_000)
    expect(await heldAt()).toBeGreaterThan(first)
    await world.createInstance()
    await world.until(async () => (await status())?.held?.guests === 1)
    expect((await status())?.held).toEqual({ guests: 1, volumes: 1, images: 0, unclaimed: 0 })
    expect((await status())?.unclaimed).toEqual([])
  })

  it('counts a guest no more once it is removed', async () => {
    const [instance, report] = [
      { namespace: NAMESPACE, name: INSTANCE },
      { namespace: NAMESPACE, name: NODE_REPORT_NAME },
    ]
    const guests = async () => (await world.store.get(NodeReport, report))?.status?.held?.guests
    await world.createInstance()
    await world.until(async () => (await guests()) === 1)
    await world.settled(world.store.delete(Instance, instance))
    await world.until(async () => (await world.store.get(Instance, instance)) === undefined)
    expect(await world.settled(guests())).toBe(0)
  })

  it('reports itself and keeps its lease', async () => {
    await world.until(
      async () => (await world.store.get(Lease, { namespace: NAMESPACE, name: HEARTBEAT_LEASE_NAME })) !== undefined,
    )
    const renewed = async () =>
      (await world.settled(world.store.get(Lease, { namespace: NAMESPACE, name: HEARTBEAT_LEASE_NAME })))?.spec
        .renewTime ?? ''
    const first = await renewed()
    await world.pass(6_000)
    expect(Date.parse(await renewed()) - Date.parse(first)).toBe(5_000)
    expect(
      (await world.settled(world.store.get(NodeReport, { namespace: NAMESPACE, name: NODE_REPORT_NAME })))?.spec,
    ).toMatchObject({ bootId: 'boot', logicalCpus: 2 })
  })
})
