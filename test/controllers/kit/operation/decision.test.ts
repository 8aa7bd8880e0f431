/** The steps of plans: the compiler holds them to the table of operations. */
import { expectTypeOf, test } from 'vitest'
import { failed } from '../../../../controllers/kit/synced.ts'
import type { OperationDecision } from '../../../../controllers/kit/operation/decision.ts'
import type { KindOf, StepOf } from '../../../../domain/operations.ts'

type Decision = OperationDecision<never, KindOf<'edge'>>

test('a plan names the steps of its own operations, and no others', () => {
  expectTypeOf<StepOf<'edge.delete'>>().toEqualTypeOf<'withdrawn' | 'machines' | 'released'>()
  expectTypeOf<StepOf<'server.metadata'>>().toEqualTypeOf<'done'>()
  expectTypeOf<{ readonly step: 'announced' }>().toExtend<Decision>()
  // @ts-expect-error a step of another noun
  const other: Decision = { step: 'archived' }
  // @ts-expect-error a step of no operation
  failed('platform', 'It is not released.')
  expectTypeOf(other).toEqualTypeOf<Decision>()
})
