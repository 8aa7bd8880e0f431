import { describe, expect, test } from 'vitest'
import {
  isReachableState,
  NODE_STATES,
  type NodeFacts,
  type NodeState,
  requireCordonable,
  requireDrainable,
  requireEmptyToDedicate,
  requireFenceable,
  requireNodeIdle,
  requireRemovable,
  requireUncordonable,
  requireUpgradable,
} from '../../../domain/node/rules.ts'
import type { Problem } from '../../../domain/problem.ts'

const node = (facts: Partial<NodeFacts> = {}): NodeFacts => ({
  id: 'n1',
  zone: 'z1',
  state: 'ready',
  isCordoned: false,
  isInMaintenance: false,
  isDeleting: false,
  activeOperationId: undefined,
  agentVersion: '1',
  serverCount: 0,
  ...facts,
})

/** The refusal and its first words, or `accepted`. */
function judged(judge: () => void): string {
  try {
    judge()
    return 'accepted'
  } catch (error) {
    const { status, members, message } = error as Problem // rules throw nothing else
    expect(members.resource).toEqual({ type: 'node', id: 'n1' })
    return `${status} ${members.reason}: ${message}`
  }
}
const WRONG = '409 state_not_allowed: '
const BUSY = expect.stringMatching(/^409 operation_in_progress/)
const busy = { activeOperationId: 'op' }

const RULES = {
  change: requireNodeIdle,
  cordon: requireCordonable,
  uncordon: (facts: NodeFacts) => requireUncordonable({ ...facts, isCordoned: true }),
  drain: requireDrainable,
  upgrade: (facts: NodeFacts) => requireUpgradable(facts, '2', []),
  remove: (facts: NodeFacts) => requireRemovable({ ...facts, isCordoned: true }, []),
} as const satisfies Record<string, (facts: NodeFacts) => void>

describe.each(Object.entries(RULES))('%s', (_verb, rule) => {
  test('is accepted of an idle node', () => expect(judged(() => rule(node()))).toBe('accepted'))
  test('waits for another operation, and names its id', () => {
    expect(judged(() => rule(node(busy)))).toEqual(BUSY)
    expect(() => rule(node(busy))).toThrow(
      expect.objectContaining({ members: expect.objectContaining({ active_operation_id: 'op' }) }),
    )
  })
  test('is refused of a node that is being removed', () =>
    expect(judged(() => rule(node({ isDeleting: true })))).toBe(`${WRONG}The node is being removed.`))
})

/** The states in which the rule accepts a node. */
const accepting = (judge: (state: NodeState) => void) =>
  NODE_STATES.filter((state) => judged(() => judge(state)) === 'accepted')

test('agents of these states renew their heartbeats', () =>
  expect(NODE_STATES.filter(isReachableState)).toEqual(['ready', 'cordoned', 'draining', 'maintenance']))

test('a node is cordoned once, and uncordoned when it is cordoned and not fenced', () => {
  expect(judged(() => requireCordonable(node({ isCordoned: true })))).toBe(`${WRONG}The node is cordoned already.`)
  expect(judged(() => requireUncordonable(node()))).toBe(`${WRONG}The node is not cordoned.`)
  expect(accepting((state) => requireUncordonable(node({ state, isCordoned: true })))).toEqual(
    NODE_STATES.filter((state) => state !== 'fencing' && state !== 'fenced'),
  )
})

test('a node is emptied while it is ready or cordoned', () =>
  expect(accepting((state) => requireDrainable(node({ state })))).toEqual(['ready', 'cordoned']))

describe('fencing', () => {
  test('takes what does not answer', () =>
    expect(accepting((state) => requireFenceable(node({ state }), false))).toEqual(['unreachable']))
  test('takes by force everything that has run guests', () =>
    expect(accepting((state) => requireFenceable(node({ state }), true))).toEqual(
      NODE_STATES.filter((state) => state !== 'provisioning' && state !== 'fenced'),
    ))
  test('takes the place of any operation but another fencing', () => {
    expect(judged(() => requireFenceable(node({ state: 'unreachable', ...busy }), false))).toBe('accepted')
    expect(judged(() => requireFenceable(node({ state: 'fencing', ...busy }), true))).toEqual(BUSY)
  })
  test('never takes a node that is being removed', () =>
    expect(judged(() => requireFenceable(node({ state: 'unreachable', isDeleting: true }), true))).toBe(
      `${WRONG}The node is being removed.`,
    ))
  test.each<readonly [NodeState, string]>([
    ['fenced', 'The node is fenced already.'],
    ['provisioning', 'The node is provisioning: nothing has run on it yet.'],
    ['ready', 'The node is ready: it answers. Fence it with force only if its servers may lose their guests.'],
  ])('of a %s node says what to do', (state, text) =>
    expect(judged(() => requireFenceable(node({ state }), false))).toBe(WRONG + text),
  )
})

describe('an upgrade', () => {
  const other = (id: string, agentVersion: string, upgradingTo?: string, state: NodeState = 'ready') => ({
    id,
    agentVersion,
    state,
    upgradingTo,
  })
  test('is for agents that answer', () =>
    expect(accepting((state) => requireUpgradable(node({ state }), '2', []))).toEqual([
      'ready',
      'cordoned',
      'maintenance',
    ]))
  test.each([
    ['is tried by one node of the zone first', [other('n2', '1', '2')], 'Node n2 tries version 2'],
    ['goes on when that node reports the version', [other('n2', '2', '2')], 'accepted'],
    ['goes on when any node reports it', [other('n2', '1', '2'), other('n3', '2')], 'accepted'],
    [
      'is not proven by a node that does not answer',
      [other('n2', '1', '2'), other('n3', '2', undefined, 'unreachable')],
      'Node n2 tries version 2',
    ],
    ['does not wait for one to another version', [other('n2', '1', '3')], 'accepted'],
    ['needs no proof where nobody tries it', [other('n2', '1')], 'accepted'],
  ])('%s', (_what, others, expected) =>
    expect(judged(() => requireUpgradable(node(), '2', others))).toContain(expected),
  )
})

test('a record goes when nothing is left on the node and nothing can come', () => {
  const remove = (facts: Partial<NodeFacts>, storages: readonly string[] = []) =>
    judged(() => requireRemovable(node({ isCordoned: true, ...facts }), storages))
  expect(remove({ isCordoned: false })).toBe(`${WRONG}The node is not cordoned. Cordon it first.`)
  expect(remove({ serverCount: 1 })).toBe('409 in_use: A server has its place on the node. Drain it first.')
  expect(remove({ serverCount: 2, isCordoned: false })).toBe(
    '409 in_use: 2 servers have their place on the node. Drain it first.',
  )
  expect(remove({ serverCount: 1, state: 'fenced' })).toBe(
    '409 in_use: A server has its place on the node. Bring it elsewhere or give it up first.',
  )
  expect(remove({ serverCount: 3, state: 'fenced' })).toBe(
    '409 in_use: 3 servers have their place on the node. Bring them elsewhere or give them up first.',
  )
  expect(remove({ isCordoned: false }, ['s1', 's2'])).toBe(
    '409 in_use: Storages have their place on the node: s1, s2. Move or delete them first.',
  )
  const many = Array.from({ length: 12 }, (_, index) => `s${index}`)
  expect(remove({}, many)).toContain('s8, s9 and 2 more.')
})

test('a node changes hands while nobody is on it', () => {
  expect(judged(() => requireEmptyToDedicate(node()))).toBe('accepted')
  expect(judged(() => requireEmptyToDedicate(node({ serverCount: 1 })))).toBe(
    '409 in_use: A server has its place on the node. Only an empty node changes hands.',
  )
})
