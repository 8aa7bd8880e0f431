import { describe, expect, test } from 'vitest'
import type { Problem } from '../../../domain/problem.ts'
import {
  requireDeletable,
  requireMovable,
  requireRebuildable,
  requireReleasable,
  requireRenumberable,
  requireStartable,
  requireStoppable,
  requireStopped,
  type ServerFacts,
} from '../../../domain/server/rules.ts'

const server = (facts: Partial<ServerFacts>): ServerFacts => ({
  id: 'web',
  state: 'started',
  isProtected: false,
  isDeleting: false,
  isHostUnreachable: false,
  plan: 'tiny',
  storageGibibytes: 1,
  activeOperation: undefined,
  ...facts,
})
const BUSY = { id: 'op-1', kind: 'server.restart' } as const

const VERBS = {
  start: requireStartable,
  stop: requireStoppable,
  'change plan': requireStopped,
  rebuild: (facts: ServerFacts) => requireRebuildable(facts, false),
  'rebuild with stop': (facts: ServerFacts) => requireRebuildable(facts, true),
  move: (facts: ServerFacts) => requireMovable(facts, facts.state === 'stopped' ? 'stopped' : 'started'),
  delete: requireDeletable,
} as const satisfies Record<string, (facts: ServerFacts) => void>
type Verb = keyof typeof VERBS

/** The refusal, or `accepted`. */
const judged = (verb: Verb, facts: Partial<ServerFacts>): string => judgedBy(() => VERBS[verb](server(facts)))
function judgedBy(judge: () => void): string {
  try {
    judge()
    return 'accepted'
  } catch (error) {
    const {
      status,
      members: { reason },
    } = error as Problem
    return `${status} ${reason}`
  }
}
const saying = (verb: Verb, facts: Partial<ServerFacts>): string => {
  try {
    VERBS[verb](server(facts))
    return ''
  } catch (error) {
    return (error as Problem).message
  }
}
const table = (facts: Partial<ServerFacts>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.keys(VERBS).map((verb) => [verb, judged(verb as Verb, facts)]))
const ALLOWED = 'accepted'
const WRONG = '409 state_not_allowed'
const SILENT = '503 host_unreachable'
const ON = '409 server_not_stopped'

describe('what is allowed', () => {
  test.each<readonly [string, Partial<ServerFacts>, Readonly<Record<Verb, string>>]>([
    [
      'of a started server',
      {},
      {
        start: WRONG,
        stop: ALLOWED,
        'change plan': ON,
        rebuild: ON,
        'rebuild with stop': ALLOWED,
        move: ALLOWED,
        delete: ALLOWED,
      },
    ],
    [
      'of a stopped one',
      { state: 'stopped' },
      {
        start: ALLOWED,
        stop: WRONG,
        'change plan': ALLOWED,
        rebuild: ALLOWED,
        'rebuild with stop': ALLOWED,
        move: ALLOWED,
        delete: ALLOWED,
      },
    ],
    [
      'of one in error',
      { state: 'error' },
      {
        start: ALLOWED,
        stop: WRONG,
        'change plan': WRONG,
        rebuild: WRONG,
        'rebuild with stop': WRONG,
        move: WRONG,
        delete: ALLOWED,
      },
    ],
    [
      'of one whose host is silent',
      { state: 'error', isHostUnreachable: true },
      {
        start: SILENT,
        stop: WRONG,
        'change plan': WRONG,
        rebuild: WRONG,
        'rebuild with stop': WRONG,
        move: WRONG,
        delete: ALLOWED,
      },
    ],
    [
      'of a stopped one whose host is silent',
      { state: 'stopped', isHostUnreachable: true },
      {
        start: SILENT,
        stop: WRONG,
        'change plan': SILENT,
        rebuild: SILENT,
        'rebuild with stop': SILENT,
        move: SILENT,
        delete: ALLOWED,
      },
    ],
    [
      'of a protected one',
      { isProtected: true },
      {
        start: WRONG,
        stop: ALLOWED,
        'change plan': ON,
        rebuild: '409 protected',
        'rebuild with stop': '409 protected',
        move: ALLOWED,
        delete: '409 protected',
      },
    ],
  ])('%s', (_which, facts, expected) => expect(table(facts)).toEqual(expected))

  test('nothing while an operation runs, whether or not it would be refused otherwise', () => {
    const busy = { activeOperation: BUSY, isProtected: true, isHostUnreachable: true, state: 'error' } as const
    expect(new Set(Object.values(table(busy)))).toEqual(new Set(['409 operation_in_progress']))
  })
  test('only deletion while the server is being made', () => {
    const { delete: deletion, ...others } = table({
      state: 'creating',
      activeOperation: { id: 'op-1', kind: 'server.create' },
    })
    expect([deletion, new Set(Object.values(others))]).toEqual([ALLOWED, new Set(['409 operation_in_progress'])])
  })
  test('no second deletion while the server is being made, and none of a protected one', () => {
    const activeOperation = { id: 'op-1', kind: 'server.create' } as const
    expect(judged('delete', { state: 'creating', activeOperation, isDeleting: true })).toBe(WRONG)
    expect(judged('delete', { state: 'creating', activeOperation, isProtected: true })).toBe('409 protected')
  })
  test('nothing once it is being deleted', () =>
    expect(new Set(Object.values(table({ state: 'deleting', isDeleting: true })))).toEqual(new Set([WRONG])))
})

describe('a server of a lost node', () => {
  const release = (facts: Partial<ServerFacts>) =>
    judgedBy(() => requireReleasable(server({ isHostUnreachable: true, ...facts })))
  test('is abandoned even if something waits for its node', () => {
    expect(release({ state: 'error' })).toBe(ALLOWED)
    expect(release({ activeOperation: BUSY })).toBe(ALLOWED)
    expect(release({ isDeleting: true, state: 'deleting' })).toBe(ALLOWED)
  })
  test('is given up once, and not while it is protected', () => {
    const activeOperation = { id: 'op', kind: 'server.force_release' } as const
    expect(release({ activeOperation, isProtected: true })).toBe('409 operation_in_progress')
    expect(release({ isProtected: true })).toBe('409 protected')
  })
})

test('an IPv6 prefix is exchanged where that is offered, of an idle server', () => {
  const renumber = (facts: Partial<ServerFacts>, isAvailable: boolean) =>
    judgedBy(() => requireRenumberable(server(facts), isAvailable))
  expect(renumber({}, true)).toBe(ALLOWED)
  expect(renumber({}, false)).toBe(WRONG)
  expect(renumber({ activeOperation: BUSY }, true)).toBe('409 operation_in_progress')
})

test('what is on while it starts or stops', () => {
  for (const state of ['starting', 'started', 'stopping'] as const) {
    expect(judged('change plan', { state })).toBe(ON)
    expect(judged('rebuild', { state })).toBe(ON)
  }
  expect(judged('rebuild with stop', { state: 'starting' })).toBe(WRONG)
  expect(judged('change plan', { state: 'creating' })).toBe(WRONG)
  expect(table({ state: 'deleting' })).toEqual(table({ isDeleting: true }))
})

describe('a refusal says what to do', () => {
  test.each<readonly [Verb, Partial<ServerFacts>, string]>([
    [
      'stop',
      { state: 'error' },
      'The server is in state error; only a started one can be stopped or restarted. Start it first, or delete it.',
    ],
    [
      'move',
      { state: 'error', isHostUnreachable: true },
      'The server is in state error; only a started or a stopped one can be moved. The host of the server does ' +
        'not answer. The server shows its state again when the host is back; try again then.',
    ],
    ['rebuild', {}, 'The server is started. Stop it first, or send stop: true.'],
    ['start', {}, 'The server is in state started; only a stopped one can be started.'],
    ['stop', { state: 'stopped' }, 'The server is in state stopped; only a started one can be stopped or restarted.'],
    [
      'rebuild',
      { state: 'creating' },
      'The server is in state creating; only a started or a stopped one can be rebuilt.',
    ],
    ['change plan', {}, 'The server is started. Stop it first.'],
    ['delete', { isProtected: true }, 'The server is protected. Set is_protected to false first.'],
  ])('to %s %o', (verb, facts, text) => expect(saying(verb, facts)).toBe(text))
})
