/** A disk of a guest that has arrived from another host: it is the receiver's to take, as any other. The test plays the
 *  controllers. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hasOpen } from '../../../agents/node/host.ts'
import { defined } from '../../../domain/defined.ts'
import { AGENT_FINALIZER, Instance, nodeNamespace, Volume } from '../../../resources/instance/index.ts'
import { until } from '../../eventually.ts'
import { instanceKey, KEY_SECRET, type NodeName, openTwoAgents, PRINT_COUNT, type TwoAgents } from './two-agents.ts'

const ID = 'op-1'
const COUNT = `(i=0; while :; do ${PRINT_COUNT}; i=$((i+1)); sleep 0.2; done) &\n`
const DATA = { volume: 'data', serial: 'data', slot: 1 }

let hosts: TwoAgents
beforeAll(async () => void (hosts = await openTwoAgents()))
afterAll(() => hosts.close())

const dataKey = (node: NodeName) => ({ namespace: nodeNamespace(node), name: DATA.volume })
const createData = (node: NodeName, source: { readonly source?: { readonly kind: 'mirror'; readonly name: string } }) =>
  hosts.store.create(Volume, {
    metadata: { ...dataKey(node), finalizers: [AGENT_FINALIZER] },
    spec: { storage: { namespace: 'acct-1', name: 'd', uid: 'd' }, sizeGibibytes: 1, ...source },
  })

async function moveToBeta(): Promise<void> {
  const spec = (await hosts.store.get(Instance, instanceKey('alpha')))?.spec
  const { origin } = await hosts.volumeWhen('the disk', 'alpha', ({ state }) => state === 'ready')
  if (spec === undefined || origin === undefined) throw new Error('nothing to move')
  const source = { kind: 'mirror', name: ID } as const
  await hosts.createVolume('beta', { origin, source })
  await createData('beta', { source })
  const { userDataSecretName: _name, ...metadata } = spec.metadata
  const receive = { id: ID, attempt: 1, mirroredVolumes: ['boot', 'data'], secretName: KEY_SECRET }
  await hosts.store.create(Instance, {
    metadata: { ...instanceKey('beta'), finalizers: [AGENT_FINALIZER] },
    spec: { ...spec, metadata, receive },
  })
  const { transfer } = await hosts.statusWhen('the receiver', 'beta', (status) => status.transfer?.port !== undefined)
  const { host, port, diskPort } = transfer ?? {}
  const limits = { downtimeLimitMilliseconds: 2_000, isThrottled: true, timeoutSeconds: 60, isCancelled: false }
  await hosts.store.patch(Instance, instanceKey('alpha'), {
    spec: { send: { ...receive, ...limits, host, port, ...defined({ diskPort }) } },
  })
  await hosts.statusWhen(
    'the guest',
    'beta',
    ({ state, transfer: end }) => state === 'running' && end?.phase === 'completed',
  )
  await hosts.store.patch(Instance, instanceKey('beta'), { spec: { receive: null } })
}

it('is closed by the receiver before that says that the guest has it no more', async () => {
  await hosts.boot('alpha', undefined, COUNT)
  await createData('alpha', {})
  const boot = { volume: 'boot', serial: 'boot' }
  await hosts.store.patch(Instance, instanceKey('alpha'), { spec: { disks: [boot, DATA] } })
  await hosts.statusWhen('the disk', 'alpha', ({ volumes }) => volumes?.includes('data') === true)
  await moveToBeta()
  const { volumes: arrived } = await hosts.statusWhen('the disks', 'beta', ({ volumes }) => volumes?.length === 2)
  expect(arrived).toEqual(['boot', 'data'])

  const generationOf = async () => (await hosts.store.get(Instance, instanceKey('beta')))?.metadata.generation ?? 0
  await hosts.store.patch(Instance, instanceKey('beta'), { spec: { disks: [boot] } })
  const wanted = await generationOf()
  await until(
    'the release',
    async () => (await hosts.store.get(Instance, instanceKey('beta')))?.status,
    (status) => (status?.observedGeneration ?? 0) >= wanted && status?.volumes?.includes('data') === false,
  )
  const pid = await hosts.guestPid('beta')
  expect(await hasOpen(pid, `${hosts.folder}/beta/volumes/boot.qcow2`)).toBe(true)
  expect(await hasOpen(pid, `${hosts.folder}/beta/volumes/data.qcow2`)).toBe(false)
})
