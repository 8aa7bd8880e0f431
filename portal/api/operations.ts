/** The operations of the API by their operationId, from the routes, with their types. */
import type { operations as OperatorOperations } from '../../client/operator-schema.ts'
import type { operations as CustomerOperations } from '../../client/schema.ts'
import type { Permission, StaffRule } from '../../domain/permissions.ts'

/** Of both listeners. A page names only those of one; types are in no bundle. */
interface Operations extends CustomerOperations, OperatorOperations {}

export type OperationId = keyof Operations

export interface OperationRule {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for parameters. */
  readonly path: string
  /** Absent for public routes. */
  readonly permission?: Permission
  /** Which role of staff it requires; absent for customers and for public routes. */
  readonly staffRole?: StaffRule
  readonly isDestructive?: boolean
  /** Reads a credential or a live view: only on a click, and audited. */
  readonly isCredentialRead?: boolean
  /** Its answer has secrets that are shown once. */
  readonly hasSecrets?: boolean
  /** A list that takes a limit. */
  readonly isPaged?: boolean
  /** Kinds of operations that it starts. */
  readonly starts?: readonly string[]
  /** Noun and verb on the command line; absent where there is no command. */
  readonly command?: string
}

type Responses<Id extends OperationId> = Operations[Id]['responses']
type Json<Response> = Response extends { content: { 'application/json': infer Body } } ? Body : never
type Success = 200 | 201 | 202

/** The body of a success. */
export type Answer<Id extends OperationId> = {
  [Status in keyof Responses<Id> & Success]: Json<Responses<Id>[Status]>
}[keyof Responses<Id> & Success]

/** The item of a list. */
export type ItemOf<Id extends OperationId> = Answer<Id> extends { items: (infer Item)[] } ? Item : never

export type ListId = { [Id in OperationId]: Answer<Id> extends { items: unknown[] } ? Id : never }[OperationId]

export type PathOf<Id extends OperationId> = Operations[Id]['parameters'] extends { path: infer Path }
  ? Path
  : undefined
export type QueryOf<Id extends OperationId> = Operations[Id]['parameters'] extends { query?: infer Query }
  ? Query
  : undefined
export type BodyOf<Id extends OperationId> = Operations[Id] extends {
  requestBody?: { content: { 'application/json': infer Body } }
}
  ? Body
  : undefined
