/** What people remember of what was answered to them. */
import type { ClientKey } from './object-clients.ts'

export interface Account {
  readonly id: string
  readonly token: string
  /** Servers that an answer has named, dead or alive. */
  readonly servers: Set<string>
}

/** What may be under a key after all that was acknowledged; undefined stands for nothing. */
export interface KnownObject {
  may: readonly (string | undefined)[]
  /** Of the last attempt whose outcome is unknown: until then it may still take effect. */
  restsUntil: number
  isBusy: boolean
}

/** What an account knows of its object storage in a zone. */
export interface Place {
  readonly account: Account
  readonly zone: string
  key: ClientKey | undefined
  prefix: string
  /** By bucket and key. */
  readonly objects: Map<string, KnownObject>
  readonly buckets: Set<string>
  /** Secrets whose replacement was acknowledged. */
  readonly dead: Set<string>
  /** It is to go. */
  isLeaving: boolean
  /** What was wrong when a client looked. */
  readonly violations: Set<string>
}

/** What is known of all of them. */
export interface ObjectLedger {
  readonly places: readonly Place[]
}

/** What people know of their databases. */
export interface DatabaseLedger {
  /** What was wrong at any instant. */
  readonly violations: Set<string>
  /** Databases that an answer has named, also deleted ones: their accounts, and which history each is. */
  readonly known: Map<string, { readonly account: Account; lineage: string | undefined }>
  /** What each one is restored from, and to when where that was said. */
  readonly restores: Map<string, { readonly from: string; readonly target: string | null }>
}
