/** What the controller of node pools decides, situation by situation. */
import { expect, test } from 'vitest'
import { storedOf } from '../../../../resources/kit/shapes.ts'
import { DRAIN_MINUTES } from '../../../../domain/node-pool/rules.ts'
import { machineName, type Machine } from '../../../../controllers/nouns/managed-machine/index.ts'
import { nodeDemand, nodeDocument, slotsOf } from '../../../../controllers/nouns/node-pool/nodes.ts'
import { plan } from '../../../../controllers/nouns/node-pool/plan.ts'
import type { NodePoolObject, Observed } from '../../../../controllers/nouns/node-pool/observed.ts'
import type { ControlPlaneNode, ServingRequest } from '../../../../integrations/control-planes/control.ts'
import { poolStateOf } from '../../../../resources/node-pool/index.ts'
import {
  at,
  CLUSTER,
  decide,
  JOIN,
  machineOf,
  MARKED,
  nameOf,
  nodeOf,
  observedWith,
  operationOf,
  poolWith,
  running,
  UID,
} from './situations.ts'

test('a new pool claims its name, makes its servers, has a token, and hands it to those that wait', () => {
  const creating = poolWith({ operation: operationOf('create'), status: { isMade: undefined as never } })
  expect(decide(creating, observedWith({ cluster: undefined, clusterClaim: undefined })).step).toBe('claimed')
  expect(decide(creating, observedWith({ isClaimed: false })).effects).toEqual({
    claim: { accountId: 'a', nodePoolId: 'p', clusterId: 'shop', name: 'web' },
  })
  expect(decide(creating, observedWith({ api: { obstacle: 'its cluster to run' } }))).toMatchObject({
    made: [],
    step: 'servers',
    outcome: undefined,
  })
  const made = decide(creating, observedWith())
  expect([made.made, made.effects, made.step]).toEqual([[nameOf(0)], {}, 'servers'])
  // Nothing is delivered before there is what it joins with.
  const booting = decide(creating, observedWith({ machines: [machineOf(0, { state: 'starting' })] }))
  expect(Object.keys(booting.effects)).toEqual(['issue'])
  const withToken = poolWith({ operation: operationOf('create'), status: { isMade: undefined as never, join: JOIN } })
  const delivering = decide(withToken, observedWith({ machines: [machineOf(0)] }))
  expect(delivering.effects).toMatchObject({ deliver: { role: 'n0', node: 'h1', managedBy: 'node_pool:p' } })
  expect(delivering.step).toBe('ready')
  // An old token is replaced, and so is what was delivered with it.
  const old = poolWith({ operation: operationOf('create'), status: { join: { ...JOIN, expiresAt: at(14) } } })
  const { issue } = decide(old, observedWith({ machines: [machineOf(0)] })).effects
  expect(issue).toMatchObject({ tokenId: expect.stringMatching(/^[0-9a-f]{6}$/) })
  expect(issue).not.toEqual({ tokenId: JOIN.tokenId })
})

test('a pool is made once its nodes are ready with their labels, and its token goes', () => {
  const creating = (status = {}) =>
    poolWith({ operation: operationOf('create'), status: { isMade: undefined as never, ...status } })
  const world = (node: Partial<ControlPlaneNode> = {}) => ({ machines: [machineOf(0)], nodes: [nodeOf(0, node)] })
  const unready = decide(creating({ join: JOIN }), running(creating(), world({ isReady: false })))
  expect([unready.step, unready.outcome, unready.effects]).toEqual([
    'ready',
    undefined,
    { revoke: { tokenId: 'abcdef' } },
  ])
  const unmarked = decide(creating(), running(creating(), world({ marked: '' })))
  expect([unmarked.outcome, unmarked.effects]).toEqual([
    undefined,
    { mark: { names: [nameOf(0)], marks: expect.objectContaining({ digest: MARKED }) } },
  ])
  const whole = decide(creating(), running(creating(), world()))
  expect(whole).toMatchObject({ outcome: 'succeeded', status: { isMade: true }, effects: {} })
  expect(whole.status['nodes']).toMatchObject([{ hostname: nameOf(0), isReady: true, kubeletVersion: 'v1.36.3' }])
  const late = decide(creating(), running(creating(), world({ isReady: false })), new Date(at(60)))
  expect([late.outcome, late.status['fault']]).toEqual(['failed', undefined])
})

test('requests of kubelets are approved for servers that it made, and no others', () => {
  const asks = (more: Partial<ServingRequest> = {}): ServingRequest => ({
    name: 'csr-1',
    username: `system:node:${nameOf(0)}`,
    groups: ['system:nodes', 'system:authenticated'],
    usages: ['digital signature', 'server auth'],
    commonName: `system:node:${nameOf(0)}`,
    organizations: ['system:nodes'],
    dnsNames: [nameOf(0)],
    ipAddresses: ['10.1.0.10'],
    hasMore: false,
    ...more,
  })
  const approved = (request: ServingRequest, machine: Partial<Machine> = {}) => {
    const world = { machines: [machineOf(0, machine)], nodes: [nodeOf(0)], requests: [request] }
    return decide(poolWith(), running(poolWith(), world)).effects['approve']
  }
  expect(approved(asks())).toEqual({ requests: ['csr-1'] })
  expect(approved(asks({ ipAddresses: ['10.1.0.10', '2001:2::5', 'fd00::5'] }))).toEqual({ requests: ['csr-1'] })
  const refused: readonly Partial<ServingRequest>[] = [
    { username: 'system:node:other' },
    { commonName: 'system:node:other' },
    { groups: ['system:authenticated'] },
    { organizations: ['system:masters'] },
    { organizations: ['system:nodes', 'system:masters'] },
    { usages: ['client auth'] },
    { usages: ['server auth', 'client auth'] },
    { dnsNames: [nameOf(0), 'kubernetes'] },
    { ipAddresses: [] },
    { ipAddresses: ['10.1.0.10', '10.1.0.11'] },
    { hasMore: true },
  ]
  expect(refused.map((more) => approved(asks(more)))).toEqual(refused.map(() => undefined))
  expect(approved(asks(), { state: 'stopped' })).toBeUndefined()
})

test('a pool grows at once and shrinks from its end, after a drain that heeds budgets for ten minutes', () => {
  const two = { machines: [machineOf(0), machineOf(1)], nodes: [nodeOf(0), nodeOf(1)] }
  const grown = poolWith({ count: 2, operation: operationOf('scale') })
  const one = { machines: [machineOf(0)], nodes: [nodeOf(0)] }
  expect(decide(grown, running(grown, one))).toMatchObject({ made: [nameOf(1)], removed: [], outcome: undefined })

  const shrunk = (drains?: NonNullable<NodePoolObject['status']>['drains']) =>
    poolWith({ operation: operationOf('scale'), status: drains === undefined ? {} : { drains } })
  const first = decide(shrunk(), running(shrunk(), two))
  expect([first.effects, first.removed]).toEqual([{ drain: { names: [nameOf(1)], known: [] } }, []])
  const begun = (since: string, isDone: boolean) => [{ hostname: nameOf(1), since, isDone }]
  const waits = decide(shrunk(begun(at(1 - DRAIN_MINUTES), false)), running(shrunk(), two))
  expect([waits.removed, Object.keys(waits.effects), waits.step]).toEqual([[], ['drain'], 'drained'])
  for (const drains of [begun(at(-1), true), begun(at(-DRAIN_MINUTES), false)])
    expect(decide(shrunk(drains), running(shrunk(), two))).toMatchObject({
      effects: {},
      removed: [machineName({ uid: UID, type: 'node_pool' }, 'n1')],
      outcome: undefined,
    })
  // Its place in the cluster goes with its server, then what is noted of it.
  const leaving = { ...two, machines: [machineOf(0), machineOf(1, { isDeleting: true })] }
  const forgotten = decide(shrunk(begun(at(-1), true)), running(shrunk(), leaving))
  expect([forgotten.effects, forgotten.outcome]).toEqual([{ forget: { names: [nameOf(1)] } }, undefined])
  const gone = decide(shrunk(begun(at(-1), true)), running(shrunk(), one))
  expect(gone).toMatchObject({ outcome: 'succeeded', status: { drains: undefined, followed: expect.any(String) } })
  // One that never joined has nothing to drain.
  const unjoined = decide(shrunk(), running(shrunk(), { ...two, nodes: [nodeOf(0)] }))
  expect(unjoined.removed).toEqual([machineName({ uid: UID, type: 'node_pool' }, 'n1')])
})

test('a pool of an account that may make nothing grows by nobody, and keeps the nodes that it has', () => {
  const whole = { machines: [machineOf(0), machineOf(1)], nodes: [nodeOf(0), nodeOf(1)] }
  const granted = { isMade: true, grantedCount: 2 }
  // by kubectl, past admission
  const grown = poolWith({ count: 3, operation: operationOf('scale'), status: granted })
  const asked = decide(grown, running(grown, { ...whole, mayGrow: false }))
  expect([asked.made, asked.outcome, asked.status]).toMatchObject([[], 'failed', { grantedCount: 2 }])
  // and when nothing is under way
  const idle = poolWith({ count: 3, status: { ...granted, followed: String(asked.status['followed']) } })
  expect(decide(idle, running(idle, { ...whole, mayGrow: false })).made).toEqual([])
  expect(decide(idle, running(idle, whole)).made).toEqual([nameOf(2)])
  // One that has gone comes back.
  const lost = { machines: [machineOf(0)], nodes: [nodeOf(0)], mayGrow: false }
  expect(decide(idle, running(idle, lost)).made).toEqual([nameOf(1)])
})

test('a node whose server is missing without an order stays, and none is made under its name', () => {
  const { serverId } = machineOf(1)
  const known = {
    serverId,
    serverUid: 's1',
    serverCreatedAt: at(-5),
    hostname: nameOf(1),
    state: 'started' as const,
    isReady: true,
    kubeletVersion: 'v1.36.3',
  }
  const pool = poolWith({ count: 2, status: { nodes: [known] } })
  const world = { machines: [machineOf(0)], nodes: [nodeOf(0), nodeOf(1)] }
  const waits = decide(pool, running(pool, world))
  expect([waits.effects, waits.made, waits.removed]).toEqual([{}, [], []])
  expect(waits.status['nodes']).toMatchObject([
    { serverId: machineOf(0).serverId, serverUid: 's0', serverCreatedAt: at(-5) },
    { ...known, state: 'error' },
  ])
  expect(JSON.stringify(plan(pool, running(pool, world), new Date(at(0))))).toMatch(
    /"reason":"ServerMissing","message":"server \S+ of node \S+ to be there: it is missing, and nobody deleted it/,
  )
  // A pool of yesterday wants it no longer: that is no order either.
  const smaller = poolWith({ count: 1 })
  expect(decide(smaller, running(smaller, world)).effects).toEqual({})
  // Its customer deleted the node, and the claims of the server are left.
  const claims = { ...world, nodes: [nodeOf(0)], lost: [serverId] }
  expect(decide(pool, running(pool, claims)).made).toEqual([])
  expect(decide(pool, running(pool, { ...claims, lost: [] })).made).toEqual([nameOf(1)])
  // An order for that server, and the deletion of the pool, are orders for the node.
  expect(decide(pool, running(pool, { ...world, removed: [serverId] }))).toMatchObject({
    effects: { forget: { names: [nameOf(1)] } },
    status: { nodes: [{ state: 'started' }, { state: 'deleting', serverUid: 's1' }] },
  })
  const operation = operationOf('delete', { kind: 'node_pool.delete' })
  const deleting = { ...poolWith({ operation }), metadata: { ...pool.metadata, deletionTimestamp: at(0) } }
  const left = { nodes: [nodeOf(1)], lost: [serverId] }
  expect(decide(deleting, running(deleting, left)).effects).toEqual({ forget: { names: [nameOf(1)] } })
  expect(decide(deleting, running(deleting, { lost: [serverId] })).outcome).toBe('succeeded')
})

test('another version replaces as many nodes at a time as may be away', () => {
  const older = { kubeletVersion: 'v1.35.4' }
  const world = {
    machines: [0, 1, 2].map((number) => machineOf(number)),
    nodes: [0, 1, 2].map((number) => nodeOf(number, older)),
  }
  const upgrading = (maxUnavailable: number, status = {}) =>
    poolWith({ count: 3, spec: { maxUnavailable }, operation: operationOf('upgrade'), status })
  const drained = (pool: NodePoolObject, observed: Observed) =>
    (decide(pool, observed).effects['drain'] as { names: readonly string[] } | undefined)?.names
  expect(drained(upgrading(1), running(upgrading(1), world))).toEqual([nameOf(0)])
  expect(drained(upgrading(2), running(upgrading(2), world))).toEqual([nameOf(0), nameOf(1)])
  // One is away already: nobody else goes.
  const away = { ...world, nodes: [nodeOf(0, older), nodeOf(1, older), nodeOf(2, { ...older, isReady: false })] }
  expect(drained(upgrading(1), running(upgrading(1), away))).toBeUndefined()
  // The first has gone: it comes back under its name once the cluster has forgotten it, and is not drained again.
  const done = { drains: [{ hostname: nameOf(0), since: at(-1), isDone: true }] }
  const without = { ...world, machines: world.machines.slice(1), removed: [machineOf(0).serverId] }
  expect(decide(upgrading(1, done), running(upgrading(1), without))).toMatchObject({
    made: [],
    effects: { forget: { names: [nameOf(0)] } },
  })
  const forgotten = decide(upgrading(1, done), running(upgrading(1), { ...without, nodes: world.nodes.slice(1) }))
  expect([forgotten.made, forgotten.effects, forgotten.status['drains']]).toEqual([[nameOf(0)], {}, undefined])
})

test('a node that its customer switched off stays so, says so, and is replaced first when a newer one comes', () => {
  const off = machineOf(1, { state: 'stopped', desiredPower: 'stopped' })
  const machines = [machineOf(0), off]
  const asItIs = poolWith({ count: 2 })
  const nodes = [nodeOf(0), nodeOf(1, { isReady: false })]
  const world = running(asItIs, { machines, nodes })
  expect(decide(asItIs, world)).toMatchObject({ made: [], removed: [] })
  expect(JSON.stringify(plan(asItIs, world, new Date(at(0))))).toContain(
    `the server of node ${nameOf(1)} to be started`,
  )
  const older = { kubeletVersion: 'v1.35.4' }
  const upgrading = poolWith({ count: 2, operation: operationOf('upgrade') })
  const outdated = [nodeOf(0, older), nodeOf(1, { ...older, isReady: false })]
  expect(decide(upgrading, running(upgrading, { machines, nodes: outdated })).effects).toMatchObject({
    drain: { names: [nameOf(1)] },
  })
})

test('one that is broken is not replaced while as many as may be away are', () => {
  const older = { kubeletVersion: 'v1.35.4' }
  const drains = [{ hostname: nameOf(0), since: at(-1), isDone: true }]
  const upgrading = poolWith({ count: 2, operation: operationOf('upgrade'), status: { drains } })
  const broken = machineOf(1, { isHealthy: false, judgedSince: at(-30), reportedAt: at(-1) })
  const nodes = [nodeOf(0, older), nodeOf(1, older)]
  const nameOfServer = (number: number) => machineName({ uid: UID, type: 'node_pool' }, `n${number}`)
  const goes = { machines: [machineOf(0), broken], nodes }
  expect(decide(upgrading, running(upgrading, goes)).removed).toEqual([nameOfServer(0)])
  const going = { machines: [machineOf(0, { isDeleting: true }), broken], nodes }
  expect(decide(upgrading, running(upgrading, going)).removed).toEqual([])
  const gone = { machines: [broken], nodes: nodes.slice(1) }
  expect(decide(upgrading, running(upgrading, gone)).removed).toEqual([])
  const alone = { machines: [machineOf(0), broken], nodes: [nodeOf(0), nodeOf(1)] }
  const whole = poolWith({ count: 2 })
  expect(decide(whole, running(whole, alone)).removed).toEqual([nameOfServer(1)])
})

test('a cluster that is silent has nothing made and nothing taken away, but for a pool whose deletion waited', () => {
  const silent = { api: { obstacle: 'the API of its cluster to answer' }, machines: [machineOf(0), machineOf(1)] }
  expect(decide(poolWith({ count: 3 }), observedWith(silent))).toMatchObject({ made: [], removed: [], effects: {} })
  const deleting = (minutesAgo = 0) => {
    const pool = poolWith({ operation: operationOf('delete', { kind: 'node_pool.delete' }) })
    return { ...pool, metadata: { ...pool.metadata, deletionTimestamp: at(-minutesAgo) } }
  }
  expect(decide(deleting(DRAIN_MINUTES - 1), observedWith(silent))).toMatchObject({ removed: [], outcome: undefined })
  expect(decide(deleting(DRAIN_MINUTES), observedWith(silent)).removed).toHaveLength(2)
  const answering = { machines: [machineOf(0)], nodes: [nodeOf(0)] }
  expect(decide(deleting(), running(deleting(), answering))).toMatchObject({
    removed: [],
    effects: { drain: { names: [nameOf(0)] } },
  })
  // Of a cluster that goes nothing is drained.
  const going = { ...CLUSTER, metadata: { name: 'shop', namespace: 'acct-a', deletionTimestamp: at(0) } }
  const last = decide(deleting(), running(deleting(), { ...answering, cluster: going }))
  expect([last.removed, last.effects]).toEqual([[machineName({ uid: UID, type: 'node_pool' }, 'n0')], {}])
  expect(decide(deleting(), observedWith())).toMatchObject({
    outcome: 'succeeded',
    effects: { release: { accountId: 'a', nodePoolId: 'p' } },
  })
})

test('an edit starts an operation of its kind, once', () => {
  const followed = { followed: 'another' }
  const idle = decide(
    poolWith({ status: followed }),
    running(poolWith(), { machines: [machineOf(0)], nodes: [nodeOf(0)] }),
  )
  expect(idle.change).toMatchObject({ spec: { operation: { kind: 'node_pool.sync', arguments: { action: 'scale' } } } })
  const older = { machines: [machineOf(0)], nodes: [nodeOf(0, { kubeletVersion: 'v1.35.4' })] }
  expect(decide(poolWith({ status: followed }), running(poolWith(), older)).change).toMatchObject({
    spec: { operation: { arguments: { action: 'upgrade' }, actor: 'user:ada' } },
  })
  const done = decide(
    poolWith({ operation: operationOf('scale') }),
    running(poolWith(), { machines: [machineOf(0)], nodes: [nodeOf(0)] }),
  )
  const same = poolWith({ status: { followed: String(done.status['followed']) } })
  expect(decide(same, running(same, { machines: [machineOf(0)], nodes: [nodeOf(0)] })).change).toBeUndefined()
})

test('what was not done in time is an error until it is done, and then none', () => {
  const scaling = poolWith({ count: 2, operation: operationOf('scale') })
  const one = { machines: [machineOf(0)], nodes: [nodeOf(0)] }
  const late = decide(scaling, running(scaling, one), new Date(at(60)))
  expect([late.outcome, late.status['fault']]).toEqual(['failed', expect.stringContaining('not done in time')])
  const inError = poolWith({ count: 2, status: { fault: 'late' } })
  expect(poolStateOf(storedOf(inError))).toBe('error')
  expect(decide(inError, running(inError, one))).toMatchObject({ made: [nameOf(1)], status: { fault: 'late' } })
  const two = { machines: [machineOf(0), machineOf(1)], nodes: [nodeOf(0), nodeOf(1)] }
  expect(decide(inError, running(inError, two)).status).toMatchObject({ fault: undefined })
  const states = [
    poolStateOf(storedOf(poolWith({ operation: operationOf('create'), status: { isMade: undefined as never } }))),
    poolStateOf(storedOf(poolWith())),
    poolStateOf(storedOf(poolWith({ operation: operationOf('scale') }))),
    poolStateOf(storedOf(poolWith({ operation: operationOf('upgrade') }))),
    poolStateOf(storedOf(poolWith({ operation: operationOf('delete', { kind: 'node_pool.delete' }) }))),
  ]
  expect(states).toEqual(['creating', 'running', 'scaling', 'upgrading', 'deleting'])
})

test('what a server runs names its peers, and a node keeps its release until it is replaced', () => {
  const pool = poolWith({ count: 2, spec: { version: '1.36' } })
  const nodes = [nodeOf(0, { kubeletVersion: 'v1.35.4' }), nodeOf(1), nodeOf(7, { name: 'of-another-pool' })]
  const observed = observedWith({ machines: [machineOf(0), machineOf(1)], nodes })
  const [first] = slotsOf(pool, observed, 2)
  if (first === undefined) throw new Error('there is no slot')
  const demand = nodeDemand(pool, observed, first)
  expect(demand).toMatchObject({
    hostname: nameOf(0),
    template: 'kubernetes-node',
    networkIds: ['back'],
    publicIpv4: false,
    sharedAddresses: [{ address: '172.20.0.0/24', networkId: 'back' }],
  })
  // What another node gets is sent to this one; what it joined with is not.
  const without = observedWith({ machines: observed.machines, nodes: nodes.slice(0, 2) })
  expect(nodeDemand(pool, without, first).configuration?.fingerprint).not.toBe(demand.configuration?.fingerprint)
  const joined = poolWith({ count: 2, spec: { version: '1.36' }, status: { join: JOIN } })
  expect(nodeDemand(joined, observed, first).configuration).toEqual(demand.configuration)
})

test('a node gets the address of its public interface, by which it reaches its control plane', () => {
  const pool = poolWith({ count: 1 })
  const addressesAt = (machine: Machine) => {
    const observed = observedWith({ machines: [machine] })
    const [slot] = slotsOf(pool, observed, 1)
    return slot && nodeDocument(pool, observed, slot)?.addresses
  }
  expect(addressesAt(machineOf(0))).toEqual([{ interface: '52:54:00:00:00:05', address: '2001:2::5/128' }])
  expect(addressesAt({ ...machineOf(0), publicIpv6: undefined })).toEqual([])
})
