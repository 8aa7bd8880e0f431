/** Claims and snapshots of a real control plane, whose add-on is the driver with what the Kubernetes project has for
 *  drivers, as its host runs them: with the rights that they need and no more, and a token of the cluster, by which
 *  they call the running product. Of a node there are its objects only. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient, unwrap } from '../../../client/index.ts'
import { createClusterToken } from '../../../db/kubernetes-cluster/index.ts'
import { openDatabase } from '../../../db/kit/open.ts'
import { findAddons } from '../../../hosting/processes/addon-table.ts'
import { findKubernetes } from '../../../hosting/processes/programs.ts'
import { ADDON_SCOPES } from '../../../integrations/control-planes/addons.ts'
import { newBase62, newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { formatClusterToken } from '../../../kit/sys/token-format.ts'
import { Customer } from '../../e2e/customer.ts'
import { clearAway, newFolder, Product } from '../../e2e/product.ts'
import {
  adminOf,
  type Hosted,
  type KubeClient,
  newDesired,
  openHosted,
  untilState,
} from '../../hosting/processes/hosted.ts'
import { eventually, until } from '../../eventually.ts'
import { addNode, reportReady, STORAGE } from './kube-objects.ts'

const ZONE = 'eu-1a'
const NODE = 'worker'
const CLUSTER = 'claims'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots'
/** They take long to be built, and control planes too. */
const known = (await findAddons()).filter(({ name }) => name === 'csi-driver')
const isAllBuilt = (await findKubernetes()) !== undefined && known.length > 0

let data: string
let product: Product
let hosted: Hosted
let planeId: string
let admin: KubeClient
let client: ReturnType<typeof createClient>
let serverId: string

async function begin(): Promise<void> {
  data = await newFolder()
  product = await Product.start({
    data,
    flags: ['--hypervisor', 'simulated', '--nodes', `${ZONE}=1`],
    warnings: [],
  })
  const customer = await Customer.signUp(() => product, 'claims@example.com')
  await customer.addSshKey()
  const { server, operation } = await customer.createServer({
    zone: ZONE,
    hostname: NODE,
    plan: 'tiny',
    template: 'tiny-linux',
  })
  await customer.finished(operation.id)
  serverId = server.id
  client = createClient({ url: product.endpoints.api_url, token: customer.token })
  hosted = await openHosted({ addons: { apiUrl: product.endpoints.api_url, known } })
  const desired = newDesired()
  planeId = desired.id
  await hosted.host.ensure(desired)
  admin = await adminOf(hosted, planeId)
  const tokenId = newUuid(systemRandom)
  const token = await makeToken(tokenId)
  await hosted.host.grant(planeId, 'csi-driver', { tokenId, token, clusterId: CLUSTER, zone: ZONE })
  await untilState(hosted, planeId, ({ addons }) => addons.some(({ name }) => name === 'csi-driver'))
  await addNode(admin, NODE, serverId, ZONE)
}

/** As the controllers make it. Servers are simulated here, which have no network that a cluster could be in: it has a
 *  claim only. */
async function makeToken(id: string): Promise<string> {
  const db = openDatabase({ url: product.endpoints.postgres_url, connectionsMaximum: 1 })
  try {
    const { id: accountId } = await db.selectFrom('account').select('id').executeTakeFirstOrThrow()
    await db
      .insertInto('kubernetes_cluster')
      .values({
        account_id: accountId,
        id: CLUSTER,
        zone: ZONE,
        region: 'eu-1',
        name: CLUSTER,
        network_id: 'none',
        control_plane_id: planeId,
        release: '1.36.3',
        replicas: 1,
        pod_cidr: '10.244.0.0/16',
        service_cidr: '10.96.0.0/16',
      })
      .execute()
    const token = formatClusterToken(newBase62(systemRandom, 40))
    const now = new Date()
    const made = { id, program: 'csi-driver', token, scopes: ADDON_SCOPES['csi-driver'], createdAt: now }
    const expiresAt = new Date(now.getTime() + 3_600_000)
    await createClusterToken(db, { accountId, clusterId: CLUSTER }, { ...made, expiresAt })
    return token
  } finally {
    await db.destroy()
  }
}

async function end(): Promise<void> {
  await hosted?.end()
  await clearAway(product, data)
}

interface Claim {
  readonly status?: { readonly phase?: string; readonly capacity?: { readonly storage?: string } }
  readonly spec: { readonly volumeName?: string }
}

const claimOf = (name: string, gibibytes: number, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: `${gibibytes}Gi` } },
    ...more,
  },
})

const readClaim = async () => (await admin.send('GET', `${CLAIMS}/data`)).body as unknown as Claim
const storages = async () =>
  (await unwrap(client.GET('/v1/storages', { params: { query: { label: [`kubernetes-cluster=${CLUSTER}`] } } }))).items

const snapshots = async () => (await unwrap(client.GET('/v1/snapshots'))).items

async function createPod(name: string, claimName = 'data'): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
    },
  }
  await eventually('the service account of the namespace', async () => {
    await reportReady(admin, NODE)
    return (await admin.send('POST', PODS, pod)).status === 201
  })
}

/** As often as the platform lets people ask. With the last words of the add-on when it does not come. */
const came = async <Value>(what: string, look: () => Promise<Value>, isGood: (value: Value) => boolean) => {
  const slowly = async () => {
    await sleep(500)
    return look()
  }
  try {
    return await until(what, slowly, isGood)
  } catch (error) {
    const names = known.flatMap(({ programs }) => programs.map(({ name }) => name))
    const logs = names.map((name) => readFile(join(hosted.folder, planeId, `${name}.log`), 'utf8').catch(() => ''))
    throw new Error((await Promise.all(logs)).map((log) => log.slice(-2_000)).join('\n'), { cause: error })
  }
}

describe.runIf(isAllBuilt)('claims', () => {
  beforeAll(begin, 300_000)
  afterAll(end, 120_000)
  test('a claim becomes a storage, which outlives its pod, grows, and goes with the claim', async () => {
    expect((await admin.send('POST', CLAIMS, claimOf('data', 1))).status).toBe(201)
    await createPod('first')
    await came('the claim to be bound', readClaim, ({ status }) => status?.phase === 'Bound')
    const [made] = await came(
      'the storage to be attached',
      storages,
      ([storage]) => storage?.server_id === serverId && storage.active_operation === null,
    )
    expect(made).toMatchObject({ title: 'default/data', zone: ZONE, size_gibibytes: 1, tier: 'standard' })
    const { spec } = await readClaim()
    const volume = (await admin.send('GET', `/api/v1/persistentvolumes/${spec.volumeName}`)).body
    expect(volume['spec']).toMatchObject({
      csi: { driver: 'csi.svccloud.dev', volumeHandle: made?.id, fsType: 'ext4' },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'topology.kubernetes.io/zone', values: [ZONE] }] }],
        },
      },
    })
    const attachment = async () => {
      const { items } = (await admin.send('GET', `${STORAGE}/volumeattachments`)).body as {
        items: { status?: { attached: boolean; attachmentMetadata?: Record<string, string> } }[]
      }
      return items[0]?.status
    }
    expect(await came('the attachment', attachment, (status) => status?.attached === true)).toMatchObject({
      attachmentMetadata: { serial: made?.serial },
    })

    const larger = { spec: { resources: { requests: { storage: '2Gi' } } } }
    await admin.send('PATCH', `${CLAIMS}/data`, larger, 'application/merge-patch+json')
    await came('the storage to grow', storages, ([storage]) => storage?.size_gibibytes === 2)

    await admin.send('DELETE', `${PODS}/first`)
    await came('the storage to be detached', storages, ([storage]) => storage?.server_id === null)
    await createPod('second')
    await came('the storage to be attached again', storages, ([storage]) => storage?.server_id === serverId)
    expect((await storages())[0]?.id).toBe(made?.id)

    await admin.send('DELETE', `${PODS}/second`)
    await admin.send('DELETE', `${CLAIMS}/data`)
    await came('the storage to go with its claim', storages, ({ length }) => length === 0)
  }, 600_000)

  test('a snapshot becomes one of the storage, and claims that are made of it a storage with its data', async () => {
    await admin.send('POST', CLAIMS, claimOf('data', 1))
    await createPod('writer')
    const [source] = await came(
      'the storage to be attached',
      storages,
      ([storage]) => storage?.server_id === serverId && storage.active_operation === null,
    )
    const snapshot = {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name: 'kept' },
      spec: { source: { persistentVolumeClaimName: 'data' } },
    }
    expect((await admin.send('POST', SNAPSHOTS, snapshot)).status).toBe(201)
    const readStatus = async () => (await admin.send('GET', `${SNAPSHOTS}/kept`)).body['status']
    const isReady = (status: unknown) => Object.entries(status ?? {}).some(([key, is]) => key === 'readyToUse' && is)
    expect(await came('the snapshot to be ready', readStatus, isReady)).toMatchObject({ restoreSize: '1Gi' })
    const [taken] = await snapshots()
    expect(taken).toMatchObject({
      title: 'default/kept',
      storage_id: source?.id,
      labels: { 'kubernetes-cluster': CLUSTER },
    })

    const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'kept' }
    await admin.send('POST', CLAIMS, claimOf('copy', 1, { dataSource }))
    await createPod('reader', 'copy')
    const copies = async () => (await storages()).filter(({ title }) => title === 'default/copy')
    const [copy] = await came('the copy to be attached', copies, ([storage]) => storage?.server_id === serverId)
    expect(copy?.source).toMatchObject({ kind: 'snapshot', id: taken?.id })

    // A claim may go before its snapshots: its storage follows the last of them.
    for (const name of ['writer', 'reader']) await admin.send('DELETE', `${PODS}/${name}`)
    for (const name of ['data', 'copy']) await admin.send('DELETE', `${CLAIMS}/${name}`)
    await came('the copy to go', storages, (all) => all.length === 1 && all[0]?.server_id === null)
    expect((await snapshots()).map(({ id }) => id)).toEqual([taken?.id])
    await admin.send('DELETE', `${SNAPSHOTS}/kept`)
    await came('the snapshot to go', snapshots, ({ length }) => length === 0)
    await came('its storage to go too', storages, ({ length }) => length === 0)
  }, 600_000)
})
