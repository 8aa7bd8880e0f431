/** Bodies of operations as JSON schema, as far as forms read it. */

export interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: string
  readonly anyOf?: readonly FieldSchema[]
  /** `date-time` for instants. */
  readonly format?: string
  /** Of an object with named fields. */
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly additionalProperties?: unknown
  readonly required?: readonly string[]
  readonly items?: FieldSchema
  /** Another schema: `#/$defs/Name`. */
  readonly $ref?: string
}

export interface BodySchema {
  readonly properties?: Readonly<Record<string, FieldSchema>>
  readonly required?: readonly string[]
  readonly $defs?: Readonly<Record<string, FieldSchema>>
  /** The operation answers `?dry_run=true`. */
  readonly takesDryRun?: boolean
  readonly flags: Readonly<Record<string, string>>
}
