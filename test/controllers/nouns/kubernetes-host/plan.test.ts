/** What the controller of hosts of control planes decides, row by row. */
import { describe, expect, test } from 'vitest'
import type { HostObject, Observed } from '../../../../controllers/nouns/kubernetes-host/observed.ts'
import { NAMESPACE, namesOf } from '../../../../controllers/nouns/kubernetes-host/parts.ts'
import { plan } from '../../../../controllers/nouns/kubernetes-host/plan.ts'

const NOW = new Date('2026-01-01T12:00:00Z')
const ID = '6f000000-0000-4000-8000-000000000001'
const stanza = {
  id: 'op',
  kind: 'kubernetes_host.bootstrap' as const,
  actor: 'operator',
  requestId: 'r',
  requestedAt: '2026-01-01T11:00:00Z',
  deadlineAt: '2026-01-01T13:00:00Z',
}
type Status = NonNullable<HostObject['status']>

function host(status: Status = {}, more: { readonly operation?: object; readonly metadata?: object } = {}): HostObject {
  return {
    apiVersion: 'svccloud.dev/v1alpha1',
    kind: 'KubernetesHost',
    metadata: { name: ID, uid: 'uid', generation: 1, ...more.metadata },
    spec: {
      region: 'eu-2',
      zones: ['eu-2a'],
      plan: 'big',
      nodesPerZone: 2,
      version: '1.36',
      controlPlaneRegion: 'eu-1',
      operation: { ...stanza, ...more.operation },
    },
    status,
  }
}
const names = namesOf(host())
const ended = (id: string, status: 'succeeded' | 'failed', error = '') => ({ id, status, error })
const part = (name: string, spec: object, status: object, createdAt = '2026-01-01T11:30:00Z') =>
  ({
    metadata: { name, namespace: NAMESPACE, creationTimestamp: createdAt },
    spec: { operation: { id: 'own' }, ...spec },
    status,
  }) as never // as far as plans read it
const NETWORK = part(names.network, {}, { ipv4Cidr: '10.0.0.0/24', operation: ended('own', 'succeeded') })
const ADDONS = ['csi-driver', 'cloud-controller'].map((name) => ({ name, version: '1' }))
const CLUSTER = part(names.cluster, {}, { isMade: true, addons: ADDONS })
const POOL = part(names.pools[0]?.name ?? '', {}, { isMade: true, nodes: [{ isReady: true }, { isReady: false }] })
const ROW = { region: 'eu-2', id: ID, authority: 'pem', sealedSecrets: 'k.s', url: undefined }
const PROCESS = { digest: 'd', appliedAt: '2026-01-01T11:59:00Z', isReady: true, detail: '', address: '192.0.2.1' }
const observed = (more: Partial<Observed> = {}): Observed => ({
  row: ROW,
  settings: { publicIpv4: true, digest: 'd' },
  network: NETWORK,
  cluster: CLUSTER,
  pools: [POOL],
  silence: '',
  clustersHosted: 0,
  ...more,
})
const IN_PROCESS: Status = { process: PROCESS }

const decide = (root: HostObject, seen: Observed, now = NOW) => {
  const actions = plan(root, seen, now)
  const of = <Kind extends (typeof actions)[number]['do']>(kind: Kind) =>
    actions.filter((action): action is Extract<(typeof actions)[number], { do: Kind }> => action.do === kind)
  const [operation] = of('operation')
  return {
    step: operation?.step,
    outcome: operation?.outcome,
    error: operation?.error,
    effects: of('effect').map(({ name }) => name),
    made: of('ensure').map(({ type }) => type.kind),
    removed: of('remove').map(({ type }) => type.kind),
    drafts: of('ensure').map(({ draft }) => draft),
    reason: of('status')
      .at(-1)
      ?.conditions?.find(({ type }) => type === 'Ready')?.reason,
    status: of('status').at(-1)?.status,
    waits: of('wait').map((wait) => wait.for),
    isGone: of('finalized').length > 0,
  }
}

describe('it is made', () => {
  test.each([
    [
      'there are no settings',
      observed({ settings: { obstacle: 'none' } }),
      host(),
      { step: 'claimed', effects: [], made: [] },
    ],
    [
      'nothing is there',
      observed({ row: undefined }),
      host(),
      { step: 'claimed', effects: ['claim'], made: ['Namespace'] },
    ],
    ['it is claimed', observed({ network: undefined }), host(), { step: 'network', made: ['Namespace', 'Network'] }],
    ['its network is under way', observed({ network: part('n', {}, {}) }), host(), { step: 'network', made: [] }],
    [
      'it has a network',
      observed({ cluster: undefined }),
      host(),
      { step: 'control_plane', made: ['KubernetesCluster'] },
    ],
    ['its cluster is under way', observed({ cluster: part('c', {}, {}) }), host(), { step: 'control_plane', made: [] }],
    [
      'its cluster has no volumes yet',
      observed({ cluster: part('c', {}, { isMade: true, addons: [ADDONS[1]] }) }),
      host(),
      { step: 'control_plane', made: [], waits: ['csi-driver of its cluster to run'] },
    ],
    ['it has a cluster', observed({ pools: [] }), host(), { step: 'nodes', made: ['NodePool'] }],
    [
      'its nodes are under way',
      observed({ pools: [part(names.pools[0]?.name ?? '', {}, {})] }),
      host(),
      { step: 'nodes', made: [] },
    ],
    ['it has nodes', observed(), host(), { step: 'host', effects: ['install'], status: { nodesReady: 1 } }],
    [
      'its process is not ready',
      observed(),
      host({ process: { ...PROCESS, isReady: false, detail: 'no image' } }),
      { step: 'host', effects: ['install'], waits: ['its host process: no image'] },
    ],
    [
      'its process is of other settings',
      observed({ settings: { publicIpv4: true, digest: 'other' } }),
      host(IN_PROCESS),
      { step: 'host', effects: ['install'] },
    ],
    [
      'it is silent',
      observed({ silence: 'it does not answer' }),
      host(IN_PROCESS),
      { step: 'registered', effects: [] },
    ],
    ['nobody has asked it', observed({ silence: undefined }), host(IN_PROCESS), { step: 'registered', effects: [] }],
    ['it answers', observed(), host(IN_PROCESS), { step: 'registered', effects: ['register'], outcome: undefined }],
    [
      'it is registered',
      observed({ row: { ...ROW, url: 'https://192.0.2.1' } }),
      host(IN_PROCESS),
      { outcome: 'succeeded', effects: [], status: { isMade: true }, reason: 'Running' },
    ],
  ] as const)('when %s', (_, seen, root, expected) => {
    expect(decide(root, seen)).toMatchObject(expected)
  })

  test('its cluster is run elsewhere, and is nobody else’s', () => {
    const [cluster] = decide(host(), observed({ cluster: undefined })).drafts
    expect(cluster).toMatchObject({
      metadata: { namespace: NAMESPACE, name: names.cluster, ownerReferences: [{ kind: 'KubernetesHost', name: ID }] },
      spec: { zone: 'eu-2a', networkId: names.network, controlPlaneRegion: 'eu-1', registersInPlatform: false },
    })
    const [pool] = decide(host(), observed({ pools: [] })).drafts
    expect(pool).toMatchObject({ spec: { count: 2, plan: 'big', zone: 'eu-2a', version: '1.36', publicIpv4: true } })
  })

  test('a control plane that only counts is none', () => {
    const cluster = part('c', {}, { isMade: true, isSimulated: true, addons: ADDONS })
    expect(decide(host(), observed({ cluster }))).toMatchObject({ outcome: 'failed', step: 'control_plane' })
  })
})

describe('what cannot be made', () => {
  const failing = (createdAt?: string) =>
    observed({ cluster: part('c', {}, { operation: ended('own', 'failed', 'no memory') }, createdAt) })

  test('it fails with the reason, and nobody speaks to it', () => {
    const decided = decide(host(), failing())
    expect(decided).toMatchObject({ outcome: 'failed', step: 'control_plane', effects: [], reason: 'Error' })
    expect(decided.error).toBe('its control plane: no memory')
  })

  test('leftovers of an earlier attempt are created again', () => {
    const decided = decide(host(), failing('2026-01-01T10:00:00Z'))
    expect(decided).toMatchObject({ outcome: undefined, removed: ['KubernetesCluster'], step: 'control_plane' })
    const going = part('c', {}, {}) as { metadata: object }
    const cluster = { ...going, metadata: { ...going.metadata, deletionTimestamp: 'now' } } as never
    expect(decide(host(), observed({ cluster }))).toMatchObject({ removed: [], made: [] })
  })

  test('it ends at its deadline, with what is waited for', () => {
    const late = new Date('2026-01-01T13:00:01Z')
    const decided = decide(host({ process: { ...PROCESS, isReady: false, detail: 'no image' } }), observed(), late)
    expect(decided).toMatchObject({ outcome: 'failed', step: 'host' })
    expect(decided.error).toContain('its host process: no image')
  })

  test('then it is left as it is', () => {
    const over = { operation: { ...ended('op', 'failed', 'no memory') } } as Status
    expect(decide(host(over), observed({ cluster: undefined }))).toMatchObject({
      made: [],
      effects: [],
      reason: 'Error',
    })
  })
})

describe('once it is made', () => {
  const made = (process: Status['process'] = PROCESS) =>
    host({ isMade: true, process, operation: ended('op', 'succeeded') } as Status)
  const at = observed({ row: { ...ROW, url: 'https://192.0.2.1' } })

  test.each([
    ['all is well', at, made(), { effects: [], reason: 'Running' }],
    ['it is silent', { ...at, silence: 'it does not answer' }, made(), { effects: [], reason: 'Silent' }],
    [
      'its settings are others',
      { ...at, settings: { publicIpv4: true, digest: 'o' } },
      made(),
      { effects: ['install'] },
    ],
    ['an hour has gone', at, made({ ...PROCESS, appliedAt: '2026-01-01T11:00:00Z' }), { effects: ['install'] }],
    ['its address is another', at, made({ ...PROCESS, address: '2001:db8::1' }), { effects: ['register'] }],
  ] as const)('when %s', (_, seen, root, expected) => {
    expect(decide(root, seen)).toMatchObject(expected)
  })
})

describe('it goes', () => {
  const going = host({ isMade: true, operation: ended('op', 'succeeded') } as Status, {
    metadata: { deletionTimestamp: '2026-01-01T12:00:00Z' },
  })
  const registered = { ...ROW, url: 'https://192.0.2.1' }
  const leaving = part(names.cluster, { operation: { id: 'o', kind: 'kubernetes_cluster.delete' } }, {})
  test.each([
    ['clusters are there', observed({ clustersHosted: 2, row: registered }), { effects: [], removed: [] }],
    ['it is registered', observed({ row: registered }), { effects: ['forget'], removed: [], isGone: false }],
    ['it has a cluster', observed(), { effects: ['dismantle'], isGone: false }],
    ['its cluster goes', observed({ cluster: leaving }), { effects: [], removed: [], isGone: false }],
    ['its cluster is gone', observed({ cluster: undefined }), { removed: ['NodePool', 'Network'], isGone: false }],
    [
      'all is gone',
      observed({ cluster: undefined, pools: [], network: undefined }),
      { effects: ['forget'], isGone: true },
    ],
  ] as const)('when %s', (_, seen, expected) => {
    expect(decide(going, seen)).toMatchObject(expected)
  })

  test('also while it is being made', () => {
    const root = host({}, { metadata: { deletionTimestamp: '2026-01-01T12:00:00Z' } })
    expect(decide(root, observed())).toMatchObject({ outcome: 'cancelled', effects: ['dismantle'] })
  })
})
