/** Servers that go to another zone: what is asked for there, and the turns in which server and zone come together
 *  again. */
import { expect, test } from 'vitest'
import { plan } from '../../../../../controllers/nouns/server/plan.ts'
import type { Observed } from '../../../../../controllers/nouns/server/observed.ts'
import type { Action } from '../../../../../kit/reconcile/action.ts'
import { disk, type Move, moved, moving, TARGET, there, written } from './worlds.ts'
import { instance, NOW, storage } from '../worlds.ts'

const ZONE = 'zone-2'
const off = instance({ power: 'stopped' }, { state: 'stopped' })
const pooled = { ...storage('online'), status: { state: 'online', pool: 'pool-1' } } as const
const target = { operationId: 'op-1', zone: ZONE, node: TARGET }

const leaving = (scene: Parameters<typeof moving>[0]): Move => {
  const world = moving({ kind: 'server.move', power: 'stopped', source: off, args: { target_zone: ZONE }, ...scene })
  const { claims } = world.observed
  return claims?.target === undefined
    ? world
    : { ...world, observed: { ...world.observed, claims: { ...claims, target } } }
}
/** Its room is in the other zone; its spec does not say so yet. */
function arrived(scene: Parameters<typeof moving>[0]): Move {
  const world = leaving({
    held: undefined,
    isSwitched: true,
    source: there({ power: 'stopped' }, { state: 'stopped' }, 'op-1'),
    ...scene,
  })
  const { claims } = world.observed
  if (claims === undefined) throw new Error('a server that has moved has claims')
  return {
    ...world,
    observed: { ...world.observed, claims: { ...claims, placement: { ...claims.placement, zone: ZONE } } },
  }
}
const changes = (actions: readonly Action[]) =>
  actions.flatMap((action) => (action.do === 'change' ? [action.patch] : []))
const inputOf = (world: Move, name: string) =>
  plan(world.server, world.observed, NOW).flatMap((action) =>
    action.do === 'effect' && action.name === name ? [action.input] : [],
  )[0]

test('room is asked for in the other zone, whatever shared storage it reaches', () => {
  expect(inputOf(leaving({ held: undefined, observed: { storage: pooled } }), 'reserve')).toMatchObject({
    zone: ZONE,
    operationId: 'op-1',
  })
  expect(inputOf(leaving({ held: undefined, observed: { storage: pooled } }), 'reserve')).not.toHaveProperty('pools')
  const inZone = (observed: Partial<Observed>, args = {}) =>
    inputOf(leaving({ held: undefined, args, observed: { storage: pooled, ...observed } }), 'reserve')
  expect(inZone({})).toMatchObject({ pools: ['pool-1'], isToShare: false })
  const own = { ...disk('ready'), spec: { ...disk('ready').spec, pool: 'pool-2' } }
  expect(inZone({ dataDisks: [{ volume: 'data', own, target: undefined }] })).toMatchObject({
    pools: ['pool-1', 'pool-2'],
  })
  expect(inZone({ storage: storage('online') }, { storage_tier: 'standard' })).toMatchObject({
    pools: [],
    isToShare: true,
  })
})

test('a copy of a shared disk is as good there as the disk itself', () => {
  const copy = disk('ready')
  const onItsWay = (targetVolume: typeof copy) =>
    moved(leaving({ migration: written('detached'), observed: { storage: pooled, targetVolume } }))
  expect(onItsWay({ ...copy, spec: { ...copy.spec, pool: 'pool-2' } })).toContain('remove Instance on node-node-1')
  expect(
    onItsWay({ ...copy, spec: { ...copy.spec, pool: 'pool-2', source: { kind: 'copy', name: 'op-0' } } }),
  ).not.toContain('remove Instance on node-node-1')
})

test('what is written of the move names the zone', () => {
  const status = plan(leaving({}).server, leaving({}).observed, NOW).find((action) => action.do === 'status')
  expect(status).toMatchObject({ status: { migration: { state: 'reserved', targetZone: ZONE } } })
})

test('once it runs there the status reports the move first, then the zone changes, in a separate turn', () => {
  const untold = arrived({ migration: written('detached') })
  expect(changes(plan(untold.server, untold.observed, NOW))).toEqual([])
  expect(moved(untold).at(-1)).toBe('switched')
  const actionLines = arrived({ migration: written('switched', { targetZone: ZONE }) })
  expect(changes(plan(actionLines.server, actionLines.observed, NOW))).toEqual([{ spec: { zone: ZONE } }])
  expect(
    moved(actionLines).filter(
      (line) => line.startsWith('ensure') || line.startsWith('remove') || line.startsWith('effect'),
    ),
  ).toEqual([])
})

test('whatever is done to it then waits for that turn, but for its end', () => {
  const begun = arrived({
    kind: 'server.start',
    migration: written('switched', { targetZone: ZONE, operationId: 'op-0' }),
  })
  expect(changes(plan(begun.server, begun.observed, NOW))).toEqual([{ spec: { zone: ZONE } }])
  const ending = arrived({
    kind: 'server.delete',
    migration: written('switched', { targetZone: ZONE, operationId: 'op-0' }),
  })
  expect(changes(plan(ending.server, ending.observed, NOW))).toEqual([])
})

test(
  'who takes it over and does not know its disk yet waits for it, whether it is on its way, has come, or was left ' +
    'in the middle',
  () => {
    const unknown = { observed: { storage: undefined } }
    for (const world of [
      moving({ migration: written('reserved'), ...unknown }),
      arrived({ migration: written('switched', { targetZone: ZONE }), ...unknown }),
      moving({ kind: 'server.settle_migration', held: 'op-0', ...unknown }),
      moving({ kind: 'server.start', held: 'op-0', ...unknown }),
    ]) {
      const actions = plan(
        { ...world.server, spec: { ...world.server.spec, zone: world.observed.claims?.placement.zone ?? ZONE } },
        world.observed,
        NOW,
      )
      expect(actions.flatMap((action) => (action.do === 'operation' ? [action.outcome] : []))).not.toContain('failed')
      expect(actions.some((action) => action.do === 'wait')).toBe(true)
    }
  },
)

test('what a move left behind goes with the server', () => {
  const { server, observed } = moving({
    kind: 'server.delete',
    held: undefined,
    isSwitched: true,
    source: undefined,
    migration: written('switched', { operationId: 'op-0' }),
    observed: { storage: undefined },
  })
  const actions = plan(
    { ...server, metadata: { ...server.metadata, deletionTimestamp: NOW.toISOString() } },
    observed,
    NOW,
  )
  expect(actions.flatMap((action) => (action.do === 'remove' ? [action.key.namespace] : []))).toEqual(
    expect.arrayContaining(['node-node-1', 'node-node-2']),
  )
})
