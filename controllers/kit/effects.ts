/** Effects as their nouns declare them: by name, each with the type of its input. A plan can ask only for the effects
 *  of its noun, and two effects never share a name: the compiler reports both errors. */
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { EffectReport } from '../../kit/reconcile/reconciler.ts'

/** The members of a type as one flat object type. */
type Flat<T> = { readonly [Name in keyof T]: T[Name] }

/** Asks for the effect of that name. `Inputs` maps the names of effects to their inputs. */
export type EffectAction<Inputs> = {
  readonly [Name in keyof Inputs & string]: {
    readonly do: 'effect'
    readonly name: Name
    readonly input: Flat<Inputs[Name]>
  }
}[keyof Inputs & string]

/** What the plan of a noun with these effects may decide. */
export type ActionWith<Inputs> = PlainAction | EffectAction<Inputs>

/** What every plan may decide. */
export type PlainAction = Exclude<Action, { do: 'effect' }>

/** For a noun that changes nothing outside Kubernetes. */
export type NoEffects = Readonly<Record<never, never>>

/** One effect of a noun. Its answer is written to the status of the object, as a `status` action would be. Idempotent:
 *  it may have happened already, completely, when it is asked for again. */
export type EffectOn<Input, Spec, Status> = (
  input: Input,
  root: KubeObject<Spec, Status>,
) => Promise<EffectReport | undefined>

/** An implementation for each effect that the noun declares, and for no other. */
export type EffectsOn<Inputs, Spec, Status> = {
  readonly [Name in keyof Inputs]: EffectOn<Flat<Inputs[Name]>, Spec, Status>
}

/** The effects of both; `never` when a name is in both. */
export type JoinedInputs<One, Other> = keyof One & keyof Other extends never ? One & Other : never

/** Merges two maps. Does not compile when both have a name in common: the error shows the name. */
export const joinEffects = <One extends object, Other extends object>(
  one: One,
  other: Other & (keyof One & keyof Other extends never ? unknown : { readonly isNamedTwice: keyof One & keyof Other }),
): One & Other => ({ ...one, ...other })
