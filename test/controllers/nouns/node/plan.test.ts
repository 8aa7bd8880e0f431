import { describe, expect, test } from 'vitest'
import { plan } from '../../../../controllers/nouns/node/plan.ts'
import type { NodeObject, Observed } from '../../../../controllers/nouns/node/observed.ts'
import { BACKUPS_FEATURE } from '../../../../resources/backup-job/index.ts'
import type { NodeSpec } from '../../../../resources/node/index.ts'
import { actionLines, candidate, guest, node, NOW, observed, operationOf, report, stanza, statusOf } from './worlds.ts'

const nothing = { guests: 0, volumes: 0, images: 0, unclaimed: 0 }
const closed = candidate({ isSchedulable: false })
const holding = (isSchedulable: boolean) =>
  candidate({ isSchedulable, used: { cores: 2, memoryMebibytes: 0, storageGibibytes: 0 } })
const ONE = { cores: 1, memoryMebibytes: 256, storageGibibytes: 1 }
const open = { isCordoned: false, isInMaintenance: false }
const cordoned = { isCordoned: true, isInMaintenance: false }

describe('a node', () => {
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    ['gets its namespace first', node(), observed({ hasNamespace: false }), ['ensure Namespace']],
    [
      'then the secret of its agent',
      node(),
      observed({ hasAccess: false, report: undefined, heartbeat: undefined, mirror: undefined }),
      ['effect grant', 'state provisioning'],
    ],
    [
      'waits for its agent',
      node(),
      observed({ report: undefined, heartbeat: undefined, mirror: undefined }),
      ['state provisioning'],
    ],
    [
      'is nothing to placement when its agent has reported and is not heard yet',
      node(),
      observed({ heartbeat: undefined, mirror: undefined }),
      ['state provisioning'],
    ],
    [
      'is ready when its agent is heard, and placement learns of it',
      node(),
      observed({ mirror: undefined }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'that is not for servers is nothing to placement',
      node({ state: 'ready' }, { roles: ['network'] }),
      observed({ mirror: undefined }),
      ['state ready'],
    ],
    [
      'that is not for servers any more takes nothing new',
      node({ state: 'ready' }, { roles: ['storage'] }),
      observed(),
      ['effect mirror false', 'state ready'],
    ],
    [
      'counts as used what guests take that have no claims',
      node({ state: 'ready' }),
      observed({ forgotten: ONE }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'counts it once',
      node({ state: 'ready' }),
      observed({ forgotten: ONE, mirror: candidate({ used: ONE, forgotten: ONE }) }),
      ['state ready'],
    ],
    ['at rest changes nothing', node({ state: 'ready' }), observed(), ['state ready']],
    [
      'that was given to an account says so in its object before placement hears of it again',
      node({ state: 'ready' }),
      observed({ dedication: 'a1', mirror: candidate({ dedicatedAccountId: 'a1' }) }),
      ['change {"dedicatedAccountId":"a1"}', 'state ready'],
    ],
    [
      'whose object says so is mirrored once more, so that this is known',
      node({ state: 'ready' }, { dedicatedAccountId: 'a1' }),
      observed({ dedication: 'a1', mirror: candidate({ dedicatedAccountId: 'a1' }) }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'that is made cordoned takes nothing new, and that is no operation',
      node({ state: 'provisioning' }, { isCordoned: true }),
      observed(),
      ['effect mirror false', 'state cordoned'],
    ],
    [
      'is well up to the third missed heartbeat',
      node({ state: 'ready' }),
      observed({ heartbeat: { renewedAt: 't1', ageSeconds: 14.9 } }),
      ['state ready'],
    ],
    [
      'is unreachable with it, and takes nothing new',
      node({ state: 'ready' }),
      observed({ heartbeat: { renewedAt: 't1', ageSeconds: 15 } }),
      ['effect mirror false', 'state unreachable'],
    ],
    [
      'that is cordoned and silent is unreachable',
      node({ state: 'cordoned', ...cordoned }, { isCordoned: true }),
      observed({ mirror: closed, heartbeat: { renewedAt: 't1', ageSeconds: 15 } }),
      ['state unreachable'],
    ],
    [
      'that is being drained and falls silent is unreachable, and the drain goes on',
      node(
        { state: 'draining', ...open },
        { isCordoned: true, isInMaintenance: true, operation: stanza('node.drain') },
      ),
      observed({
        mirror: closed,
        guests: [guest('a', 'started', { operation: stanza('server.migrate', { id: 'm' }), progress: 'running' })],
        heartbeat: { renewedAt: 't1', ageSeconds: 15 },
      }),
      ['effect audit', 'operation emptied', 'state unreachable'],
    ],
    [
      'stays so for a controller that has only begun to listen',
      node({ state: 'unreachable', lastSeenAt: 't1' }),
      observed({ mirror: closed, heartbeat: { renewedAt: 't1', ageSeconds: 0 } }),
      ['state unreachable'],
    ],
    [
      'is ready again with the next heartbeat',
      node({ state: 'unreachable', lastSeenAt: 't1' }),
      observed({ mirror: closed, heartbeat: { renewedAt: 't2', ageSeconds: 0 } }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'whose lease was removed is unreachable',
      node({ state: 'ready' }),
      observed({ heartbeat: undefined }),
      ['effect mirror false', 'state unreachable'],
    ],
    [
      'that grew is mirrored again',
      node({ state: 'ready' }, { cpuOvercommit: 8 }),
      observed(),
      ['effect mirror true', 'state ready'],
    ],
    [
      'that has got a place for backups is mirrored again',
      node({ state: 'ready' }),
      observed({ report: { ...report, features: [BACKUPS_FEATURE] } }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'with a place for backups is at rest when placement knows',
      node({ state: 'ready' }),
      observed({ report: { ...report, features: [BACKUPS_FEATURE] }, mirror: candidate({ hasBackups: true }) }),
      ['state ready'],
    ],
    [
      'that leaves takes nothing new while servers are on it',
      node({ state: 'ready' }, {}, 'now'),
      observed({ mirror: holding(true) }),
      ['effect forget', 'state undefined'],
    ],
    ['then only waits', node({ state: 'ready' }, {}, 'now'), observed({ mirror: holding(false) }), ['state undefined']],
    [
      'that is cordoned and empty is retired when it is deleted',
      node({ state: 'cordoned', ...cordoned }, { isCordoned: true }, 'now'),
      observed({ mirror: closed }),
      ['effect forget', 'state retired', 'remove Namespace', 'finalized'],
    ],
    [
      'whose host holds what nobody claims stays, and takes nothing new',
      node({ state: 'ready' }, {}, 'now'),
      observed({ mirror: candidate(), held: { counts: { ...nothing, volumes: 1 }, ageSeconds: 1 } }),
      ['effect forget', 'state undefined'],
    ],
    [
      'whose agent has not said lately what the host holds stays',
      node({ state: 'ready' }, {}, 'now'),
      observed({ mirror: closed, held: { counts: nothing, ageSeconds: 31 } }),
      ['state undefined'],
    ],
    [
      'whose agent never says what its host holds stays',
      node({ state: 'ready' }, {}, 'now'),
      observed({ mirror: closed, held: undefined }),
      ['state undefined'],
    ],
    [
      'that never joined goes without being asked',
      node({ state: 'provisioning' }, {}, 'now'),
      observed({ mirror: undefined, report: undefined, held: undefined }),
      ['state retired', 'remove Namespace', 'finalized'],
    ],
    [
      'that leaves cancels what was under way',
      node({ state: 'provisioning' }, { operation: stanza('node.provision') }, 'now'),
      observed({ mirror: undefined }),
      ['operation cancelled', 'state retired', 'remove Namespace', 'finalized'],
    ],
  ])('%s', (_why, object, world, expected) => expect(actionLines(plan(object, world, NOW))).toEqual(expected))

  test('writes when it was seen last only while it is silent, so that a heartbeat is no write', () => {
    expect(statusOf(plan(node({ state: 'ready' }), observed(), NOW))?.['lastSeenAt']).toBeUndefined()
    expect(
      statusOf(plan(node({ state: 'ready' }), observed({ heartbeat: { renewedAt: 't1', ageSeconds: 20 } }), NOW))?.[
        'lastSeenAt'
      ],
    ).toBe('t1')
  })
  test('is looked at again no later than its third missed heartbeat', () => {
    const wait = (ageSeconds: number) =>
      plan(node({ state: 'ready' }), observed({ heartbeat: { renewedAt: 't1', ageSeconds } }), NOW).find(
        (action) => action.do === 'wait',
      )?.seconds
    expect([wait(1), wait(12), wait(14.5), wait(100)]).toEqual([5, 3, 1, 1])
  })
})

describe('cordoning', () => {
  const requested = (kind: 'node.cordon' | 'node.uncordon', isCordoned: boolean) =>
    node({ state: 'ready', ...open }, { isCordoned, operation: stanza(kind) })
  test.each<readonly [string, NodeObject, Observed, readonly string[]]>([
    [
      'tells placement first',
      requested('node.cordon', true),
      observed(),
      ['effect audit', 'effect mirror false', 'operation cordoned', 'state cordoned'],
    ],
    [
      'is done when placement knows',
      requested('node.cordon', true),
      observed({ mirror: closed }),
      ['effect audit', 'operation succeeded', 'state cordoned'],
    ],
    [
      'of a node that placement does not know is done',
      requested('node.cordon', true),
      observed({ mirror: undefined, report: undefined, heartbeat: undefined }),
      ['effect audit', 'operation succeeded', 'state unreachable'],
    ],
    [
      'ends as cancelled when the cordon was taken back',
      requested('node.cordon', false),
      observed(),
      ['effect audit', 'operation cancelled', 'state ready'],
    ],
    [
      'is undone by uncordoning',
      requested('node.uncordon', false),
      observed({ mirror: closed }),
      ['effect audit', 'effect mirror true', 'operation succeeded', 'state ready'],
    ],
  ])('%s', (_why, object, world, expected) => expect(actionLines(plan(object, world, NOW))).toEqual(expected))

  test('is ready, as kubectl waits for it, only when it has ended', () => {
    const readyOf = (world: Observed) =>
      plan(requested('node.cordon', true), world, NOW)
        .flatMap((action) => (action.do === 'status' ? (action.conditions ?? []) : []))
        .find(({ type }) => type === 'Ready')?.status
    expect([readyOf(observed()), readyOf(observed({ mirror: closed }))]).toEqual(['False', 'True'])
  })
  test('is remembered as brought about only when it has ended', () => {
    expect(statusOf(plan(requested('node.cordon', true), observed(), NOW))).not.toHaveProperty('isCordoned')
    expect(statusOf(plan(requested('node.cordon', true), observed({ mirror: closed }), NOW))).toMatchObject({
      isCordoned: true,
    })
  })
})

describe('an edit with kubectl', () => {
  const kindOf = (object: NodeObject) =>
    actionLines(plan(object, observed(), NOW)).map((line) => /"kind":"([a-z._]+)"/.exec(line)?.[1] ?? line)
  test.each<readonly [string, NodeObject, readonly string[]]>([
    ['that cordons becomes an operation', node({ state: 'ready', ...open }, { isCordoned: true }), ['node.cordon']],
    ['that uncordons too', node({ state: 'cordoned', ...cordoned }, { isCordoned: false }), ['node.uncordon']],
    [
      'that asks for an empty node is maintenance',
      node({ state: 'ready', ...open }, { isInMaintenance: true }),
      ['node.maintenance'],
    ],
    [
      'counts also while the node does not answer',
      node({ state: 'unreachable', lastSeenAt: 't1', ...open }, { isCordoned: true }),
      ['node.cordon'],
    ],
    [
      'waits for the operation under way',
      node(
        { state: 'ready', ...open },
        { isCordoned: true, operation: stanza('node.agent_upgrade', { arguments: { version: '1' } }) },
      ),
      ['effect audit', 'effect mirror false', 'operation cordoned', 'state cordoned'],
    ],
  ])('%s', (_why, object, expected) => expect(kindOf(object)).toEqual(expected))
  test.each<readonly [string, Partial<NodeSpec>, Observed]>([
    [
      'an empty node while it is cordoned',
      { isCordoned: true, isInMaintenance: true, operation: stanza('node.cordon') },
      observed({ mirror: closed }),
    ],
    [
      'an empty node while it is uncordoned',
      { isCordoned: true, isInMaintenance: true, operation: stanza('node.uncordon') },
      observed({ mirror: closed }),
    ],
    [
      'another agent while it is cordoned',
      { isCordoned: true, desiredAgentVersion: '2', operation: stanza('node.cordon') },
      observed({ mirror: closed }),
    ],
    [
      'a cordon while it gets another agent',
      {
        isCordoned: true,
        operation: stanza('node.agent_upgrade', { arguments: { version: '1' }, deadlineAt: NOW.toISOString() }),
      },
      observed({ mirror: closed }),
    ],
  ])('that asks for %s is not taken for done with that', (_what, spec, world) => {
    const requested = node({ state: 'ready', ...open }, spec)
    const [status, before] = [statusOf(plan(requested, world, NOW)), requested.status]
    const after = {
      ...requested,
      status: {
        ...before,
        ...status,
        operation: { id: spec.operation?.id, kind: spec.operation?.kind, status: 'succeeded' },
      },
    } as NodeObject // what the turn leaves
    expect(kindOf(after)).toEqual([expect.stringMatching(/^node\.(maintenance|agent_upgrade|cordon)$/)])
  })
  test('carries its editor, and is the same operation when it is tried again', () => {
    const edit = node({ state: 'ready', ...open }, { isCordoned: true })
    expect(plan(edit, observed(), NOW)).toEqual(plan(edit, observed(), NOW))
    expect(JSON.stringify(plan(edit, observed(), NOW))).toContain('"actor":"user:kubectl"')
  })
  test('that asks for an empty node cordons it', () => {
    expect(plan(node({ state: 'ready', ...open }, { isInMaintenance: true }), observed(), NOW)[0]).toMatchObject({
      do: 'change',
      patch: { spec: { isCordoned: true } },
    })
  })
})

describe('provisioning', () => {
  const joining = node({ state: 'provisioning' }, { operation: stanza('node.provision') })
  test.each<readonly [string, Observed, readonly string[]]>([
    [
      'gives the agent its access',
      observed({ hasAccess: false, report: undefined, heartbeat: undefined, mirror: undefined }),
      ['effect audit', 'effect grant', 'operation access', 'state provisioning'],
    ],
    [
      'waits for the agent',
      observed({ report: undefined, heartbeat: undefined, mirror: undefined }),
      ['effect audit', 'operation reported', 'state provisioning'],
    ],
    [
      'tells placement',
      observed({ mirror: undefined }),
      ['effect audit', 'effect mirror true', 'operation placeable', 'state ready'],
    ],
    ['is done when servers can come', observed(), ['effect audit', 'operation succeeded', 'state ready']],
  ])('%s', (_why, world, expected) => expect(actionLines(plan(joining, world, NOW))).toEqual(expected))
  test('of a node that is not for servers does not wait for placement', () => {
    const gateway = node({ state: 'provisioning' }, { roles: ['network'], operation: stanza('node.provision') })
    expect(actionLines(plan(gateway, observed({ mirror: undefined }), NOW))).toEqual([
      'effect audit',
      'operation succeeded',
      'state ready',
    ])
  })
  test('is cancelled when the host never comes', () => {
    const given = node(
      { state: 'provisioning' },
      { operation: stanza('node.provision', { arguments: { cancel: 'true' } }) },
    )
    expect(
      actionLines(plan(given, observed({ report: undefined, heartbeat: undefined, mirror: undefined }), NOW)),
    ).toEqual(['effect audit', 'operation cancelled', 'state provisioning'])
  })
  test('fails at its deadline', () => {
    const late = node(
      { state: 'provisioning' },
      { operation: stanza('node.provision', { deadlineAt: '2026-01-01T11:59:59Z' }) },
    )
    expect(
      operationOf(plan(late, observed({ report: undefined, heartbeat: undefined, mirror: undefined }), NOW)),
    ).toMatchObject({ outcome: 'failed', error: 'It was not done in time: still waiting for its agent to report.' })
  })
})
