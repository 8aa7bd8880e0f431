/** Reads and changes by registration: the registration named operations whose types fit when it compiled; here they are
 *  any. */
import type { UseInfiniteQueryResult, UseQueryResult } from '@tanstack/react-query'
import { itemsOf, type ReadOptions, useList, useRead } from '../api/cache.ts'
import { call, exchange } from '../api/client.ts'
import type { ListId, OperationId } from '../api/operations.ts'
import { ruleOf } from '../api/portal.ts'
import { Refusal } from '../api/refusal.ts'
import type { Noun, Thing } from './noun.ts'

export interface Request {
  readonly path?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Readonly<Record<string, unknown>>
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

/** The answer of an operation by its members. */
export async function send(operation: OperationId, request: Request): Promise<Readonly<Record<string, unknown>>> {
  // path and body are those of the operation that a registration names
  const answer: unknown = await call(operation, request as never)
  return (answer ?? {}) as Readonly<Record<string, unknown>> // answers are objects, or empty
}

export interface Reply {
  readonly answer: Readonly<Record<string, unknown>>
  /** It was carried out before: secrets of the answer were in the first one. */
  readonly isLost: boolean
}

/** The same, and whether secrets that the answer had were lost with an earlier one. */
export async function sendOnce(operation: OperationId, request: Request): Promise<Reply> {
  // path and body are those of the operation that a registration names
  const { answer, isRepeated }: { answer: unknown; isRepeated: boolean } = await exchange(operation, request as never)
  const members = (answer ?? {}) as Readonly<Record<string, unknown>> // answers are objects, or empty
  return { answer: members, isLost: isRepeated && ruleOf(operation).hasSecrets === true }
}

/** The member that holds the item; undefined for another answer. */
export const thingIn = (noun: Noun, answer: Readonly<Record<string, unknown>> | undefined): Thing | undefined =>
  (noun.member === undefined ? answer : answer?.[noun.member]) as Thing | undefined // as its read answers

/** The path parameters of an operation on one item: each has one, whatever its name. */
export function pathTo(operation: OperationId, id: string): Readonly<Record<string, string>> {
  const [, name = 'id'] = /\{(\w+)\}/.exec(ruleOf(operation).path) ?? []
  return { [name]: id }
}

export interface OneThing {
  readonly read: UseQueryResult
  readonly item: Thing | undefined
  /** The service knows no such item. */
  readonly isGone: boolean
}

export function useThing(noun: Noun, id: string, options: ReadOptions = {}): OneThing {
  const operation = noun.read ?? noun.list
  const input = noun.read === undefined ? { query: { ...noun.query, id } } : { path: pathTo(operation, id) }
  // path and answer are those of the operation that a registration names
  const read = useRead(operation, input as never, options) as UseQueryResult<Readonly<Record<string, unknown>>>
  const item = noun.read === undefined ? listedIn(read.data, id) : thingIn(noun, read.data)
  const isAbsent = noun.read === undefined && read.data !== undefined && item === undefined
  return { read, item, isGone: isAbsent || (read.error instanceof Refusal && read.error.status === 404) }
}

const listedIn = (answer: Readonly<Record<string, unknown>> | undefined, id: string): Thing | undefined =>
  (answer?.['items'] as readonly Thing[] | undefined)?.find((each) => each.id === id) // as every list answers

export interface ManyThings {
  readonly list: UseInfiniteQueryResult
  readonly items: readonly Thing[]
}

/** With a query, those that the service finds by it. */
export function useThings(
  noun: Noun,
  options: ReadOptions = {},
  query: Readonly<Record<string, string>> = {},
): ManyThings {
  const list = useList<ListId>(noun.list, { ...noun.query, ...query }, options)
  return { list, items: itemsOf(list.data) as readonly unknown[] as readonly Thing[] } // items have ids
}

/** Labels of an item that has them. */
export const labelsOf = (item: Thing): Readonly<Record<string, string>> =>
  (item['labels'] ?? {}) as Readonly<Record<string, string>> // as the contract has them
