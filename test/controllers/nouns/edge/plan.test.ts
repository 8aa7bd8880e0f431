/** What the controller of edges decides, row by row, with the states of the contract's table. */
import { describe, expect, test } from 'vitest'
import { edgeDemands, requiredGrant } from '../../../../controllers/nouns/edge/machines.ts'
import type { EdgeObject, Observed } from '../../../../controllers/nouns/edge/observed.ts'
import { plan } from '../../../../controllers/nouns/edge/plan.ts'
import { type Machine, machineName } from '../../../../controllers/nouns/managed-machine/index.ts'
import { numberOf } from '../../../../resources/load-balancer/index.ts'
import { edgeConfiguration, Edge, type EdgeSpec, type EdgeStatus } from '../../../../resources/edge/index.ts'
import type { OperationStanza } from '../../../../resources/kit/shapes.ts'
import { progressOf } from '../../../progress.ts'
import { STARTED } from '../managed-machine/started.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const LATER = new Date('2026-01-01T00:15:00Z')
const SPEC: EdgeSpec = {
  zone: 'z',
  networkId: 'n1',
  name: 'e',
  roles: ['nat_gateway'],
  placement: 'combined',
  plan: 'tiny',
  sshKeys: [],
  members: [],
}
const NETWORK = { uid: 'nu', ipv4Cidr: '10.1.0.0/24', ipv6Prefix: 'fd00:1::/64', isAtRouter: false }
const GATEWAY = { ipv4: '10.1.0.5', ipv6: 'fd00:1::5' }
const stanza = (action: string, kind: 'edge.sync' | 'edge.delete' = 'edge.sync') => ({
  id: 'op',
  kind,
  requestedAt: NOW.toISOString(),
  deadlineAt: '2026-01-01T00:30:00Z',
  actor: 'user:x',
  requestId: 'request',
  arguments: { action },
})
const edge = (spec: Partial<EdgeSpec> = {}, status?: Partial<EdgeStatus>, metadata: object = {}): EdgeObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Edge',
  metadata: { name: 'e1', namespace: 'acct-a', uid: 'eu', generation: 1, ...metadata },
  spec: { ...SPEC, ...spec },
  ...(status === undefined ? {} : { status: status as EdgeStatus }),
})
const SEEN: Observed = {
  accountId: 'a',
  claim: { networkId: 'n1', gateway: undefined },
  hasNetworks: true,
  network: NETWORK,
  resolvers: [],
  machines: [],
  lost: [],
  pair: undefined,
  routerDigest: undefined,
  installed: undefined,
  serversWithoutIpv4: [],
  edits: [],
  editor: 'user:x',
}
const OWNER = { uid: 'eu' }

/** The machine of all roles, as it is when nothing is wrong with it. */
function machine(object: EdgeObject, more: Partial<Machine> = {}): Machine {
  const bare: Machine = {
    ...STARTED,
    role: 'combined',
    serverId: machineName(OWNER, 'combined'),
    serverUid: 'su',
    plan: 'tiny',
    createdAt: NOW.toISOString(),
    node: 'h1',
    publicIpv4: '192.0.2.7',
    publicIpv6: '2001:db8::7',
    publicIpv6Prefix: '2001:db8::/64',
    publicMacAddress: '52:54:00:00:00:01',
    interfaces: [
      { networkId: 'n1', macAddress: '52:54:00:00:00:05', ipv4Address: GATEWAY.ipv4, ipv6Address: GATEWAY.ipv6 },
    ] as Machine['interfaces'],
    isHealthy: true,
    judgedSince: NOW.toISOString(),
    reportedAt: NOW.toISOString(),
  }
  const [demand] = edgeDemands(object, { ...SEEN, machines: [bare] })
  const { configuration, sharedAddresses = [] } = demand ?? {}
  return { ...bare, sharedAddresses, delivered: configuration, running: configuration, ...more }
}

interface Decided {
  /** Effects, changes and the end of the operation, in words. */
  readonly does: string
  readonly state: unknown
  readonly status: Readonly<Record<string, unknown>>
  readonly started: unknown
  readonly events: readonly unknown[]
}

function decide(object: EdgeObject, seen: Partial<Observed> = {}, now = NOW): Decided {
  const actions = plan(object, { ...SEEN, ...seen }, now)
  const status = Object.assign({}, ...actions.map((action) => (action.do === 'status' ? action.status : {})))
  const change = actions.find((action) => action.do === 'change')
  return {
    does: actions
      .flatMap((action) => {
        if (action.do === 'effect') return action.name === 'audit' ? [] : [action.name]
        if (action.do === 'operation')
          return [`${action.step}${action.outcome === undefined ? '' : ` ${action.outcome}`}`]
        return action.do === 'ensure' || action.do === 'remove' ? [`${action.do} ${action.type.kind}`] : []
      })
      .join(', '),
    state: status['state'],
    status,
    started: change?.do === 'change' ? (change.patch['spec'] as { operation: unknown }).operation : undefined,
    events: actions.flatMap((action) => (action.do === 'operation' ? (action.events ?? []) : [])),
  }
}

const GRANTED = { plan: 'tiny', machines: ['combined'], hasPair: false }
const CREATING = edge({ operation: stanza('create') }, { granted: GRANTED })
const asRun = (more: Partial<EdgeStatus> = {}, spec: Partial<EdgeSpec> = {}): EdgeObject => {
  const object = edge(spec)
  const configuration = edgeConfiguration(object)
  const asked = configuration.fingerprint
  return edge(spec, { state: 'running', configuration, asked, granted: requiredGrant(object), ...more })
}

test('claims its network, makes its machine, configures it, and routes the network to it', () => {
  expect(decide(CREATING, { claim: undefined })).toMatchObject({ does: 'claim, claimed', state: 'creating' })
  expect(decide(CREATING)).toMatchObject({ does: 'ensure Server, machines', state: 'creating' })
  const told = machine(CREATING, { delivered: undefined, running: undefined, isHealthy: false })
  expect(decide(CREATING, { machines: [told] }).does).toBe('deliver, machines')
  expect(decide(CREATING, { machines: [machine(CREATING)] }).does).toBe('announce, announced')
})

test('waits for its network, and for hosts that follow', () => {
  expect(decide(CREATING, { network: undefined })).toMatchObject({ does: 'claimed', state: 'creating' })
  const installing = edge({ operation: stanza('create') }, { appliedSequence: 7, granted: GRANTED })
  const machines = [machine(CREATING)]
  const led = { machines, claim: { networkId: 'n1', gateway: GATEWAY }, network: { ...NETWORK, isAtRouter: true } }
  expect(decide(installing, { ...led, installed: 6 }).does).toBe('announced')
  expect(decide(installing, { ...led, installed: 7 })).toMatchObject({ does: 'announced succeeded', state: 'running' })
})

test('creating: fails by what is refused, and by its deadline', () => {
  const refusal = { type: 'Claimed', status: 'False' as const, reason: 'InUse', message: 'in use' }
  const refused = edge(
    { operation: stanza('create') },
    { conditions: [{ ...refusal, lastTransitionTime: '', observedGeneration: 1 }] },
  )
  expect(decide(refused, { claim: undefined })).toMatchObject({ does: 'claimed failed', state: 'error' })
  const late = decide(CREATING, {}, new Date('2026-01-01T00:31:00Z'))
  expect(late).toMatchObject({ does: 'ensure Server, machines failed', state: 'error' })
})

test('running: an update keeps it running', () => {
  const before = asRun()
  const asked = edge({ plan: 'small', operation: stanza('update') }, before.status)
  expect(decide(asked, { machines: [machine(before)] })).toMatchObject({ does: 'claim, claimed', state: 'running' })
  const changed = { ...asked, status: { ...asked.status, granted: { ...GRANTED, plan: 'small' } } }
  const decided = decide(changed, { machines: [machine(before)] })
  expect(decided).toMatchObject({ does: 'remove Server, announce, machines', state: 'running' })
  expect(decided.status['configuration']).toMatchObject({ generation: 2 })
})

test('running: one that is not healthy is repaired by the platform, and the edge runs on', () => {
  const object = asRun()
  const broken = machine(object, { isHealthy: false, detail: 'tayga has ended' })
  expect(decide(object, { machines: [broken] }).started).toMatchObject({
    kind: 'edge.sync',
    arguments: { action: 'repair' },
    actor: 'system:controllers',
  })
  const repairing = edge({ operation: stanza('repair') }, object.status)
  const decided = decide(repairing, { machines: [broken] })
  expect(decided.state).toBe('running')
  expect(decided.status['machines']).toMatchObject([{ isHealthy: false, healthDetail: 'tayga has ended' }])
  expect(decide(object, { machines: [machine(object)] }).started).toBeUndefined()
})

test('running: error only when a role has no machine for fifteen minutes', () => {
  const repairing = edge(
    { operation: stanza('repair') },
    asRun({ lostSince: { nat_gateway: NOW.toISOString() } }).status,
  )
  const just = new Date(LATER.getTime() - 1)
  expect(decide(repairing, {}, just).state).toBe('running')
  expect(decide(repairing, {}, LATER).state).toBe('error')
  expect(decide(repairing, { machines: [machine(repairing)] }, LATER).state).toBe('running')
})

test('error: a sync that succeeds makes it run', () => {
  const object = edge({ operation: stanza('update') }, asRun({ state: 'error' }).status)
  const led = { claim: { networkId: 'n1', gateway: GATEWAY }, network: { ...NETWORK, isAtRouter: true } }
  expect(decide(object, { machines: [machine(object)], ...led })).toMatchObject({
    does: 'announced succeeded',
    state: 'running',
  })
})

test('repairs that fail are tried ever more rarely, and the condition says when', () => {
  let object = asRun()
  let now = NOW
  const pauses: number[] = []
  for (let attempt = 1; attempt <= 6; attempt += 1) {
    const started = decide(object, {}, now).started as OperationStanza
    expect(started, `attempt ${attempt}`).toMatchObject({ kind: 'edge.sync', arguments: { action: 'repair' } })
    const operation = { ...progressOf(started, { status: 'failed' }), finishedAt: now.toISOString() }
    const generation = (object.metadata.generation ?? 0) + 1
    object = edge({ operation: started }, { ...object.status, operation } as EdgeStatus, { generation })
    const minutes = [5, 10, 20, 40, 60, 61].find(
      (each) => decide(object, {}, new Date(now.getTime() + each * 60_000)).started !== undefined,
    )
    pauses.push(minutes ?? Number.NaN)
    now = new Date(now.getTime() + (minutes ?? 0) * 60_000)
    const waiting = plan(object, SEEN, new Date(now.getTime() - 1)).find((action) => action.do === 'status')
    const message = `The machine combined is missing. The next repair starts at ${now.toISOString()}.`
    expect(waiting).toMatchObject({
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Ready', status: 'False', message })]),
    })
  }
  expect(pauses).toEqual([5, 10, 20, 40, 60, 60])
})

describe('past the API', () => {
  /** The object after its newest operation has failed, so many minutes after it was requested. */
  const failedAfter = (object: EdgeObject, minutes: number, spec: Partial<EdgeSpec> = {}): EdgeObject => {
    const started = decide(object, {}, NOW).started as OperationStanza
    const finishedAt = new Date(NOW.getTime() + minutes * 60_000).toISOString()
    const operation = { ...progressOf(started, { status: 'failed' }), finishedAt }
    const generation = (object.metadata.generation ?? 0) + 1
    const asked = edgeConfiguration(object).fingerprint
    const status = { ...object.status, state: 'error', asked, operation } as EdgeStatus
    return edge({ ...object.spec, ...spec, operation: started }, status, { generation })
  }
  const inMinutes = (object: EdgeObject, minutes: number) =>
    // nobody has edited it since
    decide(object, { editor: '' }, new Date(NOW.getTime() + minutes * 60_000)).started

  test.each([
    ['creation', 'create', edge()],
    ['edit', 'update', { ...asRun(), spec: { ...SPEC, plan: 'small' } }],
  ])('a %s that ran out of time starts again after a pause that grows', (_what, action, object) => {
    const { deadlineAt } = decide(object, {}, NOW).started as OperationStanza
    const minutes = (Date.parse(deadlineAt) - NOW.getTime()) / 60_000
    const once = failedAfter(object, minutes)
    expect(inMinutes(once, minutes + 4)).toBeUndefined()
    const again = inMinutes(once, minutes + 5)
    expect(again).toMatchObject({ kind: 'edge.sync', arguments: { action, attempt: '2' }, actor: 'user:x' })
    const late = Date.parse((again as OperationStanza).deadlineAt)
    const operation = progressOf(again as OperationStanza, { status: 'failed' })
    const twice = edge(
      { ...once.spec, operation: again as OperationStanza },
      { ...once.status, operation: { ...operation, finishedAt: new Date(late).toISOString() } } as EdgeStatus,
      { generation: (once.metadata.generation ?? 0) + 1 },
    )
    const second = (late - NOW.getTime()) / 60_000
    expect(inMinutes(twice, second + 9)).toBeUndefined()
    expect(inMinutes(twice, second + 10)).toMatchObject({ arguments: { action, attempt: '3' } })
  })

  test('one that was refused waits for another edit', () => {
    const refused = failedAfter({ ...asRun(), spec: { ...SPEC, plan: 'small' } }, 1)
    const kept = { ...refused, status: { ...refused.status, state: 'running' } as EdgeStatus }
    const started = decide(kept, { machines: [machine(asRun())] }, LATER).started as OperationStanza | undefined
    expect(started?.arguments?.['action']).not.toBe('update')
    const metadata = { ...kept.metadata, generation: (kept.metadata.generation ?? 0) + 1 }
    expect(inMinutes({ ...kept, metadata, spec: { ...kept.spec, plan: 'large' } }, 2)).toMatchObject({
      arguments: { action: 'update' },
    })
  })
})

test('what an account may not pay for is not made, by no repair either, and what it has is kept whole', () => {
  const before = asRun({}, { roles: ['bastion'], placement: 'separate' })
  const wish = { roles: ['bastion', 'nat_gateway'], placement: 'separate', plan: 'small' } as const
  const conditions = [
    { type: 'Claimed', status: 'False' as const, reason: 'AccountSuspended', message: 'no', lastTransitionTime: '' },
  ].map((each) => ({ ...each, observedGeneration: 1 }))
  const refused = edge(
    { ...wish, roles: [...wish.roles], operation: stanza('update') },
    { ...before.status, conditions },
  )
  expect(decide(refused)).toMatchObject({ does: 'claimed failed', state: 'running' })
  const own = machine(before, { role: 'bastion', serverId: machineName(OWNER, 'bastion') })
  const kept = { ...refused, spec: { ...refused.spec, operation: stanza('repair') } }
  const [demand] = edgeDemands(kept, { ...SEEN, machines: [own] })
  expect(demand).toMatchObject({ role: 'bastion', plan: 'tiny' })
  expect(decide(kept, { machines: [] }).does).toBe('ensure Server, machines')
  const told = { delivered: demand?.configuration, running: demand?.configuration }
  expect(decide(kept, { machines: [{ ...own, ...told }] })).toMatchObject({
    does: 'announced succeeded',
    status: { granted: { plan: 'tiny', machines: ['bastion'], hasPair: false } },
  })
})

test('an edit past the API gets its operation', () => {
  expect(decide(edge()).started).toMatchObject({ kind: 'edge.sync', arguments: { action: 'create' } })
  const edited = edge({ plan: 'small' }, asRun().status)
  expect(decide(edited).started).toMatchObject({ arguments: { action: 'update' }, actor: 'user:x' })
  const removed = edge({}, asRun().status, { deletionTimestamp: NOW.toISOString() })
  expect(decide(removed).started).toMatchObject({ kind: 'edge.delete', arguments: { action: 'delete' } })
})

test('a gateway that goes is withdrawn first, and who loses IPv4 by that is named', () => {
  const servers = Array.from({ length: 120 }, (_, index) => `s${index}`)
  const object = edge({ roles: ['bastion'], operation: stanza('update') }, asRun().status)
  const decided = decide(object, {
    claim: { networkId: 'n1', gateway: GATEWAY },
    machines: [machine(object)],
    serversWithoutIpv4: servers,
  })
  expect(decided.does).toBe('announce, machines')
  expect(decided.events).toMatchObject([{ kind: 'warning', data: { server_ids: servers.slice(0, 100) } }])
})

test.each([
  ['withdraws first', { claim: { networkId: 'n1', gateway: GATEWAY } }, 'announce, withdrawn'],
  ['then takes its machines away', { machines: true }, 'remove Server, machines'],
  ['then gives everything back', {}, 'release, released succeeded'],
])('any state: deletion %s', (_words, seen, does) => {
  for (const state of ['creating', 'running', 'error'] as const) {
    const object = edge({ operation: stanza('delete', 'edge.delete') }, asRun({ state }).status, {
      deletionTimestamp: NOW.toISOString(),
    })
    const machines = 'machines' in seen ? [machine(object)] : []
    expect(decide(object, { ...seen, machines })).toMatchObject({ does, state: 'deleting' })
  }
})

/** Of an edge whose load balancer has a separate role. */
const PAIRED: Partial<EdgeSpec> = {
  roles: ['load_balancer'],
  placement: 'separate',
  members: [{ name: 'web', frontendPort: 80, address: '10.1.0.9', port: 8080, weight: 100, enabled: true }],
}
/** As the edge has it made, and how it is. */
function pairOf(object: EdgeObject, status: object = {}): NonNullable<Observed['pair']> {
  const made = plan(object, SEEN, NOW).find((action) => action.do === 'ensure')
  if (made?.do !== 'ensure') throw new Error('nothing is made')
  const pair = { apiVersion: '', kind: 'LoadBalancer', ...made.draft } as NonNullable<Observed['pair']>
  const running = { isMade: true, isHealthy: true, applied: numberOf(pair.spec) }
  return { ...pair, status: { ...running, ...status } as NonNullable<typeof pair.status> }
}
const pairing = (more: Partial<EdgeSpec> = {}): EdgeObject => {
  const spec = { ...PAIRED, ...more, operation: stanza('update') }
  return edge(spec, { granted: requiredGrant(edge(spec)) })
}

describe('separate placement', () => {
  test('has a managed load balancer for the role, which forwards to its members', () => {
    const pair = pairOf(pairing())
    expect(pair).toMatchObject({
      metadata: { namespace: 'acct-a', ownerReferences: [{ kind: 'Edge', uid: 'eu' }] },
      spec: {
        managedBy: 'edge:e1',
        publicIpv4: true,
        frontends: [{ port: 80, mode: 'tcp', backend: 'port-80' }],
        backends: [{ name: 'port-80', members: [{ name: 'web', address: '10.1.0.9', port: 8080 }] }],
      },
    })
    expect(edgeDemands(pairing(), SEEN)).toEqual([])
  })

  test.each([
    ['is being made', { isMade: undefined }],
    ['runs another configuration', { applied: { generation: 1, digest: 'of before' } }],
    ['is not healthy', { isHealthy: false }],
  ])('is not done while that %s', (_words, status) => {
    expect(decide(pairing(), { pair: pairOf(pairing(), status) }).does).toBe('machines')
  })

  test('is done when that is, and says where it answers', () => {
    const addresses = ['192.0.2.9', '2001:db8::9', '10.1.0.8']
    const [publicIpv4, publicIpv6, privateIpv4] = addresses
    const status = { publicIpv4, publicIpv6, privateIpv4 }
    const pair = pairOf(pairing(), status)
    expect(decide(pairing(), { pair })).toMatchObject({
      does: 'announced succeeded',
      state: 'running',
      status: { balancer: { id: pair.metadata.name, isHealthy: true, addresses } },
    })
  })

  test('hands a change of members on, and keeps the plan that it was made with', () => {
    const pair = pairOf(pairing())
    const changed = pairing({ plan: 'small', members: [] })
    const actions = plan(changed, { ...SEEN, pair }, NOW)
    expect(actions.find((action) => action.do === 'ensure')).toMatchObject({
      draft: { metadata: { name: pair.metadata.name }, spec: { plan: 'tiny', frontends: [], backends: [] } },
    })
  })

  test('replaces one that could not be made, and removes it with the role and with the edge', () => {
    const operation = { id: 'x', status: 'failed' }
    const unmade = pairOf(pairing(), { isMade: undefined, operation })
    expect(decide(pairing(), { pair: unmade }).does).toBe('remove LoadBalancer, machines')
    const pair = pairOf(pairing())
    expect(decide(pairing({ roles: ['bastion'], members: [] }), { pair }).does).toMatch(/remove LoadBalancer/)
    const deleted = { deletionTimestamp: NOW.toISOString() }
    const removed = edge({ ...PAIRED, operation: stanza('delete', 'edge.delete') }, asRun({}, PAIRED).status, deleted)
    expect(decide(removed, { pair }).does).toBe('remove LoadBalancer, machines')
    const leaving = { ...pair, metadata: { ...pair.metadata, ...deleted } }
    expect(decide(removed, { pair: leaving }).does).toBe('machines')
    expect(decide(removed).does).toBe('release, released succeeded')
  })

  test('is repaired when that was changed or deleted past the platform; error when it answers nowhere', () => {
    const pair = pairOf(pairing())
    const nodes = [{ id: 'a', role: 'active', isHealthy: true, addresses: [], configurationGeneration: 1 }]
    const whole = { ...pair, status: { ...pair.status, nodes } } as typeof pair
    const repair = { kind: 'edge.sync', arguments: { action: 'repair' }, actor: 'system:controllers' }
    const running = asRun({}, PAIRED)
    expect(decide(running, { pair: whole }).started).toBeUndefined()
    expect(decide(running).started).toMatchObject(repair)
    const emptied = { ...whole, spec: { ...whole.spec, frontends: [], backends: [] } }
    expect(decide(running, { pair: emptied }).started).toMatchObject(repair)
    const lost = edge(
      { ...PAIRED, operation: stanza('repair') },
      asRun({ lostSince: { load_balancer: NOW.toISOString() } }, PAIRED).status,
    )
    const answering = (isThere: boolean) =>
      ({ ...pair, status: { ...pair.status, isHealthy: false, nodes: isThere ? nodes : [] } }) as typeof pair
    expect(decide(lost, { pair: answering(false) }, LATER).state).toBe('error')
    expect(decide(lost, { pair: answering(true) }, LATER).state).toBe('running')
  })

  test('is not made for an account that may not pay for it', () => {
    const refused = edge({ ...PAIRED, operation: stanza('repair') }, { ...asRun().status, granted: GRANTED })
    expect(decide(refused).does).not.toMatch(/LoadBalancer/)
  })
})

test('one whose deletion was requested is deleted in Kubernetes first, however its operation says so', () => {
  const { arguments: _none, ...requested } = stanza('delete', 'edge.delete')
  for (const operation of [requested, stanza('delete', 'edge.delete')]) {
    const object = edge({ operation }, asRun({}).status)
    expect(plan(object, SEEN, NOW)).toEqual([{ do: 'remove', type: Edge, key: { namespace: 'acct-a', name: 'e1' } }])
  }
})
