/** Every combination of what two nodes may say, how far the move is written to be, and what is asked of it: whatever
 *  the plan does about it, a guest is never in two places and never in none. */
import { expect, test } from 'vitest'
import { plan } from '../../../../../controllers/nouns/server/plan.ts'
import type { Action } from '../../../../../kit/reconcile/action.ts'
import type { InstanceSpec } from '../../../../../resources/instance/index.ts'
import { MIGRATION_STATES } from '../../../../../resources/operation/index.ts'
import { disk, type Move, moving, receive, send, TARGET, there, transfer, written } from './worlds.ts'
import { after, instance, NOW } from '../worlds.ts'

const SOURCES = {
  runs: instance({}, {}),
  'was told to send': instance(send(), {}),
  sends: instance(send(), { transfer: transfer('send', 'transferring') }),
  'could not send': instance(send(), { transfer: transfer('send', 'failed') }),
  'handed over': instance(send(), { state: 'handed_over', transfer: transfer('send', 'completed') }),
  'ended while it sent': instance(send(), {
    state: 'stopped',
    endReason: 'crashed',
    transfer: transfer('send', 'completed'),
  }),
  crashed: instance({}, { state: 'stopped', endReason: 'crashed' }),
  'is being stopped for the move': instance(
    { power: 'stopped', stop: { id: 'op-1', type: 'soft', timeoutSeconds: 60, timeoutAction: 'hard' } },
    { state: 'stopping' },
  ),
  'was stopped for the move': instance(
    { power: 'stopped', stop: { id: 'op-1', type: 'soft', timeoutSeconds: 60, timeoutAction: 'hard' } },
    { state: 'stopped' },
  ),
  'is gone': undefined,
}

const TARGETS = {
  'is not there': undefined,
  prepares: there(receive(), undefined),
  listens: there(receive(), { state: 'receiving', incarnation: 0, transfer: transfer('receive', 'transferring') }),
  'waits for the next attempt': there(receive(2), {
    state: 'receiving',
    incarnation: 0,
    transfer: transfer('receive', 'transferring', { attempt: 2 }),
  }),
  failed: there(receive(), { state: 'stopped', incarnation: 0, transfer: transfer('receive', 'failed') }),
  'has the guest': there(receive(), { transfer: transfer('receive', 'completed') }),
  'had the guest, which crashed': there(receive(), {
    state: 'stopped',
    endReason: 'crashed',
    transfer: transfer('receive', 'completed'),
  }),
  'is leaving': there(receive(), { state: 'receiving', incarnation: 0 }, 'op-0', true),
  'was told to start it': there({ incarnation: 2 }, undefined, 'op-1'),
  'has started it': there({ incarnation: 2 }, { incarnation: 2 }, 'op-1'),
  'could not start it': there({ incarnation: 2 }, { state: 'error', incarnation: 1, detail: 'x' }, 'op-1'),
}
/** The guest may be running there, or begin to by itself. */
const MAY_RUN_THERE: readonly (keyof typeof TARGETS)[] = [
  'prepares',
  'listens',
  'has the guest',
  'was told to start it',
  'has started it',
  'is leaving',
  'waits for the next attempt',
]
const MADE_THERE: readonly (keyof typeof TARGETS)[] = ['was told to start it', 'has started it', 'could not start it']
const NEVER_GOES_ON: readonly (keyof typeof SOURCES)[] = ['handed over', 'ended while it sent']

interface Combination {
  readonly source: keyof typeof SOURCES
  readonly target: keyof typeof TARGETS
  readonly world: Move
  readonly isTargetSilent: boolean
}

function* combinations(): Generator<Combination> {
  for (const source of Object.keys(SOURCES) as (keyof typeof SOURCES)[]) {
    for (const target of Object.keys(TARGETS) as (keyof typeof TARGETS)[]) {
      if (MADE_THERE.includes(target) && source !== 'is gone') continue // the second of the rules below
      for (const state of MIGRATION_STATES)
        for (const args of [{}, { cancel: 'true' }, { mode: 'cold' }, { mode: 'live_then_cold' }] as Record<
          string,
          string
        >[]) {
          for (const kind of ['server.migrate', 'server.settle_migration'] as const)
            for (const isTargetSilent of [false, true])
              for (const now of [NOW, after(60), after(3_599)]) {
                const world = moving({
                  kind,
                  args,
                  now,
                  migration: written(state, { detail: state === 'aborting' ? 'why' : '' }),
                  source: SOURCES[source],
                  target: TARGETS[target],
                  observed: {
                    targetVolume: disk(
                      'ready',
                      kind === 'server.migrate' && args['mode'] !== 'cold' && state !== 'detached' ? 'mirror' : 'copy',
                    ),
                    unreachableNodes: isTargetSilent ? [TARGET] : [],
                  },
                })
                yield { source, target, world, isTargetSilent }
              }
        }
    }
  }
}

const onNode =
  (node: string) =>
  (action: Action): InstanceSpec | 'removed' | undefined => {
    if (action.do === 'remove' && action.type.kind === 'Instance' && action.key.namespace === `node-${node}`)
      return 'removed'
    return action.do === 'ensure' &&
      action.type.kind === 'Instance' &&
      action.draft.metadata.namespace === `node-${node}`
      ? (action.draft.spec as InstanceSpec)
      : undefined
  }
const isEffect =
  (name: string) =>
  (action: Action): boolean =>
    action.do === 'effect' && action.name === name

/** What the plan does with the instance here and there, and all that it does. */
interface Done extends Combination {
  readonly here: readonly (InstanceSpec | 'removed')[]
  readonly there: readonly (InstanceSpec | 'removed')[]
  readonly actions: readonly Action[]
}

const ALL: readonly Done[] = [...combinations()].map((combination) => {
  const {
    world: { server, observed, now },
  } = combination
  const actions = plan(server, observed, now)
  const specs = (node: string) => actions.map(onNode(node)).filter((spec) => spec !== undefined)
  return { ...combination, here: specs('node-1'), there: specs(TARGET), actions }
})

test.each<readonly [rule: string, isBroken: (done: Done) => boolean]>([
  [
    'the server changes its node only when the other has the guest',
    ({ actions, target }) =>
      actions.some(isEffect('switch')) &&
      !['has the guest', 'had the guest, which crashed', 'has started it'].includes(target),
  ],
  [
    'the guest is made on the other node only when nothing of it is left here',
    ({ there: made, source }) =>
      made.some((spec) => spec !== 'removed' && spec.receive === undefined) && source !== 'is gone',
  ],
  [
    'the guest is made anew here only when nothing of it is there',
    ({ here, source, target }) =>
      here.some((spec) => spec !== 'removed' && spec.power === 'running' && spec.incarnation > 1) &&
      (target === 'has the guest' ||
        MADE_THERE.includes(target) ||
        (NEVER_GOES_ON.includes(source) && MAY_RUN_THERE.includes(target))),
  ],
  [
    'nothing here is removed while the guest may run',
    ({ here, source }) => here.includes('removed') && source !== 'was stopped for the move',
  ],
  [
    'nothing there is removed that has the guest',
    ({ there: made, target }) => made.includes('removed') && target === 'has the guest',
  ],
  [
    'nothing there is removed before the sender has said how it ended',
    ({ there: made, source }) => made.includes('removed') && (source === 'sends' || source === 'was told to send'),
  ],
  [
    'nothing there is removed that a guest which left may still reach',
    ({ there: made, source, target }) =>
      made.includes('removed') && NEVER_GOES_ON.includes(source) && (target === 'listens' || target === 'prepares'),
  ],
  [
    'room is given back only when the guest is here, and cannot come to be there',
    ({ actions, source, target, isTargetSilent }) =>
      actions.some(isEffect('release')) &&
      (source === 'handed over' ||
        source === 'is gone' ||
        source === 'sends' ||
        source === 'was told to send' ||
        (MAY_RUN_THERE.includes(target) && !isTargetSilent)),
  ],
  [
    'a guest that does not go on here is never told to be sent',
    ({ here, source }) =>
      here.some((spec) => spec !== 'removed' && spec.send !== undefined && !spec.send.isCancelled) &&
      NEVER_GOES_ON.includes(source),
  ],
])('%s', (_rule, isBroken) => {
  const broken = ALL.filter(isBroken).map(
    ({ source, target, world: { server } }) =>
      `the source ${source}, the target ${target}, ${server.status?.migration?.state} ` +
      `${server.spec.operation?.kind} ${JSON.stringify(server.spec.operation?.arguments)}`,
  )
  expect([...new Set(broken)].slice(0, 5)).toEqual([])
})

test('there are many', () => expect(ALL.length).toBeGreaterThan(20_000))
