/** What the compiler refuses: an effect that a plan asks for and nobody has, one that is missing or too many, and two
 *  of one name. `tsc` checks this file: where a mistake compiles, its directive is an error. */
import { expect, test } from 'vitest'
import { type ActionWith, type EffectsOn, joinEffects, type JoinedInputs } from '../../../controllers/kit/effects.ts'
import { controller } from '../../../controllers/kit/controller.ts'
import { Zone } from '../../../resources/catalog/index.ts'

interface Claims {
  readonly claim: { readonly serverId: string }
}
interface Moves {
  readonly release: { readonly operationId: string }
}
type Twice = JoinedInputs<Claims, Claims & Moves>

const nothing = async () => undefined
const claims: EffectsOn<Claims, unknown, unknown> = { claim: nothing }
const moves: EffectsOn<Moves, unknown, unknown> = { release: nothing }

const decided: readonly ActionWith<Claims>[] = [
  { do: 'effect', name: 'claim', input: { serverId: 'web' } },
  // @ts-expect-error an effect that the noun does not have
  { do: 'effect', name: 'release', input: { serverId: 'web' } },
  // @ts-expect-error an input that the effect does not take
  { do: 'effect', name: 'claim', input: { operationId: 'op-1' } },
]

// @ts-expect-error an effect that nobody asks for
const tooMany: EffectsOn<Claims, unknown, unknown> = { claim: nothing, release: nothing }
// @ts-expect-error an effect without an implementation
const missing: EffectsOn<Claims & Moves, unknown, unknown> = { claim: nothing }
// @ts-expect-error the inputs of an effect that is declared twice are no inputs
const declaredTwice: Twice = { claim: { serverId: 'web' }, release: { operationId: 'op-1' } }
// @ts-expect-error a name that both maps have: one of the two would never run
const implementedTwice = () => joinEffects(claims, claims)

const noun = {
  name: 'zone',
  resource: Zone,
  sharding: 'zones',
  reads: [],
  writes: [],
  open: () => ({ watches: [], observe: () => undefined, effects: claims }),
} as const
const registered = controller<Claims>()({ ...noun, plan: () => [] })
const wrong = () =>
  // @ts-expect-error a plan that asks for an effect which its noun does not register
  controller<Claims>()({ ...noun, plan: () => [{ do: 'effect', name: 'release', input: { operationId: 'op-1' } }] })

test('effects of two parts are one map', () => {
  expect(Object.keys(joinEffects(claims, moves))).toEqual(['claim', 'release'])
  expect(registered.open({})).toMatchObject({ name: 'zone', effects: claims })
  expect([decided, tooMany, missing, declaredTwice, implementedTwice, wrong]).toHaveLength(6)
})
