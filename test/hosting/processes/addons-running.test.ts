/** What add-ons do in a cluster before they run, and in which order they end. The programs are real, the API only
 *  listens. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Addon, type AddonProgram, findAddons } from '../../../hosting/processes/addon-table.ts'
import { RunningAddons } from '../../../hosting/processes/addons-running.ts'
import { type AddonNeeds, applyAddon } from '../../../hosting/core/addon-parts.ts'
import { openCredentials } from '../../../hosting/core/credentials.ts'
import type { KubeApi } from '../../../hosting/core/kube-api.ts'
import { openHost } from '../../../hosting/processes/host.ts'
import { replicasFor } from '../../../integrations/control-planes/replicas.ts'
import {
  CSI_SIDECARS,
  SNAPSHOT_CONTROLLER_VERSION,
  SNAPSHOT_KINDS_FILE,
} from '../../../domain/kubernetes-cluster/versions.ts'
import { RunningPrograms } from '../../../hosting/processes/programs-running.ts'
import type { ControlPlaneRecord } from '../../../hosting/processes/record.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { newDesired } from './hosted.ts'

let folder: string
const stopping = new AbortController()
let programs: RunningPrograms
/** What the API was asked. */
let asked: string[] = []
/** How often it does not know yet what is made. */
let unknown = 0
const api: KubeApi = {
  url: 'https://api',
  client: {
    async send(url, { method } = {}) {
      asked.push(`${method} ${new URL(url).pathname.split('/').slice(-2).join('/')}`)
      if (method !== 'POST') return { status: 200, text: '' }
      return { status: unknown-- > 0 ? 404 : 409, text: '' }
    },
    open: () => Promise.reject(new Error('nobody reads a stream')),
    close: () => {},
  },
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-addons-'))
  const parts = { clock: systemClock, random: systemRandom, log: silentLog, signal: stopping.signal }
  programs = new RunningPrograms(folder, parts)
  await openCredentials({ folder, hosts: [], clock: systemClock, random: systemRandom })
})
afterEach(async () => {
  await programs.stop(programs.names())
  await rm(folder, { recursive: true })
})

const program = (name: string, rules: readonly object[]): AddonProgram => ({
  name,
  rules,
  command: () => ['sleep', '600'],
  environment: () => ({}),
})
const object = (name: string, isOwn: boolean): Addon['objects'][number] => ({
  path: '/apis/storage.k8s.io/v1/things',
  isOwn,
  body: { metadata: { name } },
})
const ADDON: Addon = {
  name: 'csi-driver',
  version: '1',
  bytes: 1,
  programs: [program('outside', []), program('inside', [{ verbs: ['get'] }])],
  objects: [object('ours', false), object('theirs', true)],
}

test('what is the cluster’s own is made and never changed, and who does not get in has no certificate', async () => {
  const addons = new RunningAddons({
    folder,
    addons: [ADDON],
    apiUrl: 'http://platform',
    clock: systemClock,
    random: systemRandom,
    run: (name, command, more) => programs.start(name, command, more),
    running: () => programs.names(),
    give: async () => {},
  })
  const told = { tokenId: newUuid(systemRandom), clusterId: 'shop', zone: 'eu-1a' }
  const record = { desired: newDesired(), addons: {} } as unknown as ControlPlaneRecord // what add-ons look at
  const apply = (needs: AddonNeeds) => applyAddon(api, needs, systemClock)
  const round = { apply, authority: 'pem', endpoint: 'https://127.0.0.1:1', record }
  await addons.start(round)
  expect([asked, programs.names(), addons.versions()]).toEqual([[], [], []])

  const granted = { ...round, record: { ...record, addons: { 'csi-driver': told } } }
  unknown = 1 // of a kind that was defined a moment ago
  await addons.start(granted)
  expect(asked).toEqual([
    'PATCH things/ours',
    'POST v1/things',
    'POST v1/things',
    'PATCH clusterroles/svccloud:inside',
    'PATCH clusterrolebindings/svccloud:inside',
  ])
  expect(addons.versions()).toEqual([{ name: 'csi-driver', version: '1' }])
  expect(addons.names()).toEqual(['inside', 'outside']) // who others wait for ends last
  expect(JSON.parse(await readFile(join(folder, 'inside.kubeconfig'), 'utf8')).clusters[0].cluster.server).toBe(
    'https://127.0.0.1:1',
  )
  await expect(readFile(join(folder, 'outside.crt'))).rejects.toThrow('ENOENT')
  asked = []
  await addons.start(granted)
  expect(asked).toEqual([])
  addons.applyAnew() // after a restore
  await addons.start(granted)
  expect(asked).toHaveLength(4)
})

test('without all of its programs the driver of volumes is none; the cloud controller needs none', async () => {
  expect((await findAddons(folder)).map(({ name }) => name)).toEqual(['cloud-controller'])
})

test('a quarter of 24 GiB holds clusters of three replicas with all add-ons', async () => {
  const sidecars = Object.entries(CSI_SIDECARS).map(([name, version]) => join(folder, version, `csi-${name}`))
  const [controller, kinds] = ['snapshot-controller', SNAPSHOT_KINDS_FILE].map((name) =>
    join(folder, SNAPSHOT_CONTROLLER_VERSION, name),
  )
  for (const file of [...sidecars, controller ?? '']) {
    await mkdir(join(file, '..'), { recursive: true })
    await writeFile(file, '', { mode: 0o755 })
  }
  expect((await findAddons(folder)).map(({ name }) => name)).toEqual(['cloud-controller'])
  await writeFile(kinds ?? '', 'kind: CustomResourceDefinition\nmetadata: {name: volumesnapshots}\n')
  const known = await findAddons(folder)
  expect(known.map(({ name }) => name)).toEqual(['cloud-controller', 'csi-driver'])
  const program = join(folder, 'etcd')
  await writeFile(program, '', { mode: 0o755 })
  const programs = { etcd: program, etcdutl: program, tunnel: undefined, releases: [] }
  const host = await openHost({
    folder: join(folder, 'clusters'),
    programs,
    host: '127.0.0.1',
    addresses: [],
    memoryBytes: 6 * 1024 ** 3,
    addons: { apiUrl: 'http://platform', known },
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  const offer = await host.offer()
  expect(replicasFor(offer)).toBe(3)
  expect(replicasFor({ ...offer, memoryBytes: offer.memoryBytes / 2 })).toBe(1)
  await host.stop()
})
