/** Add-ons beside a real control plane: programs with a token of the platform and a user of the cluster. The one here
 *  calls a platform that only listens. */
import { createServer, type Server } from 'node:http'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Addon, findAddons } from '../../../hosting/processes/addon-table.ts'
import { nodeBinary, signalProcess } from '../../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, kubeClient, newDesired, openHosted, untilState } from './hosted.ts'

/** Reads its token for each request, as add-ons do. */
const CALLER = `
  const { readFileSync } = require('node:fs')
  const call = () => {
    const authorization = readFileSync(process.env.SVCCLOUD_TOKEN_FILE, 'utf8')
    const { SVCCLOUD_CLUSTER_ID: cluster, SVCCLOUD_ZONE: zone } = process.env
    fetch(process.env.SVCCLOUD_URL, { headers: { authorization, cluster, zone } }).catch(() => {})
  }
  setInterval(call, 100)
`
const rule = { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list'] }
const ADDON: Addon = {
  name: 'csi-driver',
  version: '7.1',
  bytes: 1_000_000,
  programs: [
    {
      name: 'caller',
      rules: [rule],
      command: () => [nodeBinary(), '-e', CALLER],
      environment: ({ apiUrl, tokenFile, clusterId, zone }) => ({
        SVCCLOUD_URL: apiUrl,
        SVCCLOUD_TOKEN_FILE: tokenFile,
        SVCCLOUD_CLUSTER_ID: clusterId,
        SVCCLOUD_ZONE: zone,
      }),
    },
  ],
  objects: [
    {
      path: '/apis/storage.k8s.io/v1/storageclasses',
      isOwn: true,
      body: {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'quick' },
        provisioner: 'x.y',
      },
    },
  ],
}

let hosted: Hosted
let platform: Server
/** What the platform was asked with last. */
let heard: { readonly authorization?: string; readonly cluster?: unknown; readonly zone?: unknown } = {}

beforeAll(async () => {
  platform = createServer(({ headers }, response) => {
    heard = { authorization: headers.authorization ?? '', cluster: headers['cluster'], zone: headers['zone'] }
    response.end()
  })
  await new Promise<void>((resolve) => platform.listen(0, '127.0.0.1', resolve))
  const { port } = platform.address() as { readonly port: number } // of TCP
  hosted = await openHosted({ addons: { apiUrl: `http://127.0.0.1:${port}`, known: [ADDON] } })
})
afterAll(async () => {
  await hosted.end()
  platform.close()
})

const heardOf = (token: string) =>
  until(
    `the token ${token} to be used`,
    async () => heard.authorization,
    (found) => found === token,
  )

test('an add-on runs from its token on, with its own rights, until its cluster goes', async () => {
  const { host } = hosted
  const desired = newDesired()
  const { id } = desired
  const before = (await host.offer()).bytesOfOne
  await host.ensure(desired)
  expect((await host.offer()).reservedBytes).toBe(before)
  const alone = await untilState(hosted, id, isWhole)
  expect([alone.grants, alone.addons.map(({ name }) => name)]).toEqual([
    [{ addon: 'csi-driver', tokenId: null }],
    ['coredns'],
  ])
  expect(host.pid(id, 'caller')).toBeUndefined()

  const told = { clusterId: 'shop', zone: 'eu-1a' }
  const [first, second] = [newUuid(systemRandom), newUuid(systemRandom)]
  await expect(host.grant(id, 'another', { ...told, tokenId: first, token: 'none' })).rejects.toThrow('does not run')
  await host.grant(id, 'csi-driver', { ...told, tokenId: first, token: 'first-token' })
  await heardOf('first-token')
  expect(heard).toMatchObject({ cluster: 'shop', zone: 'eu-1a' })
  const { grants, addons } = await untilState(hosted, id, (state) => state.addons.length === 2)
  expect([grants, addons[1]]).toEqual([
    [{ addon: 'csi-driver', tokenId: first }],
    { name: 'csi-driver', version: '7.1' },
  ])

  const ownerOf = async (name: string) => (await stat(`/proc/${host.pid(id, name)}`)).uid
  expect(await ownerOf('caller')).toBe(await ownerOf('kube-apiserver-0'))

  // A new token needs no new process, and one that was killed comes back with the token of now.
  const pid = host.pid(id, 'caller')
  await host.grant(id, 'csi-driver', { ...told, tokenId: second, token: 'second-token' })
  await heardOf('second-token')
  expect(host.pid(id, 'caller')).toBe(pid)
  signalProcess(pid ?? 0, 'SIGKILL')
  heard = {}
  await heardOf('second-token')
  expect(host.pid(id, 'caller')).not.toBe(pid)

  // Its user may do what it has rules for, and the token is nowhere in the cluster.
  const folder = join(hosted.folder, id)
  const [certificate, key] = await Promise.all(
    ['crt', 'key'].map((end) => readFile(join(folder, `caller.${end}`), 'utf8')),
  )
  const caller = kubeClient(await untilState(hosted, id, isWhole), { certificate: certificate ?? '', key: key ?? '' })
  expect((await caller.send('GET', '/apis/storage.k8s.io/v1/storageclasses')).status).toBe(200)
  expect((await caller.send('GET', '/api/v1/namespaces/kube-system/secrets')).status).toBe(403)
  const admin = await adminOf(hosted, id)
  for (const path of ['secrets', 'configmaps']) {
    const all = await admin.send('GET', `/api/v1/${path}`)
    expect([all.status, JSON.stringify(all.body).includes('second-token')]).toEqual([200, false])
  }

  const last = host.pid(id, 'caller') ?? 0
  await host.remove(id)
  await until(
    'its end',
    () => host.get(id),
    (state) => state === undefined,
  )
  expect(signalProcess(last, 0)).toBe(false)
})

const known = await findAddons()
const hasDriver = known.some(({ name }) => name === 'csi-driver')

test.runIf(hasDriver)('the add-ons of the platform find each other as the user of the control plane', async () => {
  const own = await openHosted({ addons: { apiUrl: 'http://127.0.0.1:1', known } })
  try {
    const { id } = newDesired()
    await own.host.ensure(newDesired({ id }))
    await untilState(own, id, isWhole)
    const told = { clusterId: 'shop', zone: 'eu-1a', token: 'a-token' }
    for (const { name } of known) await own.host.grant(id, name, { ...told, tokenId: newUuid(systemRandom) })
    const logOf = (name: string) => readFile(join(own.folder, id, `${name}.log`), 'utf8')
    // The one has found the driver by its socket, the other the API of the cluster.
    await until(
      'the attacher',
      () => logOf('csi-attacher'),
      (log) => log.includes('Starting CSI attacher'),
    )
    await until(
      'the cloud controller',
      () => logOf('cloud-controller'),
      (log) => log.includes('"ready"'),
    )
    const ownerOf = async (name: string) => (await stat(`/proc/${own.host.pid(id, name)}`)).uid
    const owner = await ownerOf('etcd-0')
    for (const { programs } of known) for (const { name } of programs) expect(await ownerOf(name), name).toBe(owner)
  } finally {
    await own.end()
  }
})
