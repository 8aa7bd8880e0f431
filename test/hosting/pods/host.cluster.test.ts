/** Control planes in pods of a host cluster whose kubelets are played: what is applied, again and again, and what is
 *  left of it. What runs in such pods is in the tier of pods. */
import { createServer, type Server } from 'node:https'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  Deployment,
  HostNode,
  Namespace,
  NetworkPolicy,
  Pod,
  PodDisruptionBudget,
  ResourceQuota,
  RoleBinding,
  Secret,
  Service,
  StatefulSet,
} from '../../../hosting/pods/kinds.ts'
import { namespaceOf, PART_LABEL, PORTS, READER } from '../../../hosting/pods/names.ts'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { newDesired } from '../processes/hosted.ts'
import { type HostClusterForTests, openHostCluster, READER_ADDRESS, RIGHTS } from './host-cluster.ts'
import { hostSettings } from './settings.ts'

const KINDS = [Secret, Service, NetworkPolicy, PodDisruptionBudget, ResourceQuota, StatefulSet, Deployment]
const GIBIBYTE = 1024 ** 3
let cluster: HostClusterForTests
const desired = newDesired({ replicas: 3, release: '1.35.4' })
const namespace = namespaceOf(desired.id)

beforeAll(async () => {
  cluster = await openHostCluster()
  const status = { allocatable: { memory: '6Gi' }, conditions: [{ type: 'Ready', status: 'True' }] }
  await cluster.store.create(HostNode, { metadata: { name: 'host-1' }, spec: {} })
  await cluster.store.patch(HostNode, { name: 'host-1' }, { status }, 'status')
})
afterAll(() => cluster.end())

const untilState = (isGood: (state: ControlPlaneState) => boolean) =>
  until(
    'the control plane to be as expected',
    () => cluster.host.get(desired.id),
    (state) => state !== undefined && isGood(state),
  )

/** All that is applied, without what others say of it. */
async function everything() {
  const lists = KINDS.map(async (type) => {
    const { items } = await cluster.store.list(type, { namespace })
    return items
      .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/managed-by'] === 'svccloud')
      .map(({ metadata: { name, generation, labels }, spec, data }) => [
        type.kind,
        name,
        { generation, labels, spec, data },
      ])
  })
  return (await Promise.all(lists)).flat()
}

const podsOf = async (part: string) =>
  (await cluster.store.list(Pod, { namespace, labelSelector: `${PART_LABEL}=${part}` })).items
const imagesOf = async (part: string) => {
  // as every pod has it
  const specs = (await podsOf(part)).map(
    ({ spec }) => spec as { readonly containers: readonly { readonly image: string }[] },
  )
  return new Set(specs.flatMap(({ containers }) => containers.map(({ image }) => image.split(':').at(-1))))
}

test('a control plane gets a namespace with all of its parts, and is reached by ports of nodes', async () => {
  const offer = await cluster.host.offer()
  expect(offer).toMatchObject({ driver: 'pods', releases: ['1.35.4', '1.36.3'], nodeCount: 1 })
  // No more than the nodes have, whatever is reserved.
  expect(offer.memoryBytes).toBeLessThan(6 * GIBIBYTE)
  await cluster.host.ensure(desired)
  const state = await untilState(
    ({ apiServersReady, etcdMembersReady }) => apiServersReady === 3 && etcdMembersReady === 3,
  )
  expect(state).toMatchObject({ phase: 'starting', hasEtcdQuorum: true, etcdMembersTotal: 3 })
  const service = await cluster.store.get(Service, { namespace, name: 'kube-apiserver' })
  const portOf = (wanted: string) => service?.spec.ports?.find(({ name }) => name === wanted)?.nodePort
  expect(state?.endpoint).toBe(`https://192.0.2.1:${portOf('api')}`)
  expect(state?.forNodes).toMatchObject({ tunnel: { host: '192.0.2.1', port: portOf('tunnel') } })
  await until(
    'the controllers',
    async () => [...(await podsOf('kube-controller-manager')), ...(await podsOf('kube-scheduler'))],
    (pods) => pods.length === 4,
  )
  const { status } = (await cluster.store.get(ResourceQuota, { namespace, name: 'bounds' })) ?? {}
  expect(JSON.stringify(status)).toContain('requests.memory')
})

test('what is applied again changes nothing, what others added stays, and what they changed does not', async () => {
  const before = await everything()
  expect(before.length).toBeGreaterThan(15)
  const key = { namespace, name: 'etcd' }
  const other = cluster.storeAs(await cluster.adminToken(), 'somebody')
  await other.patch(StatefulSet, key, { metadata: { annotations: { team: 'blue' } } })
  await other.patch(NetworkPolicy, { namespace, name: 'closed' }, { spec: { policyTypes: ['Ingress'] } })
  await cluster.reopen()
  await until(
    'the change to be taken back',
    () => cluster.store.get(NetworkPolicy, { namespace, name: 'closed' }),
    (policy) => JSON.stringify(policy?.spec).includes('Egress'),
  )
  await untilState(({ observedAt, apiServersReady }) => observedAt !== '' && apiServersReady === 3)
  const withoutPolicy = (all: Awaited<ReturnType<typeof everything>>) => all.filter(([, name]) => name !== 'closed')
  expect(withoutPolicy(await everything())).toEqual(withoutPolicy(before))
  expect((await cluster.store.get(StatefulSet, key))?.metadata.annotations).toMatchObject({ team: 'blue' })
})

test('an upgrade has all API servers first, and then the rest', async () => {
  await cluster.host.ensure({ ...desired, release: '1.36.3' })
  const seen: string[] = []
  await until(
    'the upgrade',
    async () => {
      const [managers, servers] = [await imagesOf('kube-controller-manager'), await imagesOf('kube-apiserver')]
      seen.push(`${[...servers].toSorted()} ${[...managers].toSorted()}`)
      return [...managers]
    },
    (managers) => managers.length === 1 && managers[0] === 'v1.36.3',
  )
  expect(seen.join('; ')).toContain('v1.35.4,v1.36.3 v1.35.4')
  // Never a controller that is newer than an API server.
  expect(seen.filter((each) => /v1\.35\.4.* .*v1\.36\.3/.test(each))).toEqual([])
  await expect(cluster.host.ensure(desired)).rejects.toThrow('older minor')
})

test('memory and storage are reserved: what has no room is refused', async () => {
  const offer = await cluster.host.offer()
  expect(offer.reservedBytes).toBe(offer.bytesOfThree)
  expect(offer.etcdBytes).toBe(5 * GIBIBYTE)
  const rights = RIGHTS
  await cluster.reopen({ settings: hostSettings({ rights, memoryMebibytes: 2_900 }) })
  await expect(cluster.host.ensure(newDesired())).rejects.toThrow('no memory left')
  await cluster.reopen({
    settings: hostSettings({ rights, storage: { mebibytes: 3_072, mebibytesOfOne: 1_024, className: 'fast' } }),
  })
  await expect(cluster.host.ensure(newDesired())).rejects.toThrow('no storage left')
  const guest = {
    name: 'play',
    endsAt: new Date().toISOString(),
    vcpus: 1,
    memoryMebibytes: 1,
    storageGibibytes: 0,
    pods: 1,
    volumes: 0,
  }
  await expect(cluster.host.ensure(newDesired({ guest }))).rejects.toThrow('no guests')
  await cluster.reopen()
})

interface Asked {
  readonly id: number
  readonly task: string
}

/** A reader in the place of the one in the pod, with what its Secret has. */
async function playReader(answer: (asked: Asked) => object): Promise<Server> {
  // of a Secret
  const { data = {} } = (await cluster.store.get(Secret, { namespace, name: READER })) as unknown as {
    readonly data?: Readonly<Record<string, string>>
  }
  const file = (name: string) => Buffer.from(data[name] ?? '', 'base64')
  const tls = { cert: file('reader.crt'), key: file('reader.key'), ca: file('reader-ca.crt') }
  const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: true }, (request, response) => {
    void text(request).then((question) => response.end(JSON.stringify(answer(JSON.parse(question)))))
  })
  await new Promise<void>((resolve) => server.listen(PORTS.reader, READER_ADDRESS, resolve))
  return server
}
function endReader(server: Server): void {
  server.closeAllConnections()
  server.close()
}
const readersOf = async () => {
  // of a Deployment
  const { spec } = (await cluster.store.get(Deployment, { namespace, name: READER })) as unknown as {
    readonly spec: {
      readonly template: { readonly metadata: { readonly annotations: Readonly<Record<string, string>> } }
    }
  }
  return Number(spec.template.metadata.annotations['svccloud.dev/readers'])
}

test('a reader that answers what nobody asked is replaced, and one that only fails is not', async () => {
  expect(await readersOf()).toBe(0)
  const lies: string[] = []
  const liar = await playReader(({ task }) => {
    lies.push(task)
    return { id: 7_777 }
  })
  const before = (await podsOf(READER)).map(({ metadata }) => metadata.uid)
  await until('its Deployment to be another one', readersOf, (readers) => readers > 0)
  endReader(liar)
  expect(lies).toContain('prepare')
  await until(
    'another pod',
    () => podsOf(READER),
    (pods) => pods.length === 1 && !before.includes(pods[0]?.metadata.uid),
  )
  const known = await readersOf()
  const asked: string[] = []
  const good = await playReader(({ id, task }) => {
    asked.push(task)
    if (task === 'removeNode') return { id, failure: { detail: 'the API server does not answer' } }
    return { id, value: task === 'nodes' ? [] : undefined }
  })
  await untilState(({ phase }) => phase === 'running')
  expect(await cluster.host.nodes(desired.id)).toEqual([])
  await expect(cluster.host.removeNode(desired.id, 'node-1')).rejects.toThrow('does not answer')
  expect(asked).toEqual(expect.arrayContaining(['prepare', 'nodes', 'removeNode']))
  endReader(good)
  // One that is not there tells no lie.
  await expect(cluster.host.nodes(desired.id)).rejects.toThrow()
  expect(await readersOf()).toBe(known)
})

test('the host process reads no Secret of anybody else, and writes in namespaces of control planes only', async () => {
  const { asHost, store } = cluster
  const secret = { metadata: { namespace: 'default', name: 'secret' }, spec: undefined }
  await store.create(Secret, secret)
  await expect(asHost.get(Secret, { namespace: 'default', name: 'secret' })).rejects.toThrow('forbidden')
  expect(await asHost.get(Secret, { namespace, name: 'etcd' })).toBeDefined()
  // Rights would let it, but for the policy.
  const binding = (at: string) => ({
    metadata: { namespace: at, name: 'mine' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: RIGHTS.clusterRole },
    subjects: [{ kind: 'ServiceAccount', name: RIGHTS.serviceAccount, namespace: RIGHTS.namespace }],
    spec: undefined,
  })
  await expect(asHost.apply(RoleBinding, binding('default'))).rejects.toThrow('in their namespaces only')
  await expect(asHost.apply(Namespace, { metadata: { name: 'mine' }, spec: {} })).rejects.toThrow('namespaces only')
  await store.create(Namespace, { metadata: { name: 'other' }, spec: {} })
  await expect(asHost.delete(Namespace, { name: 'other' })).rejects.toThrow('namespaces only')
})

test('nothing is left of one that is removed, and nothing is removed that is not its own', async () => {
  const other = newUuid(systemRandom)
  expect(await cluster.host.remove(other)).toBe(true)
  await until(
    'it to be gone',
    () => cluster.host.remove(desired.id),
    (isGone) => isGone,
  )
  expect(await cluster.host.get(desired.id)).toBeUndefined()
  expect(await cluster.store.get(Namespace, { name: namespace })).toBeUndefined()
  expect(await everything()).toEqual([])
  expect((await cluster.store.list(Pod, { namespace })).items).toEqual([])
  const offer = await cluster.host.offer()
  expect(offer).toMatchObject({ reservedBytes: 0, etcdBytes: 8 * GIBIBYTE })
  expect((await cluster.store.list(Namespace)).items.map(({ metadata }) => metadata.name)).toContain('default')
})
