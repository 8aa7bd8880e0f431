/** What differs between the customers' portal and that of staff and operators. Each page names its own first of all:
 *  what is common knows neither, so neither is loaded by the other. */
import type { OperationKind } from '../../domain/operations.ts'
import type { TerraformResource } from '../nouns/terraform.ts'
import type { Locale } from '../texts/index.ts'
import type { Notes } from '../texts/notes.ts'
import type { BodySchema } from './body-schema.ts'
import type { ListId, OperationId, OperationRule } from './operations.ts'

export interface Portal {
  /** The operations that its listener serves, by operationId. */
  readonly operations: Readonly<Record<string, OperationRule>>
  /** Their bodies. Only forms load them. */
  readonly bodies: () => Promise<Readonly<Record<string, BodySchema>>>
  /** Resources of Terraform, by the operation that creates them; none for operators. */
  readonly terraform?: () => Promise<Readonly<Record<string, TerraformResource>>>
  /** Notes of its fields that are not those of customers, in a language. */
  readonly notes?: (locale: Locale) => Promise<Notes>
  /** Cookie with the token that every unsafe request repeats. */
  readonly csrfCookie: string
  /** Reads who is signed in. */
  readonly me: OperationId
  /** Whether somebody may call an operation. The second argument is the answer of `me`; undefined while it is read. */
  readonly permits: (rule: OperationRule, me: unknown) => boolean
  readonly operationList: ListId
  readonly cancelOperation: OperationId
  /** Whether those who use it may cancel an operation of the kind. */
  readonly isCancellable: (kind: OperationKind) => boolean
  /** Operations can be listed by the resource that they changed. */
  readonly hasActivity: boolean
}

let current: Portal | undefined

export const openPortal = (portal: Portal): void => {
  current = portal
}

/** Throws before a page has named its portal. */
export function portal(): Portal {
  if (current === undefined) throw new Error('no portal is open')
  return current
}

/** Throws for an operation that the listener of this page does not serve. */
export function ruleOf(id: OperationId): OperationRule {
  const rule = portal().operations[id]
  if (rule === undefined) throw new Error(`this portal has no operation ${id}`)
  return rule
}
