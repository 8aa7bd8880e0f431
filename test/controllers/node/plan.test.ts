import { describe, expect, test } from 'vitest'
import { plan } from '../../../controllers/node/plan.ts'
import type { NodeObject, Seen } from '../../../controllers/node/observed.ts'
import type { NodeSpec } from '../../../resources/catalog/stored.ts'
import { candidate, guest, node, NOW, operationOf, seen, stanza, statusOf, told } from './worlds.ts'

const closed = candidate({ isSchedulable: false })
const holding = (isSchedulable: boolean) =>
  candidate({ isSchedulable, used: { cores: 2, memoryMebibytes: 0, storageGibibytes: 0 } })
const open = { isCordoned: false, isInMaintenance: false }
const cordoned = { isCordoned: true, isInMaintenance: false }

describe('a node', () => {
  test.each<readonly [string, NodeObject, Seen, readonly string[]]>([
    ['gets its namespace first', node(), seen({ hasNamespace: false }), ['ensure Namespace']],
    [
      'then the secret of its agent',
      node(),
      seen({ hasAccess: false, report: undefined, heartbeat: undefined, mirror: undefined }),
      ['effect grant', 'state provisioning'],
    ],
    [
      'waits for its agent',
      node(),
      seen({ report: undefined, heartbeat: undefined, mirror: undefined }),
      ['state provisioning'],
    ],
    [
      'is nothing to placement when its agent has reported and is not heard yet',
      node(),
      seen({ heartbeat: undefined, mirror: undefined }),
      ['state provisioning'],
    ],
    [
      'is ready when its agent is heard, and placement learns of it',
      node(),
      seen({ mirror: undefined }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'that is not for servers is nothing to placement',
      node({ state: 'ready' }, { roles: ['network'] }),
      seen({ mirror: undefined }),
      ['state ready'],
    ],
    [
      'that is not for servers any more takes nothing new',
      node({ state: 'ready' }, { roles: ['storage'] }),
      seen(),
      ['effect mirror false', 'state ready'],
    ],
    ['at rest changes nothing', node({ state: 'ready' }), seen(), ['state ready']],
    [
      'that is made cordoned takes nothing new, and that is no operation',
      node({ state: 'provisioning' }, { isCordoned: true }),
      seen(),
      ['effect mirror false', 'state cordoned'],
    ],
    [
      'is well up to the third missed heartbeat',
      node({ state: 'ready' }),
      seen({ heartbeat: { renewedAt: 't1', silentSeconds: 14.9 } }),
      ['state ready'],
    ],
    [
      'is unreachable with it, and takes nothing new',
      node({ state: 'ready' }),
      seen({ heartbeat: { renewedAt: 't1', silentSeconds: 15 } }),
      ['effect mirror false', 'state unreachable'],
    ],
    [
      'that is cordoned and silent is unreachable',
      node({ state: 'cordoned', ...cordoned }, { isCordoned: true }),
      seen({ mirror: closed, heartbeat: { renewedAt: 't1', silentSeconds: 15 } }),
      ['state unreachable'],
    ],
    [
      'that is being drained and falls silent is unreachable, and the drain goes on',
      node(
        { state: 'draining', ...open },
        { isCordoned: true, isInMaintenance: true, operation: stanza('node.drain') },
      ),
      seen({
        mirror: closed,
        guests: [guest('a', 'started', { operation: stanza('server.migrate', { id: 'm' }), progress: 'running' })],
        heartbeat: { renewedAt: 't1', silentSeconds: 15 },
      }),
      ['effect audit', 'operation emptied', 'state unreachable'],
    ],
    [
      'stays so for a controller that has only begun to listen',
      node({ state: 'unreachable', lastSeenAt: 't1' }),
      seen({ mirror: closed, heartbeat: { renewedAt: 't1', silentSeconds: 0 } }),
      ['state unreachable'],
    ],
    [
      'is ready again with the next heartbeat',
      node({ state: 'unreachable', lastSeenAt: 't1' }),
      seen({ mirror: closed, heartbeat: { renewedAt: 't2', silentSeconds: 0 } }),
      ['effect mirror true', 'state ready'],
    ],
    [
      'whose lease was removed is unreachable',
      node({ state: 'ready' }),
      seen({ heartbeat: undefined }),
      ['effect mirror false', 'state unreachable'],
    ],
    [
      'that grew is mirrored again',
      node({ state: 'ready' }, { cpuOvercommit: 8 }),
      seen(),
      ['effect mirror true', 'state ready'],
    ],
    [
      'that leaves takes nothing new while servers are on it',
      node({ state: 'ready' }, {}, 'now'),
      seen({ mirror: holding(true) }),
      ['effect forget', 'state undefined'],
    ],
    ['then only waits', node({ state: 'ready' }, {}, 'now'), seen({ mirror: holding(false) }), ['state undefined']],
    [
      'that is cordoned and empty is retired when it is deleted',
      node({ state: 'cordoned', ...cordoned }, { isCordoned: true }, 'now'),
      seen({ mirror: closed }),
      ['effect forget', 'state retired', 'remove Namespace', 'finalized'],
    ],
    [
      'that leaves cancels what was under way',
      node({ state: 'provisioning' }, { operation: stanza('node.provision') }, 'now'),
      seen({ mirror: undefined }),
      ['operation cancelled', 'state retired', 'remove Namespace', 'finalized'],
    ],
  ])('%s', (_why, object, world, expected) => expect(told(plan(object, world, NOW))).toEqual(expected))

  test('writes when it was seen last only while it is silent, so that a heartbeat is no write', () => {
    expect(statusOf(plan(node({ state: 'ready' }), seen(), NOW))?.['lastSeenAt']).toBeUndefined()
    expect(
      statusOf(plan(node({ state: 'ready' }), seen({ heartbeat: { renewedAt: 't1', silentSeconds: 20 } }), NOW))?.[
        'lastSeenAt'
      ],
    ).toBe('t1')
  })
  test('is looked at again no later than its third missed heartbeat', () => {
    const wait = (silentSeconds: number) =>
      plan(node({ state: 'ready' }), seen({ heartbeat: { renewedAt: 't1', silentSeconds } }), NOW).find(
        (action) => action.do === 'wait',
      )?.seconds
    expect([wait(1), wait(12), wait(14.5), wait(100)]).toEqual([5, 3, 1, 1])
  })
})

describe('cordoning', () => {
  const asked = (kind: 'node.cordon' | 'node.uncordon', isCordoned: boolean) =>
    node({ state: 'ready', ...open }, { isCordoned, operation: stanza(kind) })
  test.each<readonly [string, NodeObject, Seen, readonly string[]]>([
    [
      'tells placement first',
      asked('node.cordon', true),
      seen(),
      ['effect mirror false', 'effect audit', 'operation cordoned', 'state cordoned'],
    ],
    [
      'is done when placement knows',
      asked('node.cordon', true),
      seen({ mirror: closed }),
      ['effect audit', 'operation succeeded', 'state cordoned'],
    ],
    [
      'of a node that placement does not know is done',
      asked('node.cordon', true),
      seen({ mirror: undefined, report: undefined, heartbeat: undefined }),
      ['effect audit', 'operation succeeded', 'state unreachable'],
    ],
    [
      'ends as cancelled when the cordon was taken back',
      asked('node.cordon', false),
      seen(),
      ['effect audit', 'operation cancelled', 'state ready'],
    ],
    [
      'is undone by uncordoning',
      asked('node.uncordon', false),
      seen({ mirror: closed }),
      ['effect mirror true', 'effect audit', 'operation succeeded', 'state ready'],
    ],
  ])('%s', (_why, object, world, expected) => expect(told(plan(object, world, NOW))).toEqual(expected))

  test('is ready, as kubectl waits for it, only when it has ended', () => {
    const readyOf = (world: Seen) =>
      plan(asked('node.cordon', true), world, NOW)
        .flatMap((action) => (action.do === 'status' ? (action.conditions ?? []) : []))
        .find(({ type }) => type === 'Ready')?.status
    expect([readyOf(seen()), readyOf(seen({ mirror: closed }))]).toEqual(['False', 'True'])
  })
  test('is remembered as brought about only when it has ended', () => {
    expect(statusOf(plan(asked('node.cordon', true), seen(), NOW))).not.toHaveProperty('isCordoned')
    expect(statusOf(plan(asked('node.cordon', true), seen({ mirror: closed }), NOW))).toMatchObject({
      isCordoned: true,
    })
  })
})

describe('an edit with kubectl', () => {
  const kindOf = (object: NodeObject) =>
    told(plan(object, seen(), NOW)).map((line) => /"kind":"([a-z._]+)"/.exec(line)?.[1] ?? line)
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
      ['effect mirror false', 'effect audit', 'operation cordoned', 'state cordoned'],
    ],
  ])('%s', (_why, object, expected) => expect(kindOf(object)).toEqual(expected))
  test.each<readonly [string, Partial<NodeSpec>, Seen]>([
    [
      'an empty node while it is cordoned',
      { isCordoned: true, isInMaintenance: true, operation: stanza('node.cordon') },
      seen({ mirror: closed }),
    ],
    [
      'an empty node while it is uncordoned',
      { isCordoned: true, isInMaintenance: true, operation: stanza('node.uncordon') },
      seen({ mirror: closed }),
    ],
    [
      'another agent while it is cordoned',
      { isCordoned: true, desiredAgentVersion: '2', operation: stanza('node.cordon') },
      seen({ mirror: closed }),
    ],
    [
      'a cordon while it gets another agent',
      {
        isCordoned: true,
        operation: stanza('node.agent_upgrade', { arguments: { version: '1' }, deadlineAt: NOW.toISOString() }),
      },
      seen({ mirror: closed }),
    ],
  ])('that asks for %s is not taken for done with that', (_what, spec, world) => {
    const asked = node({ state: 'ready', ...open }, spec)
    const [status, before] = [statusOf(plan(asked, world, NOW)), asked.status]
    const after = {
      ...asked,
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
    expect(plan(edit, seen(), NOW)).toEqual(plan(edit, seen(), NOW))
    expect(JSON.stringify(plan(edit, seen(), NOW))).toContain('"actor":"user:kubectl"')
  })
  test('that asks for an empty node cordons it', () => {
    expect(plan(node({ state: 'ready', ...open }, { isInMaintenance: true }), seen(), NOW)[0]).toMatchObject({
      do: 'change',
      patch: { spec: { isCordoned: true } },
    })
  })
})

describe('provisioning', () => {
  const joining = node({ state: 'provisioning' }, { operation: stanza('node.provision') })
  test.each<readonly [string, Seen, readonly string[]]>([
    [
      'gives the agent its access',
      seen({ hasAccess: false, report: undefined, heartbeat: undefined, mirror: undefined }),
      ['effect grant', 'effect audit', 'operation access', 'state provisioning'],
    ],
    [
      'waits for the agent',
      seen({ report: undefined, heartbeat: undefined, mirror: undefined }),
      ['effect audit', 'operation reported', 'state provisioning'],
    ],
    [
      'tells placement',
      seen({ mirror: undefined }),
      ['effect mirror true', 'effect audit', 'operation placeable', 'state ready'],
    ],
    ['is done when servers can come', seen(), ['effect audit', 'operation succeeded', 'state ready']],
  ])('%s', (_why, world, expected) => expect(told(plan(joining, world, NOW))).toEqual(expected))
  test('of a node that is not for servers does not wait for placement', () => {
    const gateway = node({ state: 'provisioning' }, { roles: ['network'], operation: stanza('node.provision') })
    expect(told(plan(gateway, seen({ mirror: undefined }), NOW))).toEqual([
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
    expect(told(plan(given, seen({ report: undefined, heartbeat: undefined, mirror: undefined }), NOW))).toEqual([
      'effect audit',
      'operation cancelled',
      'state provisioning',
    ])
  })
  test('fails at its deadline', () => {
    const late = node(
      { state: 'provisioning' },
      { operation: stanza('node.provision', { deadlineAt: '2026-01-01T11:59:59Z' }) },
    )
    expect(
      operationOf(plan(late, seen({ report: undefined, heartbeat: undefined, mirror: undefined }), NOW)),
    ).toMatchObject({ outcome: 'failed', error: 'It was not done in time: still waiting for its agent to report.' })
  })
})
