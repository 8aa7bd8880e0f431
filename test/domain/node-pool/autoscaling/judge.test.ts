/** When pools grow and shrink, situation by situation. */
import { expect, test } from 'vitest'
import {
  bounded,
  judgeGrowth,
  judgeShrinking,
  rememberUnderused,
  type ScalingPool,
  UNDERUSED_SECONDS,
  underusedNodes,
} from '../../../../domain/node-pool/autoscaling/judge.ts'
import type { Load, LoadNode, LoadPod } from '../../../../domain/node-pool/autoscaling/load.ts'
import { allocatableOf } from '../../../../domain/node-pool/autoscaling/rooms.ts'
import { WAITING } from '../pods.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000).toISOString()
const GIBIBYTE = 1024 ** 3
const ALLOCATABLE = { cpu: 1_000, memory: 2 * GIBIBYTE, pods: 110 }

const node = (name: string, more: Partial<LoadNode> = {}): LoadNode => ({
  name,
  isReady: true,
  isSchedulable: true,
  isKept: false,
  labels: {},
  taints: [],
  allocatable: ALLOCATABLE,
  ...more,
})
const pod = (name: string, cpu: number, more: Partial<LoadPod> = {}): LoadPod => ({
  ...WAITING,
  name,
  requests: { cpu, pods: 1 },
  ...more,
})
const on = (name: string, cpu: number, where: string, more: Partial<LoadPod> = {}): LoadPod =>
  pod(name, cpu, { node: where, isUnschedulable: false, ...more })
const pool = (id: string, nodes: readonly string[], more: Partial<ScalingPool> = {}): ScalingPool => ({
  id,
  bounds: { min: 0, max: 5 },
  count: nodes.length,
  nodes,
  isBusy: false,
  isPaused: false,
  grownAt: undefined,
  template: { labels: { pool: id }, taints: [], allocatable: ALLOCATABLE, overhead: {} },
  ...more,
})
const load = (nodes: readonly LoadNode[], pods: readonly LoadPod[], budgets: Load['budgets'] = {}): Load => ({
  nodes,
  pods,
  budgets,
})
const three = [pod('a', 600), pod('b', 600), pod('c', 300)]

test.each<[reason: string, load: Load, pools: readonly ScalingPool[], grown: string | undefined]>([
  ['nothing waits', load([node('n')], [on('a', 900, 'n')]), [pool('p', ['n'])], undefined],
  ['two nodes are enough for three pods', load([], three), [pool('p', [])], 'p+2'],
  ['never above its bounds', load([], three), [pool('p', [], { bounds: { min: 0, max: 1 } })], 'p+1'],
  [
    'it is at its bounds',
    load([node('n')], [on('x', 900, 'n'), ...three]),
    [pool('p', ['n'], { bounds: { min: 0, max: 1 } })],
    undefined,
  ],
  ['it does not scale by itself', load([], three), [pool('p', [], { bounds: null })], undefined],
  ['it is busy', load([], three), [pool('p', [], { isBusy: true })], undefined],
  ['it has just failed to grow', load([], three), [pool('p', [], { isPaused: true })], undefined],
  ['nobody knows what its nodes are', load([], three), [pool('p', [], { template: undefined })], undefined],
  ['a node that comes has room', load([], [pod('a', 600)]), [pool('p', [], { count: 1 })], undefined],
  [
    'a node that is not ready yet counts as one that comes',
    load([node('n', { isReady: false })], [pod('a', 600)]),
    [pool('p', ['n'])],
    undefined,
  ],
  [
    'a node has room, whatever the scheduler has said',
    load([node('n')], [pod('a', 600)]),
    [pool('p', ['n'])],
    undefined,
  ],
  [
    'a node that is to go has none',
    load([node('n', { isSchedulable: false })], [pod('a', 600)]),
    [pool('p', [])],
    'p+1',
  ],
  ['no node could be big enough', load([], [pod('a', 1_001)]), [pool('p', [])], undefined],
  [
    'pods of each node take their part',
    load([], [pod('a', 950)]),
    [pool('p', [], { template: { labels: {}, taints: [], allocatable: ALLOCATABLE, overhead: { cpu: 100 } } })],
    undefined,
  ],
  [
    'a resource that its nodes do not have',
    load([], [pod('a', 1, { requests: { 'example.com/gpu': 1 } })]),
    [pool('p', [])],
    undefined,
  ],
  ['a pod of a daemon set asks for none', load([], [pod('a', 1, { isOfNode: true })]), [pool('p', [])], undefined],
  ['what is not understood asks for none', load([], [pod('a', 1, { isJudged: false })]), [pool('p', [])], undefined],
  ['the scheduler has not judged it', load([], [pod('a', 1, { isUnschedulable: false })]), [pool('p', [])], undefined],
  [
    'its selector names the pool',
    load([], [pod('a', 1, { selector: { pool: 'q' } })]),
    [pool('p', []), pool('q', [])],
    'q+1',
  ],
  [
    'its affinity excludes the pool',
    load([], [pod('a', 1, { affinity: [[{ key: 'pool', operator: 'NotIn', values: ['p'] }]] })]),
    [pool('p', []), pool('q', [])],
    'q+1',
  ],
  [
    'it does not tolerate the taint',
    load([], [pod('a', 1)]),
    [pool('p', [], { template: tainted('NoSchedule') })],
    undefined,
  ],
  [
    'it tolerates the taint',
    load([], [pod('a', 1, { tolerations: [{ key: 'only', operator: 'Exists', value: '', effect: '' }] })]),
    [pool('p', [], { template: tainted('NoSchedule') })],
    'p+1',
  ],
  [
    'a taint that only prefers others',
    load([], [pod('a', 1)]),
    [pool('p', [], { template: tainted('PreferNoSchedule') })],
    'p+1',
  ],
  [
    'each wants a node of its own',
    load(
      [node('n')],
      [on('x', 1, 'n', { apart: ['g'] }), pod('a', 1, { apart: ['g'] }), pod('b', 1, { apart: ['g'] })],
    ),
    [pool('p', ['n'])],
    'p+2',
  ],
  [
    'a port of a node is taken once',
    load([node('n')], [on('x', 1, 'n', { hostPorts: ['TCP/80'] }), pod('a', 1, { hostPorts: ['TCP/80'] })]),
    [pool('p', ['n'])],
    'p+1',
  ],
  [
    'of two pools the one that wastes less',
    load([], [pod('a', 600)]),
    [
      pool('p', [], {
        template: {
          labels: {},
          taints: [],
          allocatable: { cpu: 4_000, memory: 8 * GIBIBYTE, pods: 110 },
          overhead: {},
        },
      }),
      pool('q', []),
    ],
    'q+1',
  ],
  [
    'of two pools the one that takes more pods',
    load([], [pod('a', 600), pod('b', 1, { selector: { pool: 'p' } })]),
    [pool('q', []), pool('p', [], { bounds: { min: 0, max: 9 } })],
    'p+1',
  ],
])('growing: %s', (_reason, given, pools, grown) => {
  const growth = judgeGrowth(given, pools)
  expect(growth && `${growth.poolId}+${growth.by}`).toBe(grown)
})

function tainted(effect: string): NonNullable<ScalingPool['template']> {
  return { labels: {}, taints: [{ key: 'only', value: '', effect }], allocatable: ALLOCATABLE, overhead: {} }
}

const TWO = [node('m'), node('n')]
/** The first node is used well, so that the second one goes if any does. */
const busy = on('x', 600, 'm')

test.each<[reason: string, load: Load, more: Partial<ScalingPool>, gone: string | undefined]>([
  ['its pods find room on the other', load(TWO, [busy, on('a', 200, 'n')]), {}, 'n'],
  ['it is empty', load(TWO, [busy]), {}, 'n'],
  ['never below its bounds', load(TWO, [busy]), { bounds: { min: 2, max: 5 } }, undefined],
  ['it does not scale by itself', load(TWO, [busy]), { bounds: null }, undefined],
  ['half of it is taken', load(TWO, [busy, on('a', 500, 'n')]), {}, undefined],
  [
    'half of its memory is taken',
    load(TWO, [busy, on('a', 1, 'n', { requests: { memory: GIBIBYTE } })]),
    {},
    undefined,
  ],
  ['its pods find no room', load(TWO, [on('x', 900, 'm'), on('a', 200, 'n')]), {}, undefined],
  [
    'the other takes no pods',
    load([node('m', { isSchedulable: false }), node('n')], [busy, on('a', 200, 'n')]),
    {},
    undefined,
  ],
  ['a pod must stay', load(TWO, [busy, on('a', 1, 'n', { stays: 'it stores on its node' })]), {}, undefined],
  ['what is not understood stays', load(TWO, [busy, on('a', 1, 'n', { isJudged: false })]), {}, undefined],
  [
    'pods of each node go with it',
    load(TWO, [busy, on('a', 1, 'n', { isOfNode: true, stays: 'nothing makes it anew' })]),
    {},
    'n',
  ],
  ['a budget refuses', load(TWO, [busy, on('a', 1, 'n', { budgets: ['b'] })], { b: 0 }), {}, undefined],
  ['a budget allows one', load(TWO, [busy, on('a', 1, 'n', { budgets: ['b'] })], { b: 1 }), {}, 'n'],
  [
    'a budget allows one of two',
    load(TWO, [busy, ...['a', 'c'].map((name) => on(name, 1, 'n', { budgets: ['b'] }))], { b: 1 }),
    {},
    undefined,
  ],
  ['somebody keeps it', load([node('m'), node('n', { isKept: true })], [busy]), {}, undefined],
  ['it is not ready', load([node('m'), node('n', { isReady: false })], [busy]), {}, undefined],
  ['it takes no pods', load([node('m'), node('n', { isSchedulable: false })], [busy]), {}, undefined],
  ['its pool is busy', load(TWO, [busy]), { isBusy: true }, undefined],
  ['nodes have just come', load(TWO, [busy]), { grownAt: ago(UNDERUSED_SECONDS - 1) }, undefined],
  ['nodes came long ago', load(TWO, [busy]), { grownAt: ago(UNDERUSED_SECONDS) }, 'n'],
])('shrinking: %s', (_reason, given, more, gone) => {
  const pools = [pool('p', ['m', 'n'], more)]
  const since = new Map([['n', ago(UNDERUSED_SECONDS)]])
  expect(judgeShrinking(given, pools, { since, now: NOW })?.name).toBe(gone)
})

test('a node goes after the time, one at a time, the one that is used least first', () => {
  const given = load([node('l'), ...TWO], [on('x', 300, 'l'), on('y', 200, 'm')])
  const pools = [pool('p', ['l', 'm', 'n'])]
  const underused = underusedNodes(given, pools)
  expect(underused.map(({ name }) => name)).toEqual(['n', 'm', 'l'])
  const first = rememberUnderused(new Map([['gone', ago(9)]]), underused, NOW)
  expect([...first.keys()]).toEqual(['n', 'm', 'l'])
  const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000)
  const at = (seconds: number) => judgeShrinking(given, pools, { since: first, now: later(seconds) })?.name
  expect([at(UNDERUSED_SECONDS - 1), at(UNDERUSED_SECONDS)]).toEqual([undefined, 'n'])
  // One that was used in between begins anew.
  const again = rememberUnderused(first, underused.slice(1), later(60))
  expect(rememberUnderused(again, underused, later(120)).get('n')).toBe(later(120).toISOString())
  expect(rememberUnderused(again, underused, later(120)).get('m')).toBe(NOW.toISOString())
})

test('bounds, and what a node of a plan leaves to pods', () => {
  expect([bounded(3, null), bounded(0, { min: 1, max: 2 }), bounded(3, { min: 1, max: 2 })]).toEqual([3, 1, 2])
  const { cpu, memory, pods } = allocatableOf({ cores: 2, memoryMebibytes: 2_048, storageGibibytes: 20 })
  expect([cpu, pods]).toEqual([1_900, 110])
  expect((memory ?? 0) / 1024 ** 2).toBeCloseTo(1_473, 0)
})
