/** What a host delivers to the guest of a managed machine, under virtual time, with a simulated guest that answers. */
import { beforeEach, expect, it } from 'vitest'
import { restAfter } from '../../../agents/node/managed-machine/plan.ts'
import { Secret } from '../../../kit/kube/object.ts'
import { AGENT_FINALIZER } from '../../../resources/instance/index.ts'
import {
  MACHINE_DOCUMENT_KEY,
  ManagedMachine,
  type ManagedMachineStatus,
  reportOf,
} from '../../../resources/managed-machine/index.ts'
import { type AgentWorld, INSTANCE, NAMESPACE, openAgentWorld } from './agent-world.ts'

const KEY = { namespace: NAMESPACE, name: INSTANCE }
const SECRET = 'machine-secret'
const SERVER = { namespace: 'acct-1', name: 'machine-1', uid: INSTANCE }

let world: AgentWorld
beforeEach(async () => {
  world = await openAgentWorld()
  world.startAgent()
  await world.createInstance()
  await world.instanceWhen(({ status }) => status?.state === 'running')
})

const id = (generation: number) => ({ generation, fingerprint: `f${generation}` })

async function writeDocument(generation: number, machine = INSTANCE, sections: object = {}): Promise<void> {
  const bastion = { authorizedKeys: [`key ${generation}`] }
  const text = JSON.stringify({ machine, ...id(generation), bastion, ...sections })
  const data = { [MACHINE_DOCUMENT_KEY]: Buffer.from(text).toString('base64') }
  await world.settled(world.store.apply(Secret, { metadata: { ...KEY, name: SECRET }, spec: undefined, data }))
}

async function deliver(generation: number): Promise<void> {
  const configuration = { ...id(generation), secretName: SECRET }
  const metadata = { ...KEY, finalizers: [AGENT_FINALIZER] }
  const spec = { server: SERVER, managedBy: 'edge:e', configuration }
  await world.settled(world.store.apply(ManagedMachine, { metadata, spec }))
}

async function statusWhen(isWanted: (status: ManagedMachineStatus) => boolean): Promise<ManagedMachineStatus> {
  let found: ManagedMachineStatus | undefined
  await world.until(async () => {
    found = (await world.store.get(ManagedMachine, KEY))?.status
    return found !== undefined && isWanted(found)
  })
  return found ?? expect.fail('there is no status')
}
const running = (generation: number) =>
  statusWhen((status) => status.running?.generation === generation && status.isHealthy)

it('brings a configuration to the guest and says which one it runs, also after a restart of the agent', async () => {
  await writeDocument(1)
  await deliver(1)
  expect(await running(1)).toMatchObject({ running: id(1), detail: '' })
  world.killAgent()
  await writeDocument(2)
  await deliver(2)
  world.startAgent()
  expect(await running(2)).toMatchObject({ running: id(2) })
})

it('says at once which password a database has taken, for which somebody waits', async () => {
  const postgresql = {
    diskSerial: 'disk',
    database: 'shop',
    owner: 'ada',
    passwordVerifier: 'v',
    certificate: 'c',
    key: 'k',
    networks: [],
    settings: {},
  }
  for (const passwordGeneration of [1, 2]) {
    await writeDocument(passwordGeneration, INSTANCE, { postgresql: { ...postgresql, passwordGeneration } })
    await deliver(passwordGeneration)
    const { report } = await running(passwordGeneration)
    expect(reportOf(report)?.postgresql).toMatchObject({ passwordGeneration })
  }
})

it('delivers nothing that is of another machine or of another generation than was asked for', async () => {
  await writeDocument(1)
  await deliver(1)
  await running(1)
  await writeDocument(2, 'another-machine')
  await deliver(2)
  await world.pass(120_000)
  expect((await world.settled(world.store.get(ManagedMachine, KEY)))?.status?.running).toEqual(id(1))
  await writeDocument(3)
  await world.pass(120_000)
  expect((await world.settled(world.store.get(ManagedMachine, KEY)))?.status?.running).toEqual(id(1))
  await deliver(3)
  expect(await running(3)).toMatchObject({ running: id(3) })
})

it('hands the document of another machine to nobody, not even to a guest that has none yet', async () => {
  await writeDocument(1, 'another-machine')
  await deliver(1)
  await world.pass(120_000)
  expect((await world.settled(world.store.get(ManagedMachine, KEY)))?.status?.running).toBeUndefined()
  await writeDocument(1)
  expect(await running(1)).toMatchObject({ running: id(1) })
})

it('takes no report of another machine for one of this', async () => {
  await writeDocument(1)
  await deliver(1)
  const before = await running(1)
  world.killAgent()
  const report = { services: {}, postgresql: { state: 'running', passwordGeneration: 9 } }
  world.startAgent({
    retell: (answer) => Buffer.from(JSON.stringify({ ...JSON.parse(answer.toString()), machine: 'another', report })),
  })
  const after = await statusWhen(({ isHealthy }) => !isHealthy)
  expect([after.running, after.report, after.reportedAt]).toEqual([undefined, before.report, before.reportedAt])
})

it('keeps asking a guest that answers differently each time', async () => {
  await writeDocument(1)
  await deliver(1)
  await running(1)
  world.killAgent()
  let answers = 0
  world.startAgent({
    retell: (answer) => Buffer.from(JSON.stringify({ ...JSON.parse(answer.toString()), detail: `look ${++answers}` })),
  })
  await statusWhen(({ detail }) => detail === 'look 25')
})

it('distinguishes a guest that no longer answers from one that is silent for a moment', async () => {
  await writeDocument(1)
  await deliver(1)
  await running(1)
  world.host.hangGuest(INSTANCE)
  expect(await statusWhen(({ isHealthy }) => !isHealthy)).toMatchObject({
    running: id(1),
    detail: expect.stringContaining('does not answer'),
  })
})

it('says that a guest is not here, and lets the object go', async () => {
  await writeDocument(1)
  await deliver(1)
  await running(1)
  world.host.powerOffGuest(INSTANCE)
  await statusWhen(({ isHealthy, detail }) => !isHealthy && detail.includes('does not run on this host'))
  await world.settled(world.store.delete(ManagedMachine, KEY))
  await world.until(async () => {
    const object = await world.store.get(ManagedMachine, KEY)
    return object === undefined || object.status?.isRemoved === true
  })
})

it.each([
  [0.2, false, 2],
  [2, false, 6],
  [30, false, 10],
  [0.2, true, 10],
])('after an answer that took %d s, healthy %s, it is asked again in %d s', (seconds, isHealthy, rest) => {
  expect(restAfter(seconds, isHealthy)).toBe(rest)
})
