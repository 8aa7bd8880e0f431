/** Reads and changes by registration: the registration named operations whose types fit when it compiled; here they are
 *  any. */
import type { UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query'
import { itemsOf, type ReadOptions, useList, useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import type { ListId, OperationId } from '../api/operations.ts'
import type { Noun, Thing } from './noun.ts'

export interface Request {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>>
  readonly idempotencyKey?: string
}

/** The answer of an operation by its members. */
export async function send(operation: OperationId, request: Request): Promise<Readonly<Record<string, unknown>>> {
  // path and body are those of the operation that a registration names
  const answer: unknown = await call(operation, request as never)
  return (answer ?? {}) as Readonly<Record<string, unknown>> // answers are objects, or empty
}

/** The member that holds the item; undefined for another answer. */
export const thingIn = (noun: Noun, answer: Readonly<Record<string, unknown>> | undefined): Thing | undefined =>
  answer?.[noun.member] as Thing | undefined // as its read answers

export interface OneThing {
  readonly read: UseQueryResult
  readonly item: Thing | undefined
}

export function useThing(noun: Noun, id: string, options: ReadOptions = {}): OneThing {
  // every read takes an id
  const read = useRead(noun.read, { path: { id } } as never, options) as UseQueryResult<
    Readonly<Record<string, unknown>>
  >
  return { read, item: thingIn(noun, read.data) }
}

export interface ManyThings {
  readonly list: UseInfiniteQueryResult
  readonly items: readonly Thing[]
}

export function useThings(noun: Noun, options: ReadOptions = {}): ManyThings {
  const list = useList<ListId>(noun.list, {}, options)
  return { list, items: itemsOf(list.data) as readonly unknown[] as readonly Thing[] } // items have ids
}

/** Labels of an item that has them. */
export const labelsOf = (item: Thing): Readonly<Record<string, string>> =>
  (item['labels'] ?? {}) as Readonly<Record<string, string>> // as the contract has them
