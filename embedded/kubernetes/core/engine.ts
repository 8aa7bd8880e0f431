/** The dependencies of every handler. */
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import type { Random } from '../../../kit/sys/random.ts'
import type { Authorizer } from '../access/rbac.ts'
import type { Definition } from './definition.ts'
import type { JsonObject } from './json.ts'
import type { KubeObject, User } from './object.ts'
import type { Registry } from './registry.ts'
import type { Store } from './store.ts'
import type { WatchHub } from './watch-hub.ts'

/** One write that admission may still refuse. */
export interface Admission {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly definition: Definition
  readonly namespace: string
  /** Empty for the objects of a collection delete. */
  readonly name: string
  readonly subresource: string
  readonly object: KubeObject | undefined
  readonly old: KubeObject | undefined
  readonly user: User
  readonly isDryRun: boolean
  /** As the client sent it. */
  readonly fieldManager: string
  /** Options of a deletion, without `dryRun`. */
  readonly deleteOptions?: JsonObject
}

export interface AdmissionResult {
  readonly warnings: readonly string[]
}

/** Throws a Refusal when the write is denied; undefined when no webhook applies. */
export type Admit = (admission: Admission) => Promise<AdmissionResult> | undefined

export interface Engine {
  readonly store: Store
  readonly registry: Registry
  readonly watches: WatchHub
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly admit: Admit
  readonly authorizer: Authorizer
  /** Finds the user of a bearer token. */
  readonly authenticate: (token: string) => User | undefined
  /** Signs the tokens of service accounts. */
  readonly tokenKey: Buffer
}

/** A result before it is rendered as a response. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | AsyncIterable<string>
}

export const entryKey = (namespace: string, name: string): string => (namespace === '' ? name : `${namespace}/${name}`)

export const json = (status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body,
})
