/** x-kubernetes-validations: the rules in CEL that go with a schema. */
import type { Definition } from '../core/definition.ts'
import type { KubeObject } from '../core/object.ts'
import type { Cause } from '../core/status.ts'
import type { Schema } from './schema.ts'

export interface RuleInput {
  readonly definition: Definition
  readonly schema: Schema
  readonly object: KubeObject
  readonly old: KubeObject | undefined
  /** What the schema itself found. */
  readonly faults: readonly Cause[]
}

export function ruleFaults({ faults }: RuleInput): readonly Cause[] {
  return faults
}
