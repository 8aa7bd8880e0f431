import { expect, test } from 'vitest'
import type { z } from 'zod'
import { CloudControllerSettings, CsiControllerSettings } from '../../../addons/settings.ts'
import { addonManifest } from '../../../hosting/pods/addon-workloads.ts'
import { baseManifests, namespaceManifests } from '../../../hosting/pods/base.ts'
import { endpointOf } from '../../../hosting/pods/endpoint.ts'
import type { Manifest } from '../../../hosting/pods/kinds.ts'
import { newRecord, type PodsRecord } from '../../../hosting/pods/record.ts'
import { restoreManifest } from '../../../hosting/pods/restoring.ts'
import { addonsOf, HostSettings, releasesOf } from '../../../hosting/pods/settings.ts'
import { BYTES_OF_UPGRADE, bytesOf, quotaOf } from '../../../hosting/pods/sizes.ts'
import { apiManifest, controllerManifests, etcdManifest, readerManifest } from '../../../hosting/pods/workloads.ts'
import { parseQuantity } from '../../../integrations/control-planes/quantity.ts'
import { settingsIn } from '../../../kit/sys/settings.ts'
import { newDesired } from '../processes/hosted.ts'
import { hostSettings } from './settings.ts'

const settings = hostSettings()
const recordOf = (replicas: 1 | 3, more: Partial<PodsRecord> = {}): PodsRecord => ({
  ...newRecord(newDesired({ id: '6f0e5b1a-0000-4000-8000-000000000001', replicas }), settings, null),
  ...more,
})
const FILES = { manager: 'm', scheduler: 's' }
const workloads = (record: PodsRecord): readonly Manifest[] => [
  etcdManifest(record, settings),
  readerManifest(record, settings, 'c'),
  apiManifest(record, settings, 'c'),
  ...controllerManifests(record, settings, FILES),
]
interface Container {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
  readonly securityContext: object
  readonly resources: {
    readonly requests: Readonly<Record<string, string>>
    readonly limits: Readonly<Record<string, string>>
  }
}
interface Workload {
  readonly replicas: number
  readonly template: {
    readonly metadata: { readonly annotations: object }
    readonly spec: { readonly containers: readonly Container[]; readonly initContainers?: readonly Container[] }
  }
}
// what these manifests are
const specOf = ({ object }: Manifest) => object.spec as unknown as Workload
const containersOf = (manifest: Manifest): readonly Container[] => {
  const { containers, initContainers = [] } = specOf(manifest).template.spec
  return [...initContainers, ...containers]
}

/** Settings of its first container, as the program reads them. */
const settingsOf = <Schema extends z.ZodObject>(manifest: Manifest, schema: Schema) =>
  settingsIn(schema, Object.fromEntries((containersOf(manifest)[0]?.env ?? []).map(({ name, value }) => [name, value])))

test('three members of etcd know each other by name, and API servers know all of them', () => {
  const [etcd, , api] = workloads(recordOf(3, { generation: 2 }))
  if (etcd === undefined || api === undefined) throw new Error('there are none')
  const namespace = 'svccloud-cp-6f0e5b1a-0000-4000-8000-000000000001'
  const hosts = [0, 1, 2].map((member) => `https://etcd-${member}.etcd.${namespace}.svc`)
  expect(specOf(etcd)).toMatchObject({ replicas: 3, serviceName: 'etcd', podManagementPolicy: 'Parallel' })
  expect(containersOf(etcd)[0]?.command).toEqual(
    expect.arrayContaining([
      '--name=$(POD_NAME)',
      '--data-dir=/data/etcd-2',
      '--client-cert-auth',
      '--peer-client-cert-auth',
      `--initial-cluster=${hosts.map((host, member) => `etcd-${member}=${host}:2380`).join(',')}`,
      `--initial-advertise-peer-urls=https://$(POD_NAME).etcd.${namespace}.svc:2380`,
    ]),
  )
  const server = containersOf(api).find(({ name }) => name === 'kube-apiserver')
  expect(server?.command).toContain(`--etcd-servers=${hosts.map((host) => `${host}:2379`).join(',')}`)
  expect(containersOf(api)[0]?.args).toContain('--server-count=3')
  expect(specOf(api)).toMatchObject({ strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } })
})

const SIDECARS = {
  provisioner: 'a',
  attacher: 'b',
  resizer: 'c',
  snapshotter: 'd',
  snapshotController: 'e',
}
const PLATFORM = { url: 'https://cloud.example.test', port: 443 }
const withAddons = hostSettings({ platform: PLATFORM, snapshotKinds: 'kind: Kind' })
const withAllAddons = HostSettings.parse({ ...withAddons, images: { ...withAddons.images, sidecars: SIDECARS } })
const TOLD = { tokenId: '6f0e5b1a-0000-4000-8000-000000000002', clusterId: 'shop', zone: 'eu-1a' }
const addonsIn = (record: PodsRecord): readonly Manifest[] =>
  addonsOf(withAllAddons).map((name) => addonManifest(record, withAllAddons, name, ['k']))

test.each([
  { replicas: 1, addons: [] },
  { replicas: 3, addons: [] },
  { replicas: 1, addons: addonsOf(withAllAddons) },
  { replicas: 3, addons: addonsOf(withAllAddons) },
] as const)(
  'what is reserved for $replicas with $addons is what its containers ask for, and the quota has room',
  ({ replicas, addons }) => {
    const record = recordOf(replicas)
    const withPeople = {
      ...record,
      desired: { ...record.desired, issuer: { url: 'https://a.test', audience: 'b', keys: [] } },
    }
    const asked = [...workloads(withPeople), ...(addons.length === 0 ? [] : addonsIn(record))]
      .map(
        (manifest) =>
          containersOf(manifest).reduce(
            (sum, { resources }) => sum + parseQuantity(resources.requests['memory'] ?? ''),
            0,
          ) * specOf(manifest).replicas,
      )
      .reduce((sum, bytes) => sum + bytes)
    expect(asked).toBe(bytesOf({ replicas, addons }))
    const quota = quotaOf({ replicas, addons })
    expect(parseQuantity(quota['requests.memory'] ?? '')).toBeGreaterThanOrEqual(asked + BYTES_OF_UPGRADE)
  },
)

test('no container may do more than it needs, and none has a token of the host cluster', () => {
  const record = recordOf(3)
  for (const manifest of [...workloads(record), ...addonsIn(record), restoreManifest(record, settings, 0)]) {
    expect(specOf(manifest).template.spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    for (const { securityContext, resources } of containersOf(manifest)) {
      expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
      expect(resources.limits['memory']).toMatch(/^\d+Mi$/)
    }
  }
})

test('programs are begun anew with other certificates', () => {
  const annotations = (file: string) => specOf(apiManifest(recordOf(1), settings, file)).template.metadata.annotations
  expect(annotations('one')).toEqual(annotations('one'))
  expect(annotations('one')).not.toEqual(annotations('other'))
})

const podsOf = (values: readonly string[]) => ({
  podSelector: { matchExpressions: [expect.objectContaining({ values })] },
})

test('a reader is replaced with other certificates, and when it is another one by the record', () => {
  const annotations = (readers: number, certificates: string) =>
    specOf(readerManifest(recordOf(1, { readers }), settings, certificates)).template.metadata.annotations
  expect(annotations(0, 'c')).toEqual(annotations(0, 'c'))
  expect(annotations(0, 'c')).not.toEqual(annotations(1, 'c'))
  expect(annotations(0, 'c')).not.toEqual(annotations(0, 'd'))
})

test('nothing is admitted or sent out but what is listed', () => {
  const policies = baseManifests(recordOf(1), settings).filter(({ type }) => type.kind === 'NetworkPolicy')
  const byName = new Map(policies.map(({ object }) => [object.metadata.name, object.spec]))
  expect(byName.get('closed')).toEqual({
    podSelector: {},
    policyTypes: ['Ingress', 'Egress'],
    egress: [
      {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
    ],
  })
  // The host process comes to who reads for it, and to who takes in a restore; not to etcd.
  const admits = (name: string) => JSON.stringify(byName.get(name)).includes('192.0.2.9/32')
  expect([...byName.keys()].filter(admits)).toEqual(['restore', 'reader'])
  expect(byName.get('etcd')).toMatchObject({
    ingress: [{}, { from: [podsOf(['kube-apiserver', 'reader'])], ports: [{ port: 2_379, protocol: 'TCP' }] }],
  })
  expect(byName.get('reader')).toMatchObject({
    ingress: [{ ports: [{ port: 8_445, protocol: 'TCP' }] }],
    egress: [
      { to: [podsOf(['kube-apiserver'])], ports: [{ port: 6_443, protocol: 'TCP' }] },
      { to: [podsOf(['etcd'])], ports: [{ port: 2_379, protocol: 'TCP' }] },
    ],
  })
  expect([...byName.keys()]).toEqual(['closed', 'etcd', 'restore', 'api', 'reader', 'controllers', 'addons'])
  expect(byName.get('addons')).not.toHaveProperty('egress')
  expect(byName.get('addons')).toMatchObject({ policyTypes: ['Egress'] })
})

test('add-ons reach the API of the cluster and that of the platform, where it is said to be', () => {
  const egressOf = (name: string, more: object) => {
    const manifests = baseManifests(recordOf(1), hostSettings(more))
    const found = manifests.find(({ type, object }) => type.kind === 'NetworkPolicy' && object.metadata.name === name)
    return found?.object.spec
  }
  const parts = { matchExpressions: [expect.objectContaining({ values: expect.arrayContaining(['csi-driver']) })] }
  expect(egressOf('controllers', { platform: PLATFORM })).toMatchObject({ podSelector: parts })
  const ports = [{ port: 443, protocol: 'TCP' }]
  expect(egressOf('addons', { platform: PLATFORM })).toMatchObject({ podSelector: parts, egress: [{ ports }] })
  const to = [{ ipBlock: { cidr: '198.51.100.0/24' } }]
  expect(egressOf('addons', { platform: { ...PLATFORM, to } })).toMatchObject({ egress: [{ to, ports }] })
})

test("an add-on gets its cluster and the platform's address, and its token is in no manifest but its Secret", () => {
  const [cloud, csi] = addonsIn(recordOf(1, { addons: { 'cloud-controller': TOLD, 'csi-driver': TOLD } }))
  if (cloud === undefined || csi === undefined) throw new Error('there are none')
  expect(containersOf(csi).map(({ name, image }) => [name, image])).toEqual([
    ['csi-controller', settings.images.platform],
    ['csi-provisioner', 'a'],
    ['csi-attacher', 'b'],
    ['csi-resizer', 'c'],
    ['csi-snapshotter', 'd'],
    ['csi-snapshot-controller', 'e'],
  ])
  const platform = { url: PLATFORM.url, tokenFile: '/etc/svccloud/token', clusterId: 'shop' }
  expect(settingsOf(cloud, CloudControllerSettings)).toMatchObject({
    ...platform,
    kubeconfig: '/etc/svccloud/cloud-controller.kubeconfig',
  })
  expect(settingsOf(csi, CsiControllerSettings)).toMatchObject({
    ...platform,
    zone: 'eu-1a',
    csiSocket: '/csi/csi.sock',
  })
  for (const manifest of [cloud, csi]) {
    // Two of them would work against each other.
    expect(manifest.object.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } })
  }
})

test('without the platform no add-on runs, and without sidecars no driver of volumes', () => {
  expect(addonsOf(settings)).toEqual([])
  expect(addonsOf(hostSettings({ platform: PLATFORM }))).toEqual(['cloud-controller'])
  expect(addonsOf(withAllAddons)).toEqual(['cloud-controller', 'csi-driver'])
  expect(HostSettings.safeParse({ ...withAllAddons, snapshotKinds: '' }).error?.message).toContain('snapshotKinds')
})

test('with separate rights in each namespace the host process gives itself a role there', () => {
  const rights = { serviceAccount: 'planes', namespace: 'svccloud-system', clusterRole: 'planes' }
  expect(namespaceManifests(recordOf(1), { ...settings, rights }).map(({ type }) => type.kind)).toEqual([
    'Namespace',
    'RoleBinding',
  ])
  expect(namespaceManifests(recordOf(1), settings)).toHaveLength(1)
})

test.each([
  { type: 'LoadBalancer', ip: '198.51.100.7', url: 'https://198.51.100.7:6443', tunnel: 8_132 },
  { type: 'LoadBalancer', ip: '2001:db8::7', url: 'https://[2001:db8::7]:6443', tunnel: 8_132 },
  { type: 'NodePort', ip: undefined, url: 'https://192.0.2.1:31000', tunnel: 31_001 },
] as const)('an endpoint by $type is $url', ({ type, ip, url, tunnel }) => {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kube-apiserver' },
    spec: {
      clusterIP: '10.0.0.9',
      ports: [
        { name: 'api', nodePort: 31_000 },
        { name: 'tunnel', nodePort: 31_001 },
      ],
    },
  }
  const status = ip === undefined ? {} : { loadBalancer: { ingress: [{ ip }] } }
  const wanted = type === 'NodePort' ? { type, address: '192.0.2.1' } : { type, annotations: {} }
  expect(endpointOf({ ...service, status }, wanted)).toMatchObject({
    url,
    inner: 'https://10.0.0.9:6443',
    tunnel: { port: tunnel },
  })
  if (type === 'LoadBalancer') expect(endpointOf(service, wanted)).toBeUndefined()
})

test('settings say what is wrong with them', () => {
  const { images, ...others } = settings
  const unknown = { ...images, releases: { '1.2.3': images.releases['1.36.3'] } }
  expect(HostSettings.safeParse({ ...others, images: unknown }).error?.message).toContain(
    'releases are 1.35.4 and 1.36.3',
  )
  expect(HostSettings.safeParse({ ...others, images, colour: 'red' }).success).toBe(false)
  expect(releasesOf(settings)).toEqual(['1.35.4', '1.36.3'])
})
