/** A guest whose Instance is missing gets no metadata, and nothing of it ends by that. */
import { expect, it } from 'vitest'
import type { Transport } from '../../../kit/kube/transport.ts'
import { Instance } from '../../../resources/instance/index.ts'
import { INSTANCE, NAMESPACE, openAgentWorld } from './agent-world.ts'

const key = { namespace: NAMESPACE, name: INSTANCE }

async function openRunning() {
  const world = await openAgentWorld()
  let isSilent = false
  const disturb =
    (transport: Transport): Transport =>
    (request) =>
      isSilent ? Promise.reject(new Error('Kubernetes is away')) : transport(request)
  const agent = world.startAgent({ disturb })
  await world.createInstance({ power: 'running', incarnation: 1 })
  await world.instanceWhen(({ status }) => status?.state === 'running')
  expect(agent.metadataOf(INSTANCE)?.document.hostname).toBeDefined()
  return { world, agent, silence: () => void (isSilent = true) }
}

it('says what it last had while Kubernetes is away', async () => {
  const { world, agent, silence } = await openRunning()
  const before = agent.metadataOf(INSTANCE)?.document
  silence()
  await world.pass(60 * 60_000)
  expect(agent.metadataOf(INSTANCE)?.document).toEqual(before)
})

it('says nothing without the Instance, and guest and disk stay', async () => {
  const { world, agent } = await openRunning()
  const disks = [...world.disks.keys()]
  await world.settled(world.store.patch(Instance, key, { metadata: { finalizers: null } }))
  await world.settled(world.store.delete(Instance, key))
  await world.until(async () => agent.metadataOf(INSTANCE) === undefined)
  await world.pass(60 * 60_000)
  expect(agent.metadataOf(INSTANCE)).toBeUndefined()
  expect(world.host.running()).toHaveLength(1)
  expect([...world.disks.keys()]).toEqual(disks)
})
