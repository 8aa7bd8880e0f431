/** Claims of a real control plane: the upstream provisioner, attacher and resizer, with the rights that they need and
 *  no more, call the driver, and the driver the running product. Of a node there are its objects only. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createClient, unwrap } from '../../../client/index.ts'
import { findKubernetes } from '../../../embedded/control-planes/programs.ts'
import { isBuilt, type Tool, toolPath } from '../../../tools/cluster/build.ts'
import { Customer } from '../../e2e/customer.ts'
import { clearAway, newFolder, Product } from '../../e2e/product.ts'
import { adminOf, type Hosted, type KubeClient, newDesired, openHosted } from '../../embedded/control-planes/hosted.ts'
import { eventually, until } from '../../eventually.ts'
import { type Driver, startDriver } from './driver.ts'
import { addNode, installDriver, reportReady, STORAGE } from './kube-objects.ts'

const ZONE = 'eu-1a'
const NODE = 'worker'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const SIDECARS: readonly Tool[] = ['csi-provisioner', 'csi-attacher', 'csi-resizer']
/** They take long to be built, and control planes too. */
const isAllBuilt =
  (await findKubernetes()) !== undefined && (await Promise.all(SIDECARS.map(isBuilt))).every((is) => is)

let data: string
let product: Product
let hosted: Hosted
let admin: KubeClient
let client: ReturnType<typeof createClient>
let serverId: string
let driver: Driver
const sidecars: ChildProcess[] = []
let said = ''

async function begin(): Promise<void> {
  data = await newFolder()
  product = await Product.start({ data, flags: ['--hypervisor', 'simulated', '--nodes', `${ZONE}=1`] })
  const customer = await Customer.signUp(() => product, 'claims@example.com')
  await customer.addSshKey()
  const { server, operation } = await customer.createServer({
    ...{ zone: ZONE, hostname: NODE, plan: 'tiny', template: 'tiny-linux' },
  })
  await customer.finished(operation.id)
  serverId = server.id
  client = createClient({ url: product.endpoints.api_url, token: customer.token })
  const folder = join(data, 'csi')
  await mkdir(folder, { mode: 0o700 })
  await writeFile(join(folder, 'token'), customer.token, { mode: 0o600 })
  driver = await startDriver('controller', folder, {
    SVCCLOUD_URL: product.endpoints.api_url,
    SVCCLOUD_TOKEN_FILE: join(folder, 'token'),
    ...{ SVCCLOUD_CLUSTER_ID: 'claims', SVCCLOUD_ZONE: ZONE },
  })
  hosted = await openHosted()
  const desired = newDesired()
  const { id } = desired
  await hosted.host.ensure(desired)
  admin = await adminOf(hosted, id)
  const token = await installDriver(admin)
  await addNode(admin, NODE, serverId, ZONE)
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, await kubeconfigOf(id, token), { mode: 0o600 })
  for (const name of SIDECARS) startSidecar(name, kubeconfig)
}

async function end(): Promise<void> {
  for (const child of sidecars) child.kill('SIGKILL')
  await driver?.stop()
  await hosted?.end()
  await clearAway(product, data)
}

async function kubeconfigOf(id: string, token: string): Promise<string> {
  const state = await hosted.host.get(id)
  const authority = Buffer.from(state?.certificateAuthority ?? '').toString('base64')
  return JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'own' },
    clusters: [{ name: 'own', cluster: { server: state?.endpoint, 'certificate-authority-data': authority } }],
    users: [{ name: 'own', user: { token } }],
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
  })
}

function startSidecar(name: Tool, kubeconfig: string): void {
  const flags = [`--kubeconfig=${kubeconfig}`, `--csi-address=${driver.socket}`, '--timeout=60s']
  const more = name === 'csi-provisioner' ? ['--default-fstype=ext4', '--extra-create-metadata'] : []
  const child = spawn(toolPath(name), [...flags, ...more], { stdio: ['ignore', 'ignore', 'pipe'] })
  child.stderr?.on('data', (chunk: Buffer) => void (said += `${name}: ${chunk.toString()}`))
  sidecars.push(child)
}

interface Claim {
  readonly status?: { readonly phase?: string; readonly capacity?: { readonly storage?: string } }
  readonly spec: { readonly volumeName?: string }
}

const readClaim = async () => (await admin.send('GET', `${CLAIMS}/data`)).body as unknown as Claim
const storages = async () =>
  (await unwrap(client.GET('/v1/storages', { params: { query: { label: ['kubernetes-cluster=claims'] } } }))).items

async function createPod(name: string): Promise<void> {
  const pod = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
  }
  await eventually('the service account of the namespace', async () => {
    await reportReady(admin, NODE)
    return (await admin.send('POST', PODS, pod)).status === 201
  })
}

/** With the last words of the sidecars when it does not come. */
const came = async <Value>(what: string, look: () => Promise<Value>, isGood: (value: Value) => boolean) => {
  try {
    return await until(what, look, isGood, 80_000)
  } catch (error) {
    throw new Error(`${said.slice(-4_000)}\n${driver.said().slice(-2_000)}`, { cause: error })
  }
}

describe.runIf(isAllBuilt)('claims', () => {
  beforeAll(begin, 300_000)
  afterAll(end, 120_000)
  test('a claim becomes a storage, which outlives its pod, grows, and goes with the claim', async () => {
    const claim = {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' } },
      spec: {
        ...{ storageClassName: 'standard', accessModes: ['ReadWriteOnce'] },
        resources: { requests: { storage: '1Gi' } },
      },
    }
    expect((await admin.send('POST', CLAIMS, claim)).status).toBe(201)
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
  }, 400_000)
})
