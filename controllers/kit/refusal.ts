/** A refusal of an effect by PostgreSQL becomes a condition, which the next plan reads. */
import { Problem } from '../../domain/problem.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { EffectReport } from '../../kit/reconcile/reconciler.ts'
import type { Condition } from '../../resources/kit/shapes.ts'
import type { EffectOn } from './effects.ts'
import { toReason } from './health.ts'

/** Wraps the effect: a refusal becomes a condition of the type. */
export const withRefusalCondition =
  <Input, Spec, Status>(type: string, effect: EffectOn<Input, Spec, Status>): EffectOn<Input, Spec, Status> =>
  async (input, root) => {
    try {
      return await effect(input, root)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      return {
        conditions: [
          {
            type,
            status: 'False',
            reason: toReason(error.members.reason ?? 'refused'),
            message: error.message,
            isRefusal: true,
          },
        ],
      }
    }
  }

/** Reports that nothing was refused. */
export const grantedCondition = (type: string): EffectReport => ({
  conditions: [{ type, status: 'True', reason: type, message: '' }],
})

interface WithConditions {
  readonly conditions?: readonly Condition[] | undefined
}

/** It was granted once. */
export const isGranted = ({ status }: KubeObject<unknown, WithConditions>, type: string): boolean =>
  status?.conditions?.some((each) => each.type === type && each.status === 'True') === true

/** The refusal of this generation of the spec only: another one may be granted. */
export function refusalOf(
  { metadata, status }: KubeObject<unknown, WithConditions>,
  type: string,
): Condition | undefined {
  const condition = status?.conditions?.find((each) => each.type === type)
  return condition?.status === 'False' && condition.observedGeneration === metadata.generation ? condition : undefined
}
