/** What add-ons in pods are given, and when: the API of the cluster only listens, and the host cluster remembers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { PodsAddons } from '../../../hosting/pods/addons.ts'
import type { Rollout } from '../../../hosting/pods/host-cluster.ts'
import type { Manifest } from '../../../hosting/pods/kinds.ts'
import { newRecord, type PodsRecord } from '../../../hosting/pods/record.ts'
import type { HostSettings } from '../../../hosting/pods/settings.ts'
import { type AddonNeeds, applyAddon, SIDECAR_KINDS, sidecarFlags } from '../../../hosting/core/addon-parts.ts'
import { openCredentials } from '../../../hosting/core/credentials.ts'
import type { KubeApi } from '../../../hosting/core/kube-api.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { VERSION } from '../../../domain/version.ts'
import { newDesired } from '../processes/hosted.ts'
import { hostSettings } from './settings.ts'

let folder: string
let asked: string[]
let applied: Map<string, Manifest['object']>
let removed: string[]
const api: KubeApi = {
  url: 'https://api',
  client: {
    async send(url, { method } = {}) {
      asked.push(`${method} ${new URL(url).pathname.split('/').at(-1)}`)
      return { status: 201, text: '' }
    },
    open: () => Promise.reject(new Error('nobody reads a stream')),
    close: () => {},
  },
}
const applyNeeds = (needs: AddonNeeds) => applyAddon(api, needs, systemClock)
const settings = hostSettings({ platform: { url: 'https://cloud.example.test', port: 443 } })

function openAddons(of: HostSettings = settings): PodsAddons {
  const cluster = {
    async apply(manifests: readonly Manifest[]) {
      for (const { type, object } of manifests) applied.set(`${type.kind} ${object.metadata.name}`, object)
    },
    async remove({ kind }: { readonly kind: string }, name: string) {
      removed.push(`${kind} ${name}`)
    },
  }
  return new PodsAddons({ folder, cluster, settings: of, clock: systemClock, random: systemRandom })
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-addons-'))
  ;[asked, removed, applied] = [[], [], new Map()]
  await openCredentials({ folder, hosts: [], clock: systemClock, random: systemRandom })
})
afterEach(() => rm(folder, { recursive: true }))

const withToken = (record: PodsRecord): PodsRecord => ({
  ...record,
  addons: { 'cloud-controller': { tokenId: newUuid(systemRandom), clusterId: 'shop', zone: 'eu-1a' } },
})
const secret = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(applied.get('Secret cloud-controller')?.data ?? {}).map(([name, text]) => [
      name,
      Buffer.from(text, 'base64').toString(),
    ]),
  )

test('an add-on is begun when it has a token, and a new token begins nothing anew', async () => {
  const addons = openAddons()
  const record = newRecord(newDesired(), settings, null)
  await addons.start(record, applyNeeds, 'pem')
  expect([asked, [...applied.keys()]]).toEqual([[], []])
  expect(addons.grants(record)).toEqual([{ addon: 'cloud-controller', tokenId: null }])

  const granted = withToken(record)
  await addons.writeToken('cloud-controller', 'first')
  await addons.start(granted, applyNeeds, 'pem')
  expect(asked).toEqual(['PATCH svccloud:cloud-controller', 'PATCH svccloud:cloud-controller'])
  expect(secret()['token']).toBe('first')
  const { clusters } = JSON.parse(secret()['cloud-controller.kubeconfig'] ?? '')
  expect(clusters[0].cluster.server).toBe('https://kube-apiserver:6443')
  const pods = applied.get('Deployment cloud-controller')
  expect(JSON.stringify(pods)).not.toContain('first')

  await addons.writeToken('cloud-controller', 'second')
  await addons.start(granted, applyNeeds, 'pem')
  expect(secret()['token']).toBe('second')
  expect(applied.get('Deployment cloud-controller')).toEqual(pods)
  expect(asked).toHaveLength(2)
  addons.applyAnew() // after a restore, its objects are made anew
  await addons.start(granted, applyNeeds, 'pem')
  expect(asked).toHaveLength(4)
})

test('one counts as running when its pod is ready, and ends where it no longer runs', async () => {
  const granted = withToken(newRecord(newDesired(), settings, null))
  const ready = new Map<string, Rollout>([['cloud-controller', { ready: 1, isWhole: true }]])
  const [addons, without] = [openAddons(), openAddons(hostSettings())]
  expect(addons.versions(granted, new Map())).toEqual([])
  expect(addons.versions(granted, ready)).toEqual([{ name: 'cloud-controller', version: VERSION }])
  expect([without.can('cloud-controller'), without.versions(granted, ready), without.grants(granted)]).toEqual([
    false,
    [],
    [],
  ])
  await without.start(granted, applyNeeds, 'pem')
  await without.start(granted, applyNeeds, 'pem')
  expect(removed).toEqual([
    'Deployment cloud-controller',
    'Secret cloud-controller',
    'Deployment csi-driver',
    'Secret csi-driver',
  ])
  expect(applied.size).toBe(0)
})

test.each(SIDECAR_KINDS)('the %s tries again within half a minute, however often it has', (kind) => {
  expect(sidecarFlags(kind, 'kubeconfig', 'socket')).toContain('--retry-interval-max=30s')
})
