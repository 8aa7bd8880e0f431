/** A disk that two hosts reach has one writer, whatever Kubernetes says of it. */
import { beforeEach, describe, expect, it } from 'vitest'
import { AGENT_FINALIZER, Instance, Volume, type VolumeSpec } from '../../../resources/instance/index.ts'
import { INSTANCE, NAMESPACE, NODE, openAgentWorld, POOL, type AgentWorld } from './agent-world.ts'
import { instanceSpec } from './instance-spec.ts'

const BETA = { node: 'beta', bootId: 'boot of beta' }

describe('a disk of shared storage', () => {
  let world: AgentWorld
  const key = { namespace: NAMESPACE, name: 'boot' }
  const owner = () => world.shared.owners.get('boot')
  const createVolume = (spec: Partial<VolumeSpec> = {}) =>
    world.settled(
      world.store.create(Volume, {
        metadata: { ...key, finalizers: [AGENT_FINALIZER] },
        spec: { storage: { namespace: 'acct-1', name: 's', uid: 's' }, sizeGibibytes: 1, pool: POOL, ...spec },
      }),
    )
  const createInstance = () =>
    world.settled(
      world.store.create(Instance, {
        metadata: { namespace: NAMESPACE, name: INSTANCE, finalizers: [AGENT_FINALIZER] },
        spec: instanceSpec({ power: 'running', incarnation: 1 }),
      }),
    )
  /** As another host has made it, whose guest writes to it. */
  const lieWith = (node: typeof BETA) => {
    world.shared.pools.get(POOL)?.set('boot', { name: 'boot', sizeGibibytes: 1 })
    world.shared.owners.set('boot', node)
  }
  const stop = async () => {
    await world.change({ power: 'stopped', stop: { id: 's', type: 'hard', timeoutSeconds: 1, timeoutAction: 'hard' } })
    await world.instanceWhen(({ status }) => status?.state === 'stopped')
  }

  beforeEach(async () => {
    world = await openAgentWorld()
    world.startAgent()
  })

  it('is noted as that of the host before its guest starts, and given back when no guest has it', async () => {
    await createVolume()
    await createInstance()
    await world.instanceWhen(({ status }) => status?.state === 'running')
    expect(owner()).toEqual({ node: NODE, bootId: 'boot' })
    await stop()
    expect(owner()).toBeUndefined()
  })

  it('of another host gets no second writer, and is not removed from under the first', async () => {
    lieWith(BETA)
    await createVolume()
    await createInstance()
    const { status } = await world.instanceWhen((instance) => instance.status?.detail?.includes('host beta') === true)
    expect([status?.state, world.host.running(), owner()]).toEqual(['waiting', [], BETA])
    await stop()
    await world.settled(world.store.delete(Volume, key))
    await world.pass(60_000)
    expect([world.shared.pools.get(POOL)?.has('boot'), owner()]).toEqual([true, BETA])
    world.shared.owners.delete('boot') // beta releases it
    await world.until(async () => (await world.store.get(Volume, key)) === undefined)
    expect(world.shared.pools.get(POOL)?.has('boot')).toBe(false)
  })

  it('is taken over from a host that was lost, and not from a later boot of it', async () => {
    lieWith(BETA)
    await createVolume({ takesOverFrom: [{ node: 'beta', bootId: 'the boot before' }] })
    await createInstance()
    await world.instanceWhen(({ status }) => status?.detail?.includes('host beta') === true)
    await world.settled(world.store.patch(Volume, key, { spec: { takesOverFrom: [BETA] } }))
    await world.instanceWhen(({ status }) => status?.state === 'running')
    expect(owner()).toEqual({ node: NODE, bootId: 'boot' })
  })

  it('of another installation stays, and nothing of it is written', async () => {
    lieWith(BETA)
    world.shared.pools.get(POOL)?.set('theirs', { name: 'theirs', sizeGibibytes: 1 })
    const before = structuredClone([...(world.shared.pools.get(POOL) ?? [])])
    await world.pass(60 * 60_000)
    world.killAgent()
    world.startAgent()
    await world.pass(60 * 60_000)
    expect([[...(world.shared.pools.get(POOL) ?? [])], owner()]).toEqual([before, BETA])
    expect(world.shared.owners.has('theirs')).toBe(false)
  })

  it('is taken from an earlier boot of a host of the same name, which is one host', async () => {
    lieWith({ node: NODE, bootId: 'the boot before' })
    await createVolume()
    await createInstance()
    await world.instanceWhen(({ status }) => status?.state === 'running')
    expect(owner()).toEqual({ node: NODE, bootId: 'boot' })
  })

  it('is noted for a guest of an earlier release, and given back by the next agent when one was killed', async () => {
    await createVolume()
    await createInstance()
    await world.instanceWhen(({ status }) => status?.state === 'running')
    world.killAgent()
    world.shared.owners.clear()
    world.startAgent()
    await world.until(async () => owner()?.node === NODE)
    await stop()
    world.killAgent()
    world.shared.owners.set('boot', { node: NODE, bootId: 'the boot before' })
    world.startAgent()
    await world.until(async () => owner() === undefined)
  })
})
