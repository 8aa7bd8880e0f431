/** The suite that drivers of the Container Storage Interface are judged by, on the running product: storages, servers
 *  and operations are real, guests are simulated, and what a guest would find by a serial is a loop device. */
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient, pages, unwrap } from '../../../client/index.ts'
import { environment } from '../../../kit/sys/process.ts'
import { toolPath } from '../../../tools/cluster/build.ts'
import { until } from '../../eventually.ts'
import { Customer } from '../../e2e/customer.ts'
import { clearAway, newFolder, Product } from '../../e2e/product.ts'
import { callerOf, type Driver, startDriver } from './driver.ts'
import { LoopDisks } from './loop-disks.ts'

const run = promisify(execFile)
const ZONE = 'eu-1a'
const GIBIBYTE = 1024 ** 3
const SUITE_MILLISECONDS = 420_000

let data: string
let product: Product
let client: ReturnType<typeof createClient>
let serverId: string
let customer: Customer
const ending = new AbortController()
let controller: Driver
let node: Driver
const drivers: Driver[] = []
let disks: LoopDisks
let plugging: Promise<void> = Promise.resolve()

beforeAll(async () => {
  data = await newFolder()
  product = await Product.start({
    data,
    flags: ['--hypervisor', 'simulated', '--nodes', `${ZONE}=1`],
    warnings: [],
  })
  customer = await Customer.signUp(() => product, 'csi@example.com')
  await customer.addSshKey()
  const { server, operation } = await customer.createServer({
    zone: ZONE,
    hostname: 'worker',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  await customer.finished(operation.id)
  serverId = server.id
  client = createClient({ url: product.endpoints.api_url, token: await customer.newToken('guest', 'read') })
  const folder = join(data, 'csi')
  await mkdir(folder, { mode: 0o700 })
  disks = new LoopDisks(folder)
  plugging = plugDisks()
  controller = await startController('controller')
  const settings = { SVCCLOUD_SERVER_ID: serverId, SVCCLOUD_ZONE: ZONE, SVCCLOUD_DISKS: disks.byId }
  node = await startDriver('node', folder, settings)
  drivers.push(node)
}, 400_000)

afterAll(async () => {
  ending.abort()
  await plugging
  await Promise.all(drivers.map((driver) => driver.stop()))
  await disks?.end()
  await clearAway(product, data)
})

/** In a separate folder. */
async function startController(name: string, token = customer.token): Promise<Driver> {
  const folder = join(data, 'csi', name)
  await mkdir(folder, { mode: 0o700 })
  await writeFile(join(folder, 'token'), token, { mode: 0o600 })
  const driver = await startDriver('controller', folder, {
    SVCCLOUD_URL: product.endpoints.api_url,
    SVCCLOUD_TOKEN_FILE: join(folder, 'token'),
    SVCCLOUD_CLUSTER_ID: 'sanity',
    SVCCLOUD_ZONE: ZONE,
  })
  drivers.push(driver)
  return driver
}

/** Does what a guest does: a storage that is attached is a disk of its size there, one that is not is none. */
async function plugDisks(): Promise<void> {
  while (!ending.signal.aborted) {
    const attached = new Map<string, number>()
    const read = (query: object) => client.GET('/v1/storages', { params: { query: { ...query, server_id: serverId } } })
    for await (const { serial, is_boot, size_gibibytes } of pages(read))
      if (!is_boot) attached.set(serial, size_gibibytes)
    for (const serial of disks.serials()) if (!attached.has(serial)) await disks.remove(serial)
    for (const [serial, gibibytes] of attached)
      if (disks.serials().includes(serial)) await disks.grow(serial, gibibytes)
      else await disks.add(serial, gibibytes)
    await sleep(400)
  }
}

const flags = (more: readonly string[] = []): readonly string[] => [
  `--csi.endpoint=unix://${node.socket}`,
  `--csi.controllerendpoint=unix://${controller.socket}`,
  `--csi.mountdir=${join(data, 'csi-mount')}`,
  `--csi.stagingdir=${join(data, 'csi-staging')}`,
  `--csi.testvolumesize=${GIBIBYTE}`,
  `--csi.testvolumeexpandsize=${2 * GIBIBYTE}`,
  '--csi.testnodevolumeattachlimit',
  '--ginkgo.no-color',
  ...more,
]

/** What the suite says in the end, and how many of its specifications it left out. */
async function judged(more: readonly string[] = []): Promise<string> {
  const options = { maxBuffer: 16 * 1024 * 1024, env: { PATH: environment()['PATH'] }, timeout: SUITE_MILLISECONDS }
  const { stdout } = await run(toolPath('csi-sanity'), flags(more), options).catch((error: { stdout?: string }) => {
    throw new Error(
      `${error.stdout?.slice(-20_000)}\n${drivers
        .map(({ said }) => said())
        .join('\n')
        .slice(-10_000)}`,
    )
  })
  return /Ran \d+ of \d+ Specs.*\n.*/.exec(stdout)?.[0] ?? stdout
}

const leftStorages = async () =>
  (await unwrap(client.GET('/v1/storages', { params: { query: { limit: 100 } } }))).items.filter(
    ({ is_boot }) => !is_boot,
  )

/** What has been deleted is in lists for a moment. */
const untilNothingIsLeft = () =>
  until(
    'nothing to be left',
    async () => [...(await leftStorages()), ...(await unwrap(client.GET('/v1/snapshots'))).items],
    ({ length }) => length === 0,
  )

test(
  'the suite finds nothing wrong with volumes that are file systems',
  async () => {
    expect(await judged()).toMatch(/0 Failed/)
    await untilNothingIsLeft()
  },
  SUITE_MILLISECONDS,
)

test(
  'nor with volumes that are raw disks',
  async () => {
    const focus = ['--csi.testvolumeaccesstype=block', '--ginkgo.focus=Node Service|ExpandVolume|lifecycle']
    expect(await judged(focus)).toMatch(/0 Failed/)
    await untilNothingIsLeft()
  },
  SUITE_MILLISECONDS,
)

test('a driver that is killed while it makes a volume is followed by one that answers the same volume', async () => {
  const request = {
    name: 'made-by-two',
    capacityRange: { requiredBytes: GIBIBYTE },
    volumeCapabilities: [{ mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }],
    parameters: { 'csi.storage.k8s.io/pvc/name': 'data', 'csi.storage.k8s.io/pvc/namespace': 'shop' },
  }
  const first = await startController('first')
  const caller = callerOf(first.socket, 'Controller')
  const asked = caller.call('CreateVolume', request).catch((error: unknown) => error)
  const [made] = await until('the storage', leftStorages, ({ length }) => length > 0)
  first.process.kill('SIGKILL')
  expect(await asked).toMatchObject({ code: status.UNAVAILABLE })
  caller.close()

  const second = await startController('second')
  const next = callerOf(second.socket, 'Controller')
  const { volume } = await next.call<{ volume: { volumeId: string } }>('CreateVolume', request)
  expect(volume.volumeId).toBe(made?.id)
  expect(await leftStorages()).toMatchObject([{ title: 'shop/data', zone: ZONE, size_gibibytes: 1, state: 'online' }])
  const other = { ...request, capacityRange: { requiredBytes: 2 * GIBIBYTE } }
  await expect(next.call('CreateVolume', other)).rejects.toMatchObject({ code: status.ALREADY_EXISTS })

  // whoever writes volumes in a cluster may name any storage of the account
  const ofCluster = (cluster: string) =>
    customer.request('PATCH', `/v1/storages/${volume.volumeId}`, {
      labels: { 'csi-name': request.name, 'kubernetes-cluster': cluster },
    })
  expect((await ofCluster('another')).status).toBe(200)
  const { volumeId } = volume
  const [volumeCapability] = request.volumeCapabilities
  const copied = { volume: { volumeId } }
  for (const [call, asked] of [
    ['DeleteVolume', { volumeId }],
    ['ControllerPublishVolume', { volumeId, nodeId: serverId, volumeCapability }],
    ['ControllerExpandVolume', { volumeId, capacityRange: { requiredBytes: 2 * GIBIBYTE } }],
    ['ValidateVolumeCapabilities', { volumeId, volumeCapabilities: request.volumeCapabilities }],
    ['CreateSnapshot', { name: 'of-another', sourceVolumeId: volumeId }],
    ['CreateVolume', { ...request, name: 'of-another', volumeContentSource: copied }],
  ] as const)
    await expect(next.call(call, asked), call).rejects.toMatchObject({ code: status.FAILED_PRECONDITION })
  const attaching = await customer.change('POST', `/v1/storages/${volumeId}/attach`, { server_id: serverId })
  await customer.finished(attaching.id)
  await next.call('ControllerUnpublishVolume', { volumeId, nodeId: serverId })
  expect((await leftStorages())[0]).toMatchObject({ server_id: serverId })
  expect(await ofCluster('sanity')).toMatchObject({ status: 200 })
  await next.call('ControllerUnpublishVolume', { volumeId, nodeId: serverId })
  expect(await ofCluster('sanity')).toMatchObject({ status: 200 })

  // a name is free again once its volume is deleted, also on the day of the first request
  await next.call('DeleteVolume', { volumeId: volume.volumeId })
  const again = await next.call<{ volume: { volumeId: string } }>('CreateVolume', request)
  expect(again.volume.volumeId).not.toBe(volume.volumeId)
  await next.call('DeleteVolume', { volumeId: again.volume.volumeId })
  const elsewhere = {
    ...request,
    accessibilityRequirements: { requisite: [{ segments: { 'topology.kubernetes.io/zone': 'nowhere' } }] },
  }
  await expect(next.call('CreateVolume', elsewhere)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT })
  await untilNothingIsLeft()
  next.close()
})

test('what the token may not is said as such', async () => {
  const read = await customer.newToken('reads', 'read')
  const reading = await startController('reading', read)
  const caller = callerOf(reading.socket, 'Controller')
  const request = {
    name: 'never',
    volumeCapabilities: [{ mount: {}, accessMode: { mode: 'SINGLE_NODE_WRITER' } }],
  }
  await expect(caller.call('CreateVolume', request)).rejects.toMatchObject({ code: status.PERMISSION_DENIED })
  await writeFile(join(data, 'csi', 'reading', 'token'), 'nonsense')
  await expect(caller.call('CreateVolume', request)).rejects.toMatchObject({ code: status.UNAUTHENTICATED })
  caller.close()
})
