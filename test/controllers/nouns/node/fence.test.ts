/** The rows of a node's table about silence and fencing, and what a fenced node has done to its servers. */
import { describe, expect, test } from 'vitest'
import { POWER_TRIES_MAXIMUM, STORAGE_TRIES_MAXIMUM } from '../../../../controllers/nouns/node/fence.ts'
import { plan } from '../../../../controllers/nouns/node/plan.ts'
import { RECOVERIES_MAXIMUM } from '../../../../controllers/nouns/node/recovery.ts'
import type {
  NodeObject,
  ObservationObject,
  Observed,
  TenantServer,
} from '../../../../controllers/nouns/node/observed.ts'
import type { Action } from '../../../../kit/reconcile/action.ts'
import type { NodePower, NodeSpec, NodeStatus, NodeStorageBlock } from '../../../../resources/node/index.ts'
import { progressOf } from '../../../progress.ts'
import { actionLines, candidate, guest, node, NOW, observed, operationOf, report, stanza, statusOf } from './worlds.ts'

const closed = candidate({ isSchedulable: false })
const bmc: NonNullable<NodeSpec['bmc']> = { address: 'https://192.0.2.7', protocol: 'redfish', secretName: 'bmc' }
const storageAccess: NonNullable<NodeSpec['storageAccess']> = {
  protocol: 'ceph',
  addresses: ['192.0.2.7', '2001:db8::7'],
  secretName: 'ceph',
}
const block = (changes: Partial<NodeStorageBlock> = {}): NodeStorageBlock => ({
  operationId: 'op',
  access: storageAccess,
  isTaken: false,
  readAt: ago(6),
  failures: 0,
  detail: '',
  ...changes,
})
const endpoint = { url: 'https://192.0.2.1:7000', certificateFingerprint: 'f'.repeat(64) }
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000).toISOString()
const power = (state: NodePower['state'], changes: Partial<NodePower> = {}): NodePower => ({
  state,
  since: ago(30),
  readAt: ago(6),
  failures: 0,
  cuts: 0,
  detail: '',
  ...changes,
})

const withoutHeartbeat = (changes: Partial<Observed> = {}) =>
  observed({ mirror: closed, heartbeat: { renewedAt: 't1', ageSeconds: 20 }, ...changes })
const unreachable = (status: Partial<NodeStatus> = {}, spec: Partial<NodeSpec> = {}): NodeObject =>
  node({ state: 'unreachable', lastSeenAt: 't1', isCordoned: false, isInMaintenance: false, endpoint, ...status }, spec)
const answered = (
  observer: string,
  answer: 'agent' | 'host' | 'nothing' | undefined,
  requestedAt = ago(3),
): ObservationObject => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind: 'Observation',
  metadata: { name: 'n1', namespace: `node-${observer}` },
  spec: { endpoint, requestedAt },
  ...(answer === undefined ? {} : { status: { requestedAt, answer, detail: '' } }),
})
const observers = ['n2', 'n3', 'n4']
const fiveObservers = [...observers, 'n5', 'n6']
const heardBy = (...answers: readonly ('agent' | 'host' | 'nothing' | undefined)[]) =>
  withoutHeartbeat({
    observers: answers.length > observers.length ? fiveObservers : observers,
    observations: answers.map((answer, index) => answered(fiveObservers[index] ?? '', answer)),
  })
const kindsOf = (actions: readonly Action[]) =>
  actionLines(actions).map((line) => /"kind":"([a-z._]+)"/.exec(line)?.[1] ?? line)
const planned = (object: NodeObject, world: Observed) => kindsOf(plan(object, world, NOW))

/** A fencing that ended without proof. */
const unproven = (startedSecondsAgo: number, finishedSecondsAgo: number) =>
  progressOf(stanza('node.fence', { id: 'f', requestedAt: ago(startedSecondsAgo) }), {
    status: 'failed',
    finishedAt: ago(finishedSecondsAgo),
  })

describe('a node that has fallen silent', () => {
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    [
      'is asked after at other nodes',
      unreachable(),
      withoutHeartbeat({ observers }),
      ['ensure Observation', 'ensure Observation', 'ensure Observation', 'state unreachable'],
    ],
    [
      'is not asked after where fewer than two could answer',
      unreachable(),
      withoutHeartbeat({ observers: ['n2'] }),
      ['state unreachable'],
    ],
    [
      'whose endpoint nobody knows is not asked after',
      unreachable({ endpoint: undefined }),
      withoutHeartbeat({ observers }),
      ['state unreachable'],
    ],
    [
      'is asked after again later',
      unreachable(),
      withoutHeartbeat({
        observers: ['n2', 'n3'],
        observations: [answered('n2', 'agent', ago(11)), answered('n3', 'agent')],
      }),
      ['ensure Observation', 'state unreachable'],
    ],
    [
      'is no more business of nodes that are silent themselves',
      unreachable(),
      withoutHeartbeat({
        observers: ['n2', 'n3'],
        observations: [answered('n2', 'agent'), answered('n3', 'agent'), answered('n9', 'nothing')],
      }),
      ['remove Observation', 'state unreachable'],
    ],
    [
      'has its power looked at, which harms nobody',
      unreachable({}, { bmc }),
      withoutHeartbeat(),
      ['effect power', 'state unreachable'],
    ],
    [
      'has its power looked at from time to time',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      withoutHeartbeat(),
      ['state unreachable'],
    ],
    [
      'is fenced when nobody hears it',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', 'nothing'),
      ['node.fence'],
    ],
    [
      'is fenced when most were asked, have answered and do not hear it',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', undefined),
      ['node.fence'],
    ],
    [
      'is not fenced on the word of one',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', undefined, undefined),
      ['state unreachable'],
    ],
    [
      'is not fenced when two of five have answered',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', undefined, undefined, undefined),
      ['state unreachable'],
    ],
    [
      'is not fenced when half of four have answered',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', undefined, undefined),
      ['ensure Observation', 'state unreachable'],
    ],
    [
      'is fenced when three of five have answered and do not hear it',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', 'nothing', undefined, undefined),
      ['node.fence'],
    ],
    [
      'is not fenced when somebody hears its agent',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', 'agent'),
      ['state unreachable'],
    ],
    [
      'is not fenced when its host answers: guests may run well',
      unreachable({ power: power('on', { readAt: ago(2) }) }, { bmc }),
      heardBy('nothing', 'nothing', 'host'),
      ['state unreachable'],
    ],
    [
      'is not fenced on old answers',
      unreachable({}, {}),
      withoutHeartbeat({ observers, observations: observers.map((name) => answered(name, 'nothing', ago(25))) }),
      ['ensure Observation', 'ensure Observation', 'ensure Observation', 'state unreachable'],
    ],
    [
      'is not fenced where there is no way to',
      unreachable(),
      heardBy('nothing', 'nothing', 'nothing'),
      ['state unreachable'],
    ],
    [
      'is fenced when nobody hears it and its shared storage can refuse it',
      unreachable({}, { storageAccess }),
      heardBy('nothing', 'nothing', 'nothing'),
      ['node.fence'],
    ],
    [
      'is not fenced by its shared storage when its host answers',
      unreachable({}, { storageAccess }),
      heardBy('nothing', 'nothing', 'host'),
      ['state unreachable'],
    ],
    [
      'is fenced when its power is off, whoever could observe it',
      unreachable({ power: power('off') }, { bmc }),
      withoutHeartbeat(),
      ['node.fence'],
    ],
    [
      'is not fenced on one reading of its power',
      unreachable({ power: power('off', { since: ago(6) }) }, { bmc }),
      withoutHeartbeat(),
      ['effect power', 'state unreachable'],
    ],
    [
      'is fenced whatever else was under way',
      unreachable(
        { power: power('off') },
        { bmc, isCordoned: true, isInMaintenance: true, operation: stanza('node.drain') },
      ),
      withoutHeartbeat(),
      ['node.fence'],
    ],
    [
      'is asked after also while it is being drained',
      unreachable({}, { isCordoned: true, isInMaintenance: true, operation: stanza('node.drain') }),
      withoutHeartbeat({
        observers: ['n2', 'n3'],
        guests: [guest('a', 'started', { operation: stanza('server.migrate', { id: 'm' }), progress: 'running' })],
      }),
      ['effect audit', 'ensure Observation', 'ensure Observation', 'operation emptied', 'state unreachable'],
    ],
    [
      'is not fenced again right after there was no proof',
      unreachable(
        {
          power: power('off'),
          operation: unproven(90, 30),
        },
        { bmc },
      ),
      withoutHeartbeat(),
      ['effect power', 'state unreachable'],
    ],
    [
      'is fenced again after a while',
      unreachable(
        {
          power: power('off'),
          operation: unproven(190, 61),
        },
        { bmc },
      ),
      withoutHeartbeat(),
      ['node.fence'],
    ],
    [
      'takes the questions back when it is heard again (unreachable to ready)',
      unreachable({ power: power('on') }, { bmc }),
      observed({
        mirror: closed,
        heartbeat: { renewedAt: 't2', ageSeconds: 0 },
        observations: [answered('n2', 'nothing'), answered('n3', 'nothing')],
      }),
      ['effect mirror true', 'remove Observation', 'remove Observation', 'state ready'],
    ],
  ])('%s', (_why, object, world, expected) => expect(planned(object, world)).toEqual(expected))

  test('forgets what was said of its power when it is heard again', () => {
    const status = statusOf(
      plan(
        unreachable({ power: power('off') }, { bmc }),
        observed({ heartbeat: { renewedAt: 't2', ageSeconds: 0 } }),
        NOW,
      ),
    )
    expect(status).toMatchObject({ state: 'ready' })
    expect(status).toHaveProperty('power', undefined)
  })
})

describe('fencing', () => {
  const requested = (
    args: Readonly<Record<string, string>> = {},
    status: Partial<NodeStatus> = {},
    spec: Partial<NodeSpec> = { bmc },
  ) => unreachable(status, { ...spec, operation: stanza('node.fence', { arguments: { method: 'auto', ...args } }) })
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    [
      'reads the power first (unreachable to fencing)',
      requested(),
      withoutHeartbeat(),
      ['effect audit', 'effect power', 'operation proof', 'state fencing'],
    ],
    [
      'cuts it when it is on',
      requested({}, { power: power('on') }),
      withoutHeartbeat(),
      ['effect audit', 'effect power', 'operation proof', 'state fencing'],
    ],
    [
      'waits between two readings',
      requested({}, { power: power('off', { readAt: ago(4), since: ago(4) }) }),
      withoutHeartbeat(),
      ['effect audit', 'operation proof', 'state fencing'],
    ],
    [
      'reads once more when power is off',
      requested({}, { power: power('off', { since: ago(6) }) }),
      withoutHeartbeat(),
      ['effect audit', 'effect power', 'operation proof', 'state fencing'],
    ],
    [
      'is done when power was off twice, five seconds apart (fencing to fenced)',
      requested({}, { power: power('off', { since: ago(11), readAt: ago(6) }) }),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
    [
      'asks a controller that does not answer again',
      requested({}, { power: power('unknown', { failures: POWER_TRIES_MAXIMUM - 1 }) }),
      withoutHeartbeat(),
      ['effect audit', 'effect power', 'operation proof', 'state fencing'],
    ],
    [
      'fails without proof (fencing to unreachable)',
      requested({}, { power: power('unknown', { failures: POWER_TRIES_MAXIMUM }) }),
      withoutHeartbeat(),
      ['effect audit', 'operation failed', 'state unreachable'],
    ],
    [
      'fails when power does not go',
      requested({}, { power: power('on', { cuts: POWER_TRIES_MAXIMUM }) }),
      withoutHeartbeat(),
      ['effect audit', 'operation failed', 'state unreachable'],
    ],
    [
      'goes on to the next rung: a controller that lost its power with the host holds nobody up',
      requested(
        { approver: 'ada@example.com', second_approver: 'bob@example.com' },
        { power: power('unknown', { failures: POWER_TRIES_MAXIMUM }) },
      ),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
    [
      'by attest needs two',
      requested({ method: 'attest' }),
      withoutHeartbeat(),
      ['effect audit', 'operation failed', 'state unreachable'],
    ],
    [
      'by attest asks no controller',
      requested({ method: 'attest', approver: 'ada@example.com', second_approver: 'bob@example.com' }),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
    [
      'by attest is no proof while the node answers, by whatever force',
      requested({ method: 'attest', force: 'true', approver: 'ada@example.com', second_approver: 'bob@example.com' }),
      observed({ mirror: closed, heartbeat: { renewedAt: 't2', ageSeconds: 1 } }),
      ['effect audit', 'effect mirror true', 'operation failed', 'state ready'],
    ],
    [
      'by storage is no proof where the storage cannot refuse a host',
      requested({ method: 'storage_block', second_approver: 'bob@example.com' }),
      withoutHeartbeat(),
      ['effect audit', 'operation failed', 'state unreachable'],
    ],
    [
      'by storage writes down what it is about to take, and takes nothing before',
      requested({ method: 'storage_block' }, {}, { storageAccess }),
      withoutHeartbeat(),
      ['effect audit', 'operation proof', 'state fencing'],
    ],
    [
      'by storage takes what was written down',
      requested({ method: 'storage_block' }, { storageBlock: block() }, { storageAccess }),
      withoutHeartbeat(),
      ['effect audit', 'effect storage', 'operation proof', 'state fencing'],
    ],
    [
      'by storage takes what was written down for an earlier fencing anew',
      requested(
        { method: 'storage_block' },
        { storageBlock: block({ operationId: 'before', isTaken: true }) },
        { storageAccess },
      ),
      withoutHeartbeat(),
      ['effect audit', 'operation proof', 'state fencing'],
    ],
    [
      'by storage is done when the storage has acknowledged it (fencing to fenced)',
      requested({ method: 'storage_block' }, { storageBlock: block({ isTaken: true }) }, { storageAccess }),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
    [
      'by storage waits before it asks again',
      requested(
        { method: 'storage_block' },
        { storageBlock: block({ failures: 1, readAt: ago(2) }) },
        { storageAccess },
      ),
      withoutHeartbeat(),
      ['effect audit', 'operation proof', 'state fencing'],
    ],
    [
      'by storage asks again',
      requested(
        { method: 'storage_block' },
        { storageBlock: block({ failures: STORAGE_TRIES_MAXIMUM - 1 }) },
        { storageAccess },
      ),
      withoutHeartbeat(),
      ['effect audit', 'effect storage', 'operation proof', 'state fencing'],
    ],
    [
      'by storage fails when the storage does not acknowledge it',
      requested(
        { method: 'storage_block' },
        { storageBlock: block({ failures: STORAGE_TRIES_MAXIMUM }) },
        { storageAccess },
      ),
      withoutHeartbeat(),
      ['effect audit', 'operation failed', 'state unreachable'],
    ],
    [
      'by storage asks no controller',
      requested({ method: 'storage_block' }, { storageBlock: block() }, { bmc, storageAccess }),
      withoutHeartbeat(),
      ['effect audit', 'effect storage', 'operation proof', 'state fencing'],
    ],
    [
      'begins with power where there is both',
      requested({}, {}, { bmc, storageAccess }),
      withoutHeartbeat(),
      ['effect audit', 'effect power', 'operation proof', 'state fencing'],
    ],
    [
      'goes on with storage when the controller does not answer',
      requested(
        {},
        { power: power('unknown', { failures: POWER_TRIES_MAXIMUM }), storageBlock: block() },
        { bmc, storageAccess },
      ),
      withoutHeartbeat(),
      ['effect audit', 'effect storage', 'operation proof', 'state fencing'],
    ],
    [
      'goes on with two who attest it when the storage does not answer',
      requested(
        { approver: 'ada@example.com', second_approver: 'bob@example.com' },
        { storageBlock: block({ failures: STORAGE_TRIES_MAXIMUM }) },
        { storageAccess },
      ),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
    [
      'of a node that answers takes no storage',
      requested({ method: 'storage_block' }, {}, { storageAccess }),
      observed({ heartbeat: { renewedAt: 't2', ageSeconds: 1 } }),
      ['effect audit', 'operation failed', 'state ready'],
    ],
    [
      'of a node without a controller fails',
      requested({ method: 'power_off' }, {}, {}),
      withoutHeartbeat(),
      ['effect audit', 'operation failed', 'state unreachable'],
    ],
    [
      'of a node that answers fails',
      requested(),
      observed({ heartbeat: { renewedAt: 't2', ageSeconds: 1 } }),
      ['effect audit', 'operation failed', 'state ready'],
    ],
    [
      'of a node that answers goes on by force',
      requested({ force: 'true' }),
      observed({ mirror: closed, heartbeat: { renewedAt: 't2', ageSeconds: 1 } }),
      ['effect audit', 'effect power', 'operation proof', 'state fencing'],
    ],
    [
      'of a fenced node is done',
      unreachable(
        {
          state: 'fenced',
          fence: { operationId: 'before', at: ago(60), method: 'attest', evidence: 'x', bootId: 'b' },
        },
        { operation: stanza('node.fence') },
      ),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
  ])('%s', (_why, object, world, expected) => expect(planned(object, world)).toEqual(expected))

  test('by the platform itself ends quietly when the node answers again', () => {
    const object = unreachable(
      { power: power('on') },
      { bmc, operation: stanza('node.fence', { actor: 'system:fencing' }) },
    )
    expect(operationOf(plan(object, observed({ heartbeat: { renewedAt: 't2', ageSeconds: 1 } }), NOW))).toMatchObject({
      outcome: 'cancelled',
    })
  })
  test('keeps the proof, and of which boot it is', () => {
    const status = statusOf(plan(requested({}, { power: power('off') }), withoutHeartbeat(), NOW))
    expect(status?.['fence']).toMatchObject({
      operationId: 'op',
      at: NOW.toISOString(),
      method: 'power_off',
      bootId: report.bootId,
      evidence: expect.stringContaining(ago(30)),
    })
  })
  test('says every way that brought no proof', () => {
    const operation = operationOf(
      plan(
        requested(
          {},
          { power: power('unknown', { failures: POWER_TRIES_MAXIMUM, detail: 'The BMC did not answer in time.' }) },
        ),
        withoutHeartbeat(),
        NOW,
      ),
    )
    expect(operation).toMatchObject({
      outcome: 'failed',
      error: expect.stringMatching(/did not answer in time.*storage.*Nobody attests/),
    })
    expect(operation?.events?.map(({ kind, data }) => `${kind} ${String(data?.['method'])}`)).toEqual([
      'no_evidence power_off',
      'no_evidence storage_block',
      'no_evidence attest',
    ])
  })
  test('starts again the next time', () => {
    expect(
      statusOf(
        plan(requested({}, { power: power('unknown', { failures: POWER_TRIES_MAXIMUM }) }), withoutHeartbeat(), NOW),
      ),
    ).toHaveProperty('power', undefined)
  })
})

describe('access to shared storage', () => {
  const requested = (status: Partial<NodeStatus> = {}, spec: Partial<NodeSpec> = { storageAccess }) =>
    unreachable(status, { ...spec, operation: stanza('node.fence', { arguments: { method: 'storage_block' } }) })
  const reachable = observed({ mirror: closed, heartbeat: { renewedAt: 't2', ageSeconds: 1 } })

  test('is recorded before it is run, with everything that an earlier attempt may still run', () => {
    expect(statusOf(plan(requested(), withoutHeartbeat(), NOW))).toMatchObject({
      storageBlock: { operationId: 'op', access: storageAccess, isTaken: false, failures: 0 },
    })
    const earlier = block({
      operationId: 'before',
      isTaken: true,
      failures: 2,
      access: { ...storageAccess, addresses: ['192.0.2.6', '192.0.2.7'] },
    })
    expect(statusOf(plan(requested({ storageBlock: earlier }), withoutHeartbeat(), NOW))).toMatchObject({
      storageBlock: {
        operationId: 'op',
        access: { addresses: ['192.0.2.6', '192.0.2.7', '2001:db8::7'] },
        isTaken: false,
        failures: 0,
      },
    })
  })
  test('that is off is the proof, and stays recorded', () => {
    const actions = plan(requested({ storageBlock: block({ isTaken: true }) }), withoutHeartbeat(), NOW)
    expect(statusOf(actions)).toMatchObject({
      fence: {
        operationId: 'op',
        method: 'storage_block',
        bootId: report.bootId,
        evidence: expect.stringContaining('192.0.2.7 and 2001:db8::7'),
      },
    })
    expect(statusOf(actions)).not.toHaveProperty('storageBlock')
    expect(operationOf(actions)).toMatchObject({ events: [{ kind: 'evidence', data: { method: 'storage_block' } }] })
  })
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    [
      'stays away while a node that was not fenced is silent',
      unreachable({ storageBlock: block() }),
      withoutHeartbeat(),
      ['state unreachable'],
    ],
    [
      'is given back when a fencing without proof may have taken it and the node answers',
      unreachable({ storageBlock: block() }),
      reachable,
      ['effect mirror true', 'effect storage', 'state ready'],
    ],
    [
      'is given back even when nobody knows any more that it could be taken',
      node({ state: 'ready', isCordoned: false, isInMaintenance: false, storageBlock: block() }),
      observed(),
      ['effect storage', 'state ready'],
    ],
    [
      'is given back again after a while when the storage did not answer',
      node({
        state: 'ready',
        isCordoned: false,
        isInMaintenance: false,
        storageBlock: block({ failures: 7, readAt: ago(2) }),
      }),
      observed(),
      ['state ready'],
    ],
    [
      'is not given back by a node that answers while it is fenced by force',
      node(
        { state: 'ready', isCordoned: false, isInMaintenance: false, storageBlock: block() },
        { storageAccess, operation: stanza('node.fence', { arguments: { method: 'storage_block', force: 'true' } }) },
      ),
      observed({ mirror: closed }),
      ['effect audit', 'effect storage', 'operation proof', 'state fencing'],
    ],
  ])('%s', (_why, object, world, expected) => expect(planned(object, world)).toEqual(expected))
  test('is never asked for back by a fencing', () => {
    const inputs = [block(), block({ isTaken: true }), block({ failures: 9 })]
      .flatMap((storageBlock) => plan(requested({ storageBlock }), withoutHeartbeat(), NOW))
      .filter((action) => action.do === 'effect' && action.name === 'storage')
    expect(inputs).toEqual([{ do: 'effect', name: 'storage', input: { ask: 'take' } }])
  })
})

const fence: NonNullable<NodeStatus['fence']> = {
  operationId: 'f',
  at: ago(120),
  method: 'power_off',
  evidence: 'Its power is off.',
  bootId: report.bootId,
}
const fenced = (spec: Partial<NodeSpec> = {}) => unreachable({ state: 'fenced', fence }, spec)
const fencedBy = (method: typeof fence.method) =>
  unreachable(
    { state: 'fenced', fence: { ...fence, method }, storageBlock: block({ isTaken: method === 'storage_block' }) },
    { storageAccess },
  )

describe('a fenced node', () => {
  const back = (changes: Partial<NonNullable<Observed['report']>>, renewedAt = 't2') =>
    observed({
      mirror: closed,
      hasAccess: true,
      heartbeat: { renewedAt, ageSeconds: 1 },
      report: { ...report, ...changes },
    })
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    ['stays fenced while it is silent', fenced(), withoutHeartbeat(), ['state fenced']],
    [
      'has what is deleted on it go by the proof',
      fenced(),
      withoutHeartbeat({ blockedDeletions: [{ kind: 'Instance', name: 'i' }] }),
      ['effect vacate', 'state fenced'],
    ],
    [
      'is no more asked after',
      fenced(),
      heardBy('nothing', 'nothing'),
      ['remove Observation', 'remove Observation', 'state fenced'],
    ],
    [
      'stays fenced when it is heard with the boot that was fenced',
      fenced(),
      back({ guestCount: 0 }),
      ['state fenced'],
    ],
    ['stays fenced while guests run on it', fenced(), back({ bootId: 'c', guestCount: 1 }), ['state fenced']],
    ['stays fenced when it does not say that none do', fenced(), back({ bootId: 'c' }), ['state fenced']],
    [
      'joins again with another boot, empty and with a new key (fenced to provisioning)',
      fenced(),
      back({ bootId: 'c', guestCount: 0 }),
      ['remove Secret', 'state provisioning'],
    ],
    [
      'whose storage was taken has it back only with another boot',
      fencedBy('storage_block'),
      back({ guestCount: 0 }),
      ['state fenced'],
    ],
    [
      'whose storage was taken has it back only empty',
      fencedBy('storage_block'),
      back({ bootId: 'c', guestCount: 1 }),
      ['state fenced'],
    ],
    [
      'whose storage was taken has it back before it joins again',
      fencedBy('storage_block'),
      back({ bootId: 'c', guestCount: 0 }),
      ['effect storage', 'state fenced'],
    ],
    [
      'whose storage may have been taken before another proof has it back too',
      fencedBy('attest'),
      back({ bootId: 'c', guestCount: 0 }),
      ['effect storage', 'state fenced'],
    ],
    [
      'that was cordoned meanwhile stays fenced',
      fenced({ isCordoned: true, operation: stanza('node.cordon') }),
      withoutHeartbeat(),
      ['effect audit', 'operation succeeded', 'state fenced'],
    ],
  ])('%s', (_why, object, world, expected) => expect(planned(object, world)).toEqual(expected))

  test('that has joined again is no longer fenced, and then ready', () => {
    expect(statusOf(plan(fenced(), back({ bootId: 'c', guestCount: 0 }), NOW))).toHaveProperty('fence', undefined)
    expect(
      planned(
        node({ state: 'provisioning', isCordoned: false, isInMaintenance: false }),
        back({ bootId: 'c', guestCount: 0 }, 't3'),
      ),
    ).toEqual(['effect mirror true', 'state ready'])
  })
})

describe('a node that is removed', () => {
  const nothing = { guests: 0, volumes: 0, images: 0, unclaimed: 0 }
  const removed = (status: Partial<NodeStatus>) =>
    node({ state: 'cordoned', lastSeenAt: 't1', ...status }, { isCordoned: true }, ago(1))
  const gone = ['effect forget', 'state retired', 'remove Namespace', 'finalized']
  const empty = { mirror: closed }
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    [
      'has its access to shared storage first, when it was not fenced',
      removed({ storageBlock: block() }),
      withoutHeartbeat(empty),
      ['effect storage', 'state undefined'],
    ],
    [
      'has it first, when it was fenced and has come back',
      removed({ fence, storageBlock: block({ isTaken: true }) }),
      observed({
        ...empty,
        heartbeat: { renewedAt: 't2', ageSeconds: 1 },
        report: { ...report, bootId: 'c', guestCount: 0 },
      }),
      ['effect storage', 'state undefined'],
    ],
    [
      'does not have it, when it was fenced and its old guests may run',
      removed({ state: 'fenced', fence, storageBlock: block({ isTaken: true }) }),
      withoutHeartbeat(empty),
      gone,
    ],
    ['goes when it has it', removed({}), observed(empty), gone],
    [
      'waits for the word of its host, when it is silent and not proven to be off',
      removed({}),
      withoutHeartbeat({ ...empty, held: { counts: nothing, ageSeconds: Number.POSITIVE_INFINITY } }),
      ['state undefined'],
    ],
    [
      'waits when it was fenced, has come back and holds something',
      removed({ fence }),
      observed({
        ...empty,
        report: { ...report, bootId: 'c', guestCount: 0 },
        held: { counts: { ...nothing, volumes: 2, unclaimed: 2 }, ageSeconds: 1 },
      }),
      ['state undefined'],
    ],
  ])('%s', (_why, object, world, expected) => expect(planned(object, world)).toEqual(expected))
})

describe('the servers of a fenced node', () => {
  interface Lost {
    readonly age?: number
    readonly haPolicy?: 'restart' | 'none'
    readonly desiredPower?: 'running' | 'stopped'
  }
  const lost = (
    name: string,
    { age = 0, haPolicy = 'restart', desiredPower = 'running' }: Lost = {},
    base: TenantServer = guest(name, 'error'),
  ): TenantServer => ({
    ...base,
    ...(base.server === undefined
      ? {}
      : {
          server: {
            ...base.server,
            metadata: { ...base.server.metadata, creationTimestamp: ago(1_000 + age) },
            spec: { ...base.server.spec, haPolicy, desiredPower },
          },
        }),
  })
  const orders = (...guests: readonly TenantServer[]) =>
    actionLines(plan(fenced(), withoutHeartbeat({ guests }), NOW)).filter((line) => line.startsWith('effect order'))
  const recover = (...names: readonly string[]) => names.map((name) => `effect order server.recover ${name}`)

  test('are recovered, the oldest first', () =>
    expect(orders(lost('young'), lost('old', { age: 9 }))).toEqual(recover('old', 'young')))
  test('that nobody wants to run wait for those that must', () => {
    const guests = [
      lost('off', { age: 9, desiredPower: 'stopped' }),
      lost('none', { age: 8, haPolicy: 'none' }),
      lost('running'),
    ]
    expect(orders(...guests)).toEqual(recover('running'))
    expect(orders(...guests.slice(0, 2))).toEqual(recover('off', 'none'))
  })
  test('recover only so many at a time', () => {
    const waiting = Array.from({ length: 9 }, (_, index) => lost(`s${index}`))
    expect(orders(...waiting)).toHaveLength(RECOVERIES_MAXIMUM)
    const underWay = lost(
      'r',
      {},
      guest('r', 'error', { operation: stanza('server.recover', { id: 'r' }), progress: 'running' }),
    )
    expect(orders(underWay, ...waiting)).toHaveLength(RECOVERIES_MAXIMUM - 1)
  })
  test('that are busy, whose disk is on the lost host alone, or that only were on their way here stay', () => {
    const busy = lost(
      'busy',
      {},
      guest('busy', 'starting', { operation: stanza('server.start', { id: 's' }), progress: 'running' }),
    )
    expect(orders(busy, { ...lost('local'), isOnPool: false }, { ...lost('arriving'), isArriving: true })).toEqual([])
  })
  test('whose recovery failed are recovered again later, and delay nobody until then', () => {
    const failed = (finishedAt: string): TenantServer => {
      const base = lost(
        'failed',
        { age: 9 },
        guest('failed', 'error', { operation: stanza('server.recover', { id: 'r' }), progress: 'failed' }),
      )
      const operation = base.server?.status?.operation
      if (base.server?.status === undefined || operation === undefined)
        throw new Error('a guest with an operation has its progress')
      return {
        ...base,
        server: {
          ...base.server,
          status: { ...base.server.status, operation: { ...operation, createdAt: ago(100), finishedAt } },
        },
      }
    }
    expect(orders(failed(ago(10)), lost('off', { desiredPower: 'stopped' }))).toEqual(recover('off'))
    expect(orders(failed(ago(61)), lost('off', { desiredPower: 'stopped' }))).toEqual(recover('failed'))
  })
  test('are not recovered by a node that is only silent', () => {
    expect(
      actionLines(plan(unreachable(), withoutHeartbeat({ guests: [lost('a')] }), NOW)).filter((line) =>
        line.startsWith('effect order'),
      ),
    ).toEqual([])
  })
})
